# SPDX-License-Identifier: GPL-2.0
"""Each check of tests/check that reads files has no complaint of the tree, and one of a wrong file.

A file is wrong in memory only: what reads it by Path.read_text() gets another text. Checks that
run other programs, such as checkpatch and sparse, have no row here. Each function yields
complaints, one line each; tests/check runs them.
"""

import contextlib
import io
from pathlib import Path
import subprocess
from unittest import mock

from lib import report
from lib.paths import TOP
import circles
import comments
import docs
import figures
import host_rows
import subjects

LATE = "T" "ODO"		# not a note of ours
KERNEL, MAN = "kernel/kevent", "libkevent/man"
# A check, a file, what stands there or "" for its end, what is there instead, and a complaint
WRONG_FILES = (
    (docs.functions, "libkevent/include/libkevent.h", "", "int kevent_no(int fd);\n",
     "kevent_no is in a header only"),
    (docs.constants, "include/uapi/linux/ukevent.h", "", "#define KEVENT_NO 1\n",
     "KEVENT_NO is in no manual page"),
    (docs.python_examples, "Documentation/python.rst", "examples/first.out", "examples/no.out",
     "python.rst: shows ["),
    (docs.names, "Documentation/kevent.rst", "", "``kevent_no()``\n",
     "kevent.rst: there is no kevent_no"),
    (docs.call_errnos, f"{KERNEL}/syscalls.c", "SYSCALL_DEFINE3(kevent_init",
     "/* Fails with EDOM. */\nSYSCALL_DEFINE3(kevent_init", "errnos of kevent_init() are in"),
    (docs.library_errnos, f"{MAN}/kevent_init.2", ".B ENFILE", ".B EDOM",
     "kevent_init.2: ENFILE is in libkevent.h only"),
    (docs.entry_errnos, f"{KERNEL}/sources/user.c", "", "int no = -EDOM;\n",
     "kevent_user.7: entries may have EDOM"),
    (docs.known_errnos, f"{KERNEL}/file.c", "", "int no = -EDOM;\n", "EDOM is in no manual page"),
    (docs.promises, "Documentation/promises.rst", "``max_running``", "``no.such_test``",
     "promises.rst: no test no.such_test"),
    (docs.licences, "COPYING", "libkevent/test\t\t\t\t\tGPL", "libkevent/test\t\t\t\t\tMIT",
     "COPYING: MIT-2.0 for libkevent/test"),
    (docs.versions, "rust/Cargo.toml", "version = \"", "version = \"0.",
     "rust/Cargo.toml: version 0."),
    (docs.versions, f"{MAN}/kevent_lane.3", "libkevent 2.0,", "libkevent 1.1,",
     "kevent_lane.3: libkevent 1.1 is none of"),
    (figures.everything, "README.md", "| 137 bytes |", "| 136 bytes |", "README.md: "),
    (figures.everything, "README.md", "| epoll 244 |", "| epoll 244, 1.5 |",
     "README.md: 1.5 is in a table"),
    (host_rows.everything, "tests/suites/fallback.c", "{ \"stored\",", "{ \"no\",",
     "tests/suites/fallback.c: no is no row"),
    (host_rows.everything, "Documentation/kevent.rst", "\nstored  ", "\nno      ",
     "kevent.rst has other rows"),
    (comments.everything, f"{KERNEL}/file.c", "", "/* Those of a file are here. */\n",
     f"{KERNEL}: "),
    (comments.everything, f"{MAN}/kevent.7", "", f".PP\nA call {'makes ' * 35}it.\n", f"{MAN}: "),
    ("sizes", f"{KERNEL}/file.c", "", "\n" * 800, "lines, over 800"),
    ("sizes", f"{KERNEL}/file.c", "", "void no(void)\n{\n" + "\tno();\n" * 61 + "}\n",
     "a body of 61 lines"),
    ("sizes", f"{KERNEL}/core/wake.c", "",
     "int no(int a, int b, int c, int d, int e, int f)\n{\n}\n", "no() has 6 parameters"),
    ("text", f"{KERNEL}/file.c", "", f"/* {LATE} */\n", "file.c: unfinished work"),
    ("text", f"{KERNEL}/file.c", "SPDX-License-Identifier", "no", "file.c: no SPDX line"),
    ("includes", f"{KERNEL}/core/wake.c", "", "#include \"../sources/file.h\"\n",
     "core/wake.c includes sources/file.h"),
    ("includes", f"{KERNEL}/core/ring.h", "", "#include \"queue.h\"\n", "includes in a circle"),
    ("includes", f"{KERNEL}/sources/user.c", "", "int no = KE_NO;\n", "a source knows states"),
    ("includes", f"{KERNEL}/core/wake.c", "", "void __user *no;\n", "core/wake.c: __user"),
    ("includes", f"{KERNEL}/core/wake.c", "", "int no = KEVENT_TIMER;\n",
     "core/wake.c names the source KEVENT_TIMER"),
    ("includes", f"{KERNEL}/host.h", "", "int host_no(void);\n", "kernel/module has no host_no"),
)


