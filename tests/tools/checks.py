# SPDX-License-Identifier: GPL-2.0
"""Each check of tests/check that reads files has no complaint of the tree, and one of a wrong file.

A file is wrong in memory only: what reads it by Path.read_text() gets another text. Checks that
run other programs, such as checkpatch and sparse, have no row here. Each function yields
complaints, one line each; tests/check runs them.
"""

import contextlib
import io
import os
from pathlib import Path
import re
import runpy
import subprocess
from unittest import mock

from lib import report
from lib.paths import BUILD, TOP
import circles
import comments
import docs
import figures
import host_rows
import subjects

KERNEL, MAN, LINE = "kernel/kevent", "libkevent/man", r"\n"
# A check, a file, a line more of it or what it has and has instead, and words of the complaint
WRONG_FILES = rf"""
docs.functions | libkevent/include/libkevent.h | int kevent_no(int fd); | kevent_no is in a header
docs.constants | include/uapi/linux/ukevent.h | #define KEVENT_NO 1 | KEVENT_NO is in no manual page
docs.python_examples | Documentation/python.rst | s/first.out -> s/no.out | python.rst: shows [
docs.names | Documentation/kevent.rst | ``kevent_no()`` | kevent.rst: there is no kevent_no
docs.call_errnos | {KERNEL}/syscalls.c | \nSYSCALL -> \n/* EDOM */\nSYSCALL | errnos of kevent
docs.library_errnos | {MAN}/kevent_init.2 | .B ENFILE -> .B EDOM | kevent_init.2: ENFILE is in
docs.entry_errnos | {KERNEL}/sources/user.c | int no = -EDOM; | kevent_user.7: entries may have EDOM
docs.known_errnos | {KERNEL}/file.c | int no = -EDOM; | EDOM is in no manual page
docs.promises | Documentation/promises.rst | ``max_running`` -> ``no.such_test`` | no test no
docs.licences | COPYING | t\t\t\t\t\tGPL -> t\t\t\t\t\tMIT | COPYING: MIT-2.0 for
docs.versions | rust/Cargo.toml | version = " -> version = "0. | rust/Cargo.toml: version 0.
docs.versions | {MAN}/kevent_lane.3 | libkevent 2.0, -> libkevent 1.1, | libkevent 1.1 is none of
figures.everything | README.md | 137 bytes -> 136 bytes | README.md:
figures.everything | README.md | epoll 244 -> epoll 244, 1.5 | README.md: 1.5 is in a table
host_rows.everything | tests/suites/fallback.c | {{ "stored" -> {{ "no" | fallback.c: no is no row
host_rows.everything | Documentation/kevent.rst | \nstored   -> \nno       | kevent.rst has other
comments.everything | {KERNEL}/file.c | /* Those of a file are here. */ | {KERNEL}:
comments.everything | {MAN}/kevent.7 | .PP\nA call {'makes ' * 35}it. | {MAN}:
sizes | {KERNEL}/file.c | {LINE * 800} | lines, over 800
sizes | {KERNEL}/file.c | void no(void)\n{{{LINE * 62}}} | a body of 61 lines
sizes | {KERNEL}/file.c | int no(int a, int b, int c, int d, int e, int f)\n{{\n}} | no() has 6
text | {KERNEL}/file.c | /* TO{'DO'} */ | file.c: unfinished work
text | {KERNEL}/file.c | SPDX-License-Identifier -> no | file.c: no SPDX line
includes | {KERNEL}/core/wake.c | #include "../sources/file.h" | core/wake.c includes sources/file.h
includes | {KERNEL}/core/ring.h | #include "queue.h" | includes in a circle
includes | {KERNEL}/sources/user.c | int no = KE_NO; | a source knows states
includes | {KERNEL}/core/wake.c | void __user *no; | core/wake.c: __user
includes | {KERNEL}/core/wake.c | int no = KEVENT_TIMER; | core/wake.c names the source KEVENT_TIMER
includes | {KERNEL}/core/fd_close.c | int no = KEVENT_TIMER; | core/fd_close.c names the source
includes | {KERNEL}/Kconfig | \nconfig KEVENT_NO\n\tbool "No" if EXPERT\n | PARTS of tests/check
includes | {KERNEL}/host.h | int host_no(void); | kernel/module has no host_no
circles | libkevent/src/fallback/list.h | #include "index.h" | pairs of .c and .h
"""


