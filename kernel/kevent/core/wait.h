/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers: they move events from the ready list to user memory, and wait
 */
#ifndef _KEVENT_WAIT_H
#define _KEVENT_WAIT_H

#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/sched/signal.h>
#include <linux/types.h>

#include "queue.h"
#include "wake.h"

int __kevent_collect(struct kevent_queue *q, struct kring *to, u32 max,
		     bool relist);
void kevent_say_more(struct kevent_queue *q);
bool kevent_leave(struct kevent_queue *q, enum kevent_consumers others);
int kevent_commit(struct kevent_queue *q, u64 uidx);

u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx);
int kevent_wait_buffer(struct kevent_queue *q, struct kevent_consumer *c);
int kevent_enter(struct kevent_queue *q, struct kevent_consumer *c);
int kevent_wait_ring(struct kevent_queue *q, struct kevent_consumer *c, u64 min_wait_ns);
int kevent_wait_end(struct kevent_queue *q, const struct kevent_consumer *c, int ret);

/*
 * Peeks without the lock, while others change the list. A consumer that is about to sleep checks
 * the ready list again under ready_lock, but not the level list: see kevent_queue.nr_queued.
 */
static inline bool kevent_is_idle(const struct kevent_queue *q,
				  const struct kring *to, bool relist)
{
	if (kring_is_ring(to) && READ_ONCE(to->flags))
		return false;
	if (relist)
		return !READ_ONCE(q->nr_queued);
	/* It is changed by plain stores: an old answer will do. */
	return data_race(list_empty_careful(&q->ready));
}

/*
 * The current task collects, or is about to sleep, and may have a signal pending that a watch
 * takes. Others who collected could not, and have passed the watch by: it is on no list. The
 * peek may miss a signal that is being sent: the sender has yet to come for ready_lock, and
 * makes the watch ready.
 */
static inline void kevent_ask(struct kevent_queue *q)
{
	u64 pending;

	lockdep_assert_held(&q->ready_lock);

	if (likely(!q->consumes))
		return;
	/* Peeks, see above */
	pending = data_race(current->pending.signal.sig[0]);
	/* Likewise */
	pending |= data_race(current->signal->shared_pending.signal.sig[0]);
	if (pending & q->consumes)
		q->ask(q);
}

/*
 * Move at most @max events of ready watches to the ring, which is in current->mm, or to a buffer.
 * @relist: level watches that were delivered before are reported again. Returns the number of
 * events, or if that is 0 and memory or a fatal signal is to blame -EFAULT or -EINTR.
 */
static inline int kevent_collect(struct kevent_queue *q, struct kring *to,
				 u32 max, bool relist)
{
	return kevent_is_idle(q, to, relist) ?
	       0 : __kevent_collect(q, to, max, relist);
}

/*
 * How many entries were stored past a position? The consumer has read its low half in the ring.
 * kring_push() writes that before it writes kring.kidx. So the consumer may be ahead of a peek,
 * but not of a read under ready_lock. If the result is above the size of the ring, the ring never
 * had that position, or left it long ago.
 */
static inline u32 kevent_stored(struct kevent_queue *q, u32 old_kidx)
{
	u32 stored = (u32)READ_ONCE(q->ring.kidx) - old_kidx;

	return likely(stored <= q->ring.size) ?
	       stored : kevent_stored_locked(q, old_kidx);
}

#endif /* _KEVENT_WAIT_H */
