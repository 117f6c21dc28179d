# SPDX-License-Identifier: GPL-2.0
"""What machine a figure was measured on."""

import hashlib
import subprocess
import sys
from pathlib import Path

QEMU_OPTIONS = (b"-accel", b"-icount", b"-cpu", b"-smp", b"-m", b"-append")


def children(pid):
    """Entries in /proc of the processes that pid has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:		# ended meanwhile
            continue
        if int(parent) == pid:
            yield stat.parent


def qemu_of(pid):
    """Version and options of the QEMU that process pid has started, or None."""
    for child in children(pid):
        words = (child / "cmdline").read_bytes().split(b"\0")
        if b"qemu-system" not in words[0]:
            continue
        version = subprocess.run([words[0], "--version"], text=True,
                                 stdout=subprocess.PIPE).stdout
        options = [b" ".join(words[n:n + 2]).decode()
                   for n, word in enumerate(words) if word in QEMU_OPTIONS]
        return " ".join([version.split("\n")[0], *options])
    return None


def config_hash(build, config):
    """The start of the hash of a kernel's configuration."""
    path = build / "linux" / config / ".config"
    if not path.exists():
        sys.exit(f"bench: no kernel {config}; build it with "
                 f"scripts/kernel build {config}")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
