# SPDX-License-Identifier: GPL-2.0
"""The first commands of a user: what they install and build, and how they fail.

They run with a PATH that has what a bare Debian has. Its apt-get notes what it is asked for
and then fails, so that nothing is installed or built.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.paths import LOG, TOP

TOOLS = ("sh", "env", "sed", "grep", "xargs", "dirname", "basename", "mkdir", "tail", "cat",
         "make", "awk", "nproc", "sort", "uname", "tr", "echo", "find", "cp", "rm", "ls", "du",
         "date")
APT = """#!/bin/sh
echo "$*" >>"$APT_LOG"
[ "$2" != install ] || { echo "E: Unable to fetch some archives"; exit 100; }
"""
NO_SOURCE = """#!/bin/sh
echo "$2" >>"$APT_LOG"
[ "$2" != source ]
"""
CC = """#!/bin/sh
echo '#warning as a later compiler has it' >"$0.h"
exec gcc -include "$0.h" "$@"
"""
FAKES = {"apt-get": APT, "dpkg-query": "#!/bin/sh\nexit 1\n", "id": "#!/bin/sh\necho $USER_ID\n",
         "df": "#!/bin/sh\nprintf \"Filesystem\\nnone 9 8 $FREE_MB 9%% /\\n\"\n",
         "qemu-system-x86_64": "#!/bin/sh\nexit 1\n", "python3": None}
# What a goal must install, of what goals without a VM must not
SETS = {"docs": "mandoc python3-sphinx",
        "python": "python3-build python3-setuptools python3-wheel",
        "bench-native": "build-essential liburing-dev",
        "rust": "cargo", "model": "cargo-web",
        "run": "qemu-system-x86 kmod apache2-utils", "module": "kmod",
        "deb-libkevent": "build-essential debhelper",
        "kernel": "build-essential flex linux-source-6.12",
        "guest-asan": "build-essential libcunit1-dev",
        "test": "qemu-system-x86 linux-source-6.12 mandoc debhelper dkms lintian"}
KERNEL_ONLY = r"linux-source|flex|bison|clang|ccache"
VM_ONLY = re.compile(rf"{KERNEL_ONLY}|qemu|busybox")
# Goals with a VM, and what they do not need
NOT_IN = {**dict.fromkeys(("test", "kernel", "guest-asan")),
          **dict.fromkeys(("run", "module"), re.compile(KERNEL_ONLY))}


class Bare:
    """A folder with programs, and commands that find no others."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.asked = folder / "asked"
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, text in FAKES.items():
            if text:
                (self.bin / name).write_text(text)
                (self.bin / name).chmod(0o755)
            else:
                (self.bin / name).symlink_to(shutil.which(name))

    def run(self, *words, user=0, folder=TOP, **variables):
        self.asked.write_text("")
        return subprocess.run([str(word) for word in words], cwd=folder, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={"PATH": str(self.bin), "BUILD": str(self.folder / "build"),
                                   "APT_LOG": str(self.asked), "USER_ID": str(user),
                                   "FREE_MB": "1000000",
                                   **variables})

    def installs(self):
        """The packages that apt-get was asked for."""
        line = self.asked.read_text().rpartition("--no-install-recommends ")[2]
        return line.split()


def expect(done, status, *patterns):
    """What is wrong with the status and the output of a command."""
    problems = [f"no {pattern!r}" for pattern in patterns
                if not re.search(pattern, done.stdout, re.M)]
    if (done.returncode == 0) != (status == 0):
        problems.append(f"exit status {done.returncode}")
    if "Traceback" in done.stdout:
        problems.append("a traceback")
    return problems and [*problems, *done.stdout.splitlines()[-20:]]


def packages_of_goals(bare):
    """No goal installs more than it needs; that apt fails is said with its words."""
    for goal, names in SETS.items():
        yield from expect(bare.run("make", goal), 2,
                          r"^scripts/setup: apt-get install failed, see .*: "
                          r"E: Unable to fetch some archives$")
        found = bare.installs()
        missing = set(names.split()) - set(found)
        if missing:
            yield f"make {goal} installs {found}, without {missing}"
        unneeded = NOT_IN.get(goal, VM_ONLY)
        yield from (f"make {goal} installs {name}" for name in found
                    if unneeded and unneeded.match(name))


