# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Transports whose bytes go through memory; CPython's own tests: run_cpython.py --streams."""

import asyncio
import gc
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import kevent
from helpers import SOON, Library, until_asleep
from kevent._lib import ffi, lib
from kevent._stream_sockets import READ, WRITE, StreamSelector

BIG = bytes(range(256)) * 4096		# more than a ring
ECHO = """
import asyncio, kevent, sys
async def echo(reader, writer):
    while data := await reader.read(100000):
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    await asyncio.start_unix_server(echo, sys.argv[2])
    print("listens", flush=True)
    await asyncio.Future()
loop = kevent.EventLoop(streams=True) if sys.argv[1] == "yes" else asyncio.SelectorEventLoop()
loop.run_until_complete(main())
"""


class Collector(asyncio.Protocol):
    """Keeps what comes, and what is said."""

    def __init__(self, loop):
        self.made, self.lost = loop.create_future(), loop.create_future()
        self.paused, self.resumed = asyncio.Event(), asyncio.Event()
        self.ended = asyncio.Event()
        self.came = asyncio.Event()
        self.data = bytearray()
        self.keep_open = False

    def connection_made(self, transport):
        self.transport = transport
        self.made.set_result(None)

    def connection_lost(self, exc):
        self.lost.set_result(exc)

    def data_received(self, data):
        self.data += data
        self.came.set()

    def eof_received(self):
        self.ended.set()
        return self.keep_open

    def pause_writing(self):
        self.paused.set()

    def resume_writing(self):
        self.resumed.set()

    async def wait_for(self, data):
        while len(self.data) < len(data):
            self.came.clear()
            await self.came.wait()
        assert self.data == data, (self.data[:50], data[:50])
        self.data.clear()


class Buffered(Collector, asyncio.BufferedProtocol):

    def get_buffer(self, hint):
        self.buffer = bytearray(1000)
        return self.buffer

    def buffer_updated(self, size):
        self.data_received(self.buffer[:size])


def in_memory(transport):
    return transport._sock.in_memory


class LoopCase(unittest.TestCase):

    def setUp(self):
        self.loop = kevent.EventLoop(streams=True)
        self.addCleanup(self.loop.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = f"{folder.name}/socket"
        self.problems = []
        self.loop.set_exception_handler(lambda _, context: self.problems.append(context))
        self.addCleanup(lambda: self.assertEqual(self.problems, []))

    def run_in(self, coroutine):
        async def main():
            try:
                return await asyncio.wait_for(coroutine, SOON)
            finally:
                for transport in list(self.loop._transports.values()):
                    if transport._sock is not None:
                        transport.abort()
                await asyncio.sleep(0)

        return self.loop.run_until_complete(main())

    async def connect(self, make=Collector):
        """A connection of the loop to itself, in memory: both protocols."""
        made = self.loop.create_future()

        def accepted():
            protocol = make(self.loop)
            made.set_result(protocol)
            return protocol

        server = await self.loop.create_unix_server(accepted, self.path)
        _, mine = await self.loop.create_unix_connection(lambda: make(self.loop), self.path)
        theirs = await made
        await theirs.made
        server.close()
        for data in (b"1", b"2"):
            for a, b in ((mine, theirs), (theirs, mine)):
                a.transport.write(data)
                await b.wait_for(data)
        self.assertTrue(in_memory(mine.transport))
        self.assertTrue(in_memory(theirs.transport))
        return mine, theirs

    def server(self, streams):
        """Another process that sends back what it gets."""
        child = subprocess.Popen([sys.executable, "-c", ECHO, streams, self.path],
                                 stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), b"listens\n")
        return child


