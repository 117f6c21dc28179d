#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Unpack, patch, configure and build the kernels.

usage: scripts/kernel.py build CONFIG     build base, debug, rt, gcov, kcsan,
                                           bench, disk, arm64, or a kernel
                                           without kevent: plain-debug or
                                           plain-kcsan
       scripts/kernel.py config CONFIG    only write and check its .config
       scripts/kernel.py prepare          only unpack and patch the source

The version is that of patches/linux/BASE. Everything goes to $BUILD/linux.
KERNEL_SRC names another tarball or tree of that series, JOBS the number of
compiler processes.
"""

import contextlib
import fcntl
import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from lib import cli
from lib.cli import die
from lib.paths import LINUX, LOG, TOP, make_folders

SRC = LINUX / "src"
# Kernels without the patches and the overlay, and their source
PLAIN = "plain-"
PLAIN_SRC = LINUX / f"{PLAIN}src"
JOBS = os.environ.get("JOBS") or str(os.cpu_count())
PATCHES = TOP / "patches/linux"


class Base(NamedTuple):
    """The kernel that the patches were made for: patches/linux/BASE."""
    package: str		# Debian package that has the tarball
    version: str		# three numbers
    sha256: str			# of the tarball

    @property
    def series(self):
        return self.version.rpartition(".")[0]


def read_base():
    words = (PATCHES / "BASE").read_text().split()
    return Base(words[0], words[1].partition("-")[0],
                words[words.index("sha256") + 1])


BASE = read_base()
SOURCE = Path(os.environ.get("KERNEL_SRC")
              or f"/usr/src/{BASE.package}.tar.xz").resolve()

OVERLAY = ("kernel/kevent", "include/linux/kevent.h",
           "include/trace/events/kevent.h", "include/uapi/linux/ukevent.h")
FRAGMENTS = {"base": ["base", "x86", "mutant"],
             "debug": ["base", "x86", "debug", "mutant"],
             "rt": ["base", "x86", "rt"],
             "gcov": ["base", "x86", "gcov"],
             "kcsan": ["base", "x86", "kcsan"],
             "bench": ["base", "x86", "bench"],
             "disk": ["base", "x86", "bench", "disk"],
             f"{PLAIN}debug": ["base", "x86", "debug", "plain"],
             f"{PLAIN}kcsan": ["base", "x86", "kcsan", "plain"],
             "deb": ["base", "x86", "deb"], "arm64": ["base", "arm64"]}
# Compiler runs of a full build, for the percentage
OBJECTS = {"base": 1650, "debug": 1750, "rt": 1650, "bench": 2200,
           "disk": 2400, f"{PLAIN}debug": 1800,
           "arm64": 1330}


class Arch(NamedTuple):
    """The options for make that depend on the processor."""
    name: str
    cross: str			# in front of the names of the tools
    image: str			# file to boot


X86 = Arch("x86_64", "", "arch/x86/boot/bzImage")
ARCHS = {"arm64": Arch("arm64", "aarch64-linux-gnu-",
                       "arch/arm64/boot/Image")}
OUR_SYMBOL = re.compile(r"CONFIG_KEVENT\b|CONFIG_KEVENT_")


def digest(*parts):
    """One hash over strings and the contents of files and folders."""
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            sha.update(part.encode())
            continue
        files = sorted(part.rglob("*")) if part.is_dir() else [part]
        for path in files:
            if path.is_file():
                sha.update(str(path).encode() + path.read_bytes())
    return sha.hexdigest()


def read_stamp(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def show_errors(log):
    """Print the lines of a failed step's log that have its errors, and a few before."""
    lines = log.read_text(errors="replace").splitlines()
    bad = [n for n, line in enumerate(lines)
           if re.search(r"error:|Error |FAILED|undefined reference", line)]
    start = max(0, min([n - 5 for n in bad[:1]] + [len(lines) - 15]))
    print("\n".join(lines[start:][:15]), file=sys.stderr)


