// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that wait: a sleep, the wait of a member of a group, and the loops of both
 * calls
 *
 * A consumer that is to be frozen, by a suspend or by the freezer of cgroup version 1, is
 * no sleeper meanwhile. Such a freezer finds TASK_FREEZABLE tasks asleep and leaves them
 * where they are. wake_up_process() says of them that it has woken them, and an event
 * would wait until they are thawed, as would every pass-on for want of nr_woken to be 0.
 * So nobody here sleeps with that state. The freezer wakes the thread; it leaves its list,
 * passes on if it was woken for something, and calls kevent_freeze(). After that it
 * collects, and sleeps on, and its wait has not ended. Members that are parked and threads
 * that serve chains do likewise. The mark of a signal that the freezer sets is none for
 * kevent_is_interrupted().
 *
 * A thread whose cgroup has used up its cpu.max is a waiter like any other. The scheduler
 * does not say so, and its events are as late as the rest of the period is long. Each
 * event that comes meanwhile wakes somebody else. Events that one of these leaves wait for
 * the thread, too, because nr_woken says that it is on its way.
 *
 * A mark with KEVENT_REQ_HANDOFF sets a bit of the task that makes it, and kevent_wake()
 * then asks for this CPU by __wake_up_on_current_cpu(). The bit is in the task, and not an
 * argument, because the mark may be one of an eventfd: between it and the watch is a wait
 * queue. An interrupt ignores the bit of the task that it interrupts. Such a change of
 * kevent_wait() is made in the other queue as kevent_ctl() would make it, so the caller
 * needs nothing but its descriptor, and gets no lock of two queues at once.
 */

#include <linux/freezer.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/sched/signal.h>
#include <trace/events/kevent.h>

#include "busy_poll.h"
#include "deadline.h"
#include "max_running.h"
#include "queue.h"
#include "report.h"
#include "ring_mapping.h"
#include "testpoint.h"
#include "wait.h"
#include "wake.h"
#include "wake_coalesce.h"
#include "wakeup_source.h"

/**
 * enum kevent_slept - what a consumer does after a sleep, unless that has failed
 * @KEVENT_SLEPT_COLLECT:	it collects
 * @KEVENT_SLEPT_SATISFIED:	nothing: the ring has its news, and there is nothing to collect
 * @KEVENT_SLEPT_RECHECK:	it collects level watches as well
 */
enum kevent_slept {
	KEVENT_SLEPT_COLLECT,
	KEVENT_SLEPT_SATISFIED,
	KEVENT_SLEPT_RECHECK,
};

/* Of &kevent_queue.looks: never a value of it */
#define KEVENT_LOOKS_UNKNOWN	0U
/*
 * How often a call whose time is over collects again because others look all the time. A
 * file whose ->poll() fires its own watch would have it do so for ever.
 */
#define KEVENT_LOOKS_LEFT	1000U

/*
 * How long, in jiffies, a call whose time is over waits for others who look at watches: all
 * of its waits together
 */
#define KEVENT_LOOKS_PATIENCE	(3 * HZ)

/**
 * struct kevent_looks - what a call that found nothing knows of looks by others
 * @seen:	&kevent_queue.looks when it last asked, or %KEVENT_LOOKS_UNKNOWN
 * @left:	how often more it may ask when its time is over
 * @over:	its time is over: it collects for what others have looked at, and for
 *		nothing else
 * @waits:	its time is over, and it has begun to wait for others to come back
 * @until:	when it gives up, in jiffies, if it @waits
 */
struct kevent_looks {
	u32		seen;
	u32		left;
	bool		over;
	bool		waits;
	unsigned long	until;
};

#define KEVENT_LOOKS_INIT						\
	{ .seen = KEVENT_LOOKS_UNKNOWN, .left = KEVENT_LOOKS_LEFT }

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

/* kevent_stored() with the lock */
u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return (u32)q->ring.kidx - old_kidx;
}

/* kevent_has_news() when there are some, but too few: the ring may be full */
static noinline bool kevent_has_some_news(struct kevent_queue *q,
					  const struct kevent_news *news)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return kevent_news_there(q, news);
}

/*
 * Is a consumer of the ring content? When the ring is full, any news is enough. A position
 * that was seen is not taken back, and what comes behind this look is seen before the sleep.
 */
