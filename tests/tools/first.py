# SPDX-License-Identifier: GPL-2.0
"""The first commands of a user: what they install and build, and how they fail.

They run with a PATH that has what a bare Debian has, or with this one, or with both. The bare
one's apt-get notes what it is asked for and then fails, so that nothing is installed or built.
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
         "date", "python3")
APT = """#!/bin/sh
echo "$*" >>"$APT_LOG"
[ "$2" != install ] || { echo "E: Unable to fetch some archives"; exit 100; }
"""
# sid has another version, and trixie a revision that the archive lacks
SHOWSRC = """#!/bin/sh
case $* in
*/sid/*)	echo "Version: 3-1" ;;
*)		printf 'Version: 1-1\\nVersion: 1-2\\n' ;;
esac
"""
TAR_ONLY = """#!/bin/sh
for word; do :; done
echo "$word" >>"$APT_LOG"
[ "$word" != nginx=1-2 ] || exit 100
[ "$word" != nginx=1-1 ] || echo "$TARBALL" >nginx_1.orig.tar.gz
"""
CC = """#!/bin/sh
echo '#warning as a later compiler has it' >"$0.h"
exec gcc -include "$0.h" "$@"
"""
FAKES = {"apt-get": APT, "dpkg-query": "#!/bin/sh\nexit 1\n", "id": "#!/bin/sh\necho $USER_ID\n",
         "df": "#!/bin/sh\nprintf \"Filesystem\\nnone 9 8 $FREE_MB 9%% /\\n\"\n",
         "qemu-system-x86_64": "#!/bin/sh\nexit 1\n"}
# What a goal must install, of what goals without a VM must not
SETS = {"docs": "mandoc python3-sphinx",
        "python": "python3-build python3-setuptools python3-wheel",
        "bench-native": "build-essential liburing-dev python3-matplotlib",
        "screenshots": "chromium python3-pyte qemu-system-x86",
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
          **dict.fromkeys(("run", "module", "screenshots"), re.compile(KERNEL_ONLY))}


REAL = os.environ["PATH"]
SOURCES = ("Makefile", "include", "libkevent", "scripts")


class Bare:
    """A folder with programs, and commands that find no others."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.asked = folder / "asked"
        self.both = f"{self.bin}:{REAL}"
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, text in FAKES.items():
            self.program(name, text)

    def program(self, name, text):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def kept(self, path, text=""):
        """A file of our own BUILD."""
        path = self.folder / "build" / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def copy(self, *names, to="tree"):
        """Sources of ours, in a folder of that name."""
        tree = self.folder / to
        tree.mkdir(parents=True, exist_ok=True)
        for name in names:
            subprocess.run(["cp", "-r", TOP / name, tree], check=True)
        return tree

    def expect(self, command, fails, *patterns, folder=TOP, path=None, **variables):
        """What is wrong with whether a command fails, and with its output."""
        self.asked.write_text("")
        done = subprocess.run(["sh", "-c", command], cwd=folder, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": path or str(self.bin), "USER_ID": "0",
                                   "BUILD": str(self.folder / "build"), "FREE_MB": "1000000",
                                   "APT_LOG": str(self.asked), **variables})
        problems = [f"no {pattern!r}" for pattern in patterns
                    if not re.search(pattern, done.stdout, re.M)]
        if fails is not None and (done.returncode != 0) != fails:
            problems.append(f"exit status {done.returncode}")
        if "Traceback" in done.stdout:
            problems.append("a traceback")
        return problems and [*problems, *done.stdout.splitlines()[-20:]]

    def expect_of_script(self, text, *patterns, **variables):
        """The same for lines of Python that know our scripts; they may fail."""
        return self.expect('python3 -c "$TEXT"', None, *patterns, folder=self.folder, path=REAL,
                           TEXT=text, PYTHONPATH=str(TOP / "scripts"), **variables)


def packages_of_goals(bare):
    """No goal installs more than it needs; that apt fails is said with its words."""
    for goal, names in SETS.items():
        yield from bare.expect(f"make {goal}", True, r"^scripts/setup: apt-get install failed, "
                               r"see .*: E: Unable to fetch some archives$")
        found = bare.asked.read_text().rpartition("--no-install-recommends ")[2].split()
        missing = set(names.split()) - set(found)
        if missing:
            yield f"make {goal} installs {found}, without {missing}"
        unneeded = NOT_IN.get(goal, VM_ONLY)
        yield from (f"make {goal} installs {name}" for name in found
                    if unneeded and unneeded.match(name))


def setup_says_what_it_wants(bare):
    """Without root, for a command that is none, by sudo, and elsewhere than on Debian."""
    yield from bare.expect("scripts/setup docs", True, "^scripts/setup: neither root nor sudo; "
                           "as root: apt-get install python3-sphinx mandoc$", USER_ID="1000")
    yield from bare.expect("scripts/setup nothing", True,
                           "^scripts/setup: unknown command nothing$")
    bare.program("sudo", "#!/bin/sh\necho sudo: no tty\nexit 1\n")
    bare.kept(".kevent")
    bare.kept("log/setup.log", "E: an error of before\n")
    yield from bare.expect("scripts/setup docs", True, "^setup: sudo env .*apt-get -qy update$",
                           "^scripts/setup: apt-get update failed, see .*/setup.log: sudo: no tty$",
                           USER_ID="1000")
    (bare.bin / "apt-get").unlink()
    for words, names in (("", "build-essential .*qemu.*"), ("rust", "cargo")):
        yield from bare.expect(f"scripts/setup {words}", True,
                               "^scripts/setup: this is not Debian; install what of these is "
                               f"missing, and set NO_SETUP=1: {names}$")
        yield from bare.expect(f"NO_SETUP=1 scripts/setup {words}", False)
    bare.program("cargo", "#!/bin/sh\n")
    yield from bare.expect("scripts/setup rust", False)


