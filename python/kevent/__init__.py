# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""kevent: event notification for Linux with a ring in user memory

Queue		a queue of events of files, timers, signals, processes and others
Streams		Unix sockets whose bytes go through memory
Selector	as the classes of the module selectors
EventLoop	as the event loop of asyncio; EventLoopPolicy makes it the default
"""

import sys

from ._events import (Clock, Event, FileEvent, FutexEvent, Inode, InodeEvent,
                      Poll, ProcessEvent, SignalEvent, Sock, SocketEvent,
                      TimerEvent, UserEvent)
from ._lib import (Error, ExistsError, ForbiddenError, FullError, GoneError,
                   NoProcessError, NotFoundError, supported)
from ._queue import Queue
from ._selector import Selector
from ._streams import Stream, Streams
from ._version import __version__
from ._watches import (FileWatch, FutexWatch, InodeWatch, ProcessWatch,
                       SignalWatch, SocketWatch, TimerWatch, UserWatch, Watch)

__all__ = [
    "Clock", "Error", "Event", "EventLoop", "EventLoopPolicy",
    "ExistsError", "FileEvent", "FileWatch", "ForbiddenError", "FullError",
    "FutexEvent", "FutexWatch", "GoneError", "Inode", "InodeEvent", "InodeWatch",
    "NoProcessError", "NotFoundError", "Poll", "ProcessEvent",
    "ProcessWatch", "Queue", "Selector", "SignalEvent", "SignalWatch",
    "Sock", "SocketEvent", "SocketWatch", "Stream", "Streams", "TimerEvent",
    "TimerWatch",
    "UserEvent", "UserWatch", "Watch", "supported",
]
# Pythons that deprecate policies, or have none, run "from kevent import *" without a complaint
if sys.version_info >= (3, 14):
    __all__.remove("EventLoopPolicy")

# Programs that check types know the name; to import typing takes long
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._loop import EventLoop
    from ._policy import EventLoopPolicy


def __getattr__(name):
    """A program that does not use asyncio does not wait for its import.

    Later Pythons have no policies: there asyncio raises AttributeError for that name.
    """
    if name == "EventLoop":
        from ._loop import EventLoop
        return EventLoop
    if name == "EventLoopPolicy":
        from ._policy import EventLoopPolicy
        return EventLoopPolicy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
