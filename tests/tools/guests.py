# SPDX-License-Identifier: GPL-2.0
"""What tests/vm/run and tests/run say when something goes wrong: a guest, QEMU, KVM, a part.

Its words are needed when nothing else works, so each of them has a case here. Cases have a
folder of their own as BUILD, whose kernel is the one of the tree, and broken-qemu as QEMU.
"""

from concurrent.futures import ThreadPoolExecutor
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from lib import vm
from lib.paths import BUILD, LINUX, LOG, TOP
from session import session, status_of

QEMU = "qemu-system-x86_64"
AT_ONCE = 4		# they sleep most of the time
SAID = "hello\n"
SERVER = BUILD / "libkevent/examples/echo"
SCRIPT = TOP / "scripts/server.sh"
SETPRIV = "/usr/bin/setpriv"
TESTS = BUILD / "guest/kevent-tests"
KEPT = re.compile(r"[-0-9a-f]{36} fails\n")


class Case(NamedTuple):
    name: str
    status: int
    said: str		# a pattern for the last line of stderr, "" if there is none
    log: tuple = ()	# words that the log of the console has
    command: tuple = ("echo", "hello")
    output: str = ""	# a pattern for it
    options: tuple = ()
    broken: str = "none none"	# for which accelerator QEMU is broken, and how


def kvm(name, why, how, *log):
    """The command runs without KVM, and that is kept."""
    return Case(name, 0, r"vm: KVM fails, using TCG until \S+/vm/kvm is removed: "
                rf"{why}; console: (\S+)", log, output=SAID, broken=f"kvm {how}")


def shell(name, status, said, text, **more):
    return Case(name, status, said, command=("sh", "-c", text), **more)


LATE, DEAD = "no end within 15 s", "the guest ended without a verdict"
FIVE = {"options": ("--timeout", "5")}
KVM = (
    kvm("kvm_in_bios", LATE, "bios", "CPU 1 is not at a function of the kernel"),
    kvm("kvm_says_nonsense", LATE, "nonsense", "QEMU's thread",
        "QEMU does not answer: JSONDecodeError", "the kernel is not asked: "),
    kvm("kvm_leaves_a_process", LATE, "stays", "from the console"),
    kvm("kvm_panics", DEAD, "panic", "Kernel panic"),
    kvm("kvm_refuses", f"{DEAD} failed to initialize: no such thing QEMU ended with status 1",
        "refuses"),
)
# Not for KVM's fault, so no verdict is kept, or a good one
NOT_KVM = (
    Case("kvm_and_tcg_panic", 125, r"vm: the kernel reported a problem; console: (\S+)",
         ("Kernel panic",), broken=" panic"),
    Case("kvm_works_without_our_words", 0, r"vm: KVM works", output=SAID, broken="kvm works",
         options=("--append", "maxcpus=1", "--cpus", "1")),
)
# There is no KVM
GUESTS = (
    Case("command_is_silent", 124, r"vm: no output for 20 s; console: (\S+)",
         ("QEMU's thread", "CPU 0 is at ", "CPU 1 is at ", "sysrq: Show backtrace of all",
          "sysrq: Show State", "task:sleep ", "sysrq: Show Blocked State"),
         ("sleep", "infinity"), "", ("--silence", "20", "--timeout", "120")),
    Case("command_is_missing", 127, "", (), ("no-such-program",),
         "no-such-program: No such file or directory\n"),
    shell("server_does_not_end", 137, "", f". {SCRIPT}; seconds=1; {SERVER} & wait_for $!",
          output=r"(?s).*not within 1 s: ended \d+\necho: ticks .* files\nthread \d+, system call "
          r".*\nkevent-ring-size:.*\n1 in state 0A\n.*",
          options=(f"--copy={SERVER}", f"--copy={SCRIPT}")),
    shell("machine_is_of_a_user", 1, "", f"unset KEVENT_TEST_MACHINE; {TESTS} timer; "
          f"KEVENT_BACKEND=epoll {TESTS} --list timer bridges | "
          "grep -e memory_pressure -e clock_that_is_set",
          output="Bail out! this may be somebody's machine.*\n", options=(f"--copy={TESTS}",)),
    shell("user_is_not_root", 0, "", "unset KEVENT_TEST_MACHINE; export KEVENT_BACKEND=epoll; "
          f"{SETPRIV} --reuid 65534 --clear-groups {TESTS} bridges inode proc wake signal_queued",
          output=r"(?s).*left out: inode.changes_are_merged \(root: .*# pass:\d+ fail:0 .*\n",
          options=(f"--copy={TESTS}", f"--copy={SETPRIV}")),
    shell("kernel_panics", 125, r"vm: the kernel reported a problem; console: (\S+)",
          "echo c >/proc/sysrq-trigger",
          log=("Kernel panic - not syncing: sysrq triggered crash",)),
    shell("kernel_warns", 125, r"vm: the kernel reported a problem; console: (\S+)",
          "echo WARNING: on purpose >/dev/kmsg", log=("WARNING: on purpose",)),
    Case("qemu_in_bios_without_symbols", 124, r"vm: no end within 5 s; console: (\S+)",
         ("no symbols: FileNotFoundError", "QEMU says: ",
          "CPU 0 is not at a function of the kernel"), broken="tcg bios", **FIVE),
    Case("qemu_is_silent", 124, r"vm: no end within 5 s; console: (\S+)",
         ("QEMU does not answer: ",), broken="tcg silent", **FIVE),
    Case("qemu_refuses", 125, rf"vm: {DEAD}; console: (\S+)", broken="tcg refuses"),
)


