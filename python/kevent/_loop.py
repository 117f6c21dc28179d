# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""An event loop for asyncio."""

import asyncio
import contextvars

from ._selector import Selector
from ._stream_sockets import StreamSelector, StreamSocket, is_stream_socket


class EventLoop(asyncio.SelectorEventLoop):
    """The event loop of asyncio on a kevent queue.

    Sockets, pipes, signals and processes work as with the loop of asyncio itself.
    Timeouts have nanoseconds instead of milliseconds. In addition the program may
    watch what asyncio cannot: it adds a watch to ``queue`` and names a callback by
    ``add_watch()``.

    streams	have the bytes of Unix sockets go through memory, if the peer uses
		streams, too: those of create_unix_connection(), create_unix_server() and
		all that is made of them. Of such a transport sendfile() copies, and the
		socket has no dup(). Connections with TLS are sockets as ever
    """

    _closed = True		# until it is made, for __del__()

    def __init__(self, selector=None, *, streams=False):
        if selector is None:
            selector = StreamSelector() if streams else Selector()
        elif streams:
            raise ValueError("streams are for a selector that the loop makes")
        super().__init__(selector)
        selector.on_event = self._kevent_event

    @property
    def queue(self):
        """The Queue of the loop. Only the loop takes its events."""
        return self._selector.queue

    def add_watch(self, watch, callback, *args):
        """Have callback(event, *args) called for each event of a watch.

        It takes the place of the one so far, also for events that the loop has taken.
        It runs in the context of this call, see contextvars.
        """
        self._check_closed()
        watch._callback = callback, args, contextvars.copy_context()

    def remove_watch(self, watch):
        """Remove a watch and its callback. Returns whether it had one."""
        called = watch._callback
        watch.remove()
        watch._callback = None
        return called is not None

    def _make_socket_transport(self, sock, *args, **kwargs):
        if isinstance(self._selector, StreamSelector) and is_stream_socket(sock):
            sock = self._selector.stream_socket(sock)
        return super()._make_socket_transport(sock, *args, **kwargs)

    async def _sendfile_native(self, transport, file, offset, count):
        if isinstance(transport._sock, StreamSocket):
            raise asyncio.SendfileNotAvailableError("the bytes may go through memory")
        return await super()._sendfile_native(transport, file, offset, count)

    def _kevent_event(self, event):
        if event.watch._callback is not None:
            self.call_soon(self._call_back, event, not event.watch.active)

    @staticmethod
    def _call_back(event, last):
        # An earlier callback of this round may have removed or replaced it
        called = event.watch._callback
        if called is None:
            return
        if last:
            event.watch._callback = None
        callback, args, context = called
        context.run(callback, event, *args)
