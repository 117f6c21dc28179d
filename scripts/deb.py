#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Build Debian packages in $BUILD/deb.

usage: scripts/deb.py libkevent     libkevent1, libkevent-dev, kevent-tools and
                                    kevent-dkms, the module for other kernels, and the
                                    source package that they are built from
       scripts/deb.py kernel        linux-image-*-kevent and linux-headers-*-kevent
       scripts/deb.py test          all of them in $BUILD/deb/test, with the small kernel
                                    of tests/configs/deb.config: for tests/long/deb

The configuration of the kernel is that of the running one: /boot/config-*, or
/proc/config.gz; on a machine without both, Debian's. The modules that are not
loaded now are left out, except for those in KEEP. KCONFIG names another
configuration, which loses no module; LSMOD names a file with the output of lsmod on
the machine that the packages are for. kevent is added, debug information is not.

The version of the library is what scripts/version says, that of the kernel what is in
patches/linux/BASE. JOBS is the number of compiler processes.
"""

import email.utils
import gzip
import json
import lzma
import os
import re
import shutil
import sys
from pathlib import Path

import dist
import kernel
from lib import cli, tree
from lib.cli import die
from lib.paths import BUILD, LINUX, LOG, TOP, make_folders

DEB = BUILD / "deb"
PACKAGE = LINUX / "package"
SRC = PACKAGE / "src"
LOCAL = "-kevent"
LIBRARY = ("libkevent1", "libkevent-dev", "kevent-tools", "kevent-dkms")
# What a machine can need that has not used it yet
KEEP = ("fs:drivers/hid:drivers/usb/host:drivers/usb/storage:"
        "drivers/net/usb:net/netfilter:net/ipv4:net/ipv6")
WANTED = {"CONFIG_LOCALVERSION": f'"{LOCAL}"', "CONFIG_KEVENT": "y"}
# Without certificates of others, and without what makes the build several times as
# large; initramfs-tools uses gzip where it cannot use zstd
OVERRIDES = {**WANTED, "CONFIG_RD_GZIP": "y", "CONFIG_RD_ZSTD": "y",
             "CONFIG_LOCALVERSION_AUTO": "n", "CONFIG_BUILD_SALT": '""',
             "CONFIG_SYSTEM_TRUSTED_KEYS": '""',
             "CONFIG_SYSTEM_REVOCATION_KEYS": '""',
             "CONFIG_MODULE_SIG_KEY": '"certs/signing_key.pem"',
             "CONFIG_DEBUG_INFO_NONE": "y"}
DROPPED = re.compile(r"(?:# )?CONFIG_DEBUG_INFO\w*[= ].*")
SECONDS_PER_OPTION = 1.2	# of one compiler process, without ccache
GB_PER_OPTION, GB = 0.001, 2	# of disk


def publish(folder, deb, kind, *names):
    """Move packages to the folder deb, instead of older ones of these names."""
    new = sorted(path for name in names for path in folder.glob(f"{name}_*.{kind}"))
    if not new:
        die(f"no packages in {folder}")
    for name in names:
        for old in deb.glob(f"{name}_*.{kind}"):
            old.unlink()
    for path in new:
        print(f"deb: {shutil.move(path, deb / path.name)}")


# --- library --------------------------------------------------------------

def maintainer():
    """Debian requires one."""
    return tree.publisher()["CONTACT"] or tree.publisher()["UNSET"]


def changelog():
    """Debian's form of the last release; CHANGES says what is new in it."""
    version, date = tree.version(), email.utils.formatdate(tree.date())
    return f"kevent ({version}-1) unstable; urgency=medium\n\n" \
        f"  * Release {version}. See changelog.gz.\n\n" \
        f" -- {maintainer()}  {date}\n"


def debian_folder(folder):
    """packaging/debian, and what depends on the release and its publisher."""
    shutil.copytree(TOP / "packaging/debian", folder)
    (folder / "changelog").write_text(changelog())
    homepage, repository, downloads = (tree.publisher()[name] for name in
                                       ("HOMEPAGE", "REPOSITORY", "DOWNLOADS"))
    fields = [f"Maintainer: {maintainer()}"]
    fields += [f"Homepage: {homepage}"] if homepage else []
    fields += [f"Vcs-Git: {repository}"] if repository else []
    control = (folder / "control").read_text()
    (folder / "control").write_text(control.replace("\n\n", "\n" + "\n".join(fields) + "\n\n",
                                                    1))
    if downloads:
        (folder / "watch").write_text(
            f"version=4\n{downloads} .*/kevent-@ANY_VERSION@\\.tar\\.xz\n")


def build_libkevent(deb=DEB):
    """The tarball of dist, as a source package and as packages that are built from it."""
    version = tree.version()
    print(f"deb: libkevent {version}: half a minute, 10 MB", flush=True)
    (LOG / "deb-libkevent.log").unlink(missing_ok=True)
    work = deb / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    original = shutil.copy2(dist.pack(), work / f"kevent_{version}.orig.tar.xz")
    kernel.step("deb-libkevent", ["tar", "-xf", original, "-C", work])
    debian_folder(work / f"kevent-{version}/debian")
    options = f"noautodbgsym parallel={kernel.JOBS}"
    kernel.step("deb-libkevent", ["dpkg-buildpackage", "-us", "-uc"],
                cwd=work / f"kevent-{version}",
                env=dict(kernel.make_env(work), DEB_BUILD_OPTIONS=options))
    publish(work, deb, "deb", *LIBRARY)
    publish(work, deb, "*", "kevent")
    shutil.rmtree(work)
    tree.say_unpublished("deb")


# --- kernel ---------------------------------------------------------------

