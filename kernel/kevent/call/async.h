/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains that serving threads run, as watches: call/async.c
 */
#ifndef _KEVENT_ASYNC_H
#define _KEVENT_ASYNC_H

#include <linux/errno.h>
#include <linux/types.h>

struct kevent_queue;
struct kevent_run;

#ifdef CONFIG_KEVENT_AIO

int kevent_aio_allowed(const struct kevent_queue *q);
int kevent_aio_submit(struct kevent_queue *q, const struct kevent_run *run,
		      u64 cookie);

#else

static inline int kevent_aio_allowed(const struct kevent_queue *q)
{
	return -ENOSYS;
}

static inline int kevent_aio_submit(struct kevent_queue *q,
				    const struct kevent_run *run, u64 cookie)
{
	return -ENOSYS;
}

#endif

#endif /* _KEVENT_ASYNC_H */
