# SPDX-License-Identifier: GPL-2.0
"""Delta debugging as in tests/long/fuzz/minimise.c, for what fails in a VM."""


def minimise(calls, fails):
    """The fewest of some calls with which fails(calls) still is true.

    Blocks are left out, half as long each time, until no single call can be. No set
    is tried twice.
    """
    tried, some = set(), True
    while some:
        some = False
        block = (len(calls) + 1) // 2
        while block:
            first = 0
            while first < len(calls):
                less = calls[:first] + calls[first + block:]
                if less and tuple(less) not in tried and fails(less):
                    calls, some = less, True
                else:
                    first += block
                tried.add(tuple(less))
            block //= 2
    return calls


def words_of(calls):
    """Calls, each a thread and a number, as --only has them: a mask for each thread."""
    masks = [0] * (1 + max((thread for thread, _ in calls), default=0))
    for thread, number in calls:
        masks[thread] |= 1 << number
    return ",".join(map(hex, masks))


def check(checks):
    """Failures that need two calls, one, or all, and one that no call makes."""
    calls = [(thread, number) for thread in range(3) for number in range(40)]
    for wanted in ([(0, 39), (2, 1)], [(1, 0)], calls):
        found = minimise(calls, set(wanted).issubset)
        checks.result(found == wanted, f"{len(wanted)} calls of 120 are found")
    checks.result(len(minimise(calls, lambda less: True)) == 1,
                  "a failure without calls ends with one")
    checks.result(words_of([(0, 1), (2, 0), (2, 3)]) == "0x2,0x0,0x9",
                  "a mask for each thread")
