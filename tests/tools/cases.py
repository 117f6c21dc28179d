# SPDX-License-Identifier: GPL-2.0
"""Cases of files *.cases: commands of a shell, and what they must say.

A case begins with its name, a colon and words about it. A line "$ COMMAND" must succeed, one with
"!" must fail, and one with a number ends with that status; a backslash at its end continues it.
Behind " => " and in indented lines are patterns. The output has to have them in this order, with
" ... " between two of a line, and no traceback. What is above the first case stands before each
command, and the commands of the case "begin" are the first ones of every case.

Commands run in the tree. HERE is a folder for the case, OURS what was built from the tree.
"""

from concurrent.futures import ThreadPoolExecutor
import os
import re
import subprocess
import tempfile
from pathlib import Path

from lib.paths import BUILD, LOG, TOP

SECONDS, OVER = "600", 124	# for each command, and the status of one that has not ended


def read(path):
    """Lines for all commands, and a list [status, command, patterns] for each case."""
    shell, *parts = re.split(r"^(?=\w+: )", path.read_text().replace("\\\n", ""), flags=re.M)
    cases = {}
    for head, *lines in (filter(None, part.splitlines()) for part in parts):
        steps = cases[head.partition(":")[0]] = []
        for line in lines:
            command, _, words = line.partition("\t" if line.startswith("\t") else " => ")
            if command:
                steps.append([*command.split(" ", 1), []])
            steps[-1][2].extend(filter(None, words.split(" ... ")))
    return shell, cases


def problems(status, patterns, done):
    """What is wrong with an exit status and an output."""
    found, at = done.returncode, 0
    if found in (0, OVER) if status == "!" else found != int(status.replace("$", "0")):
        yield f"exit status {found}"
    for pattern in patterns:
        match = re.compile(pattern, re.M).search(done.stdout, at)
        if match:
            at = match.end()
        else:
            yield f"no {pattern!r}"
    if "Traceback" in done.stdout:
        yield "a traceback"


def try_case(name, shell, steps):
    """What is wrong with the first command that is not as it must be, and what it said."""
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=LOG) as folder:
        variables = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "TOP": str(TOP),
                     "HERE": folder, "OURS": str(BUILD)}
        for status, command, patterns in steps:
            done = subprocess.run(["timeout", SECONDS, "sh", "-c", shell + command], cwd=TOP,
                                  env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", check=False)
            if found := list(problems(status, patterns, done)):
                return [command, *found, *done.stdout.splitlines()[-40:]]
    return []


def run(results, at_once=1):
    """The cases of the file that has the name of the report."""
    shell, cases = read(Path(__file__).with_name(f"{results.name}.cases"))
    begin = cases.pop("begin")
    with ThreadPoolExecutor(at_once) as pool:
        for name, found in zip(cases, pool.map(
                lambda name: try_case(name, shell, begin + cases[name]), cases)):
            results.note(f"{results.name}.{name}", found)
    return results
