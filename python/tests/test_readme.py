# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The program of the README does what the README says."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

PACKAGE = os.path.abspath(f"{__file__}/../..")


class Readme(unittest.TestCase):

    def test_program(self):
        with open(f"{PACKAGE}/README.md", encoding="utf-8") as file:
            _, program, output, *_ = re.findall(
                r"(?:^    .*\n)(?:^    .*\n|^\n)*", file.read(), re.M)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("\n".join(line[4:] for line in program.split("\n")))
            file.flush()
            done = subprocess.run([sys.executable, file.name], text=True,
                                  stdout=subprocess.PIPE, timeout=100,
                                  check=True, env={**os.environ,
                                                   "PYTHONPATH": PACKAGE})
        self.assertEqual(done.stdout.split("\n")[:-1],
                         [line[4:] for line in output.strip("\n").split("\n")])


if __name__ == "__main__":
    unittest.main()
