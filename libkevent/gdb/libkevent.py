# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Print entries, rings and queues of kevent in gdb.

gdb loads this with the library if it is installed where the library is, under
share/gdb/auto-load; otherwise: source libkevent.py
"""

import gdb
import gdb.printing

TYPES = ("SOCKET", "INODE", "TIMER", "POLL", "NAIO", "AIO", "PIPE", "SIGNAL",
         "POSIX_TIMER", "USER", "PROC", "FUTEX", "BOUND")
REQUESTS = ("ONESHOT", "WAKEUP_ALL", "ET", "LAST_CHECK", "HAND_BACK", "READY",
            "DISPATCH", "DISABLED", "KEEP_EACH", "STAY_AWAKE",
            "HANDOFF")
STREAM = {1: "RECV", 2: "ACCEPT", 4: "SEND", 8: "ERR", 0x10: "HUP",
          0x20: "EMPTY", 0x2000: "RDHUP"}
POLL = {1: "IN", 2: "PRI", 4: "OUT", 8: "ERR", 0x10: "HUP", 0x40: "RDNORM",
        0x80: "RDBAND", 0x100: "WRNORM", 0x200: "WRBAND", 0x400: "MSG",
        0x2000: "RDHUP"}
INODE = {1: "CREATE", 2: "REMOVE", 4: "MODIFY", 8: "ATTRIB", 0x10: "RENAME"}
EVENTS = {"SOCKET": STREAM, "PIPE": STREAM, "POLL": POLL, "INODE": INODE}
WIDE = ("TIMER", "USER", "FUTEX")	# their id is one number of 64 bits
MORE, BROKEN = 1, 2			# flags of a ring
RET_BROKEN = 1
MOST = 32				# unread entries that are shown


def bits(mask, names):
    """The names of bits, and a number for those without one."""
    found = [name for bit, name in names.items() if mask & bit]
    rest = mask & ~sum(bit for bit in names)
    return "|".join(found + ([hex(rest)] if rest else [])) or "0"


def requests(mask):
    return bits(mask, {1 << i: name for i, name in enumerate(REQUESTS)})


def number(value):
    return int(value.cast(gdb.lookup_type("unsigned long long")))


class Entry:
    """struct ukevent: a request, or an event once it was delivered"""

    def __init__(self, value):
        self.value = value

    def what(self):
        kind = int(self.value["type"])
        name = TYPES[kind] if kind < len(TYPES) else str(kind)
        wide = number(self.value["id"]["raw_u64"])
        if name in WIDE:
            return name, f"{name} {wide:#x}"
        return name, f"{name} {wide & 0xffffffff}"

    def result(self, names):
        low, high = (int(self.value["ret_data"][i]) for i in (0, 1))
        if int(self.value["ret_flags"]) & RET_BROKEN:
            return f"error {high - (1 << 32)}"
        if names:
            return f"{bits(low, names)} {high}"
        return f"{low:#x} {high:#x}"

    def to_string(self):
        name, what = self.what()
        names = EVENTS.get(name)
        mask = int(self.value["event"])
        asked = bits(mask, names) if names else hex(mask)
        text = f"{what} {asked} {requests(int(self.value['req_flags']))}"
        if int(self.value["ret_flags"]):
            text += f": {self.result(names)}"
        return f"{{{text} user {number(self.value['ptr']):#x}}}"


class Ring:
    """struct kevent_ring, which does not know how many slots it has"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        kidx, uidx = (int(self.value[name]) for name in ("ring_kidx", "ring_uidx"))
        flags = bits(int(self.value["ring_flags"]), {MORE: "MORE", BROKEN: "BROKEN"})
        return f"ring of {kidx - uidx} unread entries from {uidx}, flags {flags}"


class Queue:
    """struct kevent_queue, with the unread entries of its ring"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        text = f"queue {int(self.value['fd'])} of {int(self.value['size'])} slots"
        if not int(self.value["ring"]):
            return text
        return f"{text}, {Ring(self.value['ring'].dereference()).to_string()}"

    def children(self):
        if not int(self.value["ring"]):
            return
        ring, size = self.value["ring"].dereference(), int(self.value["size"])
        kidx, uidx = (int(ring[name]) for name in ("ring_kidx", "ring_uidx"))
        entries = ring["event"][0].address
        for at in range(uidx, min(kidx, uidx + MOST)):
            yield f"[{at}]", (entries + at % size).dereference()


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("libkevent")
    for name, printer in (("ukevent", Entry), ("kevent_ring", Ring),
                          ("kevent_queue", Queue)):
        collection.add_printer(name, f"^{name}$", printer)
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(),
                                     replace=True)