def too_little_disk(bare):
    """What is built already takes none."""
    for goal in ("kernel", "demo"):
        yield from bare.expect(f"FREE_MB=1 make {goal}", True,
                               f"^make {goal}: only 1 MB are free there; use BUILD=dir$")
    bare.kept("log/long", " " * (3 << 20))
    yield from bare.expect("FREE_MB=1 make demo", False, path=bare.both)


def vm_without_programs(bare):
    """No KVM is tried without them, and no verdict on it is kept."""
    (bare.folder / "build").mkdir()
    vm = "KVM_DEVICE=/dev/null python3 tests/vm/run --image /dev/null -- true"
    yield from bare.expect(vm, True, "^vm: .*'gcc'")
    for name in ("gcc", "as", "ld", "cc1", "collect2"):
        if shutil.which(name):
            (bare.bin / name).symlink_to(shutil.which(name))
    yield from bare.expect(vm, True, "^vm: no busybox; install busybox-static$")
    (bare.bin / "qemu-system-x86_64").unlink()
    yield from bare.expect(vm, True, "^vm: no qemu-system-x86_64; install qemu-system-x86$")
    if (bare.folder / "build/vm/kvm").exists():
        yield "a verdict is kept"


def tree_with_odd_name(bare):
    """The demo works there; other goals say why they don't, and remove nothing."""
    kept = bare.folder / "my" / "file"
    kept.parent.mkdir()
    kept.touch()
    for name in ("my tree", "a:b,c%"):
        where = {"folder": bare.copy(*SOURCES, to=name), "path": REAL, "BUILD": "build"}
        yield from bare.expect("make demo", False, "^pipe a: 1\npipe b: 2\nbackend: ", **where)
        for goal in ("clean", "libkevent"):
            yield from bare.expect(f"make {goal}", True,
                                   "a folder has a space, a colon, a comma or a % in its name: ",
                                   **where)
    if not kept.exists():
        yield "a folder of somebody else is gone"


def folder_of_others(bare):
    """What a BUILD had in it stays, and so do the sources."""
    others = bare.folder / "others"
    kept = [others / "linux/kept", others / "nginx/src/kept", others / "python/kept"]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.touch()
    tree = bare.copy("Makefile", "include", "patches", "python", "scripts")
    kept += [path for path in tree.rglob("*") if path.is_file()]
    for build, why in ((others, "is not empty; use another, or touch .*/others/.kevent if"),
                       (tree, "has the sources"), (bare.folder, "has the sources")):
        for words in ("make clean", "make -C python", "scripts/program nginx",
                      "scripts/kernel.py build base", "scripts/setup docs"):
            yield from bare.expect(words, True, f"BUILD={build}: this folder {why}",
                                   folder=tree, BUILD=str(build), path=bare.both)
    yield from (f"{path} is gone" for path in kept if not path.exists())