def make_build(folder, case):
    """A BUILD with our kernel in a folder, and the words of the environment for it."""
    if "without_symbols" in case.name:
        image = Path("linux/base/arch/x86/boot/bzImage")
        (folder / image).parent.mkdir(parents=True)
        (folder / image).symlink_to(LINUX.parent / image)
    else:
        (folder / "linux").symlink_to(LINUX)
    (folder / "bin").mkdir()
    (folder / ".kevent").touch()
    (folder / "bin" / QEMU).symlink_to(TOP / "tests/tools/broken-qemu")
    return {**os.environ, "BUILD": str(folder), "BROKEN": f"{case.broken} {shutil.which(QEMU)}",
            "KVM_DEVICE": "/none" if case in GUESTS else "/dev/null",
            "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def run_vm(case, variables):
    return subprocess.run(vm.command(case.command, *case.options), check=False,
                          env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace")


def problems_of_kvm(folder, case, variables, done):
    """The verdict is kept, and nobody tries again."""
    if done.stderr.count("\n") != 2 or not done.stderr.startswith("vm: trying KVM\n"):
        yield "more or less than two lines"
    cache = folder / "vm/kvm"
    if not cache.exists() or not KEPT.fullmatch(cache.read_text()):
        yield "no verdict is kept"
    again = run_vm(case, variables)
    if (again.returncode, again.stdout, again.stderr) != (0, SAID, ""):
        yield f"then {again.returncode} {again.stdout!r} {again.stderr!r}"


def problems(folder, case, variables, done):
    match = re.search(case.said + r"\n\Z" if case.said else r"\A\Z", done.stderr)
    if done.returncode != case.status:
        yield f"exit status {done.returncode}, not {case.status}"
    if not re.fullmatch(case.output, done.stdout):
        yield f"output {done.stdout!r}"
    if not match:
        yield f"the last line is not {case.said!r}"
    log = Path(match[1]).read_text(errors="replace") if match and match.groups() else ""
    yield from (f"no {text!r} in the log" for text in case.log if text not in log)
    if "Traceback" in done.stderr + log:
        yield "a traceback"
    if case in KVM:
        yield from problems_of_kvm(folder, case, variables, done)
    elif (folder / "vm/kvm").exists() and "fails" in (folder / "vm/kvm").read_text():
        yield "a verdict is kept"


def try_case(case):
    """What is wrong, and then what was said."""
    with tempfile.TemporaryDirectory(prefix=f"guests-{case.name}.", dir=LOG) as name:
        folder = Path(name)
        variables = make_build(folder, case)
        done = run_vm(case, variables)
        found = list(problems(folder, case, variables, done))
        logs = [path.read_text(errors="replace").splitlines()[-20:]
                for path in folder.glob("log/vm-*-[0-9]*.log")]
    return found and [*found, *done.stderr.splitlines()[-20:], *sum(logs, [])]


# A program in the place of kevent-tests that ends when it is killed
ENDLESS = """#!/bin/sh
exec 3>"$BUILD/pipe"
echo began >&3
sleep 60
"""


class Fakes:
    """A BUILD with such programs, whose output comes by a pipe that has an end when none of them
    is left."""

    def __init__(self, folder, text, *names):
        self.variables = {**os.environ, "BUILD": str(folder)}
        (folder / ".kevent").touch()
        os.mkfifo(folder / "pipe")
        self.pipe = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(self.pipe, True)
        (folder / "guest").mkdir()
        for name in names:
            (folder / "guest" / name).write_text(text)
            (folder / "guest" / name).chmod(0o755)

    def run(self, *parts):
        return subprocess.Popen([TOP / "tests/run", *parts], env=self.variables, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True)

    def ready(self):
        return bool(select.select([self.pipe], [], [], 30)[0])

    def begun(self, number):
        """Whether so many begin."""
        return all(self.ready() and os.read(self.pipe, 6) for _ in range(number))

    def rest(self):
        """What is wrong when all should have ended."""
        if not self.ready():
            return ["a process is left"]
        return ["another began"] if os.read(self.pipe, 6) else []


def interrupt_ends_all(folder):
    """Ctrl-C ends all parts, and none begins."""
    fakes = Fakes(folder, ENDLESS, "kevent-tests", "kevent-tests-asan", "kevent-tests-tsan")
    with fakes.run("fallback", "asan", "tsan") as process:
        begun = fakes.begun(2)
        os.killpg(process.pid, signal.SIGINT)
        output = process.communicate()[0]
    if not begun or process.returncode != 130 or "Traceback" in output:
        yield f"exit status {process.returncode}, {output!r}"
    yield from fakes.rest()


def killed_part_has_failed(folder):
    """A process of a part that is killed does not take the sum of all others with it."""
    fakes = Fakes(folder, "#!/bin/sh\nkill -9 $PPID\n", "kevent-tests", "kevent-tests-asan")
    with fakes.run("fallback", "asan") as process:
        output = process.communicate()[0]
    if process.returncode != 1 or not output.endswith("\n0 passed, 2 failed\n"):
        yield f"exit status {process.returncode}, {output!r}"


def same_part_waits(folder):
    """For the same part of another run."""
    fakes = Fakes(folder, "#!/bin/sh\n", "kevent-tests")
    (folder / "log").mkdir()
    with open(folder / "log/test-fallback.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with fakes.run("fallback") as process:
            plan, said = process.stdout.readline(), process.stdout.readline()
            fcntl.flock(lock, fcntl.LOCK_UN)
            rest = process.communicate()[0]
    if not plan.startswith("tests: 1 part, which have not run here before; logs in ") or \
            said != "fallback    waits for another run\n" or \
            not rest.startswith("fallback    started"):
        yield repr(plan + said + rest)


def time_ends_all(folder):
    """What a command has started ends with it when its time is over."""
    fakes = Fakes(folder, ENDLESS, "kevent-tests")
    log = folder / "log"
    with open(log, "w") as out, session([folder / "guest/kevent-tests"], 1,
                                        env=fakes.variables) as process:
        begun = fakes.begun(1)
        status = status_of(process, 1, out)
    if not begun or status != -signal.SIGKILL or log.read_text() != "no end within 1 s\n":
        yield f"status {status}, {log.read_text()!r}"
    yield from fakes.rest()


def run(results):
    cases = (*KVM, *NOT_KVM, *GUESTS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for case, found in zip(cases, pool.map(try_case, cases)):
            results.note(f"hang.{case.name}", found)
    for test in (interrupt_ends_all, time_ends_all, killed_part_has_failed, same_part_waits):
        with tempfile.TemporaryDirectory(prefix=f"guests-{test.__name__}.", dir=LOG) as folder:
            results.note(f"hang.{test.__name__}", list(test(Path(folder))))
    return results