static bool kevent_has_news(struct kevent_queue *q,
			    const struct kevent_news *news)
{
	u32 stored = kevent_stored(q, news->old_kidx);

	if (likely(!stored) || stored >= news->min_nr)
		return stored;
	return kevent_has_some_news(q, news);
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

/*
 * A request that was made of a consumer ends its wait whatever else has happened.
 * Wake another one for the events.
 */
static bool kevent_is_requested(struct kevent_queue *q,
				const struct kevent_waiter *w)
{
	lockdep_assert_held(&q->ready_lock);

	if (w->requested && !list_empty(&q->ready) && !q->nr_woken) {
		kevent_wake(q, KEVENT_ANY);
		kevent_more_left(q);
	}
	return w->requested;
}

/* Would one event, stored now, end the wait? A member may have to park first. */
static bool kevent_wants_one(const struct kevent_waiter *w)
{
	return w->news && w->news->min_nr == 1 && !w->news->member;
}

/*
 * What to do when the wait is over. Another consumer may be faster, and leave a level
 * watch to look at: one that was woken to look does so in any case.
 */
static enum kevent_slept kevent_next_step(struct kevent_queue *q,
					  const struct kevent_waiter *w)
{
	if (list_empty(&q->ready))
		return KEVENT_SLEPT_SATISFIED;
	if (w->look || w->missed)
		return KEVENT_SLEPT_RECHECK;
	/* As for __kevent_collect(), which follows */
	if (unlikely(fatal_signal_pending(current)))
		return KEVENT_SLEPT_COLLECT;
	return kevent_wants_one(w) && kevent_hit_late(q) ?
	       KEVENT_SLEPT_SATISFIED : KEVENT_SLEPT_COLLECT;
}

/*
 * A consumer is awake and has the lock. Returns whether its wait is over, with @ret as of
 * kevent_sleep(), or whether it has to look at the queue. It may have come for the lock
 * before the one that woke it had stored that it is done.
 */
static bool kevent_awoke(struct kevent_queue *q, struct kevent_waiter *w,
			 int *ret)
{
	lockdep_assert_held(&q->ready_lock);

	if (w->done) {
		*ret = KEVENT_SLEPT_SATISFIED;
		return true;
	}
	if (!w->woken)
		kevent_sleepers_del(q, w);
	q->nr_asleep--;
	q->nr_woken -= w->woken;
	if (unlikely(q->wake_rest))
		kevent_wake_rest(q);
	if (!w->look || list_empty(&q->level) || w->requested)
		return false;
	/* A level watch may be ready for more than one consumer. */
	*ret = KEVENT_SLEPT_RECHECK;
	return true;
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

/*
 * May a call that slept, or was to look, and found nothing go on? What was ready may turn out
 * not to be, again and again. Returns 0 to call kevent_sleep(), or -EINTR, -ETIME.
 */
static int kevent_try_again(const struct kevent_deadline *until,
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
static void kevent_sleep_frozen(struct kevent_queue *q, struct kevent_waiter *w,
				struct kevent_looks *looks)
	__must_hold(&q->ready_lock)
{
	kevent_pass_on(q);
	spin_unlock_irq(&q->ready_lock);
	kevent_freeze();
	spin_lock_irq(&q->ready_lock);
	w->missed |= kevent_missed_look(q, looks);
}

/*
 * Takes a request for the next consumer that would sleep. The other one, for all, is not
 * taken: nobody clears it, so a thread that comes at any time finds it.
 */
static bool kevent_take_request(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (q->wake_request != KEVENT_REQUEST_NEXT)
		return false;
	WRITE_ONCE(q->wake_request, 0);
	return true;
}

/*
 * Has a consumer to @sleep? It is among the sleepers then. If not, returns what
 * kevent_sleep() does.
 */
static int kevent_sleep_locked(struct kevent_queue *q, struct kevent_waiter *w,
			       bool timed_out, struct kevent_looks *looks,
			       bool *sleep)
{
	*sleep = false;
	if (kevent_is_requested(q, w))
		return -ECANCELED;
	while (unlikely(freezing(current)))
		kevent_sleep_frozen(q, w, looks);
	kevent_ask(q);
	/* Nobody sleeps beside what it can take, not even until others come back. */
	if ((!looks->over || q->nr_taken) && kevent_may_collect(q, w->news))
		return kevent_next_step(q, w);
	if (!list_empty(&q->ready)) {
		kevent_wake(q, KEVENT_OF_BUFFER);
		kevent_more_left(q);
	}
	if (unlikely(q->wake_request)) {
		if (kevent_take_request(q))
			return -ECANCELED;
		if (!timed_out && !w->missed)
			return -ETIME;
	}
	if (w->missed)
		return KEVENT_SLEPT_RECHECK;
	/* As long as others look, nobody knows that nothing is ready. */
	if (timed_out && (!q->nr_taken || kevent_gives_up(looks)))
		return -ETIME;
	if (kevent_is_interrupted())
		return -EINTR;
	__set_current_state(TASK_INTERRUPTIBLE);
	w->woken = false;
	w->look = false;
	kevent_sleepers_add(q, w);
	*sleep = true;
	return 0;
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
			kevent_schedule(until);
}

/*
 * Wait until there is something to collect. @w is of the caller, and @news what a consumer
 * of the ring waits for, NULL for others.
 *
 * A call that may not wait waits all the same while others look at watches: see deliver.c.
 *
 * Returns an &enum kevent_slept, or -ECANCELED when a wake-up was requested, -ETIME, -EINTR.
 */
static int kevent_sleep(struct kevent_queue *q, struct kevent_waiter *w,
			const struct kevent_news *news,
			const struct kevent_deadline *until,
			struct kevent_looks *looks)
{
	bool timed_out = until->nowait || looks->over;
	bool sleep;
	u32 window;
	int ret;

	kevent_waiter_init(w, news);
	kevent_busy_wait(q, news, until);
	kevent_testpoint(q, KEVENT_TESTPOINT_SLEEP);
	spin_lock_irq(&q->ready_lock);
	w->missed = kevent_missed_look(q, looks);
	for (;;) {
		ret = kevent_sleep_locked(q, w, timed_out, looks, &sleep);
		if (!sleep)
			break;
		window = kevent_coalesce_begin(q, w, timed_out);
		spin_unlock_irq(&q->ready_lock);
		kevent_testpoint(q, KEVENT_TESTPOINT_ASLEEP);
		timed_out = kevent_sleep_once(q, w, until, window, timed_out,
					      looks);
		kevent_recheck_signals();
		kevent_testpoint(q, KEVENT_TESTPOINT_AWOKE);
		/* Pairs with kevent_wake_waiter(). */
		if (smp_load_acquire(&w->done)) {
			ret = KEVENT_SLEPT_SATISFIED;
			goto out;
		}
		spin_lock_irq(&q->ready_lock);
		kevent_coalesce_end(q, w);
		/* One that slept when they began to look has missed nothing. */
		w->missed = kevent_missed_look(q, looks) && w->asks;
		looks->over = false;
		if (kevent_awoke(q, w, &ret))
			break;
	}
	spin_unlock_irq(&q->ready_lock);
out:
	trace_kevent_wait(q, news, ret);
	return ret;
}

/*
 * Members of a group: consumers that wait until fewer of them run. Nothing is lost: when a
 * member stops to run, and one is parked, it is let go. It looks for events under ready_lock
 * before it sleeps among the others.
 */

/*
 * Returns 0 to go on, KEVENT_PARKED, or: -ECANCELED, -ETIME, -EINTR. A member that parks may
 * have been woken for an event. It is for one that runs, and for consumers without a limit,
 * if any sleep: see kevent_wake().
 */
static int kevent_park_locked(struct kevent_queue *q, struct kevent_member *m,
			      bool timed_out)
{
	int ret, why = timed_out ? -ETIME : 0;

	lockdep_assert_held(&q->ready_lock);

	if (q->wake_request) {
		/* The limit holds nobody any more: what is there is taken before the wait ends. */
		if (q->wake_request == KEVENT_REQUEST_ALL)
			return 0;
		why = -ECANCELED;
	} else if (!why && kevent_is_interrupted()) {
		why = -EINTR;
	}
	ret = kevent_limit_park(m, why);
	if (ret == -ECANCELED && !m->requested)
		kevent_take_request(q);
	if (ret == KEVENT_PARKED) {
		/* If memory is away no flag says so. Who runs calls before it sleeps. */
		kevent_leave(q, KEVENT_ANY);
		kevent_pass_on(q);
	}
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
	int ret;

	for (;;) {
		scoped_guard(spinlock_irqsave, &q->ready_lock)
			ret = kevent_park_locked(q, m, timed_out);
		if (ret != KEVENT_PARKED)
			return ret;
		kevent_testpoint(q, KEVENT_TESTPOINT_PARKED);
		timed_out = kevent_schedule(until);
		kevent_testpoint(q, KEVENT_TESTPOINT_UNPARKED);
		kevent_limit_unparked(m);
		kevent_recheck_signals();
		if (unlikely(freezing(current)))
			kevent_park_freeze(q, m);
	}
}

/*
 * Wait until a member may take events. Returns %KEVENT_SLEPT_COLLECT at once,
 * %KEVENT_SLEPT_RECHECK if it has been parked: then it looks at level watches, as others may
 * not have; -ECANCELED, -ETIME, -EINTR: it goes on without events.
 */
static int kevent_park_enter(struct kevent_queue *q, struct kevent_member *m,
			     const struct kevent_deadline *until)
{
	int ret;

	if (!kevent_limit_park(m, -EAGAIN))
		return KEVENT_SLEPT_COLLECT;
	ret = kevent_park(q, m, until);
	kevent_limit_go_on(m);
	kevent_testpoint(q, KEVENT_TESTPOINT_GO_ON);
	/* Others were not woken as long as it was parked: another one looks, or parks. */
	kevent_wake_left(q);
	return ret ?: KEVENT_SLEPT_RECHECK;
}

/*
 * A member has slept among the consumers, or found something, and @ret is what
 * kevent_sleep() has returned. Returns the same, or, if it has to park first, what
 * kevent_park_enter() does.
 */
static int kevent_park_awoke(struct kevent_queue *q, struct kevent_member *m,
			     const struct kevent_deadline *until, int ret)
{
	if (!m->waits)
		return ret;
	if (ret >= 0)
		return kevent_park_enter(q, m, until) ?: ret;
	kevent_limit_go_on(m);
	return ret;
}

/* The loop */

/* Has a consumer what it waits for? */
static bool kevent_is_content(struct kevent_queue *q, const struct kring *to,
			      const struct kevent_news *news)
{
	return kring_is_ring(to) ? kevent_has_news(q, news) :
				   (u32)to->kidx >= news->min_nr;
}

/*
 * Sleep and collect, @num events at a time, until the ring or a buffer has what a consumer
 * wants. A first collection returned @nr, and @w is of the caller. Returns 0, or what ended
 * the wait early: -ETIME, -ECANCELED, -EINTR, -EFAULT. Entries may have been stored in any
 * case.
 */
static int kevent_wait_loop(struct kevent_queue *q, struct kring *to, u32 num,
			    const struct kevent_news *news,
			    const struct kevent_deadline *until,
			    struct kevent_waiter *w, int nr)
{
	const struct kevent_news *of_ring = kring_is_ring(to) ? news : NULL;
	struct kevent_looks looks = KEVENT_LOOKS_INIT;
	bool empty, first = true;
	int slept;

	while (nr >= 0 && !kevent_is_content(q, to, news)) {
		/* Others may want what is not enough for this one. */
		if (nr && of_ring) {
			kevent_testpoint(q, KEVENT_TESTPOINT_STORED);
			kevent_wake_others(q, nr);
		}
		w->several = !of_ring && (u32)to->kidx + 1 < news->min_nr;
		slept = first ? 0 : kevent_try_again(until, &looks);
		if (!slept)
			slept = kevent_sleep(q, w, of_ring, until, &looks);
		if (unlikely(news->member))
			slept = kevent_park_awoke(q, news->member, until, slept);
		if (slept < 0 || slept == KEVENT_SLEPT_SATISFIED)
			return min(slept, 0);
		first = false;
		/* One call reports a level watch once to a buffer. */
		empty = of_ring || !to->kidx;
		nr = kevent_collect(q, to, num,
				    slept == KEVENT_SLEPT_RECHECK && empty);
		if (!nr && empty)
			kevent_awake_end(q);
	}
	return min(nr, 0);
}

/*
 * Wait until the limit lets a consumer go on, if one holds. Returns 0, or why it does not
 * go on: -ECANCELED, -ETIME or -EINTR.
 */
int kevent_enter(struct kevent_queue *q, const struct kevent_news *news,
		 struct kevent_deadline *until)
{
	if (likely(!news->member))
		return 0;
	kevent_deadline_start(until);
	return min(kevent_park_enter(q, news->member, until), 0);
}

/*
 * A first collection into the ring or a buffer was not enough, and returned @ret. Wait for
 * @news->min_nr events, or for any after @min_wait_ns, unless that is 0. Returns what
 * kevent_wait_loop() does.
 */
static int kevent_wait_for(struct kevent_queue *q, struct kring *to, u32 num,
			   struct kevent_news *news, u64 min_wait_ns,
			   struct kevent_deadline *until, int ret)
{
	struct kevent_waiter w __uninitialized;
	struct kevent_deadline sooner __uninitialized;
	const struct kevent_deadline *now = until;

	kevent_note_taker(q);
	kevent_deadline_start(until);
	/* Who waits without a limit is no member of this queue's group. */
	if (kevent_may_be_member() && !news->member && !until->nowait &&
	    kevent_limit_peek(&q->limit))
		kevent_limit_leave(q->limit);
	if (unlikely(news->min_nr > 1) &&
	    kevent_deadline_sooner(until, min_wait_ns, &sooner))
		now = &sooner;
	for (;;) {
		ret = kevent_wait_loop(q, to, num, news, now, &w, ret);
		/* A request leaves whatever is ready, see kevent_is_requested(). */
		if (unlikely(ret == -ECANCELED))
			kevent_say_more(q);
		if (likely(ret != -ETIME) || now == until)
			return ret;
		now = until;
		news->min_nr = 1;
		ret = kevent_enter(q, news, until);
		if (ret)
			return ret;
	}
}

/**
 * kevent_wait_buffer - have a buffer filled, and wait for that
 * @q: the queue
 * @buf: the buffer
 * @min_nr: how many events the caller waits for, at least 1
 * @until: how long it waits
 *
 * Return: as sys_kevent_get_events().
 */
int kevent_wait_buffer(struct kevent_queue *q, struct kring *buf, u32 min_nr,
		       struct kevent_deadline *until)
{
	struct kevent_news news = { .min_nr = min_nr };
	int ret;

	kevent_awake_begin(q);
	ret = kevent_collect(q, buf, buf->size, true);
	kevent_awake_end(q);
	if (likely(ret < 0 || ret >= (int)min_nr))
		return ret;
	ret = kevent_wait_for(q, buf, buf->size, &news, 0, until, ret);
	if (buf->kidx || ret == -ETIME || ret == -ECANCELED)
		return buf->kidx;
	return ret;
}

/* Entries in the ring that nobody has taken? */
static bool kevent_has_unread(struct kevent_queue *q)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	return kevent_unread(q);
}

/**
 * kevent_wait_end - the result of a wait for the ring
 * @q: the queue
 * @news: what the caller waited for
 * @until: how long
 * @ret: what has ended the wait: 0 or -errno
 *
 * Return: as sys_kevent_wait().
 */
int kevent_wait_end(struct kevent_queue *q, const struct kevent_news *news,
		    const struct kevent_deadline *until, int ret)
{
	u32 stored;

	/*
	 * A program that is executed keeps the descriptor, and nobody closes it for this thread.
	 * One that is killed after this look keeps an entry in the ring from others. The signal
	 * may be one that stops the thread, or the freezer's: then others take its entry.
	 */
	if (fatal_signal_pending(current))
		kevent_wake_left(q);
	else if (signal_pending(current))
		kevent_pass_unread(q);
	/* Whatever was stored: another thread may have taken it. */
	if (ret == -ECANCELED)
		return 0;
	if (kevent_is_interrupted() && !until->nowait && ret != -ETIME &&
	    !kevent_has_unread(q))
		return -EINTR;
	stored = kevent_stored(q, news->old_kidx);
	if (stored > INT_MAX)
		return -EINVAL;
	return stored || ret == -ETIME ? stored : ret;
}

/**
 * kevent_wait_ring - have the ring filled, and wait for that, after kevent_awake_begin()
 * @q: the queue, whose ring is in the address space of the caller
 * @num: move up to so many events into the ring
 * @news: what the caller waits for
 * @min_wait_ns: how long it waits for more than one
 * @until: how long it waits
 *
 * Return: as sys_kevent_wait().
 */
int kevent_wait_ring(struct kevent_queue *q, u32 num, struct kevent_news *news,
		     u64 min_wait_ns, struct kevent_deadline *until)
{
	u32 stored;
	int ret;

	num = min(num, q->ring.size);
	news->min_nr = clamp(news->min_nr, 1U, q->ring.size);
	ret = kevent_collect(q, &q->ring, num, true);
	kevent_awake_end(q);
	stored = kevent_stored(q, news->old_kidx);
	if (stored >= news->min_nr)
		return stored > INT_MAX ? -EINVAL : stored;
	ret = kevent_wait_for(q, &q->ring, num, news, min_wait_ns, until, ret);
	stored = kevent_stored(q, news->old_kidx);
	if (likely(!ret && stored <= INT_MAX && !signal_pending(current)))
		return stored;
	return kevent_wait_end(q, news, until, ret);
}