def folder_of_ours(bare):
    """One that was empty, and build/ as older versions left it, are built in and removed."""
    tree = bare.copy(*SOURCES)
    (tree / "build/log").mkdir(parents=True)
    (tree / "empty").mkdir()
    for build in ("build", "empty", "new"):
        for goal in ("demo", "clean"):
            yield from bare.expect(f"make {goal}", False, folder=tree, path=REAL, BUILD=build)
        if (tree / build).exists():
            yield f"{build} is left"


def install_to_destdir_and_prefix(bare):
    """Relative to the tree; for all to read; and nothing is removed where a name has a space."""
    tree, kept = bare.copy(*SOURCES, "tools"), bare.folder / "my"
    kept.touch()
    where = {"folder": tree, "path": REAL}
    yield from bare.expect("umask 077; make tools install DESTDIR=to/here PREFIX=/usr", False,
                           **where)
    found = list((tree / "to/here").rglob("*"))
    yield from (f"{path} is only for its owner" for path in found
                if path.stat().st_mode & 0o444 != 0o444)
    if not (tree / "to/here/usr/bin/kevent-top").exists():
        yield "no kevent-top is installed"
    for name in ("PREFIX", "DESTDIR"):
        for folder in (".", "libkevent", "tools"):
            yield from bare.expect(f"make -C {folder} uninstall '{name}={kept} apps'", True,
                                   "has a space", **where)
    yield from bare.expect("make uninstall DESTDIR=to/here PREFIX=/usr", False, **where)
    if any(path.is_file() for path in found) or not kept.exists():
        yield "what uninstall leaves or removes is wrong"


def warnings_stop_only_us(bare):
    """A compiler that knows more warnings builds what users build; our tests do not pass."""
    bare.program("cc", CC)
    yield from bare.expect("make libkevent tools", False, path=bare.both)
    yield from bare.expect("make tools WERROR=-Werror", True, "-Werror=cpp", path=bare.both,
                           BUILD=str(bare.folder / "other"))


def source_of_debian(bare):
    """The first version that a suite has is fetched, and must be the one of BASE."""
    tree = bare.copy("patches", "scripts")
    bare.kept(".kevent")
    bare.kept("nginx/debian/nginx_1.orig.tar.gz", "half")
    digest = hashlib.sha256(b"whole\n").hexdigest()
    (tree / "patches/nginx/BASE").write_text(
        f"nginx 2 sid\nnginx 1 trixie\n{'0' * 64}  nginx_2.orig.tar.gz\n"
        f"{digest}  nginx_1.orig.tar.gz\n")
    bare.program("apt-cache", SHOWSRC)
    bare.program("apt-get", TAR_ONLY)
    wrong, taken = "Debian's nginx is not the one of .*/nginx/BASE$", "'tar .*' failed, see .*"
    both = ["nginx=1-2", "nginx=1-1"]
    for text, line, wanted in (("other", wrong, both), ("whole", taken, both),
                               ("whole", taken, [])):
        yield from bare.expect("scripts/program nginx", True, f"^nginx: {line}", folder=tree,
                               path=bare.both, TARBALL=text)
        asked = re.findall("nginx=.*", bare.asked.read_text())
        if asked != wanted:
            yield f"apt is asked for {asked}"
    (tree / "patches/nginx/BASE").write_text("nginx 2 sid\n")
    yield from bare.expect("scripts/program nginx", True,
                           "^scripts/source.py: apt gets no source of nginx 2 from sid; log: ",
                           folder=tree, path=bare.both)


def header_by_half(bare):
    """What could not be written is not taken for made by the next make."""
    words = f"make -C libkevent {bare.folder}/build/include/libkevent.h"
    bare.program("cp", "#!/bin/sh\necho >$2\nexit 1\n")
    yield from bare.expect(words, True, path=bare.both)
    (bare.bin / "cp").unlink()
    yield from bare.expect(words, False, "^cp ", path=bare.both)


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
    yield from bare.expect_of_script(CONFIGURE, "^as before$")


