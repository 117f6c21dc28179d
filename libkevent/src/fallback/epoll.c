// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Epoll, as all of the fallback uses it
 */
#include <fcntl.h>

#include "api/device.h"
#include "api/process.h"
#include "queue.h"
#include "sys.h"

int fb_epoll_ctl(int epoll, int op, int fd, __u32 events, __u64 token)
{
	struct epoll_event event = { .events = events, .data.u64 = token };

	return fb_call(epoll_ctl(epoll, op, fd, &event));
}

bool fb_epoll_probe(int epoll, int fd)
{
	int err = fb_epoll_ctl(epoll, EPOLL_CTL_ADD, fd, EPOLLONESHOT, 0);

	if (!err)
		fb_call(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
	return err == -EEXIST;
}

/*
 * The instance may be any of the program, and a child has that of its parent. The lock is
 * held until the probe is deleted, so no thread finds the probe of another one.
 */
bool fb_epoll_has(int epoll, int fd)
{
	FB_HOLD(kevent_process_probe(fd));

	return fb_epoll_probe(epoll, fd);
}

int fb_queue_check(struct fb_queue *q, int fd)
{
	if (q->shadow ? kevent_device_has(fd) : fb_epoll_has(fd, q->own[FB_OWN_KICK]))
		return 0;
	return fb_call(fcntl(fd, F_GETFD)) < 0 ? -EBADF : -EINVAL;
}
