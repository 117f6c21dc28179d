/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the ring is: in the address space of its creator and of others
 */
#ifndef _KEVENT_RING_MAPPING_H
#define _KEVENT_RING_MAPPING_H

#include <linux/lockdep.h>
#include <linux/mm_types.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "../host.h"
#include "queue.h"

bool kevent_ring_elsewhere(struct kevent_queue *q);
int kevent_ring_attach(struct kevent_queue *q, struct kring *ring);
u32 kevent_ring_spaces(const struct kevent_queue *q);
void kevent_mappings_free(struct kevent_queue *q);

/**
 * kevent_ring_here - point the ring to where it is in current->mm
 * @q: the queue
 *
 * Return: false when it is not mapped here, as far as the queue knows, or when
 * there is none.
 */
static inline bool kevent_ring_here(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	return host_mm_in_use() &&
	       (likely(q->ring_mm == current->mm) || kevent_ring_elsewhere(q));
}

/*
 * Can an amount be stored in the ring now? An event that is queued gets one when it
 * is delivered. Peeks: an entry without an amount is no harm.
 */
static inline bool kevent_may_store(const struct kevent_queue *q)
{
	return q->mm == current->mm || !list_empty(&q->mappings);
}

#endif /* _KEVENT_RING_MAPPING_H */
