# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""What a queue can watch besides pipes: each source, and its events."""

import ctypes
import errno
import fractions
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import kevent
from helpers import SOON, Case
from kevent import Clock, Inode, Sock

SYS_FUTEX, FUTEX_WAKE_PRIVATE = 202, 1 | 128
MS = fractions.Fraction(1, 1000)


class Sockets(Case):

    def test_amount(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            self.queue.socket(server, Sock.ACCEPT, oneshot=True)
            client = socket.create_connection(server.getsockname())
            self.addCleanup(client.close)
            event = self.one()
            self.assertEqual((event.events, event.amount),
                             (Sock.ACCEPT, int(self.on_kevent)))
            ours, _ = server.accept()
        self.addCleanup(ours.close)
        self.queue.socket(ours, Sock.RECV, oneshot=True)
        client.sendall(b"12345")
        event = self.one()
        self.assertEqual((event.events, event.amount),
                         (Sock.RECV, 5 * self.on_kevent))
        self.assertIn(f"amount={event.amount}", repr(event))

    def test_end_of_file(self):
        ours, theirs = self.sockets()
        self.queue.socket(ours, oneshot=True)
        theirs.close()
        self.assertEqual(self.one().events & (Sock.RECV | Sock.HUP),
                         Sock.RECV | Sock.HUP)

    def test_no_socket(self):
        read, _ = self.pipe()
        with self.assertRaises(OSError) as caught:
            self.queue.socket(read)
        self.assertIn(caught.exception.errno, (errno.ENOTSOCK, errno.EINVAL))


class Timers(Case):

    def test_once(self):
        start = time.monotonic()
        watch = self.queue.timer(0.02, data="once")
        event = self.one()
        self.assertGreaterEqual(time.monotonic() - start, 0.02)
        self.assertEqual((event.data, event.expirations), ("once", 1))
        self.assertFalse(watch.active)
        self.none()

    def test_interval(self):
        start = time.monotonic()
        watch = self.queue.timer(10 * MS, 10 * MS)
        count = 0
        while count < 5:
            event = self.one()
            self.assertGreaterEqual(event.expirations, 1)
            count += event.expirations
        self.assertGreaterEqual(time.monotonic() - start, 0.01 * count)
        watch.remove()
        self.none()

    def test_clocks(self):
        for clock, name in ((Clock.MONOTONIC, time.CLOCK_MONOTONIC),
                            (Clock.REALTIME, time.CLOCK_REALTIME),
                            (Clock.BOOTTIME, time.CLOCK_BOOTTIME),
                            (Clock.TAI, time.CLOCK_TAI)):
            end = time.clock_gettime_ns(name) + 10**7
            self.queue.timer(fractions.Fraction(end, 10**9), clock=clock,
                             absolute=True)
            self.one()
            self.assertGreaterEqual(time.clock_gettime_ns(name), end)

    def test_modify(self):
        watch = self.queue.timer(1000)
        self.none()
        watch.modify(5 * MS)
        self.assertIs(self.one().watch, watch)

    def test_modify_gives_an_interval(self):
        """A watch that ended with its only expiry goes on, unless it was to end."""
        watch = self.queue.timer(1000)
        once = self.queue.timer(1000, oneshot=True)
        watch.modify(MS, MS)
        for _ in range(3):
            self.assertIs(self.one().watch, watch)
        self.assertTrue(watch.active)
        watch.modify(MS)
        self.assertIs(self.one().watch, watch)
        self.assertFalse(watch.active)
        once.modify(MS, MS)
        self.assertIs(self.one().watch, once)
        self.assertFalse(once.active)

    def test_is_never_early(self):
        for _ in range(20):
            start = time.monotonic_ns()
            self.queue.timer(0.0012345)
            self.one()
            self.assertGreaterEqual(time.monotonic_ns() - start, 1234500)


class Signals(Case):

    def test_consume(self):
        self.queue.signal(signal.SIGUSR1, consume=True)
        os.kill(os.getpid(), signal.SIGUSR1)
        event = self.one()
        self.assertEqual(event.signum, signal.SIGUSR1)
        self.assertEqual(event.sender, os.getpid())
        self.assertEqual(event.code, 0)
        self.assertTrue(event.consumed)

    def test_real_time_with_a_value(self):
        number = signal.SIGRTMIN + 3
        self.queue.signal(number, consume=True)
        libc = ctypes.CDLL(None, use_errno=True)
        for value in (5, -6):
            self.assertEqual(libc.sigqueue(os.getpid(), number,
                                           ctypes.c_void_p(value)), 0)
        events = self.queue.get(timeout=SOON)
        if len(events) == 1:
            events += self.queue.get(timeout=SOON)
        self.assertEqual([(each.signum, each.value) for each in events],
                         [(number, 5), (number, -6)])
        self.assertEqual(events[0].code, -1)	# SI_QUEUE

    def test_modify(self):
        seen = []
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(
            signal.SIGUSR1, lambda *_: seen.append(1)))
        watch = self.queue.signal(signal.SIGUSR1, consume=True)
        if not self.on_kevent:
            with self.assertRaises(OSError) as caught:
                watch.modify(consume=False)
            self.assertEqual(caught.exception.errno, errno.EOPNOTSUPP)
            return
        watch.modify(consume=False)
        watch.remove()
        os.kill(os.getpid(), signal.SIGUSR1)
        self.assertEqual(seen, [1])
        self.none()


