# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""A selector whose queue also has a timer"""

import selectors
import socket

import kevent

a, b = socket.socketpair()
with kevent.Selector() as selector:
    selector.register(b, selectors.EVENT_READ, "b")
    selector.queue.timer(0.01)
    selector.on_event = lambda event: print("expirations:", event.expirations)
    print(selector.select())
    a.send(b"hello")
    for key, events in selector.select():
        print(key.data, key.fileobj.recv(100).decode())
a.close()
b.close()
