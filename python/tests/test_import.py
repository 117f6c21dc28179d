# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""What an import of the package takes."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LATER = "cffi", "pycparser", "typing", "asyncio", "subprocess"


class Import(unittest.TestCase):
    def test_loads_nothing_that_takes_long(self):
        """No parser of C, and no asyncio before somebody asks for its loop."""
        words = "import sys; before = set(sys.modules); import kevent; " \
            "print(*sorted(set(sys.modules) - before))"
        loaded = subprocess.run([sys.executable, "-S", "-c", words], check=True, text=True,
                                stdout=subprocess.PIPE, cwd=PACKAGE,
                                env={**os.environ, "PYTHONPATH": self.path()}).stdout.split()
        self.assertIn("kevent._queue", loaded)
        self.assertEqual([name for name in LATER if name in loaded], [])

    def test_python_without_policies(self):
        """Its asyncio has a loop, and lacks the class of policies."""
        words = "import asyncio; vars(asyncio).pop('DefaultEventLoopPolicy', None); " \
            "vars(asyncio).pop('__getattr__', None); import kevent; " \
            "kevent.EventLoop().close(); print(hasattr(kevent, 'EventLoopPolicy'))"
        done = subprocess.run([sys.executable, "-c", words], check=True, text=True,
                              stdout=subprocess.PIPE, cwd=PACKAGE,
                              env={**os.environ, "PYTHONPATH": PACKAGE})
        self.assertEqual(done.stdout, "False\n")

    def test_all_names_without_policies(self):
        """What such a Python imports by a star is there."""
        words = "import asyncio, sys; vars(asyncio).pop('DefaultEventLoopPolicy', None); " \
            "vars(asyncio).pop('__getattr__', None); sys.version_info = (3, 16); " \
            "from kevent import *; print(EventLoop.__name__)"
        done = subprocess.run([sys.executable, "-W", "error", "-c", words], check=True, text=True,
                              stdout=subprocess.PIPE, cwd=PACKAGE,
                              env={**os.environ, "PYTHONPATH": PACKAGE})
        self.assertEqual(done.stdout, "EventLoop\n")

    def test_library_of_the_package_is_used(self):
        """A wheel has it there, whatever the loader finds elsewhere."""
        def loaded(folder):
            words = "import kevent; print(*{line.split()[-1] for line in " \
                "open('/proc/self/maps') if 'libkevent' in line})"
            return subprocess.run([sys.executable, "-c", words], check=True, text=True,
                                  stdout=subprocess.PIPE, cwd=folder,
                                  env={**os.environ, "PYTHONPATH": folder}).stdout.rstrip()

        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(f"{PACKAGE}/kevent", f"{folder}/kevent")
            own = shutil.copy(loaded(PACKAGE), f"{folder}/kevent/libkevent-ffi.so.1")
            self.assertEqual(loaded(folder), own)

    def test_declarations_are_those_that_were_written(self):
        """The file that declare.py makes is the one in the package."""
        with tempfile.TemporaryDirectory() as folder:
            made = f"{folder}/abi.py"
            subprocess.run([sys.executable, f"{PACKAGE}/declare.py", made], check=True,
                           stdout=subprocess.DEVNULL)
            with open(made, encoding="ascii") as one, \
                    open(f"{PACKAGE}/kevent/_abi.py", encoding="ascii") as other:
                self.assertEqual(one.read(), other.read())

    @staticmethod
    def path():
        """Also where cffi is: without -S, the start loads modules by itself."""
        import _cffi_backend
        return os.pathsep.join([PACKAGE, os.path.dirname(_cffi_backend.__file__)])


if __name__ == "__main__":
    unittest.main()
