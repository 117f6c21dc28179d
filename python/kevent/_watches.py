# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""What a queue watches."""

import errno
import math

from . import _events, _lib
from ._lib import ffi, lib

FLAGS = {"oneshot": _lib.REQ_ONESHOT, "wake_all": _lib.REQ_WAKEUP_ALL,
         "edge": _lib.REQ_ET, "last_check": _lib.REQ_LAST_CHECK,
         "dispatch": _lib.REQ_DISPATCH, "disabled": _lib.REQ_DISABLED,
         "keep_each": _lib.REQ_KEEP_EACH}


def flags_of(words, old=0):
    """The request flags that keyword arguments ask for, over those so far."""
    for name, wanted in words.items():
        bit = FLAGS.get(name)
        if not bit:
            raise TypeError(f"no flag {name!r}; there are: {', '.join(FLAGS)}")
        old = old | bit if wanted else old & ~bit
    return old


def descriptor(file):
    """The descriptor of a file object, or the number itself."""
    if isinstance(file, int):
        fd = file
    else:
        try:
            fd = int(file.fileno())
        except (AttributeError, TypeError):
            raise ValueError(f"no file: {file!r}") from None
    if not 0 <= fd < 1 << 31:
        raise ValueError(f"no file descriptor: {file!r}")
    return fd


