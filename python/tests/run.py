#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Run the tests of the package.

usage: run.py [--kernel] [--seconds N] [MODULE[.CLASS[.TEST]]]...

--kernel	fail where queues are not those of the kernel
--seconds N	a test that takes longer ends the run (120)

The last line is "N passed, N failed". A test that is skipped says why.
"""

import faulthandler
import os
import signal
import sys
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import kevent

MODULES = ("test_import", "test_queue", "test_sources", "test_selector", "test_loop", "test_streams",
           "test_loop_streams", "test_readme", "test_examples", "test_types")


class Result(unittest.TextTestResult):
    """A result for each test. One that takes too long ends the run."""
    passed = 0
    limit = 120

    def startTest(self, test):
        super().startTest(test)
        signal.alarm(self.limit)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def option(words, name):
    if name not in words:
        return False
    words.remove(name)
    return True


def main(*arguments):
    words = list(arguments)
    if option(words, "--help"):
        sys.exit(__doc__.strip())
    kernel = option(words, "--kernel")
    if "--seconds" in words:
        place = words.index("--seconds")
        Result.limit = int(words[place + 1])
        del words[place:place + 2]
    with kevent.Queue() as queue:
        print(f"on {queue.backend}", flush=True)
        if kernel and queue.backend not in ("kevent", "module"):
            sys.exit("run.py: this kernel has no kevent")
    suite = unittest.defaultTestLoader.loadTestsFromNames(words or MODULES)
    # No thread for that: it could take signals, which are consumed by the tests
    faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
    warnings.simplefilter("error", ResourceWarning)
    result = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.passed} passed, {failed} failed", flush=True)
    return 1 if failed or not result.passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
