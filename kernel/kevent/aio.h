/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains that serving threads run, as watches: ev_aio.c
 */
#ifndef _KEVENT_AIO_H
#define _KEVENT_AIO_H

#include <linux/errno.h>
#include <linux/types.h>

struct kevent_job;
struct kevent_queue;
struct kevent_run;

#ifdef CONFIG_KEVENT_AIO

int kevent_aio_allowed(const struct kevent_queue *q);
int kevent_aio_submit(struct kevent_queue *q, const struct kevent_run *run,
		      u64 cookie);
void kevent_job_done(struct kevent_job *job, const struct kevent_run *run,
		     int err);
void kevent_job_cancel(struct kevent_job *job);

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

#endif /* _KEVENT_AIO_H */
