#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Run CPython's own tests of selectors and of asyncio's event loops on kevent.

usage: run_cpython.py [--reference | --streams] [--seconds N] [MODULE[.CLASS[.TEST]]]...

The tests are those of the package "test", which Debian has in
libpython3.11-testsuite. Where CPython has a class of tests for each selector, such as
EPollEventLoopTests, there is a subclass here with the selector and the loop of
kevent. The other classes run while kevent's loop is the default.

--reference	run the same tests on the loop and the selector that CPython takes
--streams	run those that may use Unix sockets, on a loop that makes streams of
		them. A run fails in which no bytes went through memory
--seconds N	a test that takes longer ends the run (300)

Prints a line for each module, and for each test that did not pass, with the reason.
The last line is "N passed, N failed". A run fails in which no events came from
kevent. Tests that CPython itself skips on every selector count as neither.
"""

import asyncio
import faulthandler
import importlib
import selectors
import sys
import time
import unittest

import kevent
from kevent._stream_sockets import StreamSelector, StreamSocket

OURS = kevent.EventLoop, kevent.Selector, kevent.EventLoopPolicy
THEIRS = (asyncio.SelectorEventLoop, selectors.EpollSelector,
          asyncio.DefaultEventLoopPolicy)
# Through memory
STREAMS = ["test_asyncio.test_events", "test_asyncio.test_sendfile",
           "test_asyncio.test_selector_events", "test_asyncio.test_streams",
           "test_asyncio.test_unix_events", "test_asyncio.test_server",
           "test_asyncio.test_buffered_proto", "test_asyncio.test_sslproto"]
# With a class for each selector, by module: what the classes have in common
PER_SELECTOR = {
    "test_selectors": ["BaseSelectorTestCase", "ScalableSelectorMixIn"],
    "test_asyncio.test_events": ["UnixEventLoopTestsMixin",
                                 "SubprocessTestsMixin"],
    "test_asyncio.test_sock_lowlevel": ["BaseSockTestsMixin"],
    "test_asyncio.test_sendfile": ["SendfileTestsBase"],
}
# Tests of one other selector that are right for this one, too
ALSO = {"test_selectors": ("KqueueSelectorTestCase", [
    "test_register_bad_fd", "test_empty_select_timeout"])}
# On the default loop; None: all classes
DEFAULT_LOOP = {
    "test_asyncio.test_selector_events": None,
    "test_asyncio.test_streams": None,
    "test_asyncio.test_subprocess": None,
    "test_asyncio.test_unix_events": None,
    "test_asyncio.test_server": ["SelectorStartServerTests"],
    "test_asyncio.test_buffered_proto": ["BufferedProtocolSelectorTests"],
    "test_asyncio.test_sslproto": ["SelectorStartTLSTests"],
}


class StreamLoop(kevent.EventLoop):
    """EventLoop(streams=True), with a selector that a test has made."""

    def __init__(self, selector=None):
        super().__init__(StreamSelector() if selector is None else selector)


class StreamPolicy(kevent.EventLoopPolicy):
    _loop_factory = StreamLoop


class Counter:
    """Counts what selectors return."""

    def __init__(self, selector):
        self.rounds = self.events = 0
        select = selector.select

        def counting(this, timeout=None):
            ready = select(this, timeout)
            self.rounds += 1
            self.events += len(ready)
            return ready

        selector.select = counting


class Memory:
    """Counts the streams that have used memory when they are closed."""

    def __init__(self):
        self.streams = 0
        close = StreamSocket.close

        def counting(this):
            self.streams += this._stream is not None and this.in_memory
            close(this)

        StreamSocket.close = counting


def make_class(module, name, loop, selector):
    """The class of tests that CPython would have for this selector."""
    test_case = unittest.TestCase if name == "test_selectors" else \
        module.test_utils.TestCase
    bases = [getattr(module, base) for base in PER_SELECTOR[name]]
    members = {"SELECTOR": selector,
               "create_event_loop": lambda self: loop(selector())}
    if name in ALSO:
        other = getattr(module, ALSO[name][0])
        members.update((test, other.__dict__[test]) for test in ALSO[name][1])
    return type("KeventTests", (*bases, test_case), members)


def classes_of(name, loop, selector):
    module = importlib.import_module(f"test.{name}")
    if name in PER_SELECTOR:
        return module, [make_class(module, name, loop, selector)]
    return module, [
        value for word, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and
        value.__module__ == module.__name__ and
        (DEFAULT_LOOP[name] is None or word in DEFAULT_LOOP[name])]


class Result(unittest.TestResult):
    """Collects what did not pass. A test that takes too long ends the run."""

    def __init__(self, seconds):
        super().__init__()
        self.passed, self.others, self.seconds = set(), [], seconds
        self.bad = set()

    def startTest(self, test):
        super().startTest(test)
        faulthandler.dump_traceback_later(self.seconds, exit=True)
        self.passed.add(test.id())

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def other(self, test, kind, text):
        name = test.id() if hasattr(test, "id") else str(test)
        self.passed.discard(name)
        self.others.append((kind, name, text))
        if kind == "FAILED":
            self.bad.add(name)

    def addError(self, test, err):
        self.other(test, "FAILED", self._exc_info_to_string(err, test))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.other(test, "FAILED", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.other(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        self.other(test, "skipped", "CPython expects it to fail")

    def addUnexpectedSuccess(self, test):
        self.other(test, "FAILED", "CPython expects it to fail\n")


def wanted(test, names):
    identity = test.id().removeprefix("test.").replace("__main__.", "")
    return not names or any(
        (identity + ".").startswith(f"{name}.") for name in names)


def run_module(name, names, loop, selector, seconds):
    module, classes = classes_of(name, loop, selector)
    suite = unittest.TestSuite()
    for each in classes:
        if name in PER_SELECTOR:
            each.__module__ = module.__name__
        suite.addTests(test for test in
                       unittest.defaultTestLoader.loadTestsFromTestCase(each)
                       if wanted(test, names))
    result = Result(seconds)
    suite.run(result)
    return result


def show(name, result, counter, start):
    skipped = sum(kind == "skipped" for kind, _, _ in result.others)
    print(f"{name}: {len(result.passed)} passed, {len(result.bad)} failed, "
          f"{skipped} skipped; {counter.events} events in {counter.rounds} "
          f"rounds, {time.monotonic() - start:.0f} s", flush=True)
    for kind, test, text in result.others:
        print(f"  {kind} {test}: {text}", flush=True)


def modules_of(names):
    modules = [*PER_SELECTOR, *DEFAULT_LOOP]
    wrong = [name for name in names if not any(
        f"{name}.".startswith(f"{module}.") for module in modules)]
    if wrong:
        sys.exit(f"no tests {' '.join(wrong)}; there are: {' '.join(modules)}")
    return [module for module in modules if not names or any(
        f"{name}.".startswith(f"{module}.") for name in names)]


def option(words, name):
    if name not in words:
        return False
    words.remove(name)
    return True


def main(*arguments):
    words = list(arguments)
    if {"-h", "--help"} & set(words):
        sys.exit(__doc__.strip())
    reference = option(words, "--reference")
    streams = option(words, "--streams")
    seconds = 300
    if "--seconds" in words:
        place = words.index("--seconds")
        seconds = float(words[place + 1])
        del words[place:place + 2]
    loop, selector, policy = THEIRS if reference else OURS
    if streams:
        loop, selector, policy = StreamLoop, StreamSelector, StreamPolicy
        words = words or STREAMS
    asyncio.SelectorEventLoop = asyncio.unix_events.SelectorEventLoop = loop
    asyncio.DefaultEventLoopPolicy = policy
    asyncio.set_event_loop_policy(None)
    if not reference:
        with kevent.Queue() as queue:
            print(f"on {queue.backend}", flush=True)
    passed = failed = events = 0
    counter, memory = Counter(selector), Memory()
    for name in modules_of(words):
        start = time.monotonic()
        counter.rounds = counter.events = 0
        result = run_module(name, words, loop, selector, seconds)
        show(name, result, counter, start)
        passed += len(result.passed)
        failed += len(result.bad)
        events += counter.events
    if not events:
        print("no events came from the selector")
        failed += 1
    if streams:
        print(f"{memory.streams} streams in memory")
        failed += not memory.streams
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
