#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Build a kernel, or a module, that a patch NAME.patch below tests/mutants has broken.

usage: scripts/mutant.py NAME...

A patch that is not there is looked for in $BUILD/mutants. It is for the plain kernel,
or for that of a line "Kernel: debug" in the patch. That kernel must have been built;
the names "none" and "none-debug" link it in the same way. Only objects made from files
that the patch changes are compiled again, with the commands of that build; then all
objects are linked. That leaves out make, the table of symbols, which is that of the
kernel that is not broken, and the compressed image: QEMU boots
$BUILD/linux/mutant-NAME/vmlinux.

With a line "Kernel: module" the patch breaks the module for Debian's kernel, which must have
been built, and of which "none-module" is another copy: $BUILD/linux/mutant-NAME/kevent.ko.
"""

import concurrent.futures
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import kernel
import stock
from lib import cli
from lib.paths import BUILD, LINUX, TOP

SRC = kernel.SRC
KEVENT = "kernel/kevent"
STOCK = "stock-6.12"		# the kernel whose module is broken
MODULE = "module"		# beside names of configurations of the kernel
CONTROLS = {"none": "base", "none-debug": "debug", "none-module": MODULE}	# nothing is broken
KERNEL = re.compile(r"^Kernel: (\w+)$", re.M)


class Failure(Exception):
    """An error, with the output of a tool if there is any."""


def home_of(name):
    return LINUX / f"mutant-{name}"


def module_of(name):
    return home_of(name) / "kevent.ko"


def run(command, **kwargs):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          errors="replace", env=kernel.make_env(SRC), **kwargs)
    if done.returncode:
        raise Failure(done.stdout.strip())
    return done.stdout


def patch_of(name):
    for folder in (TOP / "tests/mutants", BUILD / "mutants"):
        for patch in folder.rglob(f"{name}.patch"):
            return patch
    raise Failure(f"there is no {name}.patch below tests/mutants")


def folder_of(patch):
    """Where a patch belongs: below tests/mutants, by the first file that it changes."""
    name = re.search(r"^--- a/(\S+)", patch.read_text(), re.M)[1]
    for start, short in (f"{KEVENT}/", ""), ("kernel/module/", "module/"):
        if name.startswith(start):
            return Path(short + name.removeprefix(start)).with_suffix("")
    return Path(f"linux/{name}").with_suffix("")


def config_of(name):
    """The configuration of the kernel that is broken."""
    if name in CONTROLS:
        return CONTROLS[name]
    match = KERNEL.search(patch_of(name).read_text())
    return match[1] if match else "base"


def apply(name, tree):
    run(["patch", "-d", tree, "-p1", "-F0", "--no-backup-if-mismatch", "-i",
         patch_of(name)])


def copy_tree(name, tree):
    """The overlay, and core files that the patch names; then the patch."""
    files = kernel.patched_files([patch_of(name).read_text()])
    for path in kernel.OVERLAY:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        run(["cp", "-r", TOP / path, tree / path])
    for path in files:
        if not (tree / path).exists():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SRC / path, tree / path)
    apply(name, tree)
    return files


def commands(out, files):
    """(object, command, source) for each object made from one of the files."""
    made_from = re.compile("|".join(f"/src/{re.escape(name)}\\b"
                                    for name in sorted(files)))
    everywhere = any(name.endswith(".h") and not name.startswith(KEVENT)
                     for name in files)
    folders = [out] if everywhere else [
        out / folder for folder in
        {KEVENT} | {str(Path(name).parent) for name in files
                    if not name.startswith(KEVENT)}]
    for folder in folders:
        for path in sorted(folder.rglob(".*.o.cmd")):
            text = path.read_text(errors="replace")
            saved = re.match(r"savedcmd_(\S+) := (.*)", text)
            source = re.search(r"^source_\S+ := \S*?/src/(\S+)", text, re.M)
            if saved and source and made_from.search(text) and \
                    (SRC / source[1]).exists():
                yield saved[1], saved[2], source[1]


def compile_one(out, tree, objects, made, command, source):
    """Compile into objects; a core file finds its quoted includes in SRC."""
    to = objects / made
    to.parent.mkdir(parents=True, exist_ok=True)
    folder, name = made.rsplit("/", 1)
    command = command.replace("$(pound)", "#").replace("$$", "$")
    command = re.sub(rf"(?<![\w./]){re.escape(made)}(?!\w)", str(to), command)
    command = command.replace(f"{folder}/.{name}.d", f"{to}.d")
    command = command.replace(f"{SRC}/{KEVENT}", f"{tree}/{KEVENT}")
    if (tree / source).exists():
        command = command.replace(f" {SRC}/{source}", f" {tree}/{source}")
    command = command.replace(
        " -nostdinc ", f" -nostdinc -I{tree}/include "
        f"-I{tree}/include/uapi -iquote {SRC}/{Path(source).parent} ", 1)
    run(command, shell=True, cwd=out)


def compile_all(out, tree, objects, files):
    made = list(commands(out, files))
    if not made:
        raise Failure("the patch changes no file that an object is made from")
    with concurrent.futures.ThreadPoolExecutor(int(kernel.JOBS)) as pool:
        for _ in pool.map(lambda args: compile_one(out, tree, objects, *args),
                          made):
            pass
    return {name for name, *_ in made}


def link(out, home, objects, made):
    """Link as the last step of link-vmlinux.sh does."""
    words = shlex.split((out / ".vmlinux.cmd").read_text().split("\n", 1)[0]
                        .split(" := ", 1)[1].split(";")[0])
    members = run(["ar", "t", "vmlinux.a"], cwd=out).split()
    if not made <= {*members}:
        raise Failure(f"not in vmlinux.a: {' '.join(made - {*members})}")
    (home / "objects").write_text("\n".join(
        str(objects / name) if name in made else name for name in members))
    libs = [name for name in ("lib/lib.a", "arch/x86/lib/lib.a")
            if (out / name).exists()]
    symbols = max(out.glob(".tmp_vmlinux[0-9].kallsyms.o"))
    image = home / "vmlinux"
    run([words[1], *words[2].split(), *words[3].split(),
         "--script=arch/x86/kernel/vmlinux.lds", "--strip-debug", "-o", image,
         "--whole-archive", f"@{home / 'objects'}", "init/version-timestamp.o",
         "--no-whole-archive", "--start-group", *libs, "--end-group", symbols],
        cwd=out)
    (home / "nm").write_text(run(["nm", "-S", image]))
    run(["scripts/sorttable", "-s", home / "nm", image], cwd=out)
    run(["strip", image])


def build_module(name):
    """All of them are built in one folder: only what differs from the last is compiled."""
    debian = stock.find(STOCK)
    if not debian.module.exists():
        raise Failure("the module is not there; run make module")
    tree = stock.MODULE / "mutant"
    with stock.locked():
        stock.copy_sources(tree)
        if name not in CONTROLS:
            apply(name, tree)
        try:
            made = stock.make_module(debian, tree, f"mutant-{name}")
        except SystemExit as end:
            raise Failure(str(end)) from None
        home_of(name).mkdir()
        shutil.copy2(made, module_of(name))


def build(name):
    """Build a mutant; raises Failure with the output of the compiler."""
    config = config_of(name)
    if config == MODULE:
        shutil.rmtree(home_of(name), ignore_errors=True)
        return build_module(name)
    out = LINUX / config
    if not (out / "vmlinux").exists():
        raise Failure(f"the {config} kernel is not there; run make kernel"
                      + f"-{config}" * (config != "base"))
    home = home_of(name)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    if name in CONTROLS:
        return link(out, home, home, set())
    tree, objects = home / "tree", home / "objs"
    files = copy_tree(name, tree)
    link(out, home, objects, compile_all(out, tree, objects, files))
    for path in (tree, objects):
        shutil.rmtree(path)
    return None


def main(*names):
    if not names:
        cli.usage()
    for name in names:
        start = time.monotonic()
        try:
            build(name)
        except Failure as failure:
            cli.die(f"{name}: {failure}")
        print(f"kernel mutant-{name}: built in "
              f"{time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
