# SPDX-License-Identifier: GPL-2.0
"""For which kernels the module is built: what kernel/module/compat.h says of each.

Only the preprocessor runs. Headers of the kernel are empty here.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from lib import report
from lib.paths import TOP

COMPAT = TOP / "kernel/module/compat.h"
GOOD = ("CONFIG_LTO_NONE", "CONFIG_DYNAMIC_FTRACE", "CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS")
RANGE = "The module is for Linux 6.1, and for 6.12 to 7.3."
# (name, version, options, the error or nothing)
CASES = (
    ("5.15", (5, 15, 200), GOOD, RANGE),
    ("6.0", (6, 0, 255), GOOD, RANGE),
    ("6.1", (6, 1, 0), GOOD, ""),
    ("6.12", (6, 12, 255), GOOD, ""),
    ("6.2", (6, 2, 0), GOOD, RANGE),
    ("6.11", (6, 11, 255), GOOD, RANGE),
    ("7.3", (7, 3, 255), GOOD, ""),
    ("7.4", (7, 4, 0), GOOD, RANGE),
    ("lto", (6, 12, 0), GOOD[1:], "LTO may inline the function whose calls tell of a close."),
    ("preempt_rt", (6, 12, 0), (*GOOD, "CONFIG_PREEMPT_RT"),
     "The hook of close() cannot take the locks of a kernel with PREEMPT_RT."),
    ("no_ftrace", (6, 12, 0), GOOD[:1] + GOOD[2:], "The module needs ftrace with arguments."),
    ("no_arguments", (6, 12, 0), GOOD[:2], "The module needs ftrace with arguments."),
    ("kevent", (6, 12, 0), (*GOOD, "CONFIG_KEVENT"), "This kernel has kevent."))


def errors(folder, version, options):
    """What the preprocessor says of a kernel."""
    a, b, c = version
    done = subprocess.run(
        ["gcc", "-E", "-nostdinc", f"-I{folder}", "-o", "/dev/null",
         "-DKERNEL_VERSION(a,b,c)=((a)*65536+(b)*256+(c))",
         f"-DLINUX_VERSION_CODE=KERNEL_VERSION({a},{b},{c})",
         *(f"-D{option}=1" for option in options), COMPAT],
        stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    found = re.findall(r'error: #error "(.*)"', done.stderr)
    return found or ([done.stderr] if done.returncode else [])


def run(results):
    with tempfile.TemporaryDirectory() as folder:
        for name in re.findall(r"^#include <(.*)>", COMPAT.read_text(), re.M):
            header = Path(folder, name)
            header.parent.mkdir(parents=True, exist_ok=True)
            header.touch()
        results.line(f"1..{len(CASES)}")
        for number, (name, version, options, wanted) in enumerate(CASES, 1):
            results.line(f"{report.RUN}versions.{name}")
            said = errors(folder, version, options)
            results.diagnostics = said
            ok = said == [wanted] * bool(wanted)
            results.line(f"{'ok' if ok else 'not ok'} {number} versions.{name}")
    results.end(0, [])
    return results