def setup_without_root(bare):
    yield from expect(bare.run("scripts/setup", "docs", user=1000), 1,
                      "^scripts/setup: neither root nor sudo; as root: apt-get install "
                      "python3-sphinx mandoc$")


def setup_of_nothing(bare):
    yield from expect(bare.run("scripts/setup", "nothing"), 1,
                      "^scripts/setup: unknown command nothing$")
    (bare.bin / "apt-get").unlink()
    for words, names in (([], "build-essential .*qemu.*"), (["docs"], "python3-sphinx mandoc"),
                         (["rust"], "cargo")):
        yield from expect(bare.run("scripts/setup", *words), 1,
                          "^scripts/setup: this is not Debian; install what of these is missing, "
                          f"and set NO_SETUP=1: {names}$")
        yield from expect(bare.run("scripts/setup", *words, NO_SETUP="1"), 0)
    (bare.bin / "cargo").symlink_to("echo")
    yield from expect(bare.run("scripts/setup", "rust"), 0)


def setup_by_sudo(bare):
    """It says for what a password is asked, and not why another run failed."""
    (bare.bin / "sudo").write_text("#!/bin/sh\necho sudo: no tty\nexit 1\n")
    (bare.bin / "sudo").chmod(0o755)
    (bare.folder / "build/log").mkdir(parents=True)
    (bare.folder / "build/.kevent").touch()
    (bare.folder / "build/log/setup.log").write_text("E: an error of before\n")
    yield from expect(bare.run("scripts/setup", "docs", user=1000), 1,
                      "^setup: sudo env .*apt-get -qy update$",
                      "^scripts/setup: apt-get update failed, see .*/setup.log: sudo: no tty$")


def too_little_disk(bare):
    """What is built already takes none."""
    for goal in ("kernel", "kernel", "demo"):
        yield from expect(bare.run("make", goal, FREE_MB="1"), 2,
                          f"^make {goal}: only 1 MB are free there; use BUILD=dir$")
    (bare.folder / "build/log").mkdir(exist_ok=True)
    (bare.folder / "build/log/long").write_bytes(bytes(3 << 20))
    yield from expect(bare.run("make", "demo", FREE_MB="1",
                               PATH=f"{bare.bin}:{os.environ['PATH']}"), 0)


def vm_without_programs(bare):
    """No KVM is tried without them, and no verdict on it is kept."""
    build = bare.folder / "build"
    build.mkdir()
    words = ("tests/vm/run", "--image", "/dev/null", "--", "true")
    compiler = os.environ["PATH"]
    yield from expect(bare.run("python3", *words, KVM_DEVICE="/dev/null"), 125,
                      "^vm: .*'gcc'")
    for name in ("gcc", "as", "ld", "cc1", "collect2"):
        if shutil.which(name, path=compiler):
            (bare.bin / name).symlink_to(shutil.which(name, path=compiler))
    yield from expect(bare.run("python3", *words, KVM_DEVICE="/dev/null"), 125,
                      "^vm: no busybox; install busybox-static$")
    (bare.bin / "qemu-system-x86_64").unlink()
    yield from expect(bare.run("python3", *words, KVM_DEVICE="/dev/null"), 125,
                      "^vm: no qemu-system-x86_64; install qemu-system-x86$")
    if (build / "vm/kvm").exists():
        yield "a verdict is kept"


def tree_with_odd_name(bare):
    """The demo works there; other goals say why they don't, and remove nothing."""
    kept = bare.folder / "my" / "file"
    kept.parent.mkdir()
    kept.touch()
    path = {"PATH": os.environ["PATH"], "BUILD": "build"}
    for tree in (bare.folder / "my tree", bare.folder / "a:b,c%"):
        tree.mkdir()
        for name in ("Makefile", "libkevent", "include", "scripts"):
            subprocess.run(["cp", "-r", TOP / name, tree], check=True)
        yield from expect(bare.run("make", "demo", folder=tree, **path), 0,
                          "^pipe a: 1\npipe b: 2\nbackend: ")
        for goal in ("clean", "libkevent", "run"):
            yield from expect(bare.run("make", goal, folder=tree, **path), 2,
                              "a folder has a space, a colon, a comma or a % in its name: ")
    if not kept.exists():
        yield "a folder of somebody else is gone"


