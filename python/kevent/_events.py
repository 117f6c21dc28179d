# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""What a queue reports."""

import enum
import os
import signal

from . import _lib


class Poll(enum.IntFlag):
    """Conditions of a file, for Queue.watch(), with the values of poll(2)."""
    IN = 0x1
    PRI = 0x2
    OUT = 0x4
    ERR = 0x8			# always reported
    HUP = 0x10			# always reported
    RDNORM = 0x40
    RDBAND = 0x80
    WRNORM = 0x100
    WRBAND = 0x200
    MSG = 0x400
    RDHUP = 0x2000


class Sock(enum.IntFlag):
    """Conditions of a socket, for Queue.socket()."""
    RECV = 0x1
    ACCEPT = 0x2
    SEND = 0x4
    ERR = 0x8			# always reported
    HUP = 0x10			# always reported
    RDHUP = 0x2000		# reported with another condition


class Inode(enum.IntFlag):
    """Changes of a file or directory, for Queue.inode().

    CREATE, REMOVE and RENAME are about the entries of a directory. Of a file or
    directory itself, REMOVE says that its last name is gone.
    """
    CREATE = 0x1
    REMOVE = 0x2
    MODIFY = 0x4
    ATTRIB = 0x8
    RENAME = 0x10


class Clock(enum.IntEnum):
    """Clocks of Queue.timer()."""
    MONOTONIC = 0
    REALTIME = 0x10
    BOOTTIME = 0x20
    TAI = 0x40


class Event:
    """An event of a watch; there is a class for each kind of watch.

    watch	the watch
    data	what the program gave to the watch
    error	None, or the OSError that says why the watch can report no more
    """
    __slots__ = "watch", "data", "error", "_id", "_words", "_req_flags"
    _shown: "tuple[str, ...]" = ()

    def __init__(self, watch, number, words, req_flags, ret_flags):
        self.watch = watch
        self.data = watch.data
        self.error = None
        self._id = number
        self._words = words
        self._req_flags = req_flags
        if ret_flags & _lib.RET_BROKEN:
            self.error = _lib.error(words[1] - (1 << 32))

    def __repr__(self):
        shown = [f"{name}={getattr(self, name)!r}" for name in self._shown]
        if self.error:
            shown.append(f"error={self.error!r}")
        return f"<{type(self).__name__} {' '.join(shown)}>"

    def _number(self):
        return self._words[1] << 32 | self._words[0]


class FileEvent(Event):
    """An event of Queue.watch()."""
    __slots__ = ()
    _shown: "tuple[str, ...]" = "fd", "events"

    @property
    def fd(self):
        """The descriptor that was watched."""
        return self.watch.fd

    @property
    def events(self):
        """The conditions that hold, or have come since the last event: a Poll."""
        return Poll(self._words[0])


class SocketEvent(FileEvent):
    """An event of Queue.socket()."""
    __slots__ = ()
    _shown = "fd", "events", "amount"

    @property
    def events(self):
        """The conditions that hold, or have come since the last event: a Sock."""
        return Sock(self._words[0])

    @property
    def amount(self):
        """Bytes to read, or connections to accept; 0 if the kernel does not say."""
        return 0 if self.error else self._words[1]


class InodeEvent(FileEvent):
    """An event of Queue.inode()."""
    __slots__ = ()

    @property
    def events(self):
        """The changes since the last event: an Inode."""
        return Inode(self._words[0])


class TimerEvent(Event):
    """An event of Queue.timer()."""
    __slots__ = ()
    _shown = ("expirations",)

    @property
    def expirations(self):
        """How often the timer has expired since the last event."""
        return self._words[0] if self.error else self._number()


class SignalEvent(Event):
    """An event of Queue.signal()."""
    __slots__ = ()
    _shown = "signum", "sender", "code", "value", "consumed"

    @property
    def signum(self):
        """The signal, a signal.Signals where Python has a name for it."""
        number = self._id & 0xffffffff
        try:
            return signal.Signals(number)
        except ValueError:
            return number

    @property
    def sender(self):
        """The process that sent the signal, 0 if the kernel did."""
        return self._id >> 32 & 0x7fffffff

    @property
    def code(self):
        """Why the signal was sent, si_code of sigaction(2)."""
        return _signed(self._words[0])

    @property
    def value(self):
        """The number that was sent with the signal, by sigqueue(3)."""
        return _signed(self._words[1])

    @property
    def consumed(self):
        """Whether the event takes the place of the delivery."""
        return bool(self._id & _lib.SIGNAL_NOMASK)


class ProcessEvent(Event):
    """An event of Queue.process() or Queue.pidfd(): the process has exited."""
    __slots__ = ()
    _shown = "pid", "status"

    @property
    def pid(self):
        """The id of the process."""
        return self._id & 0xffffffff

    @property
    def status(self):
        """Its status as of os.waitpid(), or None if the caller may not know."""
        return self._words[0] if self._words[1] & _lib.PROC_STATUS else None

    @property
    def exitcode(self):
        """Its exit code, minus the signal that killed it, or None: as status."""
        status = self.status
        return None if status is None else os.waitstatus_to_exitcode(status)


class UserEvent(Event):
    """An event of Queue.user()."""
    __slots__ = ()
    _shown = "events", "marks", "value"

    def _keeps_each(self):
        return bool(self._req_flags & _lib.REQ_KEEP_EACH)

    @property
    def events(self):
        """The bits that were marked; None if the watch keeps each mark."""
        return None if self._keeps_each() else self._words[0]

    @property
    def marks(self):
        """How many marks the event stands for."""
        return 1 if self._keeps_each() else self._words[1]

    @property
    def value(self):
        """The number given to mark(); None unless the watch keeps each mark."""
        return self._number() if self._keeps_each() else None


class FutexEvent(Event):
    """An event of Queue.futex(): somebody woke the word, or it has changed."""
    __slots__ = ()


def _signed(number):
    return number - (1 << 32) if number >> 31 else number
