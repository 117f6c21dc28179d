/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers that sleep, and the choice of the one to wake
 */
#ifndef _KEVENT_WAKE_H
#define _KEVENT_WAKE_H

#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/types.h>

#include "consumer.h"
#include "queue.h"

/**
 * enum kevent_consumers - which consumers a wake-up is for
 * @KEVENT_ANY:		any
 * @KEVENT_CONTENT:	those that one event in the kernel is enough for
 * @KEVENT_OF_RING:	those whose entries are in the ring
 * @KEVENT_OF_BUFFER:	those that need no room in the ring
 * @KEVENT_OF_BUFFER_ONE: likewise, if one event is enough
 * @KEVENT_ELSEWHERE:	likewise; if none sleeps, any that one event is enough for: others may
 *			have the ring in memory that can be written
 */
enum kevent_consumers {
	KEVENT_ANY,
	KEVENT_CONTENT,
	KEVENT_OF_RING,
	KEVENT_OF_BUFFER,
	KEVENT_OF_BUFFER_ONE,
	KEVENT_ELSEWHERE,
};

void kevent_sleepers_add(struct kevent_queue *q, struct kevent_consumer *c);
void kevent_sleepers_del(struct kevent_queue *q, struct kevent_consumer *c);
struct kevent_consumer *kevent_next_of_kinds(struct kevent_queue *q, bool oldest);
bool kevent_wake_one(struct kevent_queue *q, enum kevent_consumers whom, bool recheck);
bool kevent_wake_all(struct kevent_queue *q, enum kevent_consumers whom, bool recheck);
void kevent_ask_all(struct kevent_queue *q);
void kevent_wake_rest(struct kevent_queue *q);
void kevent_request_one(struct kevent_queue *q);
void kevent_request_all(struct kevent_queue *q);
void kevent_wake_others(struct kevent_queue *q, u64 nr);
void kevent_wake_askers(struct kevent_queue *q);
void kevent_pass_on(struct kevent_queue *q);
void kevent_pass_unread(struct kevent_queue *q);
void kevent_wake_left(struct kevent_queue *q);

/* Does a consumer of the queue want the ring filled? If not, it has a buffer. */
static inline bool kevent_wants_ring(const struct kevent_queue *q,
				     const struct kevent_consumer *c)
{
	return c->to == &q->ring;
}

/* Would one event, stored now, end its wait? A member may have to park first. */
static inline bool kevent_wants_one(const struct kevent_queue *q,
				    const struct kevent_consumer *c)
{
	return kevent_wants_ring(q, c) && c->min_nr == 1 && !c->member;
}

/* Does a consumer sleep? Without ready_lock a hint. */
static inline bool kevent_sleeps(const struct kevent_queue *q)
{
	/* Plain stores to a pointer: only whether it points elsewhere matters. */
	return data_race(!list_empty(&q->sleepers));
}

/* Wake-ups of the consumer that slept last, between two of the one that sleeps longest */
#define KEVENT_WARM_MAX		63U

/* Is the consumer that sleeps longest the next one? */
static inline bool kevent_wakes_oldest(const struct kevent_queue *q)
{
	return q->fair || q->warm >= KEVENT_WARM_MAX;
}

/* The consumer at one end of a list of sleepers, which join at its end; or NULL */
#define kevent_pick(list, member, oldest)				\
({									\
	const struct list_head *list_ = (list);				\
									\
	list_empty(list_) ? NULL :					\
		list_entry((oldest) ? list_->next : list_->prev,	\
			   struct kevent_consumer, member);		\
})

/* The next one of those for whom one event in the kernel is enough, or NULL */
static inline struct kevent_consumer *kevent_next_content(struct kevent_queue *q, bool oldest)
{
	lockdep_assert_held(&q->ready_lock);

	return likely(!q->nr_several) ? kevent_pick(&q->sleepers, link, oldest) :
					kevent_next_of_kinds(q, oldest);
}

/* The next consumer to wake for one event in the kernel: one that it is enough for, if any is */
static inline struct kevent_consumer *kevent_next_of_any(struct kevent_queue *q, bool oldest)
{
	return kevent_next_content(q, oldest) ?: kevent_pick(&q->sleepers, link, oldest);
}

/* Can the one that would be woken next take an event from the ring? One with a buffer cannot. */
static inline bool kevent_may_wait_for_ring(struct kevent_queue *q)
{
	struct kevent_consumer *c = kevent_next_of_any(q, kevent_wakes_oldest(q));

	return !c || kevent_wants_ring(q, c);
}

#endif /* _KEVENT_WAKE_H */
