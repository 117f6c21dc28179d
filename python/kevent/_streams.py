# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Streams: bytes of Unix sockets through memory, see kevent_stream(3)."""

import errno
import itertools
import mmap
import warnings

from . import _lib
from ._lib import ffi, lib
from ._queue import _deadline, _time_left

STREAM_OFFER = 0x1
LOOKS_LEARNED = 0xffffffff
SENDS, RECEIVES = 0x1, 0x2
SIZE = 64			# of the ring, and events of one call


class StreamSet:
    """What sets of streams have in common, whosever the queue is.

    numbers	of its streams, for what the queue reports

    A stream may be collected and closed between any two lines that use the set.
    """

    def __init__(self, q, numbers, busy_poll):
        self._set = None
        self._streams = {}	# by number
        self._pointers = {}	# the same, by the pointer of the library
        self._numbers = numbers
        new = ffi.new("struct kevent_streams **")
        _lib.check(lib.kevent_streams_new(new, q, LOOKS_LEARNED if busy_poll else 0))
        self._set = new[0]

    def _check(self):
        if self._set is None:
            raise ValueError("the set is closed")
        return self._set

    def _free(self):
        """Free the set and its streams; returns false if that was done before."""
        streams, self._set = self._set, None
        if streams is None:
            return False
        for stream in list(self._streams.values()):
            stream._stream = None
        self._streams.clear()
        self._pointers.clear()
        lib.kevent_streams_free(streams)
        return True

    def _open(self, sock, offer, make):
        """Make a stream of a socket, and the object of it by make().

        The stream closes the descriptor, also if there is an exception after it was made.
        """
        number = next(self._numbers)
        new = ffi.new("struct kevent_stream **")
        try:
            _lib.check(lib.kevent_stream_open(self._check(), sock.fileno(),
                                              STREAM_OFFER if offer else 0, number, new))
            stream = make(self, new[0], number)
            self._streams[number] = self._pointers[new[0]] = stream
            return stream
        except BaseException:
            # A signal handler's exception may come after the call
            if new[0]:
                self._streams.pop(number, None)
                self._pointers.pop(new[0], None)
                sock.detach()
                lib.kevent_stream_close(new[0])
            raise

    def _event(self, event):
        """Act on an event of the queue; returns whether it is of a stream."""
        stream = self._streams.get(event.ptr)
        if stream is None:
            return False
        pointer = stream._stream
        if pointer is not None:	# not closed meanwhile
            lib.kevent_stream_event(pointer, event)
        return True

    def _ready(self):
        """The streams with something to do, each once.

        One comes again if it changes meanwhile; a peer that goes on writing must not
        keep us here.
        """
        ready = {}
        while True:
            stream = lib.kevent_streams_next(self._check())
            if stream == ffi.NULL:
                break
            stream = self._pointers.get(stream)
            if stream in ready:
                break
            ready[stream] = None
        # It was closed meanwhile, or a second exception in _open() has left no object
        ready.pop(None, None)
        return list(ready)


