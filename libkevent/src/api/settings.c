// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Ioctls that change a queue, whichever makes it
 */
#include <errno.h>
#include <sys/ioctl.h>

#include "libkevent.h"
#include "fallback/fallback.h"

/* As struct epoll_params and EPIOCSPARAMS, which older headers lack */
struct busy_poll_params {
	__u32	usecs;
	__u16	budget;
	__u8	prefer;
	__u8	pad;
};

#define BUSY_POLL_SET	_IOW(0x8A, 0x01, struct busy_poll_params)

/* The result of ioctl() as an error number; errno stays as it was. */
static int ioctl_said(int ret, int saved)
{
	if (ret)
		ret = -errno;
	errno = saved;
	return ret;
}

/* The type of ioctl()'s second argument is the C library's own; a constant fits each. */

int kevent_busy_poll(int fd, __u32 usecs)
{
	struct busy_poll_params params = { .usecs = usecs };
	int saved = errno;

	return ioctl_said(ioctl(fd, BUSY_POLL_SET, &params), saved);
}

/* No event waits in a queue of epoll: that is within each limit. */
int kevent_set_delay(int fd, __u32 ns)
{
	int saved = errno;

	if (kevent_fb_has(fd))
		return ns > KEVENT_DELAY_MAX ? -EINVAL : 0;
	return ioctl_said(ioctl(fd, KEVENT_IOC_SET_DELAY, &ns), saved);
}
