// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that wait until fewer of them run
 *
 * Nothing is lost: when a member stops to run, and one is parked, it is let go. It looks
 * for events under ready_lock before it sleeps among the others.
 */

#include <linux/freezer.h>
#include <linux/sched.h>

#include "collect.h"
#include "deadline.h"
#include "limit.h"
#include "more.h"
#include "park.h"
#include "queue.h"
#include "wait.h"
#include "window.h"

/*
 * A member parks that may have been woken for an event. It is for one that runs, and for
 * consumers without a limit, if any sleep: see kevent_wake().
 */
static void kevent_park_hand_on(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	/* If memory is away nobody is told by a flag. Who runs calls before it sleeps. */
	kevent_leave(q, KEVENT_ANY);
	kevent_pass_on(q);
}

/* Returns 0 to go on, KEVENT_PARKED, or: -ECANCELED, -ETIME, -EINTR. */
static int kevent_park_locked(struct kevent_queue *q, struct kevent_member *m,
			      bool timed_out)
{
	int ret, why = timed_out ? -ETIME : 0;

	lockdep_assert_held(&q->ready_lock);

	if (q->wake_request)
		why = -ECANCELED;
	else if (!why && kevent_is_interrupted())
		why = -EINTR;
	ret = kevent_limit_park(m, why);
	if (ret == -ECANCELED && !m->requested)
		WRITE_ONCE(q->wake_request, false);
	if (ret == KEVENT_PARKED)
		kevent_park_hand_on(q);
	return ret;
}

/* A member that was parked is to be frozen. It may have been let go: then another one is. */
static void kevent_park_freeze(struct kevent_queue *q, struct kevent_member *m)
{
	kevent_limit_rest(m);
	kevent_wake_left(q);
	kevent_freeze();
}

/* Returns what kevent_park_locked() does, but for KEVENT_PARKED. */
static int kevent_park(struct kevent_queue *q, struct kevent_member *m,
		       const struct kevent_deadline *until)
{
	bool timed_out = until->nowait;
	unsigned long flags;
	int ret;

	for (;;) {
		spin_lock_irqsave(&q->ready_lock, flags);
		ret = kevent_park_locked(q, m, timed_out);
		spin_unlock_irqrestore(&q->ready_lock, flags);
		if (ret != KEVENT_PARKED)
			return ret;
		kevent_window(q, KEVENT_WINDOW_PARKED);
		timed_out = kevent_block(until);
		kevent_window(q, KEVENT_WINDOW_UNPARKED);
		kevent_limit_unparked(m);
		kevent_recheck_signals();
		if (unlikely(freezing(current)))
			kevent_park_freeze(q, m);
	}
}

/**
 * kevent_park_enter - wait until the current thread may take events
 * @q: the queue
 * @m: the member that it is
 * @until: how long; kevent_deadline_start() was called
 *
 * Return: 0 at once, %KEVENT_SLEPT_LOOK if it has been parked: then it looks at level
 * watches, as others may not have; -ECANCELED, -ETIME, -EINTR: it goes on without events.
 */
int kevent_park_enter(struct kevent_queue *q, struct kevent_member *m,
		      const struct kevent_deadline *until)
{
	int ret;

	if (kevent_limit_try(m))
		return 0;
	ret = kevent_park(q, m, until);
	kevent_limit_go_on(m);
	kevent_window(q, KEVENT_WINDOW_GO_ON);
	/* Others were not woken as long as it was parked: another one looks, or parks. */
	kevent_wake_left(q);
	return ret ?: KEVENT_SLEPT_LOOK;
}

/**
 * kevent_park_awoke - a member has slept among the consumers, or found something
 * @q: the queue
 * @m: the current thread
 * @until: how long it waits
 * @ret: what kevent_sleep() has returned
 *
 * Return: the same, or, if it has to park first, what kevent_park_enter() does.
 */
int kevent_park_awoke(struct kevent_queue *q, struct kevent_member *m,
		      const struct kevent_deadline *until, int ret)
{
	if (!m->waits)
		return ret;
	if (ret >= 0)
		return kevent_park_enter(q, m, until) ?: ret;
	kevent_limit_go_on(m);
	return ret;
}