class Streams(StreamSet):
    """A set of streams, with a queue of its own.

    busy_poll	poll before a sleep, for as long as that has paid lately

    One thread at a time uses a set and its streams. Another event loop may watch
    fileno(): it calls arm() before it waits, and get(0) afterwards. A child of fork() has
    no use of them. A set is closed, with its streams, at the end of a ``with`` block.
    """

    def __init__(self, *, busy_poll=True):
        self._set = None
        self._events = ffi.new("struct ukevent[]", SIZE)
        self._memory = mmap.mmap(-1, _lib.HEADER_BYTES + SIZE * _lib.ENTRY.size,
                                 mmap.MAP_PRIVATE)
        self._ring = ffi.from_buffer(self._memory)
        self._q = ffi.new("struct kevent_queue *")
        _lib.check(lib.kevent_queue_init(self._q, self._ring, SIZE, 0))
        try:
            super().__init__(self._q, itertools.count(1), busy_poll)
        except BaseException:
            lib.kevent_queue_close(self._q)
            raise

    def __repr__(self):
        return f"<kevent.Streams {'closed' if self._set is None else len(self._streams)}>"

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if self._set is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            self.close()

    def close(self):
        """Close the set, its streams and their sockets."""
        if self._free():
            lib.kevent_queue_close(self._q)

    def fileno(self):
        """The descriptor of the queue."""
        self._check()
        return self._q.fd

    def open(self, sock, *, offer=False):
        """Make a stream of a connected Unix socket, which is detached.

        offer	pass memory with the first bytes: of the side that has connected
        """
        def make(*stream):
            sock.detach()
            return Stream(*stream)

        return self._open(sock, offer, make)

    def arm(self):
        """Say that this side will sleep; false if a stream has something to do."""
        return not _lib.check(lib.kevent_streams_arm(self._check()))

    def get(self, timeout=None):
        """The streams with something to do; waits for one if there is none.

        Read each until None, and write what had no room. The list is empty after the
        timeout, in seconds, or if what has come is for none. Signal handlers run while
        the call waits, which it goes on with.
        """
        deadline = None if timeout is None else _deadline(timeout)
        ready = self._ready()
        if ready:
            return ready
        while True:
            left = _time_left(deadline)
            # Handlers of signals have run by now, and may have closed it
            nr = lib.kevent_streams_get(self._check(), self._events, SIZE, left)
            if nr != -errno.EINTR:
                break
        for number in range(_lib.check(nr)):
            self._event(ffi.addressof(self._events, number))
        return self._ready()


class Stream:
    """A stream of Streams.open(). No method waits."""

    def __init__(self, streams, stream, number):
        self._streams = streams
        self._stream = stream
        self._number = number

    def __repr__(self):
        return f"<kevent.Stream {'closed' if self._stream is None else self._number}>"

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *_):
        self.close()

    def _check(self):
        if self._stream is None:
            raise ValueError("the stream is closed")
        return self._stream

    def _end(self):
        """Have no stream any more; returns what is to be closed, or None."""
        stream, self._stream = self._stream, None
        if stream is not None:
            self._streams._streams.pop(self._number, None)
            self._streams._pointers.pop(stream, None)
        return stream

    def close(self):
        """Close the stream and its socket; the peer reads all, and then the end."""
        stream = self._end()
        if stream is not None:
            lib.kevent_stream_close(stream)

    def fileno(self):
        """The socket, which the program may use after leave()."""
        return lib.kevent_stream_fd(self._check())

    def _read(self, function, size):
        buffer = ffi.new("char[]", size)
        result = function(self._check(), buffer, size)
        if result == -errno.EAGAIN:
            return None
        return ffi.buffer(buffer, _lib.check(result))[:]

    def read(self, size=65536):
        """Up to so many bytes; b"" at the end, None if there are none now."""
        return self._read(lib.kevent_stream_read, size)

    def peek(self, size=65536):
        """The same, but the bytes stay."""
        return self._read(lib.kevent_stream_peek, size)

    def write(self, data):
        """Write what there is room for: the number of bytes, None if there is none."""
        with ffi.from_buffer(data) as buffer:
            result = lib.kevent_stream_write(self._check(), buffer, len(buffer))
        if result == -errno.EAGAIN:
            return None
        return _lib.check(result)

    def shutdown(self):
        """End the direction of this side."""
        _lib.check(lib.kevent_stream_shutdown(self._check()))

    def leave(self):
        """Go back to the socket. False: not yet; read, and try again after get().

        A peer that has gone cannot follow: this is BrokenPipeError, at the end of its bytes.
        """
        result = lib.kevent_stream_leave(self._check())
        return result != -errno.EAGAIN and not _lib.check(result)

    def join(self, sent=0, received=0):
        """Use memory again, after so many bytes that the program has passed itself."""
        _lib.check(lib.kevent_stream_join(self._check(), sent, received))

    @property
    def in_memory(self):
        """Do both directions go through memory?"""
        return lib.kevent_stream_memory(self._check()) == SENDS | RECEIVES
