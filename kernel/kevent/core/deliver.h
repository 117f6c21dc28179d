/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Delivery: consumers move events from the ready list to user memory
 */
#ifndef _KEVENT_DELIVER_H
#define _KEVENT_DELIVER_H

#include <linux/list.h>
#include <linux/types.h>

#include "queue.h"
#include "waiter.h"

int __kevent_collect(struct kevent_queue *q, struct kring *to, u32 max,
		     bool relist);
int kevent_leave(struct kevent_queue *q, enum kevent_consumers others);
int kevent_commit(struct kevent_queue *q, u64 uidx);

/*
 * Peeks, while others change the list: a consumer that is to sleep looks for ready
 * watches again, under ready_lock. It does not look for level watches, see
 * kevent_queue.nr_listed.
 */
static inline bool kevent_is_idle(const struct kevent_queue *q,
				  const struct kring *to, bool relist)
{
	if (kring_is_ring(to) && READ_ONCE(to->flags))
		return false;
	if (relist)
		return !READ_ONCE(q->nr_listed);
	/* It is changed by plain stores: an old answer will do. */
	return data_race(list_empty_careful(&q->ready));
}

/**
 * kevent_collect - move events of ready watches to user memory
 * @q: the queue; the caller keeps it alive
 * @to: the queue's ring, when it is in current->mm, or a buffer
 * @max: most events to move, at least 1
 * @relist: report level watches again that were delivered before
 *
 * Return: number of events moved, or when that is 0 and memory or a fatal
 * signal is to blame -EFAULT or -EINTR. What was not moved stays ready.
 */
static inline int kevent_collect(struct kevent_queue *q, struct kring *to,
				 u32 max, bool relist)
{
	return kevent_is_idle(q, to, relist) ?
	       0 : __kevent_collect(q, to, max, relist);
}

#endif /* _KEVENT_DELIVER_H */
