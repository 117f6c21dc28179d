# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""An event loop for asyncio."""

import asyncio

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
        """Have callback(event, *args) called for each event of a watch."""
        self._check_closed()
        watch._callback = callback, args

    def remove_watch(self, watch):
        """Remove a watch and its callback. Returns whether it had one."""
        watch.remove()
        old, watch._callback = watch._callback, None
        return old is not None

    def _make_socket_transport(self, sock, *args, **kwargs):
        if isinstance(self._selector, StreamSelector) and is_stream_socket(sock):
            sock = self._selector.stream_socket(sock)
        return super()._make_socket_transport(sock, *args, **kwargs)

    async def _sendfile_native(self, transport, file, offset, count):
        if isinstance(transport._sock, StreamSocket):
            raise asyncio.SendfileNotAvailableError("the bytes may go through memory")
        return await super()._sendfile_native(transport, file, offset, count)

    def _kevent_event(self, event):
        called = event.watch._callback
        if not event.watch.active:	# that was its last event
            event.watch._callback = None
        if called is not None:
            callback, args = called
            self.call_soon(callback, event, *args)
