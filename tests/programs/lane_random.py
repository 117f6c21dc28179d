#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Random calls on a connection of kevent-lane, and the same on one that is no lane.

usage: lane_random.py SIDE FOLDER FD SEED: one side. SIDE is server or client; FD is a socket to
the driver, which is drive() here. A side makes each call on both connections, and compares.
Only one side acts at a time, and the other one waits for its next order.
"""
import array
import errno
import fcntl
import os
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading

LIMIT = 60
MOST = 40000			# bytes under way, which both kinds of connections have room for


class Different(Exception):
    pass


def same(got, want):
    if got != want:
        raise Different(f"{got!r:.200} instead of {want!r:.200}")


def attempt(call, *args):
    try:
        return call(*args)
    except OSError as error:
        return error.errno


def without_reset(result):
    """The peer has closed, and had not read all: kevent-lane(1) has this difference."""
    return b"" if result == errno.ECONNRESET else result


class Side:
    def __init__(self, side, folder, fd):
        self.order = socket.socket(fileno=fd)
        self.pair = []			# the lane, and the model
        for name in ("lane", "model"):
            path = f"{folder}/{name}"
            if side == "server":
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(path)
                listener.listen()
                self.pair.append(listener)
            else:
                self.path = folder
        self.side = side
        self.listeners = self.pair

    def do_open(self, folder):
        if self.side == "server":
            self.pair = [listener.accept()[0] for listener in self.listeners]
        else:
            self.pair = [socket.socket(socket.AF_UNIX) for _ in range(2)]
            for conn, name in zip(self.pair, ("lane", "model")):
                conn.connect(f"{self.path}/{name}")
        self.epolls = [select.epoll(), select.epoll()]

    def both(self, call):
        return [call(conn) for conn in self.pair]

    # Each takes the seed of the call, and returns how many bytes it has sent or received.

    def do_send(self, rand):
        data = rand.randbytes(rand.choice((1, 10, 500, 5000, 15000)))
        how = rand.randrange(5)
        lane, model = self.both(lambda conn: self.try_send(how, conn, data))
        same(lane, model)
        return 0 if model else len(data)

    def try_send(self, how, conn, data):
        """A peer that has closed, and had not read all, is ECONNRESET once."""
        error = attempt(self.send_by, how, conn, data)
        return errno.EPIPE if error == errno.ECONNRESET else error

    def send_by(self, how, conn, data):
        if how == 0:
            conn.sendall(data)
        elif how == 1:
            same(os.writev(conn.fileno(), [data[:7], b"", data[7:]]), len(data))
        elif how == 2:
            same(conn.sendmsg([data]), len(data))
        elif how == 3:
            same(os.write(conn.fileno(), data), len(data))
        else:
            error = []
            writer = threading.Thread(target=lambda: error.append(attempt(conn.sendall, data)))
            writer.start()
            writer.join()
            if error[0]:
                raise OSError(error[0], "in a thread")

    def do_sendfile(self, rand):
        data = rand.randbytes(3000)
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.flush()
            for conn in self.pair:
                same(os.sendfile(conn.fileno(), file.fileno(), 0, len(data)), len(data))
        return len(data)

    def do_pass(self, rand):
        for conn in self.pair:
            r, w = os.pipe()
            os.write(w, b"through")
            os.close(w)
            socket.send_fds(conn, [b"fd"], [r])
            os.close(r)
        return 2

    def recv_by(self, how, conn, size):
        """One call that does not wait"""
        if how == 0:
            return conn.recvmsg(size, 0, socket.MSG_DONTWAIT)[0]
        if how == 1:
            return conn.recvfrom(size, socket.MSG_DONTWAIT)[0]
        if how == 2:
            return conn.recv(size, socket.MSG_DONTWAIT)
        os.set_blocking(conn.fileno(), False)
        try:
            if how == 3:
                return os.read(conn.fileno(), size)
            part = bytearray(size // 3), bytearray(size - size // 3)
            nr = os.readv(conn.fileno(), part)
            return bytes(part[0] + part[1])[:nr]
        finally:
            os.set_blocking(conn.fileno(), True)

    def take(self, conn, size, how=2):
        """As many as there are, up to size: a lane may need two calls."""
        data = b""
        while len(data) < size:
            more = attempt(self.recv_by, how, conn, size - len(data))
            more = without_reset(more)
            if not isinstance(more, bytes) or not more:
                return data or more
            data += more
        return data

    def do_recv(self, rand):
        size = rand.choice((1, 9, 700, 6000, 50000))
        how = rand.randrange(5)
        lane, model = self.both(lambda conn: self.take(conn, size, how))
        same(lane, model)
        return len(model) if isinstance(model, bytes) else 0

    def all_of(self, conn, size):
        """Bytes with a descriptor end a call on a socket."""
        data = conn.recv(size, socket.MSG_WAITALL)
        return data + self.take(conn, size - len(data)) if len(data) < size else data

    def do_wait_all(self, rand):
        there = self.count(self.pair[1])
        size = min(there, rand.choice((1, 1000, 20000)))
        if size:
            same(*self.both(lambda conn: self.all_of(conn, size)))
        return size

    def do_peek(self, rand):
        lane, model = self.both(lambda conn: without_reset(attempt(
            conn.recv, 20, socket.MSG_PEEK | socket.MSG_DONTWAIT)))
        same(type(lane), type(model))
        if isinstance(lane, bytes):
            same(lane, model[:len(lane)])
        return 0

    def take_control(self, conn, size):
        """Bytes, and what is in the pipes whose ends came with them"""
        data, control, _, _ = conn.recvmsg(size, socket.CMSG_SPACE(16), socket.MSG_DONTWAIT)
        text = []
        for _, _, ends in control:
            for fd in struct.unpack(f"{len(ends) // 4}i", ends):
                text.append(os.read(fd, 20))
                os.close(fd)
        if "KEVENT_LANE_PATHS" not in os.environ:	# kevent-lane(1) has this difference
            text = [line for line in text if line == b"through"]
        return data, text

    def control_of(self, conn, size):
        """The same for @size bytes: those from memory are a call of their own."""
        data, text = b"", []
        while len(data) < size:
            more = attempt(self.take_control, conn, size - len(data))
            if more == errno.ECONNRESET:
                more = b"", []		# As without_reset()
            if not isinstance(more, tuple) or not more[0]:
                return (data, text) if data else more
            data += more[0]
            text += more[1]
        return data, text

    def do_take_control(self, rand):
        size = rand.choice((2, 2, 3000, 60000))
        model = self.control_of(self.pair[1], size)
        lane = self.control_of(self.pair[0], size)
        if model != errno.EAGAIN and lane == errno.EAGAIN:
            # The peer follows, or the end is on its way through the socket.
            select.select([self.pair[0]], [], [], LIMIT)
            lane = self.control_of(self.pair[0], size)
        same(lane, model)
        return len(model[0]) if isinstance(model, tuple) else 0

    def count(self, conn):
        nr = array.array("i", [0])
        fcntl.ioctl(conn, termios.FIONREAD, nr)
        return nr[0]

    def do_count(self, rand):
        lane, model = self.both(self.count)
        same(lane > 0, model > 0)
        return 0

    def bits(self, conn):
        poll = select.poll()
        poll.register(conn, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
        return [bits for _, bits in poll.poll(0)]

    def same_bits(self, lane, model):
        """A lane may have room where a socket has none, and has no ECONNRESET."""
        lane, model = [[bits & ~select.POLLERR for bits in polled] for polled in (lane, model)]
        if lane and not model[:1].count(lane[0]):
            lane = [bits for bits in [lane[0] & ~select.POLLOUT] if bits]
        same(lane, model)

    def do_poll(self, rand):
        self.same_bits(*self.both(self.bits))
        same(*self.both(lambda conn: [len(part) for part in
                                      select.select([conn], [], [conn], 0)]))
        return 0

    def do_epoll(self, rand):
        mode = rand.choice((0, select.EPOLLET, select.EPOLLONESHOT))
        want = rand.choice((select.EPOLLIN, select.EPOLLIN | select.EPOLLOUT, select.EPOLLOUT))
        for epoll, conn in zip(self.epolls, self.pair):
            try:
                epoll.register(conn, want | mode)
            except FileExistsError:
                epoll.modify(conn, want | mode)
        self.do_events(rand)
        return 0

    def do_events(self, rand):
        """Level events are the same; an edge may come again."""
        lane, model = [[bits for _, bits in epoll.poll(0)] for epoll in self.epolls]
        if model:
            self.same_bits(lane, model)
        return 0

    def do_forget(self, rand):
        same(*[attempt(epoll.unregister, conn) for epoll, conn in zip(self.epolls, self.pair)])
        return 0

    def do_copy(self, rand):
        copies = self.both(socket.socket.dup)
        if rand.randrange(2):
            self.pair, copies = copies, self.pair
            self.epolls = [select.epoll(), select.epoll()]
        for copy in copies:
            copy.close()
        return 0

    def do_renumber(self, rand):
        """dup2() onto a number that is in use, and back"""
        for i, conn in enumerate(self.pair):
            with open("/dev/null", "rb") as file:
                to = os.dup(file.fileno())
            os.dup2(conn.fileno(), to, False)
            conn.close()
            self.pair[i] = socket.socket(fileno=to)
        self.epolls = [select.epoll(), select.epoll()]
        return 0

    def do_limit(self, rand):
        """A call that waits until SO_RCVTIMEO has passed, or takes what is there"""
        limit = struct.pack("ll", 0, rand.randrange(1, 20000))
        results = []
        for conn in self.pair:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            results.append(without_reset(attempt(conn.recv, 1)))
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))
        same(*results)
        return len(results[1]) if isinstance(results[1], bytes) else 0

    def do_program(self, rand):
        """Another program has the descriptors; here nothing is under way to it."""
        size = rand.choice((1, 3000))
        words = [sys.executable, "-c", f"import os, sys\nfor fd in sys.argv[1:]:\n"
                 f" assert os.write(int(fd), b'x' * {size}) == {size}",
                 *[str(conn.fileno()) for conn in self.pair]]
        same(subprocess.run(words, pass_fds=[conn.fileno() for conn in self.pair],
                            check=False).returncode, 0)
        return size

    def do_child(self, rand):
        """A child reads and writes: the parent goes on behind it."""
        r, w = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                nr = self.do_recv(rand), self.do_send(rand)
                os.write(w, struct.pack("ii", *nr))
            finally:
                os._exit(0)
        os.close(w)
        os.waitpid(pid, 0)
        data = os.read(r, 8)
        os.close(r)
        if len(data) < 8:
            raise Different("the child failed")
        received, sent = struct.unpack("ii", data)
        return received, sent

    def do_end(self, rand):
        for conn in self.pair:
            conn.shutdown(socket.SHUT_WR)
        return 0

    def do_close(self, rand):
        for conn in self.pair:
            conn.close()
        for epoll in self.epolls:
            epoll.close()
        return 0

    def next_order(self):
        """The peer may leave the memory meanwhile: so this waits for the lane, too."""
        poll = select.poll()
        poll.register(self.order, select.POLLIN)
        for conn in self.pair:
            if conn.fileno() >= 0:
                poll.register(conn, 0)
        while True:
            ready = [fd for fd, bits in poll.poll(LIMIT * 1000)]
            if not ready or self.order.fileno() in ready:
                return self.order.recv(100).decode().split()
            for fd in ready:	# the end of a connection
                poll.unregister(fd)

    def serve(self):
        self.order.sendall(b"here")
        while True:
            words = self.next_order()
            if not words:
                return
            try:
                result = getattr(self, "do_" + words[0])(random.Random(int(words[1])))
                self.order.sendall(f"ok {result}".encode())
            except (Different, OSError) as error:
                self.order.sendall(f"bad {words[0]}: {error!r}".encode())


SENDS = ("send", "send", "send", "sendfile", "pass")
RECVS = ("recv", "recv", "recv", "wait_all", "take_control", "limit")
OTHERS = ("peek", "count", "poll", "poll", "epoll", "events", "forget", "copy", "renumber",
          "child", "program")
AFTER_CLOSE = ("recv", "recv", "send", "poll", "peek", "epoll", "events", "limit", "copy",
               "take_control")


class Driver:
    def __init__(self, orders, seed):
        self.orders = orders
        self.rand = random.Random(seed)
        self.log = []
        for order in orders:
            order.settimeout(LIMIT)
            if order.recv(4) != b"here":
                raise Different("a side has not begun")

    def order(self, nr, name):
        self.log.append(f"{nr}:{name}")
        self.orders[nr].sendall(f"{name} {self.rand.randrange(1 << 30)}".encode())
        try:
            answer = self.orders[nr].recv(1000).decode()
        except TimeoutError:
            answer = "bad: no answer"
        if not answer.startswith("ok"):
            raise Different(f"{answer} after {' '.join(self.log)}")
        return answer[3:]

    def connection(self):
        self.log = []
        self.orders[1].sendall(b"open 0")
        self.order(0, "open")
        if not self.orders[1].recv(100).startswith(b"ok"):
            raise Different("no connection")
        under_way = [0, 0]	# sent by either side, and not received
        ended = [False, False]
        for _ in range(self.rand.randrange(3, 80)):
            self.step(self.rand.randrange(2), under_way, ended)
        first = self.rand.randrange(2)
        self.order(first, "close")
        for _ in range(self.rand.randrange(8)):
            name = self.rand.choice(AFTER_CLOSE)
            if name != "send" or not ended[1 - first]:
                self.order(1 - first, name)
        self.order(1 - first, "close")

    def step(self, nr, under_way, ended):
        kind = self.rand.randrange(10)
        if kind < 4 and not ended[nr] and under_way[nr] < MOST:
            under_way[nr] += int(self.order(nr, self.rand.choice(SENDS)))
        elif kind < 8:
            under_way[1 - nr] -= int(self.order(nr, self.rand.choice(RECVS)))
        elif kind < 9 or self.rand.randrange(8):
            name = self.rand.choice(OTHERS)
            if name in ("child", "program") and (ended[nr] or under_way[nr] > MOST):
                return
            if name == "program" and under_way[1 - nr]:
                return
            result = self.order(nr, name)
            if name == "child":
                received, sent = (int(word.strip("(,)")) for word in result.split())
                under_way[1 - nr] -= received
                under_way[nr] += sent
            if name == "program":
                under_way[nr] += int(result)
        else:
            self.order(nr, "end")
            ended[nr] = True


if __name__ == "__main__":
    random.seed(0)
    Side(sys.argv[1], sys.argv[2], int(sys.argv[3])).serve()
