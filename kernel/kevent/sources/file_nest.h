/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queues and epoll files as sources of queues
 */
#ifndef _KEVENT_FILE_NEST_H
#define _KEVENT_FILE_NEST_H

#include <linux/errno.h>

#include "../host.h"

struct file;
struct kevent;
struct kevent_poll;

#if HOST_NESTS

int kevent_nest_link(struct kevent_poll *kp, struct file *file);
void kevent_nest_unlink(struct kevent *ke);

#else

static inline int kevent_nest_link(struct kevent_poll *kp, struct file *file)
{
	return -ELOOP;
}

static inline void kevent_nest_unlink(struct kevent *ke) {}

#endif /* HOST_NESTS */

#endif /* _KEVENT_FILE_NEST_H */
