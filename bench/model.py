# SPDX-License-Identifier: GPL-2.0
"""What instructions, system calls and so on cost on a processor, and a check of that.

The time of something is the sum of what it executes, each kind by its cost. The costs
come from calls of the workload units that were measured on the processor and counted
in QEMU.
"""

import json
from typing import NamedTuple

from lib.paths import RESULTS, TOP

PLACE = RESULTS / "native.json"
COUNTS = TOP / "bench/native.counts"
# Kinds that have a cost. An msr has none: the hypervisor's share of it is no property of
# the processor.
COSTS = ("instr", "returns", "calls", "windows", "locked", "switches", "tables")
FITTED = ("instr", "returns", "calls")		# by all of CALLS
EMPTY = "none"
CALLS = ("getppid", "read", "fstat", "stat", "open", "wake", "pipe", "unix", "eventfd",
         "epoll")
# Two that differ by windows, and two that give the costs of a switch
WINDOWS, NO_WINDOWS = "getcpu+2", "getcpu"
THREADS, PROCESSES = "futex-thread", "futex"
# No cost comes from these
ECHOES = ("echo", "epoll-echo")
COUNTED = (EMPTY, NO_WINDOWS, WINDOWS, *CALLS, THREADS, PROCESSES, *ECHOES)
ROUNDS, STEPS = 10, 300


class Model(NamedTuple):
    """Costs in ns."""
    machine: str
    cycle: float		# of a dependent addition
    costs: dict			# {kind: ns}
    checks: dict		# {call: (by the model, measured)}, ns

    def ns(self, numbers):
        return sum(cost * numbers[kind] for kind, cost in self.costs.items())

    def cycles(self, numbers):
        return self.ns(numbers) / self.cycle

    def isolation(self, numbers):
        """Cycles for two more loads of a page table in each call."""
        return 2 * numbers["calls"] * self.costs["tables"] / self.cycle

    def error(self, call):
        predicted, measured = self.checks[call]
        return predicted / measured - 1

    def errors(self):
        found = [self.error(call) for call in self.checks]
        return f"{min(found):+.0%} to {max(found):+.0%}"


def save(model):
    PLACE.write_text(json.dumps(model._asdict()) + "\n")


def load():
    if not PLACE.exists():
        return None
    return Model(**json.loads(PLACE.read_text()))


def load_counts():
    """{call: {kind: number}} as bench/native --count has written them."""
    lines = [line.split() for line in COUNTS.read_text().splitlines()
             if not line.startswith("#")]
    kinds = lines[0][1:]
    return {name: dict(zip(kinds, map(float, numbers))) for name, *numbers in lines[1:]}


class Fit:
    """Finds the costs. Each comes from what the others leave of some calls, so all are
    found again and again until they agree."""

    def __init__(self, ns, counts, calls):
        self.ns, self.counts, self.calls = ns, counts, calls
        self.costs = dict.fromkeys(COSTS, 0)
        self.costs["locked"] = ns["locked"]
        for _ in range(ROUNDS):
            self.fit_most()
            self.costs["windows"] = self.above(WINDOWS, NO_WINDOWS, "windows")
        for kind, call in ("switches", THREADS), ("tables", PROCESSES):
            self.costs[kind] = max(self.rest(call, kind) / counts[call][kind], 0)

    def rest(self, call, but):
        """Of a call, what the costs of all kinds but one do not explain."""
        return self.ns[call] - sum(cost * self.counts[call][kind]
                                   for kind, cost in self.costs.items() if kind != but)

    def above(self, call, less, kind):
        """Of a call above another one, for each of a kind that it has more."""
        return max((self.rest(call, kind) - self.rest(less, kind)) / (
            self.counts[call][kind] - self.counts[less][kind]), 0)

    def fit_most(self):
        """Least squares of the relative errors, without a cost below 0."""
        calls = (EMPTY, *self.calls)
        for _ in range(STEPS):
            for kind in FITTED:
                share = {call: self.counts[call][kind] / self.ns[call] for call in calls}
                self.costs[kind] = max(
                    sum(share[call] * self.rest(call, kind) / self.ns[call]
                        for call in calls) / sum(part ** 2 for part in share.values()), 0)


def make(machine, ns, counts):
    """Each of CALLS is checked by costs to which it has not contributed."""
    model = Model(machine, ns["cycle"], Fit(ns, counts, CALLS).costs, {})
    for call in (*CALLS, *ECHOES):
        others = [other for other in CALLS if other != call]
        model.checks[call] = model._replace(costs=Fit(ns, counts, others).costs).ns(
            counts[call]), ns[call]
    return model
