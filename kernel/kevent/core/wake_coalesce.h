/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waking a consumer once for several events
 */
#ifndef _KEVENT_WAKE_COALESCE_H
#define _KEVENT_WAKE_COALESCE_H

#include <linux/cpumask.h>
#include <linux/types.h>

#include "queue.h"
#include "wake.h"

u32 kevent_coalesce_begin_on(struct kevent_queue *q, struct kevent_consumer *w,
			     bool timed_out);
bool kevent_coalesce_block(struct kevent_queue *q, u32 window,
			   const struct kevent_deadline *until);
void kevent_coalesce_learn(struct kevent_queue *q,
			   const struct kevent_consumer *w);
bool kevent_coalesce_hold(struct kevent *ke);
bool kevent_coalesce_stop(struct kevent_queue *q);
long kevent_coalesce_ioctl(struct kevent_queue *q, unsigned int cmd,
			   unsigned long arg);

/*
 * A consumer, which has joined, is about to sleep. Returns for how many nanoseconds events
 * may be held, or 0. Nothing is held for one that has @timed_out, nor learned from it.
 */
static inline u32 kevent_coalesce_begin(struct kevent_queue *q,
					struct kevent_consumer *w, bool timed_out)
{
	lockdep_assert_held(&q->ready_lock);

	if ((num_online_cpus() > 1 && !timed_out) || q->coalesce.left)
		return kevent_coalesce_begin_on(q, w, timed_out);
	w->measured = false;
	return 0;
}

/* A consumer is awake. */
static inline void kevent_coalesce_end(struct kevent_queue *q,
				       const struct kevent_consumer *w)
{
	lockdep_assert_held(&q->ready_lock);

	q->coalesce.left = 0;
	if (w->measured)
		kevent_coalesce_learn(q, w);
}

#endif /* _KEVENT_WAKE_COALESCE_H */
