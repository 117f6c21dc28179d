#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Install a wheel in a new environment, and run the first example there, on epoll.

usage: run_wheel.py WHEEL FOLDER

The environment goes to FOLDER, and has cffi of the system. The library must be that of the wheel,
whatever others there are. The last line is "N passed, N failed".
"""

import os
import subprocess
import sys
import venv
import zipfile

EXAMPLE = os.path.abspath(f"{__file__}/../../examples/first.py")
# Those of the library are those of the package
LICENCES = {"LGPL-2.1", "MIT"}
LOADED = """import kevent
with open("/proc/self/maps", encoding="utf-8") as maps:
    print(*sorted({line.split()[-1] for line in maps if "libkevent" in line}))
print(f"{kevent.__path__[0]}/libkevent-ffi.so.1")
"""


def run(*command):
    """Its status and what it says, where nothing but the environment says what is imported."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH")}
    done = subprocess.run(command, text=True, cwd="/", env={**env, "KEVENT_BACKEND": "epoll"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=100)
    return done.returncode, done.stdout


def results(wheel, folder):
    """Yields whether each went well, its name, and more about it."""
    with zipfile.ZipFile(wheel) as archive:
        names = {os.path.basename(name) for name in archive.namelist() if ".dist-info/" in name}
    yield LICENCES <= names, "licences_are_in_the_wheel", names
    venv.create(folder, clear=True, with_pip=True, system_site_packages=True)
    python = f"{folder}/bin/python"
    status, said = run(python, "-m", "pip", "install", "-q", "--no-index", wheel)
    yield not status, "pip_installs_it", said
    with open(f"{EXAMPLE[:-3]}.out", encoding="ascii") as file:
        wanted = file.read()
    status, said = run(python, EXAMPLE)
    yield (status, said) == (0, wanted), "example_runs", said
    status, said = run(python, "-c", LOADED)
    loaded, _, own = said.rstrip("\n").partition("\n")
    yield not status and loaded == own, "library_is_that_of_the_wheel", said


def main(*arguments):
    if len(arguments) != 2:
        sys.exit(__doc__.strip())
    passed = failed = 0
    for good, name, more in results(*map(os.path.abspath, arguments)):
        print(f"{'ok' if good else 'not ok'} wheel.{name}" + f": FAILED: {more}" * (not good),
              flush=True)
        passed += good
        failed += not good
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