def process_of(pidfd):
    """The process id of a pidfd, -1 if it has none any more."""
    with open(f"/proc/thread-self/fdinfo/{pidfd}", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("Pid:"):
                return int(line.split()[1])
    raise ValueError(f"no pidfd: {pidfd}")


def nanoseconds(seconds, name):
    """A time as the kernel has it, not less than what was asked for."""
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{name} is negative or not finite: {seconds!r}")
    ns = math.ceil(seconds * 1000000000)
    if ns >> 63:
        raise ValueError(f"{name} is too long: {seconds!r}")
    return ns


def bits(mask, name="events"):
    """A mask of 32 bits."""
    if not 0 <= mask < 1 << 32:
        raise ValueError(f"{name} is no mask of 32 bits: {mask!r}")
    return int(mask)


class Watch:
    """The interest of a queue in one object. The methods of Queue make it.

    data	for the program; each event has what it is when the event is taken
    queue	the queue, or None once the watch was removed
    """
    _event = _events.Event
    _callback = None		# of an EventLoop, with its arguments

    def __init__(self, queue, data, flags):
        self.data = data
        self.queue = queue
        self._flags = flags
        self._handle = 0

    def __repr__(self):
        state = "" if self.queue else " removed"
        return f"<{type(self).__name__} {self._key()[1]}{state}>"

    @property
    def active(self):
        """Whether the queue may still report events of the watch."""
        return self.queue is not None

    def modify(self, **flags):
        """Change flags that are given, by name, and arm the watch again.

        A watch that was made with dispatch=True reports nothing after an event
        until then.
        """
        self._modify(flags)

    def remove(self):
        """End the watch. The queue returns no more events of it.

        Does nothing if the watch was removed, or has gone with its descriptor.
        """
        if self.queue is not None:
            self.queue._remove(self)

    def _modify(self, flags, **changes):
        if self.queue is None:
            raise ValueError("the watch was removed")
        if not self.queue._names(self):
            raise _lib.error(-errno.ENOENT)
        changes["_flags"] = flags_of(flags, self._flags)
        old = {name: getattr(self, name) for name in changes}
        self.__dict__.update(changes)
        try:
            self.queue._control(_lib.CTL_MODIFY, self._entry())
        except BaseException:
            self.__dict__.update(old)
            raise

    def _entry(self):
        """The request for kevent_ctl()."""
        entry = ffi.new("struct ukevent *")
        self._fill(entry)
        return entry

    def _key(self):
        """What names the watch in its queue."""
        raise NotImplementedError

    def _fill(self, entry):
        raise NotImplementedError

    def _ends(self, req_flags):
        """Does an event with these flags, of the kernel, end the watch?"""
        return req_flags & _lib.REQ_ONESHOT


class FileWatch(Watch):
    """A watch of Queue.watch().

    fd		the descriptor
    """
    _event, _type = _events.FileEvent, _lib.POLL
    _set = staticmethod(lib.kevent_set_poll)

    def __init__(self, queue, file, events, data, flags):
        super().__init__(queue, data, flags)
        self.fd = descriptor(file)
        self._events = bits(events)

    def modify(self, events=None, **flags):
        """Change the conditions or flags that are given, and arm again."""
        self._modify(flags, _events=self._events if events is None
                     else bits(events))

    def _key(self):
        return self._type, self.fd

    def _fill(self, entry):
        self._set(entry, self.fd, self._events, self._flags, self._handle)


class SocketWatch(FileWatch):
    """A watch of Queue.socket()."""
    _event, _type = _events.SocketEvent, _lib.SOCKET
    _set = staticmethod(lib.kevent_set_socket)


class InodeWatch(FileWatch):
    """A watch of Queue.inode()."""
    _event, _type = _events.InodeEvent, _lib.INODE
    _set = staticmethod(lib.kevent_set_inode)


class TimerWatch(Watch):
    """A watch of Queue.timer()."""
    _event = _events.TimerEvent

    def __init__(self, queue, first, interval, clock, absolute, cancel_on_set,
                 data, flags):
        # Ends with its only expiry, which the program has not asked for
        self._ends_itself = not interval and "oneshot" not in flags
        if self._ends_itself:
            flags["oneshot"] = not flags.get("dispatch")
        super().__init__(queue, data, flags_of(flags))
        self._first = nanoseconds(first, "first")
        self._interval = nanoseconds(interval, "interval")
        self._clock = (_events.Clock(clock) |
                       (_lib.TIMER_ABSTIME if absolute else 0) |
                       (_lib.TIMER_CANCEL_ON_SET if cancel_on_set else 0))

    def modify(self, first, interval=0, **flags):
        """Start the timer anew. The clock stays."""
        ends = self._ends_itself and "oneshot" not in flags
        if ends:
            flags["oneshot"] = not interval and not flags.get(
                "dispatch", self._flags & FLAGS["dispatch"])
        self._modify(flags, _first=nanoseconds(first, "first"),
                     _interval=nanoseconds(interval, "interval"))
        self._ends_itself = ends

    def _key(self):
        return _lib.TIMER, self._handle

    def _fill(self, entry):
        lib.kevent_set_timer(entry, self._first, self._interval, self._clock,
                             self._flags, self._handle)


class SignalWatch(Watch):
    """A watch of Queue.signal()."""
    _event = _events.SignalEvent

    def __init__(self, queue, signum, consume, data, flags):
        super().__init__(queue, data, flags)
        if not 0 <= signum < 1 << 31:
            raise ValueError(f"no signal: {signum!r}")
        self._signum = int(signum)
        self._consume = bool(consume)

    def modify(self, consume=None, **flags):
        """Change what is given, and arm again."""
        self._modify(flags, _consume=self._consume if consume is None
                     else bool(consume))

    def _key(self):
        return _lib.SIGNAL, self._signum

    def _fill(self, entry):
        lib.kevent_set_signal(entry, self._signum, self._consume, self._flags,
                              self._handle)


class ProcessWatch(Watch):
    """A watch of Queue.process() or Queue.pidfd()."""
    _event = _events.ProcessEvent

    def __init__(self, queue, pid, pidfd, data, flags):
        super().__init__(queue, data, flags)
        if not -1 <= pid < 1 << 31:
            raise ValueError(f"no process: {pid!r}")
        self._pid = pid
        self._pidfd = pidfd	# None once the watch is added

    def _key(self):
        return _lib.PROC, self._pid

    def _fill(self, entry):
        if self._pidfd is None:
            lib.kevent_set_proc(entry, self._pid, self._flags, self._handle)
        else:
            lib.kevent_set_pidfd(entry, self._pidfd, self._flags, self._handle)


class UserWatch(Watch):
    """A watch of Queue.user()."""
    _event = _events.UserEvent

    def __init__(self, queue, events, data, flags):
        super().__init__(queue, data, flags)
        self._events = bits(events)

    def modify(self, events=None, **flags):
        """Change what is given, and arm again."""
        self._modify(flags, _events=self._events if events is None
                     else bits(events))

    def mark(self, events=0, value=0):
        """Make the watch report. Any thread and any signal handler may call this.

        events	the bits to mark; 0: all of the watch
        value	0 to 2**64 - 1, for a watch that keeps each mark

        A thread that waits in Queue.get() wakes up. Raises BlockingIOError, which
        is an OSError with EAGAIN, when 65536 marks wait to be taken.
        """
        queue = self.queue
        if queue is None:
            raise ValueError("the watch was removed")
        if not 0 <= value < 1 << 64:
            raise ValueError(f"no number of 64 bits: {value!r}")
        entry = ffi.new("struct ukevent *")
        lib.kevent_set_mark(entry, self._handle, bits(events), value)
        queue._control(_lib.CTL_READY, entry)

    def _key(self):
        return _lib.USER, self._handle

    def _fill(self, entry):
        lib.kevent_set_user(entry, self._handle, self._events, self._flags,
                            self._handle)


class FutexWatch(Watch):
    """A watch of Queue.futex()."""
    _event = _events.FutexEvent

    def __init__(self, queue, word, expected, private, data, flags):
        super().__init__(queue, data, flags)
        self._memory = ffi.from_buffer(word, require_writable=True)
        if len(self._memory) < 4:
            raise ValueError("a futex word has 4 bytes")
        self._word = ffi.cast("const uint32_t *", self._memory)
        self._expected = bits(expected, "expected")
        self._event_bits = _lib.FUTEX_PRIVATE if private else 0

    def modify(self, expected, **flags):
        """Arm again, with the value that the word has now."""
        self._modify(flags, _expected=bits(expected, "expected"))

    def _key(self):
        return _lib.FUTEX, int(ffi.cast("uintptr_t", self._word))

    def _fill(self, entry):
        lib.kevent_set_futex(entry, self._word, self._expected,
                             self._event_bits, self._flags, self._handle)
