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

/* What kevent_sleep() returns to have the level watches looked at */
#define KEVENT_SLEPT_LOOK	2

/* Of &kevent_queue.looks: never a value of it */
#define KEVENT_LOOKS_UNKNOWN	0U
/*
 * How often a call whose time is over collects again because others look all the time. A
 * file whose ->poll() fires its own watch would have it do so for ever.
 */
#define KEVENT_LOOKS_LEFT	1000U

/*
 * How long, in jiffies, a call whose time is over waits for others who look at watches: all
 * of its waits together
 */
#define KEVENT_LOOKS_PATIENCE	(3 * HZ)

/**
 * struct kevent_looks - what a call that found nothing knows of looks by others
 * @seen:	&kevent_queue.looks when it last asked, or %KEVENT_LOOKS_UNKNOWN
 * @left:	how often more it may ask when its time is over
 * @over:	its time is over: it collects for what others have looked at, and for
 *		nothing else
 * @waits:	its time is over, and it has begun to wait for others to come back
 * @until:	when it gives up, in jiffies, if it @waits
 */
struct kevent_looks {
	u32		seen;
	u32		left;
	bool		over;
	bool		waits;
	unsigned long	until;
};

#define KEVENT_LOOKS_INIT						\
	{ .seen = KEVENT_LOOKS_UNKNOWN, .left = KEVENT_LOOKS_LEFT }

u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx);
bool kevent_has_news(struct kevent_queue *q, const struct kevent_news *news);
int kevent_sleep(struct kevent_queue *q, const struct kevent_news *news,
		 const struct kevent_deadline *until,
		 struct kevent_looks *looks);
int kevent_try_again(const struct kevent_deadline *until,
		     struct kevent_looks *looks);

/**
 * kevent_stored - how many entries were stored past a position
 * @q: the queue
 * @old_kidx: its low half, as a consumer has read it
 *
 * A wake-up writes user memory first, see kring_push_put(): the consumer may be
 * ahead of what a peek shows, but not of what ready_lock protects.
 *
 * Return: the number. Above the size of the ring the position is one that it never had, or
 * that it has left long ago.
 */
static __always_inline u32 kevent_stored(struct kevent_queue *q, u32 old_kidx)
{
	u32 stored = (u32)READ_ONCE(q->ring.kidx) - old_kidx;

	return likely(stored <= q->ring.size) ?
	       stored : kevent_stored_locked(q, old_kidx);
}

#endif /* _KEVENT_WAIT_H */
