# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Bytes of a Unix socket through memory: both sides use streams"""

import os
import socket

import kevent


def read(streams, stream):
    """Waits for bytes; b"" at the end."""
    while (data := stream.read()) is None:
        streams.get()
    return data


def serve(sock):
    with kevent.Streams() as streams, streams.open(sock) as stream:
        while data := read(streams, stream):
            stream.write(data.upper())


client, server = socket.socketpair()
child = os.fork()
if not child:
    client.close()
    serve(server)
    os._exit(0)
server.close()
with kevent.Streams() as streams, streams.open(client, offer=True) as stream:
    for words in b"one", b"two", b"three":
        stream.write(words)
        print(read(streams, stream).decode())
    print("in memory:", stream.in_memory)
os.waitpid(child, 0)
