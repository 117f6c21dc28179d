# SPDX-License-Identifier: GPL-2.0
"""The files of this tree, and which state of it this is: in a clone of git and in a tarball."""

import fnmatch
import functools
import os
import re
import shutil
import subprocess
import sys

from .paths import TOP


def git(*words):
    """What git prints about this tree; nothing without git, or where the tree is not its own."""
    if not (TOP / ".git").exists() or not shutil.which("git"):
        return ""
    return subprocess.run(["git", "-C", TOP, *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def ignored(path):
    """Does a line of .gitignore name it, a file or a folder?"""
    for line in (TOP / ".gitignore").read_text().splitlines():
        name = path if line.startswith("/") else os.path.basename(path)
        if fnmatch.fnmatch(name, line.strip("/")) and \
                (not line.endswith("/") or os.path.isdir(TOP / path)):
            return True
    return False


def unpacked():
    """All files, but for ignored ones and folders with the mark of scripts/build-folder."""
    for folder, folders, names in os.walk(TOP):
        here = os.path.relpath(folder, TOP)
        names += [name for name in folders if os.path.islink(f"{folder}/{name}")]
        folders[:] = [name for name in folders if not os.path.exists(f"{folder}/{name}/.kevent")
                      and name != ".git" and not ignored(os.path.normpath(f"{here}/{name}"))]
        yield from (path for path in (os.path.normpath(f"{here}/{name}") for name in names)
                    if not ignored(path))


def files(new=False):
    """Their names from the top of the tree, those that git does not have yet if they are wanted."""
    named = git("ls-files", "-z", *(["-co", "--exclude-standard"] if new else []))
    return sorted(name for name in (named.split("\0")[:-1] if named else unpacked())
                  if os.path.lexists(TOP / name))


def commits():
    """How many led to this one; 0 where that is not known."""
    return int(git("rev-list", "--count", "HEAD") or 0)


def version():
    """That of the release, as scripts/version prints it."""
    return subprocess.run([TOP / "scripts/version"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout.strip()


@functools.cache
def publisher():
    """What packaging/publisher says of whom the sources are from: values by their names."""
    return dict(re.findall(r"^([A-Z]+)=(.*)$", (TOP / "packaging/publisher").read_text(), re.M))


def say_unpublished(who):
    """Name on standard error what packaging/publisher lacks."""
    sys.stdout.flush()
    subprocess.run([TOP / "scripts/unpublished", who], check=True)


@functools.cache
def date():
    """When its files are of, in seconds: the day of the release, unless a build says another."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        [TOP / "scripts/version", "date"], text=True, check=True,
        stdout=subprocess.PIPE).stdout)
