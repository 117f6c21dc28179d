#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Fetch Debian's own kernels, and build kevent as a module for them.

usage: scripts/stock.py fetch NAME      an image and its headers, in $BUILD/stock
       scripts/stock.py module NAME     also the module: $BUILD/module/NAME/kevent.ko

NAME is stock-6.12, stock-6.1 or stock-7.3, which are the small kernels for clouds, or one
of these with -full, which has all drivers. With "module" it can also be plain-debug or
plain-kcsan, which scripts/kernel.py has built; then the module has what its tests ask for,
windows and checks. The newest of that series is taken from Debian's
archive, as this machine's apt reaches it; apt's own lists and packages stay as they are.
What is there is not fetched again: remove the folder to get a newer one. Its file
"packages" says which versions it has. A module for a kernel of another Debian than this
machine's is built in that Debian, which debootstrap makes once; that needs root.
"""

import contextlib
import fcntl
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

import kernel
from lib import cli
from lib.apt import MIRROR, Apt, debootstrap, keyring
from lib.cli import die
from lib.paths import BUILD, LOG, TOP, make_folders

STOCK = BUILD / "stock"
MODULE = BUILD / "module"
PREFIX = "stock-"
# Of this tree, what the module is made of
SOURCES = (*kernel.OVERLAY, "kernel/module")
LEFT_OUT = ("*.o", "*.ko", "*.mod", "*.mod.c", ".*.cmd", ".*.d", "modules.order",
            "Module.symvers", ".tmp_*")


class Stock(NamedTuple):
    """A kernel of Debian's: which to take, and from where."""
    name: str			# without the prefix
    series: str
    flavour: str
    suite: str

    @property
    def folder(self):
        return STOCK / self.name

    @property
    def release(self):
        """What uname says there."""
        return (self.folder / "release").read_text().strip()

    @property
    def image(self):
        places = (self.folder / f"boot/vmlinuz-{self.release}", self.modules / "vmlinuz")
        return next(filter(Path.exists, places), places[0])

    @property
    def headers(self):
        return self.folder / f"usr/src/linux-headers-{self.release}"

    @property
    def debian(self):
        """Whose compiler and library it needs."""
        return self.suite.partition("-")[0]

    @property
    def modules(self):
        return self.folder / f"lib/modules/{self.release}"

    @property
    def module(self):
        return MODULE / self.name / "kevent.ko"

    def command(self, *words):
        """make for a module; objects are shared where the compiler is this Debian's."""
        here = self.debian == this_debian()
        ccache = ["DEBIAN_KERNEL_USE_CCACHE=1"] if here and shutil.which("ccache") else []
        return [*([] if here else other_debian(self)), "make", "-C", self.headers,
                f"-j{kernel.JOBS}", *ccache, *words]


class Plain(NamedTuple):
    """A kernel of ours without kevent."""
    name: str

    @property
    def folder(self):
        return kernel.LINUX / self.name

    @property
    def release(self):
        return (self.folder / "include/config/kernel.release").read_text().strip()

    @property
    def module(self):
        return MODULE / self.name / "kevent.ko"

    def command(self, *words):
        return kernel.make_command(kernel.PLAIN_SRC, self.folder, "KEVENT_TESTS=1", *words)


SUITES = {"6.12": "bookworm-security", "6.1": "bookworm-security",
          "7.3": "trixie-backports"}
FLAVOURS = {"": "cloud-amd64", "-full": "amd64"}
KERNELS = {f"{PREFIX}{series}{suffix}": Stock(series + suffix, series, flavour, suite)
           for series, suite in SUITES.items() for suffix, flavour in FLAVOURS.items()}
PLAINS = {name: Plain(name) for name in kernel.FRAGMENTS if name.startswith(kernel.PLAIN)}


def find(name):
    cli.unknown("kernel", [name], KERNELS)
    return KERNELS[name]


# --- packages -------------------------------------------------------------

def apt_for(stock):
    return Apt(stock.suite, STOCK / f"apt-{stock.suite}", LOG / f"{PREFIX}{stock.name}.log")


def numbers(release):
    return [int(word) for word in re.findall(r"\d+", release)]


def choose(stock, packages):
    """The newest release whose image has headers, as names and versions of packages."""
    known = dict(packages)
    pattern = re.compile(rf"linux-image-({re.escape(stock.series)}\.[^-]+(?:-\d+)?-"
                         rf"{stock.flavour})")
    releases = [match[1] for match in map(pattern.fullmatch, known)
                if match and f"linux-headers-{match[1]}" in known]
    if not releases:
        die(f"{stock.suite} has no {stock.series} for {stock.flavour} with headers; "
            "SUITES in scripts/stock.py says where each series is")
    release = max(releases, key=numbers)
    base = release.removesuffix(f"-{stock.flavour}")
    kbuild = [name for name in (f"linux-kbuild-{base}", f"linux-kbuild-{stock.series}")
              if name in known]
    # Linux 7 has its image in several
    parts = [name for name in (f"linux-binary-{release}", f"linux-modules-{release}",
                               f"linux-base-{release}") if name in known]
    names = [f"linux-image-{release}", f"linux-headers-{release}",
             f"linux-headers-{base}-common", *kbuild[:1], *parts]
    return release, {name: known[name] for name in names}


