#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A child of a program whose peer does not run: it gets an error, and the parent goes on. So it
does if a thread closes a connection while another one waits for its peer. Threads write long
messages to one connection, and each stays together.

usage: kevent-lane run --path PATH lane_limits.py PATH
"""
import ctypes
import errno
import itertools
import os
import select
import signal
import socket
import sys
import threading


def exchange(conn, nr):
    for _ in range(nr):
        conn.sendall(b"x")
        assert conn.recv(1) == b"x"


def connect(path):
    conn = socket.socket(socket.AF_UNIX)
    conn.connect(path)
    exchange(conn, 5)
    return conn


def client(path, begun):
    conns = [connect(path) for _ in range(3)]
    os.kill(os.getpid(), signal.SIGSTOP)
    exchange(conns[0], 5)
    conn = connect(path)
    writers = [threading.Thread(target=os.write, args=(conn.fileno(), bytes([letter]) * 300000))
               for letter in b"abcdefgh"]
    for writer in writers:
        writer.start()
    os.write(begun, b"x")
    for writer in writers:
        writer.join()
    conn.close()


def answer(conn, nr):
    for _ in range(nr):
        conn.sendall(conn.recv(1))


def use(conn):
    for call in (lambda: conn.recv(1), lambda: conn.send(b"x"), lambda: conn.recv(1)):
        try:
            call()
        except OSError as error:
            print(errno.errorcode[error.errno], flush=True)


def close_beside(conn, then, call, *args):
    """Closes it when the call lets another thread run, which this does not."""
    begin = threading.Event()

    def close():
        begin.wait()
        conn.close()
        then()
    closer = threading.Thread(target=close)
    closer.start()
    sys.setswitchinterval(10)
    begin.set()
    ret = call(*args)
    if ret == 0:
        os._exit(0)
    closer.join()
    return ret


def watch_nested(conn, then):
    """An instance with the connection, which leaves the memory when the peer runs again"""
    inner, outer = select.epoll(), select.epoll()
    inner.register(conn.fileno(), select.EPOLLIN)
    close_beside(conn, then, outer.register, inner.fileno(), select.EPOLLIN)


def main(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    has_begun, begun = os.pipe()
    peer = os.fork()
    if not peer:
        client(path, begun)
        os._exit(0)
    conns = []
    for _ in range(3):
        conns.append(listener.accept()[0])
        answer(conns[-1], 5)
    conn = conns[0]
    assert os.WIFSTOPPED(os.waitpid(peer, os.WUNTRACED)[1])
    child = os.fork()
    if not child:
        use(conn)
        os._exit(0)
    os.waitpid(child, 0)
    os.waitpid(close_beside(conns[2], lambda: None, ctypes.CDLL(None).fork), 0)
    watch_nested(conns[1], lambda: os.kill(peer, signal.SIGCONT))
    answer(conn, 5)
    conn = listener.accept()[0]
    answer(conn, 5)
    os.read(has_begun, 1)
    data = b"".join(iter(lambda: conn.recv(100000), b""))
    print("long writes:", len(data), "bytes,", len(list(itertools.groupby(data))), "parts")
    print("peer ended with", os.waitpid(peer, 0)[1])


if __name__ == "__main__":
    signal.alarm(20)
    main(sys.argv[1])
