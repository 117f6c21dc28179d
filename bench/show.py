# SPDX-License-Identifier: GPL-2.0
"""Tables of figures: kevent and the best of its peers."""

import figures


def row(label, records):
    ours, peer, limit = figures.duel(records)
    if not ours or not peer:
        return None
    ratio, word = figures.verdict(ours, peer)
    values = [figures.number(record["value"]) if record else ""
              for record in (ours, peer, limit)]
    cells = f"  {label:34}{values[0]:>10} {ours['mode']:6}" \
        f"{values[1]:>10} {figures.name_of(peer):14}{values[2]:>9} "
    if ratio is None:
        return cells
    pairs = None if ours["icount"] else figures.spread(ours, peer)
    return cells + f"{ratio:6.3f} {word}" + (
        f" ({pairs[0]:.3f} - {pairs[1]:.3f})" if pairs else "")


def table(records):
    for (workload, icount), metrics in figures.groups(records).items():
        for metric, points in metrics.items():
            unit = next(iter(points.values()))[0]["unit"]
            rows = [row(figures.label_of(point, points), group)
                    for point, group in points.items()]
            if any(rows):
                print(f"\n{workload}, {'one CPU' if icount else 'two CPUs'}: "
                      f"{metric}, {unit}")
                print(f"  {'':34}{'kevent':>10} {'':6}{'best peer':>10} "
                      f"{'':14}{'bare':>9}  ratio")
                print("\n".join(filter(None, rows)))
