# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Streams as sockets of asyncio's transports, and a selector that knows them."""

import collections
import errno
import functools
import os
import socket
import threading

from . import _lib
from ._lib import ffi, lib
from ._queue import Queue
from ._selector import READ, WRITE, Selector
from ._streams import Stream, StreamSet

MOST = 65536			# that one read returns: a ring


def is_stream_socket(sock):
    """May its bytes go through memory?"""
    return sock.family == socket.AF_UNIX and sock.type == socket.SOCK_STREAM


class StreamQueue(Queue):
    """A queue with a set of streams, whose waits are those of the set."""

    def _make(self, flags):
        super()._make(flags)
        self.streams = StreamSet(self._q, self._handles, True)

    def _wait(self, buffer, max, timeout):
        return lib.kevent_streams_get(self.streams._check(), buffer, max, timeout)

    def _before_close(self):
        for sock in list(self.streams._streams.values()):
            sock._detach()
        self.streams._free()


class StreamSelector(Selector):
    """A selector for files and for streams.

    A stream has no watch, and to change what is waited for makes no system call. It has
    something to do, ``ready``, from what libkevent says until a call finds nothing.
    """

    def __init__(self):
        super().__init__(StreamQueue())
        self._sockets = {}	# by descriptor
        self._listed = {}	# sockets with something to do, and some without
        self._ended = collections.deque()	# streams that the library is to close
        self._lock = threading.RLock()	# for a change of the thread, and closing
        self._thread = threading.get_ident()	# that uses the set
        self._selecting = False	# it does now

    def stream_socket(self, sock):
        """Make a StreamSocket of a connected socket, which belongs to it afterwards.

        The side that has connected offers memory. It has no name of its own: that of
        the other side is the listener's.
        """
        stream = self.queue.streams._open(sock, not sock.getsockname(),
                                          functools.partial(StreamSocket, self, sock))
        self._sockets[stream.fd] = stream
        return stream

    def _make_watch(self, fd, events):
        stream = self._sockets.get(fd)
        if stream is None:
            return super()._make_watch(fd, events)
        self._listed[stream] = None
        return stream

    def _other(self, entry):
        event = ffi.new("struct ukevent *")
        ffi.buffer(event)[:] = _lib.ENTRY.pack(*entry)
        return self.queue.streams._event(event) or super()._other(entry)

    def _collect(self):
        """What can be done with streams, as select() returns it."""
        for stream in self.queue.streams._ready():
            stream.ready = READ | WRITE
            self._listed[stream] = None
        found = []
        for stream in list(self._listed):
            key = self._fd_to_key.get(stream.fd)
            events = key.events & stream.ready if key else 0
            if events:
                found.append((key, events))
            else:
                self._listed.pop(stream, None)
        return found

    def select(self, timeout=None):
        """Wait, and return a list of (key, events) of what is ready."""
        self.queue._enter()	# nobody frees the set before _leave()
        try:
            with self._lock:
                self._thread = threading.get_ident()
            self._selecting = True
            self._close_ended()
            files = super().select(0 if self._collect() else timeout)
            return files + self._collect()
        finally:
            self._selecting = False
            self._close_ended()
            self.queue._leave()

    def _close_ended(self):
        try:
            while True:
                lib.kevent_stream_close(self._ended.popleft())
        except IndexError:
            pass

    def _close(self, stream):
        """Close a stream, or have the thread that uses the set do it.

        A transport is collected in any thread, but a set is for one. It is also collected
        between any two lines of select(), which may have the pointer of its stream.
        """
        self._ended.append(stream)
        if self.queue._foreign:	# in a child of fork()
            self._close_ended()
            return
        try:
            with self._lock:
                if self._selecting or self._thread != threading.get_ident():
                    self.queue.wake()	# it may be about to wait
                    return
                self.queue._enter()
                try:
                    self._close_ended()
                finally:
                    self.queue._leave()
        except ValueError:	# the queue is closed, with its streams
            pass


class StreamSocket(Stream):
    """A stream with the methods of sockets that transports call."""

    def __init__(self, selector, sock, *stream):
        super().__init__(*stream)
        self.fd = sock.fileno()
        self.ready = READ | WRITE
        self._selector = selector
        self._sock = sock	# the same descriptor, until close()
        self._late = 0		# error that a read has left to the next one

    def __getattr__(self, name):
        """Names, options and what else bytes do not go through."""
        if name in ("_sock", "detach", "makefile"):
            raise AttributeError(name)
        return getattr(self._sock, name)

    # --- as the selector's watch ------------------------------------------

    def modify(self, _):
        self._selector._listed[self] = None

    def remove(self):
        pass

    # --- as a socket ------------------------------------------------------

    def fileno(self):
        return self._sock.fileno()

    def dup(self):
        # It would have what goes through the socket, which are not the bytes
        raise OSError(errno.EOPNOTSUPP, "no copy of a socket whose bytes go through memory")

    def _detach(self):
        self._selector._sockets.pop(self.fd, None)
        self._selector._listed.pop(self, None)
        self._sock.detach()

    def close(self):
        stream = self._end()
        if stream is not None:
            self._detach()
            self._selector._close(stream)

    def shutdown(self, how):
        if how == socket.SHUT_RD:
            raise OSError(errno.EOPNOTSUPP, "SHUT_RD of a stream")
        self._result(lib.kevent_stream_shutdown(self._check()), 0)
        if how == socket.SHUT_RDWR:
            self._sock.shutdown(how)

    def _result(self, result, direction):
        if result == -errno.EAGAIN:
            self.ready &= ~direction
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result

    def _read_to(self, buffer):
        """Read, and see whether that was all, which spares a round of the loop."""
        if self._late:
            result, self._late = self._late, 0
            return self._result(result, READ)
        result = self._result(lib.kevent_stream_read(self._check(), buffer, len(buffer)),
                              READ)
        if 0 < result < len(buffer):
            more = lib.kevent_stream_peek(self._stream, ffi.new("char[1]"), 1)
            if more == -errno.EAGAIN:
                self.ready &= ~READ
            elif more < 0:
                self._late = more
        return result

    def recv(self, size):
        buffer = allocate("char[]", min(size, MOST))
        return ffi.buffer(buffer, self._read_to(buffer))[:]

    def recv_into(self, buffer):
        with ffi.from_buffer(buffer, require_writable=True) as memory:
            return self._read_to(memory)

    def send(self, data):
        with ffi.from_buffer(data) as memory:
            return self._result(lib.kevent_stream_write(self._check(), memory, len(memory)),
                                WRITE)

    def sendmsg(self, buffers):
        parts = [ffi.from_buffer(each) for each in buffers]
        vector = ffi.new("struct iovec[]", [(part, len(part)) for part in parts])
        return self._result(lib.kevent_stream_writev(self._check(), vector, len(parts)),
                            WRITE)


allocate = ffi.new_allocator(should_clear_after_alloc=False)
