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
 * @q: the queue
 * @news: what it waits for, if it wants the ring filled
 * @requested: it shall return although nothing is ready
 * @woken: taken off the wait queue, and counted in &kevent_queue.nr_woken
 */
struct kevent_waiter {
	wait_queue_entry_t	wait;
	struct kevent_queue	*q;
	const struct kevent_news *news;
	bool			requested;
	bool			woken;
};

/* Would a waiter that is woken sleep again, and the wake-up be lost on it? */
static bool kevent_waiter_wants_more(const struct kevent_waiter *w)
{
	const struct kring *ring = &w->q->ring;

	return w->news && w->news->min_nr > 1 && !w->requested &&
	       list_empty(&w->q->ready) && kring_free_slots(ring) &&
	       (u32)ring->kidx - w->news->old_kidx < w->news->min_nr;
}

static int kevent_waiter_wake(wait_queue_entry_t *wait, unsigned int mode,
			      int sync, void *key)
{
	struct kevent_waiter *w = container_of(wait, struct kevent_waiter,
					       wait);
	enum kevent_consumers kind = (unsigned long)key;

	if (kind == (w->news ? KEVENT_OF_BUFFER : KEVENT_OF_RING))
		return 0;
	if (kevent_waiter_wants_more(w))
		return 0;
	if (!autoremove_wake_function(wait, mode, sync, NULL))
		return 0;
	w->woken = true;
	w->q->nr_woken++;
	return 1;
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

/**
 * kevent_may_wait_for_ring - can the next consumer take an event from the ring?
 * @q: the queue
 *
 * Return: false when the one that sleeps longest looks at the queue only.
 */
bool kevent_may_wait_for_ring(struct kevent_queue *q)
{
	struct kevent_waiter *w;

	lockdep_assert_held(&q->ready_lock);

	w = list_first_entry_or_null(&q->wait.head, struct kevent_waiter,
				     wait.entry);
	return !w || w->news;
}

/**
 * kevent_clock_now - the time
 * @clock: one of those kevent_wait_arg.clockid may be
 */
ktime_t kevent_clock_now(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	case CLOCK_TAI:
		return ktime_get_clocktai();
	default:
		return ktime_get();
	}
}

/* Is there a slot free? A ring that can't be read is not for us to deal with. */
static bool kevent_has_room(struct kevent_queue *q)
{
	return kring_free_slots(&q->ring) || !kevent_ring_here(q) ||
	       kring_sync(&q->ring) || kring_free_slots(&q->ring);
}

/* Does the ring hold what a consumer waits for, or all it will ever hold? */
static bool kevent_news_there(struct kevent_queue *q,
			      const struct kevent_news *news)
{
	u32 stored = (u32)q->ring.kidx - news->old_kidx;

	lockdep_assert_held(&q->ready_lock);

	return stored >= news->min_nr || (stored && !kevent_has_room(q));
}

/**
 * kevent_stored - how many entries were stored past a position
 * @q: the queue
 * @old_kidx: its low half, as a consumer has read it
 *
 * A wake-up tells user memory first, see kring_push_put(): the consumer may be
 * ahead of what a peek shows, but not of what ready_lock protects.
 */
u32 kevent_stored(struct kevent_queue *q, u32 old_kidx)
{
	u32 stored = (u32)READ_ONCE(q->ring.kidx) - old_kidx;
	unsigned long flags;

	if (likely(stored <= q->ring.size))
		return stored;
	spin_lock_irqsave(&q->ready_lock, flags);
	stored = (u32)q->ring.kidx - old_kidx;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return stored;
}

/**
 * kevent_has_news - is a consumer of the ring content?
 * @q: the queue
 * @news: what it waits for
 *
 * When the ring is full, any news is enough.
 */
bool kevent_has_news(struct kevent_queue *q, const struct kevent_news *news)
{
	unsigned long flags;
	bool ret;

	/* A position that was seen is not taken back. */
	if (kevent_stored(q, news->old_kidx) >= news->min_nr)
		return true;
	spin_lock_irqsave(&q->ready_lock, flags);
	ret = kevent_news_there(q, news);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return ret;
}

/* May a consumer go on? @news is NULL unless it wants the ring filled. */
static bool kevent_may_collect(struct kevent_queue *q,
			       const struct kevent_news *news)
{
	lockdep_assert_held(&q->ready_lock);

	if (news && kevent_news_there(q, news))
		return true;
	if (list_empty(&q->ready))
		return false;
	return !news || kevent_has_room(q);
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
	*timed_out = !schedule_hrtimeout_range_clock(at == KTIME_MAX ? NULL : &at,
						     until->slack,
						     HRTIMER_MODE_ABS,
						     until->clock);
	spin_lock_irqsave(&q->ready_lock, *flags);
	finish_wait(&q->wait, &w->wait);
	q->nr_woken -= w->woken;
	w->woken = false;
}

/**
 * kevent_sleep - wait until there is something to collect
 * @q: the queue
 * @news: what a consumer of the ring waits for. NULL for others
 * @until: how long
 *
 * Consumers sleep exclusively, the oldest is woken first. One that is woken but
 * finds the ring full hands the event on to one that needs no ring.
 *
 * Return: 0 to collect, 1 when there are @news and nothing is to be collected,
 * -ECANCELED when a wake-up was requested, -ETIME, -EINTR.
 */
int kevent_sleep(struct kevent_queue *q, const struct kevent_news *news,
		 const struct kevent_deadline *until)
{
	struct kevent_waiter w = {
		.q = q,
		.news = news,
	};
	bool timed_out = until->poll;
	unsigned long flags;
	int ret;

	kevent_busy_wait(q, news, until);
	init_wait(&w.wait);
	w.wait.func = kevent_waiter_wake;
	spin_lock_irqsave(&q->ready_lock, flags);
	for (;;) {
		ret = list_empty(&q->ready);
		if (kevent_may_collect(q, news))
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
 * kevent_wake_others - a consumer has stored less than it waits for
 * @q: the queue
 * @nr: how much
 *
 * It may be enough for others.
 */
void kevent_wake_others(struct kevent_queue *q, int nr)
{
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_wake(q, KEVENT_OF_RING, nr);
	kevent_unlock(q, flags);
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
