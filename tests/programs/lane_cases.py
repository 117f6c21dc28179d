#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One side of the cases of tests/programs/lane: what does a program see of its connection?

usage: lane_cases.py SIDE FOLDER CASE:FD...: SIDE is server or client, FD a socket to the other
side that is no lane. Each case is a child. Its results are in FOLDER/CASE.SIDE, and must not
depend on how the bytes go.
"""
import array
import ctypes
import errno
import fcntl
import hashlib
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

LIMIT = 60
libc = ctypes.CDLL(None, use_errno=True)
side = case = path = None
beside = None
results = []


def say(*what):
    results.append(what)


def sync():
    """Returns when the other side is here, too."""
    beside.sendall(b's')
    assert beside.recv(1) == b's'


def sync_beside(conn):
    """The same, and waits for the connection, so that its other side may leave the memory."""
    beside.sendall(b's')
    while beside not in select.select([conn, beside], [], [], LIMIT)[0]:
        pass
    assert beside.recv(1) == b's'


def catch(call, *args):
    """The result of a call, or the name of its error."""
    try:
        return call(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def read_all(conn, nr):
    data = b''
    while len(data) < nr:
        more = conn.recv(nr - len(data))
        if not more:
            break
        data += more
    return data


def warm(conn):
    """Both directions have gone through memory afterwards, if they can."""
    for i in range(4):
        if side == 'client':
            conn.sendall(b'ping')
            assert read_all(conn, 4) == b'pong'
        else:
            assert read_all(conn, 4) == b'ping'
            conn.sendall(b'pong')


def noise(nr, seed):
    return random.Random(seed).randbytes(nr)


def digest(data):
    return len(data), hashlib.md5(data).hexdigest()


# --- the cases: what the server does, and what the client does ---------------

def echo_server(conn):
    rand = random.Random(1)
    while True:
        data = conn.recv(rand.randrange(1, 100000))
        if not data:
            break
        conn.sendall(data)


def echo_client(conn):
    rand = random.Random(2)
    for i in range(200):
        data = noise(rand.choice((1, 10, 1000, 5000, 70000, 300000)), i)
        writer = threading.Thread(target=conn.sendall, args=(data,))
        writer.start()
        got = b''
        while len(got) < len(data):
            got += conn.recv(min(rand.randrange(1, 90000), len(data) - len(got)))
        writer.join()
        if got != data:
            say('differs', i)
    conn.shutdown(socket.SHUT_WR)
    say(conn.recv(1))


def dup_server(conn):
    warm(conn)
    copy = conn.dup()
    say(select.select([copy], [], [], LIMIT)[0] == [copy])
    say(read_all(copy, 3), read_all(conn, 3))
    copy.sendall(b'def')
    conn.close()
    copy.sendall(b'ghi')
    say(read_all(copy, 3))
    third = os.dup2(copy.fileno(), 100)
    copy.close()
    say(os.write(third, b'jkl'), os.read(third, 10))
    os.close(third)


def dup_client(conn):
    warm(conn)
    conn.sendall(b'abcABC')
    say(read_all(conn, 6))
    conn.sendall(b'xyz')
    say(read_all(conn, 3))
    conn.sendall(b'last')
    say(conn.recv(1))


def half_server(conn):
    warm(conn)
    say(read_all(conn, 100), conn.recv(1))
    conn.sendall(b'answer')
    conn.shutdown(socket.SHUT_WR)
    say(catch(conn.send, b'x'))


def half_client(conn):
    warm(conn)
    conn.sendall(b'question')
    conn.shutdown(socket.SHUT_WR)
    say(read_all(conn, 100), conn.recv(1))
    say(catch(conn.send, b'x'))


def half2_server(conn):
    warm(conn)
    conn.sendall(b'bye')
    conn.shutdown(socket.SHUT_WR)
    say(read_all(conn, 100))


def half2_client(conn):
    warm(conn)
    say(read_all(conn, 100))
    conn.sendall(b'x' * 1000)
    conn.close()


def rdwr_server(conn):
    warm(conn)
    conn.sendall(b'end')
    conn.shutdown(socket.SHUT_RDWR)
    say(conn.recv(1), catch(conn.send, b'x'))
    sync()


def rdwr_client(conn):
    warm(conn)
    say(read_all(conn, 10), conn.recv(1))
    sync()
    say(catch(conn.send, b'x'))


def rd_server(conn):
    warm(conn)
    conn.shutdown(socket.SHUT_RD)
    say(conn.recv(1))
    conn.sendall(b'go')


def rd_client(conn):
    warm(conn)
    say(read_all(conn, 2))
    say(catch(conn.send, b'x'))


def timeo(conn, option, ms=100):
    conn.setsockopt(socket.SOL_SOCKET, option, struct.pack('ll', ms // 1000, ms % 1000 * 1000))


def rcvtimeo_server(conn):
    warm(conn)
    timeo(conn, socket.SO_RCVTIMEO)
    say(catch(conn.recv, 1))
    timeo(conn, socket.SO_RCVTIMEO, LIMIT * 1000)
    sync()
    say(conn.recv(1))


def rcvtimeo_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')


def leaves_in_time_server(conn):
    """A thread takes the connection out of memory while another one reads, for 3 s at most."""
    warm(conn)
    timer = threading.Timer(2.5, conn.setsockopt, (socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1))
    timeo(conn, socket.SO_RCVTIMEO, 3000)
    start = time.monotonic()
    timer.start()
    say(catch(conn.recv, 1), time.monotonic() - start < 5.4)
    timer.join()
    sync_beside(conn)


def leaves_in_time_client(conn):
    warm(conn)
    sync_beside(conn)


def sndtimeo_server(conn):
    warm(conn)
    timeo(conn, socket.SO_SNDTIMEO)
    sent = 0
    while True:
        nr = catch(conn.send, b'x' * 100000)
        if isinstance(nr, str):
            break
        sent += nr
    say(nr)
    beside.sendall(struct.pack('q', sent))
    conn.close()


def sndtimeo_client(conn):
    warm(conn)
    sent, = struct.unpack('q', beside.recv(8))
    say(len(read_all(conn, sent + 1)) == sent)


def peek_server(conn):
    warm(conn)
    sync()
    say(conn.recv(3, socket.MSG_PEEK), conn.recv(3, socket.MSG_PEEK), conn.recv(3))
    buf = [bytearray(2), bytearray(10)]
    say(conn.recvmsg_into(buf)[0], bytes(buf[0]), bytes(buf[1]))
    say(catch(conn.recv, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    sync()


def peek_client(conn):
    warm(conn)
    conn.sendall(b'abcdefg')
    sync()
    sync()


def say_peeked(conn):
    """Two ways by which bytes come are one to a peek."""
    buffers = [bytearray(2), bytearray(0), bytearray(10)]
    say(conn.recv(10, socket.MSG_PEEK), count(conn), conn.recv(4, socket.MSG_PEEK))
    say(conn.recvmsg_into(buffers, 0, socket.MSG_PEEK)[0], buffers)
    say(read_all(conn, 6), catch(conn.recv, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT))


def peek_memory_server(conn):
    warm(conn)
    sync()
    say_peeked(conn)
    sync()


def peek_memory_client(conn):
    warm(conn)
    conn.sendall(b'abcdef')
    sync()
    sync()


def peek_rest_server(conn):
    """It goes back to the socket: the first bytes were in memory."""
    warm(conn)
    sync()
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    sync()
    sync()
    say_peeked(conn)
    sync()


def peek_rest_client(conn):
    warm(conn)
    conn.sendall(b'abc')
    sync()
    sync_beside(conn)
    conn.sendall(b'def')
    sync()
    sync()


def peek_back_server(conn):
    """The other side goes back, and the first bytes are in memory still."""
    warm(conn)
    sync_beside(conn)
    say_peeked(conn)
    sync()


def peek_back_client(conn):
    warm(conn)
    conn.sendall(b'abc')
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    conn.sendall(b'def')
    sync()
    sync()


def peek_spins_server(conn):
    """The same, of a side that makes no other call."""
    warm(conn)
    while len(conn.recv(10, socket.MSG_PEEK)) < 6:
        pass
    sync()
    say(read_all(conn, 6))
    sync()


peek_spins_client = peek_back_client


def peek_joins_server(conn):
    """The first bytes are in the socket, and the next ones in memory."""
    sync()
    say(conn.recv(1))
    sync()
    sync()
    say_peeked(conn)
    sync()
    warm(conn)


def peek_joins_client(conn):
    conn.sendall(b'xabc')
    sync()
    sync()
    conn.sendall(b'def')
    sync()
    sync()
    warm(conn)


def recv_none(conn, flags):
    """socket.recv() makes no call for no bytes."""
    ret = libc.recv(conn.fileno(), None, 0, flags)
    return ret if ret >= 0 else errno.errorcode[ctypes.get_errno()]


def read_none(conn, flags):
    """Calls for no bytes"""
    say(recv_none(conn, flags), catch(lambda: conn.recvmsg_into([], 0, flags)[0]),
        recv_none(conn, flags | socket.MSG_PEEK),
        catch(lambda: conn.recvmsg_into([], 0, flags | socket.MSG_PEEK)[0]),
        catch(os.read, conn.fileno(), 0), catch(os.readv, conn.fileno(), [bytearray(0)]))


def none_server(conn):
    warm(conn)
    read_none(conn, socket.MSG_DONTWAIT)
    sync()
    say(recv_none(conn, 0), bits(conn, select.POLLIN))
    read_none(conn, 0)
    say(conn.recv(10))
    sync()
    read_none(conn, 0)


def none_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()


def waitall_server(conn):
    warm(conn)
    for i in range(3):
        say(digest(conn.recv(200000, socket.MSG_WAITALL)))
        conn.sendall(b'k')
    say(conn.recv(10, socket.MSG_WAITALL))


def waitall_client(conn):
    warm(conn)
    for i in range(3):
        data = noise(200000, i)
        for at in range(0, len(data), 7000):
            conn.sendall(data[at:at + 7000])
        say(conn.recv(1))
    conn.sendall(b'short')


def count(conn):
    nr = array.array('i', [0])
    fcntl.ioctl(conn, termios.FIONREAD, nr)
    return nr[0]


def fionread_server(conn):
    warm(conn)
    say(count(conn))
    sync()
    sync()
    say(count(conn))
    conn.recv(10)
    say(count(conn))


def fionread_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x' * 1234)
    sync()


def outq_server(conn):
    warm(conn)
    sync()
    nr = array.array('i', [0])
    fcntl.ioctl(conn, termios.TIOCOUTQ, nr)
    say(nr[0] >= 0)
    conn.sendall(b'go')


def outq_client(conn):
    warm(conn)
    sync()
    say(conn.recv(2))


def pass_file(conn, text):
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()
        socket.send_fds(conn, [b'F'], [file.fileno()])


def take_file(conn):
    data, fds, flags, _ = socket.recv_fds(conn, 1, 4)
    text = [os.pread(fd, 100, 0) for fd in fds]
    for fd in fds:
        os.close(fd)
    return data, text, flags


def rights_server(conn):
    warm(conn)
    conn.sendall(b'before')
    pass_file(conn, b'text')
    conn.sendall(b'behind')
    say(conn.recv(3))
    pass_file(conn, b'again')
    say(conn.recv(3))


def rights_client(conn):
    warm(conn)
    say(read_all(conn, 6))
    say(take_file(conn))
    say(read_all(conn, 6))
    conn.sendall(b'ok1')
    say(take_file(conn))
    conn.sendall(b'ok2')


def rights_of_lane_server(conn):
    """Passes the connection itself to a child by another socket; nothing is under way."""
    warm(conn)
    a, b = socket.socketpair()
    pid = os.fork()
    if not pid:
        a.close()
        conn.close()
        data, fds, _, _ = socket.recv_fds(b, 1, 1)
        other = socket.socket(fileno=fds[0])
        other.sendall(b'child:' + read_all(other, 5))
        other.close()
        os._exit(0)
    b.close()
    socket.send_fds(a, [b'x'], [conn.fileno()])
    conn.sendall(b'go')
    say(os.waitpid(pid, 0)[1])
    conn.sendall(b'parent')


def rights_of_lane_client(conn):
    warm(conn)
    say(read_all(conn, 2))
    conn.sendall(b'hello')
    say(read_all(conn, 17))


def cred_server(conn):
    warm(conn)
    pid = struct.unpack('iii', conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    beside.sendall(struct.pack('i', pid))
    sync()


def cred_client(conn):
    warm(conn)
    say(struct.unpack('i', beside.recv(4))[0] == os.getpid())
    say(conn.getpeername() == path, conn.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    sync()


def events(ep, timeout=LIMIT):
    return [(nr, bits) for nr, bits in ep.poll(timeout)]


def epolls_server(conn):
    warm(conn)
    fd = conn.fileno()
    one, two = select.epoll(), select.epoll()
    one.register(fd, select.EPOLLIN)
    two.register(fd, select.EPOLLIN | select.EPOLLOUT)
    say(events(one, 0), events(two) == [(fd, select.EPOLLOUT)])
    sync()
    sync()
    say(events(one) == [(fd, select.EPOLLIN)])
    say(events(two) == [(fd, select.EPOLLIN | select.EPOLLOUT)])
    say(events(one) == [(fd, select.EPOLLIN)])
    say(conn.recv(10), events(one, 0))
    one.modify(fd, select.EPOLLOUT)
    say(events(one) == [(fd, select.EPOLLOUT)])
    say(catch(one.register, fd, select.EPOLLIN))
    one.unregister(fd)
    say(events(one, 0), catch(one.unregister, fd), catch(one.modify, fd, 1))
    other = os.dup(two.fileno())
    copy = select.epoll.fromfd(other)
    sync()
    sync()
    bits = select.EPOLLIN | select.EPOLLOUT | select.EPOLLHUP
    say(events(copy) == [(fd, bits)])


def epolls_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()
    sync()
    conn.close()
    sync()


def edge_server(conn):
    warm(conn)
    fd = conn.fileno()
    ep = select.epoll()
    ep.register(fd, select.EPOLLIN | select.EPOLLET)
    say(events(ep, 0))
    sync()
    sync()
    say(events(ep) == [(fd, select.EPOLLIN)], events(ep, 0))
    say(conn.recv(1), events(ep, 0))
    sync()
    sync()
    say(events(ep) == [(fd, select.EPOLLIN)], events(ep, 0))
    say(conn.recv(10))
    ep.modify(fd, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
    sync()
    sync()
    say(events(ep) == [(fd, select.EPOLLIN | select.EPOLLRDHUP)], events(ep, 0))
    sync()


def edge_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'ab')
    sync()
    sync()
    conn.sendall(b'c')
    sync()
    sync()
    conn.shutdown(socket.SHUT_WR)
    sync()
    sync()


def short_read_server(conn):
    """The program takes a read of fewer bytes for one of all, as epoll(7) allows it."""
    ep = select.epoll()
    ep.register(conn.fileno(), select.EPOLLIN | select.EPOLLET)
    sync()
    say(len(events(ep)), conn.recv(1))
    for _ in range(2):
        sync()
        sync()
        say(len(events(ep)))
    say(conn.recv(100))


def short_read_client(conn):
    conn.sendall(b'1')
    conn.sendall(b'before memory ')
    sync()
    for data in b'first of memory ', b'second of memory':
        sync()
        conn.sendall(data)
        sync()


def oneshot_server(conn):
    warm(conn)
    fd = conn.fileno()
    ep = select.epoll()
    ep.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
    sync()
    say(events(ep) == [(fd, select.EPOLLIN)], events(ep, 0))
    sync()
    sync()
    say(events(ep, 0))
    ep.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
    say(events(ep) == [(fd, select.EPOLLIN)], events(ep, 0))
    sync()
    sync()
    say(events(ep, 0))


def oneshot_client(conn):
    warm(conn)
    conn.sendall(b'a')
    sync()
    sync()
    conn.sendall(b'b')
    sync()
    sync()
    conn.close()
    sync()


def early_server(conn):
    other, _ = listener.accept()
    warm(other)
    other.sendall(noise(600000, 5))
    say(read_all(other, 4))


def early_client(conn):
    """What is done to a socket before it is connected holds afterwards."""
    ep, sock = select.epoll(), socket.socket(socket.AF_UNIX)
    copy = sock.dup()
    ep.register(sock.fileno(), select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
    say([bits for _, bits in events(ep, 0)], events(ep, 0))
    sock.connect(path)
    warm(sock)
    sock.setblocking(False)
    data = b''
    while len(data) < 600000:
        more = catch(sock.recv, 100000)
        if more != 'EAGAIN':
            data += more
        elif not events(ep):
            say('no event')
            break
    say(digest(data))
    copy.setblocking(True)
    copy.sendall(b'copy')


def early_listen_server(conn):
    """A listener that is watched before it listens"""
    ep, other = select.epoll(), socket.socket(socket.AF_UNIX)
    ep.register(other.fileno(), select.EPOLLIN)
    other.bind(path + '.2')
    other.listen()
    sync()
    say(len(events(ep)))
    warm(other.accept()[0])


def early_listen_client(conn):
    sync()
    other = socket.socket(socket.AF_UNIX)
    other.connect(path + '.2')
    warm(other)


def nested_server(conn):
    warm(conn)
    inner, outer = select.epoll(), select.epoll()
    inner.register(conn.fileno(), select.EPOLLIN)
    poll = select.poll()
    poll.register(inner.fileno(), select.POLLIN)
    say(poll.poll(0))
    sync()
    sync()
    say(len(poll.poll(LIMIT * 1000)), len(select.select([inner], [], [], LIMIT)[0]))
    say(conn.recv(10))
    conn.sendall(b'k')
    outer.register(inner.fileno(), select.EPOLLIN)
    conn.sendall(b'k')
    say(len(outer.poll(LIMIT)), len(inner.poll(LIMIT)), conn.recv(10))
    other, _ = listener.accept()
    warm(other)
    inner.register(other.fileno(), select.EPOLLIN)
    say(outer.poll(0))
    other.sendall(b'k')
    say(len(outer.poll(LIMIT)), len(inner.poll(LIMIT)), other.recv(10))


def nested_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()
    say(read_all(conn, 2))
    conn.sendall(b'y')
    other = socket.socket(socket.AF_UNIX)
    other.connect(path)
    warm(other)
    say(other.recv(1))
    other.sendall(b'z')
    say(other.recv(1))


def mixed_server(conn):
    """An instance with the connection, a pipe and a listener"""
    warm(conn)
    ep = select.epoll()
    r, w = os.pipe()
    ep.register(conn.fileno(), select.EPOLLIN)
    ep.register(r, select.EPOLLIN)
    os.write(w, b'p')
    say(events(ep) == [(r, select.EPOLLIN)])
    sync()
    sync()
    seen = set()
    for _ in range(200):
        seen |= {nr for nr, _ in ep.poll(LIMIT, 1)}
    say(seen == {r, conn.fileno()})
    say(os.read(r, 1), conn.recv(1), events(ep, 0))
    sync()


def mixed_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()
    sync()


def select_server(conn):
    warm(conn)
    r, w = os.pipe()
    say(select.select([conn, r], [conn], [], LIMIT) == ([], [conn], []))
    say(select.select([conn, r], [], [conn], 0.05))
    os.write(w, b'p')
    say(select.select([conn, r], [], [conn], LIMIT) == ([r], [], []))
    sync()
    sync()
    ready = select.select([conn, r], [conn], [], LIMIT)
    say(ready == ([conn, r], [conn], []))
    say(conn.recv(5))
    sync()
    sync()
    say(select.select([conn], [], [], LIMIT) == ([conn], [], []), conn.recv(5))
    os.close(w)
    say(catch(select.select, [w, conn], [], [], 0))


def select_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()
    sync()
    conn.close()
    sync()


def poll_server(conn):
    warm(conn)
    fd = conn.fileno()
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLRDHUP)
    say(poll.poll(0), poll.poll(50))
    sync()
    sync()
    say(poll.poll(LIMIT * 1000) == [(fd, select.POLLIN)])
    poll.modify(fd, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    say(poll.poll(LIMIT * 1000) == [(fd, select.POLLIN | select.POLLOUT)], conn.recv(2))
    sync()
    sync()
    poll.modify(fd, select.POLLIN | select.POLLRDHUP)
    say(poll.poll(LIMIT * 1000) == [(fd, select.POLLIN | select.POLLRDHUP)], conn.recv(2))
    sync()
    sync()
    say([bits for _, bits in poll.poll(LIMIT * 1000)])


def poll_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()
    sync()
    conn.shutdown(socket.SHUT_WR)
    sync()
    sync()
    conn.close()
    sync()


def await_sleep(pid):
    """Returns when the process sleeps."""
    while True:
        with open(f'/proc/{pid}/stat') as file:
            if ') S ' in file.read():
                return
        os.sched_yield()


def full_server(conn):
    """Waits for room in a socket, while bytes from memory are not read."""
    warm(conn)
    sync()
    pass_file(conn, b'text')
    conn.setblocking(False)
    sent = 0
    while (nr := catch(conn.send, bytes(10000))) != 'EAGAIN':
        sent += nr
    beside.sendall(struct.pack('qi', sent, os.getpid()))
    say(select.select([], [conn], [], LIMIT)[1] == [conn])
    say(select.select([conn], [], [], LIMIT)[0] == [conn], conn.recv(10))


def full_client(conn):
    warm(conn)
    conn.sendall(b'unread')
    sync()
    say(take_file(conn))
    sent, pid = struct.unpack('qi', beside.recv(12))
    await_sleep(pid)
    say(len(read_all(conn, sent)) == sent)


def threads_server(conn):
    warm(conn)
    got = []

    def read():
        while True:
            data = conn.recv(1000)
            if not data:
                break
            got.append(len(data))
    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    writer = threading.Thread(target=lambda: [conn.sendall(b'w' * 100) for _ in range(1000)])
    writer.start()
    for thread in readers + [writer]:
        thread.join()
    say(sum(got))


def threads_client(conn):
    warm(conn)
    writers = [threading.Thread(target=lambda: [conn.sendall(b'x' * 999) for _ in range(300)])
               for _ in range(3)]
    for writer in writers:
        writer.start()
    say(len(read_all(conn, 100000)))
    for writer in writers:
        writer.join()
    conn.shutdown(socket.SHUT_WR)
    say(conn.recv(1))


def thread_epoll_server(conn):
    """A thread waits while another one adds the connection."""
    ep = select.epoll()
    r, w = os.pipe()
    ep.register(r, select.EPOLLIN)
    seen = []

    def wait():
        while not seen:
            seen.extend(nr for nr, _ in ep.poll(LIMIT))
    waiter = threading.Thread(target=wait)
    waiter.start()
    warm(conn)
    ep.register(conn.fileno(), select.EPOLLIN)
    sync()
    waiter.join()
    say(seen == [conn.fileno()])


def thread_epoll_client(conn):
    warm(conn)
    conn.sendall(b'x')
    sync()


def fork_server(conn, fork=os.fork):
    warm(conn)
    pid = fork()
    if not pid:
        data = catch(read_all, conn, 5)
        catch(conn.sendall, b'child ' + data if isinstance(data, bytes) else b'failed')
        os._exit(0)
    say(os.waitpid(pid, 0)[1])
    conn.sendall(b'parent')
    say(read_all(conn, 3))


def fork_client(conn):
    warm(conn)
    conn.sendall(b'hello')
    say(read_all(conn, 17))
    conn.sendall(b'end')


def raw_fork_server(conn):
    fork_server(conn, libc._Fork)


raw_fork_client = fork_client


def fork_rest_server(conn):
    """Bytes are under way when the child begins."""
    warm(conn)
    sync()
    pid = os.fork()
    if not pid:
        conn.sendall(b'child ' + catch(read_all, conn, 5))
        os._exit(0)
    say(os.waitpid(pid, 0)[1])
    say(read_all(conn, 6))
    conn.sendall(b'parent')


def fork_rest_client(conn):
    warm(conn)
    conn.sendall(b'hello world')
    sync()
    say(read_all(conn, 17))


def accept_child_server(conn):
    pid = os.fork()
    if not pid:
        warm(conn)
        conn.sendall(b'child')
        os._exit(0)
    conn.close()
    say(os.waitpid(pid, 0)[1])


def accept_child_client(conn):
    warm(conn)
    say(read_all(conn, 5), conn.recv(1))


def accept_both_server(conn):
    """A child that is plain, and its parent"""
    pid = os.fork()
    if not pid:
        socket.send_fds(conn, [b'child'], [0])
        os._exit(0)
    say(os.waitpid(pid, 0)[1])
    conn.sendall(b'parent')
    say(read_all(conn, 5))


def accept_both_client(conn):
    say(read_all(conn, 11))
    conn.sendall(b'hello')


def halves_server(conn):
    """A child reads and its parent writes, from the start"""
    pid = os.fork()
    if not pid:
        os._exit(read_all(conn, 500) != b'halfs' * 100)
    for _ in range(100):
        conn.sendall(b'other')
    say(os.waitpid(pid, 0)[1])
    conn.close()


def halves_client(conn):
    pid = os.fork()
    if not pid:
        os._exit(read_all(conn, 500) != b'other' * 100)
    for _ in range(100):
        conn.sendall(b'halfs')
    say(os.waitpid(pid, 0)[1])
    say(conn.recv(1))


CAT = 'import os,sys; os.write(1, b"prog " + os.read(0, 5))'


def exec_server(conn):
    """Nothing is under way: a program cannot get bytes that are in memory."""
    warm(conn)
    pid = os.fork()
    if not pid:
        os.dup2(conn.fileno(), 0)
        os.dup2(conn.fileno(), 1)
        os.execv(sys.executable, [sys.executable, '-c', CAT])
    sync()
    say(os.waitpid(pid, 0)[1])
    conn.sendall(b'parent')


def exec_client(conn):
    warm(conn)
    sync_beside(conn)
    conn.sendall(b'hello')
    say(read_all(conn, 16))


def exec_self_server(conn):
    warm(conn)
    conn.set_inheritable(True)
    code = ('import socket; s = socket.socket(fileno=%d);'
            's.sendall(b"go"); s.sendall(b"prog " + s.recv(5))')
    print(repr(results), flush=True)
    os.execv(sys.executable, [sys.executable, '-c', code % conn.fileno()])


def exec_self_client(conn):
    warm(conn)
    say(read_all(conn, 2))
    conn.sendall(b'hello')
    say(read_all(conn, 20))


def spawn_server(conn):
    """No bytes are under way: the program could not get those that are in memory."""
    warm(conn)
    child = subprocess.Popen([sys.executable, '-c', CAT], stdin=conn, stdout=conn)
    sync()
    say(child.wait())
    fd = conn.fileno()
    pid = os.posix_spawn(sys.executable, [sys.executable, '-c', CAT], os.environ,
                         file_actions=[(os.POSIX_SPAWN_DUP2, fd, 0),
                                       (os.POSIX_SPAWN_DUP2, fd, 1)])
    say(os.waitpid(pid, 0)[1])
    conn.sendall(b'parent')


def spawn_client(conn):
    warm(conn)
    sync_beside(conn)
    conn.sendall(b'hello')
    say(read_all(conn, 10))
    conn.sendall(b'again')
    say(read_all(conn, 16))


def kill_server(conn):
    warm(conn)
    say(read_all(conn, 100), conn.recv(1))
    say(catch(conn.send, b'x') in ('EPIPE', 'ECONNRESET'))


def kill_client(conn):
    warm(conn)
    conn.sendall(b'last words')
    print(repr(results), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


WAYS = (
    socket.socket.close,
    lambda conn: os.kill(os.getpid(), signal.SIGKILL),
    lambda conn: os.execv('/bin/true', ['true']),
    lambda conn: libc.exit(0),
)


def fill_and_end(conn, end):
    """A child that ends while its peer has read nothing of all that there was room for"""
    warm(conn)
    conn.setblocking(False)
    data, at = noise(1000000, 4), 0
    while (nr := catch(conn.send, data[at:])) != 'EAGAIN':
        at += nr
    beside.sendall(struct.pack('i', at))
    end(conn)
    os._exit(0)


def ends_server(conn):
    for end in WAYS:
        ready, go = os.pipe()
        pid = os.fork()
        if not pid:
            os.read(ready, 1)
            fill_and_end(conn, end)
        conn.close()
        os.write(go, b'g')
        say(os.waitpid(pid, 0)[1])
        sync()
        conn = listener.accept()[0]


def ends_client(conn):
    """The end is seen first."""
    for _ in WAYS:
        warm(conn)
        nr, = struct.unpack('i', read_all(beside, 4))
        sync()
        poll = select.poll()
        poll.register(conn.fileno(), select.POLLRDHUP)
        say([events for _, events in poll.poll(LIMIT * 1000)])
        say(nr > 50000, read_all(conn, nr) == noise(1000000, 4)[:nr], conn.recv(1))
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(path)


def gone_server(conn):
    """Control data is asked for, and the peer has gone."""
    warm(conn)
    beside.recv(1)
    for size in (2, 10, 10):
        data, control, _, _ = conn.recvmsg(size, 64)
        say(data, len(control))
    say(catch(socket.send_fds, conn, [b'x'], [0]))


def gone_client(conn):
    warm(conn)
    conn.sendall(b'last words')
    conn.close()
    beside.sendall(b'g')


def killed_server_server(conn):
    warm(conn)
    conn.sendall(b'last words')
    print(repr(results), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def killed_server_client(conn):
    warm(conn)
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    say(len(poll.poll(LIMIT * 1000)))
    say(read_all(conn, 100), conn.recv(1))


def stdio_server(conn):
    warm(conn)
    libc.fdopen.restype = libc.fgets.restype = ctypes.c_void_p
    file = libc.fdopen(os.dup(conn.fileno()), b'r+')
    buf = ctypes.create_string_buffer(100)
    conn.sendall(b'go')
    libc.fgets(buf, 100, ctypes.c_void_p(file))
    say(buf.value)
    libc.fputs(b'line\n', ctypes.c_void_p(file))
    libc.fclose(ctypes.c_void_p(file))
    conn.sendall(b'end')
    say(conn.recv(10))


def stdio_client(conn):
    warm(conn)
    say(read_all(conn, 2))
    conn.sendall(b'text\n')
    say(read_all(conn, 8))
    conn.sendall(b'bye')


def standard_server(conn):
    """stdio of libc writes to a copy of a connection."""
    warm(conn)
    out = os.dup(1)
    os.dup2(conn.fileno(), 1)
    libc.printf(b'text\n')
    libc.fflush(None)
    other, _ = listener.accept()
    warm(other)
    os.close(1)
    say(os.dup(other.fileno()))
    libc.printf(b'more\n')
    libc.fflush(None)
    os.dup2(out, 1)


def standard_client(conn):
    warm(conn)
    say(read_all(conn, 5))
    other = socket.socket(socket.AF_UNIX)
    other.connect(path)
    warm(other)
    say(read_all(other, 5))


def makefile_server(conn):
    warm(conn)
    file = conn.makefile('rwb')
    say(file.readline(), file.read(5))
    file.write(b'x' * 100000)
    file.close()
    conn.close()


def makefile_client(conn):
    warm(conn)
    conn.sendall(b'a line\nabcde')
    say(digest(read_all(conn, 200000)))


def sendfile_server(conn):
    warm(conn)
    with tempfile.TemporaryFile() as file:
        file.write(noise(300000, 1))
        file.flush()
        conn.sendall(b'before')
        at = 0
        while at < 300000:
            at += os.sendfile(conn.fileno(), file.fileno(), at, 300000 - at)
    conn.sendall(b'behind')
    say(conn.recv(2))


def sendfile_client(conn):
    warm(conn)
    say(digest(read_all(conn, 300012)))
    conn.sendall(b'ok')


def splice_server(conn):
    warm(conn)
    r, w = os.pipe()
    conn.sendall(b'go')
    os.write(w, b'spliced')
    say(os.splice(r, conn.fileno(), 7))
    say(os.splice(conn.fileno(), w, 5), os.read(r, 10))
    libc.dprintf(conn.fileno(), b'%d.', 42)


def splice_client(conn):
    warm(conn)
    say(read_all(conn, 9))
    conn.sendall(b'hello')
    say(read_all(conn, 3))


def variants_server(conn):
    """Other names of functions: of _FORTIFY_SOURCE, and of 64 bits"""
    fd = conn.fileno()
    for name in ('__dprintf_chk', 'pwritev64v2', '__write'):
        warm(conn)
        if name == '__dprintf_chk':
            say(getattr(libc, name)(fd, 1, b'%d.', 42))
        elif name == '__write':
            say(getattr(libc, name)(fd, b'abc', 3))
        else:
            text = ctypes.create_string_buffer(b'xyz', 3)
            iov = (ctypes.c_void_p * 2)(ctypes.addressof(text), 3)
            say(getattr(libc, name)(fd, iov, 1, ctypes.c_long(-1), 0))
        conn, _ = listener.accept()
        fd = conn.fileno()


def variants_client(conn):
    for _ in range(3):
        warm(conn)
        say(read_all(conn, 3))
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(path)


def reuse_server(conn):
    warm(conn)
    fd = conn.fileno()
    conn.close()
    r, w = os.pipe()
    say(fd in (r, w), os.write(w, b'pipe'), os.read(r, 10))
    ep = select.epoll()
    ep.register(r, select.EPOLLIN)
    say(events(ep, 0), os.write(w, b'x'), len(events(ep)))
    for i in range(50):
        again, _ = listener.accept()
        say(read_all(again, 4))
        again.sendall(b'%04d' % i)
        warm(again)
        again.close()


def reuse_client(conn):
    warm(conn)
    say(conn.recv(1))
    for i in range(50):
        again = socket.socket(socket.AF_UNIX)
        again.connect(path)
        again.sendall(b'next')
        say(read_all(again, 4))
        warm(again)
        say(again.recv(1))
        again.close()


def over_server(conn):
    """dup2() over a connection ends it."""
    warm(conn)
    r, w = os.pipe()
    os.dup2(r, conn.fileno())
    os.write(w, b'p')
    say(os.read(conn.fileno(), 10))
    conn.detach()


def over_client(conn):
    warm(conn)
    say(conn.recv(1))


def sigpipe_server(conn):
    warm(conn)
    seen = []
    signal.signal(signal.SIGPIPE, lambda *_: seen.append(1))
    sync()
    conn.recv(1)
    say(catch(conn.send, b'x', socket.MSG_NOSIGNAL), len(seen))
    say(catch(conn.send, b'x'), len(seen))
    say(catch(os.write, conn.fileno(), b'x'), len(seen))


def sigpipe_client(conn):
    warm(conn)
    conn.close()
    sync()


def fill_server(conn):
    warm(conn)
    conn.setblocking(False)
    data = noise(2000000, 3)
    at = waits = 0
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLOUT)
    while at < len(data):
        nr = catch(conn.send, data[at:at + 300000])
        if nr == 'EAGAIN':
            if not waits:
                sync()
            waits += 1
            say(poll.poll(LIMIT * 1000) != []) if waits < 2 else poll.poll(LIMIT * 1000)
        else:
            at += nr
    say(catch(conn.recv, 1))
    sync()


def fill_client(conn):
    warm(conn)
    sync()
    say(digest(read_all(conn, 2000000)))
    sync()


def loggers_server(conn):
    warm(conn)
    seen = [read_all(conn, 96) for _ in range(4 * 3000)]
    say(sorted({data[:1] for data in seen}), all(len(set(data)) == 1 for data in seen))


def loggers_client(conn):
    """Threads that write short messages to one connection"""
    warm(conn)
    writers = [threading.Thread(target=lambda data: [os.write(conn.fileno(), data) for _ in
                                                     range(3000)], args=(letter * 96,))
               for letter in (b'a', b'b', b'c', b'd')]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def whole_server(conn):
    """Short writes that do not wait are whole, or not made."""
    warm(conn)
    conn.setblocking(False)
    data, sent = noise(1000, 6), 0
    while (nr := catch(conn.send, data)) != 'EAGAIN':
        if nr != 1000:
            say('cut', nr)
            break
        sent += nr
    beside.sendall(struct.pack('q', sent))
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLOUT)
    say(len(poll.poll(LIMIT * 1000)), conn.send(data))


def whole_client(conn):
    warm(conn)
    sent, = struct.unpack('q', beside.recv(8))
    say(read_all(conn, sent + 1000) == noise(1000, 6) * (sent // 1000 + 1))


def fill_epoll_server(conn):
    warm(conn)
    conn.setblocking(False)
    data = noise(2000000, 4)
    at = 0
    ep = select.epoll()
    ep.register(conn.fileno(), select.EPOLLOUT | select.EPOLLET)
    while at < len(data):
        nr = catch(conn.send, data[at:at + 9000])
        if nr == 'EAGAIN':
            if not ep.poll(LIMIT):
                say('no event')
                break
        else:
            at += nr
    sync()


def fill_epoll_client(conn):
    warm(conn)
    say(digest(read_all(conn, 2000000)))
    sync()


def vectors_server(conn):
    warm(conn)
    say(conn.sendmsg([b'ab', b'', b'cde' * 30000]))
    one, two = bytearray(3), bytearray(10)
    nr, _, flags, address = conn.recvmsg_into([one, two])
    say(nr, bytes(one), bytes(two), flags, address)
    say(os.writev(conn.fileno(), [b'x', b'yz']))
    say(catch(conn.sendto, b'x', path))
    buf = ctypes.create_string_buffer(b'word', 4)
    say(libc.sendto(conn.fileno(), buf, 4, 0, buf, 0))


def vectors_client(conn):
    warm(conn)
    say(digest(read_all(conn, 90002)))
    conn.sendall(b'01234567')
    say(conn.recvfrom(3)[1] == path)
    say(read_all(conn, 4))


def signals_server(conn):
    warm(conn)
    seen = []
    act = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    say(act == signal.SIG_DFL)
    for restart in (False, True):
        signal.siginterrupt(signal.SIGUSR1, not restart)
        timer = threading.Timer(0.1, lambda: libc.syscall(234, os.getpid(), os.getpid(),
                                                         signal.SIGUSR1))
        timer.start()
        buf = ctypes.create_string_buffer(10)
        if restart:
            threading.Timer(0.3, lambda: beside.sendall(b'g')).start()
        say(libc.read(conn.fileno(), buf, 10), ctypes.get_errno(), buf.value)
        timer.join()
    say(len(seen))


def signals_client(conn):
    warm(conn)
    assert beside.recv(1) == b'g'
    conn.sendall(b'data')
    say(conn.recv(1))


def spans_server(conn):
    """Times that are none, with which a wait would have no end; and long ones"""
    warm(conn)
    fd = conn.fileno()
    files = ctypes.create_string_buffer(struct.pack('ihh', fd, select.POLLIN, 0))
    bits, room = ctypes.create_string_buffer(128), ctypes.create_string_buffer(12)
    ep = select.epoll()
    ep.register(fd, select.EPOLLIN)

    def try_all(sec, part):
        span = ctypes.create_string_buffer(struct.pack('qq', sec, part))
        for call, *args in ((libc.ppoll, files, ctypes.c_ulong(1), span, None),
                            (libc.pselect, fd + 1, bits, None, None, span, None),
                            (libc.epoll_pwait2, ep.fileno(), room, 1, span, None),
                            (libc.select, fd + 1, bits, None, None, span)):
            bits[fd // 8] = bytes([1 << fd % 8])
            ctypes.set_errno(0)
            say(sec, part, call(*args), errno.errorcode.get(ctypes.get_errno()))

    try_all(-1, 0)
    try_all(0, -1)
    sync()
    sync()
    try_all(10**10, 0)
    try_all(2**63 - 1, 999999)
    say(conn.recv(1))


def spans_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()


def pselect_server(conn):
    warm(conn)
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    poll = libc.poll
    sync()
    fds = (ctypes.c_char * 8).from_buffer_copy(struct.pack('ihh', conn.fileno(), 1, 0))
    say(poll(fds, 1, LIMIT * 1000), ctypes.get_errno() == errno.EINTR, len(seen))
    sync()
    say(poll(fds, 1, LIMIT * 1000), struct.unpack('ihh', fds.raw)[2])
    sync()


def pselect_client(conn):
    warm(conn)
    sync()
    sync()
    conn.sendall(b'x')
    sync()


def close_range_server(conn):
    warm(conn)
    beside.set_inheritable(True)
    os.dup2(beside.fileno(), 50)
    other = socket.socket(fileno=50)
    conn.sendall(b'bye')
    conn.detach()
    os.closerange(3, 50)
    os.closerange(51, 5000)
    other.sendall(b's')
    say(other.recv(1))


def close_range_client(conn):
    warm(conn)
    say(read_all(conn, 10))
    sync()


def oob_server(conn):
    warm(conn)
    say(conn.recv(2))
    conn.sendall(b'go')
    say(conn.recv(1))


def oob_client(conn):
    warm(conn)
    conn.sendall(b'ab')
    say(conn.recv(2))


def handle_server(conn):
    from multiprocessing import reduction, connection
    link = connection.Connection(conn.detach())
    link.send({'a': [1, 2, 3]})
    say(link.recv())
    r, w = os.pipe()
    reduction.send_handle(link, r, None)
    os.write(w, b'through a pipe')
    link.send('end')
    say(link.recv())


def handle_client(conn):
    from multiprocessing import reduction, connection
    link = connection.Connection(conn.detach())
    say(link.recv())
    link.send('x' * 100000)
    fd = reduction.recv_handle(link)
    say(os.read(fd, 100), link.recv())
    link.send('ok')


def both_leave_server(conn):
    """Two connections, and each side leaves another one first."""
    other, _ = listener.accept()
    warm(conn)
    warm(other)
    pass_file(conn, b'one')
    say(take_file(other))


def both_leave_client(conn):
    other = socket.socket(socket.AF_UNIX)
    other.connect(path)
    warm(conn)
    warm(other)
    pass_file(other, b'two')
    say(take_file(conn))


def nonblock_server(conn):
    warm(conn)
    say(catch(conn.recv, 1, socket.MSG_DONTWAIT))
    conn.setblocking(False)
    say(catch(conn.recv, 1), catch(os.read, conn.fileno(), 1))
    sync()
    sync()
    say(conn.recv(10))
    sync()
    sync()
    say(conn.recv(10))


def nonblock_client(conn):
    warm(conn)
    sync()
    conn.sendall(b'x')
    sync()
    sync()
    conn.close()
    sync()


def bits(conn, wanted):
    poll = select.poll()
    poll.register(conn, wanted)
    return [got for _, got in poll.poll(0)]


def end_behind_server(conn):
    """It goes back to the socket, and ends, before the client reads what is in memory."""
    warm(conn)
    conn.sendall(b'memory')
    pass_file(conn, b'behind')
    conn.close()
    sync()


def ends_of_both(conn):
    """Both have ended. The client says so, and reads with room for control data; nobody rings."""
    warm(conn)
    if side == 'server':
        conn.sendall(b'bytes')
    conn.shutdown(socket.SHUT_WR)
    beside.sendall(b's')
    assert beside.recv(1) == b's'
    if side == 'server':
        beside.recv(1)
        say(conn.recv(1))
        return
    wanted = select.POLLIN | select.POLLOUT
    say(bits(conn, wanted), read_all(conn, 6), bits(conn, wanted))
    say(conn.recvmsg(1, 100, socket.MSG_DONTWAIT)[:3], conn.recvmsg(1, 100)[:3], conn.recv(1))
    beside.sendall(b's')


both_end_server = both_end_client = ends_of_both


def let_leave(conn):
    """Waits for the server, but for no bytes, until it is back on the socket."""
    warm(conn)
    poll = select.poll()
    poll.register(conn, 0)
    poll.register(beside, select.POLLIN)
    while beside.fileno() not in [fd for fd, _ in poll.poll(LIMIT * 1000)]:
        pass
    say(beside.recv(1))


def end_behind_client(conn):
    let_leave(conn)
    beside.sendall(b's')
    epoll = select.epoll()
    epoll.register(conn, select.EPOLLOUT)
    wanted = select.POLLIN | select.POLLRDHUP
    say(bits(conn, wanted), [got for _, got in epoll.poll(0)])
    say(read_all(conn, 6), bits(conn, wanted), take_file(conn), bits(conn, wanted))
    say(conn.recv(1))


def back_before(conn):
    """The server goes back to the socket."""
    warm(conn)
    conn.sendall(b'memory')
    pass_file(conn, b'behind')
    beside.sendall(b's')
    sync()


def follow_behind(conn):
    """The client has followed, and has not looked at the socket."""
    warm(conn)
    while not select.select([beside], [], [], 0)[0]:
        conn.recv(1, socket.MSG_PEEK)
    say(beside.recv(1))


cut_behind_server = take_behind_server = seen_behind_server = back_before


def cut_behind_client(conn):
    follow_behind(conn)
    conn.shutdown(socket.SHUT_RDWR)
    say(read_all(conn, 6), take_file(conn), conn.recv(1))
    sync()


def seen_behind_client(conn):
    let_leave(conn)
    for _ in range(100):	# one of so many calls looks at the socket
        bits(conn, 0)
    say(socket.recv_fds(conn, 6, 1)[:2], take_file(conn))
    sync()


def take_behind_client(conn):
    follow_behind(conn)
    say(socket.recv_fds(conn, 6, 1)[:2], take_file(conn))
    sync()


def leaving_server(conn):
    """It does not follow before it has read a byte beside the connection."""
    warm(conn)
    sync()
    say(read_all(conn, 4))
    pass_file(conn, b'control')


def leaving_client(conn):
    """A call with control data has begun to leave the memory: others go on."""
    warm(conn)
    say(catch(conn.recvmsg, 1, 100, socket.MSG_DONTWAIT))
    say(bits(conn, select.POLLIN | select.POLLOUT))
    epoll = select.epoll()
    epoll.register(conn, select.EPOLLIN | select.EPOLLOUT)
    say([got for _, got in epoll.poll(0)])
    say(conn.send(b'more'))
    sync()
    say(take_file(conn))


def dies(conn):
    """Its peer makes no call that waits."""
    warm(conn)
    os.kill(os.getpid(), signal.SIGKILL)


spin_read_client = spin_poll_client = spin_write_client = dies


def spin_read_server(conn):
    warm(conn)
    got = 'EAGAIN'
    while got == 'EAGAIN':
        got = catch(conn.recv, 1, socket.MSG_DONTWAIT)
    say(got)


def spin_poll_server(conn):
    warm(conn)
    while not bits(conn, select.POLLIN):
        pass
    say(conn.recv(1))


def spin_write_server(conn):
    warm(conn)
    got = 'EAGAIN'
    while got == 'EAGAIN' or got == 100:
        got = catch(conn.send, bytes(100), socket.MSG_DONTWAIT)
    say(got)


def greeting_server(conn):
    """The side that has accepted speaks first."""
    conn.sendall(b'welcome')
    say(read_all(conn, 5))
    warm(conn)


def greeting_client(conn):
    say(read_all(conn, 7))
    conn.sendall(b'hello')
    warm(conn)


# --- running them -------------------------------------------------------------

def names():
    return [name[:-7] for name in globals() if name.endswith('_server')
            and name[:-7] + '_client' in globals()]


def connect():
    if side == 'client':
        sync()
        conn = socket.socket(socket.AF_UNIX)
        conn.connect(path)
        return conn
    global listener
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    sync()
    return listener.accept()[0]


def run(name, fd, where):
    """In a child: what it prints is in a file, and it ends in a while."""
    global case, path, beside
    case, path, beside = name, f'{where}/{name}', socket.socket(fileno=fd)
    os.setpgid(0, 0)
    out = os.open(f'{path}.{side}', os.O_WRONLY | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    signal.alarm(LIMIT)
    globals()[name + '_' + side](connect())
    print(repr(results), flush=True)
    os._exit(0)


def main():
    global side
    side, where = sys.argv[1:3]
    for word in sys.argv[3:]:
        name, fd = word.split(':')
        pid = os.fork()
        if not pid:
            run(name, int(fd), where)
        os.close(int(fd))
        status = os.waitpid(pid, 0)[1]
        if status and status != signal.SIGKILL:
            with open(f'{where}/{name}.{side}', 'a') as file:
                file.write(f'ended with {status}')


if __name__ == '__main__':
    main()
