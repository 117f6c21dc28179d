/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers that wait
 */
#ifndef _KEVENT_WAIT_H
#define _KEVENT_WAIT_H

#include <linux/types.h>

#include "queue.h"

struct kevent_deadline;
struct kevent_news;
struct kring;

u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx);
int kevent_wait_buffer(struct kevent_queue *q, struct kring *buf, u32 min_nr,
		       struct kevent_deadline *until);
int kevent_enter(struct kevent_queue *q, const struct kevent_news *news,
		 struct kevent_deadline *until);
int kevent_wait_ring(struct kevent_queue *q, u32 num, struct kevent_news *news,
		     u64 min_wait_ns, struct kevent_deadline *until);
int kevent_wait_end(struct kevent_queue *q, const struct kevent_news *news,
		    const struct kevent_deadline *until, int ret);

/*
 * How many entries were stored past a position, of which the consumer has read the low
 * half? A wake-up writes user memory first, see kring_push(): the consumer may be ahead of
 * what a peek shows, but not of what ready_lock protects. Above the size of the ring the
 * position is one that it never had, or that it has left long ago.
 */
static inline u32 kevent_stored(struct kevent_queue *q, u32 old_kidx)
{
	u32 stored = (u32)READ_ONCE(q->ring.kidx) - old_kidx;

	return likely(stored <= q->ring.size) ?
	       stored : kevent_stored_locked(q, old_kidx);
}

#endif /* _KEVENT_WAIT_H */
