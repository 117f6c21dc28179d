// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that wait
 */

#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>

#include "kevent.h"

/**
 * struct kevent_waiter - a consumer asleep
 * @wait: on &kevent_queue.wait
 * @kind: %KEVENT_OF_RING or %KEVENT_OF_BUFFER
 * @requested: it shall return although nothing is ready
 */
struct kevent_waiter {
	wait_queue_entry_t	wait;
	enum kevent_consumers	kind;
	bool			requested;
};

static int kevent_waiter_wake(wait_queue_entry_t *wait, unsigned int mode,
			      int sync, void *key)
{
	struct kevent_waiter *w = container_of(wait, struct kevent_waiter,
					       wait);
	enum kevent_consumers kind = (unsigned long)key;

	if (kind != KEVENT_ANY && kind != w->kind)
		return 0;
	return autoremove_wake_function(wait, mode, sync, NULL);
}

/**
 * kevent_wake - wake consumers
 * @q: the queue
 * @kind: which; of these the one that sleeps longest is first
 * @nr: how many, 0 for all
 */
void kevent_wake(struct kevent_queue *q, enum kevent_consumers kind, int nr)
{
	lockdep_assert_held(&q->ready_lock);

	/* Consumers join and leave under ready_lock. */
	if (waitqueue_active(&q->wait))
		__wake_up(&q->wait, TASK_NORMAL, nr,
			  (void *)(unsigned long)kind);
}

/* May a consumer go on? @old_kidx is NULL unless it wants the ring filled. */
static bool kevent_may_collect(struct kevent_queue *q, const u32 *old_kidx)
{
	lockdep_assert_held(&q->ready_lock);

	if (old_kidx && (u32)q->ring.kidx != *old_kidx)
		return true;
	if (list_empty(&q->ready))
		return false;
	/* A ring that can't be read is for kevent_collect() to deal with. */
	return !old_kidx || kring_free_slots(&q->ring) ||
	       kring_sync(&q->ring) || kring_free_slots(&q->ring);
}

static void kevent_block(struct kevent_queue *q, struct kevent_waiter *w,
			 const struct kevent_deadline *until,
			 unsigned long *flags, bool *timed_out)
	__must_hold(&q->ready_lock)
{
	ktime_t at = until->at;

	prepare_to_wait_exclusive(&q->wait, &w->wait,
				  TASK_INTERRUPTIBLE | TASK_FREEZABLE);
	spin_unlock_irqrestore(&q->ready_lock, *flags);
	*timed_out = !schedule_hrtimeout_range(at == KTIME_MAX ? NULL : &at,
					       until->slack, HRTIMER_MODE_ABS);
	spin_lock_irqsave(&q->ready_lock, *flags);
	finish_wait(&q->wait, &w->wait);
}

/**
 * kevent_sleep - wait until there is something to collect
 * @q: the queue
 * @old_kidx: for a consumer of the ring: the low half of the newest position
 *	      it knows. NULL for others
 * @until: how long
 *
 * Consumers sleep exclusively, the oldest is woken first. One that is woken but
 * finds the ring full hands the event on to one that needs no ring.
 *
 * Return: 0 to go on, -ECANCELED when a wake-up was requested, -ETIME, -EINTR.
 */
int kevent_sleep(struct kevent_queue *q, const u32 *old_kidx,
		 const struct kevent_deadline *until)
{
	struct kevent_waiter w = {
		.kind = old_kidx ? KEVENT_OF_RING : KEVENT_OF_BUFFER,
	};
	bool timed_out = until->poll;
	unsigned long flags;
	int ret;

	init_wait(&w.wait);
	w.wait.func = kevent_waiter_wake;
	spin_lock_irqsave(&q->ready_lock, flags);
	for (;;) {
		ret = 0;
		if (kevent_may_collect(q, old_kidx))
			break;
		if (!list_empty(&q->ready))
			kevent_wake(q, KEVENT_OF_BUFFER, 1);
		ret = -ECANCELED;
		if (w.requested || q->wake_request)
			break;
		ret = timed_out ? -ETIME : -EINTR;
		if (timed_out || signal_pending(current))
			break;
		kevent_block(q, &w, until, &flags, &timed_out);
	}
	if (ret == -ECANCELED && !w.requested)
		q->wake_request = false;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return ret;
}

/**
 * kevent_wake_one - have one consumer return although nothing is ready
 * @q: the queue
 *
 * Whoever sleeps longest does; if nobody does, the next one that finds nothing.
 */
void kevent_wake_one(struct kevent_queue *q)
{
	struct kevent_waiter *w;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	w = list_first_entry_or_null(&q->wait.head, struct kevent_waiter,
				     wait.entry);
	if (w) {
		w->requested = true;
		kevent_wake(q, KEVENT_ANY, 1);
	} else {
		q->wake_request = true;
	}
	kevent_unlock(q, flags);
}