@contextlib.contextmanager
def edited(name, old, new):
    """As if a file of the tree had another text."""
    real, path = Path.read_text, TOP / name

    def read(self, *args, **kwargs):
        text = real(self, *args, **kwargs)
        if self != path:
            return text
        if old not in text:
            raise ValueError(f"tests/tools/checks.py: {name} has no {old!r}")
        return text.replace(old, new, 1) if old else text + new

    with mock.patch.object(Path, "read_text", read):
        yield


class Log:
    """What a check of tests/check complains of."""

    def __init__(self):
        self.complaints = []

    def note(self, text):
        pass

    def complain(self, text):
        self.complaints.append(text)

    def run(self, command, **kwargs):
        return subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False,
                              **kwargs).stdout


def complaints(check, checks):
    """Of a generator, or of one of tests/check, by its name."""
    if check not in checks:
        return list(check())
    log = Log()
    checks[check](log)
    return log.complaints


def files(checks):
    for check, name, old, new, words in WRONG_FILES:
        with edited(name, old, new):
            said = complaints(check, checks)
        if not any(words in line for line in said):
            which = check if check in checks else f"{check.__module__}.{check.__name__}()"
            yield f"{which} does not say {words!r} of {name}, but {said}"


# What the patterns for sentences have to find
WRONG_PROSE = (
    ("Who waits is woken.", ["Who"]),
    ("A thread waits. What it takes is gone.", ["What"]),
    ("A rule: Whoever adds it pays.", ["Whoever", "Whoever"]),
    ("(Those of pipes are short.)", ["Those"]),
    ("It ends. That of a set is higher.", ["That of"]),
    ("One queue is told, and owes it to others.", ["told", "owes"]),
    ("A call looks at the file.", ["looks"]),
    ("A thread is let go, and looked at.", ["let go", "looked"]),
    ("The descriptor is looked up, and those who wait know what it is.", []),
    ("The mutant keep-told-event is caught.", []),
)
WRONG_SUBJECTS = ("A subject", "nothing: Say so", "core: say so", "core: Say so.")


def words():
    for text, found in WRONG_PROSE:
        if docs.bad_words(text) != found:
            yield f"{docs.bad_words(text)} found in {text!r}, not {found}"
    for subject in WRONG_SUBJECTS:
        if not list(subjects.wrong([subject])):
            yield f"the subject {subject!r} is taken for a good one"
    if list(subjects.wrong(["core: Say so", "posix_timer: Say so"])):
        yield "a good subject is taken for a wrong one"


# A call upwards, and one by a table that is declared below and defined above
SAMPLE = {
    "low": "struct ops { void (*go)(void); };\n"
           "extern const struct ops table; void go(void);\n"
           "void low(void) { table.go(); %s; }\n",
    "middle": "void low(void); void go(void); void go(void) { low(); }\n",
    "high": "struct ops { void (*go)(void); }; void go(void);\n"
            "extern const struct ops table; const struct ops table = { go };\n",
}


