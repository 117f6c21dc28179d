#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Start an echo server, and have three clients talk to it.

usage: talk.py PROGRAM
"""

import socket
import subprocess
import sys

SECONDS = 20
ROUNDS = 20


def talk(port):
    clients = [socket.create_connection(("127.0.0.1", port), SECONDS)
               for _ in range(3)]
    for number in range(ROUNDS):
        words = b"round %d" % number
        for client in clients:
            client.sendall(words)
        for client in clients:
            if client.recv(100) != words:
                sys.exit(f"round {number}: something else came back")
    clients[0].close()
    clients[1].sendall(b"still there")
    if clients[1].recv(100) != b"still there":
        sys.exit("a client that leaves takes another one with it")


def main(program):
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as server:
        try:
            talk(int(server.stdout.readline()))
        finally:
            server.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
