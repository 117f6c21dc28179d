# SPDX-License-Identifier: GPL-2.0
"""What a guest does that does not end: what the host, QEMU and the guest's kernel say.

The host's and QEMU's words come without a change to the guest, so a processor that
nobody wakes is seen as it is. The kernel is asked last, over the serial port: that needs
no process of the guest, but it is an interrupt, which may wake the processor.

Each of them may be in trouble, too. What one cannot say is a line instead, and the
others are asked.
"""

import bisect
import json
import os
import re
import time
from pathlib import Path

SERIAL = "serial"		# its name in QEMU
ANSWER_SECONDS = 10
TICKS = os.sysconf("SC_CLK_TCK")
STACK_WORDS = 512
BREAK_SECONDS = 0.2	# the kernel sees a break and what comes after it apart
AT = re.compile(r"\b(?:[RE]IP|PC)=([0-9a-f]+)")	# EIP: not in 64-bit mode, or not yet
STACK = re.compile(r"\b(?:[RE]SP|SP)=([0-9a-f]+)")
WORD = re.compile(r"0x([0-9a-f]{16})")
REQUESTS = "ltw"	# stacks of processors, all tasks, tasks that cannot be killed


class Monitor:
    """QEMU's machine protocol."""

    def __init__(self, sock):
        self.sock = sock
        self.rest = b""
        self.ready = False
        self.lost = False	# an answer that comes too late would be one to another question

    def line(self):
        while b"\n" not in self.rest:
            data = self.sock.recv(65536)
            if not data:
                raise OSError("QEMU has ended")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def ask(self, command, **arguments):
        if self.lost:
            raise OSError("it has not answered before")
        self.lost = True
        answer = self.answer(command, arguments)
        self.lost = False
        if "error" in answer:
            raise OSError(answer["error"]["desc"])
        return answer["return"]

    def answer(self, command, arguments):
        if not self.ready:
            self.ready = True
            self.sock.settimeout(ANSWER_SECONDS)
            self.answer("qmp_capabilities", {})
        self.sock.sendall(json.dumps(
            {"execute": command, "arguments": arguments}).encode())
        while True:
            answer = self.line()
            if "error" in answer or "return" in answer:
                return answer

    def words(self, line, cpu=0):
        """What the monitor for people says."""
        return self.ask("human-monitor-command", **{
            "command-line": line, "cpu-index": cpu}).replace("\r", "")


class Symbols:
    """Names of the kernel's functions; there are none for an image that is not ours."""

    def __init__(self, text):
        rows = sorted((int(row[0], 16), row[2])
                      for row in map(str.split, text.splitlines())
                      if row[1] in "tT")
        self.addresses = [row[0] for row in rows]
        self.names = [row[1] for row in rows]

    def name(self, address):
        n = bisect.bisect_right(self.addresses, address) - 1
        if n < 0 or n == len(self.names) - 1 or self.names[n] == "_etext":
            return None
        return f"{self.names[n]}+{address - self.addresses[n]:#x}"


def threads(pid):
    """Each thread of QEMU: its name, state, and seconds of processor time."""
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        words = (task / "stat").read_text()
        fields = words.rpartition(")")[2].split()
        yield task.name, (task / "comm").read_text().strip(), fields[0], \
            (int(fields[11]) + int(fields[12])) / TICKS


def host_lines(pid):
    before = {tid: used for tid, _, _, used in threads(pid)}
    time.sleep(1)
    for tid, name, state, used in threads(pid):
        yield f"QEMU's thread {tid} {name}: state {state}, " \
            f"{used:.2f} s, in the last second {used - before.get(tid, 0):.2f}"


def integer_registers(monitor, cpu):
    return "\n".join(line for line in monitor.words("info registers", cpu).splitlines()
                     if line and not line.startswith(("XMM", "YMM", "FPR", "Q")))


def cpu_lines(monitor, cpu, symbols):
    """Registers, the local APIC, and what on the stack looks like return addresses."""
    registers = integer_registers(monitor, cpu)
    yield registers
    yield monitor.words("info lapic", cpu).strip()
    at, stack = AT.search(registers), STACK.search(registers)
    name = symbols.name(int(at[1], 16)) if symbols and at else None
    if not name or not stack:
        yield f"CPU {cpu} is not at a function of the kernel"
        return
    yield f"CPU {cpu} is at {name}; on its stack:"
    for word in WORD.findall(monitor.words(f"x/{STACK_WORDS}gx 0x{stack[1]}", cpu)):
        name = symbols.name(int(word, 16))
        if name:
            yield f"  {name}"


def qemu_lines(monitor, cpus, symbols):
    yield f"QEMU says: {monitor.ask('query-status')}"
    for cpu in range(cpus):
        yield from cpu_lines(monitor, cpu, symbols)


def words_of(error):
    return f"{type(error).__name__}: {error}"


def attempt(what, source, *arguments):
    """The lines that a source yields, and one more if it fails, however it does."""
    try:
        yield from source(*arguments)
    except Exception as error:
        yield f"{what}: {words_of(error)}"


def lines(pid, monitor, cpus, find_symbols):
    """What the host and QEMU say."""
    yield from attempt("no threads of QEMU", host_lines, pid)
    try:
        symbols = find_symbols()
    except Exception as error:
        symbols = None
        yield f"no symbols: {words_of(error)}"
    yield from attempt("QEMU does not answer", qemu_lines, monitor, cpus, symbols)


def ask_kernel(monitor, serial, letter):
    """A break, and the letter of a request; returns what went wrong, or None."""
    try:
        monitor.ask("chardev-send-break", id=SERIAL)
        time.sleep(BREAK_SECONDS)
        os.write(serial, letter.encode())
        return None
    except Exception as error:
        return f"the kernel is not asked: {words_of(error)}"
