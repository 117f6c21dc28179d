/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The serving threads of a queue, and the chains that wait for them
 */
#ifndef _KEVENT_WORKERS_H
#define _KEVENT_WORKERS_H

#include <linux/errno.h>
#include <linux/types.h>

struct kevent_deadline;
struct kevent_queue;

/* With CONFIG_KEVENT_AIO */
void kevent_crew_look(struct kevent_queue *q);
void kevent_crew_end(struct kevent_queue *q);

#ifdef CONFIG_KEVENT_AIO
int kevent_serve(int fd, u32 limit, struct kevent_deadline *until);
#else
static inline int kevent_serve(int fd, u32 limit,
			       struct kevent_deadline *until)
{
	return -EINVAL;
}
#endif

#endif /* _KEVENT_WORKERS_H */
