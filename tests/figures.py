# SPDX-License-Identifier: GPL-2.0
"""Figures have one source: the tables of Documentation/benchmarks.rst and its like.

What is said of them elsewhere, in the README, in other documents, in the cover letter and in
the words of benchmarks.rst itself, is computed from these tables here and compared. A figure of
the README's tables that is not compared is a complaint, too. Each function yields complaints, one
line each; tests/check runs them.
"""

import re
import statistics

from lib.paths import TOP
from lib.tables import Table, missing

BENCHMARKS = TOP / "Documentation/benchmarks.rst"
README, LANES = TOP / "README.md", TOP / "Documentation/lanes.rst"
NATIVE = TOP / "Documentation/benchmarks-native.rst"
PROGRAMS, MODULE = TOP / "Documentation/benchmarks-programs.rst", TOP / "Documentation/module.rst"
PROCESSES, HOSTS = (TOP / f"Documentation/guide/{name}.rst" for name in ("processes", "hosts"))
LETTER = TOP / "patches/series/cover-letter.txt"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def numbers(cell):
    return [float(word) for word in NUMBER.findall(cell)]


def ratio(a, b):
    return f"{a / b:.2f}"


def least_and_most(values):
    return f"{min(values):.2f}", f"{max(values):.2f}"


def of_notify(text):
    rows = Table(text, "notify batch bare").rows
    et = [float(row[3]) / min(map(float, row[5:9])) for row in rows]
    level = max(float(row[4]) / float(row[6]) for row in rows)
    copy = [[a / b for a, b in zip(numbers(row[3]), numbers(row[2]))]
            for row in Table(text, "calls levelcall").rows]
    yield "et", least_and_most(et)
    yield "pipe, single", (rows[0][3], rows[0][5])
    yield "pipe, bare", (rows[0][2],)
    yield "pipe, single, ratio", (ratio(float(rows[0][3]), float(rows[0][5])),)
    yield "level", (f"{level:.2f}",)
    yield "copy of pipes", least_and_most(copy[0])
    yield "copy of sockets", least_and_most(copy[1] + copy[2])


def of_watches(text):
    bytes_of = Table(text, "idle kevent et").row("a watch of a million")
    yield "bytes", (bytes_of[1], bytes_of[3], bytes_of[5])
    yield "bytes of two", (bytes_of[1], bytes_of[3])
    adds = [row for row in Table(text, "ctl kevent").rows if row[0] == "ADD"]
    yield "ADD", least_and_most([a / b for row in adds for a, b in
                                 zip(numbers(row[1]), numbers(row[3]))])
    yield "ADD of a pipe", (str(int(numbers(adds[0][1])[0])), str(int(numbers(adds[0][3])[0])))
    yield "MODIFY", tuple(ratio(numbers(row[1])[0], numbers(row[2])[0])
                          for row in Table(text, "ctl kevent").rows if row[0] == "MODIFY")


def of_threads(text):
    wake = Table(text, "wake kevent").row("pipe")
    yield "wake", (wake[1], wake[2], wake[4])
    above = [float(row[2]) / float(row[4]) for row in Table(text, "round bare").rows]
    yield "round", tuple(f"{value:.2f}" for value in above)
    yield "round, range", least_and_most(above)
    single = [float(row[1]) / float(row[2]) for row in Table(text, "herd kevent").rows
              if row[0].startswith("1 event")]
    yield "herd", (f"{statistics.median(single):.2f}",)


def of_timers(text):
    fire = [float(cell) for cell in Table(text, "timers 100,000").row("fire")[1:]]
    yield "fire", (ratio(fire[0], fire[1]), ratio(fire[2], fire[3]))
    yield "fire in order", (str(int(fire[0])), str(int(fire[1])))


def of_lanes(text):
    table = Table(text, "for each lane")
    awake, asleep = table.row("message, both"), table.row("message, receiver")
    answer = table.row("request and answer")
    yield "lane awake", (awake[1],)
    yield "lane asleep", (asleep[1],)
    yield "unix awake", (awake[2],)
    yield "unix asleep", (asleep[2],)
    yield "ipc", (ratio(float(asleep[1]), float(asleep[2])),
                  ratio(float(answer[1]), float(answer[2])))


