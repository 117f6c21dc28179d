/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waking a consumer once for several events
 */
#ifndef _KEVENT_WAKE_COALESCE_H
#define _KEVENT_WAKE_COALESCE_H

#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "queue.h"

struct kevent_deadline;

u32 kevent_coalesce_not(struct kevent_queue *q, struct kevent_waiter *w);
u32 kevent_coalesce_begin_on(struct kevent_queue *q, struct kevent_waiter *w);
bool kevent_coalesce_block(struct kevent_queue *q, u32 window,
			   const struct kevent_deadline *until);
void kevent_coalesce_learn(struct kevent_queue *q,
			   const struct kevent_waiter *w);
bool kevent_coalesce_held(struct kevent *ke);
long kevent_coalesce_ioctl(struct kevent_queue *q, unsigned int cmd,
			   unsigned long arg);

/*
 * A consumer, which has joined, is about to sleep. Returns for how many nanoseconds events
 * may be held, or 0.
 */
static inline u32 kevent_coalesce_begin(struct kevent_queue *q,
					struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	if (num_online_cpus() > 1 || q->coalesce.left)
		return kevent_coalesce_begin_on(q, w);
	w->measured = false;
	return 0;
}

/* A consumer is awake. */
static inline void kevent_coalesce_end(struct kevent_queue *q,
				       const struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	q->coalesce.left = 0;
	if (w->measured)
		kevent_coalesce_learn(q, w);
}

/* May the sleeper be left asleep for an event of a watch that was put on the ready list? */
static inline bool kevent_coalesce_holds(struct kevent *ke)
{
	return unlikely(ke->queue->coalesce.left) && kevent_coalesce_held(ke);
}

/* The next event is not held: somebody else could have taken it at once. */
static inline void kevent_coalesce_stop(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	q->coalesce.left = min(q->coalesce.left, 1U);
}

#endif /* _KEVENT_WAKE_COALESCE_H */
