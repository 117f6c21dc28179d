// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that wait
 */

#include <linux/freezer.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <trace/events/kevent.h>

#include "busy_poll.h"
#include "coalesce.h"
#include "deadline.h"
#include "limit.h"
#include "mapping.h"
#include "more.h"
#include "queue.h"
#include "wait.h"
#include "window.h"

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
 * kevent_stored_locked - kevent_stored() with the lock
 * @q: the queue
 * @old_kidx: a position, as there
 *
 * Return: as there.
 */
u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx)
{
	unsigned long flags;
	u32 stored;

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

/* What kevent_sleep_locked() returns for a consumer that has to sleep */
#define KEVENT_SLEEPS_ON	3
/* ... for one that is to be frozen first */
#define KEVENT_FREEZES		4

/* A consumer is about to sleep. What it waits for has not come, under this lock. */
static void kevent_join(struct kevent_queue *q, struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	__set_current_state(TASK_INTERRUPTIBLE);
	w->woken = false;
	w->look = false;
	kevent_sleepers_add(q, w);
}

/* A consumer is awake. Returns whether it must look at level watches. */
static bool kevent_part(struct kevent_queue *q, struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	if (!w->woken)
		kevent_sleepers_del(q, w);
	q->nr_asleep--;
	q->nr_woken -= w->woken;
	if (unlikely(q->wake_rest))
		kevent_wake_rest(q);
	return w->look && !list_empty(&q->level);
}

/*
 * A request that was made of a consumer ends its wait whatever else has happened.
 * Wake another one for the events.
 */
static bool kevent_is_requested(struct kevent_queue *q,
				const struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	if (w->requested && !list_empty(&q->ready) && !q->nr_woken) {
		kevent_wake(q, KEVENT_ANY, 1);
		kevent_more_left(q);
	}
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
	return w->look || w->missed ? KEVENT_SLEPT_LOOK : 0;
}

/*
 * A consumer is awake and has the lock. Returns what kevent_sleep() returns, 0 to look at
 * the queue. The consumer may have come for the lock before the one that woke it had
 * stored that it is done.
 */
static int kevent_awoke(struct kevent_queue *q, struct kevent_waiter *w)
{
	if (w->done)
		return 1;
	/* A level watch may be ready for more than one consumer. */
	if (kevent_part(q, w) && !w->requested)
		return KEVENT_SLEPT_LOOK;
	return 0;
}

/*
 * Was a level watch off the lists, because another consumer looked at it, when this one
 * collected? That was before ready_lock: if @looks is not known yet, a watch that is
 * listed may be one.
 */
static bool kevent_missed_look(const struct kevent_queue *q,
			       struct kevent_looks *looks)
{
	u32 seen = looks->seen;

	lockdep_assert_held(&q->ready_lock);

	looks->seen = q->looks;
	return seen == KEVENT_LOOKS_UNKNOWN ? q->nr_listed : seen != q->looks;
}

/**
 * kevent_try_again - may a call that slept, or was to look, and found nothing go on?
 * @until: what it was given
 * @looks: of the call
 *
 * What was ready may turn out not to be, again and again.
 *
 * Return: 0 to call kevent_sleep(), or -EINTR, -ETIME.
 */
int kevent_try_again(const struct kevent_deadline *until,
		     struct kevent_looks *looks)
{
	int err = kevent_deadline_over(until);

	looks->over = err == -ETIME;
	return looks->over && looks->left-- ? 0 : err;
}

/* Has a call waited for others to come back for as long as it may? */
static bool kevent_gives_up(const struct kevent_looks *looks)
{
	return looks->waits && time_after_eq(jiffies, looks->until);
}

/* A call whose time is over waits for others to come back. */
static void kevent_wait_for_looks(struct kevent_looks *looks)
{
	if (!looks->waits) {
		looks->waits = true;
		looks->until = jiffies + KEVENT_LOOKS_PATIENCE;
	}
	schedule_timeout(max((long)(looks->until - jiffies), 0L));
}

/*
 * A consumer is to be frozen, and takes neither what it was woken for nor what was held back
 * until it is. It sleeps on no list meanwhile, so events are for others.
 */
static int kevent_freezes(struct kevent_queue *q)
{
	kevent_pass_on(q);
	return KEVENT_FREEZES;
}

static int kevent_sleep_locked(struct kevent_queue *q, struct kevent_waiter *w,
			       bool timed_out, const struct kevent_looks *looks)
{
	if (kevent_is_requested(q, w))
		return -ECANCELED;
	if (unlikely(freezing(current)))
		return kevent_freezes(q);
	/* Nobody sleeps beside what it can take, not even until others come back. */
	if ((!looks->over || q->nr_taken) && kevent_may_collect(q, w->news))
		return kevent_slept(q, w);
	if (!list_empty(&q->ready)) {
		kevent_wake(q, KEVENT_OF_BUFFER, 1);
		kevent_more_left(q);
	}
	if (q->wake_request) {
		WRITE_ONCE(q->wake_request, false);
		return -ECANCELED;
	}
	if (w->missed)
		return KEVENT_SLEPT_LOOK;
	/* As long as others look, nobody knows that nothing is ready. */
	if (timed_out && (!q->nr_taken || kevent_gives_up(looks)))
		return -ETIME;
	if (kevent_is_interrupted())
		return -EINTR;
	kevent_join(q, w);
	return KEVENT_SLEEPS_ON;
}

/* Sleep until woken, whatever for. Returns whether the time is over, as it may be before. */
static bool kevent_sleep_once(struct kevent_queue *q,
			      const struct kevent_waiter *w,
			      const struct kevent_deadline *until, u32 window,
			      bool timed_out, struct kevent_looks *looks)
{
	if (unlikely(kevent_is_member(w)))
		kevent_limit_rest(w->news->member);
	if (timed_out) {
		kevent_wait_for_looks(looks);
		return true;
	}
	return window ? kevent_coalesce_block(q, window, until) :
			kevent_block(until);
}

/**
 * kevent_sleep - wait until there is something to collect
 * @q: the queue
 * @news: what a consumer of the ring waits for. NULL for others
 * @until: how long
 * @looks: of the call
 *
 * A call that may not wait waits all the same while others look at watches: they may be
 * ready. If a ->poll() does not return, that ends after %KEVENT_LOOKS_PATIENCE.
 *
 * Consumers sleep exclusively, the oldest is woken first. One that is woken but
 * finds the ring full hands the event on to one that needs no ring.
 *
 * Return: 0 to collect, %KEVENT_SLEPT_LOOK to collect level watches as well, 1 when
 * there are @news and nothing is to be collected, -ECANCELED when a wake-up was
 * requested, -ETIME, -EINTR.
 */
int kevent_sleep(struct kevent_queue *q, const struct kevent_news *news,
		 const struct kevent_deadline *until,
		 struct kevent_looks *looks)
{
	struct kevent_waiter w __uninitialized;
	bool timed_out = until->nowait || looks->over;
	struct pid *last = NULL;
	unsigned long flags;
	u32 window;
	int ret;

	kevent_waiter_init(&w, news);
	kevent_busy_wait(q, news, until);
	kevent_window(q, KEVENT_WINDOW_SLEEP);
	spin_lock_irqsave(&q->ready_lock, flags);
	if (news)
		last = kevent_follow(q, !until->nowait);
	w.missed = kevent_missed_look(q, looks);
	while ((ret = kevent_sleep_locked(q, &w, timed_out, looks)) >=
	       KEVENT_SLEEPS_ON) {
		if (unlikely(ret == KEVENT_FREEZES)) {
			spin_unlock_irqrestore(&q->ready_lock, flags);
			kevent_freeze();
			spin_lock_irqsave(&q->ready_lock, flags);
			w.missed |= kevent_missed_look(q, looks);
			continue;
		}
		window = timed_out ? kevent_coalesce_not(q, &w) :
				     kevent_coalesce_begin(q, &w);
		spin_unlock_irqrestore(&q->ready_lock, flags);
		kevent_window(q, KEVENT_WINDOW_ASLEEP);
		timed_out = kevent_sleep_once(q, &w, until, window, timed_out,
					      looks);
		kevent_recheck_signals();
		kevent_window(q, KEVENT_WINDOW_AWOKE);
		/* Pairs with kevent_wake_waiter(). */
		if (smp_load_acquire(&w.done)) {
			ret = 1;
			goto out;
		}
		spin_lock_irqsave(&q->ready_lock, flags);
		kevent_coalesce_end(q, &w);
		/* One that slept when they began to look has missed nothing. */
		w.missed = kevent_missed_look(q, looks) && w.asks;
		looks->over = false;
		ret = kevent_awoke(q, &w);
		if (ret)
			break;
	}
	spin_unlock_irqrestore(&q->ready_lock, flags);
out:
	trace_kevent_wait(q, news, ret);
	put_pid(last);
	return ret;
}
