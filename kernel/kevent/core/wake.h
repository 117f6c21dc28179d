/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers that sleep, and the choice of the one to wake
 */
#ifndef _KEVENT_WAKE_H
#define _KEVENT_WAKE_H

#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "deadline.h"
#include "queue.h"

struct kevent_member;

/**
 * struct kevent_consumer - one thread in a call that waits
 *
 * Wishes of the call:
 * @to: &kevent_queue.ring, or a buffer of its own
 * @max: most events to move at a time
 * @min_nr: events that end the wait, at least 1: in the buffer, or past @old_kidx in the ring
 * @old_kidx: low half of the newest position that it knows, of the ring
 * @member: the consumer, if a limit holds for it; or NULL, as always with a buffer
 * @until: when the wait ends
 *
 * Polls by others:
 * @polls: &kevent_queue.polls when it last asked, 0: it has not yet
 * @patience: milliseconds that it has left for them when its time is over, see %KEVENT_PATIENCE
 * @over: its time is over: it collects for what others have polled, and for nothing else
 *
 * Asleep, in kevent_sleepers_add():
 * @link: on &kevent_queue.sleepers
 * @peers: on &kevent_queue.ring_sleepers, buffer_sleepers or buffer_several
 * @node: in &kevent_queue.many_sleepers
 * @seen_node: in &kevent_queue.many_seen
 * @end: of the ring: the &kring.kidx that ends its wait, above that of now. So of those that wait
 *	 for one entry one that joins later does not have a lower one
 * @since: how many had come to sleep before it: the order of those on different lists
 * @task: the thread. It is alive as long as @done is false: it takes ready_lock before
 *	  it goes on
 * @misses: &kevent_queue.misses when it fell asleep, if @measured
 * @measured: the queue learns from its sleep, see wake_coalesce.c
 * @requested: it returns although nothing is ready
 * @several: one more event is not enough
 * @woken: not among the sleepers any more, and counted in &kevent_queue.nr_woken
 * @recheck: it collects level watches, too: others may have had their events, or have polled
 *	 them since it collected. Set by who wakes it, and by itself
 * @asks: others polled watches when it joined, see kevent_wake_askers()
 * @done: the ring has the news, and the queue has forgotten the consumer, which goes on
 *	  without ready_lock. Stored last: then this structure may be gone
 *
 * On the stack of @task. A call that finds events at once sets the wishes and no more. Only @task
 * writes the members above @link; others read them under ready_lock, while the consumer is asleep.
 * ready_lock protects the others. @task clears @requested, @woken and @recheck before it joins,
 * and its waker sets them. @done is stored under ready_lock, and read without it.
 */
struct kevent_consumer {
	struct kring		*to;
	u32			max;
	u32			min_nr;
	u32			old_kidx;
	struct kevent_member	*member;
	struct kevent_deadline	until;

	u64			polls;
	int			patience;
	bool			over;

	struct list_head	link;
	union {
		struct list_head	peers;
		struct rb_node		node;
	};
	struct rb_node		seen_node;
	u64			end;
	u64			since;
	struct task_struct	*task;
	u64			misses;
	bool			measured;
	bool			requested;
	bool			several;
	bool			woken;
	bool			recheck;
	bool			asks;
	bool			done;
};

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
static inline bool kevent_wants_ring(const struct kevent_consumer *c)
{
	return kring_is_ring(c->to);
}

/* Would one event, stored now, end its wait? A member may have to park first. */
static inline bool kevent_wants_one(const struct kevent_consumer *c)
{
	return kevent_wants_ring(c) && c->min_nr == 1 && !c->member;
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

	return !c || kevent_wants_ring(c);
}

#endif /* _KEVENT_WAKE_H */
