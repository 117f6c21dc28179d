# SPDX-License-Identifier: GPL-2.0
"""Run tools with their output in a log, and one at a time; compile programs for the VM."""

import contextlib
import fcntl
import subprocess

from . import cli, paths

WARNINGS = ("-Wall", "-Wextra")


def logged(log, command, **kwargs):
    """Run a command and append its output to a log.

    Returns what subprocess.run() returns: .stdout has the output, and that of
    stderr in between.
    """
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          errors="replace", **kwargs)
    with open(log, "a") as out:
        print("+", *command, file=out)
        print(done.stdout, file=out)
    return done


@contextlib.contextmanager
def locked(path, name):
    """Hold a lock. Says if it waits for another run of what has that name."""
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name:11} waits for another run", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def program(name):
    """Build a patched program with scripts/program, which reports errors."""
    if subprocess.run([paths.TOP / "scripts/program", name]).returncode:
        cli.die(f"cannot build {name}")


def gcc(out, *words, log, compiler="gcc"):
    """Compile and link the file out; returns whether that worked."""
    out.parent.mkdir(parents=True, exist_ok=True)
    return not logged(log, [compiler, "-O2", *WARNINGS, "-o", out,
                            *words]).returncode


def gcc_or_die(out, *words, log):
    if not gcc(out, *words, log=log):
        cli.die(f"cannot build {out}, see {log}")


def linked_to(prefix, library):
    """Options for gcc: use the library installed in prefix, there in the VM too."""
    return ("-isystem", prefix / "include", "-L", prefix / "lib",
            f"-l{library}", f"-Wl,-rpath,{prefix}/lib")
