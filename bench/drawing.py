# SPDX-License-Identifier: GPL-2.0
"""Pictures of figures: a bar for each contestant at each point, and a line for its spread."""

import os

from lib import cli
from lib.paths import RESULTS
import figures

os.environ.setdefault("MPLCONFIGDIR", str(RESULTS / "matplotlib"))
try:
    import matplotlib
except ImportError:
    # Debian's matplotlib is for Debian's Python, which is the first line of bench/plot
    cli.die("no matplotlib; install python3-matplotlib")
matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "kevent"
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["axes.spines.top"] = False
matplotlib.rcParams["axes.spines.right"] = False
import matplotlib.pyplot as plt

# A hue for each interface, the same in all pictures
COLOURS = {
    "bare": "0.6",
    "kevent level": "#f4a582", "kevent levelcall": "#fddbc7",
    "kevent copy": "#d6604d",
    "kevent et": "#ca0020", "kevent busy": "#67001f",
    "epoll lt": "#92c5de", "epoll et": "#0571b0",
    "io_uring default": "#a6dba0", "io_uring defer": "#008837",
    "io_uring oneshot": "#00441b",
    "poll level": "#8073ac",
}
NAMES = {"limit none": "bare"}
# Metrics that describe a run or repeat another one stay in the tables.
UNDRAWN = {"read", "batch", "switches", "empty", "replaced", "bytes",
           "99th percentile", "maximum lateness", "all calls",
           "in event calls", "rest", "looking", "unpinned", "two calls"}
DWARFS = 4			# times the median: such a bar is drawn broken
SPREAD = 2			# times the highest bar: the line of a spread ends there
BARS = 30			# of a part, at most, if it can be split
WIDTH, HEIGHT, TITLE, LEGEND = 7, 2.3, 0.3, 0.25	# inches
COLUMNS = 5			# of the legend
TINY, SMALL, MEDIUM = 6.5, 7.5, 9	# points
BETTER = {-1: ", less is better", 1: ", more is better", 0: ""}


def name_of(record):
    name = figures.name_of(record)
    return NAMES.get(name, name.replace("uring", "io_uring"))


def say_nothing(points):
    """Do all contestants have the same number at each point?"""
    return all(max(r["value"] for r in group) - min(r["value"] for r in group)
               <= figures.TIE * abs(group[0]["value"])
               for group in points.values())


def drop_bare(points):
    """Figures above the bare cost are not compared with that, nor the library with itself."""
    for group in points.values():
        group[:] = [r for r in group if r["backend"] not in ("limit", "raw")]


def in_order(points):
    """By source as measured, then by number."""
    sources = list(dict.fromkeys(point[2] for point in points))
    return dict(sorted(points.items(), key=lambda item: (
        item[0][0:2], sources.index(item[0][2]),
        [value or 0 for value in item[0][3:]])))


def tick(point, among):
    """The words in which a point differs from others; its source if alone."""
    words = [f"{key} {point[index]}" if key != "source" else point[index]
             for index, key in enumerate(figures.POINT)
             if len({other[index] for other in among}) > 1]
    return "\n".join(words) or point[figures.POINT.index("source")]


def split(points):
    """Parts with not too many bars: by source, or by idle connections."""
    for index in (figures.POINT.index("source"), figures.POINT.index("idle")):
        if sum(map(len, points.values())) <= BARS:
            break
        values = dict.fromkeys(point[index] for point in points)
        if len(values) < 2:
            continue
        for value in values:
            word = figures.POINT[index]
            yield (str(value) if word == "source" else f"{word} {value}",
                   {point: group for point, group in points.items()
                    if point[index] == value})
        return
    yield "", points


def scale(records):
    """Where bars are broken, and where the axis ends."""
    values = sorted(record["value"] for record in records)
    normal = [value for value in values
              if value <= DWARFS * max(values[len(values) // 2], 0)] or values
    top = max([normal[-1]] + [min(record["max"], SPREAD * normal[-1]) for record in records
                              if record["value"] <= normal[-1]])
    limit = top * 1.12 if values[-1] > top else top
    return limit, limit * (1.45 if values[-1] > top else 1.33)


def draw_bar(axes, place, width, record, limit):
    value, high = record["value"], min(record["max"], limit)
    broken = value > limit
    axes.bar(place, min(value, limit), width * 0.92, label=name_of(record),
             color=COLOURS.get(name_of(record), "black"))
    if broken:
        for at in (0.90, 0.93):
            axes.plot([place - width / 2, place + width / 2],
                      [limit * (at - 0.012), limit * (at + 0.012)],
                      color="white", linewidth=1.5)
    else:
        axes.vlines(place, record["min"], high, colors="black", linewidth=0.8)
    axes.annotate(figures.number(value), (place, max(high, min(value, limit),
                                                     0)),
                  xytext=(0, 2.5), textcoords="offset points", rotation=90,
                  fontsize=SMALL, ha="center", va="bottom")


def draw_part(axes, metric, title, points):
    records = [record for group in points.values() for record in group]
    limit, top = scale(records)
    width = 0.84 / max(map(len, points.values()))
    for position, group in enumerate(points.values()):
        group.sort(key=lambda r: list(COLOURS).index(name_of(r)))
        for number, record in enumerate(group):
            place = position + width * (number - (len(group) - 1) / 2)
            draw_bar(axes, place, width, record, limit)
    unit = records[0]["unit"]
    axes.set_title(", ".join(filter(None, (title, metric))) + f": {unit}"
                   + BETTER[figures.sign(unit)], fontsize=MEDIUM, loc="left")
    axes.set_xticks(range(len(points)),
                    [tick(point, points) for point in points],
                    fontsize=SMALL if len(points) < 8 else TINY)
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_xlim(-0.5, len(points) - 0.5)
    axes.set_ylim(min(0, *(record["min"] for record in records)),
                  top if top > 0 else None)
    return dict(zip(*axes.get_legend_handles_labels()[::-1]))


def parts_of(metrics):
    """(metric, title, points) of each part"""
    for metric, points in metrics.items():
        if metric in UNDRAWN or say_nothing(points):
            continue
        points = in_order(points)
        if metric.endswith(figures.BARE):
            drop_bare(points)
        for title, some in split(points):
            yield metric, title, some


def picture(parts, heading=None):
    """Parts one below the other, with a legend."""
    drawn, axes = plt.subplots(
        len(parts), 1, squeeze=False, layout="constrained",
        figsize=(WIDTH, HEIGHT * len(parts) + TITLE * bool(heading) + 2 * LEGEND))
    legend = {}
    for at, part in zip(axes[:, 0], parts):
        legend.update(draw_part(at, *part))
    if heading:
        drawn.suptitle(heading, fontsize=MEDIUM + 1)
    names = sorted(legend, key=list(COLOURS).index)
    drawn.legend([legend[name] for name in names], names, fontsize=MEDIUM,
                 loc="lower center", frameon=False, ncols=COLUMNS)
    room = LEGEND * -(-len(names) // COLUMNS) / drawn.get_figheight()
    drawn.get_layout_engine().set(rect=(0, room, 1, 1 - room))
    return drawn


def save(drawn, where, suffix):
    """The same figures make the same bytes."""
    drawn.savefig(where, format=suffix, dpi=150,
                  metadata={"Date": None} if suffix == "svg" else None)
