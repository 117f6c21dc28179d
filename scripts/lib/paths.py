# SPDX-License-Identifier: GPL-2.0
"""Folders of this tree, and those of what is built from it."""

import os
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD") or TOP / "build").resolve()
LOG = BUILD / "log"
RESULTS = BUILD / "results"
LINUX = BUILD / "linux"		# a folder for each configuration of the kernel


def make_folders():
    """Create the folders that every program may write to."""
    for folder in (LOG, RESULTS):
        folder.mkdir(parents=True, exist_ok=True)
