/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The device of the kevent module
 *
 * The ioctls of the module have a range of their own: whatever file has the descriptor, none
 * of them is another one's.
 */
#ifndef LIBKEVENT_DEVICE_H
#define LIBKEVENT_DEVICE_H

#include <stdbool.h>
#include "libkevent.h"
#include "raw_syscall.h"

#pragma GCC visibility push(hidden)

static inline int kevent_ioctl(int fd, unsigned long request, void *arg)
{
	return kevent_syscall(SYS_ioctl, fd, request, arg, 0, 0, 0);
}

/* Its descriptor, which stays open: -ENOSYS: there is none; others: the error of open() */
int kevent_device(void);

/*
 * Offer to all watches of the process what a handler of its has got; @uk is what their event
 * says. The program may have closed the device; @queue is one of the module, or was. 0 or
 * -errno. Async-signal-safe
 */
int kevent_device_post(const struct ukevent *uk, int queue);

/* Is it a queue of the module? Only a process that knows of one asks. */
bool kevent_device_has(int fd);

#pragma GCC visibility pop

#endif /* LIBKEVENT_DEVICE_H */
