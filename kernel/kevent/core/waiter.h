/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers asleep, and what a queue knows of their sleep
 */
#ifndef _KEVENT_WAITER_H
#define _KEVENT_WAITER_H

#include <linux/bits.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/types.h>

struct kevent_member;

/**
 * struct kevent_news - what a consumer of the ring waits for
 * @old_kidx:	low half of the newest position it knows
 * @min_nr:	entries past that, at least 1
 * @member:	the consumer, if a limit holds for it; or NULL
 */
struct kevent_news {
	u32			old_kidx;
	u32			min_nr;
	struct kevent_member	*member;
};

/**
 * struct kevent_waiter - a consumer asleep
 * @link: on &kevent_queue.sleepers
 * @peers: on &kevent_queue.ring_sleepers, buffer_sleepers or buffer_several
 * @node: in &kevent_queue.many_sleepers
 * @seen_node: in &kevent_queue.many_seen
 * @end: with @news: &kring.kidx of the ring that ends its wait. Above it when it joins, so
 *	 one that waits for one entry and joins later does not have a lower one
 * @since: how many had come to sleep before it: the order of those on different lists
 * @task: the thread. It is alive as long as @done is false: it takes ready_lock before
 *	  it goes on
 * @news: what it waits for, if it wants the ring filled
 * @misses: &kevent_queue.misses when it fell asleep, if @measured
 * @measured: the queue learns from its sleep, see wake_coalesce.c
 * @requested: it returns although nothing is ready
 * @several: with a buffer: one more event is not enough. The task sets it before the sleep
 * @woken: not among the sleepers any more, and counted in &kevent_queue.nr_woken
 * @look: it looks at level watches, whose events others may have had too
 * @asks: others looked at watches when it joined, see kevent_wake_askers()
 * @missed: others have looked at watches since it collected, so that it has to again
 * @done: the ring has the news, and the queue has forgotten the consumer, which goes on
 *	  without ready_lock. Stored last: then this structure may be gone
 *
 * On the stack of @task. All but @task, @news and @done is protected by ready_lock. See
 * kevent_sleepers_add() for where it is.
 */
struct kevent_waiter {
	struct list_head	link;
	union {
		struct list_head	peers;
		struct rb_node		node;
	};
	struct rb_node		seen_node;
	u64			end;
	u64			since;
	struct task_struct	*task;
	const struct kevent_news *news;
	u64			misses;
	bool			measured;
	bool			requested;
	bool			several;
	bool			woken;
	bool			look;
	bool			asks;
	bool			missed;
	bool			done;
};

/* What is not set here is when it is first needed. */
static inline void kevent_waiter_init(struct kevent_waiter *w,
				      const struct kevent_news *news)
{
	w->task = current;
	w->news = news;
	w->measured = false;
	w->requested = false;
	w->woken = false;
	w->look = false;
	w->missed = false;
	w->done = false;
}

/**
 * enum kevent_consumers - which consumers a wake-up is for
 * @KEVENT_ANY:		any
 * @KEVENT_CONTENT:	those that one event in the kernel is enough for
 * @KEVENT_OF_RING:	those whose entries are in the ring
 * @KEVENT_OF_BUFFER:	those that need no room in the ring
 * @KEVENT_OF_BUFFER_ONE: likewise, if one event is enough
 * @KEVENT_ELSEWHERE:	those; if none sleeps, any that one event is enough for: others may
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

/* With the above: have them look at the level watches again */
#define KEVENT_RECHECK		BIT(3)

/* Until a program sets another limit: how long an event may wait for others */
#define KEVENT_COALESCE_DEFAULT_NS	(1000 * 1000U)
/* Before a queue first tries to have an event wait: wake-ups in short succession */
#define KEVENT_COALESCE_PATIENCE	8U

/**
 * struct kevent_coalesce - waking a consumer once for several events
 * @max_ns:	how long an event may wait for others, 0: not at all. Read and written
 *		without a lock
 * @left:	the sleeper is woken when so many more events have come, 0: for the next
 * @batch:	how many it is to sleep for
 * @wake_ns:	mean time from a wake-up until the consumer runs
 * @streak:	wake-ups in short succession, while @batch is 1
 * @patience:	how many of these before a batch of two is tried
 * @woken_at:	when the sleeper was woken, 0: that is not measured
 * @awake_at:	when the last one was awake
 * @held:	events that did not wake the sleeper
 *
 * All but @max_ns is protected by ready_lock. See wake_coalesce.c.
 */
struct kevent_coalesce {
	u32			max_ns;
	u32			left;
	u32			batch;
	u32			wake_ns;
	u32			streak;
	u32			patience;
	ktime_t			woken_at;
	ktime_t			awake_at;
	u64			held;
};

#endif /* _KEVENT_WAITER_H */
