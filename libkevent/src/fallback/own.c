// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Owners of the numbers of descriptors: which are the library's, and which are those of a
 * file that was opened anew
 *
 * A program may close descriptors that it has not opened, all from 3 on for instance.
 * Their numbers come back, as those of other queues or of files of the program. So each
 * place that keeps a number is on record, and loses it when the library gets the number
 * once more. Epoll knows a file with its number; if the epoll instance of the queue was
 * closed, a file of the program shows by the name that /proc has for it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/own.h"
#include "api/process.h"
#include "queue.h"
#include "sys.h"

struct fb_number *fb_numbers[FB_NUMBERS / FB_CHUNK];

struct fb_number *fb_number_make(int fd)
{
	unsigned int chunk = (unsigned int)fd / FB_CHUNK;

	if ((unsigned int)fd < FB_NUMBERS && !fb_numbers[chunk])
		__atomic_store_n(&fb_numbers[chunk], calloc(FB_CHUNK, sizeof(struct fb_number)),
				 __ATOMIC_RELEASE);
	return fb_number(fd);
}

/*
 * Is that place memory of this process? A child may have the record, and the memory as it was after
 * another thread of the parent had freed it. The hub stays.
 */
static bool fb_own_is_there(const struct fb_number *place)
{
	return !place->queue || kevent_process_is(place->queue->process);
}

void fb_own_lost(struct fb_number *place)
{
	if (!place || !place->at)
		return;
	if (fb_own_is_there(place))
		__atomic_store_n(place->at, -1, __ATOMIC_RELAXED);
	place->at = NULL;
}

static bool fb_own_keep(const struct fb_queue *q, int *at, int fd,
			const char *kind)
{
	struct fb_number *place;

	FB_HOLD(kevent_process_lock());
	place = fb_number_make(fd);
	fb_own_lost(place);
	if (!place)
		return false;
	place->queue = q;
	place->kind = kind;
	/* Last: a child may see half of it. */
	__atomic_store_n(&place->at, at, __ATOMIC_RELEASE);
	__atomic_store_n(at, fd, __ATOMIC_RELAXED);
	return true;
}

int fb_own(const struct fb_queue *q, int *at, long fd, const char *kind)
{
	*at = -1;
	if (fd < 0)
		return (int)fd;
	fd = kevent_own_place((int)fd);
	if (fb_own_keep(q, at, (int)fd, kind))
		return 0;
	fb_sys(SYS_close, fd);
	return fd < (long)FB_NUMBERS ? -ENOMEM : -EMFILE;
}

/* The number is nobody's before it may be somebody else's. */
int fb_disown(int *at)
{
	struct fb_number *place;
	int fd;

	FB_HOLD(kevent_process_lock());
	fd = *at;
	__atomic_store_n(at, -1, __ATOMIC_RELAXED);
	place = fb_number(fd);
	if (place)
		place->at = NULL;
	return fd;
}

void fb_own_move(int *to, int *from)
{
	struct fb_number *place;

	FB_HOLD(kevent_process_lock());
	place = fb_number(*from);
	if (place)
		place->at = to;
	__atomic_store_n(to, *from, __ATOMIC_RELAXED);
	__atomic_store_n(from, -1, __ATOMIC_RELAXED);
}

void fb_close_fd(int *at)
{
	int fd = fb_disown(at);

	if (fd >= 0)
		fb_sys(SYS_close, fd);
}

short fb_poll(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	static const __u64 now[2];

	return fb_sys(SYS_ppoll, &p, 1, now, NULL, (size_t)8) == 1 ? p.revents : 0;
}

void fb_read_file(const char *path, char *text, size_t size)
{
	int fd = (int)fb_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	long len = fd < 0 ? -1 : fb_sys(SYS_read, fd, text, size - 1);

	fb_close_local(fd);
	text[len > 0 ? len : 0] = '\0';
}

#define FB_DESCRIPTORS	"/proc/thread-self/fd"

int fb_is_kind(int fd, const char *kind)
{
	char path[40], name[40];
	long len;

	snprintf(path, sizeof(path), FB_DESCRIPTORS "/%d", fd);
	len = fb_sys(SYS_readlinkat, AT_FDCWD, path, name, sizeof(name) - 1);
	if (len < 0)
		return (int)len;
	name[len] = '\0';
	return *name != '/' && strstr(name, kind);
}

/* Without /proc, nobody knows better; with it, what has no name is closed. */
static bool fb_is_own(int fd, const char *kind, int epoll)
{
	int is;

	if (epoll >= 0 && fb_epoll_has(epoll, fd))
		return true;
	is = fb_is_kind(fd, kind);
	return is == -ENOENT ? fb_sys(SYS_faccessat, AT_FDCWD, FB_DESCRIPTORS, F_OK) : is;
}

void fb_own_check(int *at, int epoll)
{
	const char *kind = "";
	int fd;

	{
		FB_HOLD(kevent_process_lock());
		fd = *at;
		if (fd >= 0)
			kind = fb_number(fd)->kind;
	}
	if (fd >= 0 && !fb_is_own(fd, kind, epoll))
		fb_disown(at);
}

/* The next number of the queue from @fd on, or -1. It is nobody's any more. */
static int fb_own_take(const struct fb_queue *q, int fd, const char **kind)
{
	struct fb_number *place = NULL;

	FB_HOLD(kevent_process_lock());
	for (; fd < (int)FB_NUMBERS; fd++) {
		place = fb_number(fd);
		if (!place)
			fd |= (int)FB_CHUNK - 1;
		else if (place->at && place->queue == q)
			break;
	}
	if (fd >= (int)FB_NUMBERS)
		return -1;
	place->at = NULL;
	*kind = place->kind;
	return fd;
}

/* By the record alone: the memory where a number is kept may have another use by now. */
void fb_own_let_go(const struct fb_queue *q, int epoll)
{
	const char *kind;
	int fd = -1;

	do {
		fd = fb_own_take(q, fd + 1, &kind);
		if (fd >= 0 && fb_is_own(fd, kind, epoll))
			fb_sys(SYS_close, fd);
	} while (fd >= 0);
}

/*
 * Epoll knows an open file, but refuses many, and inotify knows inodes. A number that was
 * closed may come back as the same file, opened anew. So open files have a mark: the signal
 * of fcntl(2). It is SIGIO in either case, but a new file says that nobody has set one.
 * A mark that is set says that the number has another file than before.
 */
#define FB_MARK_SIGNAL	SIGIO

__u32 fb_opened(int fd)
{
	struct fb_number *place;
	int marked;

	FB_HOLD(kevent_process_lock());
	place = fb_number_make(fd);
	marked = place ? fb_call(fcntl(fd, F_GETSIG)) : -1;
	if (!marked) {
		marked = !fb_call(fcntl(fd, F_SETSIG, FB_MARK_SIGNAL));
		place->marks += (__u32)marked;
	}
	return marked > 0 ? place->marks + 1 : 0;
}

bool fb_opened_is(int fd, __u32 nr)
{
	if (!nr)
		return true;
	FB_HOLD(kevent_process_lock());
	return fb_call(fcntl(fd, F_GETSIG)) > 0 &&
	       fb_number(fd)->marks + 1 == nr;
}
