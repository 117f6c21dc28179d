/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events that keep the system awake
 */
#ifndef _KEVENT_WAKEUP_SOURCE_H
#define _KEVENT_WAKEUP_SOURCE_H

#include <linux/compiler.h>

#include "queue.h"

int kevent_awake_prepare(struct kevent_queue *q);
void kevent_awake_stop(struct kevent_queue *q);
void kevent_stay_awake(struct kevent_queue *q);
void kevent_awake_delivered(struct kevent_queue *q);
void __kevent_awake_begin(struct kevent_queue *q);
void __kevent_awake_end(struct kevent_queue *q);

/* A consumer has come back, before its changes are made, and before it collects. */
static inline void kevent_awake_begin(struct kevent_queue *q)
{
	if (unlikely(READ_ONCE(q->wakeup)))
		__kevent_awake_begin(q);
}

/* It has collected. */
static inline void kevent_awake_end(struct kevent_queue *q)
{
	if (unlikely(READ_ONCE(q->wakeup)))
		__kevent_awake_end(q);
}

#endif /* _KEVENT_WAKEUP_SOURCE_H */