class Contracts(LoopCase):
    """What asyncio promises of a transport."""

    def test_bytes_keep_their_order(self):
        async def main():
            mine, theirs = await self.connect()
            mine.transport.writelines([BIG, b"end"])
            await theirs.wait_for(BIG + b"end")

        self.run_in(main())

    def test_buffered_protocol(self):
        async def main():
            mine, theirs = await self.connect(Buffered)
            mine.transport.write(BIG)
            await theirs.wait_for(BIG)

        self.run_in(main())

    def test_pause_of_the_reader_pauses_the_writer(self):
        async def main():
            mine, theirs = await self.connect()
            theirs.transport.pause_reading()
            mine.transport.write(BIG)
            self.assertTrue(mine.paused.is_set())
            self.assertGreater(mine.transport.get_write_buffer_size(), 0)
            for _ in range(10):
                await asyncio.sleep(0)
            self.assertEqual(theirs.data, b"")
            self.assertFalse(mine.resumed.is_set())
            theirs.transport.resume_reading()
            await theirs.wait_for(BIG)
            await mine.resumed.wait()
            self.assertEqual(mine.transport.get_write_buffer_size(), 0)

        self.run_in(main())

    def test_bytes_wait_for_a_paused_reader(self):
        async def main():
            mine, theirs = await self.connect()
            theirs.transport.pause_reading()
            mine.transport.write(b"abc")
            # The loop sees them and sleeps all the same
            await asyncio.sleep(0.001)
            rounds = []
            select = self.loop._selector.select
            self.loop._selector.select = \
                lambda timeout: rounds.append(timeout) or select(timeout)
            await asyncio.sleep(0.01)
            self.assertLess(len(rounds), 10)
            theirs.transport.resume_reading()
            await theirs.wait_for(b"abc")

        self.run_in(main())

    def test_write_eof(self):
        async def main():
            mine, theirs = await self.connect()
            theirs.keep_open = mine.keep_open = True
            mine.transport.write(BIG)
            mine.transport.write_eof()
            await theirs.wait_for(BIG)
            await theirs.ended.wait()
            with self.assertRaises(RuntimeError):
                mine.transport.write(b"x")
            theirs.transport.write(BIG)
            await mine.wait_for(BIG)
            theirs.transport.write_eof()
            await mine.ended.wait()
            mine.transport.close()
            theirs.transport.close()
            self.assertEqual([await mine.lost, await theirs.lost], [None, None])

        self.run_in(main())

    def test_close_sends_all(self):
        async def main():
            mine, theirs = await self.connect()
            mine.transport.write(BIG)
            mine.transport.close()
            self.assertTrue(mine.transport.is_closing())
            await theirs.wait_for(BIG)
            self.assertIsNone(await theirs.lost)
            self.assertIsNone(await mine.lost)

        self.run_in(main())

    def test_abort_ends_at_once(self):
        async def main():
            mine, theirs = await self.connect()
            theirs.transport.pause_reading()
            mine.transport.write(BIG)
            mine.transport.abort()
            self.assertIsNone(await mine.lost)
            theirs.transport.resume_reading()
            await theirs.lost
            self.assertLess(len(theirs.data), len(BIG))

        self.run_in(main())

    def test_writer_hears_of_the_end(self):
        async def main():
            mine, theirs = await self.connect()
            theirs.transport.pause_reading()
            mine.transport.pause_reading()
            mine.transport.write(BIG)
            theirs.transport.abort()
            self.assertIsInstance(await mine.lost, BrokenPipeError)

        self.run_in(main())

    def test_extra_info(self):
        async def main():
            mine, theirs = await self.connect()
            sock = mine.transport.get_extra_info("socket")
            self.assertEqual(sock.family, socket.AF_UNIX)
            self.assertEqual(mine.transport.get_extra_info("peername"), self.path)
            self.assertEqual(theirs.transport.get_extra_info("sockname"), self.path)
            cred = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            self.assertEqual(struct.unpack("3i", cred)[0], os.getpid())
            self.assertGreaterEqual(sock.fileno(), 0)
            self.assertIn(self.path, repr(sock))
            for call in (sock.dup, lambda: sock.shutdown(socket.SHUT_RD)):
                with self.assertRaises(OSError):
                    call()
            with self.assertRaises(RuntimeError):
                self.loop.add_reader(sock.fileno(), print)

        self.run_in(main())

    def test_shutdown_of_the_socket(self):
        async def main():
            mine, theirs = await self.connect()
            theirs.keep_open = True
            mine.transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            await mine.lost
            await theirs.ended.wait()

        self.run_in(main())

    def test_sendfile_copies(self):
        async def main():
            mine, theirs = await self.connect()
            with tempfile.TemporaryFile() as file:
                file.write(BIG)
                mine.transport.write(b"head")
                sent = await self.loop.sendfile(mine.transport, file, 10, 300000)
                self.assertEqual(sent, 300000)
                mine.transport.write(b"tail")
                await theirs.wait_for(b"head" + BIG[10:300010] + b"tail")
                with self.assertRaises(asyncio.SendfileNotAvailableError):
                    await self.loop.sendfile(mine.transport, file, fallback=False)

        self.run_in(main())

    def test_closed_loop_leaves_nothing(self):
        mine, theirs = self.loop.run_until_complete(self.connect())
        sockets = [each.transport._sock._sock for each in (mine, theirs)]
        before = set(os.listdir("/proc/self/fd"))
        fds = {str(each.fileno()) for each in sockets}
        self.assertLessEqual(fds, before)
        self.loop.close()
        self.assertFalse(fds & set(os.listdir("/proc/self/fd")))
        self.assertEqual([each.fileno() for each in sockets], [-1, -1])
        for each in (mine, theirs):
            with self.assertWarns(ResourceWarning):
                each.transport.__del__()
            each.transport._sock = None

    async def lose_transport(self, *, speak=False):
        """Drop a connection, for the collector, and return the other side's protocol."""
        mine, theirs = await self.connect()
        mine.transport.pause_reading()
        if speak:
            theirs.transport.write(b"x")
        return theirs

    def collect(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    def test_transport_is_collected_in_another_thread(self):
        """The stream is closed in the thread of the loop, which sleeps."""
        threads = []

        def close(stream):
            threads.append(threading.get_ident())
            lib.kevent_stream_close(stream)

        def collect_while_asleep():
            until_asleep(threading.main_thread())
            self.collect()

        async def main():
            theirs = await self.lose_transport()
            thread = threading.Thread(target=collect_while_asleep)
            thread.start()
            self.addCleanup(thread.join)
            await theirs.lost

        gc.disable()
        self.addCleanup(gc.enable)
        library = Library(kevent_stream_close=close)
        with unittest.mock.patch("kevent._streams.lib", library), \
                unittest.mock.patch("kevent._stream_sockets.lib", library):
            self.run_in(main())
        self.assertEqual(set(threads), {threading.get_ident()})

    def test_transport_is_collected_between_two_lines(self):
        """The library has returned its stream as one with something to do."""
        def next_stream(streams):
            stream = lib.kevent_streams_next(streams)
            self.collect()
            return stream

        async def main():
            theirs = await self.lose_transport(speak=True)
            with unittest.mock.patch("kevent._streams.lib",
                                     Library(kevent_streams_next=next_stream)):
                await theirs.lost

        gc.disable()
        self.addCleanup(gc.enable)
        self.run_in(main())

    def test_transport_is_collected_within_select(self):
        """Its stream is closed when no line of select() has the pointer any more."""
        closed = []

        def close(stream):
            closed.append(stream)
            lib.kevent_stream_close(stream)

        def get(*words):
            before = list(closed)
            self.collect()
            self.assertEqual(closed, before)
            return lib.kevent_streams_get(*words)

        async def main():
            theirs = await self.lose_transport()
            library = Library(kevent_stream_close=close, kevent_streams_get=get)
            with unittest.mock.patch("kevent._stream_sockets.lib", library):
                await theirs.lost

        gc.disable()
        self.addCleanup(gc.enable)
        self.run_in(main())

    def test_policy(self):
        async def main():
            mine, theirs = socket.socketpair()
            reader, writer = await asyncio.open_unix_connection(sock=mine)
            self.assertFalse(in_memory(writer.transport))
            theirs.send(b"abc")
            theirs.close()
            self.assertEqual(await reader.read(), b"abc")
            writer.close()
            await writer.wait_closed()

        asyncio.set_event_loop_policy(kevent.EventLoopPolicy(streams=True))
        self.addCleanup(asyncio.set_event_loop_policy, None)
        asyncio.run(asyncio.wait_for(main(), SOON))

    def test_selector_of_the_program(self):
        with kevent.Selector() as selector, self.assertRaises(ValueError):
            kevent.EventLoop(selector, streams=True)


class Peers(LoopCase):
    """Other loops, other processes, and sockets that nobody has made streams of."""

    async def exchange(self, number, rand):
        reader, writer = await asyncio.open_unix_connection(self.path)
        for _ in range(number):
            data = rand.randbytes(rand.choice((1, 10, 1000, 40000, 200000)))
            writer.write(data)
            self.assertEqual(await reader.readexactly(len(data)), data)
        memory = in_memory(writer.transport)
        writer.write_eof()
        self.assertEqual(await reader.read(), b"")
        writer.close()
        await writer.wait_closed()
        return memory

    async def exchange_all(self):
        rand = random.Random(1)
        return set(await asyncio.gather(*(self.exchange(50, rand) for _ in range(10))))

    def test_process_with_streams(self):
        self.server("yes")
        self.assertEqual(self.run_in(self.exchange_all()), {True})

    def test_process_without_streams(self):
        self.server("no")
        self.assertEqual(self.run_in(self.exchange_all()), {False})

    def test_client_without_streams(self):
        self.server("yes")
        loop = asyncio.SelectorEventLoop()
        self.addCleanup(loop.close)

        async def main():
            reader, writer = await asyncio.open_unix_connection(self.path)
            for data in (b"abc", BIG):
                writer.write(data)
                self.assertEqual(await reader.readexactly(len(data)), data)
            writer.write_eof()
            self.assertEqual(await reader.read(), b"")
            writer.close()
            await writer.wait_closed()

        loop.run_until_complete(asyncio.wait_for(main(), SOON))

    def test_process_that_is_killed(self):
        child = self.server("yes")

        async def main():
            reader, writer = await asyncio.open_unix_connection(self.path)
            for _ in range(2):
                writer.write(b"abc")
                self.assertEqual(await reader.readexactly(3), b"abc")
            self.assertTrue(in_memory(writer.transport))
            child.send_signal(signal.SIGKILL)
            self.assertEqual(await reader.read(), b"")
            writer.close()
            await writer.wait_closed()

        self.run_in(main())

    def test_loops_of_two_threads(self):
        """The other thread's calls come while this loop sleeps, and wake it."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen()
        other = kevent.EventLoop(streams=True)
        self.addCleanup(other.close)

        async def serve():
            ended = other.create_future()

            async def echo(reader, writer):
                while data := await reader.read(1000):
                    await asyncio.sleep(0)
                    writer.write(data)
                writer.close()
                await writer.wait_closed()
                ended.set_result(None)

            async with await asyncio.start_unix_server(echo, sock=listener):
                await asyncio.wait_for(ended, SOON)

        thread = threading.Thread(target=other.run_until_complete, args=(serve(),))
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(self.run_in(self.exchange(100, random.Random(2))))

    def test_socket_that_was_accepted(self):
        self.assertTrue(self.run_in(self.accept()))

    async def accept(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.path)
        listener.listen()
        _, mine = await self.loop.create_unix_connection(
            lambda: Collector(self.loop), self.path)
        _, theirs = await self.loop.connect_accepted_socket(
            lambda: Collector(self.loop), listener.accept()[0])
        for data in (b"1", b"2"):
            for a, b in ((mine, theirs), (theirs, mine)):
                a.transport.write(data)
                await b.wait_for(data)
        return in_memory(mine.transport)

    def test_both_of_a_pair(self):
        async def main():
            protocols = []
            for sock in socket.socketpair():
                _, protocol = await self.loop.create_unix_connection(
                    lambda: Collector(self.loop), sock=sock)
                protocols.append(protocol)
            a, b = protocols
            a.transport.write(BIG)
            await b.wait_for(BIG)
            b.transport.close()
            await a.lost

        self.run_in(main())

    def test_threads_end_a_sleep(self):
        async def main():
            await self.connect()
            self.assertEqual(await asyncio.to_thread(lambda: 5), 5)
            child = await asyncio.create_subprocess_exec(
                "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.assertEqual((await child.communicate(b"abc"))[0], b"abc")

        self.run_in(main())


class Sockets(unittest.TestCase):
    """The selector, and what transports call, one step at a time."""

    def setUp(self):
        self.selectors = StreamSelector(), StreamSelector()
        for each in self.selectors:
            self.addCleanup(each.close)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("")
            listener.listen()
            mine = socket.socket(socket.AF_UNIX)
            mine.connect(listener.getsockname())
            self.a = self.selectors[0].stream_socket(mine)
            self.b = self.selectors[1].stream_socket(listener.accept()[0])
        self.key = self.selectors[1].register(self.b.fileno(), READ)
        for data in (b"1", b"2"):
            self.a.send(data)
            self.receive(data)
            self.b.send(data)
            while self.a.ready & READ:
                try:
                    self.a.recv(1)
                except BlockingIOError:
                    pass
            self.selectors[0].select(0)
        self.assertTrue(self.a.in_memory)

    def receive(self, wanted):
        got = b""
        while len(got) < len(wanted):
            self.assertEqual(self.selectors[1].select(SOON), [(self.key, READ)])
            try:
                got += self.b.recv(10)
            except BlockingIOError:
                pass
        self.assertEqual(got, wanted)

    def none(self):
        self.assertEqual(self.selectors[1].select(0), [])

    def test_readiness_is_a_level(self):
        self.none()
        self.a.send(b"abcd")
        for _ in range(2):
            self.assertEqual(self.selectors[1].select(SOON), [(self.key, READ)])
        self.assertEqual(self.b.recv(2), b"ab")
        self.assertEqual(self.selectors[1].select(0), [(self.key, READ)])
        self.assertEqual(self.b.recv(10), b"cd")
        self.none()
        with self.assertRaises(BlockingIOError):
            self.b.recv(1)

    def test_what_is_waited_for_changes(self):
        self.key = self.selectors[1].modify(self.b.fileno(), WRITE)
        self.assertEqual(self.selectors[1].select(0), [(self.key, WRITE)])
        self.a.send(b"x")
        self.assertEqual(self.selectors[1].select(0), [(self.key, WRITE)])
        self.key = self.selectors[1].modify(self.b.fileno(), READ)
        self.receive(b"x")
        self.selectors[1].unregister(self.b.fileno())
        self.a.send(b"x")
        self.none()
        self.key = self.selectors[1].register(self.b.fileno(), READ)
        self.receive(b"x")

    def test_room(self):
        while True:
            try:
                self.a.send(BIG)
            except BlockingIOError:
                break
        key = self.selectors[0].register(self.a.fileno(), WRITE)
        self.assertEqual(self.selectors[0].select(0), [])
        self.b.recv_into(bytearray(len(BIG)))
        self.assertEqual(self.selectors[0].select(SOON), [(key, WRITE)])
        self.assertGreater(self.a.send(BIG), 0)

    def test_vectors(self):
        self.assertEqual(self.a.sendmsg([b"ab", bytearray(b"c"), memoryview(b"def")]), 6)
        memory = bytearray(4)
        self.assertEqual(self.b.recv_into(memory), 4)
        self.assertEqual(memory, b"abcd")
        self.receive(b"ef")

    def test_error_that_is_seen_too_early(self):
        """That of a socket is reported once: not to the one who only looks."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("")
            listener.listen()
            other = socket.socket(socket.AF_UNIX)
            other.connect(listener.getsockname())
            sock = self.selectors[0].stream_socket(listener.accept()[0])
        sock.send(b"never read")
        other.send(b"abc")
        other.close()
        self.assertEqual(sock.recv(10), b"abc")
        self.assertTrue(sock.ready & READ)
        with self.assertRaises(ConnectionResetError):
            sock.recv(10)
        self.assertEqual(sock.recv(10), b"")

    def test_peer_that_goes_on_writing(self):
        """It does not keep select() from returning."""
        class Library:
            calls = 0

            def __getattr__(self, name):
                return getattr(lib, name)

            def kevent_streams_next(self, _):
                self.calls += 1
                assert self.calls < 10
                return stream

        stream = self.b._stream
        with unittest.mock.patch("kevent._streams.lib", Library()):
            self.assertEqual(self.selectors[1].select(0), [(self.key, READ)])

    def test_end(self):
        self.a.close()
        self.a.close()
        self.assertEqual(self.a.fileno(), -1)
        self.assertEqual(self.selectors[1].select(SOON), [(self.key, READ)])
        self.assertEqual(self.b.recv(1), b"")
        with self.assertRaises(BrokenPipeError):
            self.b.send(b"x")
        with self.assertRaises(ValueError):
            self.a.send(b"x")

    def test_another_thread_closes_the_queue_too(self):
        """It comes while the first one frees the streams."""
        freed = []

        def free(streams):
            freed.append(streams)
            if len(freed) == 1:
                thread = threading.Thread(target=queue._finish)
                thread.start()
                thread.join()
                lib.kevent_streams_free(streams)

        queue = self.selectors[1].queue
        with unittest.mock.patch("kevent._streams.lib", Library(kevent_streams_free=free)):
            queue.close()
        self.assertEqual(len(freed), 1)

    def test_stream_is_closed_between_two_lines(self):
        """Its event has found the object already."""
        streams, event = self.selectors[1].queue.streams, ffi.new("struct ukevent *")
        event.ptr = self.b._number

        class Streams(dict):
            def get(self, *args):
                stream = super().get(*args)
                stream.close()
                return stream

        streams._streams = Streams(streams._streams)
        self.assertTrue(streams._event(event))
        self.none()

    def test_exception_while_a_stream_is_made(self):
        mine, other = socket.socketpair()
        self.addCleanup(other.close)
        other.settimeout(SOON)
        with unittest.mock.patch("kevent._lib.check", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.selectors[1].stream_socket(mine)
        self.assertEqual(mine.fileno(), -1)
        self.assertEqual(other.recv(1), b"")

    def test_child_leaves_the_parent_its_streams(self):
        pid = os.fork()
        if not pid:
            try:
                self.b.close()
                self.selectors[1].close()
                os._exit(self.b.fileno() != -1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.a.send(b"x")
        self.receive(b"x")


if __name__ == "__main__":
    unittest.main()
