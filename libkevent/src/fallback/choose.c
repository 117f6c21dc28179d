// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The choice between the kernel and the fallback, and new queues
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "fallback.h"
#include "queue.h"
#include "sys.h"

#define BY_KERNEL	(KEVENT_BY_CALLS | KEVENT_BY_MODULE)
#define BY_ANY		(BY_KERNEL | KEVENT_BY_EPOLL)

static unsigned int fb_read_environment(void)
{
	const char *text = secure_getenv("KEVENT_BACKEND");

	if (text && !strcmp(text, "kernel"))
		return BY_KERNEL;
	if (text && !strcmp(text, "module"))
		return KEVENT_BY_MODULE;
	if (text && !strcmp(text, "epoll"))
		return KEVENT_BY_EPOLL;
	return BY_ANY;
}

unsigned int kevent_fb_environment;

/* It is read once. */
static unsigned int fb_environment(void)
{
	unsigned int by = __atomic_load_n(&kevent_fb_environment, __ATOMIC_RELAXED);

	if (!by) {
		by = fb_read_environment();
		__atomic_store_n(&kevent_fb_environment, by, __ATOMIC_RELAXED);
	}
	return by;
}

unsigned int kevent_fb_choose(__u32 flags)
{
	unsigned int by = fb_environment();
	unsigned int wanted = flags & KEVENT_INIT_NO_FALLBACK ? BY_KERNEL :
			      flags & KEVENT_INIT_FALLBACK_ONLY ? KEVENT_BY_EPOLL :
			      BY_ANY;

	return by & wanted ? by & wanted : wanted;
}

static int fb_check_init(struct kevent_ring *ring, __u32 size, __u32 flags)
{
	if (flags & ~(KEVENT_INIT_NOCLOEXEC | KEVENT_INIT_FAIR |
		      KEVENT_INIT_REFUSE_ALL))
		return -EINVAL;
	if (!ring != !size)
		return -EINVAL;
	return ring ? fb_ring_check(ring, size) : 0;
}

static int fb_open(struct fb_queue *q, struct kevent_ring *ring, __u32 size,
		   __u32 flags)
{
	int fd = (int)fb_sys(SYS_epoll_create1,
			     flags & KEVENT_INIT_NOCLOEXEC ? 0 : EPOLL_CLOEXEC);
	int err;

	if (fd < 0)
		return fd;
	err = fb_queue_setup(q, fd, ring, size, flags);
	if (!err)
		err = fb_publish(fd, q);
	if (!err)
		return fd;
	/* Before the number is free for another file */
	__atomic_store_n(&q->fd, -1, __ATOMIC_RELAXED);
	fb_close_local(fd);
	return err;
}

int kevent_fb_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags)
{
	struct fb_queue *q;
	int fd = fb_check_init(ring, ring_size, flags);

	if (fd)
		return fd;
	q = fb_queue_alloc();
	if (!q)
		return -ENOMEM;
	fd = fb_open(q, ring, ring_size, flags);
	if (fd >= 0)
		fb_put(q);
	else
		fb_abandon(q);
	return fd;
}
