/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring of a queue: where it is in the address spaces of its creator and of others, and
 * KEVENT_RING_MORE, its flag that says that events wait in the kernel
 */
#ifndef _KEVENT_QUEUE_RING_H
#define _KEVENT_QUEUE_RING_H

#include <linux/list.h>
#include <linux/types.h>

#include "queue.h"

bool kevent_ring_back(struct kevent_queue *q);
void kevent_ring_leave(struct kevent_queue *q);
int kevent_ring_attach(struct kevent_queue *q, struct kring *ring);
u32 kevent_ring_spaces(const struct kevent_queue *q);
void kevent_mappings_free(struct kevent_queue *q);

void kevent_more(struct kevent_queue *q);

/* Learn how far consumers of the ring are, who take entries without a call. */
static inline void kevent_ring_sync(struct kevent_queue *q)
{
	if (kevent_ring_select(q))
		kring_sync(&q->ring);
}

#endif /* _KEVENT_QUEUE_RING_H */