def relocate(stock):
    """The headers know where they will be, and do not need the whole kernel for BTF."""
    if not (stock.folder / "lib").exists():
        (stock.folder / "lib").symlink_to("usr/lib")
    makefile = stock.headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{stock.headers.parent}/"))
    (stock.headers / "vmlinux").unlink(missing_ok=True)


def fetch(stock):
    if (stock.folder / "packages").exists():
        print(f"stock: {stock.release} is in {stock.folder}")
        return
    for tool, package in (("apt-get", "apt"), ("dpkg", "dpkg"), ("depmod", "kmod")):
        if not shutil.which(tool):
            die(f"no {tool}; install {package}")
    keyring()
    started = time.monotonic()
    apt = apt_for(stock)
    apt.log.unlink(missing_ok=True)
    apt.update()
    release, packages = choose(stock, apt.packages())
    print(f"stock: fetching {release} from {apt.uri}, {stock.suite}", flush=True)
    shutil.rmtree(stock.folder, ignore_errors=True)
    archives = stock.folder / "archives"
    archives.mkdir(parents=True)
    apt.run("apt-get", "download", *(f"{name}={version}"
                                     for name, version in packages.items()),
            folder=archives)
    size = sum(path.stat().st_size for path in archives.iterdir()) / 1e6
    for path in archives.glob("*.deb"):
        kernel.step(apt.log.stem, ["dpkg", "-x", path, stock.folder], "dpkg")
    shutil.rmtree(archives)
    (stock.folder / "release").write_text(f"{release}\n")
    relocate(stock)
    kernel.step(apt.log.stem, ["depmod", "-b", stock.folder, release], "depmod")
    (stock.folder / "packages").write_text(
        "".join(f"{name} {version}\n" for name, version in packages.items()))
    print(f"stock: {stock.folder}, {size:.0f} MB in "
          f"{time.monotonic() - started:.0f} s")


# --- module ---------------------------------------------------------------

def copy_sources(folder):
    """Objects are written next to their sources, so these are copied. What differs is new."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in SOURCES if not (TOP / name).exists()]
    if missing:
        die(f"no {' '.join(missing)} in this tree: it has no module")
    excludes = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    kernel.step("module-sources", ["rsync", "-rlpcR", "--delete", *excludes, *SOURCES, folder],
                cwd=TOP)


def this_debian():
    text = Path("/etc/os-release").read_text()
    return "".join(re.findall(r"^VERSION_CODENAME=(.*)$", text, re.M))


def other_debian(stock):
    """The words in front of a command that run it in another Debian, with our folders."""
    root = STOCK / f"debian-{stock.debian}"
    if not root.exists():
        if os.geteuid():
            die(f"{stock.release} needs the compiler of Debian {stock.debian}: run as root")
        if not shutil.which("debootstrap"):
            die("no debootstrap; install it")
        print(f"stock: making a Debian {stock.debian} in {root}", flush=True)
        new = root.with_name(f"{root.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        compiler = re.search(r"gcc-\d+", (stock.headers / ".kernelvariables").read_text())[0]
        kernel.step(f"stock-{stock.name}", debootstrap(
            f"--include=make,{compiler},libelf-dev,libssl-dev", stock.debian, new, MIRROR),
            "debootstrap")
        new.rename(root)
    return ["unshare", "--mount", "sh", "-c", 'root=$1 && mkdir -p "$1$2" && '
            'mount --rbind "$2" "$1$2" && mount --rbind /proc "$1/proc" && '
            'shift 2 && exec chroot "$root" "$@"', "sh", root, BUILD]


def make_module(stock, source, name):
    """Build the module of a copy of the sources; returns its path."""
    (LOG / f"{name}.log").unlink(missing_ok=True)
    made = source / "kernel/module/kevent.ko"
    kernel.step(name, stock.command(f"M={made.parent}", "modules"),
                f"the module for {stock.release}", env=kernel.make_env(source))
    return made


def build_module(stock):
    source = stock.module.parent / "src"
    started = time.monotonic()
    copy_sources(source)
    shutil.copy2(make_module(stock, source, f"module-{stock.name}"), stock.module)
    print(f"module: {stock.module} for {stock.release}, in "
          f"{time.monotonic() - started:.0f} s")


@contextlib.contextmanager
def locked():
    """Two at once would use the same folders."""
    make_folders(STOCK, MODULE)
    with open(STOCK / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(command="", name="", *rest):
    if rest or command not in ("fetch", "module"):
        cli.usage()
    plain = PLAINS.get(name) if command == "module" else None
    stock = plain or find(name)
    with locked():
        if not plain:
            fetch(stock)
        if command == "module":
            build_module(stock)


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
