# SPDX-License-Identifier: GPL-2.0
"""Results of tests.

A program that runs tests ends with the line "N passed, N failed".
"""

import re
import time

# A line of KTAP: indentation, result, name, the rest
RESULT = re.compile(r"( *)(ok|not ok) \d+ (?:- )?(\S+)(.*)")
PLAN = re.compile(r"( *)1\.\.(\d+)")
RUN = "# run "			# kevent-tests begins a test
SUM = re.compile(r"(\d+) passed, (\d+) failed")
CHECK = re.compile(r"(ok|not ok) (.*)")


def end(passed, failed):
    """Print the last line; returns the exit status."""
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def counts(lines):
    """The numbers in the last line, (0, 0) if it has none."""
    match = SUM.fullmatch(lines[-1]) if lines else None
    return (int(match[1]), int(match[2])) if match else (0, 0)


class Checks:
    """Results printed one by one."""

    def __init__(self):
        self.passed = self.failed = 0

    def result(self, ok, text):
        print("ok    " if ok else "FAILED", text, flush=True)
        self.passed += ok
        self.failed += not ok

    def take(self, lines, expected, what, log, prefix=""):
        """Results in lines, "ok NAME" or "not ok NAME"; returns how many failed.

        A result that is missing has failed.
        """
        failed = self.failed
        found = [match for match in map(CHECK.fullmatch, lines) if match]
        for match in found:
            self.result(match[1] == "ok", prefix + match[2])
        for _ in range(expected - len(found)):
            self.result(False, f"{what}: no result, see {log}")
        return self.failed - failed

    def end(self):
        return end(self.passed, self.failed)


class Plan:
    """How many results of a list, or of a list in a list, have to come."""

    def __init__(self, depth, left, failed):
        self.depth = depth
        self.left = left		# None: the list came without a plan
        self.failed = failed		# tests that had failed before


class Report:
    """Results of one run, read line by line from its KTAP."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failed = 0
        self.exceptions = 0		# failed as they must
        self.failures = []		# (test, diagnostics)
        self.said = []			# (test, diagnostics, seconds)
        self.plans = []			# outermost first
        self.running = None		# test that has not ended
        self.begun = 0
        self.diagnostics = []
        self.suite = None		# the one that show() reports
        self.since = 0, 0, 0, time.monotonic()

    def line(self, text):
        plan = PLAN.fullmatch(text)
        result = RESULT.fullmatch(text)
        if plan:
            self.plan(len(plan[1]), int(plan[2]))
        elif result:
            self.result(len(result[1]), result[2] == "ok", result[3],
                        result[4])
        elif text.startswith(RUN):
            self.running, self.diagnostics = text.removeprefix(RUN), []
            self.begun = time.monotonic()
            self.enter(self.running.split(".")[0])
        elif text.lstrip().startswith("# ") or text.startswith("Bail out!"):
            self.diagnostics.append(text.lstrip(" #"))

    def plan(self, depth, number):
        self.close(depth)
        self.plans.append(Plan(depth, number, self.failed))
        self.diagnostics = []

    def close(self, depth):
        """End the plans at this depth and below; returns the last of them."""
        plan = None
        while self.plans and self.plans[-1].depth >= depth:
            plan = self.plans.pop()
            if plan.left:
                what = "missing" if plan.left > 0 else "more than planned"
                self.fail(self.running or self.suite or self.name,
                          [*self.diagnostics,
                           f"results: {abs(plan.left)} {what}"],
                          abs(plan.left))
                self.running = None
        return plan

    def fail(self, test, diagnostics, number=1):
        self.failed += number
        self.failures.append((test, diagnostics))

    def note(self, test, problems):
        """A test that has passed if there is no problem."""
        if problems:
            self.fail(test, problems)
        else:
            self.passed += 1

    def result(self, depth, ok, test, rest):
        inner = self.close(depth + 1)
        if not self.plans or self.plans[-1].depth < depth:
            self.plans.append(Plan(depth, None, self.failed))
        if self.plans[-1].left is not None:
            self.plans[-1].left -= 1
        if "# SKIP" in rest:
            ok, self.diagnostics = False, ["skipped"]
        if "# XFAIL" in rest:
            self.exceptions += 1
        elif not inner:
            self.leaf(depth, ok, test)
        elif not ok and self.failed == inner.failed:
            self.fail(test, self.diagnostics)
        self.running, self.diagnostics = None, []

    def leaf(self, depth, ok, test):
        if "." not in test:
            self.enter("KUnit" if depth else "library")
        if ok:
            self.passed += 1
            self.said.append((test, self.diagnostics,
                              time.monotonic() - self.begun))
        else:
            self.fail(test, self.diagnostics)

    def enter(self, suite):
        if suite != self.suite:
            self.show()
            self.suite = suite

    def show(self):
        """Print one line for the suite that ended."""
        passed, failed, exceptions, started = self.since
        self.since = self.passed, self.failed, self.exceptions, time.monotonic()
        failed = self.failed - failed
        exceptions = self.exceptions - exceptions
        if self.suite:
            print(f"{self.name:11} {self.suite:16}"
                  f"{self.passed - passed:4} passed"
                  + f", {failed} failed" * bool(failed)
                  + f", {exceptions} exceptions" * bool(exceptions)
                  + f"  ({self.since[-1] - started:.0f} s)", flush=True)
        self.suite = None

    def show_failures(self, log):
        """Print what failed, each with the last word about it."""
        for test, words in self.failures:
            print(f"FAILED  {test}, see {log}", *(f"        {word}" for word in words[-1:]), sep="\n")

    def end(self, status, errors):
        self.close(0)
        self.show()
        if not self.passed and not self.failed:
            self.fail(self.name, ["no results"] + self.diagnostics + errors)
        elif status not in (0, 1) or (status and not self.failed):
            self.fail(self.name, [f"exit status {status}"] + errors)
