/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers that wait until fewer of them run
 */
#ifndef _KEVENT_PARK_H
#define _KEVENT_PARK_H

#include <linux/types.h>

struct kevent_deadline;
struct kevent_member;
struct kevent_queue;

#ifdef CONFIG_KEVENT_AIO

int kevent_park_enter(struct kevent_queue *q, struct kevent_member *m,
		      const struct kevent_deadline *until);
int kevent_park_awoke(struct kevent_queue *q, struct kevent_member *m,
		      const struct kevent_deadline *until, int ret);

#else

static inline int kevent_park_enter(struct kevent_queue *q,
				    struct kevent_member *m,
				    const struct kevent_deadline *until)
{
	return 0;
}

static inline int kevent_park_awoke(struct kevent_queue *q,
				    struct kevent_member *m,
				    const struct kevent_deadline *until,
				    int ret)
{
	return ret;
}

#endif

#endif /* _KEVENT_PARK_H */
