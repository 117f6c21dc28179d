# SPDX-License-Identifier: GPL-2.0
"""Run commands in a VM, and say on what machine they ran."""

import hashlib
import os
import subprocess
from pathlib import Path

from . import cli, paths

RUN = paths.TOP / "tests/vm/run"
PYTHON = Path("/usr/bin/python3")
STDLIB = Path("/usr/lib/python3.11")
# Of the standard library, what is large and no program here uses
LEFT_OUT = ("config-", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test",
            "tkinter", "distutils", "dist-packages", "sitecustomize")
QEMU_OPTIONS = (b"-accel", b"-icount", b"-cpu", b"-smp", b"-m", b"-append")


def command(words, *options, copies=()):
    """The command that runs words in a VM: with the kernel that the options name, or
    the variable VM_CONFIG."""
    config = os.environ.get("VM_CONFIG")
    if config and not any(str(option).startswith("--config") for option in options):
        options = ("--config", config, *options)
    return [str(word) for word in
            (RUN, *options, *(f"--copy={path}" for path in copies), "--",
             *words)]


def python():
    """What a VM needs to run programs in Python."""
    return [PYTHON, *(path for path in STDLIB.iterdir()
                      if not path.name.startswith(LEFT_OUT))]


class Boot:
    """A run of a command in a VM, whose output goes to a log."""

    def __init__(self, log, words, *options, copies=(), **variables):
        self.log = log
        self.command = command(words, *options, copies=copies)
        self.variables = variables
        self.process = None
        self.status = None		# once lines() has ended

    def lines(self, title=None):
        """Yields the lines of output; a title is for the log, which is kept."""
        with open(self.log, "a" if title else "w") as log, subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                errors="replace",
                env={**os.environ, **self.variables}) as self.process:
            if title:
                print("#", title, file=log)
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                yield line.rstrip("\r\n")
        self.status = self.process.returncode

    def qemu(self):
        """Version and options of QEMU while it runs, or None."""
        return qemu_of(self.process.pid)


def children(pid):
    """Entries in /proc of the processes that process pid has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:		# it has ended
            continue
        if int(parent) == pid:
            yield stat.parent


def qemu_of(pid):
    for child in children(pid):
        try:
            words = (child / "cmdline").read_bytes().split(b"\0")
        except OSError:		# it has ended
            continue
        if b"qemu-system" not in words[0]:
            continue
        version = subprocess.run([words[0], "--version"], text=True,
                                 stdout=subprocess.PIPE).stdout
        options = [b" ".join(words[n:n + 2]).decode()
                   for n, word in enumerate(words) if word in QEMU_OPTIONS]
        return " ".join([version.split("\n")[0], *options])
    return None


def config_hash(config):
    """The start of the hash of a kernel's configuration."""
    stock = paths.BUILD / "stock" / config.removeprefix("stock-")
    path = next(stock.glob("usr/src/linux-headers-*/.config"),
                paths.LINUX / config / ".config")
    if not path.exists():
        cli.die(f"no kernel {config}; build it with "
                f"scripts/kernel.py build {config}")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
