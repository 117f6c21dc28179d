# SPDX-License-Identifier: GPL-2.0
"""Sentences of comments and manual pages: how they begin, and how long they are.

Documents have none that begins with Who, What, That of or Those: tests/docs.py. Comments and
pages still have some, so there is a bound for each folder: its number today, which may fall.
The function yields complaints, one line each; tests/check runs it.
"""

import re

from docs import BEGINNING, PAGES, plain
from lib.paths import TOP

LONG = 35		# words
# The most sentences that begin so, and that are longer, by folder
MOST = {"kernel/kevent": (0, 0), "kernel/module": (0, 0), "libkevent": (0, 0),
        "libkevent/man": (0, 1)}


def comments(text):
    """The words of each comment in C."""
    for comment in re.findall(r"/\*(.*?)\*/", text, re.S):
        lines = [re.sub(r"^\s*\*?[ \t]?", "", line) for line in comment.splitlines()]
        # A name of kernel-doc and a bullet are no part of the sentence, and a drawing is none.
        lines = [re.sub(r"^(?:@\S+:\s*|\* )", "\n\n", line) for line in lines]
        lines = ["" if re.search(r"\S\t+\S|^\t| {3}", line) else line for line in lines]
        yield from re.split(r"\n\s*\n", "\n".join(lines))


def paragraphs(text):
    """The words of a manual page, without examples and synopses."""
    text = re.sub(r"^\.(?:EX|nf)\n.*?^\.(?:EE|fi)$", ".PP", text, flags=re.M | re.S)
    text = re.sub(r"^\.SH SYNOPSIS\n.*?(?=^\.SH)", "", text, flags=re.M | re.S)
    for part in re.split(r"^\.(?:PP|TP|SS|SH|IP|RS|RE)\b.*$", plain(text), flags=re.M):
        yield re.sub(r"^\.(?:\\\".*|[A-Z]+ ?)", "", part, flags=re.M)


def sentences(text):
    return [part for part in re.split(r"(?<=[.?!])['\")]*\s+", " ".join(text.split())) if part]


def faults(texts):
    """Sentences that begin so, and those that are long."""
    found = [sentence for text in texts for sentence in sentences(text)]
    return ([sentence for sentence in found if BEGINNING.search(sentence)],
            [sentence for sentence in found if len(sentence.split()) > LONG and
             not sentence.startswith("Return:")])


def texts_of(folder):
    if folder == "libkevent/man":
        return [part for path in PAGES for part in paragraphs(path.read_text())]
    return [part for path in sorted((TOP / folder).rglob("*.[ch]"))
            for part in comments(path.read_text())]


def everything():
    for folder, bounds in MOST.items():
        for what, found, most in zip(("that begin with Who, What, That of or Those",
                                      f"of more than {LONG} words"),
                                     faults(texts_of(folder)), bounds):
            if len(found) > most:
                yield f"{folder}: {len(found)} sentences {what}, over {most}; these are some:"
                yield from (f"  {sentence[:90]}" for sentence in found[-most - 3:])
