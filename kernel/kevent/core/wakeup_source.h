/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events that keep the system awake
 */
#ifndef _KEVENT_WAKEUP_SOURCE_H
#define _KEVENT_WAKEUP_SOURCE_H

#include <linux/compiler.h>
#include <linux/errno.h>

#include "queue.h"

#ifdef CONFIG_PM_SLEEP

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

#else

static inline int kevent_awake_prepare(struct kevent_queue *q)
{
	return -EOPNOTSUPP;
}

static inline void kevent_awake_stop(struct kevent_queue *q) {}
static inline void kevent_stay_awake(struct kevent_queue *q) {}
static inline void kevent_awake_delivered(struct kevent_queue *q) {}
static inline void kevent_awake_begin(struct kevent_queue *q) {}
static inline void kevent_awake_end(struct kevent_queue *q) {}

#endif /* CONFIG_PM_SLEEP */

#endif /* _KEVENT_WAKEUP_SOURCE_H */