def of_lighttpd(text):
    cost = {row[0]: row[3] for row in Table(text, "load server").rows}
    few = cost.pop("keep 100")
    yield "cost", (min(cost.values()), max(cost.values()))
    yield "cost of few", (few,)
    rows = Table(text, "clients, idle kevent").rows
    rates, times = ([numbers(row[column])[0] for row in rows] for column in (3, 6))
    yield "rate", (f"{statistics.median(rates):.2f}",)
    yield "CPU", (f"{statistics.median(times):.2f}",)
    yield "worse rate", (str(sum(value < 1 for value in rates)),)
    yield "worse CPU", (str(sum(value > 1 for value in times)),)
    yield "loads", (str(len(rows)),)
    values = [numbers(row[6])[0] for row in Table(text, "clients kevent epoll").rows]
    yield "slowest", (f"{statistics.median(values):.2f}",)
    yield "slowest, range", least_and_most(values)
    yield "slowest, loads", (str(len(values)),)
    yield "worse slowest", (str(sum(value > 1 for value in values)),)


def of_native(text):
    event = Table(text, "\\ kevent epoll kevent").row("notify, 1: et")
    yield "library, single", (event[3].split()[0],)
    table = Table(text, "\\ ns min")
    asleep = table.row("to a process that sleeps")
    awake = (table.row("one way to another CPU")[1],)
    asleep = (asleep[1], asleep[4].split()[0])
    yield "message awake", awake
    yield "message asleep", asleep
    yield "message", awake + asleep


def of_module(text):
    row = Table(text, "stock batch bare").rows[0]
    yield "module, single", (ratio(float(row[4]), float(row[6])),)


def of_tool(text):
    rows = {(row[0], row[1]): row for row in Table(text, "CPUs point plain/s").rows}
    redis = rows["one", "redis/50/1"]
    yield "redis rate", (redis[6].split()[0],)
    yield "redis CPU", (redis[7].split()[0],)
    yield "PostgreSQL", least_and_most([float(row[6].split()[0]) for (_, point), row in rows.items()
                                        if point in ("pgbench/10", "pgbench/20")])


PARTS = ((BENCHMARKS, of_notify, of_watches, of_threads, of_timers, of_lanes, of_lighttpd),
         (NATIVE, of_native), (MODULE, of_module), (PROGRAMS, of_tool))


def facts(path, parts):
    text = path.read_text()
    return dict(fact for part in parts for fact in part(text))