def folder_of_others(bare):
    """What a BUILD had in it stays, and so do the sources."""
    others, tree = bare.folder / "others", bare.folder / "tree"
    kept = [others / "linux/kept", others / "nginx/src/kept", others / "python/kept"]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.touch()
    tree.mkdir()
    for name in ("Makefile", "include", "patches", "python", "scripts"):
        subprocess.run(["cp", "-r", TOP / name, tree], check=True)
    kept += [path for path in tree.rglob("*") if path.is_file()]
    for build, why in ((others, "is not empty; use another, or touch .*/others/.kevent if"),
                       (tree, "has the sources"), (bare.folder, "has the sources")):
        for words in ("make clean", "make -C python", "scripts/program nginx",
                      "scripts/kernel.py build base", "scripts/setup docs"):
            yield from expect(bare.run("env", *words.split(), folder=tree, BUILD=str(build),
                                       PATH=f"{bare.bin}:{os.environ['PATH']}"), 1,
                              f"BUILD={build}: this folder {why}")
    yield from (f"{path} is gone" for path in kept if not path.exists())


def folder_of_ours(bare):
    """One that was empty, and build/ as older versions left it, are built in and removed."""
    tree = bare.folder / "tree"
    for name in ("build/log", "empty"):
        (tree / name).mkdir(parents=True)
    for name in ("Makefile", "include", "libkevent", "scripts"):
        subprocess.run(["cp", "-r", TOP / name, tree], check=True)
    for build in ("build", "empty", "new"):
        for goal in ("demo", "demo", "clean"):
            yield from expect(bare.run("make", goal, folder=tree, PATH=os.environ["PATH"],
                                       BUILD=build), 0)
        if (tree / build).exists():
            yield f"{build} is left"


def install_where_told(bare):
    """Relative to the tree; for all to read; and nothing is removed where a name has a space."""
    tree, kept = bare.folder / "tree", bare.folder / "my"
    tree.mkdir()
    kept.touch()
    for name in ("Makefile", "libkevent", "include", "scripts", "tools"):
        subprocess.run(["cp", "-r", TOP / name, tree], check=True)
    path = {"PATH": os.environ["PATH"]}
    install = "umask 077; make tools install DESTDIR=to/here PREFIX=/usr"
    yield from expect(bare.run("sh", "-c", install, folder=tree, **path), 0)
    found = list((tree / "to/here").rglob("*"))
    yield from (f"{path} is only for its owner" for path in found
                if path.stat().st_mode & 0o444 != 0o444)
    if not (tree / "to/here/usr/bin/kevent-top").exists():
        yield "no kevent-top is installed"
    for words in (f"PREFIX={kept} apps", f"DESTDIR={kept} apps"):
        yield from expect(bare.run("make", "uninstall", words, folder=tree, **path), 2,
                          "a folder to install to has a space in its name")
        for name in ("libkevent", "tools"):
            yield from expect(bare.run("make", "-C", name, "uninstall", words, folder=tree,
                                       **path), 2, "has a space")
    yield from expect(bare.run("make", "uninstall", "DESTDIR=to/here", "PREFIX=/usr", folder=tree,
                               **path), 0)
    if any(path.is_file() for path in found) or not kept.exists():
        yield "what uninstall leaves or removes is wrong"


def warnings_stop_only_us(bare):
    """A compiler that knows more warnings builds what users build; our tests do not pass."""
    (bare.bin / "cc").write_text(CC)
    (bare.bin / "cc").chmod(0o755)
    path = {"PATH": f"{bare.bin}:{os.environ['PATH']}"}
    yield from expect(bare.run("make", "libkevent", "tools", **path), 0)
    yield from expect(bare.run("make", "tools", WERROR="-Werror", BUILD=str(bare.folder / "other"),
                               **path), 2, "-Werror=cpp")


def source_by_half(bare):
    """It is fetched again, once more with new lists."""
    tree, debian = bare.folder / "tree", bare.folder / "build/nginx/debian"
    tree.mkdir()
    for name in ("patches", "scripts"):
        subprocess.run(["cp", "-r", TOP / name, tree], check=True)
    debian.mkdir(parents=True)
    (bare.folder / "build/.kevent").touch()
    (debian / "a.tar").write_text("upstream")
    (tree / "patches/nginx/BASE").write_text(
        f"nginx 1\n{hashlib.sha256(b'upstream').hexdigest()}  a.tar\n")
    (bare.bin / "apt-cache").write_text("#!/bin/sh\nprintf 'Package: nginx\\nVersion: 1\\n'\n")
    (bare.bin / "apt-get").write_text(NO_SOURCE)
    (bare.bin / "apt-cache").chmod(0o755)
    yield from expect(bare.run("scripts/program", "nginx", folder=tree,
                               PATH=f"{bare.bin}:{os.environ['PATH']}"), 1,
                      "^scripts/setup: apt gets no source of nginx$")
    asked = re.findall("source|update", bare.asked.read_text())
    if asked != ["source", "update", "source"]:
        yield f"apt is asked for {asked}"


