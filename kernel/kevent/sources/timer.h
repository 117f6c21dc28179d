/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers: what a queue has for them, and a watch that is one
 */
#ifndef _KEVENT_TIMER_H
#define _KEVENT_TIMER_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/timerqueue.h>

#include "../core/types.h"

enum ev_clock {
	EV_MONOTONIC,
	EV_REALTIME,
	EV_BOOTTIME,
	EV_TAI,
	EV_NR_CLOCKS,
};

/**
 * struct kevent_clock - the timers of a queue that go by one clock
 * @timer:	started under ready_lock, with a timer in @running: never after
 *		kevent_remove_all(). Expires in softirq context
 * @queue:	I: the queue
 * @running:	R: the timers that run, in time of this clock. As many as the
 *		user may have watches
 * @at:		R: when @timer expires, at the latest. Inserting an earlier timer
 *		starts it anew. Removing the first one leaves it alone: its
 *		callback then finds less to do, or nothing
 * @id:		I: CLOCK_MONOTONIC and its like
 */
struct kevent_clock {
	struct hrtimer		timer;
	struct kevent_queue	*queue;
	struct timerqueue_head	running;
	ktime_t			at;
	clockid_t		id;
};

/**
 * struct kevent_timers - what a queue with timers has
 * @clocks:	by enum ev_clock
 * @queue:	I: the queue. kevent_timers_stop() is called before it may be freed
 * @refs:	one for the file of the queue, one for the work that looks at it
 * @on_set:	R: timers to cancel when the clock is set, those that know of the
 *		fewest settings first. As many as the user may have watches;
 *		walked in slices
 * @link:	protected by ev_timers_lock: on ev_timers_known or
 *		ev_timers_stale, until kevent_timers_stop()
 */
struct kevent_timers {
	struct kevent_clock	clocks[EV_NR_CLOCKS];
	struct kevent_queue	*queue;
	refcount_t		refs;
	struct list_head	on_set;
	struct list_head	link;
};

/* Charged with the first timer of a queue, until its file is gone */
#define EV_TIMERS_COST	kmalloc_size_roundup(sizeof(struct kevent_timers))

/**
 * struct kevent_timer - a watch that is a timer
 * @kk:		the watch, found by its cookie
 * @node:	R: in &kevent_clock.running unless it has expired or is stopped;
 *		has the time of the next expiry that is not in @ticks
 * @clock:	R: the clock it goes by
 * @when:	R: first expiry in nanoseconds, as requested
 * @interval:	R: time between expiries, 0 when there is one
 * @ticks:	R: expirations not yet delivered
 * @on_set:	R: on &kevent_timers.on_set, if that is wanted
 * @settings:	R: of CLOCK_REALTIME that it knows of
 * @expired:	R: not restarted since it expired
 */
struct kevent_timer {
	struct kevent_keyed	kk;
	struct timerqueue_node	node;
	struct kevent_clock	*clock;
	u64			when;
	ktime_t			interval;
	u64			ticks;
	struct list_head	on_set;
	u64			settings;
	bool			expired;
};

#endif /* _KEVENT_TIMER_H */
