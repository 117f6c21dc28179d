/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KEVENT_RING_MORE: how consumers that only look at memory learn of misses
 */
#ifndef _KEVENT_RING_FLAGS_H
#define _KEVENT_RING_FLAGS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "queue.h"

struct kring;
struct pid;

void kevent_more(struct kevent_queue *q);
void kevent_more_left(struct kevent_queue *q);
void kevent_pass_on(struct kevent_queue *q);
void kevent_wake_left(struct kevent_queue *q);
int kevent_ring_fault_in(struct kevent_queue *q, const struct kring *to);
void kevent_retry_flags(struct kevent_queue *q);
struct pid *__kevent_follow(struct kevent_queue *q);

/*
 * The current thread waits for the ring. Returns the thread that waited last, for put_pid()
 * without the lock, or NULL if that is the same one.
 */
static inline struct pid *kevent_follow(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	return likely(q->notify.consumer == task_pid(current)) ?
	       NULL : __kevent_follow(q);
}

/*
 * A watch was put on the ready list. If it is the only one and no consumer is on its way,
 * the ring says that there is more.
 */
static inline void kevent_more_listed(struct kevent_queue *q)
{
	if (!q->nr_woken && q->ring.size && list_is_singular(&q->ready) &&
	    !atomic_read(&q->busy.spinning))
		kevent_more(q);
}

#endif /* _KEVENT_RING_FLAGS_H */