# What functions of our scripts say where something else is there than here
SCRIPTS = (
    ("import deb; print(deb.changelog())", r"^ -- .* \d{4} "),
    ("import kernel, types; kernel.os.uname = lambda: "
     "types.SimpleNamespace(machine='aarch64'); kernel.check_tools(kernel.X86)",
     "a kernel for x86_64 is built on x86_64 only$"),
    ("import kernel, pathlib; kernel.show_errors(pathlib.Path('log'))", "^flex: not found$"),
    ("import stock\nfrom lib import paths\npaths.make_folders()\n"
     "apt = stock.apt_for(stock.find('stock-6.12'))\n"
     "(apt.state / 'lists/partial').mkdir(parents=True)\nprint('packages:', *apt.packages())",
     "^packages:$"))


def scripts_elsewhere(bare):
    """Without git, on another machine, without a tool, where apt prefers another release."""
    (bare.folder / "log").write_text("flex: not found\nmake: Error 127\n" + "  CC x\n" * 40)
    (bare.folder / "apt.conf").write_text('APT::Default-Release "none";\n')
    for words, line in SCRIPTS:
        yield from bare.expect_of_script(words, line, APT_CONFIG=str(bare.folder / "apt.conf"))


# Commands that lack what they need, or get what is not there, and a line that they say: one
# for each way to find that out
WRONG = (
    ("LIBEV_SRC=/none scripts/program libev", r"libev: no libev source /none"),
    ("LIBEV_SRC=README.md scripts/program libev", r"libev: 'tar .*' failed, see .*/libev\.log"),
    ("KERNEL_SRC=/none scripts/kernel.py build base",
     r"scripts/kernel\.py: no kernel source /none; install .*"),
    ("KERNEL_SRC=README.md scripts/kernel.py build base",
     r"scripts/kernel\.py: kernel-unpack failed, see .*"),
    ("KERNEL_SRC=libkevent scripts/kernel.py build base",
     r"scripts/kernel\.py: .*/libkevent is not a Linux 6\.12 source"),
    ("http_proxy=http://127.0.0.1:9 scripts/stock.py fetch stock-6.12",
     r"scripts/stock\.py: apt-get update failed for .*: .*; look at the network and .*"),
    ("scripts/mutant.py none", r"scripts/mutant\.py: none: .* run make kernel"),
    ("tests/run none", r"tests/run: no part none; there are: .*"),
    ("tests/run readme", r"FAILED  readme readme\n"
     r" +no /.*/two_pipes; build it with make libkevent\n"
     r"read +the lines above\nagain +tests/run readme\n0 passed, 1 failed"),
    ("tests/mutants/run none", r"mutant .* NOT BUILT: the base kernel .*"),
    ("tests/long/coverage", r"FAILED 0 of 0 lines reached, .*"),
    ("bench/run", r"bench/run: no .*/kevent-bench; build it with make -C bench"),
    ("make run SERVER=none", r"Makefile:\d+: \*\*\* no server none; there are: .*"),
    ("tests/vm/run --config stock-6.1 -- true",
     r"vm: no kernel stock-6.1; fetch it with make stock KERNEL=stock-6.1"),
    ("tests/vm/run --config none -- true", r"vm: no kernel .*/none/.*; build it with .*"))


def wrong_words(bare):
    """Each says what is wrong in a line, and fails."""
    for words, line in WRONG:
        yield from bare.expect(words, True, f"^{line}$", path=REAL, PYTHONUNBUFFERED="1")


TESTS = (packages_of_goals, setup_says_what_it_wants, too_little_disk, vm_without_programs,
         tree_with_odd_name, folder_of_others, folder_of_ours, install_to_destdir_and_prefix,
         source_of_debian, header_by_half, configuration_after_an_error, scripts_elsewhere,
         warnings_stop_only_us, wrong_words)


def run(results):
    for test in TESTS:
        with tempfile.TemporaryDirectory(prefix=f"first-{test.__name__}.", dir=LOG) as folder:
            results.note(f"first.{test.__name__}", list(test(Bare(Path(folder)))))
    return results
