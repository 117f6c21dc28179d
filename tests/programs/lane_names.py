# SPDX-License-Identifier: GPL-2.0
"""Finds names of libc for functions that kevent-lane's object covers, which it does not have."""
import ctypes
import subprocess
from pathlib import Path

VARIANTS = ("{}64", "__{}", "__{}64", "__{}_chk", "_IO_{}")


def names_of(path):
    """The functions that a program can call, and where they are"""
    out = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    words = [line.split() for line in out.splitlines()]
    return {name.split("@")[0]: at for at, kind, name in words
            if kind in "TWi" and "GLIBC_PRIVATE" not in name}


def libc():
    class Info(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                    ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
    info, this = Info(), ctypes.CDLL(None)
    this.dladdr(ctypes.cast(this.gnu_get_libc_version, ctypes.c_void_p), ctypes.byref(info))
    return Path(info.file.decode())


def allocators(path):
    """Functions of the program's allocator that it calls: a handler may have interrupted that."""
    out = subprocess.run(["nm", "-D", "--undefined-only", path], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    return sorted(names & {"malloc", "calloc", "realloc", "reallocarray", "free", "strdup",
                           "aligned_alloc", "posix_memalign"})


def forgotten(path):
    """Names at the same address as a covered one, and its usual variants"""
    covered, all_names = names_of(path), names_of(libc())
    same = {all_names[name] for name in covered if name in all_names}
    variants = {variant.format(name) for name in covered for variant in VARIANTS}
    return sorted(name for name, at in all_names.items()
                  if name not in covered and (at in same or name in variants))
