# SPDX-License-Identifier: GPL-2.0
"""What tests/vm/run and tests/run say when something goes wrong: a guest, QEMU, KVM, a test.

Its words are needed when nothing else works, so each of them has a case here. Cases have a
folder of their own as BUILD, whose kernel is the one of the tree, and tests/vm/broken-qemu.
"""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import fcntl
import io
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from lib import report, vm
from lib.paths import BUILD, LINUX, LOG, TOP
from session import session, status_of

QEMU = "qemu-system-x86_64"
AT_ONCE = 4		# they sleep most of the time
HELLO = ["echo", "hello"]
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
    command: list = HELLO
    output: str = ""	# a pattern for it
    options: tuple = ()
    broken: str = ""	# what is wrong with QEMU
    symbols: bool = True


# The command runs without KVM
NO_KVM = r"vm: KVM fails, using TCG until \S+/vm/kvm is removed: "
KVM = (
    Case("kvm_in_bios", 0, NO_KVM + r"no end within 15 s; console: (\S+)",
         ("CPU 0 is not at a function of the kernel",
          "CPU 1 is not at a function of the kernel"), output=SAID, broken="kvm bios"),
    Case("kvm_is_silent", 0,
         NO_KVM + r"no end within 15 s; console: (\S+)",
         ("QEMU's thread", "QEMU does not answer: ", "the kernel is not asked: "),
         output=SAID, broken="kvm silent"),
    Case("kvm_says_nonsense", 0,
         NO_KVM + r"no end within 15 s; console: (\S+)",
         ("QEMU does not answer: JSONDecodeError", "the kernel is not asked: "),
         output=SAID, broken="kvm nonsense"),
    Case("kvm_leaves_a_process", 0,
         NO_KVM + r"no end within 15 s; console: (\S+)",
         ("from the console",), output=SAID, broken="kvm stays"),
    Case("kvm_panics", 0, NO_KVM + r"the guest ended without a verdict; console: (\S+)",
         ("Kernel panic",), output=SAID, broken="kvm panic"),
    Case("kvm_refuses", 0, NO_KVM + r"the guest ended without a verdict "
         r"failed to initialize: no such thing QEMU ended with status 1; console: (\S+)",
         (), output=SAID, broken="kvm refuses"),
    Case("kvm_is_killed", 0, NO_KVM + r"the guest ended without a verdict "
         r"QEMU ended with status -9; console: (\S+)", (), output=SAID, broken="kvm killed"),
)
# Not for KVM's fault, so no verdict is kept, or a good one
NOT_KVM = (
    Case("kvm_and_tcg_panic", 125, r"vm: the kernel reported a problem; console: (\S+)",
         ("Kernel panic",), broken=" panic"),
    Case("kvm_works_without_our_words", 0, r"vm: KVM works", output=SAID,
         options=("--append", "maxcpus=1", "--cpus", "1"), broken="kvm works"),
)
# There is no KVM
GUESTS = (
    Case("command_is_silent", 124, r"vm: no output for 20 s; console: (\S+)",
         ("QEMU's thread", "CPU 0 is at ", "CPU 1 is at ",
          "sysrq: Show backtrace of all", "sysrq: Show State", "task:sleep ",
          "sysrq: Show Blocked State"), ["sleep", "infinity"],
         "", ("--silence", "20", "--timeout", "120")),
    Case("command_is_missing", 127, "", (), ["no-such-program"],
         "no-such-program: No such file or directory\n"),
    Case("server_does_not_end", 137, "", (),
         ["sh", "-c", f". {SCRIPT}; seconds=1; {SERVER} & wait_for $!"],
         r"(?s).*not within 1 s: ended \d+\necho: ticks .* files\nthread \d+, system call "
         r".*\nkevent-ring-size:.*\n1 in state 0A\n.*",
         (f"--copy={SERVER}", f"--copy={SCRIPT}")),
    Case("machine_is_of_a_user", 1, "", (),
         ["sh", "-c", f"unset KEVENT_TEST_MACHINE; {TESTS} timer; KEVENT_BACKEND=epoll {TESTS} "
          "--list timer bridges | grep -e memory_pressure -e clock_that_is_set"],
         "Bail out! this may be somebody's machine.*\n", (f"--copy={TESTS}",)),
    Case("user_is_not_root", 0, "", (),
         ["sh", "-c", "unset KEVENT_TEST_MACHINE; export KEVENT_BACKEND=epoll; "
          f"{SETPRIV} --reuid 65534 --clear-groups {TESTS} bridges inode proc wake signal_queued"],
         r"(?s).*left out: inode.changes_are_merged \(root: .*# pass:\d+ fail:0 .*\n",
         (f"--copy={TESTS}", f"--copy={SETPRIV}")),
    Case("kernel_panics", 125, r"vm: the kernel reported a problem; console: (\S+)",
         ("Kernel panic - not syncing: sysrq triggered crash",),
         ["sh", "-c", "echo c >/proc/sysrq-trigger"]),
    Case("kernel_warns", 125, r"vm: the kernel reported a problem; console: (\S+)",
         ("WARNING: on purpose",), ["sh", "-c", "echo WARNING: on purpose >/dev/kmsg"]),
    Case("qemu_in_bios", 124, r"vm: no end within 5 s; console: (\S+)",
         ("CPU 0 is not at a function of the kernel",), HELLO, "", ("--timeout", "5"),
         "tcg bios"),
    Case("qemu_without_symbols", 124, r"vm: no end within 5 s; console: (\S+)",
         ("no symbols: FileNotFoundError", "QEMU says: ",
          "CPU 0 is not at a function of the kernel"), HELLO, "", ("--timeout", "5"),
         "tcg bios", False),
    Case("qemu_is_silent", 124, r"vm: no end within 5 s; console: (\S+)",
         ("QEMU does not answer: ",), HELLO, "", ("--timeout", "5"), "tcg silent"),
    Case("qemu_refuses", 125, r"vm: the guest ended without a verdict; console: (\S+)",
         (), HELLO, "", (), "tcg refuses"),
    Case("qemu_is_killed", 125, r"vm: the guest ended without a verdict; console: (\S+)",
         (), HELLO, "", (), "tcg killed"),
)


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
    ("1..1|# run a.one|ok 1 a.one", 1, 1, [("r", ["exit status 1", "words"])]),
    ("", 125, 0, [("r", ["no results", "words"])]),
    ("Bail out! no memory", 1, 0, [("r", ["no results", "Bail out! no memory", "words"])]),
    ("1..2|    1..2|    ok 1 one|    ok 2 two|ok 1 outer|    1..2|    ok 1 three", 125, 3,
     [("KUnit", ["results: 1 missing"]), ("KUnit", ["results: 1 missing"]),
      ("r", ["exit status 125", "words"])]),
    ("1..1|    1..1|    ok 1 one|not ok 1 outer", 1, 1, [("outer", [])]),
)