def step(name, command, what="", **kwargs):
    """Run a command with its output in the log of that name."""
    log = LOG / f"{name}.log"
    with open(log, "a") as out:
        print("+", *command, file=out, flush=True)
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, **kwargs).returncode
    if status:
        show_errors(log)
        die(f"{what or name} failed, see {log}")


def remove(path):
    """Like rm -rf."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# --- source ---------------------------------------------------------------

def series():
    path = PATCHES / "series"
    lines = path.read_text().split("\n") if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def patched_files(patches):
    """Names of the kernel files that patches, given as texts, change."""
    return {name for text in patches
            for name in re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", text, re.M)}


def source_id():
    """A text that identifies the kernel source without reading all of it."""
    if not SOURCE.exists():
        die(f"no kernel source {SOURCE}; install {BASE.package} "
            "or set KERNEL_SRC")
    if SOURCE.is_file():
        stat = SOURCE.stat()
        return f"{SOURCE} {stat.st_size} {stat.st_mtime_ns}"
    sha = hashlib.sha256()
    for folder, dirs, files in os.walk(SOURCE):
        dirs[:] = sorted(d for d in dirs if d != ".git")
        for name in sorted(files):
            stat = os.lstat(os.path.join(folder, name))
            sha.update(f"{folder} {name} {stat.st_size} {stat.st_mtime_ns}\n"
                       .encode())
    return f"{SOURCE} {sha.hexdigest()}"


def unpack(tree):
    if SOURCE.is_file():
        tree.mkdir()
        step("kernel-unpack", ["tar", "-C", tree, "--strip-components=1",
                               "-xf", SOURCE])
        return
    step("kernel-unpack", ["cp", "-a", "--reflink=auto", SOURCE, tree])
    shutil.rmtree(tree / ".git", ignore_errors=True)
    step("kernel-unpack", ["make", "-C", tree, "mrproper"])


def check_version(tree):
    """Accept each version of the series; report another one than BASE has."""
    makefile = tree / "Makefile"
    text = makefile.read_text() if makefile.exists() else ""
    version = ".".join(re.findall(
        r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", text, re.M))
    if not version.startswith(f"{BASE.series}."):
        die(f"{SOURCE} is not a Linux {BASE.series} source"
            + (f" but {version}" if version else ""))
    if version != BASE.version:
        print(f"kernel: source is {version}, the patches were made "
              f"for {BASE.version}")
        return
    if SOURCE.is_file():
        with open(SOURCE, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != BASE.sha256:
                print(f"kernel: {SOURCE.name} is a {version} other than "
                      "the one in patches/linux/BASE")


def apply_series(tree, names):
    for name in names:
        step("kernel-patch", ["patch", "-d", tree, "-p1", "-F0",
                              "--no-backup-if-mismatch", "-i",
                              PATCHES / name], what=f"patch {name}")


def link_overlay(tree, top):
    for name in OVERLAY:
        link, target = tree / name, top / name
        if link.is_symlink() and os.readlink(link) == str(target):
            continue
        link.unlink(missing_ok=True)
        if target.exists():
            link.symlink_to(target)


def keep_times(old, new, files):
    """A file that did not change keeps its time; one that did gets a new one."""
    for name in files:
        before, after = old / name, new / name
        if not after.is_file():
            continue
        if before.is_file() and filecmp.cmp(before, after, shallow=False):
            shutil.copystat(before, after)
        else:
            os.utime(after)


def remove_builds(source):
    """Remove what was made of another kernel: SRC or PLAIN_SRC, and all that is built of it."""
    plain = source.name.startswith(PLAIN)
    for path in LINUX.iterdir():
        if path.name.startswith(PLAIN) == plain and path.suffix != ".new" \
                and path.name != "lock":
            remove(path)


def prepare(source=SRC):
    """Make SRC from the source and the patches of the series, or PLAIN_SRC without these."""
    stamp_file = LINUX / f"{source.name}.stamp"
    names = series() if source == SRC else []
    patches = [(PATCHES / name).read_text() for name in names]
    stamp = {"source": source_id(), "patches": digest(*names, *patches),
             "files": sorted(patched_files(patches))}
    old = read_stamp(stamp_file)
    if old != stamp or not source.exists():
        print(f"kernel: unpacking{' and patching' * bool(names)} {SOURCE.name}", flush=True)
        for name in ("kernel-unpack", "kernel-patch"):
            (LOG / f"{name}.log").unlink(missing_ok=True)
        new = LINUX / f"{source.name}.new"
        shutil.rmtree(new, ignore_errors=True)
        if SOURCE.is_dir():
            check_version(SOURCE)
            unpack(new)
        else:
            unpack(new)
            check_version(new)
        apply_series(new, names)
        if old.get("source") != stamp["source"]:
            remove_builds(source)
        else:
            keep_times(source, new, {*old["files"], *stamp["files"]})
        stamp_file.unlink(missing_ok=True)
        shutil.rmtree(source, ignore_errors=True)
        new.rename(source)
        stamp_file.write_text(json.dumps(stamp))
    if source == SRC:
        link_overlay(SRC, TOP)


# --- configuration --------------------------------------------------------

def fragment(config):
    """The symbols of the fragments; a later fragment overrides an earlier one."""
    wanted = {}
    for name in FRAGMENTS[config]:
        text = (TOP / f"tests/configs/{name}.config").read_text()
        for line in text.splitlines():
            match = re.fullmatch(r"(CONFIG_\w+)=(.+)|"
                                 r"# (CONFIG_\w+) is not set", line)
            if match:
                wanted[match[1] or match[3]] = match[2] or "n"
            elif line and not line.startswith("# "):
                die(f"tests/configs/{name}.config: not a symbol: {line}")
    if config.startswith(PLAIN) or not (TOP / "kernel/kevent/Kconfig").exists():
        wanted = {k: v for k, v in wanted.items() if not OUR_SYMBOL.match(k)}
    return wanted


def missing_symbols(wanted, dotconfig):
    got = dict(re.findall(r"^(CONFIG_\w+)=(.+)$", dotconfig.read_text(), re.M))
    return [f"{name}={value} (is {got.get(name, 'n')})"
            for name, value in wanted.items() if got.get(name, "n") != value]


def make_command(src, out, *targets, arch=X86):
    """The same command in every clone, so that ccache can share objects."""
    cc = TOP / "scripts/cc"
    cross = [f"CROSS_COMPILE={arch.cross}",
             f"CC={cc} {arch.cross}gcc"] if arch.cross else [f"CC={cc}"]
    return ["make", "-C", src, f"O={out}", f"ARCH={arch.name}", f"-j{JOBS}",
            *cross, f"HOSTCC={cc}",
            "KBUILD_BUILD_TIMESTAMP=1970-01-01", "KBUILD_BUILD_USER=kevent",
            "KBUILD_BUILD_HOST=kevent", "KBUILD_BUILD_VERSION=1", *targets]


def make_env(src):
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BUILD")}
    return dict(env, CCACHE_BASEDIR=str(src.parent), CCACHE_NOHASHDIR="1",
                CCACHE_DEPEND="1", LC_ALL="C")


def check_tools(arch):
    if not arch.cross and os.uname().machine != "x86_64":
        die(f"a kernel for {arch.name} is built on x86_64 only")
    if not shutil.which(f"{arch.cross}gcc"):
        die(f"no {arch.cross}gcc; install it with scripts/setup {arch.name}")


def configure(config, src, out, without=None):
    """Write the .config of out and check it; without is a pattern."""
    wanted = {name: "n" if without and without.match(name) else value
              for name, value in fragment(config).items()}
    write_config(config, wanted, src, out, ARCHS.get(config, X86))


def write_config(config, wanted, src, out, arch):
    """allnoconfig with the symbols of wanted, whose values must be kept."""
    stamp = {"stamp": digest(json.dumps(wanted), *sorted_kconfigs(src))}
    stamp_file = out / ".kevent-config"
    if read_stamp(stamp_file) == stamp and (out / ".config").exists():
        return
    print(f"kernel {config}: configuring", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    stamp_file.unlink(missing_ok=True)
    allconfig = out / ".kevent-fragment"
    allconfig.write_text("".join(f"{k}={v}\n" for k, v in wanted.items()))
    (LOG / f"config-{config}.log").unlink(missing_ok=True)
    step(f"config-{config}", make_command(src, out, "allnoconfig", arch=arch),
         env=dict(make_env(src), KCONFIG_ALLCONFIG=str(allconfig)))
    missing = missing_symbols(wanted, out / ".config")
    if missing:
        die(f"{config}: symbols not in {out}/.config:\n  "
            + "\n  ".join(missing))
    stamp_file.write_text(json.dumps(stamp))


def sorted_kconfigs(src):
    """The Kconfig files that the overlay and the series can change."""
    return sorted((TOP / "kernel/kevent").glob("Kconfig*")) \
        + [src / "init/Kconfig"]


# --- build ----------------------------------------------------------------

def progress(config, process, log, total):
    """Count compiler runs: one line on a terminal, otherwise one per tenth."""
    done, shown, start = 0, 0, time.monotonic()
    terminal = sys.stdout.isatty()
    for line in process.stdout:
        log.write(line)
        if not re.match(r"\s+(HOST)?(CC|AS|AR|LD)\b", line):
            continue
        done += 1
        if total:
            percent = min(99, 100 * done // total)
            text = f"kernel {config}: {percent:2}% ({done} objects)"
        else:
            percent, text = done // 50, f"kernel {config}: {done} objects"
        if terminal:
            print(f"\r{text}", end="", flush=True)
        elif percent // 10 > shown:
            shown = percent // 10
            print(f"{text}, {time.monotonic() - start:.0f} s", flush=True)
    if terminal and done:
        print("\r\033[K", end="")
    return time.monotonic() - start


def run_make(label, total, command, env):
    """Build with the output in a log; total is the number of objects, or 0."""
    log_file = LOG / f"kernel-{label}.log"
    with open(log_file, "w") as log, subprocess.Popen(
            command, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            errors="replace", stderr=subprocess.STDOUT) as process:
        seconds = progress(label, process, log, total)
    if process.returncode:
        show_errors(log_file)
        die(f"kernel {label} failed, see {log_file}")
    print(f"kernel {label}: built in {seconds:.0f} s")


def compile_kernel(config, src, out):
    fresh = not (out / "vmlinux").exists()
    arch = ARCHS.get(config, X86)
    # A module is built against what the target modules leaves.
    targets = [os.path.basename(arch.image), *["modules"] * config.startswith(PLAIN)]
    run_make(config, OBJECTS.get(config, 0) if fresh else 0,
             make_command(src, out, *targets, arch=arch), make_env(src))


@contextlib.contextmanager
def locked():
    """Two builds at once would use the same folders."""
    make_folders(LINUX)
    with open(LINUX / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("kernel: waiting for another build", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(command="", label="", *rest):
    if rest or command not in ("prepare", "config", "build"):
        cli.usage()
    source = PLAIN_SRC if label.startswith(PLAIN) else SRC
    with locked():
        prepare(source)
        if command == "prepare":
            return
        if label not in FRAGMENTS:
            die(f"no config {label}; there are: {' '.join(FRAGMENTS)}")
        out = LINUX / label
        check_tools(ARCHS.get(label, X86))
        configure(label, source, out)
        if command == "build":
            compile_kernel(label, source, out)


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
