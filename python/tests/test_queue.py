# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The life of a queue and of its watches, waiting, threads, errors."""

import errno
import gc
import os
import signal
import threading
import time
import unittest
import warnings
from unittest import mock

import kevent
from helpers import SOON, Case, until_asleep
from kevent import Poll


class Life(Case):

    def test_with_closes(self):
        with kevent.Queue() as queue:
            fd = queue.fileno()
            os.fstat(fd)
        self.assertTrue(queue.closed)
        with self.assertRaises(OSError):
            os.fstat(fd)

    def test_closed_queue(self):
        read, _ = self.pipe()
        watch = self.queue.watch(read)
        user = self.queue.user()
        self.queue.close()
        self.queue.close()
        for call in (self.queue.get, self.queue.fileno, self.queue.wake,
                     self.queue.wake_all, self.queue.user, self.queue.__enter__, watch.modify,
                     user.mark, lambda: self.queue.watch(read),
                     lambda: self.queue.timer(1),
                     lambda: self.queue.get(timeout=0),
                     lambda: self.queue.backend):
            with self.assertRaises(ValueError):
                call()
        watch.remove()
        self.assertFalse(watch.active)
        self.assertEqual(list(self.queue), [])
        self.assertIn("closed", repr(self.queue))

    def test_close_while_threads_wait(self):
        errors = []

        def wait():
            try:
                self.queue.get()
            except ValueError as error:
                errors.append(error)

        threads = [self.thread(wait) for _ in range(3)]
        for thread in threads:
            until_asleep(thread)
        fd = self.queue.fileno()
        self.queue.close()
        for thread in threads:
            self.join(thread)
        self.assertEqual(len(errors), 3)
        with self.assertRaises(OSError):
            os.fstat(fd)

    def test_close_in_a_signal_handler(self):
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(
            signal.SIGUSR1, lambda *_: self.queue.close()))
        main = threading.main_thread()

        def send():
            until_asleep(main)
            signal.pthread_kill(main.ident, signal.SIGUSR1)

        self.thread(send)
        with self.assertRaises(ValueError):
            self.queue.get()

    def test_forgotten_queue_is_closed(self):
        queue = kevent.Queue()
        fd = queue.fileno()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            del queue
            gc.collect()
        self.assertEqual([each.category for each in seen], [ResourceWarning])
        with self.assertRaises(OSError):
            os.fstat(fd)

    def test_sizes(self):
        for size, slots in ((1, 2), (2, 2), (3, 4), (64, 64), (65, 128)):
            with kevent.Queue(size) as queue:
                self.assertEqual(queue.size, slots)
        for size in (0, -1, (1 << 20) + 1):
            with self.assertRaises(ValueError):
                kevent.Queue(size)

    def test_not_inherited_by_exec(self):
        self.assertFalse(os.get_inheritable(self.queue.fileno()))

    def test_fallback_only(self):
        with kevent.Queue(fallback="only") as queue:
            self.assertEqual(queue.backend, "epoll")
        with self.assertRaises(ValueError):
            kevent.Queue(fallback="never")

    def test_fork(self):
        read, write = self.pipe()
        self.queue.watch(read)
        write.write(b"x")
        pid = os.fork()
        if not pid:
            try:
                self.queue.get(timeout=0)
            except ValueError as error:
                with kevent.Queue() as queue:
                    queue.watch(read)
                    if len(queue.get(timeout=SOON)) == 1 and \
                            "parent" in str(error):
                        os._exit(7)
            finally:
                os._exit(1)
        status = os.waitpid(pid, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status), 7)
        self.assertEqual(self.one().fd, read.fileno())

    def test_fork_leaves_nothing_open(self):
        """Nor does a queue whose descriptor the program has closed keep others open."""
        self.queue.close()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            queue = kevent.Queue(fallback="only")
            self.addCleanup(queue.close)
            queue.timer(1000)
        first = next(one for one in kevent._queue._queues if not one.closed)
        os.close(first.fileno())
        pid = os.fork()
        if not pid:
            os._exit(len(os.listdir("/proc/self/fd")) != before)
        status = os.waitpid(pid, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_close_leaves_no_watch_to_others(self):
        """Another process may have the descriptor, and would keep them."""
        if not self.on_kevent:
            self.skipTest("a queue of the fallback is for one process")
        read, _ = self.pipe()
        self.queue.watch(read)
        self.queue.timer(1000)
        other = os.dup(self.queue.fileno())
        self.addCleanup(os.close, other)
        with open(f"/proc/self/fdinfo/{other}", encoding="ascii") as file:
            self.assertRegex(file.read(), r"kevent-watches:\s+2\n")
        self.queue.close()
        with open(f"/proc/self/fdinfo/{other}", encoding="ascii") as file:
            self.assertRegex(file.read(), r"kevent-watches:\s+0\n")

    def test_can_be_polled(self):
        import select
        user = self.queue.user()
        poller = select.poll()
        poller.register(self.queue, select.POLLIN)
        self.assertEqual(poller.poll(0), [])
        user.mark()
        self.assertEqual(poller.poll(SOON * 1000),
                         [(self.queue.fileno(), select.POLLIN)])


class Watches(Case):

    def test_level_repeats(self):
        read, write = self.pipe()
        watch = self.queue.watch(read, Poll.IN, data="data")
        self.none()
        write.write(b"x")
        for _ in range(3):
            event = self.one()
            self.assertIs(event.watch, watch)
            self.assertEqual(event.data, "data")
            self.assertEqual(event.fd, read.fileno())
            self.assertEqual(event.events, Poll.IN)
            self.assertIsNone(event.error)
        read.read(1)
        self.queue.get(timeout=0)	# may be stale
        self.none()

    def test_edge_does_not(self):
        read, write = self.pipe()
        self.queue.watch(read, edge=True)
        write.write(b"x")
        self.one()
        self.none()
        write.write(b"x")
        self.one()

    def test_oneshot(self):
        read, write = self.pipe()
        watch = self.queue.watch(read, oneshot=True)
        self.assertEqual(len(self.queue), 1)
        write.write(b"x")
        self.one()
        self.assertFalse(watch.active)
        self.assertEqual(len(self.queue), 0)
        self.none()
        watch.remove()
        with self.assertRaises(ValueError):
            watch.modify()
        self.queue.watch(read)
        self.one()

    def test_dispatch(self):
        read, write = self.pipe()
        watch = self.queue.watch(read, dispatch=True)
        write.write(b"x")
        self.one()
        self.none()
        self.assertTrue(watch.active)
        watch.modify()
        self.one()
        self.none()
        watch.modify(dispatch=False)
        self.one()
        self.one()

    def test_disabled(self):
        read, write = self.pipe()
        watch = self.queue.watch(read, disabled=True)
        write.write(b"x")
        self.none()
        watch.modify(disabled=False)
        self.one()

    def test_modify(self):
        ours, theirs = self.sockets()
        watch = self.queue.watch(ours, Poll.OUT)
        self.assertEqual(self.one().events, Poll.OUT)
        watch.modify(Poll.IN)
        self.queue.get(timeout=0)	# an old entry
        self.none()
        theirs.send(b"x")
        self.assertEqual(self.one().events, Poll.IN)

    def test_failed_modify_changes_nothing(self):
        read, write = self.pipe()
        watch = self.queue.watch(read)
        with self.assertRaises(OSError) as caught:
            watch.modify(0x40000000)
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        watch.modify()
        write.write(b"x")
        self.assertEqual(self.one().events, Poll.IN)

    def test_remove(self):
        read, write = self.pipe()
        watch = self.queue.watch(read)
        write.write(b"x")
        self.one()
        write.write(b"x")	# a second entry may be in the ring
        watch.remove()
        watch.remove()
        self.none()
        self.assertFalse(watch.active)
        self.queue.watch(read)
        self.one()

    def test_entry_of_a_reused_descriptor(self):
        files = {}
        for _ in range(2):
            read, write = self.pipe()
            files[self.queue.watch(read, edge=True)] = read
            write.write(b"x")
        # The other one's entry is in the ring now
        files.pop(self.queue.get(1, SOON)[0].watch)
        (old, read), = files.items()
        fd = read.fileno()
        old.remove()
        read.close()
        again, other = self.pipe()
        if again.fileno() != fd:
            os.dup2(again.fileno(), fd)
            self.addCleanup(os.close, fd)
        new = self.queue.watch(fd, edge=True)
        self.none()
        other.write(b"x")
        self.assertIs(self.one().watch, new)

    def test_watch_of_a_closed_descriptor(self):
        read, _ = self.pipe()
        old = self.queue.watch(read)
        fd = read.fileno()
        again, write = self.pipe()
        os.dup2(again.fileno(), fd)
        new = self.queue.watch(fd)
        self.assertFalse(old.active)
        old.remove()
        with self.assertRaises(ValueError):
            old.modify()
        write.write(b"x")
        self.assertIs(self.one().watch, new)
        read.close()
        with self.assertRaises(OSError) as caught:
            new.modify()
        self.assertIn(caught.exception.errno, (errno.ENOENT, errno.EBADF))
        new.remove()

    def test_watch_whose_last_event_is_in_the_ring(self):
        """The kernel has forgotten it, so there can be a new one."""
        olds = {self.queue.signal(number, consume=True, oneshot=True)
                for number in (signal.SIGUSR1, signal.SIGUSR2)}
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(os.getpid(), number)
        olds.remove(self.queue.get(1, SOON)[0].watch)
        old, = olds
        new = self.queue.signal(old._signum, consume=True)
        self.assertTrue(old.active)
        with self.assertRaises(FileNotFoundError):
            old.modify()
        old.remove()
        self.none()
        os.kill(os.getpid(), old._signum)
        self.assertIs(self.one().watch, new)

    def test_watch_is_added_while_another_thread_forgets_the_old_one(self):
        read, write = self.pipe()
        new = []

        class Keys(dict):
            def pop(self, *args):
                if not new:
                    new.append(queue.watch(read))
                return super().pop(*args)

        queue = self.queue
        queue.watch(read, oneshot=True)
        queue._keys = Keys(queue._keys)
        write.write(b"x")
        self.one()
        new[0].modify()
        self.assertIs(self.one().watch, new[0])
        new[0].remove()
        self.none()
        queue.watch(read)

    def test_last_event_comes_beside_a_new_watch(self):
        olds = {self.queue.signal(number, consume=True, oneshot=True)
                for number in (signal.SIGUSR1, signal.SIGUSR2)}
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(os.getpid(), number)
        olds.remove(self.queue.get(1, SOON)[0].watch)
        old, = olds
        new = self.queue.signal(old._signum, consume=True)
        self.assertIs(self.one().watch, old)
        self.assertTrue(new.active)
        new.modify()

    def test_many_are_removed_at_close(self):
        users = [self.queue.user() for _ in range(5000)]
        self.queue.close()
        self.assertFalse(any(each.active for each in users))


class Waiting(Case):

    def test_timeout(self):
        start = time.monotonic()
        self.assertEqual(self.queue.get(timeout=0.05), [])
        self.assertGreaterEqual(time.monotonic() - start, 0.05)

    def test_bad_arguments(self):
        for timeout in (-1, float("nan")):
            with self.assertRaises(ValueError):
                self.queue.get(timeout=timeout)
        for most in (0, -1):
            with self.assertRaises(ValueError):
                self.queue.get(most, 0)

    def test_endless_timeouts(self):
        for timeout in (1e30, float("inf"), 1 << 70):
            self.queue.user(oneshot=True).mark()
            self.assertEqual(len(self.queue.get(timeout=timeout)), 1)

    def test_max(self):
        for _ in range(5):
            self.queue.user(edge=True).mark()
        self.assertEqual([len(self.queue.get(2, 0)) for _ in range(4)],
                         [2, 2, 1, 0])

    def test_more_than_the_ring_holds(self):
        with kevent.Queue(2) as queue:
            for number in range(9):
                queue.user(data=number).mark()
            seen = [event.data for _ in range(9)
                    for event in queue.get(timeout=0)]
            self.assertEqual(seen, list(range(9)))

    def test_wake(self):
        self.queue.wake()
        self.assertEqual(self.queue.get(timeout=SOON), [])
        results = []
        thread = self.thread(lambda: results.append(self.queue.get()))
        until_asleep(thread)
        self.queue.wake()
        self.join(thread)
        self.assertEqual(results, [[]])

    def test_wake_all(self):
        results = []
        threads = [self.thread(lambda: results.append(self.queue.get()))
                   for _ in range(3)]
        for thread in threads:
            until_asleep(thread)
        self.queue.wake_all()
        for thread in threads:
            self.join(thread)
        self.assertEqual(results, [[]] * 3)
        self.queue.user(data=7).mark()
        self.join(self.thread(lambda: results.extend(self.queue)))
        self.assertEqual([event.data for event in results[3:]], [7])

    def test_stale_entries_do_not_end_a_wait(self):
        read, write = self.pipe()
        watch = self.queue.watch(read, edge=True)
        write.write(b"x")
        self.queue._watches.pop(watch._handle)
        start = time.monotonic()
        self.assertEqual(self.queue.get(timeout=0.05), [])
        self.assertGreaterEqual(time.monotonic() - start, 0.05)

    def test_stale_entries_do_not_hide_an_event(self):
        for _ in range(5):
            user = self.queue.user(oneshot=True)
            user.mark()
            self.queue._watches.pop(user._handle)
        last = self.queue.user(oneshot=True)
        last.mark()
        self.assertIs(self.queue.get(1, 0)[0].watch, last)

    def test_watch_that_nobody_knows_does_not_prolong_a_wait(self):
        read, write = self.pipe()
        self.queue._watches.pop(self.queue.watch(read)._handle)
        write.write(b"x")
        for timeout in (0, 0.05):
            self.assertEqual(self.queue.get(timeout=timeout), [])

    def test_exception_of_a_signal_handler_leaves_no_new_watch(self):
        """It may come after the kernel has added the watch."""
        read, write = self.pipe()
        write.write(b"x")
        with mock.patch("kevent._lib.check", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.queue.watch(read)
        self.assertEqual(len(self.queue), 0)
        self.queue.watch(read)
        self.one()

    def test_exception_leaves_a_watch_that_was_there(self):
        """A request that the kernel has refused has added nothing."""
        read, write = self.pipe()
        watch = self.queue.watch(read)
        with mock.patch("kevent._lib.check", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.queue.watch(read)
        write.write(b"x")
        self.assertIs(self.one().watch, watch)

    def test_exception_before_the_call_leaves_a_watch_that_was_there(self):
        read, write = self.pipe()
        watch = self.queue.watch(read)
        enter, problems = self.queue._enter, [KeyboardInterrupt]

        def enter_interrupted():
            if problems:
                raise problems.pop()
            enter()

        with mock.patch.object(self.queue, "_enter", enter_interrupted):
            with self.assertRaises(KeyboardInterrupt):
                self.queue.watch(read)
        self.assertEqual(len(self.queue), 1)
        write.write(b"x")
        self.assertIs(self.one().watch, watch)

    def test_exception_of_a_signal_handler_in_remove(self):
        """It may come before the kernel has removed the watch, or after."""
        read, write = self.pipe()
        write.write(b"x")
        for place in ("kevent.Queue._enter", "kevent._lib.check"):
            watch = self.queue.watch(read)
            with mock.patch(place, side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    watch.remove()
            watch.remove()
            self.assertFalse(watch.active)
            self.none()

    def test_signal_handler_runs_and_the_wait_goes_on(self):
        seen = []
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(
            signal.SIGUSR1, lambda *_: seen.append("handler")))
        user = self.queue.user()
        main = threading.main_thread()

        def send():
            for _ in range(3):
                until_asleep(main)
                signal.pthread_kill(main.ident, signal.SIGUSR1)
            until_asleep(main)
            user.mark()

        self.thread(send)
        self.one()
        self.assertIn("handler", seen)

    def test_signal_handler_that_raises(self):
        class Stop(Exception):
            pass

        def stop(*_):
            raise Stop

        self.addCleanup(signal.signal, signal.SIGUSR1,
                        signal.signal(signal.SIGUSR1, stop))
        main = threading.main_thread()

        def send():
            until_asleep(main)
            signal.pthread_kill(main.ident, signal.SIGUSR1)

        self.thread(send)
        with self.assertRaises(Stop):
            self.queue.get(timeout=SOON)
        self.queue.user().mark()
        self.one()

    def test_mark_in_a_signal_handler(self):
        user = self.queue.user()
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(
            signal.SIGUSR1, lambda *_: user.mark()))
        main = threading.main_thread()

        def send():
            until_asleep(main)
            signal.pthread_kill(main.ident, signal.SIGUSR1)

        self.thread(send)
        self.assertIs(self.one().watch, user)

    def test_iteration(self):
        for number in range(4):
            self.queue.user(data=number).mark()
        seen = []
        for event in self.queue:
            seen.append(event.data)
            if len(seen) == 4:
                self.queue.close()
        self.assertEqual(seen, [0, 1, 2, 3])


class Threads(Case):

    def test_each_event_goes_to_one(self):
        user = self.queue.user(keep_each=True)
        seen, lock = [], threading.Lock()

        def take():
            for event in self.queue:
                with lock:
                    seen.append(event.value)
                    if len(seen) == 4000:
                        self.queue.close()

        def mark(first):
            for value in range(first, first + 1000):
                user.mark(value=value)

        takers = [self.thread(take) for _ in range(3)]
        for first in range(0, 4000, 1000):
            self.thread(mark, first)
        for thread in takers:
            self.join(thread)
        self.assertEqual(sorted(seen), list(range(4000)))

    def test_calls_race_with_close(self):
        """No call uses a descriptor that is not the queue's any more."""
        for _ in range(30):
            queue = kevent.Queue(8)
            user = queue.user()
            problems = []

            def use():
                try:
                    while True:
                        user.mark()
                        queue.get(timeout=0)
                        queue.user().remove()
                except ValueError:
                    pass
                except BaseException as problem:
                    problems.append(problem)

            threads = [self.thread(use) for _ in range(3)]
            while not len(queue.get(timeout=SOON)):
                pass
            queue.close()
            for thread in threads:
                self.join(thread)
            self.assertEqual(problems, [])
            self.assertEqual(queue._users, [])

    def test_another_thread_takes_the_last_buffer(self):
        class Buffers(list):
            def __len__(self):
                return 1

        self.queue._buffers = Buffers()
        self.queue.user(oneshot=True).mark()
        self.one()

    def first_of_three(self, fair):
        """Which of three threads that wait has the first event; 0 slept first."""
        queue = kevent.Queue(64, fair=fair)
        self.addCleanup(queue.close)
        user, got, first = queue.user(), [], threading.Event()

        def take(number):
            try:
                queue.get()
            except ValueError:		# closed
                return
            got.append(number)
            first.set()

        for number in range(3):
            until_asleep(self.thread(take, number))
        user.mark()
        self.assertTrue(first.wait(SOON))
        queue.close()
        return got[0]

    def test_fair_queue_wakes_who_sleeps_longest(self):
        self.assertIn(self.first_of_three(True), [0] if self.on_kevent else range(3))


class Errors(Case):

    def test_exists(self):
        read, _ = self.pipe()
        self.queue.watch(read)
        with self.assertRaises(FileExistsError) as caught:
            self.queue.watch(read)
        self.assertIsInstance(caught.exception, kevent.Error)
        self.assertEqual(caught.exception.errno, errno.EEXIST)
        self.assertEqual(caught.exception.strerror, os.strerror(errno.EEXIST))
        self.assertEqual(len(self.queue), 1)

    def test_not_open(self):
        read, _ = self.pipe()
        fd = read.fileno()
        read.close()
        with self.assertRaises(OSError) as caught:
            self.queue.watch(fd)
        self.assertEqual(caught.exception.errno, errno.EBADF)
        self.assertEqual(len(self.queue), 0)

    def test_queue_in_a_queue(self):
        with self.assertRaises(OSError) as caught:
            self.queue.watch(self.queue)
        self.assertEqual(caught.exception.errno, errno.ELOOP)

    def test_text_is_that_of_kevent(self):
        error = kevent._lib.error(-errno.ENOSYS)
        self.assertIn("CONFIG_KEVENT", error.strerror)
        self.assertIsInstance(kevent._lib.error(-errno.EPERM), PermissionError)

    def test_bad_arguments(self):
        queue = self.queue
        for call in (lambda: queue.watch(-1), lambda: queue.watch(1 << 31),
                     lambda: queue.watch(object()), lambda: queue.watch(0, -1),
                     lambda: queue.watch(0, 1 << 32),
                     lambda: queue.signal(-1), lambda: queue.process(-5),
                     lambda: queue.process(1 << 31), lambda: queue.timer(-1),
                     lambda: queue.timer(float("inf")),
                     lambda: queue.timer(1 << 40),
                     lambda: queue.timer(1, float("nan")),
                     lambda: queue.timer(1, clock=3),
                     lambda: queue.user().mark(value=-1),
                     lambda: queue.user().mark(-1),
                     lambda: queue.futex(bytearray(3), 0),
                     lambda: queue.futex(bytearray(8), -1)):
            with self.assertRaises(ValueError):
                call()
        for call in (lambda: queue.watch(0, no_such_flag=True),
                     lambda: queue.futex("text", 0),
                     lambda: queue.timer("1"), lambda: queue.get("1")):
            with self.assertRaises(TypeError):
                call()
        self.assertTrue(all(isinstance(each, kevent.UserWatch)
                            for each in queue._watches.values()))

    def test_supported(self):
        self.assertIs(kevent.supported(), self.on_kevent)


if __name__ == "__main__":
    unittest.main()