def sample(folder, upwards):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in SAMPLE.items():
        if name == "low":
            text %= "go()" if upwards else "(void)0"
        subprocess.run(["cc", "-x", "c", "-c", "-o", folder / f"{name}.o", "-"],
                       input=text, text=True, check=True)
    return circles.objects(folder)


def calls(work):
    """What tests/circles.py does not see, or sees where nothing is."""
    good, bad = sample(work / "good", False), sample(work / "bad", True)
    if any(circles.complaints(good, ["table"])):
        yield "a table of methods that is allowed is a circle"
    if not any(circles.complaints(good)):
        yield "a table of methods that is not allowed is no circle"
    if "  low -> middle: go" not in circles.complaints(bad, ["table"]):
        yield "a call upwards is no circle"
    if not any(circles.complaints(good, ["table", "go"])):
        yield "a function is a table"
    (work / "good/middle.h").write_text("")
    (work / "good/low.c").write_text('#include "middle.h"\n')
    pairs = frozenset(("low", "middle"))
    if not any(circles.pair_circles(good, work / "good", ["table"], ())):
        yield "a header of a file above is no circle"
    if any(circles.pair_circles(good, work / "good", ["table"], (pairs,))):
        yield "a circle that is known is a complaint"
    (work / "headers/in").mkdir(parents=True, exist_ok=True)
    (work / "headers/in/a.h").write_text('#include "in/b.h"\n')
    (work / "headers/in/b.h").write_text('#include "a.h"\n')
    if not any(circles.pair_circles(good, work / "headers", ["table"], ())):
        yield "headers that include one another are no circle"
    if any(circles.pair_circles(good, work / "headers", ["table"], (frozenset(("in",)),))):
        yield "a circle of a folder that is known is a complaint"


# Output of tests, the exit status, how many passed, and what failed with which words
REPORTS = (
    ("1..2|# run a.one|ok 1 a.one|# run a.two|ok 2 a.two", 0, 2, []),
    ("1..2|# run a.one|ok 1 a.one|# run a.two|# a word", 124, 1,
     [("a.two", ["a word", "results: 1 missing"]), ("r", ["exit status 124", "words"])]),
    ("1..3|# run a.one|ok 1 a.one", 125, 1,
     [("a", ["results: 2 missing"]), ("r", ["exit status 125", "words"])]),
    ("1..1|ok 1 a.one|ok 2 a.two", 0, 2, [("r", ["results: 1 more than planned"])]),
    ("1..1|# run a.one|# why|not ok 1 a.one", 1, 0, [("a.one", ["why"])]),
    ("1..1|# run a.one|ok 1 a.one # SKIP", 0, 0, [("a.one", ["skipped"])]),
    ("1..1|# run a.one|ok 1 a.one", 139, 1, [("r", ["exit status 139", "words"])]),
    ("", 125, 0, [("r", ["no results", "words"])]),
    ("Bail out! no memory", 1, 0, [("r", ["no results", "Bail out! no memory", "words"])]),
    ("1..2|    1..2|    ok 1 one|    ok 2 two|ok 1 outer|    1..2|    ok 1 three", 125, 3,
     [("KUnit", ["results: 1 missing"]), ("KUnit", ["results: 1 missing"]),
      ("r", ["exit status 125", "words"])]),
    ("1..1|    1..1|    ok 1 one|not ok 1 outer", 1, 1, [("outer", [])]),
)


def reports():
    """What a run says that does not end as it should."""
    for text, status, passed, failures in REPORTS:
        each = report.Report("r")
        with contextlib.redirect_stdout(io.StringIO()):
            for line in text.split("|"):
                each.line(line)
            each.end(status, ["words"])
        if (each.passed, each.failures) != (passed, failures):
            yield f"{text!r}: {each.passed} passed, {each.failures}"


def everything(checks, work):
    yield from files(checks)
    yield from words()
    yield from calls(work)
    yield from reports()
