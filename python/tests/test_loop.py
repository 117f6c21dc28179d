# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The event loop, besides what CPython's own tests check; see run_cpython.py."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import tempfile
import unittest
import weakref

import kevent
from helpers import SOON


class Loops(unittest.TestCase):

    def setUp(self):
        self.loop = kevent.EventLoop()
        self.addCleanup(self.loop.close)

    def run_in(self, coroutine):
        return self.loop.run_until_complete(
            asyncio.wait_for(coroutine, SOON))

    def test_policy(self):
        async def main():
            return asyncio.get_running_loop()

        asyncio.set_event_loop_policy(kevent.EventLoopPolicy())
        self.addCleanup(asyncio.set_event_loop_policy, None)
        self.assertIsInstance(asyncio.run(main()), kevent.EventLoop)

    def test_streams(self):
        async def serve(reader, writer):
            writer.write((await reader.readline()).upper())
            await writer.drain()
            writer.close()

        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            address = server.sockets[0].getsockname()

            async def ask(number):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(b"question %d\n" % number)
                answer = await reader.read()
                writer.close()
                return answer

            async with server:
                return await asyncio.gather(*map(ask, range(50)))

        self.assertEqual(self.run_in(main()),
                         [b"QUESTION %d\n" % number for number in range(50)])

    def test_subprocess(self):
        async def main():
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "print(input() * 2)",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            output, _ = await child.communicate(b"ab\n")
            return output, child.returncode

        self.assertEqual(self.run_in(main()), (b"abab\n", 0))

    def test_timer_watch(self):
        async def main():
            done = self.loop.create_future()
            watch = self.loop.queue.timer(0.01)
            self.loop.add_watch(watch, lambda event, word: done.set_result(
                (event.expirations, word)), "word")
            result = await done
            self.assertFalse(self.loop.remove_watch(watch))
            return result

        self.assertEqual(self.run_in(main()), (1, "word"))

    def test_inode_watch(self):
        async def main():
            events = asyncio.Queue()
            with tempfile.TemporaryDirectory() as path:
                folder = os.open(path, os.O_RDONLY)
                watch = self.loop.queue.inode(folder, kevent.Inode.CREATE)
                self.loop.add_watch(watch, events.put_nowait)
                os.mkdir(f"{path}/a")
                seen = [(await events.get()).events]
                os.mkdir(f"{path}/b")
                seen.append((await events.get()).events)
                self.assertTrue(self.loop.remove_watch(watch))
                os.mkdir(f"{path}/c")
                await asyncio.sleep(0)
                os.close(folder)
            self.assertTrue(events.empty())
            return seen

        self.assertEqual(self.run_in(main()), [kevent.Inode.CREATE] * 2)

    def test_removed_watch_keeps_nothing(self):
        """Its callback goes with it, also if the callback has it."""
        async def main():
            user = self.loop.queue.user()
            self.loop.add_watch(user, print, user)
            user.remove()
            return weakref.ref(user)

        watch = self.run_in(main())
        gc.collect()
        self.assertIsNone(watch())

    def call_in_one_round(self, watches, report, act):
        """Have two watches report at once, and the first callback act on the other watch.

        Returns how many callbacks there were.
        """
        seen, done = [], self.loop.create_future()

        def call(event):
            seen.append(event)
            if len(seen) == 1:
                done.set_result(None)
                act(watches[event.watch is watches[0]])

        async def main():
            for watch in watches:
                self.loop.add_watch(watch, call)
            report()
            await done

        self.run_in(main())
        return len(seen)

    def test_callback_removes_another_one(self):
        for act, oneshot in ((self.loop.remove_watch, False), (self.loop.remove_watch, True),
                             (kevent.Watch.remove, False)):
            users = [self.loop.queue.user(oneshot=oneshot) for _ in range(2)]
            calls = self.call_in_one_round(users, lambda: [user.mark() for user in users], act)
            self.assertEqual(calls, 1)

    def test_callback_replaces_another_one(self):
        """The new one has the event."""
        users, events = [self.loop.queue.user() for _ in range(2)], []
        calls = self.call_in_one_round(users, lambda: [user.mark() for user in users],
                                       lambda user: self.loop.add_watch(user, events.append))
        self.assertEqual((calls, len(events)), (1, 1))

    def test_callback_closes_the_file_of_another_one(self):
        """Its descriptor is that of another file then."""
        def act(watch):
            os.dup2(quiet, watch.fd)
            self.loop.queue.watch(watch.fd)

        pipes = [os.pipe() for _ in range(3)]
        for fd in sum(pipes, ()):
            self.addCleanup(os.close, fd)
        quiet = pipes.pop()[0]
        watches = [self.loop.queue.watch(read, edge=True) for read, _ in pipes]
        calls = self.call_in_one_round(
            watches, lambda: [os.write(write, b"x") for _, write in pipes], act)
        self.assertEqual(calls, 1)

    def test_context_of_a_callback(self):
        var = contextvars.ContextVar("var", default="of the loop")

        async def main():
            var.set("of the task")
            done = self.loop.create_future()
            user = self.loop.queue.user()
            self.loop.add_watch(user, lambda event: done.set_result(var.get()))
            user.mark()
            return await done

        self.assertEqual(self.run_in(main()), "of the task")

    def test_mark_of_a_thread(self):
        async def main():
            marked = asyncio.Event()
            user = self.loop.queue.user()
            self.loop.add_watch(user, lambda event: marked.set())
            await asyncio.gather(marked.wait(), asyncio.to_thread(user.mark))

        self.run_in(main())

    def test_closed(self):
        queue = self.loop.queue
        self.loop.close()
        self.assertTrue(queue.closed)
        with self.assertRaises(RuntimeError):
            self.loop.add_watch(None, print)


if __name__ == "__main__":
    unittest.main()
