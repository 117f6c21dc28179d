#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What kevent-lane does for connections is not seen by a program that has it on both sides: the
first bytes bring no descriptor and no flag, whatever room there is for them, and connections that
are closed leave no descriptors behind. It prints the same with and without the tool. Before, it
writes over its environment, as programs do that set the title of their process.

usage: kevent-lane run --path 'PATH*' lane_hidden.py PATH
"""
import ctypes
import os
import socket
import sys

ROOMS = (0, 1, socket.CMSG_LEN(0), socket.CMSG_LEN(4), socket.CMSG_SPACE(8), 1000)
NAMES = 20


def listen(path, *options):
    listener = socket.socket(socket.AF_UNIX)
    for option in options:
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
    listener.bind(path)
    listener.listen()
    return listener


def connect(listener):
    conn = socket.socket(socket.AF_UNIX)
    conn.connect(listener.getsockname())
    return conn, listener.accept()[0]


def said(conn, room, flags=0):
    """What a message has; the data of credentials are those of the process."""
    data, control, flags, _ = conn.recvmsg(10, room, flags)
    return data, [(kind, len(value)) for _, kind, value in control], flags


def first_bytes(listener, room):
    client, server = connect(listener)
    client.sendall(b"hello")
    print(room, said(server, room, socket.MSG_PEEK), said(server, room), flush=True)
    client.sendall(b"more")
    print(room, said(server, room), flush=True)


def first_descriptors(listener, room):
    """Those of the program do come, or leave their flag."""
    client, server = connect(listener)
    socket.send_fds(client, [b"files"], [0, 1])
    print(room, said(server, room), flush=True)


def first_bytes_in_child(listener):
    """Those of another process, whose connection this one has accepted for its child"""
    go_on, may_go_on = os.pipe()
    if not os.fork():
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(listener.getsockname())
        os.read(go_on, 1)
        conn.sendall(b"hello")
        os._exit(0)
    server = listener.accept()[0]
    if not os.fork():
        os.write(may_go_on, b"x")
        print("in a child", said(server, 0), flush=True)
        os._exit(0)
    os.wait()
    os.wait()


def closed(path, nr):
    with listen(f"{path}{nr}") as listener:
        client, server = connect(listener)
        with client, server:
            client.sendall(b"x")
            server.sendall(server.recv(1))
            client.recv(1)


def write_over_environment():
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    for name, value in os.environb.items():
        if at := getenv(name):
            ctypes.memset(at, ord("x"), len(value))


def main(path):
    write_over_environment()
    listener, other = listen(path), listen(path + "creds", socket.SO_PASSCRED)
    for room in ROOMS:
        first_bytes(listener, room)
        if room:
            first_descriptors(listener, room)
    for room in (socket.CMSG_SPACE(12), 1000):
        first_bytes(other, room)
        first_descriptors(other, room)
    first_bytes_in_child(listener)
    closed(path, "first")
    before = len(os.listdir("/proc/self/fd"))
    for nr in range(NAMES):
        closed(path, nr)
    print("descriptors that stay:", len(os.listdir("/proc/self/fd")) - before)


if __name__ == "__main__":
    main(sys.argv[1])
