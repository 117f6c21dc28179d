/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Spinning in place of a short sleep
 */
#ifndef _KEVENT_SPIN_H
#define _KEVENT_SPIN_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "busy_poll.h"
#include "deadline.h"
#include "queue.h"

extern unsigned int kevent_spin_max_ns;

void kevent_spin_on(struct kevent_queue *q, const struct kevent_news *news,
		    const struct kevent_deadline *until);
void kevent_spin_woken(struct kevent_queue *q, s64 took);
void kevent_spin_slept(struct kevent_queue *q, s64 slept);

/* The weight of a wake-up that took less than others is 1 to 2^3, else 1 to 2^6. */
#define KEVENT_SPIN_LESS_SHIFT	3
#define KEVENT_SPIN_MORE_SHIFT	6

/**
 * kevent_spin_wake_ns - how long a short wake-up takes
 * @ns: what was known, in nanoseconds; 0 for nothing
 * @took: how long one more took
 *
 * What a wake-up takes longer than others it has waited, mostly for a CPU that another
 * task had. That is latency, but no CPU time that spinning would save.
 */
static inline u32 kevent_spin_wake_ns(u32 ns, s64 took)
{
	u32 sample = clamp_t(s64, took, 1, U32_MAX);

	if (!ns)
		return sample;
	if (sample < ns)
		return ns - ((ns - sample) >> KEVENT_SPIN_LESS_SHIFT);
	return ns + ((sample - ns) >> KEVENT_SPIN_MORE_SHIFT);
}

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
