# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The examples print what the documents say."""

import asyncio
import glob
import os
import subprocess
import sys
import unittest

PACKAGE = os.path.abspath(f"{__file__}/../..")
# What an example needs that older Pythons lack
NEEDS = {"loop_factory": hasattr(asyncio, "Runner")}


class Examples(unittest.TestCase):

    def run_example(self, path):
        done = subprocess.run([sys.executable, "-W", "error::ResourceWarning", path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                              check=False, env={**os.environ, "PYTHONPATH": PACKAGE})
        with open(f"{path[:-3]}.out", encoding="ascii") as file:
            self.assertEqual(done.stdout, file.read())
        self.assertEqual(done.returncode, 0)

    def test_examples(self):
        paths = glob.glob(f"{PACKAGE}/examples/*.py")
        self.assertEqual(len(paths), len(glob.glob(f"{PACKAGE}/examples/*.out")))
        self.assertGreater(len(paths), len(NEEDS))
        for path in sorted(paths):
            name = os.path.basename(path)[:-3]
            if NEEDS.get(name, True):
                with self.subTest(name):
                    self.run_example(path)

    @unittest.skipIf(sys.version_info < (3, 12), "asyncio.run() has no loop_factory")
    def test_loop_factory_of_run(self):
        import kevent

        async def main():
            return asyncio.get_running_loop()

        self.assertIsInstance(asyncio.run(main(), loop_factory=kevent.EventLoop),
                              kevent.EventLoop)


if __name__ == "__main__":
    unittest.main()