def wrong_reports():
    """What a run says that does not end as it should."""
    for text, status, passed, failures in REPORTS:
        each = report.Report("r")
        with contextlib.redirect_stdout(io.StringIO()):
            for line in text.split("|"):
                each.line(line)
            each.end(status, ["words"])
        if (each.passed, each.failures) != (passed, failures):
            yield f"{text!r}: {each.passed} passed, {each.failures}"


def make_build(folder, case):
    """A BUILD with our kernel in a folder, and the words of the environment for it."""
    if case.symbols:
        (folder / "linux").symlink_to(LINUX)
    else:
        image = Path("base/arch/x86/boot/bzImage")
        (folder / "linux" / image).parent.mkdir(parents=True)
        (folder / "linux" / image).symlink_to(LINUX / image)
    (folder / "bin").mkdir()
    (folder / ".kevent").touch()
    (folder / "bin" / QEMU).symlink_to(TOP / "tests/vm/broken-qemu")
    return {**os.environ, "BUILD": str(folder),
            "KVM_DEVICE": "/none" if case in GUESTS else "/dev/null",
            "BROKEN": f"{case.broken or 'none none'} {shutil.which(QEMU)}",
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
    with tempfile.TemporaryDirectory(prefix=f"wrong-{case.name}.", dir=LOG) as name:
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

    def __init__(self, folder, text, names):
        self.variables = {**os.environ, "BUILD": str(folder)}
        (folder / ".kevent").touch()
        os.mkfifo(folder / "pipe")
        self.pipe = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(self.pipe, True)
        (folder / "guest").mkdir()
        for name in names:
            (folder / "guest" / name).write_text(text)
            (folder / "guest" / name).chmod(0o755)

    def begun(self, number):
        """Whether so many begin."""
        return all(self.ready() and os.read(self.pipe, 6) for _ in range(number))

    def ready(self):
        return bool(select.select([self.pipe], [], [], 30)[0])

    def rest(self):
        """What is wrong when all should have ended."""
        if not self.ready():
            return ["a process is left"]
        return ["another began"] if os.read(self.pipe, 6) else []


def wrong_end(folder):
    """Ctrl-C ends all parts, and none begins."""
    fakes = Fakes(folder, ENDLESS, ("kevent-tests", "kevent-tests-asan", "kevent-tests-tsan"))
    with subprocess.Popen([TOP / "tests/run", "fallback", "asan", "tsan"], env=fakes.variables,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          start_new_session=True) as process:
        begun = fakes.begun(2)
        os.killpg(process.pid, signal.SIGINT)
        output = process.communicate()[0]
    if not begun or process.returncode != 130 or "Traceback" in output:
        yield f"exit status {process.returncode}, {output!r}"
    yield from fakes.rest()


def wrong_worker(folder):
    """Who kills the process of a part does not take the sum of all others."""
    fakes = Fakes(folder, "#!/bin/sh\nkill -9 $PPID\n", ("kevent-tests", "kevent-tests-asan"))
    done = subprocess.run([TOP / "tests/run", "fallback", "asan"], env=fakes.variables, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 1 or not done.stdout.endswith("\n0 passed, 2 failed\n"):
        yield f"exit status {done.returncode}, {done.stdout!r}"


def wrong_twice(folder):
    """A part waits for the same part of another run."""
    fakes = Fakes(folder, "#!/bin/sh\n", ("kevent-tests",))
    (folder / "log").mkdir()
    with open(folder / "log/test-fallback.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen([TOP / "tests/run", "fallback"], env=fakes.variables, text=True,
                              stdout=subprocess.PIPE) as process:
            plan, said = process.stdout.readline(), process.stdout.readline()
            fcntl.flock(lock, fcntl.LOCK_UN)
            rest = process.communicate()[0]
    if not plan.startswith("tests: 1 part, which have not run here before; logs in ") or \
            said != "fallback    waits for another run\n" or \
            not rest.startswith("fallback    started"):
        yield repr(plan + said + rest)


def wrong_time(folder):
    """What a command has started ends with it when its time is over."""
    fakes = Fakes(folder, ENDLESS, ("kevent-tests",))
    log = folder / "log"
    with open(log, "w") as out, session([folder / "guest/kevent-tests"], 1,
                                        env=fakes.variables) as process:
        begun = fakes.begun(1)
        status = status_of(process, 1, out)
    if not begun or status != -signal.SIGKILL or log.read_text() != "no end within 1 s\n":
        yield f"status {status}, {log.read_text()!r}"
    yield from fakes.rest()


RUNS = {"interrupt_ends_all": wrong_end, "time_ends_all": wrong_time,
        "killed_part_has_failed": wrong_worker, "same_part_waits": wrong_twice}


def note(results, name, found):
    if found:
        results.fail(f"hang.{name}", found)
    else:
        results.passed += 1


def run(results):
    cases = (*KVM, *NOT_KVM, *GUESTS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for case, found in zip(cases, pool.map(try_case, cases)):
            note(results, case.name, found)
    note(results, "reports_say_what_is_missing", list(wrong_reports()))
    for name, test in RUNS.items():
        with tempfile.TemporaryDirectory(prefix=f"wrong-{name}.", dir=LOG) as folder:
            note(results, name, list(test(Path(folder))))
    return results
