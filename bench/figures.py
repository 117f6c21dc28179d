# SPDX-License-Identifier: GPL-2.0
"""The lines of bench.json, and what is compared with what."""

import json

POINT = ("workload", "icount", "source", "watches", "threads", "batch",
         "writes", "clients", "idle")		# the last three: not all have them
CONTEST = ("ns", "instructions", "bytes/watch", "wake-ups",
           "calls/request")			# less is better
DETAILS = ("ratio", "calls-of-a-kind/request")	# not for tables and plots
BARE = " above bare"
TIE = 0.01
AHEAD = 1.03			# a peer that is further ahead wins


def load(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def save(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text("".join(json.dumps(record) + "\n" for record in records))
    new.rename(path)


def point_of(record):
    return tuple(record.get(key) for key in POINT)


def label_of(point, among, space=" "):
    """The words in which a point differs from others of its workload."""
    words = []
    counted = point[POINT.index("clients")] is not None	# with idle: watches
    for index, key in enumerate(POINT):
        if key in ("workload", "icount") or counted and key == "watches":
            continue
        if key == "source" or len({other[index] for other in among}) > 1:
            words.append(str(point[index]) if key == "source"
                         else f"{key} {point[index]}")
    return space.join(words)


def name_of(record):
    return f"{record['backend']} {record['mode']}"


def groups(records):
    """{(workload, icount): {metric: {point: [record of each contestant]}}}.

    A figure "above bare" replaces the figure itself.
    """
    found = {}
    for record in records:
        if record["unit"] in DETAILS:
            continue
        kind = record["workload"], record["icount"]
        points = found.setdefault(kind, {}).setdefault(record["metric"], {})
        points.setdefault(point_of(record), []).append(record)
    for metrics in found.values():
        for name in [name for name in metrics if name + BARE in metrics]:
            add_bare(metrics[name + BARE], metrics.pop(name))
    return found


def add_bare(points, plain):
    for point, records in points.items():
        records += [record for record in plain[point]
                    if record["backend"] == "limit"]


def sign(unit):
    """-1: less is better, 1: more is better, 0: neither."""
    if unit.startswith(CONTEST):
        return -1
    return int(unit.endswith(("events/s", "bytes/s", "requests/s")))


def best(records):
    """The best record; its unit says whether more or less is better."""
    if not records:
        return None
    most = sign(records[0]["unit"]) > 0
    return (max if most else min)(records, key=lambda r: r["value"])


def duel(records):
    """(kevent, best peer, limit), each a record or None."""
    ours = [r for r in records if r["backend"] == "kevent"]
    limit = [r for r in records if r["backend"] == "limit"]
    peers = [r for r in records if r["backend"] not in ("kevent", "limit", "raw")]
    return best(ours), best(peers), best(limit)


def verdict(ours, peer):
    """The ratio of the two, and whether kevent wins."""
    if peer["value"] <= 0:
        return None, ""
    ratio = ours["value"] / peer["value"]
    direction = sign(ours["unit"])
    if not direction or abs(ratio - 1) <= TIE:
        return ratio, "tie" if direction else ""
    return ratio, "win" if (ratio > 1) == (direction > 0) else "LOSS"


def spread(ours, peer):
    """Least and greatest ratio of the runs that took turns."""
    pairs = [a / b for a, b in zip(ours["values"], peer["values"]) if b > 0]
    return (min(pairs), max(pairs)) if pairs else None


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
