/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Queues of the kevent module
 *
 * A kernel with the module has no system calls of kevent. An ioctl of the device makes a
 * queue, and the calls of the queue are ioctls of it. The ioctls have a range of their own:
 * whatever file has the descriptor, none of them is another one's.
 */
#ifndef LIBKEVENT_MODULE_H
#define LIBKEVENT_MODULE_H

#include <stdbool.h>
#include "libkevent.h"

#pragma GCC visibility push(hidden)

/* As the system calls. -ENOSYS from init(): there is no module; others: the error of open() */
int kevent_module_init(void *ring, __u32 ring_size, __u32 flags);
int kevent_module_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg);
int kevent_module_get_events(int fd, __u32 min_nr, __u32 max_nr, const void *timeout,
			     struct ukevent *buf, __u32 flags);
int kevent_module_wait(int fd, __u32 num, __u32 old_kidx, const void *timeout,
		       __u32 flags, const struct kevent_wait_arg *arg);
int kevent_module_commit(int fd, __u64 uidx);

#pragma GCC visibility pop

#endif /* LIBKEVENT_MODULE_H */
