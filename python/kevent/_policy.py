# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""A policy of asyncio, for Pythons that have policies."""

import asyncio

from ._loop import EventLoop


class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
    """Makes EventLoop the loop of asyncio.run() and its like.

    Before Python 3.12: ``asyncio.set_event_loop_policy(kevent.EventLoopPolicy())``.
    Later, ``asyncio.run(main(), loop_factory=kevent.EventLoop)`` does it, too.
    From Python 3.14 on, which deprecates policies, ``from kevent import *`` leaves it out.

    streams	as of EventLoop
    """

    def __init__(self, *, streams=False):
        super().__init__()
        self._streams = streams

    def _loop_factory(self):
        return EventLoop(streams=self._streams)
