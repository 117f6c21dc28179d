#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sets and gets values of up to 300 KB in a redis server, at random, and compares all replies.

usage: lane_redis.py PATH SEED NR: several connections, NR requests. The server saves its data
by a child now and then.
"""
import random
import socket
import sys

CONNECTIONS = 7


class Client:
    def __init__(self, path):
        self.conn = socket.socket(socket.AF_UNIX)
        self.conn.settimeout(30)
        self.conn.connect(path)
        self.data = b""
        self.wanted = []

    def send(self, want, *words):
        parts = [b"*%d\r\n" % len(words)]
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.conn.sendall(b"".join(parts))
        self.wanted.append(want)

    def check(self, size):
        """The replies, by reads of @size bytes"""
        for want in self.wanted:
            while len(self.data) < len(want):
                more = self.conn.recv(size)
                if not more:
                    sys.exit("the connection has ended")
                self.data += more
            if not self.data.startswith(want):
                sys.exit(f"{self.data[:100]!r} instead of {want[:100]!r}")
            self.data = self.data[len(want):]
        self.wanted = []


def main():
    path, seed, nr = sys.argv[1], *map(int, sys.argv[2:])
    rand = random.Random(seed)
    clients = [Client(path) for _ in range(CONNECTIONS)]
    values = {}
    for i in range(nr):
        client = rand.choice(clients)
        key = b"key%d" % rand.randrange(50)
        for _ in range(rand.choice((1, 1, 5))):
            if rand.randrange(2) or key not in values:
                size = rand.choice((0, 1, 10, 1000, 16384, 70000, 300000))
                values[key] = rand.randbytes(rand.randrange(size + 1))
                client.send(b"+OK\r\n", b"SET", key, values[key])
            else:
                value = values[key]
                client.send(b"$%d\r\n%s\r\n" % (len(value), value), b"GET", key)
        client.check(rand.choice((1000, 65536, 1 << 20)))
        if i % 500 == 250:
            client.conn.sendall(b"*1\r\n$6\r\nBGSAVE\r\n")
            client.conn.recv(100)
    print(f"{nr} requests are right")


if __name__ == "__main__":
    main()
