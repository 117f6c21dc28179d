/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A consumer: one thread in a call that waits
 */
#ifndef _KEVENT_CONSUMER_H
#define _KEVENT_CONSUMER_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "deadline.h"

struct kevent_member;
struct kring;

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
 * @end: of the ring: &kring.kidx that ends its wait. Above it when it joins, so one that
 *	 waits for one entry and joins later does not have a lower one
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

#endif /* _KEVENT_CONSUMER_H */
