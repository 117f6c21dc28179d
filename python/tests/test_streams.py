# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Streams between two sets of this process."""

import os
import signal
import socket
import threading
import unittest
from unittest import mock

import kevent
from helpers import SOON, until_asleep


class TestStreams(unittest.TestCase):

    def setUp(self):
        self.sets = [kevent.Streams(), kevent.Streams(busy_poll=False)]
        for each in self.sets:
            self.addCleanup(each.close)
        self.a, self.b = [streams.open(sock, offer=streams is self.sets[0])
                          for streams, sock in zip(self.sets, socket.socketpair())]

    def read(self, stream, wanted):
        """Read what is wanted, and wait for it if it is not there."""
        got = b""
        while len(got) < len(wanted):
            part = stream.read(len(wanted) - len(got))
            if part is None:
                self.assertTrue(stream._streams.get(SOON))
            else:
                self.assertTrue(part)
                got += part
        self.assertEqual(got, wanted)

    def to_memory(self):
        for data in (b"1", b"2"):
            self.assertEqual(self.a.write(data), 1)
            self.read(self.b, data)
            self.assertEqual(self.b.write(data), 1)
            self.read(self.a, data)
        self.assertTrue(self.a.in_memory)
        self.assertTrue(self.b.in_memory)

    def test_bytes_go_through_memory(self):
        self.assertFalse(self.a.in_memory)
        self.to_memory()
        self.assertEqual(self.a.write(memoryview(b"abc")), 3)
        self.assertEqual(self.b.peek(), b"abc")
        self.assertEqual(self.b.read(2), b"ab")
        self.assertEqual(self.b.read(), b"c")
        self.assertIsNone(self.b.read())

    def test_plain_socket_is_a_peer(self):
        mine, other = socket.socketpair()
        self.addCleanup(other.close)
        with self.sets[0].open(mine, offer=True) as stream:
            self.assertEqual(mine.fileno(), -1)
            stream.write(b"abc")
            self.assertEqual(other.recv(10), b"abc")
            other.send(b"def")
            self.read(stream, b"def")
            self.assertFalse(stream.in_memory)
        self.assertEqual(other.recv(1), b"")

    def test_full_stream_has_no_room(self):
        self.to_memory()
        data = bytes(range(256)) * 4096
        sent = self.a.write(data)
        self.assertLess(sent, len(data))
        self.assertIsNone(self.a.write(data))
        self.read(self.b, data[:sent])
        self.assertEqual(self.sets[0].get(SOON), [self.a])
        self.assertEqual(self.a.write(b"x"), 1)

    def test_wait_ends_with_bytes(self):
        self.to_memory()
        self.sets[1].get(0)
        self.sets[1].get(0)
        thread = threading.Thread(target=self.a.write, args=(b"x",))
        thread.start()
        while self.b not in self.sets[1].get(SOON):
            pass
        thread.join()
        self.assertEqual(self.b.read(), b"x")

    def test_other_loops_watch_the_set(self):
        self.to_memory()
        while self.sets[1].get(0):
            pass
        with kevent.Queue(8) as queue:
            queue.watch(self.sets[1].fileno())
            self.assertTrue(self.sets[1].arm())
            self.a.write(b"x")
            self.assertEqual(len(queue.get(timeout=SOON)), 1)
            self.assertEqual(self.sets[1].get(0), [self.b])
        self.assertFalse(self.b.read() is None)

    def test_ends(self):
        self.to_memory()
        self.a.write(b"last")
        self.a.shutdown()
        self.read(self.b, b"last")
        self.assertEqual(self.b.read(), b"")
        with self.assertRaises(BrokenPipeError):
            self.a.write(b"x")
        self.b.write(b"more")
        self.b.close()
        self.read(self.a, b"more")
        self.assertEqual(self.a.read(), b"")
        with self.assertRaises(kevent.GoneError):
            self.a.leave()
        self.b.close()
        with self.assertRaises(ValueError):
            self.b.read()

    def leave(self, stream, other):
        while not stream.leave():
            other._streams.get(0)
            stream._streams.get(0)

    def test_stream_is_left_and_joined(self):
        self.to_memory()
        self.leave(self.a, self.b)
        os.write(self.a.fileno(), b"raw")
        self.read(self.b, b"raw")
        self.b.write(b"back")
        self.assertEqual(os.read(self.a.fileno(), 10), b"back")
        self.a.join(sent=3, received=4)
        self.to_memory()

    def test_child_has_no_streams(self):
        self.to_memory()
        pid = os.fork()
        if not pid:
            try:
                self.b.read()
            except kevent.Error:
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.a.write(b"x")
        self.read(self.b, b"x")

    def test_closed_set(self):
        self.sets[0].close()
        self.sets[0].close()
        for call in (self.sets[0].arm, self.sets[0].get, self.sets[0].fileno, self.a.read):
            with self.assertRaises(ValueError):
                call()
        self.assertIn("closed", repr(self.sets[0]))
        self.assertIn("closed", repr(self.a))

    def interrupt(self, handler):
        """Have a signal handler run while the main thread sleeps."""
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(
            signal.SIGUSR1, lambda *_: handler()))
        main = threading.main_thread()

        def send():
            until_asleep(main)
            signal.pthread_kill(main.ident, signal.SIGUSR1)

        thread = threading.Thread(target=send)
        thread.start()
        self.addCleanup(thread.join)

    def test_signal_handler_runs_and_the_wait_goes_on(self):
        self.to_memory()
        while self.sets[1].get(0):
            pass
        self.interrupt(lambda: self.a.write(b"x"))
        while self.b not in self.sets[1].get(SOON):
            pass

    def test_signal_handler_closes_the_set(self):
        self.interrupt(self.sets[1].close)
        with self.assertRaises(ValueError):
            self.sets[1].get(SOON)

    def open_and_interrupt(self, mine, other):
        """The exception of a signal handler comes after the library has made a stream."""
        self.addCleanup(mine.close)
        self.addCleanup(other.close)
        other.settimeout(SOON)
        with self.assertRaises(KeyboardInterrupt):
            self.sets[0].open(mine)
        self.assertEqual(mine.fileno(), -1)
        self.assertEqual(other.recv(1), b"")
        self.assertEqual(self.sets[0].get(0), [])
        self.assertEqual(list(self.sets[0]._streams.values()), [self.a])

    def test_exception_before_a_stream_has_an_object(self):
        with mock.patch("kevent._lib.check", side_effect=[KeyboardInterrupt, 0]):
            self.open_and_interrupt(*socket.socketpair())

    def test_exception_when_a_stream_has_an_object(self):
        class Socket(socket.socket):
            interrupted = False

            def detach(self):
                if self.interrupted:
                    return super().detach()
                self.interrupted = True
                raise KeyboardInterrupt

        mine, other = socket.socketpair()
        self.open_and_interrupt(Socket(fileno=mine.detach()), other)

    def test_socket_that_cannot_be_a_stream(self):
        with socket.socket() as sock:
            with self.assertRaises(kevent.Error):
                self.sets[0].open(sock)
            self.assertGreaterEqual(sock.fileno(), 0)


if __name__ == "__main__":
    unittest.main()
