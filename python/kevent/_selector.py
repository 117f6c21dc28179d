# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""A selector, as those of the module selectors."""

import selectors

from . import _lib, _watches
from ._events import Poll
from ._queue import Queue, _deadline, _is_over

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
POLL = {READ: Poll.IN, WRITE: Poll.OUT, READ | WRITE: Poll.IN | Poll.OUT}
NEITHER_READ = ~int(Poll.IN)
NEITHER_WRITE = ~int(Poll.OUT)


class Selector(selectors._BaseSelectorImpl):	# type: ignore[name-defined]
    """A selector of kevent, with the methods of selectors.BaseSelector.

    Files are level-triggered, and the kernel checks them before it reports
    them, so an event is not stale unless another thread has read the data.

    queue	the Queue. The program may add watches to it: on_event, if it is
			set, is called with each of their events during select()
    """

    def __init__(self, queue=None):
        super().__init__()
        self.queue = Queue() if queue is None else queue
        self.on_event = None
        self._watch = {}	# by descriptor

    def register(self, fileobj, events, data=None):
        """Watch a file object or descriptor: EVENT_READ, EVENT_WRITE or both."""
        key = super().register(fileobj, events, data)
        try:
            self._watch[key.fd] = self._make_watch(key.fd, POLL[events])
        except BaseException:
            super().unregister(fileobj)
            raise
        return key

    def _make_watch(self, fd, events):
        return self.queue._add(_SelectorWatch(
            self.queue, fd, events, None,
            _watches.FLAGS["last_check"] | _watches.FLAGS["wake_all"]))

    def unregister(self, fileobj):
        """Watch it no more. It may be closed already."""
        key = super().unregister(fileobj)
        self._watch.pop(key.fd).remove()
        return key

    def modify(self, fileobj, events, data=None):
        """Change what is watched for, or the data."""
        key = self.get_key(fileobj)
        if events != key.events:
            if events not in POLL:
                raise ValueError(f"Invalid events: {events!r}")
            try:
                self._watch[key.fd].modify(POLL[events])
            except BaseException:
                self.unregister(fileobj)
                raise
        key = key._replace(events=events, data=data)
        self._fd_to_key[key.fd] = key
        return key

    def select(self, timeout=None):
        """Wait, and return a list of (key, events) of files that are ready."""
        deadline = None if timeout is None else _deadline(max(timeout, 0))
        ready = {}
        size = self.queue.size
        while True:
            before = len(ready)
            taken = self.queue._take(size, deadline)
            found = self._sort(taken, ready)
            # With a full ring there may be more; if all is ready the kernel
            # begins again with the first
            if len(taken) == size and len(ready) > before:
                deadline = 0
            elif found or not taken or _is_over(deadline):
                break
        return list(ready.values())

    def _sort(self, taken, ready):
        """Collect what entries say; returns whether they said something."""
        watches, keys = self.queue._watches, self._fd_to_key
        found = False
        for entry in taken:
            watch = watches.get(entry[7])
            if not isinstance(watch, _SelectorWatch):
                found |= self._other(entry)
                continue
            key = keys.get(watch.fd)
            if key is None:	# an exception has left it
                watch.remove()
                continue
            events = watch.events(entry)
            found = True
            _, old = ready.get(key.fd, (key, 0))
            ready[key.fd] = key, (events | old) & key.events
        return found

    def _other(self, entry):
        event = self.queue._event(entry)
        if event is not None and self.on_event is not None:
            self.on_event(event)
        return event is not None

    def close(self):
        """Close the queue."""
        self.queue.close()
        self._watch.clear()
        super().close()

    def fileno(self):
        """The descriptor of the queue."""
        return self.queue.fileno()


class _SelectorWatch(_watches.FileWatch):
    """A watch whose events become those of selectors."""

    @staticmethod
    def events(entry):
        """Anything but "may be written to" ends a wait to read, and vice versa."""
        bits = entry[5]
        if entry[4] & _lib.RET_BROKEN:	# the next read says why
            return READ | WRITE
        return (READ if bits & NEITHER_WRITE else 0) | \
            (WRITE if bits & NEITHER_READ else 0)
