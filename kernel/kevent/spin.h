/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Spinning in place of a short sleep
 */
#ifndef _KEVENT_SPIN_H
#define _KEVENT_SPIN_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "busy_poll.h"
#include "deadline.h"
#include "queue.h"

extern unsigned int kevent_spin_max_ns;

void kevent_spin_on(struct kevent_queue *q, const struct kevent_news *news,
		    const struct kevent_deadline *until);
void kevent_spin_slept(struct kevent_queue *q, s64 slept);

/**
 * kevent_spin - look for events for as long as a sleep would cost
 * @q: the queue, on which nothing is ready
 * @news: what the consumer waits for, if it wants the ring filled; NULL for others
 * @until: how long it waits
 *
 * Only if recent sleeps were shorter than that. Process context, no locks held.
 */
static inline void kevent_spin(struct kevent_queue *q,
			       const struct kevent_news *news,
			       const struct kevent_deadline *until)
{
	if (READ_ONCE(q->spin.credit) && news && !until->nowait &&
	    !kevent_busy_on(&q->busy))
		kevent_spin_on(q, news, until);
}

#endif /* _KEVENT_SPIN_H */
