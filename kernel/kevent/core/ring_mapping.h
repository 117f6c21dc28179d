/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the ring is: in the address space of its creator and of others; and
 * KEVENT_RING_MORE, the flag that says that events wait in the kernel
 */
#ifndef _KEVENT_RING_MAPPING_H
#define _KEVENT_RING_MAPPING_H

#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

#include "../host.h"
#include "queue.h"

bool __kevent_ring_select(struct kevent_queue *q);
bool kevent_ring_back(struct kevent_queue *q);
void kevent_ring_leave(struct kevent_queue *q);
int kevent_ring_attach(struct kevent_queue *q, struct kring *ring);
u32 kevent_ring_spaces(const struct kevent_queue *q);
void kevent_mappings_free(struct kevent_queue *q);

void kevent_more(struct kevent_queue *q);
void kevent_more_left(struct kevent_queue *q);

/*
 * Point the ring to where it is in current->mm. Returns false when it is not mapped here,
 * as far as the queue knows, when a descriptor was closed here and no call came after that,
 * or when there is none.
 */
static inline bool kevent_ring_select(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	return host_mm_in_use() &&
	       (likely(q->ring_mm == current->mm) || __kevent_ring_select(q));
}

/* Learn how far consumers of the ring are, who take entries without a call. */
static inline void kevent_ring_sync(struct kevent_queue *q)
{
	if (kevent_ring_select(q))
		kring_sync(&q->ring);
}

/*
 * A watch was put on the ready list. If it is the only one and no consumer is on its way,
 * the ring says that there is more.
 */
static inline void kevent_more_listed(struct kevent_queue *q)
{
	if (!q->nr_woken && list_is_singular(&q->ready))
		kevent_more(q);
}

/*
 * Can an amount be stored in the ring now? An event that is queued gets one when it
 * is delivered. Peeks: an entry without an amount is no harm.
 */
static inline bool kevent_may_store(const struct kevent_queue *q)
{
	return q->home.mm == current->mm || !list_empty(&q->mappings);
}

#endif /* _KEVENT_RING_MAPPING_H */