LISTS = """
import stock
from lib import paths
paths.make_folders()
apt = stock.Apt(stock.find("stock-6.12"))
(apt.state / "lists/partial").mkdir(parents=True)
print("packages:", *apt.packages())
"""


def another_release(bare):
    """What this machine prefers to install is not what its kernels are taken from."""
    (bare.folder / "apt.conf").write_text('APT::Default-Release "none";\n')
    yield from expect(bare.run("python3", "-c", LISTS, PYTHONPATH=str(TOP / "scripts"),
                               APT_CONFIG=str(bare.folder / "apt.conf"),
                               PATH=os.environ["PATH"]), 0, "^packages:$")


# What scripts say where something else is there than here, by their own functions
IMPORTED = (("a package without git", "import deb; print(deb.changelog())", r"^ -- .* \d{4} "),
            ("x86 elsewhere", "import kernel, types; kernel.os.uname = lambda: "
             "types.SimpleNamespace(machine='aarch64'); kernel.check_tools(kernel.X86)",
             "a kernel for x86_64 is built on x86_64 only$"),
            ("a missing tool", "import kernel, pathlib; kernel.show_errors(pathlib.Path('log'))",
             "^flex: not found$"))


def imported(bare):
    """Each says what is wrong, or does without it."""
    (bare.folder / "log").write_text("flex: not found\nmake: Error 127\n" + "  CC x\n" * 40)
    for what, words, line in IMPORTED:
        done = bare.run("python3", "-c", words, folder=bare.folder, PYTHONPATH=str(TOP / "scripts"))
        if not re.search(line, done.stdout, re.M) or "Traceback" in done.stdout:
            yield from (what, *done.stdout.splitlines()[-20:])


def header_by_half(bare):
    """What could not be written is not taken for made by the next make."""
    words = ("make", "-C", "libkevent", f"{bare.folder}/build/include/libkevent.h")
    path = {"PATH": f"{bare.bin}:{os.environ['PATH']}"}
    (bare.bin / "cp").unlink()
    (bare.bin / "cp").write_text("#!/bin/sh\necho >$2\nexit 1\n")
    (bare.bin / "cp").chmod(0o755)
    yield from expect(bare.run(*words, **path), 2)
    (bare.bin / "cp").unlink()
    yield from expect(bare.run(*words, **path), 0, "^cp ")


CONFIGURE = """
import kernel
from pathlib import Path
src, out = Path("src").resolve(), Path("out").resolve()
def configure(wanted):
    kernel.write_config("first", wanted, src, out, kernel.X86)
configure({"CONFIG_A": "y"})
before = (out / ".config").read_text()
try:
    configure({"CONFIG_B": "y", "CONFIG_NONE_SUCH": "y"})
except SystemExit:
    configure({"CONFIG_A": "y"})
    print("as before" if (out / ".config").read_text() == before else "not as before")
"""


def configuration_after_an_error(bare):
    """One that failed does not stay for that of before."""
    (bare.folder / "src/init").mkdir(parents=True)
    (bare.folder / "build/log").mkdir(parents=True)
    (bare.folder / "src/init/Kconfig").touch()
    (bare.folder / "src/Makefile").write_text(
        "allnoconfig:\n\tgrep -v NONE_SUCH $$KCONFIG_ALLCONFIG >$(O)/.config\n")
    yield from expect(bare.run("python3", "-c", CONFIGURE, folder=bare.folder,
                               PYTHONPATH=str(TOP / "scripts"), PATH=os.environ["PATH"]), 0,
                      "^as before$")


