/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who sleeps, and who is woken
 */
#ifndef _KEVENT_WAKE_H
#define _KEVENT_WAKE_H

#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/types.h>

#include "queue.h"
#include "waiter.h"

void kevent_sleepers_add(struct kevent_queue *q, struct kevent_waiter *w);
void kevent_sleepers_del(struct kevent_queue *q, struct kevent_waiter *w);
struct kevent_waiter *kevent_next_of_kinds(struct kevent_queue *q, bool oldest);
bool kevent_wake(struct kevent_queue *q, unsigned int kind);
bool kevent_wake_all(struct kevent_queue *q, unsigned int kind);
void kevent_ask_all(struct kevent_queue *q);
void kevent_wake_rest(struct kevent_queue *q);
void kevent_wake_one(struct kevent_queue *q);
void kevent_end_waits(struct kevent_queue *q);
void kevent_wake_others(struct kevent_queue *q, u64 nr);
void kevent_wake_askers(struct kevent_queue *q);
void kevent_pass_on(struct kevent_queue *q);
void kevent_pass_unread(struct kevent_queue *q);
void kevent_wake_left(struct kevent_queue *q);

/* Is a waiter one for which a limit holds? */
static inline bool kevent_is_member(const struct kevent_waiter *w)
{
	return w->news && w->news->member;
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
			   struct kevent_waiter, member);		\
})

/* The next one of those for whom one event in the kernel is enough, or NULL */
static inline struct kevent_waiter *kevent_next_content(struct kevent_queue *q, bool oldest)
{
	lockdep_assert_held(&q->ready_lock);

	return likely(!q->nr_several) ? kevent_pick(&q->sleepers, link, oldest) :
					kevent_next_of_kinds(q, oldest);
}

/*
 * Who is woken for one event in the kernel? Somebody for whom it is enough, if any sleeps.
 * Those come first also if others have slept for longer.
 */
static inline struct kevent_waiter *kevent_next_of_any(struct kevent_queue *q, bool oldest)
{
	return kevent_next_content(q, oldest) ?: kevent_pick(&q->sleepers, link, oldest);
}

/*
 * Can the next consumer take an event from the ring? Not if the one that would be woken
 * looks at the queue only.
 */
static inline bool kevent_may_wait_for_ring(struct kevent_queue *q)
{
	struct kevent_waiter *w = kevent_next_of_any(q, kevent_wakes_oldest(q));

	return !w || w->news;
}

#endif /* _KEVENT_WAKE_H */
