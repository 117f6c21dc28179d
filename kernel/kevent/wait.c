// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that wait
 */

#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "kevent.h"

/**
 * struct kevent_waiter - a consumer asleep
 * @wait: on &kevent_queue.wait
 * @q: the queue
 * @news: what it waits for, if it wants the ring filled
 * @requested: it shall return although nothing is ready
 * @woken: taken off the wait queue, and counted in &kevent_queue.nr_woken
 * @look: it shall look at level watches, which others may have been told of
 */
struct kevent_waiter {
	wait_queue_entry_t	wait;
	struct kevent_queue	*q;
	const struct kevent_news *news;
	bool			requested;
	bool			woken;
	bool			look;
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
	unsigned long what = (unsigned long)key;
	enum kevent_consumers kind = what & ~KEVENT_LOOK;

	if (kind == (w->news ? KEVENT_OF_BUFFER : KEVENT_OF_RING))
		return 0;
	if (kevent_waiter_wants_more(w))
		return 0;
	if (!autoremove_wake_function(wait, mode, sync, NULL))
		return 0;
	w->woken = true;
	w->look = what & KEVENT_LOOK;
	w->q->nr_woken++;
	return 1;
}

/**
 * kevent_wake - wake consumers
 * @q: the queue
 * @kind: &enum kevent_consumers; of these the one that sleeps longest is first. With
 *	  %KEVENT_LOOK, if they shall look at level watches again
 * @nr: how many, 0 for all
 */
void kevent_wake(struct kevent_queue *q, unsigned int kind, int nr)
{
	lockdep_assert_held(&q->ready_lock);

	/* Consumers join and leave under ready_lock. */
	if (waitqueue_active(&q->wait))
		__wake_up(&q->wait, TASK_NORMAL, nr,
			  (void *)(unsigned long)kind);
}

/**
 * kevent_wake_for - wake consumers for an event, as its watch wants it
 * @ke: the watch
 * @kind: which consumers can take it
 */
void kevent_wake_for(struct kevent *ke, enum kevent_consumers kind)
{
	if (ke->req_flags & KEVENT_REQ_WAKEUP_ALL)
		kevent_wake(ke->queue, kind | KEVENT_LOOK, 0);
	else
		kevent_wake(ke->queue, kind, 1);
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

/* Returns whether it shall look at level watches. */
static bool kevent_block(struct kevent_queue *q, struct kevent_waiter *w,
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
	return w->look && !list_empty(&q->level);
}

/*
 * A request that was made of a consumer ends its wait whatever else has happened:
 * others come for the events.
 */
static bool kevent_is_requested(struct kevent_queue *q,
				const struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	if (w->requested && !list_empty(&q->ready) && !q->nr_woken)
		kevent_wake(q, KEVENT_ANY, 1);
	return w->requested;
}

/*
 * What to do when the wait is over. Another consumer may be faster, and leave a level
 * watch to look at: one that was woken to look does so in any case.
 */
static int kevent_slept(struct kevent_queue *q, const struct kevent_waiter *w)
{
	if (list_empty(&q->ready))
		return 1;
	return w->look ? KEVENT_SLEPT_LOOK : 0;
}

static int kevent_sleep_locked(struct kevent_queue *q, struct kevent_waiter *w,
			       const struct kevent_deadline *until,
			       unsigned long *flags)
	__must_hold(&q->ready_lock)
{
	bool timed_out = until->poll;

	while (!kevent_is_requested(q, w)) {
		if (kevent_may_collect(q, w->news))
			return kevent_slept(q, w);
		if (!list_empty(&q->ready))
			kevent_wake(q, KEVENT_OF_BUFFER, 1);
		if (q->wake_request) {
			q->wake_request = false;
			break;
		}
		if (timed_out)
			return -ETIME;
		if (signal_pending(current))
			return -EINTR;
		/* A level watch may be ready for more than one consumer. */
		if (kevent_block(q, w, until, flags, &timed_out) &&
		    !w->requested)
			return KEVENT_SLEPT_LOOK;
	}
	return -ECANCELED;
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
 * Return: 0 to collect, %KEVENT_SLEPT_LOOK to collect level watches as well, 1 when
 * there are @news and nothing is to be collected, -ECANCELED when a wake-up was
 * requested, -ETIME, -EINTR.
 */
int kevent_sleep(struct kevent_queue *q, const struct kevent_news *news,
		 const struct kevent_deadline *until)
{
	struct kevent_waiter w = {
		.q = q,
		.news = news,
	};
	struct pid *last = NULL;
	unsigned long flags;
	int ret;

	kevent_busy_wait(q, news, until);
	init_wait(&w.wait);
	w.wait.func = kevent_waiter_wake;
	spin_lock_irqsave(&q->ready_lock, flags);
	if (news)
		last = kevent_follow(q);
	ret = kevent_sleep_locked(q, &w, until, &flags);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	put_pid(last);
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
 * kevent_wake_left - a process has closed its descriptor, maybe by being killed
 * @q: the queue
 *
 * It may have been told of events that it did not come to take: an entry in the
 * ring, a level watch. One of those still asleep looks.
 */
void kevent_wake_left(struct kevent_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (q->nr_listed || kevent_unread(q))
		kevent_wake(q, KEVENT_ANY | KEVENT_LOOK, 1);
	spin_unlock_irqrestore(&q->ready_lock, flags);
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
