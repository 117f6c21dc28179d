# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""An event loop for asyncio."""

import asyncio

from ._selector import Selector


class EventLoop(asyncio.SelectorEventLoop):
    """The event loop of asyncio on a kevent queue.

    Sockets, pipes, signals and processes work as with the loop of asyncio itself.
    Timeouts have nanoseconds instead of milliseconds. In addition the program may
    watch what asyncio cannot: it adds a watch to ``queue`` and names a callback by
    ``add_watch()``.
    """

    def __init__(self, selector=None):
        selector = Selector() if selector is None else selector
        super().__init__(selector)
        selector.on_event = self._kevent_event

    @property
    def queue(self):
        """The Queue of the loop. Only the loop takes its events."""
        return self._selector.queue

    def add_watch(self, watch, callback, *args):
        """Have callback(event, *args) called for each event of a watch."""
        self._check_closed()
        watch._callback = callback, args

    def remove_watch(self, watch):
        """Remove a watch and its callback. Returns whether it had one."""
        watch.remove()
        old, watch._callback = watch._callback, None
        return old is not None

    def _kevent_event(self, event):
        called = event.watch._callback
        if not event.watch.active:	# that was its last event
            event.watch._callback = None
        if called is not None:
            callback, args = called
            self.call_soon(callback, event, *args)


class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
    """Makes EventLoop the loop of asyncio.run() and its like.

    Before Python 3.12: ``asyncio.set_event_loop_policy(kevent.EventLoopPolicy())``.
    Later, ``asyncio.run(main(), loop_factory=kevent.EventLoop)`` does it, too.
    """
    _loop_factory = EventLoop
