#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Random calls of both sides of a connection of kevent-lane at once, one of which may be killed.

usage: lane_storm.py SIDE FOLDER SEED LEAVES: one side. SIDE is server or client; LEAVES is 1 if
it also makes calls that memory does not cover.

The model is what a socket does: each byte follows from its position, and the end comes behind
the last byte. What a call has returned for is accounted in FOLDER/state, which outlives a
process that is killed. No call waits, but those that wait for an event: these have a limit.
"""
import array
import fcntl
import mmap
import os
import random
import select
import socket
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

LIMIT = 60			# s, for one wait
PERIOD = 64007			# of the bytes of a direction
QUOTA = 300000			# bytes of a direction, at most
SIDES = ("server", "client")
WORDS = {"sent": 0, "received": 2, "shut": 4, "here": 6, "killed": 8}
BYTES = 80			# of them
SIZES = (1, 10, 1000, 9000, 40000)


class Wrong(Exception):
    pass


class State:
    """Numbers that all processes share; two of a kind, by side"""

    def __init__(self, folder):
        with open(f"{folder}/state", "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def at(self, word, side):
        return 8 * (WORDS[word] + side)

    def get(self, word, side):
        return struct.unpack_from("q", self.map, self.at(word, side))[0]

    def put(self, word, side, number):
        struct.pack_into("q", self.map, self.at(word, side), number)


class Side:
    def __init__(self, side, folder, seed, leaves):
        self.me = SIDES.index(side)
        self.state = State(folder)
        self.rand = random.Random(seed * 2 + self.me)
        self.leaves = leaves
        self.quota = self.rand.randrange(QUOTA)
        pattern = random.Random(seed)
        self.bytes = [pattern.randbytes(PERIOD) * 2 for _ in SIDES]
        self.conn = self.connect(f"{folder}/lane")
        self.state.put("here", self.me, 1)
        self.edges = self.new_edges()
        self.can_read = self.can_write = True
        self.ended = self.shut = False

    def connect(self, path):
        conn = socket.socket(socket.AF_UNIX)
        if self.me == 0:
            conn.bind(path)
            conn.listen()
            return conn.accept()[0]
        while conn.connect_ex(path):
            os.sched_yield()
        return conn

    def is_killed(self):
        return self.state.get("killed", 0)

    def is_done(self):
        return self.ended and self.shut

    # --- writing

    def send_file(self, data):
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.flush()
            os.set_blocking(self.conn.fileno(), False)
            try:
                return os.sendfile(self.conn.fileno(), file.fileno(), 0, len(data))
            finally:
                os.set_blocking(self.conn.fileno(), True)

    def send_descriptor(self, data):
        with open("/dev/null", "rb") as file:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))]
            return self.conn.sendmsg([data], rights, socket.MSG_DONTWAIT)

    def without_waiting(self, call, *args):
        os.set_blocking(self.conn.fileno(), False)
        try:
            return call(self.conn.fileno(), *args)
        finally:
            os.set_blocking(self.conn.fileno(), True)

    def send_by(self, how, data):
        if how == 0:
            return self.conn.send(data, socket.MSG_DONTWAIT)
        if how == 1:
            return self.conn.sendmsg([data[:5], b"", data[5:]], [], socket.MSG_DONTWAIT)
        if how == 2:
            return self.without_waiting(os.write, data)
        if how == 3:
            return self.without_waiting(os.writev, [data[:7], data[7:]])
        return self.send_file(data) if how == 4 else self.send_descriptor(data)

    def write(self):
        pos = self.state.get("sent", self.me)
        left = self.quota - pos
        if left <= 0:
            self.state.put("shut", self.me, 1)
            self.conn.shutdown(socket.SHUT_WR)
            self.shut = True
            return
        size = min(left, self.rand.choice(SIZES))
        data = self.bytes[self.me][pos % PERIOD:][:size]
        how = self.rand.randrange(4)
        if self.leaves and not self.rand.randrange(50):
            how = self.rand.randrange(4, 6)
        try:
            self.state.put("sent", self.me, pos + self.send_by(how, data))
        except BlockingIOError:
            self.can_write = False
        except (BrokenPipeError, ConnectionResetError):
            if not self.is_killed():
                raise
            self.shut = True

    # --- reading

    def compare(self, pos, data):
        want = self.bytes[1 - self.me][pos % PERIOD:][:len(data)]
        if data != want:
            raise Wrong(f"wrong bytes at {pos}")

    def take_message(self, size):
        data, control, _, _ = self.conn.recvmsg(size, 64, socket.MSG_DONTWAIT)
        for _, _, ends in control:
            for fd in struct.unpack(f"{len(ends) // 4}i", ends):
                os.close(fd)
        return data

    def recv_in_time(self, size):
        limit = struct.pack("ll", 0, self.rand.randrange(1, 3000))
        self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        try:
            return self.conn.recv(size, self.rand.choice((0, socket.MSG_WAITALL)))
        finally:
            self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))

    def readv(self, size):
        parts = bytearray(size // 3), bytearray(size - size // 3)
        nr = self.without_waiting(os.readv, parts)
        return bytes(parts[0] + parts[1])[:nr]

    def recv_by(self, how, size):
        if how == 0:
            return self.conn.recv(size, socket.MSG_DONTWAIT)
        if how == 1:
            return self.without_waiting(os.read, size)
        if how == 2:
            return self.readv(size)
        if how == 3:
            return self.recv_in_time(size)
        return self.take_message(size)

    def end(self, pos):
        self.ended = True
        if not self.is_killed() and not (self.state.get("shut", 1 - self.me) and
                                         self.state.get("sent", 1 - self.me) == pos):
            raise Wrong(f"an end at {pos}")

    def read(self):
        pos = self.state.get("received", self.me)
        size = self.rand.choice(SIZES)
        how = self.rand.randrange(4)
        if self.leaves and not self.rand.randrange(50):
            how = 4
        try:
            data = self.recv_by(how, size)
        except BlockingIOError:
            self.can_read = False
            return
        except ConnectionResetError:
            # Of a peer that is killed, or the end of one that is not: see kevent-lane(1)
            data = b""
        self.compare(pos, data)
        self.state.put("received", self.me, pos + len(data))
        if not data:
            self.end(pos)

    # --- waiting

    def new_edges(self):
        edges = select.epoll()
        edges.register(self.conn, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        return edges

    def wait_by_poll(self, want):
        poll = select.poll()
        poll.register(self.conn, want)
        return poll.poll(LIMIT * 1000)

    def wait_by_select(self, want):
        done = select.select([self.conn] if want & select.POLLIN else [],
                             [self.conn] if want & select.POLLOUT else [], [], LIMIT)
        return done[0] + done[1]

    def wait_by_epoll(self, want, mode):
        with select.epoll() as epoll:
            epoll.register(self.conn, want | mode)
            return epoll.poll(LIMIT)

    def wait(self):
        want = (0 if self.ended else select.POLLIN) | (0 if self.shut else select.POLLOUT)
        how = self.rand.randrange(5)
        if how == 0:
            ready = self.wait_by_poll(want)
        elif how == 1:
            ready = self.wait_by_select(want)
        elif how == 2:
            ready = self.edges.poll(LIMIT)
        else:
            ready = self.wait_by_epoll(want, select.EPOLLONESHOT if how == 3 else 0)
        if not ready:
            raise Wrong(f"nothing came in {LIMIT} s, by way {how}: wanted {want}")
        self.can_read = self.can_write = True

    # --- others

    def peek(self):
        try:
            data = self.conn.recv(20, socket.MSG_DONTWAIT | socket.MSG_PEEK)
            self.compare(self.state.get("received", self.me), data)
        except (BlockingIOError, ConnectionResetError):
            pass

    def count(self):
        """What is there can be read."""
        number = array.array("i", [0])
        fcntl.ioctl(self.conn, termios.FIONREAD, number)
        if number[0] > 0:
            pos = self.state.get("received", self.me)
            data = self.conn.recv(min(number[0], PERIOD), socket.MSG_DONTWAIT)
            self.compare(pos, data)
            self.state.put("received", self.me, pos + len(data))
            if not data:
                raise Wrong("FIONREAD has counted what is not there")

    def copy(self):
        old = self.conn
        self.conn = old.dup()
        old.close()
        self.edges.close()
        self.edges = self.new_edges()
        self.can_read = self.can_write = True

    def child(self):
        """It goes on where this process is, which goes on behind it."""
        pid = os.fork()
        if not pid:
            status = 1
            try:
                for _ in range(5):
                    if not self.ended:
                        self.read()
                    if self.state.get("sent", self.me) < self.quota:
                        self.write()
                status = 0
            finally:
                os._exit(status)
        if os.waitpid(pid, 0)[1]:
            raise Wrong("the child failed")

    def act(self):
        kind = self.rand.randrange(100)
        if kind == 0:
            self.copy()
        elif kind < 4 and not self.ended:
            self.peek()
        elif kind < 6 and not self.ended:
            self.count()
        elif kind == 6 and self.leaves == 2 and not self.rand.randrange(4):
            self.child()
        elif self.can_read and not self.ended and (kind % 2 or self.shut or not self.can_write):
            self.read()
        elif self.can_write and not self.shut:
            self.write()
        else:
            self.wait()

    def run(self):
        while not self.is_done():
            self.act()


# --- both sides

def failed(folder, processes):
    """What each side that has ended by itself says, if that is not well"""
    return "".join(f"{side}: " + Path(folder, f"{side}.log").read_text()[-600:]
                   for side, process in zip(SIDES, processes)
                   if process.returncode not in (0, -9)) or None


def progress(state):
    """In bytes, since both sides have their connection; -1 before that"""
    if not state.get("here", 0) or not state.get("here", 1):
        return -1
    return sum(state.get("sent", side) + state.get("received", side) for side in (0, 1))


def kill_one(state, processes, rand):
    """When so many bytes have moved"""
    goal = rand.choice((0, 1, 100, 50000, 2 * QUOTA)) * rand.random()
    victim = rand.randrange(2)
    while progress(state) < goal and all(process.poll() is None for process in processes):
        os.sched_yield()
    state.put("killed", 0, 1)
    processes[victim].kill()
    return victim


def run(begin, seed, kills):
    """begin(side, folder, words) starts a side. Returns what went wrong."""
    rand = random.Random(seed)
    leaves = rand.choice((0, 0, 1)) if kills else rand.choice((0, 1, 2))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "state").write_bytes(bytes(BYTES))
        state = State(folder)
        processes = [begin(side, folder, [folder, str(seed), str(leaves)]) for side in SIDES]
        try:
            victim = kill_one(state, processes, rand) if kills else None
            until = time.monotonic() + 2 * LIMIT
            for process in processes:
                process.wait(max(0, until - time.monotonic()))
        except Exception as error:
            return repr(error)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        wrong = failed(folder, processes)
        if wrong or victim is None or processes[1 - victim].returncode:
            return wrong
        got, sent = state.get("received", 1 - victim), state.get("sent", victim)
        return f"{sent} bytes were sent, and {got} received" if got < sent else None


def main():
    folder = sys.argv[2]
    sys.stderr = open(f"{folder}/{sys.argv[1]}.log", "w")
    Side(sys.argv[1], folder, int(sys.argv[3]), int(sys.argv[4])).run()


if __name__ == "__main__":
    main()
