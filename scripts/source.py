#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Fetch the upstream tarball of a Debian source package.

usage: scripts/source.py FOLDER PACKAGE VERSION SUITE [VERSION SUITE]...

FOLDER is made anew and has the tarball, of the first version that its suite still has: sid drops
a version when it gets the next one. A version may be a pattern, and has no revision of Debian's,
whose patches are left out. apt has lists of its own for this in $BUILD/apt; those of this machine
stay as they are.
"""

import contextlib
import fcntl
import fnmatch
import shutil
import sys
from pathlib import Path

from lib import apt, cli
from lib.paths import BUILD, LOG, make_folders

LISTS = BUILD / "apt"


def fetch(folder, package, version, suite):
    """Tells whether the suite has it."""
    lists = apt.Apt(suite, LISTS / suite, LOG / "source.log", "deb-src")
    lists.update()
    for found in lists.sources(package):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        # The archive may name a revision that it does not have (any more)
        if fnmatch.fnmatchcase(found.rpartition("-")[0], version) and lists.run(
                "apt-get", "source", "--tar-only", "--only-source", f"{package}={found}",
                folder=folder, check=False) is not None:
            return True
    return False


@contextlib.contextmanager
def locked():
    """Two at once would use the same lists."""
    make_folders(LISTS)
    with open(LISTS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(folder="", package="", *wanted):
    if not wanted or len(wanted) % 2:
        cli.usage()
    if not shutil.which("apt-get"):
        cli.die(f"this is not Debian, whose source of {package} is needed")
    apt.keyring()
    pairs = list(zip(wanted[::2], wanted[1::2]))
    with locked():
        if not any(fetch(Path(folder), package, *pair) for pair in pairs):
            cli.die(f"apt gets no source of {package} "
                    + " or ".join(f"{version} from {suite}" for version, suite in pairs)
                    + f"; log: {LOG}/source.log")


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
