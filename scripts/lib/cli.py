# SPDX-License-Identifier: GPL-2.0
"""How a program ends."""

import sys
from pathlib import Path

from . import paths


def name():
    """The program, as it is called from the top of the tree."""
    path = Path(sys.argv[0]).resolve()
    if path.is_relative_to(paths.TOP):
        path = path.relative_to(paths.TOP)
    return str(path)


def die(message):
    """Exit with status 1 after one line on stderr."""
    sys.exit(f"{name()}: {message}")


def usage():
    """Exit with status 1 after the description of the program on stderr."""
    sys.exit(sys.modules["__main__"].__doc__.strip())


def unknown(what, names, known):
    """Exit with an error if a name is not one of the known ones."""
    wrong = [word for word in names if word not in known]
    if wrong:
        die(f"no {what} {' '.join(wrong)}; there are: {' '.join(known)}")


def run(main, *arguments):
    """Exit with the status that main() returns; Ctrl-C prints no traceback.

    With --help alone, print the description of the program instead.
    """
    if arguments in (("--help",), ("-h",)):
        print(sys.modules["__main__"].__doc__.strip())
        sys.exit()
    try:
        sys.exit(main(*arguments))
    except KeyboardInterrupt:
        sys.exit(130)
