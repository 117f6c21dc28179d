# SPDX-License-Identifier: GPL-2.0
"""The page of bench/page has the figures of files, and what kevent loses is first.

The files are written here, and Documentation/plots/figures.json is one of them. Each function
yields complaints, one line each; tests/check runs them.
"""

from html.parser import HTMLParser
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from lib.paths import TOP

sys.path.append(str(TOP / "bench"))
import meaning

STORED = TOP / "Documentation/plots/figures.json"
VOID = {"meta", "img"}
# (counted, batch, backend, mode, unit, values)
VM = (
    (True, 1, "kevent", "et", "instructions/event", [100, 100, 101]),
    (True, 1, "epoll", "et", "instructions/event", [300, 300, 301]),
    (True, 2, "kevent", "et", "instructions/event", [150, 151, 150]),
    (True, 2, "epoll", "et", "instructions/event", [100, 100, 100]),
    (True, 2, "limit", "none", "instructions/event", [50, 50, 50]),
    (False, 1, "kevent", "et", "events/s", [500, 400, 450]),
    (False, 1, "epoll", "lt", "events/s", [1000, 900, 800]),
    (False, 2, "kevent", "copy", "events/s", [900, 1100, 1000]),
    (False, 2, "uring", "defer", "events/s", [1200, 1000, 1250]))
FACTORS = ["2.00", "1.50", "1.20"]
SURE = ["a time, in all runs", "counted", "a time, within the spread"]
NATIVE = (
    {"workload": "units", "source": "a <system call>", "metric": "cost", "unit": "ns", "value": 92.3,
     "min": 91, "max": 95, "host": "its operations", "backend": "limit", "mode": "none",
     "icount": False, "beside": {"cycles": "355"}},
    {"workload": "marks", "source": "user", "metric": "cost", "unit": "ns/event", "value": 50,
     "min": 49, "max": 51, "values": [49, 50, 51], "host": "kevent: the library's",
     "backend": "kevent", "mode": "et", "icount": False, "batch": 1, "watches": 1, "threads": 1})
# What the page has to say of these
WORDS = ("epoll et", "io_uring defer", "150 <small>150 – 151</small> et", "Measured on 2026-11-29",
         "a &lt;system call&gt;", "92.3 <small>91 – 95</small>", "355", "a processor; kevent: the",
         "The machine was not quiet: a load of 9", "Linux 6.12.117", "bare",
         "In a VM: Linux 6.12, QEMU 7.2.22; kevent is the patched kernel</h2>", "In 3 of 4 figures", "50 <small>49 – 51")


class Parser(HTMLParser):
    """Looks at tags: which are open, what is linked to, and which pictures there are."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.pictures, self.wrong = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        self.pictures += [attributes.get("src", "")] if tag == "img" else []

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def vm_records():
    for icount, batch, backend, mode, unit, values in VM:
        yield {"workload": "notify" if icount else "dumazet", "icount": icount, "source": "pipe",
               "metric": "cost" if icount else "rate", "batch": batch, "watches": 1, "threads": 1,
               "backend": backend, "mode": mode, "unit": unit, "value": sorted(values)[1],
               "min": min(values), "max": max(values), "values": values, "kernel": "6.12",
               "date": "2026-11-29",
               "qemu": f"QEMU emulator version 7.2.22 (Debian) -smp {1 if icount else 2}"}


def page_of(folder, *files):
    """What it prints, and the page"""
    target = folder / "page.html"
    done = subprocess.run([TOP / "bench/page", "-o", target, *files], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = target.read_text(encoding="utf-8") if target.exists() else ""
    return done.returncode, done.stdout, text


def form(text):
    """It is HTML that needs nothing else."""
    parser = Parser()
    parser.feed(text)
    if parser.open or parser.wrong:
        yield f"page: tags are not closed as they are opened: {parser.open + parser.wrong}"
    for link in parser.links:
        if link[:1] != "#" or link[1:] not in parser.ids:
            yield f"page: nothing is at {link}"
    if len(parser.ids) != len(set(parser.ids)):
        yield "page: two parts have one id"
    if any(not source.startswith("data:image/svg+xml;base64,") for source in parser.pictures):
        yield "page: a picture is not in the page"
    if len(parser.pictures) < 4:
        yield f"page: only {len(parser.pictures)} pictures"


def figures():
    """Losses come first, worst first, with their spread; all of the files is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        status, said, text = page_of(
            folder, write(folder / "bench.json", vm_records()),
            write(folder / "bench-native.json", (
                {**record, "machine": "a processor", "noise": "a load of 9"} for record in NATIVE)),
            STORED)
        if status or said.splitlines()[-1:] != [f"page: {(folder / 'page.html').resolve()}"]:
            yield f"page: status {status}: {said}"
        yield from form(text)
        table = re.search(r"Where kevent loses</h3>(.*?)</table>", text, re.S)
        rows = re.findall(r'<tr><td><span class="\w+">([\d.]+)<.*<td>(.*?)</td></tr>',
                          table[1] if table else "")
        if [row[0] for row in rows] != FACTORS or [row[1] for row in rows] != SURE:
            yield f"page: the losses are {rows}"
        sections = re.findall(r'<h3 id="g0-(\w+)', text)
        if sections != ["dumazet", "notify"]:
            yield f"page: the first workloads are {sections}, the worst is not in front"
        for words in WORDS:
            if words not in text:
                yield f"page: it does not say {words!r}"
        for workload in {json.loads(line)["workload"] for line in STORED.read_text().splitlines()}:
            if f">{workload}" not in text:
                yield f"page: {workload} is not there"
        status, said, _ = page_of(folder, write(folder / "none.json", ()))
        if not status or "no figures of contestants in" not in said:
            yield f"page: an empty file: status {status}: {said}"


def words():
    """Each workload of kevent-bench, and each of its metrics, has words."""
    for path in (TOP / "bench").glob("work_*.c"):
        text = path.read_text()
        names = re.findall(r'^\t\.name\t+= "(\w+)",$', text, re.M)
        for workload in names:
            if not meaning.of_workload(workload):
                yield f"bench/meaning.py: no words for {workload}"
            for metric in re.findall(r'\{ \.name = "([^"]+)", \.unit', text):
                if not meaning.of_metric(workload, metric, ""):
                    yield f"bench/meaning.py: no words for {metric} of {workload}"
        if not names:
            yield f"tests/page.py: no workload in {path.name}"


def everything():
    yield from figures()
    yield from words()
