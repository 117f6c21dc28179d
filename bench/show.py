# SPDX-License-Identifier: GPL-2.0
"""Tables of figures: kevent and the best of its peers."""

import figures


WIDTH = 34			# of labels, at least


def row(label, width, records):
    ours, peer, limit = figures.duel(records)
    if not ours or not peer:
        return None
    ratio, word = figures.verdict(ours, peer)
    values = [figures.number(record["value"]) if record else ""
              for record in (ours, peer, limit)]
    cells = f"  {label:{width}}{values[0]:>10} {ours['mode']:6}" \
        f"{values[1]:>10} {figures.name_of(peer):14}{values[2]:>9} "
    if ratio is None:
        return cells
    pairs = None if ours["icount"] else figures.spread(ours, peer)
    return cells + f"{ratio:6.3f} {word}" + (
        f" ({pairs[0]:.3f} - {pairs[1]:.3f})" if pairs else "")


def by_mode(records):
    """The records once for each mode of kevent, with that mode only."""
    modes = dict.fromkeys(r["mode"] for r in records
                          if r["backend"] == "kevent")
    return [[r for r in records
             if r["backend"] != "kevent" or r["mode"] == mode]
            for mode in modes]


def table(records, each_mode=False, machine="two CPUs"):
    """Print tables with the best mode of kevent, or with each."""
    for (workload, icount), metrics in figures.groups(records).items():
        for metric, points in metrics.items():
            unit = next(iter(points.values()))[0]["unit"]
            labels = [figures.label_of(point, points) for point in points]
            width = max(WIDTH, *map(len, labels))
            rows = [row(label, width, part)
                    for label, group in zip(labels, points.values())
                    for part in (by_mode(group) if each_mode else [group])]
            if any(rows):
                print(f"\n{workload}, {'one CPU' if icount else machine}: "
                      f"{metric}, {unit}")
                print(f"  {'':{width}}{'kevent':>10} {'':6}{'best peer':>10} "
                      f"{'':14}{'bare':>9}  ratio")
                print("\n".join(filter(None, rows)))
