# SPDX-License-Identifier: GPL-2.0
"""Figures have one source: the tables of Documentation/benchmarks.rst, and few others.

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
MODULE, NATIVE = TOP / "Documentation/module.rst", TOP / "Documentation/benchmarks-native.rst"
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
    yield "level", (f"{level:.2f}",)
    yield "copy of pipes", least_and_most(copy[0])
    yield "copy of sockets", least_and_most(copy[1] + copy[2])


def of_watches(text):
    bytes_of = Table(text, "idle kevent et").row("a watch of a million")
    yield "bytes", (bytes_of[1], bytes_of[3], bytes_of[5])
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


# What words say and no table has
WORDS = {"single client": (BENCHMARKS, r"A single client has ([\d.]+)"),
         "futex word": (MODULE, r"A word takes ([\d.]+) times the thread with an eventfd"),
         "POSIX timer": (MODULE, r"A POSIX timer is ([\d.]+) times as late as a timerfd"),
         "time on epoll": (NATIVE, r"takes ([\d.]+) times epoll's time .* in batches of 16 ([\d.]+)")}


def more(times):
    return f"{100 * (float(times) - 1):.0f}"


def of_words():
    for name, (path, pattern) in WORDS.items():
        match = re.search(pattern, plain(path))
        yield name, match.groups() if match else ("no words",)


def of_epoll(text):
    """What the library's queues take on epoll, in percent more."""
    table = Table(text, "instructions kevent epoll")
    yield "on epoll", tuple(more(table.row(f"notify, {batch}: et")[3]) for batch in (16, 1))


def facts(text):
    parts = (of_notify, of_watches, of_threads, of_timers, of_lanes, of_lighttpd)
    known = dict(fact for part in parts for fact in part(text))
    known.update(of_words())
    known.update(of_epoll(NATIVE.read_text()))
    known["time on epoll"] = tuple(map(more, reversed(known["time on epoll"])))
    known["slowest, most"] = known["slowest, range"][1:]
    known["wake of a thread"] = known["wake"][::2]
    return known


# Where a figure is said: a file, the words with # for each number, and the facts in that order
SAID = (
    (README, "an edge event | # to # of the instructions", "et"),
    (README, "memory of a watch | # bytes; epoll #, io_uring #", "bytes"),
    (README, "1000 clients or more | # to # of epoll's", "cost"),
    (README, "lighttpd on two CPUs | # of epoll's requests per second, # of its CPU time, "
     "medians of # loads", "rate", "CPU", "loads"),
    (README, "slowest of 100 requests | # of epoll's time, median of # loads",
     "slowest", "slowest, loads"),
    (README, "| # to # of epoll's instructions on pipes, # to # on sockets",
     "copy of pipes", "copy of sockets"),
    (README, "sleep on one queue | # of epoll's", "herd"),
    (README, "one by one | # to # of epoll's", "round, range"),
    (README, "adding a watch | # to # of io_uring's", "ADD"),
    (README, "timers that expire | # and # of io_uring's", "fire"),
    (README, "fewer requests per second at # of # loads, and # with a single client", "worse rate",
     "loads", "single client"),
    (README, "a futex word takes # of the instructions of a thread with an eventfd, a POSIX timer "
     "has # of the lateness of a timerfd", "futex word", "POSIX timer"),
    (README, "# % more instructions than with epoll in batches of 16, # % more one by one, and # % "
     "and # % more time", "on epoll", "time on epoll"),
    (README, "slowest of 100 requests | up to # of epoll's time at # of # loads", "slowest, most", "worse slowest",
     "slowest, loads"),
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
        return f"{path.name}: {words!r} is {found}, and by benchmarks.rst {wanted}"
    return None


def not_compared(text):
    """Figures in the tables of the README that are in no place of SAID."""
    tables = text[text.index("Gains, on"):text.index("A server gains")]
    for path, words, *_ in SAID:
        if path == README:
            tables = pattern_of(words).sub("", tables)
    return NUMBER.findall(tables)


def everything():
    text = BENCHMARKS.read_text()
    known = facts(text)
    texts = {path: plain(path) for path, *_ in SAID}
    yield from filter(None, (said_wrongly(place, known, texts[place[0]]) for place in SAID))
    for figure in not_compared(texts[README]):
        yield f"{README.name}: {figure} is in a table, and no place in SAID of tests/figures.py"
    for figure in missing(LETTER.read_text(), text):
        yield f"{LETTER.name}: {figure} is not in benchmarks.rst"
