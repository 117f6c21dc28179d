# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""What the tests share."""

import os
import socket
import threading
import unittest

import kevent
from kevent._lib import lib

SOON = 20			# seconds until an event that must come


class Case(unittest.TestCase):
    """A test with a queue and with files that are closed after it."""

    def setUp(self):
        self.queue = kevent.Queue(64)
        self.addCleanup(self.queue.close)
        # The fallback cannot do all that the kernel does
        self.on_kevent = self.queue.backend in ("kevent", "module")

    def pipe(self):
        """Both ends of a pipe, as files without a buffer."""
        ends = [os.fdopen(fd, mode, 0)
                for fd, mode in zip(os.pipe(), ("rb", "wb"))]
        for file in ends:
            os.set_blocking(file.fileno(), False)
            self.addCleanup(file.close)
        return ends

    def sockets(self):
        pair = socket.socketpair()
        for each in pair:
            each.setblocking(False)
            self.addCleanup(each.close)
        return pair

    def one(self, queue=None):
        """The only event there is."""
        events = (queue or self.queue).get(timeout=SOON)
        self.assertEqual(len(events), 1, events)
        return events[0]

    def none(self, queue=None):
        self.assertEqual((queue or self.queue).get(timeout=0), [])

    def thread(self, function, *args):
        """Run a function in a thread, which must end well by the end of the test."""
        def run():
            try:
                function(*args)
            except BaseException as problem:
                thread.problem = problem

        thread = threading.Thread(target=run, daemon=True)
        thread.problem = None
        thread.start()
        self.addCleanup(self.join, thread)
        return thread

    def join(self, thread):
        thread.join(SOON)
        self.assertFalse(thread.is_alive(), "the thread hangs")
        until_gone(thread)
        self.assertIsNone(thread.problem)


class Library:
    """The C library, with other functions in place of some."""

    def __init__(self, **functions):
        self.__dict__.update(functions)

    def __getattr__(self, name):
        return getattr(lib, name)


def until_gone(thread):
    """Wait until the kernel has ended a thread that Python has joined.

    Until then a signal to the process may go to that thread, which does not block
    what the fallback has blocked in the main thread.
    """
    while os.path.exists(f"/proc/self/task/{thread.native_id}"):
        os.sched_yield()


FUTEX = "202"			# the call in which a thread waits for Python's lock


def until_asleep(thread):
    """Wait until a thread sleeps in a call, and not for Python's lock."""
    path = f"/proc/self/task/{thread.native_id}/syscall"
    while True:
        with open(path, encoding="ascii") as file:
            if file.read().split()[0] not in ("running", "-1", FUTEX):
                return
