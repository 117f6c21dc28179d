# SPDX-License-Identifier: GPL-2.0
"""Folders of this tree, and those of what is built from it."""

import os
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD") or TOP / "build").resolve()
LOG = BUILD / "log"
RESULTS = BUILD / "results"
LINUX = BUILD / "linux"		# a folder for each configuration of the kernel


def make_folders(*folders):
    """Create the folders that every program may write to, and those; BUILD must be ours."""
    if subprocess.run([TOP / "scripts/build-folder", BUILD], check=False).returncode:
        sys.exit(1)
    for folder in (LOG, RESULTS, *folders):
        folder.mkdir(parents=True, exist_ok=True)
