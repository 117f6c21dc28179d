# SPDX-License-Identifier: GPL-2.0
"""For which kernels the module is built: what kernel/module/compat.h says of each.

Only the preprocessor runs. Headers of the kernel are empty here.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from lib.paths import TOP

COMPAT = TOP / "kernel/module/compat.h"
GOOD = ("LTO_NONE", "DYNAMIC_FTRACE", "HAVE_DYNAMIC_FTRACE_WITH_ARGS")
RANGE = "The module is for Linux 6.1, and for 6.12 to 7.3."
# (version, options, the error or nothing)
CASES = (
    *(((*version, 255), GOOD, RANGE) for version in ((5, 15), (6, 0), (6, 2), (6, 11), (7, 4))),
    *(((*version, 0), GOOD, "") for version in ((6, 1), (6, 12), (7, 3))),
    ((6, 12, 0), GOOD[1:], "LTO may inline the function whose calls tell of a close."),
    ((6, 12, 0), (*GOOD, "PREEMPT_RT"),
     "The hook of close() cannot take the locks of a kernel with PREEMPT_RT."),
    ((6, 12, 0), GOOD[:1] + GOOD[2:], "The module needs ftrace with arguments."),
    ((6, 12, 0), GOOD[:2], "The module needs ftrace with arguments."),
    ((6, 12, 0), (*GOOD, "KEVENT"), "This kernel has kevent."))


def errors(folder, version, options):
    """What the preprocessor says of a kernel."""
    done = subprocess.run(
        ["gcc", "-E", "-nostdinc", f"-I{folder}", "-o", "/dev/null",
         "-DKERNEL_VERSION(a,b,c)=((a)*65536+(b)*256+(c))",
         f"-DLINUX_VERSION_CODE=KERNEL_VERSION{version}".replace(" ", ""),
         *(f"-DCONFIG_{option}=1" for option in options), COMPAT],
        stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return re.findall(r'error: #error "(.*)"', done.stderr) or done.stderr.splitlines()


def run(results):
    with tempfile.TemporaryDirectory() as folder:
        for name in re.findall(r"^#include <(.*)>", COMPAT.read_text(), re.M):
            header = Path(folder, name)
            header.parent.mkdir(parents=True, exist_ok=True)
            header.touch()
        for version, options, wanted in CASES:
            said = errors(folder, version, options)
            results.note(f"versions {version} {options}", said if said != [wanted] * bool(wanted)
                         else [])
    return results
