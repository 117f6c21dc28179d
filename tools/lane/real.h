/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kevent-lane: the functions of libc behind those of the object
 *
 * They are called and not their system calls, so that threads can be cancelled in them, but
 * with the lock: see lane_call().
 */
#ifndef LANE_REAL_H
#define LANE_REAL_H

#include <aio.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* With the lock, where no thread is cancelled: this is no cancellation point. */
#define lane_call	syscall

static inline int lane_epoll_now(int ep, struct epoll_event *ev, int max)
{
	return (int)lane_call(SYS_epoll_pwait, ep, ev, max, 0, NULL, 0);
}

static inline int lane_poll_now(struct pollfd *fds, nfds_t nr, const sigset_t *mask)
{
	struct timespec none = { .tv_sec = 0 };

	return (int)lane_call(SYS_ppoll, fds, nr, &none, mask, _NSIG / 8);
}

int __vdprintf_chk(int fd, int flag, const char *format, va_list ap);

#define REAL_CALLS(X) \
	X(read) X(readv) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg) X(preadv2) \
	X(write) X(writev) X(send) X(sendto) X(sendmsg) X(sendmmsg) X(pwritev2) \
	X(sendfile) X(sendfile64) X(splice) X(shutdown) X(setsockopt) X(ioctl) X(fcntl) \
	X(fork) X(close) X(close_range) X(dup) X(dup2) X(dup3) X(fdopen) \
	X(vdprintf) X(__vdprintf_chk) \
	X(socket) X(bind) X(listen) X(accept) X(accept4) X(connect) X(poll) X(ppoll) \
	X(epoll_create) X(epoll_create1) X(epoll_ctl) X(epoll_wait) X(epoll_pwait) \
	X(epoll_pwait2) X(select) X(pselect) X(sigaction) \
	X(aio_read) X(aio_write) X(lio_listio) X(aio_read64) X(aio_write64) X(lio_listio64) \
	X(execve) X(execvpe) X(fexecve) X(execveat) \
	X(posix_spawn) X(posix_spawnp) X(posix_spawn_file_actions_adddup2) X(system) X(popen)

struct real_calls {
#define X(name) __typeof__(name) *name;
	REAL_CALLS(X)
#undef X
};

extern struct real_calls real_calls;
void real_find(void);

/* Constructors of other objects may run before the one of this. */
static inline const struct real_calls *real(void)
{
	if (__builtin_expect(!real_calls.read, 0))
		real_find();
	return &real_calls;
}

#endif /* LANE_REAL_H */