# Where a figure is said: a file, the words with # for each number, and the facts in that order
SAID = (
    (README, "the patched kernel | # instructions; epoll #", "pipe, single"),
    (README, "The write and the read take # instructions", "pipe, bare"),
    (README, "epoll is 1 | # of the time | # of the instructions | # of the instructions",
     "library, single", "module, single", "pipe, single, ratio"),
    (README, "the patched kernel | # bytes; epoll #", "bytes of two"),
    (README, "any host | # ns", "message awake"),
    (README, "If the receiver sleeps, a message takes # ns, # of AF_UNIX", "message asleep"),
    (README, "serves 50 clients # times the requests of sockets", "redis rate"),
    (README, "PostgreSQL with 10 or 20 clients has # to # times, and less than 1", "PostgreSQL"),
    (README, "lighttpd on two CPUs has # of epoll's requests per second, the median of # loads, "
     "and fewer at # of them", "rate", "loads", "worse rate"),
    (PROCESSES, "redis serves # times the requests per second, with # of the CPU time",
     "redis rate", "redis CPU"),
    (PROCESSES, "10 and 20 clients has # to # of its rate", "PostgreSQL"),
    (PROCESSES, "takes # ns from one CPU to another while both sides are awake. If the receiver "
     "sleeps, it takes # ns, # of AF_UNIX", "message"),
    (HOSTS, "with epoll itself: # of its time", "library, single"),
    (BENCHMARKS, "an edge event, `notify`_ # to # faster", "et"),
    (BENCHMARKS, "at most # of epoll lt faster", "level"),
    (BENCHMARKS, "without a ring # to # of epoll slower lt; pipes # to #",
     "copy of sockets", "copy of pipes"),
    (BENCHMARKS, "`idle`_ # bytes; epoll #, smaller io_uring #", "bytes"),
    (BENCHMARKS, "adding a watch, `ctl`_ # to #", "ADD"),
    (BENCHMARKS, "modifying a watch #, # one by one", "MODIFY"),
    (BENCHMARKS, "pipe: #; epoll #, faster than epoll, slower than poll #", "wake"),
    (BENCHMARKS, "`round`_ #, #, #", "round"),
    (BENCHMARKS, "`herd`_ #;", "herd"),
    (BENCHMARKS, "to fire #, #", "fire"),
    (BENCHMARKS, "`ipc`_ # and # of AF_UNIX", "ipc"),
    (BENCHMARKS, "lighttpd: instructions # to #; 100 kept less; more with 100 kept "
     "connections: #", "cost", "cost of few"),
    (BENCHMARKS, "lighttpd: requests per second #, median of # loads more; less at # loads",
     "rate", "loads", "worse rate"),
    (BENCHMARKS, "lighttpd: CPU time #, median of # loads less; more at # load", "CPU", "loads",
     "worse CPU"),
    (BENCHMARKS, "lighttpd: slowest of 100 requests #, median of # loads earlier; later at # "
     "load", "slowest", "slowest, loads", "worse slowest"),
    (BENCHMARKS, "level takes at most # of epoll lt", "level"),
    (BENCHMARKS, "a message costs # of AF_UNIX with epoll, and a round trip #", "ipc"),
    (BENCHMARKS, "the median of the # points is # times the rate of epoll, and # of its CPU "
     "time", "loads", "rate", "CPU"),
    (BENCHMARKS, "take # to # of epoll's time, in the median #", "slowest, range", "slowest"),
    (BENCHMARKS, "The rate is below epoll's at # points", "worse rate"),
    (BENCHMARKS, "a timer takes # times as much to fire as io_uring's in order, and # times",
     "fire"),
    (LANES, "A message of 32 bytes takes # instructions for sender and receiver together",
     "lane awake"),
    (LANES, "a socket of AF_UNIX take #.", "unix awake"),
    (LANES, "receiver sleeps, # instructions pass", "lane asleep"),
    (LANES, "AF_UNIX with epoll takes #.", "unix asleep"),
    (LANES, "a return, here # instructions", "lane asleep"),
    (LANES, "cheaper one, with # instructions", "lane awake"),
    (LETTER, "A watch takes # bytes, with epoll #, with io_uring #", "bytes"),
    (LETTER, "lighttpd has # times the requests per second of epoll with # of its CPU time, as "
     "medians of # points; at # of them", "rate", "CPU", "loads", "worse rate"),
    (LETTER, "on a pipe # instructions against #", "wake of a thread"),
    (LETTER, "pays # to # times what it does with epoll lt on pipes", "copy of pipes"),
    (LETTER, "Adding a watch takes #, with io_uring #", "ADD of a pipe"),
    (LETTER, "A timer that fires takes # instructions there, with io_uring #", "fire in order"),
)


def plain(path):
    """Its words in one line, without what makes them bold or a column."""
    return " ".join(path.read_text().replace("**", "").split())


def pattern_of(words):
    pattern = r"(\d[\d.]*?)".join(map(re.escape, words.split("#")))
    if words.endswith("#"):
        pattern += r"(?![\d.]*\d)"
    return re.compile(rf"{pattern}(?!\d)", re.I)


def said_wrongly(place, known, text):
    path, words, *names = place
    wanted = tuple(value for name in names for value in known[name])
    found = [match if isinstance(match, tuple) else (match,)
             for match in pattern_of(words).findall(text)]
    if found != [wanted]:
        return f"{path.name}: {words!r} is {found}, and by its table {wanted}"
    return None


def not_compared(text):
    """Figures in the tables of the README that are in no place of SAID."""
    tables = text[text.index("a single edge event"):text.index("A server gains")]
    for path, words, *_ in SAID:
        if path == README:
            tables = pattern_of(words).sub("", tables)
    return NUMBER.findall(tables)


def everything():
    known = {}
    for path, *parts in PARTS:
        known |= facts(path, parts)
    known["slowest, most"] = known["slowest, range"][1:]
    known["wake of a thread"] = known["wake"][::2]
    texts = {path: plain(path) for path, *_ in SAID}
    yield from filter(None, (said_wrongly(place, known, texts[place[0]]) for place in SAID))
    for figure in not_compared(texts[README]):
        yield f"{README.name}: {figure} is in a table, and no place in SAID of tests/figures.py"
    for figure in missing(LETTER.read_text(), BENCHMARKS.read_text()):
        yield f"{LETTER.name}: {figure} is not in benchmarks.rst"
