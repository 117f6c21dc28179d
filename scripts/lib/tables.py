# SPDX-License-Identifier: GPL-2.0
"""Simple tables of reStructuredText, and figures that must be in one."""

import re

RULE = r"=+(?: +=+)+\n"


def tables(text, head):
    """Those whose first line begins with these words."""
    words = r" +".join(map(re.escape, head.split()))
    return re.findall(rf"^{RULE}{words} .*\n(?:.+\n)*?{RULE}(?:.+\n)*?{RULE}", text, re.M)


class Table:
    """The rows of the one table with this head, each a list of cells."""

    def __init__(self, text, head):
        found = tables(text, head)
        if len(found) != 1:
            raise ValueError(f"{len(found)} tables '{head}'")
        lines = found[0].splitlines()
        starts = [match.start() for match in re.finditer("=+", lines[0])]
        spans = list(zip(starts, [*starts[1:], None]))
        body = lines[lines.index(lines[0], 1) + 1:-1]
        self.rows = [[line[a:b].strip() for a, b in spans] for line in body]

    def row(self, label):
        """The one that begins so."""
        row, = (row for row in self.rows if row[0].startswith(label))
        return row


def missing(text, source):
    """The figures in text that source does not have."""
    return [figure for figure in re.findall(r"\b\d+\.\d+\b|\b\d{3,}\b", text)
            if not re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", source)]