@contextlib.contextmanager
def edited(name, old, new):
    """As if a file of the tree had another text, or a line more."""
    real, path = Path.read_text, TOP / name

    def read(self, *args, **kwargs):
        text = real(self, *args, **kwargs)
        if self != path:
            return text
        return text.replace(old, new, 1) if new else f"{text}{old}\n"

    with mock.patch.object(Path, "read_text", read):
        yield


def complaints(check, checks, log):
    """Of a generator, or of one of tests/check, by its name."""
    module, _, name = check.partition(".")
    if name:
        return list(getattr(globals()[module], name)())
    log.path.write_text("")
    checks[check](log)
    return log.path.read_text().splitlines()


def files(checks, log):
    for row in WRONG_FILES.strip().splitlines():
        check, name, text, words = row.split(" | ")
        old, _, new = text.encode().decode("unicode_escape").partition(" -> ")
        with edited(name, old, new):
            said = complaints(check, checks, log)
        if not any(words in line for line in said):
            yield f"{check} does not say {words!r} of {name}, but {said}"


def circles_with(*tables):
    """The first complaint of the library, which has circles where its table is not known."""
    objects = circles.objects(BUILD / "libkevent/src", TOP / "libkevent/src")
    return next(circles.complaints(objects, tables), "").partition(" ")[2].partition(":")[0]


def wrong_subjects(*names):
    return [name for name in names if list(subjects.wrong([name]))]


def summary(text, status):
    """How many tests passed, and what failed, in a run with such lines and such an end."""
    each = report.Report("r")
    with contextlib.redirect_stdout(io.StringIO()):
        for line in text.split("|"):
            each.line(line)
        each.end(status, ["words"])
    return each.passed, each.failures


def libuv(text):
    """The complaints of two runs of two programs on the module."""
    with mock.patch.dict(os.environ, VM_CONFIG="stock-6.12"):
        test = runpy.run_path(str(TOP / "tests/programs/libuv"))
    return list(test["complaints"](test["parse"](text.replace("|", "\n")), 2))


def tool(*command):
    """What a tool finds whose findings begin with a number."""
    test = runpy.run_path(str(TOP / "tests/long/checkers"))
    return dict(test["findings"](test["Tool"]("none", command, "", None, r"^\d+ (.*)")))


