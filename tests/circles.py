#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Find files that call one another in a circle, by the symbols of their objects.

usage: tests/circles.py FOLDER [SYMBOL]...

A file is above another one if its object has an undefined symbol that the other one defines.
What the linker resolves counts, whatever headers say. Functions of headers are code of each
file that calls them. SYMBOLs are tables of methods, which files below know by a declaration
and files above define: they do not count. Prints each circle, and what closes it.

A reader opens a .c with the .h of its name. pair_circles() finds circles of such pairs, where
an include is an arrow as well.

Exit status 0: none.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from lib import cli


def objects(folder, sources=None):
    """
    The objects below a folder by name, but for those of a shared library; with sources only
    those of a file that is there.
    """
    found = {str(path.relative_to(folder))[:-len(".o")]: path
             for path in sorted(Path(folder).rglob("*.o"))}
    return {name: path for name, path in found.items()
            if not name.endswith(".pic") and
            (not sources or (Path(sources) / f"{name}.c").is_file())}


def symbols(path):
    """The global symbols of an object that it defines, with their types, and its others."""
    text = subprocess.run(["nm", "-P", path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    kinds = dict(re.findall(r"^(\S+) (\w)\b", text, re.M))
    return ({name: kind for name, kind in kinds.items() if kind in "ABCDGRSTVW"},
            {name for name, kind in kinds.items() if kind in "Uvw"})


def edges(files, tables=()):
    """Which file needs which other one, and by which symbols; and complaints of tables."""
    of = {name: symbols(path) for name, path in files.items()}
    where = {symbol: name for name, (defined, _) in of.items() for symbol in defined}
    graph = defaultdict(lambda: defaultdict(set))
    for name, (_, wanted) in of.items():
        for symbol in wanted - set(tables):
            if where.get(symbol, name) != name:
                graph[name][where[symbol]].add(symbol)
    wrong = []
    for table in tables:
        kind = of[where[table]][0][table] if table in where else None
        if not kind:
            wrong.append(f"{table}: no file has this table")
        elif kind in "TVW":
            wrong.append(f"{table} is a function, and no table")
    return graph, wrong


def reach(graph, start):
    seen, left = set(), [start]
    while left:
        for other in graph[left.pop()].keys() - seen:
            seen.add(other)
            left.append(other)
    return seen


def circles(graph):
    """Sets of files of which each needs all others."""
    below = {name: reach(graph, name) for name in list(graph)}
    left = {name for name, others in below.items() if name in others}
    while left:
        name = min(left)
        found = {other for other in below[name] if name in below.get(other, ())}
        yield found
        left -= found


def complaints(files, tables=()):
    """One line for each circle, and for each arrow in it; and for tables that are none."""
    graph, wrong = edges(files, tables)
    yield from wrong
    for found in circles(graph):
        yield f"{len(found)} files in a circle: {' '.join(sorted(found))}"
        for name in sorted(found):
            for other in sorted(graph[name].keys() & found):
                yield f"  {name} -> {other}: {' '.join(sorted(graph[name][other]))}"


def add_includes(graph, sources):
    """
    An arrow from each file below a folder to those it includes, without .c and .h. They are found
    from the folder of the file or, as by cc -I, from that of all.
    """
    names = {path.relative_to(sources).as_posix(): path.read_text()
             for path in sorted(Path(sources).rglob("*.[ch]"))}
    for name, text in names.items():
        for other in re.findall(r'^#include "(\S+)"', text, re.M):
            near = os.path.normpath(os.path.join(os.path.dirname(name), other))
            other = near if near in names else other
            if other in names and other[:-2] != name[:-2]:
                graph[name[:-2]][other[:-2]].add(f"included by {os.path.basename(name)}")


def pair_circles(files, sources, tables, known):
    """
    Lines as of complaints(), for circles of pairs that are not known, and known ones gone. A
    circle is known by its pairs, or by their folders.
    """
    graph, _ = edges(files, tables)
    add_includes(graph, sources)
    found = {frozenset(circle): frozenset(map(os.path.dirname, circle))
             for circle in circles(graph)}
    for pairs, folders in found.items():
        if pairs not in known and folders not in known:
            yield f"{len(pairs)} pairs of .c and .h in a circle: {' '.join(sorted(pairs))}"
            for name in sorted(pairs):
                for other in sorted(graph[name].keys() & pairs):
                    yield f"  {name} -> {other}: {' '.join(sorted(graph[name][other]))}"
    for pairs in known:
        if pairs not in found and pairs not in found.values():
            yield f"no circle any more: {' '.join(sorted(pairs))}"


def main(*arguments):
    if not arguments:
        cli.usage()
    folder, *tables = arguments
    files = objects(folder)
    if not files:
        cli.die(f"{folder} has no objects")
    found = list(complaints(files, tables))
    print("\n".join(found) if found else f"{len(files)} files, no circle")
    return 1 if found else 0


if __name__ == "__main__":
    cli.run(main, *sys.argv[1:])
