#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A child of a program whose peer does not run: it gets an error, and the parent goes on.

usage: kevent-lane run --path PATH lane_limits.py PATH
"""
import errno
import os
import signal
import socket
import sys


def exchange(conn, nr):
    for _ in range(nr):
        conn.sendall(b"x")
        assert conn.recv(1) == b"x"


def client(path):
    conn = socket.socket(socket.AF_UNIX)
    conn.connect(path)
    exchange(conn, 5)
    os.kill(os.getpid(), signal.SIGSTOP)
    exchange(conn, 5)


def answer(conn, nr):
    for _ in range(nr):
        conn.sendall(conn.recv(1))


def use(conn):
    for call in (lambda: conn.recv(1), lambda: conn.send(b"x"), lambda: conn.recv(1)):
        try:
            call()
        except OSError as error:
            print(errno.errorcode[error.errno], flush=True)


def main(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    peer = os.fork()
    if not peer:
        client(path)
        os._exit(0)
    conn, _ = listener.accept()
    answer(conn, 5)
    assert os.WIFSTOPPED(os.waitpid(peer, os.WUNTRACED)[1])
    child = os.fork()
    if not child:
        use(conn)
        os._exit(0)
    os.waitpid(child, 0)
    os.kill(peer, signal.SIGCONT)
    answer(conn, 5)
    print("peer ended with", os.waitpid(peer, 0)[1])


if __name__ == "__main__":
    signal.alarm(20)
    main(sys.argv[1])