# Commands that lack what they need, or get what is not there, and a line that they say
WRONG = (
    ("LIBEV_SRC=/none scripts/program libev", r"libev: no libev source /none"),
    ("LIBEV_SRC=README.md scripts/program libev", r"libev: 'tar .*' failed, see .*/libev\.log"),
    ("scripts/program none", r"usage: scripts/program .*libev.*"),
    ("KERNEL_SRC=/none scripts/kernel.py build base",
     r"scripts/kernel\.py: no kernel source /none; install .*"),
    ("KERNEL_SRC=README.md scripts/kernel.py build base",
     r"scripts/kernel\.py: kernel-unpack failed, see .*"),
    ("KERNEL_SRC=libkevent scripts/kernel.py build base",
     r"scripts/kernel\.py: .*/libkevent is not a Linux 6\.12 source"),
    ("scripts/stock.py fetch none", r"scripts/stock\.py: no kernel none; there are: .*"),
    ("http_proxy=http://127.0.0.1:9 scripts/stock.py fetch stock-6.12",
     r"scripts/stock\.py: apt-get update failed for .*: .*; look at the network and .*"),
    ("scripts/stock.py module stock-7.3-cloud",
     r"scripts/stock\.py: no kernel stock-7.3-cloud; there are: .*"),
    ("scripts/mutant.py none", r"scripts/mutant\.py: none: .* run make kernel"),
    ("scripts/deb.py none", r"scripts/deb\.py: no package none; there are: .*"),
    ("tests/run none", r"tests/run: no part none; there are: .*"),
    ("tests/run readme", r"FAILED  readme readme\n"
     r" +no /.*/two_pipes; build it with make libkevent\n"
     r"read +the lines above\nagain +tests/run readme\n0 passed, 1 failed"),
    ("tests/run asan", r"FAILED  asan asan\n"
     r" +no /.*-asan; build it with make guest-asan\n"
     r"read +.*test-asan.log\nagain +tests/run asan\n0 passed, 1 failed"),
    ("tests/check none", r"tests/check: no check none; there are: .*"),
    ("tests/mutants/run none", r"mutant .* NOT BUILT: the base kernel .*"),
    ("tests/programs/run none", r"tests/programs/run: no none; there are: .*"),
    ("tests/long/worst", r"tests/long/worst: no base kernel; build it with make kernel"),
    ("tests/long/stall", r"tests/long/stall: no base kernel; build it with make kernel"),
    ("tests/long/fuzz/run --quick",
     r"tests/long/fuzz/run: no kevent-fuzz; build it with make guest"),
    ("tests/long/search/run --replay", r"tests/long/search/run: no kevent-search; .* make guest"),
    ("tests/long/coverage", r"FAILED 0 of 0 lines reached, .*"),
    ("bench/run", r"bench/run: no .*/kevent-bench; build it with make -C bench"),
    ("bench/native", r"bench/native: no .*/kevent-bench; build it with make -C bench"),
    ("bench/profile notify -- --mode et", r"bench/profile: no .*/kevent-bench; .*"),
    ("bench/losses /none", r"bench/losses: no /none; make bench makes it"),
    ("bench/http/bench", r"bench/http/bench: no .*/lighttpd; make bench-http .*"),
    ("make run SERVER=none", r"Makefile:\d+: \*\*\* no server none; there are: .*"),
    ("make run KERNEL=none", r"Makefile:\d+: \*\*\* no kernel none; there are: .*"),
    ("tests/vm/run --config stock-6.1 -- true",
     r"vm: no kernel stock-6.1; fetch it with make stock KERNEL=stock-6.1"),
    ("tests/vm/run --config none -- true", r"vm: no kernel .*/none/.*; build it with .*"))


def wrong_words(bare):
    """Each says what is wrong in a line, and fails."""
    for words, line in WRONG:
        done = bare.run("env", "PYTHONUNBUFFERED=1", *words.split(), PATH=os.environ["PATH"])
        yield from expect(done, 1, f"^{line}$")


TESTS = (packages_of_goals, setup_without_root, setup_of_nothing, setup_by_sudo,
         too_little_disk, vm_without_programs, tree_with_odd_name, folder_of_others, folder_of_ours,
         install_where_told, source_by_half, another_release, imported, header_by_half,
         configuration_after_an_error, warnings_stop_only_us, wrong_words)


def run(results):
    for test in TESTS:
        with tempfile.TemporaryDirectory(prefix=f"first-{test.__name__}.", dir=LOG) as folder:
            found = list(test(Bare(Path(folder))))
        if found:
            results.fail(f"first.{test.__name__}", found)
        else:
            results.passed += 1
    return results
