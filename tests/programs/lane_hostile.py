#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Peers that break the rules of streams: programs of kevent-lane with lane_bits.c

usage: lane_hostile.py flood|wake PATH

flood  With LANE_FLOOD, a peer writes to memory without end, while its connection goes back to the
       socket. The call gives up in the end, and has not taken all the memory that there is.
wake   A thread sleeps for another peer. When LANE_BITS is there, a peer sets bits without end, in
       front of a thread that looks once. The one that sleeps hears of its peer all the same.
"""
import errno
import os
import resource
import signal
import socket
import sys
import threading

PAGE = 4096
ROOM = 16 << 20			# what the process may get on top
SLEEPS = ("271", "73", "441")	# ppoll() of x86-64 and arm64, epoll_pwait2()


def exchange(conn):
    for _ in range(4):
        conn.sendall(b"x")
        assert conn.recv(1) == b"x"


def begin_peer(listener, act):
    """A child that connects, and then acts; and the connection to it"""
    child = os.fork()
    if not child:
        signal.alarm(60)
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(listener.getsockname())
        exchange(conn)
        act(conn)
        signal.pause()
    conn = listener.accept()[0]
    exchange(conn)
    return child, conn


def flood(listener):
    child, conn = begin_peer(listener, lambda conn: None)
    conn.setblocking(False)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    try:
        socket.send_fds(conn, [b"x"], [0])
    except OSError as error:
        print(errno.errorcode[error.errno])
    os.kill(child, signal.SIGKILL)


def await_sleep(thread):
    call = ""
    while call not in SLEEPS:
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            call = file.read().split()[0]


def wake(listener):
    has_begun, begun = os.pipe()
    first, conn = begin_peer(listener, lambda conn: None)
    second, other = begin_peer(listener, lambda conn: os.read(has_begun, 1) and conn.send(b"y"))
    thread = threading.Thread(target=lambda: print(other.recv(1)))
    thread.start()
    await_sleep(thread)
    conn.setblocking(False)
    with open(os.environ["LANE_BITS"], "x"):
        pass
    try:
        conn.recv(1)
    except BlockingIOError:
        print("EAGAIN")
    os.write(begun, b"x")
    thread.join()
    os.kill(first, signal.SIGKILL)
    os.kill(second, signal.SIGKILL)


def main(case, path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    {"flood": flood, "wake": wake}[case](listener)


if __name__ == "__main__":
    signal.alarm(60)
    main(*sys.argv[1:])