def copy_tree():
    """The patched tree with files in place of links to this tree.

    Files that are in both are the same on disk.
    """
    PACKAGE.mkdir(exist_ok=True)
    kernel.step("deb-tree", ["rsync", "-a", "--delete", "--copy-unsafe-links",
                             f"--link-dest={kernel.SRC}", f"{kernel.SRC}/", SRC])


def read_text(path):
    openers = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(path.suffix, open)(path, "rt") as file:
        return file.read()


def find_config():
    """The file with a configuration, and whether to leave out modules."""
    named = os.environ.get("KCONFIG")
    if named:
        if not Path(named).is_file():
            die(f"no configuration {named}")
        return Path(named), False
    debian = f"/usr/src/linux-config-{kernel.BASE.series}/" \
        "config.amd64_none_amd64.xz"
    for name in (f"/boot/config-{os.uname().release}", "/proc/config.gz", debian):
        if Path(name).exists():
            return Path(name), True
    die(f"no {debian}: install linux-config-{kernel.BASE.series}, or set KCONFIG")


def find_modules():
    """The output of lsmod, empty if that would leave out all modules."""
    path = Path(os.environ.get("LSMOD") or "/proc/modules")
    if os.environ.get("LSMOD") and not path.is_file():
        die(f"no list of modules {path}")
    return path.read_text() if path.exists() else ""


def merged(text):
    """The configuration with the values of OVERRIDES."""
    lines = [line for line in text.splitlines() if not DROPPED.fullmatch(line)
             and re.sub(r"^# |[= ].*$", "", line) not in OVERRIDES]
    lines += [f"{name}={value}" for name, value in OVERRIDES.items()]
    return "\n".join(lines) + "\n"


def configure(out, text, modules):
    """Write .config in out unless it is there."""
    stamp = {"stamp": kernel.digest(merged(text), modules, KEEP,
                                    *kernel.sorted_kconfigs(SRC))}
    stamp_file = out / ".kevent-config"
    if kernel.read_stamp(stamp_file) == stamp and (out / ".config").exists():
        return
    out.mkdir(exist_ok=True)
    stamp_file.unlink(missing_ok=True)
    (LOG / "deb-config.log").unlink(missing_ok=True)
    (out / ".config").write_text(merged(text))
    make = kernel.make_command(SRC, out)
    env = kernel.make_env(SRC)
    kernel.step("deb-config", [*make, "olddefconfig"], env=env)
    if modules:
        (PACKAGE / "lsmod").write_text(modules)
        kernel.step("deb-config",
                    ["sh", "-c", 'yes "" | "$@"', "sh", *make, "localmodconfig"],
                    env=dict(env, LSMOD=str(PACKAGE / "lsmod"), LMC_KEEP=KEEP))
    missing = kernel.missing_symbols(WANTED, out / ".config")
    if missing:
        die("the configuration cannot have " + " ".join(missing))
    stamp_file.write_text(json.dumps(stamp))


def announce(out, path, reduced):
    """Say what a build without ccache costs; stop if the disk is too small."""
    values = re.findall(r"^CONFIG_\w+=([ym])$", (out / ".config").read_text(), re.M)
    minutes = SECONDS_PER_OPTION * len(values) / int(kernel.JOBS) / 60
    need = GB + GB_PER_OPTION * len(values)
    free = shutil.disk_usage(PACKAGE).free / 1e9
    print(f"deb: kernel {kernel.BASE.version}{LOCAL}, configured as {path}"
          + ", with the modules in use" * reduced
          + f":\ndeb: {len(values)} options, of them {values.count('m')} modules; "
          f"about {minutes:.0f} minutes, {need:.0f} GB ({free:.0f} GB are free) in "
          f"{PACKAGE}", flush=True)
    if free < need and not (out / "vmlinux").exists():
        die(f"too little disk in {PACKAGE}")


def package_kernel(out, deb):
    """Build the kernel configured in out, and packages of it in the folder deb."""
    revision = f"{kernel.BASE.version}+kevent{tree.version()}-1"
    kernel.run_make("deb", 0, kernel.make_command(SRC, out, "bindeb-pkg"),
                    dict(kernel.make_env(SRC), KDEB_PKGVERSION=revision,
                         KDEB_CHANGELOG_DIST="unstable",
                         DEB_BUILD_OPTIONS="terse"))
    publish(PACKAGE, deb, "deb", "linux-image-*", "linux-headers-*")
    for path in PACKAGE.glob("linux-*_*"):	# linux-libc-dev, lists
        path.unlink()


def build_kernel():
    if os.uname().machine != "x86_64":
        die("kernel packages are built on x86_64 only")
    path, reduce = find_config()
    modules = find_modules() if reduce else ""
    out = PACKAGE / "out"
    with kernel.locked():
        kernel.prepare()
        copy_tree()
        configure(out, read_text(path), modules)
        announce(out, path, bool(modules))
        package_kernel(out, DEB)


def build_test():
    """All packages, apart from those that are meant for use."""
    deb, out, fragments = DEB / "test", PACKAGE / "test", LINUX / "deb"
    deb.mkdir(exist_ok=True)
    build_libkevent(deb)
    with kernel.locked():
        kernel.prepare()
        kernel.configure("deb", kernel.SRC, fragments)
        copy_tree()
        configure(out, (fragments / ".config").read_text(), "")
        announce(out, "tests/configs/deb.config", False)
        package_kernel(out, deb)


def main(*names):
    builders = {"libkevent": build_libkevent, "kernel": build_kernel,
                "test": build_test}
    if not names:
        cli.usage()
    cli.unknown("package", names, builders)
    make_folders(DEB)
    for name in names:
        builders[name]()


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
