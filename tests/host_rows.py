# SPDX-License-Identifier: GPL-2.0
"""What hosts differ in is one list of rows, of which kevent_fallback(7) is the source.

The table of kevent.rst has the same rows. Each has a test in libkevent/test/exceptions whose name
begins with it, and tests of kevent-tests are left out on epoll, or fail on the module, under these
names. The function yields complaints, one line each; tests/check runs it.
"""

import re

from lib.paths import TOP

MOST_ON_EPOLL, MOST_ON_THE_MODULE = 12, 10
# Reasons that are of the machine and not of a host, and none
OF_THE_MACHINE = {"MACHINE", "ROOT", "CALLS", "NULL"}


def rows_of_the_page():
    """Returns the rows, and those that have words on the module."""
    page = (TOP / "libkevent/man/kevent_fallback.7").read_text()
    text = page[page.index(".SS What is different"):page.index(".SS Descriptors")]
    rows = re.split(r"^\.TP\n\.B (\w+)\n", text, flags=re.M)[1:]
    found = dict(zip(rows[::2], rows[1::2]))
    return list(found), {row for row, words in found.items() if ".B Module:" in words}


def rows_of_the_table():
    text = (TOP / "Documentation/kevent.rst").read_text()
    table = text[text.index("Differences between hosts\n==="):]
    body = re.split(r"^=+(?: =+)+\n", table, flags=re.M)[2]
    return re.findall(r"^(\w+) ", body, re.M)


def names_of(path, pattern):
    return re.findall(pattern, (TOP / path).read_text(), re.M)


def everything():
    rows, with_module = rows_of_the_page()
    if len(rows) > MOST_ON_EPOLL:
        yield f"kevent_fallback(7) has {len(rows)} rows, {MOST_ON_EPOLL} are allowed"
    if len(with_module) > MOST_ON_THE_MODULE:
        yield f"{len(with_module)} rows are about the module, {MOST_ON_THE_MODULE} are allowed"
    if rows_of_the_table() != rows:
        yield f"kevent.rst has other rows than kevent_fallback(7): {rows_of_the_table()}"
    shown = {name.split("_")[0] for name in
             names_of("libkevent/test/exceptions/main.c", r'^\t\{ "(\w+)", \w+ \},')}
    for row in sorted(shown ^ set(rows)):
        yield f"libkevent/test/exceptions: no test of row {row}, or no such row"
    left_out = set(names_of("tests/suites/fallback.c", r"^\t\{ \"?(\w+)\"?,")) - OF_THE_MACHINE
    for row in sorted(left_out - set(rows)):
        yield f"tests/suites/fallback.c: {row} is no row of kevent_fallback(7)"
    module = names_of("tests/suites/module.c", r"^\t\{ ALL, \"(\w+)\",$")
    module += names_of("tests/suites/module.c", r'^static const char by_a_thread\[\] = "(\w+)"')
    for row in sorted(set(module) ^ with_module):
        yield f"tests/suites/module.c: {row} is no row with words on the module, or has no tests"
