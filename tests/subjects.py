# SPDX-License-Identifier: GPL-2.0
"""Subjects of commits: "area: Imperative", with an area that is a part of the tree.

Areas are those of AREAS, the files of kernel/kevent and the programs in patches/. Commits before
SINCE have others; without it, as in a tarball or a shallow clone, there is nothing to check. The
function yields complaints, one line each; tests/check runs it.
"""

import re
import subprocess

from lib.paths import TOP

SINCE = "557cc3af12a1f6ebc8628187cdafdb3375130f24"
LAST = 200
AREAS = {"bench", "call", "core", "doc", "examples", "fallback", "kevent", "lane", "libkevent",
         "make", "man", "module", "packaging", "patches", "python", "rust", "scripts", "sources",
         "stream", "tests", "tools"}
SUBJECT = re.compile(r"([\w/-]+): [A-Z].*[^.]")


def areas():
    return AREAS | {path.stem.removeprefix("ev_") for path in
                    (TOP / "kernel/kevent").rglob("*.c")} | {
                        path.name for path in (TOP / "patches").iterdir()}


def wrong(subjects):
    known = areas()
    for subject in subjects:
        match = SUBJECT.fullmatch(subject)
        if not match or match[1] not in known:
            yield f"{subject!r} has no area of tests/subjects.py, or is no \"area: Imperative\""


def everything():
    done = subprocess.run(["git", "-C", TOP, "log", "--no-merges", f"-{LAST}", "--format=%s",
                           f"{SINCE}..HEAD"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not done.returncode:
        yield from wrong(done.stdout.splitlines())
