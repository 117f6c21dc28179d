# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""The C library, the layout of its structures, and errors."""

import errno
import os
import struct

from ._abi import ffi

LIBRARY = "libkevent-ffi.so.1"
# A wheel has one in the package. Else it is that of the system
OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY)

try:
    lib = ffi.dlopen(OWN if os.path.exists(OWN) else LIBRARY)
except OSError as problem:
    raise ImportError(f"the library of kevent is not installed: {problem}",
                      name="kevent") from None

# struct ukevent: id, type, event, req_flags, ret_flags, ret_data, ptr
ENTRY = struct.Struct("=QIIIIIIQ")
HEADER_BYTES = 128		# of struct kevent_ring, before its slots
RING_MIN, RING_MAX = 2, 1 << 20

INIT_FAIR = 0x2
INIT_NO_FALLBACK = 0x8000
INIT_FALLBACK_ONLY = 0x4000
CTL_ADD, CTL_REMOVE, CTL_MODIFY, CTL_READY = range(4)
CTL_WAKE_ALL = 5
CTL_MAX = 4096
(SOCKET, INODE, TIMER, POLL, PIPE, SIGNAL, USER, PROC, FUTEX) = \
    0, 1, 2, 3, 6, 7, 9, 10, 11
TIMER_ABSTIME, TIMER_CANCEL_ON_SET = 0x2, 0x8
FUTEX_PRIVATE = 0x2
PROC_STATUS = 0x1
SIGNAL_NOMASK = 1 << 63
(REQ_ONESHOT, REQ_WAKEUP_ALL, REQ_ET, REQ_LAST_CHECK, REQ_DISPATCH,
 REQ_DISABLED, REQ_KEEP_EACH) = 0x1, 0x2, 0x4, 0x8, 0x40, 0x80, 0x100
RET_BROKEN = 0x1


class Error(OSError):
    """An error of the kernel or of the library.

    ``errno`` has the number and ``strerror`` says what to do about it, where
    that is known for kevent. Where Python has an exception for the number, such
    as FileExistsError, the error is one of these, too.
    """


class ExistsError(Error, FileExistsError):
    """EEXIST: the queue has such a watch."""


class NotFoundError(Error, FileNotFoundError):
    """ENOENT: the queue has no such watch."""


class ForbiddenError(Error, PermissionError):
    """EPERM or EACCES: the caller may not do that."""


class NoProcessError(Error, ProcessLookupError):
    """ESRCH: there is no such process."""


class GoneError(Error, BrokenPipeError):
    """EPIPE: the peer of a stream has gone."""


class FullError(Error, BlockingIOError):
    """EAGAIN: too many marks of a watch wait to be taken."""


CLASSES = {errno.EEXIST: ExistsError, errno.EAGAIN: FullError,
           errno.ENOENT: NotFoundError, errno.EPERM: ForbiddenError,
           errno.EACCES: ForbiddenError, errno.ESRCH: NoProcessError,
           errno.EPIPE: GoneError}


def error(number):
    """The exception for a negative errno."""
    text = ffi.string(lib.kevent_strerror(number)).decode(errors="replace")
    return CLASSES.get(-number, Error)(-number, text)


def check(result):
    """Return what a function of the library returned, unless that is an error."""
    if result < 0:
        raise error(result)
    return result


def supported():
    """Say whether the kernel has kevent and allows it.

    Without it a Queue is made of epoll and its like by the library.
    """
    result = lib.kevent_supported()
    if -result in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR):
        raise error(result)
    return not result
