// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * kevent_init()
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "fallback.h"
#include "queue.h"
#include "sys.h"

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
	err = fb_queue_clear(q);
	__atomic_store_n(&q->fd, fd, __ATOMIC_RELAXED);
	q->ring = (struct fb_ring){ .mem = ring, .size = size };
	q->refuses = flags & KEVENT_INIT_REFUSE_ALL;
	if (!err)
		err = fb_own_watched(q, FB_OWN_KICK,
				     fb_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!err && ring)
		fb_ring_clear(ring);
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