class Processes(Case):

    def test_exit(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
            watch = self.queue.process(child.pid, data=child)
            self.none()
            child.stdin.close()
            event = self.one()
        self.assertEqual((event.pid, event.status, event.exitcode),
                         (child.pid, 0, 0))
        self.assertIs(event.data, child)
        self.assertFalse(watch.active)

    def test_killed_by_pidfd(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
            pidfd = os.pidfd_open(child.pid)
            watch = self.queue.pidfd(pidfd)
            os.close(pidfd)
            watch.modify()
            child.kill()
            event = self.one()
        self.assertEqual((event.pid, event.exitcode),
                         (child.pid, -signal.SIGKILL))

    def test_pidfd_that_is_used_again(self):
        children = [subprocess.Popen(["cat"], stdin=subprocess.PIPE)
                    for _ in range(2)]
        for child in children:
            pidfd = os.pidfd_open(child.pid)
            os.dup2(pidfd, 100)
            os.close(pidfd)
            self.queue.pidfd(100)
        os.close(100)
        pids = set()
        for child in children:
            child.communicate()
        while len(pids) < 2:
            events = self.queue.get(timeout=SOON)
            self.assertTrue(events)
            pids.update(event.pid for event in events)
        self.assertEqual(pids, {child.pid for child in children})

    def test_remove(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
            pidfd = os.pidfd_open(child.pid)
            self.queue.pidfd(pidfd).remove()
            os.close(pidfd)
            self.queue.process(child.pid).remove()
            child.stdin.close()
            child.wait()
        self.none()

    def test_no_process(self):
        child = subprocess.Popen(["true"])
        child.wait()
        with self.assertRaises(ProcessLookupError) as caught:
            self.queue.process(child.pid)
        self.assertIsInstance(caught.exception, kevent.Error)
        with self.assertRaises(ValueError):
            self.queue.pidfd(self.queue)


class Marks(Case):

    def test_merge(self):
        user = self.queue.user(6)
        user.mark(2)
        user.mark(4)
        event = self.one()
        self.assertEqual((event.events, event.marks, event.value), (6, 2, None))
        self.none()
        user.mark()
        self.assertEqual(self.one().events, 6)

    def test_keep_each(self):
        user = self.queue.user(keep_each=True)
        values = [0, 1, 1 << 32, (1 << 64) - 1]
        for value in values:
            user.mark(value=value)
        events = self.queue.get(timeout=SOON)
        self.assertEqual([each.value for each in events], values)
        self.assertEqual([each.marks for each in events], [1] * 4)
        self.assertEqual(events[0].events, None)

    def test_from_a_thread(self):
        user = self.queue.user()
        self.thread(user.mark)
        self.assertIs(self.one().watch, user)

    def test_too_many(self):
        user = self.queue.user(keep_each=True)
        with self.assertRaises(BlockingIOError) as caught:
            for value in range(70000):
                user.mark(value=value)
        self.assertIsInstance(caught.exception, kevent.Error)
        self.assertEqual(value, 65536)

    def test_after_remove(self):
        user = self.queue.user()
        user.mark()
        user.remove()
        self.none()
        with self.assertRaises(ValueError):
            user.mark()


class Inodes(Case):

    def test_directory(self):
        with tempfile.TemporaryDirectory() as path:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            self.addCleanup(os.close, folder)
            watch = self.queue.inode(folder, Inode.CREATE | Inode.REMOVE)
            os.mkdir(f"{path}/a")
            self.assertEqual(self.one().events, Inode.CREATE)
            os.rmdir(f"{path}/a")
            self.assertEqual(self.one().events, Inode.REMOVE)
            self.none()
            watch.modify(Inode.CREATE)
            os.mkdir(f"{path}/b")
            os.rmdir(f"{path}/b")
            self.assertEqual(self.one().events, Inode.CREATE)
            watch.remove()

    def test_file(self):
        with tempfile.NamedTemporaryFile(buffering=0) as file:
            self.queue.inode(file, Inode.MODIFY)
            file.write(b"x")
            event = self.one()
            self.assertEqual((event.fd, event.events),
                             (file.fileno(), Inode.MODIFY))

    def test_last_event_comes_beside_a_new_watch(self):
        olds = {}
        for _ in range(2):
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            fd = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY)
            self.addCleanup(os.close, fd)
            olds[self.queue.inode(fd, Inode.CREATE, oneshot=True)] = folder.name
        for path in olds.values():
            os.mkdir(f"{path}/a")
        # The other one's entry is in the ring now
        olds.pop(self.queue.get(1, SOON)[0].watch)
        (old, path), = olds.items()
        new = self.queue.inode(old.fd, Inode.CREATE)
        self.assertIs(self.one().watch, old)
        os.mkdir(f"{path}/b")
        self.assertIs(self.one().watch, new)


class Futexes(Case):

    def change(self, word):
        """Change the word and wake a waiter."""
        word.value += 1
        libc = ctypes.CDLL(None, use_errno=True)
        woken = libc.syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAKE_PRIVATE,
                             1)
        if self.queue.backend == "kevent":	# the library's waiter may be looking at it
            self.assertEqual(woken, 1)

    def test_wake(self):
        word = ctypes.c_uint32(7)
        watch = self.queue.futex(word, 7)
        self.none()
        self.change(word)
        self.assertIs(self.one().watch, watch)
        self.none()
        watch.modify(8)
        self.none()
        self.change(word)
        self.one()

    def test_has_changed_already(self):
        word = ctypes.c_uint32(7)
        self.queue.futex(word, 8, oneshot=True)
        self.one()

    def test_the_watch_keeps_the_word(self):
        word = bytearray(8)
        watch = self.queue.futex(word, 1, oneshot=True)
        with self.assertRaises(BufferError):
            word.clear()
        watch.remove()


if __name__ == "__main__":
    unittest.main()
