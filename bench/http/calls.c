// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload into a server of one thread. It counts the system calls that
 * servers make. For calls that wait for events or change watches it also measures the
 * CPU time, without sleep. The file $CALLS has two 64-bit numbers for each call: how
 * often, and nanoseconds; $CALLS.names has the names. The first number of the file
 * belongs to no call: while another program has set it, the library measures time.
 *
 * The cost of reading the clock is measured first and subtracted.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <libkevent.h>

#define TRIES		1000

#define KINDS(k)							\
	k(timing) k(kevent_ctl) k(kevent_get_events) k(kevent_wait)	\
	k(kevent_commit) k(epoll_wait) k(epoll_ctl) k(poll) k(accept4)	\
	k(kevent_call) k(read) k(recv) k(pread64) k(write) k(writev) k(send)		\
	k(sendfile) k(sendfile64) k(sendmsg) k(shutdown) k(close)	\
	k(open64) k(fstat64) k(stat64) k(getsockopt) k(setsockopt) k(other)

#define ENUM(name)	KIND_##name,
#define NAME(name)	#name "\n"

enum kind { KINDS(ENUM) NR_KINDS };

struct sum {
	uint64_t	calls;
	uint64_t	ns;
};

static struct sum early[NR_KINDS], *sums = early;
static uint64_t clock_ns;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void write_names(const char *path)
{
	char name[4096];
	FILE *file;

	snprintf(name, sizeof(name), "%s.names", path);
	file = fopen(name, "we");
	if (!file || fputs(KINDS(NAME), file) < 0 || fclose(file))
		abort();
}

__attribute__((constructor))
static void start(void)
{
	const char *path = getenv("CALLS");
	uint64_t begin = cpu_ns();
	int i, fd;

	for (i = 0; i < TRIES; i++)
		cpu_ns();
	clock_ns = (cpu_ns() - begin) / (TRIES + 1);
	if (!path)
		abort();
	write_names(path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(early)))
		abort();
	sums = mmap(NULL, sizeof(early), PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	if (sums == MAP_FAILED)
		abort();
}

static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		abort();
	return found;
}

#define NEXT(name)						\
({								\
	static typeof(name) *__found;				\
								\
	if (!__found)						\
		__found = next(#name);				\
	__found;						\
})

#define TIMED(kind, call)					\
({								\
	int __timing = sums[KIND_timing].calls != 0;		\
	uint64_t __begin = __timing ? cpu_ns() : 0;		\
	typeof(call) __ret = call;				\
								\
	if (__timing)						\
		sums[kind].ns += cpu_ns() - __begin - clock_ns;	\
	sums[kind].calls++;					\
	__ret;							\
})

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	typeof(epoll_wait) *real = NEXT(epoll_wait);

	return TIMED(KIND_epoll_wait, real(fd, events, max, timeout));
}

int epoll_ctl(int fd, int op, int target, struct epoll_event *event)
{
	typeof(epoll_ctl) *real = NEXT(epoll_ctl);

	return TIMED(KIND_epoll_ctl, real(fd, op, target, event));
}

int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	typeof(poll) *real = NEXT(poll);

	return TIMED(KIND_poll, real(fds, nr, timeout));
}

/* The library makes calls of kevent by itself, without the C library. */

int kevent_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	typeof(kevent_ctl) *real = NEXT(kevent_ctl);

	return TIMED(KIND_kevent_ctl, real(fd, cmd, num, arg));
}

int kevent_get_events(int fd, __u32 min_nr, __u32 max_nr,
		      const struct timespec *timeout, struct ukevent *buf,
		      __u32 flags)
{
	typeof(kevent_get_events) *real = NEXT(kevent_get_events);

	return TIMED(KIND_kevent_get_events,
		     real(fd, min_nr, max_nr, timeout, buf, flags));
}

int kevent_wait(int fd, __u32 num, __u32 old_kidx,
		const struct timespec *timeout, __u32 flags,
		const struct kevent_wait_arg *arg)
{
	typeof(kevent_wait) *real = NEXT(kevent_wait);

	return TIMED(KIND_kevent_wait,
		     real(fd, num, old_kidx, timeout, flags, arg));
}

int kevent_commit(int fd, __u32 new_uidx, __u32 over)
{
	typeof(kevent_commit) *real = NEXT(kevent_commit);

	return TIMED(KIND_kevent_commit, real(fd, new_uidx, over));
}

long syscall(long number, ...)
{
	typeof(syscall) *real = NEXT(syscall);
	long a[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	sums[KIND_other].calls++;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Counted only: its type, name, parameters with and without their types */
#define COUNTED(type, name, typed, untyped)			\
type name typed							\
{								\
	sums[KIND_##name].calls++;				\
	return NEXT(name) untyped;				\
}

COUNTED(int, accept4, (int fd, struct sockaddr *addr, socklen_t *len, int flags),
	(fd, addr, len, flags))
COUNTED(int, kevent_call,
	(int fd, struct kevent_call *chain, __u32 nr, __u32 flags, __u64 cookie),
	(fd, chain, nr, flags, cookie))
COUNTED(ssize_t, read, (int fd, void *to, size_t len), (fd, to, len))
COUNTED(ssize_t, recv, (int fd, void *to, size_t len, int flags),
	(fd, to, len, flags))
COUNTED(ssize_t, pread64, (int fd, void *to, size_t len, off64_t at),
	(fd, to, len, at))
COUNTED(ssize_t, write, (int fd, const void *from, size_t len), (fd, from, len))
COUNTED(ssize_t, writev, (int fd, const struct iovec *from, int nr),
	(fd, from, nr))
COUNTED(ssize_t, send, (int fd, const void *from, size_t len, int flags),
	(fd, from, len, flags))
COUNTED(ssize_t, sendfile, (int to, int from, off_t *at, size_t len),
	(to, from, at, len))
COUNTED(ssize_t, sendfile64, (int to, int from, off_t *at, size_t len),
	(to, from, at, len))
COUNTED(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags),
	(fd, msg, flags))
COUNTED(int, shutdown, (int fd, int how), (fd, how))
COUNTED(int, close, (int fd), (fd))
COUNTED(int, fstat64, (int fd, struct stat64 *st), (fd, st))
COUNTED(int, stat64, (const char *path, struct stat64 *st), (path, st))
COUNTED(int, getsockopt, (int fd, int level, int name, void *to, socklen_t *len),
	(fd, level, name, to, len))
COUNTED(int, setsockopt,
	(int fd, int level, int name, const void *from, socklen_t len),
	(fd, level, name, from, len))

int open64(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	sums[KIND_open64].calls++;
	return NEXT(open64)(path, flags, mode);
}
