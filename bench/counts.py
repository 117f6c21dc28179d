# SPDX-License-Identifier: GPL-2.0
"""What a workload executes for each event, by function, as QEMU counts it."""

import bisect
import re
import subprocess
from collections import Counter

from lib import cli, vm
from lib.paths import BUILD, LOG, TOP

GUEST = TOP / "bench/guest"
PROGRAM = BUILD / "bench/kevent-bench"
AMOUNT = {"ctl": ("--watches", 8000), "timers": ("--watches", 20000)}
USUAL = ("--events", 40000)
TEXT = re.compile(r"^([0-9a-f]+) [tTwWi] (\S+)", re.M)
# As tests/vm/profile.c prints them after an address and how often its block ran, and
# switches from one task to another
PRINTED = ("instr", "steps", "calls", "irets", "windows", "locked", "tables", "msrs",
           "returns")
KINDS = (*PRINTED, "switches")
SWITCH = "__switch_to_asm"
# Functions of the kernel are at the same place in all boots, and one CPU keeps its lock prefixes.
APPEND = "nokaslr noreplace-smp"
# What the kernel has in the end, modules and trampolines of ftrace too
SCRIPT = '"$@" && cat /proc/kallsyms'


class Symbols:
    """The functions of a kernel and of the program, which is linked statically."""

    def __init__(self, kernel):
        program = subprocess.run(["nm", PROGRAM], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        found = sorted((int(address, 16), name) for address, name in
                       TEXT.findall(kernel) + TEXT.findall(program))
        self.addresses = [address for address, _ in found]
        self.names = [name for _, name in found]

    def at(self, address):
        """The function, and whether it begins there."""
        n = bisect.bisect_right(self.addresses, address) - 1
        if n < 0:
            return "(unknown)", False
        return self.names[n], self.addresses[n] == address


def read(lines, symbols):
    """{kind: Counter of functions} of what the plugin has printed."""
    counts = {kind: Counter() for kind in KINDS}
    for line in lines:
        address, times, *numbers = (int(word, 16) for word in line.split())
        name, begins = symbols.at(address)
        for kind, number in zip(PRINTED, numbers):
            counts[kind][name] += number
        if name == SWITCH and begins:
            counts["switches"][name] += times
    return counts


def boot(config, workload, options, amount):
    """The counts of a boot with an amount of work."""
    out = LOG / "profile.txt"
    machine = vm.Boot(LOG / "bench-profile.log",
                      ["/bin/sh", "-c", SCRIPT, "sh", GUEST, PROGRAM,
                       "--workload", workload, "--runs", "1", *options, *amount],
                      "--config", config, "--icount", "--profile", str(out),
                      "--append", APPEND, "--timeout", "1200",
                      copies=[GUEST, PROGRAM], KEVENT_ICOUNT="1")
    symbols = Symbols("\n".join(machine.lines()))
    if machine.status:
        cli.die(f"the workload failed, see {machine.log}")
    return read(out.read_text().splitlines(), symbols)


def each(config, workload, options):
    """{kind: Counter of functions} of an event: the difference of two boots."""
    if not PROGRAM.exists():
        cli.die(f"no {PROGRAM}; build it with make -C bench")
    vm.config_hash(config)		# there is such a kernel
    option, number = AMOUNT.get(workload, USUAL)
    once, twice = (boot(config, workload, options, (option, str(number * n)))
                   for n in (1, 2))
    return {kind: Counter({name: (twice[kind][name] - once[kind][name]) / number
                           for name in twice[kind] | once[kind]})
            for kind in KINDS}


def total(counts):
    """{kind: number}, all functions together."""
    return {kind: sum(counts[kind].values()) for kind in KINDS}
