# SPDX-License-Identifier: GPL-2.0
"""What tests/vm/irqsoff.c says of a stretch with interrupts off."""

import bisect
from collections import Counter

FUNCTIONS = 3


class Symbols:
    """Names of functions by address."""

    def __init__(self, path):
        rows = [line.split() for line in path.read_text().splitlines()]
        rows = sorted((int(row[0], 16), row[2]) for row in rows
                      if row[1] in "tT")
        self.starts = [row[0] for row in rows]
        self.names = [row[1] for row in rows]

    def name(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 else "user"


def where(symbols, words):
    """The code around the stretch, and the functions with most instructions."""
    before, after, *places = words
    sums = Counter()
    for place in places:
        address, number = place.split(":")
        sums[symbols.name(int(address, 16))] += int(number)
    names = ", ".join(name for name, _ in sums.most_common(FUNCTIONS))
    return f"{symbols.name(int(before, 16))} to " \
        f"{symbols.name(int(after, 16))}: {names}"
