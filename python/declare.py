#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR MIT
"""Write kevent/_abi.py, what cffi makes of the declarations below.

usage: declare.py [FILE]

The package has the result, because to parse C takes most of the time of an import.
"""

import os
import sys

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))
DECLARATIONS = """
struct ukevent {
	uint64_t id;
	uint32_t type, event, req_flags, ret_flags, ret_data[2];
	uint64_t ptr;
};
struct kevent_queue {
	int fd;
	uint32_t size;
	void *ring;
	uint32_t process, entered;
};
struct timespec { int64_t tv_sec; long tv_nsec; };
struct iovec { void *iov_base; size_t iov_len; };

int kevent_ctl(int fd, uint32_t cmd, uint32_t num, struct ukevent *arg);
int kevent_ctl_one(int fd, uint32_t cmd, struct ukevent *ev);
int kevent_queue_init(struct kevent_queue *q, void *ring, uint32_t size,
		      uint32_t flags);
void kevent_queue_close(struct kevent_queue *q);
int kevent_queue_get(struct kevent_queue *q, struct ukevent *ev, uint32_t max,
		     const struct timespec *timeout);
const char *kevent_strerror(int error);
const char *kevent_backend(int fd);
int kevent_supported(void);

void kevent_set_socket(struct ukevent *ev, int fd, uint32_t event,
		       uint32_t req_flags, uint64_t user);
void kevent_set_poll(struct ukevent *ev, int fd, uint32_t event,
		     uint32_t req_flags, uint64_t user);
void kevent_set_inode(struct ukevent *ev, int fd, uint32_t event,
		      uint32_t req_flags, uint64_t user);
void kevent_set_user(struct ukevent *ev, uint64_t id, uint32_t event,
		     uint32_t req_flags, uint64_t user);
void kevent_set_mark(struct ukevent *ev, uint64_t id, uint32_t event,
		     uint64_t data);
void kevent_set_timer(struct ukevent *ev, uint64_t first_ns,
		      uint64_t interval_ns, uint32_t event,
		      uint32_t req_flags, uint64_t user);
void kevent_set_signal(struct ukevent *ev, int sig, int how,
		       uint32_t req_flags, uint64_t user);
void kevent_set_proc(struct ukevent *ev, int pid, uint32_t req_flags,
		     uint64_t user);
void kevent_set_pidfd(struct ukevent *ev, int pidfd, uint32_t req_flags,
		      uint64_t user);
void kevent_set_futex(struct ukevent *ev, const uint32_t *word,
		      uint32_t expected, uint32_t event, uint32_t req_flags,
		      uint64_t user);

struct kevent_streams;
struct kevent_stream;
int kevent_streams_new(struct kevent_streams **set, struct kevent_queue *q,
		       uint32_t looks);
void kevent_streams_free(struct kevent_streams *set);
int kevent_stream_open(struct kevent_streams *set, int sock, uint32_t flags,
		       uint64_t user, struct kevent_stream **s);
void kevent_stream_close(struct kevent_stream *s);
ssize_t kevent_stream_read(struct kevent_stream *s, void *buf, size_t size);
ssize_t kevent_stream_peek(struct kevent_stream *s, void *buf, size_t size);
ssize_t kevent_stream_write(struct kevent_stream *s, const void *data, size_t len);
ssize_t kevent_stream_writev(struct kevent_stream *s, const struct iovec *iov,
			     unsigned int nr);
int kevent_stream_shutdown(struct kevent_stream *s);
int kevent_stream_leave(struct kevent_stream *s);
int kevent_stream_join(struct kevent_stream *s, uint64_t sent, uint64_t received);
int kevent_stream_fd(const struct kevent_stream *s);
uint64_t kevent_stream_user(const struct kevent_stream *s);
int kevent_stream_memory(const struct kevent_stream *s);
int kevent_stream_event(struct kevent_stream *s, const struct ukevent *ev);
struct kevent_stream *kevent_streams_next(struct kevent_streams *set);
int kevent_streams_arm(struct kevent_streams *set);
int kevent_streams_get(struct kevent_streams *set, struct ukevent *ev, uint32_t max,
		       const struct timespec *timeout);
"""
FIRST = "# SPDX-License-Identifier: LGPL-2.1 OR MIT\n"


def main(path=f"{HERE}/kevent/_abi.py"):
    builder = cffi.FFI()
    builder.cdef(DECLARATIONS)
    builder.set_source("kevent._abi", None)
    builder.emit_python_code(path)
    with open(path, encoding="ascii") as file:
        text = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write(FIRST + text)


if __name__ == "__main__":
    main(*sys.argv[1:])