def errors(version, options):
    """What the preprocessor says of compat.h, without other headers, for such a kernel."""
    text = re.sub("^#include.*", "", (TOP / "kernel/module/compat.h").read_text(), flags=re.M)
    done = subprocess.run(
        ["gcc", "-E", "-", "-DKERNEL_VERSION(a,b,c)=((a)*65536+(b)*256+(c))",
         f"-DLINUX_VERSION_CODE=KERNEL_VERSION({version})",
         *(f"-DCONFIG_{option}=1" for option in options.split())],
        input=text, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return re.findall(r'error: #error "(.*)"', done.stderr) or done.stderr.splitlines()


# Each word and beginning that sentences must not have, then three that they may have
PROSE = ("Who waits is woken. What it takes is gone. A rule: Whoever adds it pays. (Those of pipes "
         "are short.) It ends. That of a set is higher. One queue is told, and owes it to others. "
         "A call looks at the file. The thread is let go, and looked at. The descriptor is looked "
         "up, and those who wait know what it is. The mutant keep-told-event is caught.")
FOUND = ["Who", "What", "Whoever", "Those", "That of",
         "Whoever", "told", "owes", "looks", "let go", "looked"]
WRONG_SUBJECTS = ["A subject", "nothing: Say so", "core: say so", "core: Say so."]
FTRACE = "DYNAMIC_FTRACE HAVE_DYNAMIC_FTRACE_WITH_ARGS"
GOOD = f"LTO_NONE {FTRACE}"
RANGE = ["The module is for Linux 6.1, and for 6.12 to 7.3."]
NO_FTRACE = ["The module needs ftrace with arguments."]
# All but the end of a run, in which the one test that the module must fail has done so
LIBUV = ("== kevent|ok 1 - a_check|== 0 1 1 9|not ok 1 - poll_nested_epoll|== 1 1 1 9|"
         "== epoll|ok 1 - a_check|== 0 1 1 0|ok 1 - poll_nested_epoll")
# Functions, their arguments, and their results
RESULTS = (
    (docs.bad_words, PROSE, FOUND),
    (wrong_subjects, "core: Say so", "posix_timer: Say so", *WRONG_SUBJECTS, WRONG_SUBJECTS),
    (circles_with, "fb_sources", ""),
    (circles_with, "files in a circle"),
    (circles_with, "kevent_init", "is a function, and no table"),
    (summary, "1..2|# run a.one|ok 1 a.one|# run a.two|ok 2 a.two", 0, (2, [])),
    (summary, "1..2|# run a.one|ok 1 a.one|# run a.two|# a word", 124,
     (1, [("a.two", ["a word", "results: 1 missing"]), ("r", ["exit status 124", "words"])])),
    (summary, "1..3|# run a.one|ok 1 a.one", 0, (1, [("a", ["results: 2 missing"])])),
    (summary, "1..1|ok 1 a.one|ok 2 a.two", 0, (2, [("r", ["results: 1 more than planned"])])),
    (summary, "1..1|# run a.one|# why|not ok 1 a.one", 1, (0, [("a.one", ["why"])])),
    (summary, "1..1|# run a.one|ok 1 a.one # SKIP", 0, (0, [("a.one", ["skipped"])])),
    (summary, "1..1|# run a.one|ok 1 a.one", 1, (1, [("r", ["exit status 1", "words"])])),
    (summary, "Bail out! why", 1, (0, [("r", ["no results", "Bail out! why", "words"])])),
    (summary, "1..2|    1..2|    ok 1 one|    ok 2 two|ok 1 outer|    1..2|    ok 1 three", 0,
     (3, [("KUnit", ["results: 1 missing"]), ("KUnit", ["results: 1 missing"])])),
    (summary, "1..1|    1..1|    ok 1 one|not ok 1 outer", 1, (1, [("outer", [])])),
    *((libuv, f"{LIBUV}|== {status} 1 1 0", wanted) for status, wanted in (
        (0, []), (139, ["epoll: status 139"]))),
    (libuv, LIBUV.replace("== 1 ", "== 139 ") + "|== 0 1 1 0", ["kevent: status 139"]),
    (libuv, LIBUV.replace("not ok 1", "ok 1") + "|== 0 1 1 0", ["kevent: status 1"]),
    (tool, "true", {}),
    (tool, "false", {"exit status 1": 1}),
    (tool, "sh", "-c", "echo 1 word; echo 2 word; exit 1", {"word": 2}),
    *((errors, f"{version},255", GOOD, RANGE) for version in ("6,0", "6,2", "6,11", "7,4")),
    *((errors, f"{version},0", GOOD, []) for version in ("6,1", "6,12", "7,3")),
    (errors, "6,12,0", FTRACE, ["LTO may inline the function whose calls tell of a close."]),
    (errors, "6,12,0", f"{GOOD} PREEMPT_RT",
     ["The hook of close() cannot take the locks of a kernel with PREEMPT_RT."]),
    (errors, "6,12,0", "LTO_NONE DYNAMIC_FTRACE", NO_FTRACE),
    (errors, "6,12,0", "LTO_NONE HAVE_DYNAMIC_FTRACE_WITH_ARGS", NO_FTRACE),
    (errors, "6,12,0", f"{GOOD} KEVENT", ["This kernel has kevent."]),
)


def everything(checks, log):
    yield from files(checks, log)
    for function, *arguments, wanted in RESULTS:
        if (found := function(*arguments)) != wanted:
            yield f"{function.__name__}() of {arguments} is {found}, not {wanted}"
