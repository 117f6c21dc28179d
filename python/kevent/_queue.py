# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""A queue with its ring.

A queue is used by any number of threads, and by signal handlers, so its state
changes by single operations of lists and dictionaries, which Python makes
atomic; there is no lock that a signal handler could wait for in its own thread.
Each call of the library is made between _enter() and _leave(). The descriptor is
closed by the last one that leaves after close(): its number cannot be that of
another file before.
"""

import errno
import itertools
import math
import mmap
import os
import time
import warnings
import weakref

from . import _lib, _watches
from ._events import Clock, Poll, Sock
from ._lib import ffi, lib

NS = 1000000000
FOREVER = (1 << 62) // NS	# seconds; longer waits have no end

FALLBACK = {True: 0, False: _lib.INIT_NO_FALLBACK, "only": _lib.INIT_FALLBACK_ONLY}

_queues: "weakref.WeakSet[Queue]" = weakref.WeakSet()


class Queue:
    """A queue of events, in a ring that belongs to this object.

    size	slots of the ring, rounded up to a power of two, 2 to 2**20
    fallback	take epoll and its like where the kernel has no kevent or forbids it;
		"only": take them without asking the kernel
    fair	wake the thread that sleeps longest, and not the one that slept last

    The methods from watch() to futex() add watches and return them; all take
    ``data``, which is for the program, and flags:

    edge	report each activity once; without it, an event of a file comes with
		each get() while the condition holds
    oneshot	remove the watch with its first event
    dispatch	report nothing after an event until Watch.modify()
    disabled	report nothing until Watch.modify(disabled=False)
    last_check	check the file right before delivery. Without it an event of a
		file may be stale if another thread, or the code for an earlier
		event, has read its data: use descriptors that do not block
    wake_all	wake all threads that wait, not one

    A queue may be used by any number of threads: each event goes to one of them.
    It is closed at the end of a ``with`` block. A child of fork() has no use of
    the queue of its parent: there it is closed. Methods of a closed queue raise
    ValueError; the errors of the kernel are kevent.Error, which is an OSError.
    """

    def __init__(self, size=1024, *, fallback=True, fair=False):
        self._users = []
        self._open = []
        self._closed = True
        self._ended = False
        self._buffers = []
        self._handles = itertools.count(1 << 32)
        self._watches = {}	# by handle, which no other watch ever has
        self._keys = {}		# by what names a watch for the kernel
        self._foreign = False
        if not 1 <= size <= _lib.RING_MAX:
            raise ValueError(f"no size from 1 to {_lib.RING_MAX}: {size!r}")
        self._size = max(_lib.RING_MIN, 1 << (int(size) - 1).bit_length())
        if fallback not in FALLBACK:
            raise ValueError(f'not True, False or "only": {fallback!r}')
        self._make(FALLBACK[fallback] | (_lib.INIT_FAIR if fair else 0))

    def _make(self, flags):
        length = _lib.HEADER_BYTES + self._size * _lib.ENTRY.size
        self._memory = mmap.mmap(-1, length, mmap.MAP_PRIVATE)
        # A wake-up cannot store an event in memory that was never touched
        self._memory.write(bytes(length))
        self._ring = ffi.from_buffer(self._memory)
        self._q = ffi.new("struct kevent_queue *")
        _lib.check(lib.kevent_queue_init(self._q, self._ring, self._size,
                                         flags))
        self._open.append(self._q)
        self._closed = False
        _queues.add(self)

    def __repr__(self):
        state = "closed" if self._closed else \
            f"fd={self._q.fd} watches={len(self._watches)}"
        return f"<kevent.Queue {state}>"

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if not self._closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            self.close()

    # --- life -------------------------------------------------------------

    def _check(self):
        if self._closed:
            raise ValueError("the queue belongs to the parent process"
                             if self._foreign else "the queue is closed")

    def _enter(self):
        self._users.append(None)
        if self._closed:
            self._leave()
            self._check()

    def _leave(self):
        # A thread that waits wakes the next one when it leaves
        if self._closed and self._open and len(self._users) > 1:
            lib.kevent_ctl(self._q.fd, _lib.CTL_READY, 0, ffi.NULL)
        self._users.pop()
        if self._closed and not self._users:
            self._finish()

    def _finish(self):
        try:
            q = self._open.pop()
        except IndexError:	# another thread was faster
            return
        self._before_close()
        # Another process may have the descriptor, which keeps the queue: watches
        # would go on, and take signals that nobody gets
        watches = list(self._keys.values())
        for first in range(0, len(watches), _lib.CTL_MAX):
            part = watches[first:first + _lib.CTL_MAX]
            entries = ffi.new("struct ukevent[]", len(part))
            for number, watch in enumerate(part):
                watch._fill(entries + number)
            lib.kevent_ctl(q.fd, _lib.CTL_REMOVE, len(part), entries)
        for watch in list(self._watches.values()):
            watch.queue = None
        self._watches.clear()
        self._keys.clear()
        lib.kevent_queue_close(q)

    def _before_close(self):
        """Called once, in the thread that closes the queue."""

    def _abandon(self):
        """In a child of fork(), where no other thread is left."""
        self._foreign = True
        if not self._closed:
            self._closed = True
            self._open.clear()
            lib.kevent_queue_close(self._q)

    def close(self):
        """Close the queue. Threads that wait in get() get ValueError.

        May be called again, and while other threads use the queue.
        """
        if self._closed:
            return
        self._enter()
        self._closed = True
        self._leave()

    @property
    def closed(self):
        """Whether close() was called."""
        return self._closed

    def fileno(self):
        """The descriptor of the queue.

        It can be polled: it is readable while there are events.
        """
        self._check()
        return self._q.fd

    @property
    def size(self):
        """The number of slots of the ring."""
        return self._size

    @property
    def backend(self):
        """Where the queue is: "kevent", "module", or "epoll" for the fallback."""
        self._enter()
        try:
            return ffi.string(lib.kevent_backend(self._q.fd)).decode()
        finally:
            self._leave()

    def __len__(self):
        """The number of watches, with those that have gone with their files."""
        return len(self._watches)

    def __bool__(self):
        return True

    # --- watches ----------------------------------------------------------

    def _request(self, command, entry):
        self._enter()
        try:
            return lib.kevent_ctl_one(self._q.fd, command, entry)
        finally:
            self._leave()

    def _control(self, command, entry):
        _lib.check(self._request(command, entry))

    def _add(self, watch):
        handle = watch._handle = next(self._handles)
        entry = watch._entry()
        entry.ret_flags = _lib.RET_BROKEN	# the call clears it
        # First, because the event may come before the call has returned
        self._watches[handle] = watch
        try:
            self._control(_lib.CTL_ADD, entry)
            return self._added(watch)
        except BaseException:
            # A signal handler's exception may come before the call, or after it, and
            # the call marks what it refuses
            if not self._closed and not entry.ret_flags & _lib.RET_BROKEN:
                self._request(_lib.CTL_REMOVE, entry)
            self._forget(watch)
            raise

    def _added(self, watch):
        key = watch._key()
        old = self._keys.get(key)
        if watch.queue is not None:	# no event has ended it yet
            self._keys[key] = watch
        # The kernel has dropped it with its descriptor. Of other kinds, an event
        # may still be in the ring; also of an inode, whose changes the new watch
        # does not report
        in_ring = isinstance(old, _watches.InodeWatch) and old._ends(old._flags)
        if isinstance(old, _watches.FileWatch) and not in_ring:
            self._forget(old)
            old._callback = None
        return watch

    def _names(self, watch):
        """Does the watch's key name it, and not one that was added later?

        The key may be absent: see _forget().
        """
        return self._keys.get(watch._key(), watch) is watch

    def _forget(self, watch):
        watch.queue = None
        self._watches.pop(watch._handle, None)
        key = watch._key()
        if self._keys.get(key) is watch:
            # Another thread may have cleared it, or added a new watch
            self._keys.pop(key, None)

    def _remove(self, watch):
        try:
            if self._names(watch):
                self._control(_lib.CTL_REMOVE, watch._entry())
        except ValueError:
            if not self._closed:
                raise
        except OSError as problem:
            # It went with its descriptor
            if problem.errno not in (errno.ENOENT, errno.EBADF):
                raise
        # Not before, because the kernel reports what an exception leaves there
        self._forget(watch)
        watch._callback = None

    def watch(self, file, events=Poll.IN, *, data=None, **flags):
        """Watch any file that poll(2) takes, an object or a descriptor.

        events	a Poll. The watch goes when the descriptor is closed
        """
        return self._add(_watches.FileWatch(self, file, events, data,
                                            _watches.flags_of(flags)))

    def socket(self, file, events=Sock.RECV, *, data=None, **flags):
        """Watch a socket. Its events say how much there is to read or accept.

        events	a Sock
        """
        return self._add(_watches.SocketWatch(self, file, events, data,
                                              _watches.flags_of(flags)))

    def inode(self, file, events, *, data=None, **flags):
        """Watch an open file or directory for changes, by any process.

        events	an Inode
        """
        return self._add(_watches.InodeWatch(self, file, events, data,
                                             _watches.flags_of(flags)))

    def timer(self, first, interval=0, *, clock=Clock.MONOTONIC, absolute=False,
              cancel_on_set=False, data=None, **flags):
        """Start a timer.

        first		seconds until it expires, or with absolute=True the time
				of the clock. A Fraction or a Decimal is exact
        interval	seconds between later expiries; 0: it expires once
        cancel_on_set	report an error if the clock is set; for
				Clock.REALTIME and absolute=True
        """
        return self._add(_watches.TimerWatch(
            self, first, interval, clock, absolute, cancel_on_set, data, flags))

    def signal(self, signum, *, consume=False, data=None, **flags):
        """Watch a signal to this process.

        consume	the event takes the place of the delivery. Without it, the
			signal is delivered as well
        """
        return self._add(_watches.SignalWatch(self, signum, consume, data,
                                              _watches.flags_of(flags)))

    def process(self, pid, *, data=None, **flags):
        """Watch the exit of a process, which need not be a child."""
        return self._add(_watches.ProcessWatch(self, pid, None, data,
                                               _watches.flags_of(flags)))

    def pidfd(self, file, *, data=None, **flags):
        """Watch the exit of a process by what os.pidfd_open() returned.

        The descriptor may be closed at once.
        """
        fd = _watches.descriptor(file)
        watch = _watches.ProcessWatch(self, _watches.process_of(fd), fd, data,
                                      _watches.flags_of(flags))
        self._add(watch)
        watch._pidfd = None
        return watch

    def user(self, events=0, *, data=None, **flags):
        """A watch that the program makes report itself, by UserWatch.mark().

        events	the bits that may be marked; 0: any

        Marks merge until they are taken; with keep_each=True each is an event.
        """
        return self._add(_watches.UserWatch(self, events, data,
                                            _watches.flags_of(flags)))

    def futex(self, word, expected, *, private=True, data=None, **flags):
        """Watch a futex word.

        word		a writable buffer with the word, whose 4 bytes are aligned; the
				watch keeps it from being freed
        expected	the value while there is nothing to report
        private		whether wakers use FUTEX_PRIVATE_FLAG
        """
        return self._add(_watches.FutexWatch(self, word, expected, private,
                                             data, _watches.flags_of(flags)))

    # --- events -----------------------------------------------------------

    def get(self, max=None, timeout=None):
        """Wait for events and return a list of them.

        max	at most that many; None: as many as the ring has slots
        timeout	seconds; None: without end, 0: do not wait

        The list is empty after the timeout, wake() and wake_all(). Events in the ring
        are taken without a system call. Signal handlers run while the call waits,
        which it goes on with.
        """
        if max is None or max > self._size:
            max = self._size
        elif max < 1:
            raise ValueError(f"max is less than 1: {max!r}")
        deadline = None if timeout is None else _deadline(timeout)
        stale = 0
        while True:
            taken = self._take(max, deadline)
            events = [event for event in map(self._event, taken) if event]
            if events or not taken:
                return events
            # The ring cannot have as many of removed watches. There is one that
            # this object has not, and each call reports it
            stale += len(taken)
            if stale > self._size and _is_over(deadline):
                return events

    def _event(self, entry):
        number, _, _, req_flags, ret_flags, *words, handle = entry
        watch = self._watches.get(handle)
        if watch is None:	# removed, and the entry is older
            return None
        event = watch._event(watch, number, words, req_flags, ret_flags)
        if watch._ends(req_flags):
            self._forget(watch)
        return event

    def _wait(self, buffer, max, timeout):
        return lib.kevent_queue_get(self._q, buffer, max, timeout)

    def _take(self, max, deadline):
        """Wait until a point of time; returns the members of entries."""
        self._enter()
        try:
            try:
                buffer = self._buffers.pop()
            except IndexError:
                buffer = ffi.new("struct ukevent[]", self._size)
            while True:
                nr = self._wait(buffer, max, _time_left(deadline))
                # Handlers of signals have run by now, and may have closed it
                if self._closed:
                    self._check()
                if nr != -errno.EINTR:
                    break
            _lib.check(nr)
            taken = list(_lib.ENTRY.iter_unpack(
                ffi.buffer(buffer, nr * _lib.ENTRY.size)))
            self._buffers.append(buffer)
            return taken
        finally:
            self._leave()

    def wake(self):
        """Make one get() return an empty list, the next one if none waits."""
        self._enter()
        try:
            _lib.check(lib.kevent_ctl(self._q.fd, _lib.CTL_READY, 0, ffi.NULL))
        finally:
            self._leave()

    def wake_all(self):
        """From now on get() returns an empty list where it would wait.

        Ends a pool of threads: those that wait return, and so does each later call, in all
        processes that have the queue. Events that are there come first.
        """
        self._enter()
        try:
            _lib.check(lib.kevent_ctl(self._q.fd, _lib.CTL_WAKE_ALL, 0, ffi.NULL))
            self._ended = True
        finally:
            self._leave()

    def __iter__(self):
        """Yield events one after the other, until the queue is closed, or wake_all()."""
        while not self._closed:
            try:
                ended = self._ended
                events = self.get()
            except ValueError:
                if self._closed:
                    return
                raise
            if ended and not events:
                return
            yield from events


def _deadline(timeout):
    """The end of a wait, in nanoseconds of CLOCK_MONOTONIC; 0: do not wait."""
    if math.isnan(timeout) or timeout < 0:
        raise ValueError(f"no time to wait: {timeout!r}")
    if timeout > FOREVER:
        return None
    return timeout and time.monotonic_ns() + math.ceil(timeout * NS)


def _is_over(deadline):
    return deadline is not None and time.monotonic_ns() >= deadline


def _time_left(deadline):
    """A deadline as an argument for the library."""
    if deadline is None:
        return ffi.NULL
    left = max(deadline - time.monotonic_ns(), 0) if deadline else 0
    return ffi.new("struct timespec *", divmod(left, NS))


def _abandon_all():
    for queue in list(_queues):
        queue._abandon()


os.register_at_fork(after_in_child=_abandon_all)
