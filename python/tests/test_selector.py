# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The selector, besides what CPython's own tests check; see run_cpython.py."""

import errno
import os
import selectors
import unittest
from selectors import EVENT_READ, EVENT_WRITE
from unittest import mock

import kevent
from helpers import SOON, Case


class Selectors(Case):

    def setUp(self):
        super().setUp()
        self.selector = kevent.Selector(self.queue)
        self.addCleanup(self.selector.close)

    def ready(self, timeout=0):
        return {key.data: events
                for key, events in self.selector.select(timeout)}

    def test_is_a_selector(self):
        self.assertIsInstance(self.selector, selectors.BaseSelector)
        self.assertEqual(self.selector.fileno(), self.queue.fileno())

    def test_event_is_not_stale(self):
        """What was read is not reported, also with a descriptor that blocks."""
        read, write = self.pipe()
        self.selector.register(read, EVENT_READ, "pipe")
        for _ in range(3):
            write.write(b"x")
            self.assertEqual(self.ready(), {"pipe": EVENT_READ})
            write.write(b"x")
            read.read(2)
            self.assertEqual(self.ready(), {})

    def test_both_directions(self):
        ours, theirs = self.sockets()
        self.selector.register(ours, EVENT_READ | EVENT_WRITE, "both")
        self.assertEqual(self.ready(), {"both": EVENT_WRITE})
        theirs.send(b"x")
        self.assertEqual(self.ready(), {"both": EVENT_READ | EVENT_WRITE})
        self.selector.modify(ours, EVENT_READ, "read")
        self.assertEqual(self.ready(), {"read": EVENT_READ})
        with self.assertRaises(ValueError):
            self.selector.modify(ours, 4)

    def test_hang_up_wakes_a_reader(self):
        read, write = self.pipe()
        self.selector.register(read, EVENT_READ, "read")
        self.assertEqual(self.ready(), {})
        write.close()
        self.assertEqual(self.ready(), {"read": EVENT_READ})

    def test_error_wakes_a_writer(self):
        read, write = self.pipe()
        while write.write(bytes(4096)):
            pass
        self.selector.register(write, EVENT_WRITE, "write")
        self.assertEqual(self.ready(), {})
        read.close()
        self.assertEqual(self.ready(), {"write": EVENT_WRITE})

    def test_more_than_the_ring_holds(self):
        with kevent.Selector(kevent.Queue(4)) as selector:
            pairs = [self.sockets() for _ in range(11)]
            for ours, theirs in pairs:
                selector.register(ours, EVENT_READ, ours)
                theirs.send(b"x")
            for _ in range(2):
                ready = selector.select(SOON)
                self.assertEqual({key.data for key, _ in ready},
                                 {ours for ours, _ in pairs})
                self.assertEqual(len(ready), 11)

    def test_failed_modify_unregisters(self):
        read, _ = self.pipe()
        self.selector.register(read, EVENT_READ)
        with mock.patch("kevent.FileWatch.modify",
                        side_effect=ZeroDivisionError):
            with self.assertRaises(ZeroDivisionError):
                self.selector.modify(read, EVENT_WRITE)
        with self.assertRaises(KeyError):
            self.selector.get_key(read)
        self.assertEqual(len(self.queue), 0)

    def test_descriptor_that_is_used_again(self):
        read, write = self.pipe()
        self.selector.register(read, EVENT_READ, "old")
        write.write(b"x")
        fd = read.fileno()
        self.selector.unregister(read)
        read.close()
        again, other = self.pipe()
        if again.fileno() != fd:
            os.dup2(again.fileno(), fd)
            self.addCleanup(os.close, fd)
        self.selector.register(fd, EVENT_READ, "new")
        self.assertEqual(self.ready(), {})
        other.write(b"x")
        self.assertEqual(self.ready(), {"new": EVENT_READ})

    def test_other_watches(self):
        seen = []
        self.selector.on_event = seen.append
        user = self.queue.user(oneshot=True)
        user.mark()
        self.assertEqual(self.selector.select(SOON), [])
        self.assertEqual([event.watch for event in seen], [user])
        self.assertFalse(user.active)

    def test_watch_that_nobody_knows_does_not_prolong_a_wait(self):
        read, write = self.pipe()
        self.queue._watches.pop(self.queue.watch(read)._handle)
        write.write(b"x")
        self.assertEqual(self.selector.select(0.05), [])

    def test_watch_without_a_key_goes(self):
        """An exception of a signal handler may leave one."""
        read, write = self.pipe()
        self.selector.register(read, EVENT_READ)
        write.write(b"x")
        with mock.patch("kevent.Watch.remove", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.selector.unregister(read)
        self.assertEqual(self.selector.select(0), [])
        self.assertEqual(len(self.queue), 0)
        self.selector.register(read, EVENT_READ, "again")
        self.assertEqual(self.ready(), {"again": EVENT_READ})

    def test_refuses_its_queue(self):
        with self.assertRaises(OSError) as caught:
            self.selector.register(self.queue, EVENT_READ)
        self.assertEqual(caught.exception.errno, errno.ELOOP)
        self.assertEqual(len(self.selector.get_map()), 0)

    def test_closed(self):
        read, _ = self.pipe()
        self.selector.close()
        with self.assertRaises(ValueError):
            self.selector.select(0)
        with self.assertRaises(ValueError):
            self.selector.register(read, EVENT_READ)
        self.selector.close()


if __name__ == "__main__":
    unittest.main()
