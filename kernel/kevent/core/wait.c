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
#include "consumer.h"
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

/* Is there a slot free? A ring that can't be read is not for us to deal with. */
static bool kevent_has_room(struct kevent_queue *q)
{
	return kring_free_slots(&q->ring) || !kevent_ring_here(q) ||
	       kring_sync(&q->ring) || kring_free_slots(&q->ring);
}

/* Does the ring hold what a consumer waits for, or all it will ever hold? */
static bool kevent_news_there(struct kevent_queue *q,
			      const struct kevent_consumer *c)
{
	u32 stored = (u32)q->ring.kidx - c->old_kidx;

	lockdep_assert_held(&q->ready_lock);

	return stored >= c->min_nr || (stored && !kevent_has_room(q));
}

/* kevent_stored() with the lock */
u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return (u32)q->ring.kidx - old_kidx;
}

/* kevent_has_news() when there are some, but too few: the ring may be full */
static noinline bool kevent_has_some_news(struct kevent_queue *q,
					  const struct kevent_consumer *c)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return kevent_news_there(q, c);
}

/*
 * Is a consumer of the ring content? When the ring is full, any news is enough. A position
 * that was seen is not taken back, and what comes behind this look is seen before the sleep.
 */
static bool kevent_has_news(struct kevent_queue *q,
			    const struct kevent_consumer *c)
{
	u32 stored = kevent_stored(q, c->old_kidx);

	if (likely(!stored) || stored >= c->min_nr)
		return stored;
	return kevent_has_some_news(q, c);
}

/* May a consumer go on? */
static bool kevent_may_collect(struct kevent_queue *q,
			       const struct kevent_consumer *c)
{
	bool ring = kevent_wants_ring(q, c);

	lockdep_assert_held(&q->ready_lock);

	if (ring && kevent_news_there(q, c))
		return true;
	if (list_empty(&q->ready))
		return false;
	return !ring || kevent_has_room(q);
}

/*
 * A request that was made of a consumer ends its wait whatever else has happened.
 * Wake another one for the events.
 */
static bool kevent_is_requested(struct kevent_queue *q,
				const struct kevent_consumer *c)
{
	lockdep_assert_held(&q->ready_lock);

	if (c->requested && !list_empty(&q->ready) && !q->nr_woken) {
		kevent_wake(q, KEVENT_ANY);
		kevent_more_left(q);
	}
	return c->requested;
}

/*
 * What to do when the wait is over. Another consumer may be faster, and leave a level
 * watch to look at: one that was woken to look does so in any case.
 */
static enum kevent_slept kevent_next_step(struct kevent_queue *q,
					  const struct kevent_consumer *c)
{
	if (list_empty(&q->ready))
		return KEVENT_SLEPT_SATISFIED;
	if (c->look || c->missed)
		return KEVENT_SLEPT_RECHECK;
	/* As for __kevent_collect(), which follows */
	if (unlikely(fatal_signal_pending(current)))
		return KEVENT_SLEPT_COLLECT;
	return kevent_wants_one(q, c) && kevent_hit_late(q) ?
	       KEVENT_SLEPT_SATISFIED : KEVENT_SLEPT_COLLECT;
}

/*
 * A consumer is awake and has the lock. Returns whether its wait is over, with @ret as of
 * kevent_sleep(), or whether it has to look at the queue. It may have come for the lock
 * before the one that woke it had stored that it is done.
 */
static bool kevent_awoke(struct kevent_queue *q, struct kevent_consumer *c,
			 int *ret)
{
	lockdep_assert_held(&q->ready_lock);

	if (c->done) {
		*ret = KEVENT_SLEPT_SATISFIED;
		return true;
	}
	if (!c->woken)
		kevent_sleepers_del(q, c);
	q->nr_asleep--;
	q->nr_woken -= c->woken;
	if (unlikely(q->wake_rest))
		kevent_wake_rest(q);
	if (!c->look || list_empty(&q->level) || c->requested)
		return false;
	/* A level watch may be ready for more than one consumer. */
	*ret = KEVENT_SLEPT_RECHECK;
	return true;
}

/*
 * Was a level watch off the lists, because another consumer looked at it, when this one
 * collected? That was before ready_lock: if that is not known yet, a watch that is
 * listed may be one.
 */
static bool kevent_missed_look(const struct kevent_queue *q,
			       struct kevent_consumer *c)
{
	u32 seen = c->looks;

	lockdep_assert_held(&q->ready_lock);

	c->looks = q->looks;
	return seen == KEVENT_LOOKS_UNKNOWN ? q->nr_listed : seen != q->looks;
}

/*
 * May a call that slept, or was to look, and found nothing go on? What was ready may turn out
 * not to be, again and again. Returns 0 to call kevent_sleep(), or -EINTR, -ETIME.
 */
static int kevent_try_again(struct kevent_consumer *c)
{
	int err = kevent_deadline_over(&c->until);

	c->over = err == -ETIME;
	return c->over && c->looks_left-- ? 0 : err;
}

/* Has a call waited for others to come back for as long as it may? */
static bool kevent_gives_up(const struct kevent_consumer *c)
{
	return c->patient && time_after_eq(jiffies, c->patience);
}

/* A call whose time is over waits for others to come back. */
static void kevent_wait_for_looks(struct kevent_consumer *c)
{
	if (!c->patient) {
		c->patient = true;
		c->patience = jiffies + KEVENT_LOOKS_PATIENCE;
	}
	schedule_timeout(max((long)(c->patience - jiffies), 0L));
}

/*
 * A consumer is to be frozen, and takes neither what it was woken for nor what was held back
 * until it is. It sleeps on no list meanwhile, so events are for others.
 */
static void kevent_sleep_frozen(struct kevent_queue *q, struct kevent_consumer *c)
	__must_hold(&q->ready_lock)
{
	kevent_pass_on(q);
	spin_unlock_irq(&q->ready_lock);
	kevent_freeze();
	spin_lock_irq(&q->ready_lock);
	c->missed |= kevent_missed_look(q, c);
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
static int kevent_sleep_locked(struct kevent_queue *q, struct kevent_consumer *c,
			       bool timed_out, bool *sleep)
{
	*sleep = false;
	if (kevent_is_requested(q, c))
		return -ECANCELED;
	while (unlikely(freezing(current)))
		kevent_sleep_frozen(q, c);
	kevent_ask(q);
	/* Nobody sleeps beside what it can take, not even until others come back. */
	if ((!c->over || q->nr_taken) && kevent_may_collect(q, c))
		return kevent_next_step(q, c);
	if (!list_empty(&q->ready)) {
		kevent_wake(q, KEVENT_OF_BUFFER);
		kevent_more_left(q);
	}
	if (unlikely(q->wake_request)) {
		if (kevent_take_request(q))
			return -ECANCELED;
		if (!timed_out && !c->missed)
			return -ETIME;
	}
	if (c->missed)
		return KEVENT_SLEPT_RECHECK;
	/* As long as others look, nobody knows that nothing is ready. */
	if (timed_out && (!q->nr_taken || kevent_gives_up(c)))
		return -ETIME;
	if (kevent_is_interrupted())
		return -EINTR;
	__set_current_state(TASK_INTERRUPTIBLE);
	c->woken = false;
	c->look = false;
	kevent_sleepers_add(q, c);
	*sleep = true;
	return 0;
}

/* Sleep until woken, whatever for. Returns whether the time is over, as it may be before. */
static bool kevent_sleep_once(struct kevent_queue *q, struct kevent_consumer *c,
			      u32 window, bool timed_out)
{
	if (unlikely(c->member))
		kevent_limit_rest(c->member);
	if (timed_out) {
		kevent_wait_for_looks(c);
		return true;
	}
	return window ? kevent_coalesce_block(q, window, &c->until) :
			kevent_schedule(&c->until);
}

/*
 * Wait until there is something to collect. A call that may not wait waits all the same while
 * others look at watches: see deliver.c.
 *
 * Returns an &enum kevent_slept, or -ECANCELED when a wake-up was requested, -ETIME, -EINTR.
 */
static int kevent_sleep(struct kevent_queue *q, struct kevent_consumer *c)
{
	bool timed_out = c->until.nowait || c->over;
	bool sleep;
	u32 window;
	int ret;

	c->measured = false;
	c->requested = false;
	c->woken = false;
	c->look = false;
	c->done = false;
	kevent_busy_wait(q, c);
	kevent_testpoint(q, KEVENT_TESTPOINT_SLEEP);
	spin_lock_irq(&q->ready_lock);
	c->missed = kevent_missed_look(q, c);
	for (;;) {
		ret = kevent_sleep_locked(q, c, timed_out, &sleep);
		if (!sleep)
			break;
		window = kevent_coalesce_begin(q, c, timed_out);
		spin_unlock_irq(&q->ready_lock);
		kevent_testpoint(q, KEVENT_TESTPOINT_ASLEEP);
		timed_out = kevent_sleep_once(q, c, window, timed_out);
		kevent_recheck_signals();
		kevent_testpoint(q, KEVENT_TESTPOINT_AWOKE);
		/* Pairs with kevent_wake_waiter(). */
		if (smp_load_acquire(&c->done)) {
			ret = KEVENT_SLEPT_SATISFIED;
			goto out;
		}
		spin_lock_irq(&q->ready_lock);
		kevent_coalesce_end(q, c);
		/* One that slept when they began to look has missed nothing. */
		c->missed = kevent_missed_look(q, c) && c->asks;
		c->over = false;
		if (kevent_awoke(q, c, &ret))
			break;
	}
	spin_unlock_irq(&q->ready_lock);
out:
	trace_kevent_wait(q, kevent_wants_ring(q, c), ret);
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
static int kevent_park(struct kevent_queue *q, struct kevent_consumer *c)
{
	struct kevent_member *m = c->member;
	bool timed_out = c->until.nowait;
	int ret;

	for (;;) {
		scoped_guard(spinlock_irqsave, &q->ready_lock)
			ret = kevent_park_locked(q, m, timed_out);
		if (ret != KEVENT_PARKED)
			return ret;
		kevent_testpoint(q, KEVENT_TESTPOINT_PARKED);
		timed_out = kevent_schedule(&c->until);
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
static int kevent_park_enter(struct kevent_queue *q, struct kevent_consumer *c)
{
	int ret;

	if (!kevent_limit_park(c->member, -EAGAIN))
		return KEVENT_SLEPT_COLLECT;
	ret = kevent_park(q, c);
	kevent_limit_go_on(c->member);
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
static int kevent_park_awoke(struct kevent_queue *q, struct kevent_consumer *c,
			     int ret)
{
	if (!c->member->waits)
		return ret;
	if (ret >= 0)
		return kevent_park_enter(q, c) ?: ret;
	kevent_limit_go_on(c->member);
	return ret;
}

/* The loop */

/* Has a consumer what it waits for? */
static bool kevent_is_content(struct kevent_queue *q,
			      const struct kevent_consumer *c)
{
	return kevent_wants_ring(q, c) ? kevent_has_news(q, c) :
					 (u32)c->to->kidx >= c->min_nr;
}

/*
 * Sleep and collect until the ring or a buffer has what a consumer wants. A first collection
 * returned @nr. Returns 0, or what ended the wait early: -ETIME, -ECANCELED, -EINTR, -EFAULT.
 * Entries may have been stored in any case.
 */
static int kevent_wait_loop(struct kevent_queue *q, struct kevent_consumer *c,
			    int nr)
{
	const bool of_ring = kevent_wants_ring(q, c);
	bool empty, first = true;
	int slept;

	c->looks = KEVENT_LOOKS_UNKNOWN;
	c->looks_left = KEVENT_LOOKS_LEFT;
	c->over = false;
	c->patient = false;
	while (nr >= 0 && !kevent_is_content(q, c)) {
		/* Others may want what is not enough for this one. */
		if (nr && of_ring) {
			kevent_testpoint(q, KEVENT_TESTPOINT_STORED);
			kevent_wake_others(q, nr);
		}
		slept = first ? 0 : kevent_try_again(c);
		if (!slept)
			slept = kevent_sleep(q, c);
		if (unlikely(c->member))
			slept = kevent_park_awoke(q, c, slept);
		if (slept < 0 || slept == KEVENT_SLEPT_SATISFIED)
			return min(slept, 0);
		first = false;
		/* One call reports a level watch once to a buffer. */
		empty = of_ring || !c->to->kidx;
		nr = kevent_collect(q, c->to, c->max,
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
int kevent_enter(struct kevent_queue *q, struct kevent_consumer *c)
{
	if (likely(!c->member))
		return 0;
	kevent_deadline_start(&c->until);
	return min(kevent_park_enter(q, c), 0);
}

/*
 * A first collection into the ring or a buffer was not enough, and returned @ret. Wait for
 * @c->min_nr events, or for any after @min_wait_ns, unless that is 0. Returns what
 * kevent_wait_loop() does.
 */
static int kevent_wait_for(struct kevent_queue *q, struct kevent_consumer *c,
			   u64 min_wait_ns, int ret)
{
	struct kevent_deadline last __uninitialized;
	bool sooner = false;

	kevent_note_taker(q);
	kevent_deadline_start(&c->until);
	c->task = current;
	/* Who waits without a limit is no member of this queue's group. */
	if (kevent_may_be_member() && !c->member && !c->until.nowait &&
	    kevent_limit_peek(&q->limit))
		kevent_limit_leave(q->limit);
	if (unlikely(c->min_nr > 1) && min_wait_ns) {
		last = c->until;
		sooner = kevent_deadline_bring_forward(&c->until, min_wait_ns);
	}
	for (;;) {
		ret = kevent_wait_loop(q, c, ret);
		/* A request leaves whatever is ready, see kevent_is_requested(). */
		if (unlikely(ret == -ECANCELED))
			kevent_say_more(q);
		if (likely(ret != -ETIME) || !sooner)
			return ret;
		sooner = false;
		c->until = last;
		c->min_nr = 1;
		ret = kevent_enter(q, c);
		if (ret)
			return ret;
	}
}

/**
 * kevent_wait_buffer - have a buffer filled, and wait for that
 * @q: the queue
 * @c: the consumer, with a buffer
 *
 * Return: as sys_kevent_get_events().
 */
int kevent_wait_buffer(struct kevent_queue *q, struct kevent_consumer *c)
{
	int ret;

	kevent_awake_begin(q);
	ret = kevent_collect(q, c->to, c->max, true);
	kevent_awake_end(q);
	if (likely(ret < 0 || ret >= (int)c->min_nr))
		return ret;
	ret = kevent_wait_for(q, c, 0, ret);
	if (c->to->kidx || ret == -ETIME || ret == -ECANCELED)
		return c->to->kidx;
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
 * @c: the consumer
 * @ret: what has ended the wait: 0 or -errno
 *
 * Return: as sys_kevent_wait().
 */
int kevent_wait_end(struct kevent_queue *q, const struct kevent_consumer *c, int ret)
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
	if (kevent_is_interrupted() && !c->until.nowait && ret != -ETIME &&
	    !kevent_has_unread(q))
		return -EINTR;
	stored = kevent_stored(q, c->old_kidx);
	if (stored > INT_MAX)
		return -EINVAL;
	return stored || ret == -ETIME ? stored : ret;
}

/**
 * kevent_wait_ring - have the ring filled, and wait for that, after kevent_awake_begin()
 * @q: the queue, whose ring is in the address space of the caller
 * @c: the consumer, but for what it moves events to
 * @min_wait_ns: how long it waits for more than one
 *
 * Return: as sys_kevent_wait().
 */
int kevent_wait_ring(struct kevent_queue *q, struct kevent_consumer *c, u64 min_wait_ns)
{
	u32 stored;
	int ret;

	c->to = &q->ring;
	c->max = min(c->max, q->ring.size);
	c->min_nr = clamp(c->min_nr, 1U, q->ring.size);
	ret = kevent_collect(q, &q->ring, c->max, true);
	kevent_awake_end(q);
	stored = kevent_stored(q, c->old_kidx);
	if (stored >= c->min_nr)
		return stored > INT_MAX ? -EINVAL : stored;
	ret = kevent_wait_for(q, c, min_wait_ns, ret);
	stored = kevent_stored(q, c->old_kidx);
	if (likely(!ret && stored <= INT_MAX && !signal_pending(current)))
		return stored;
	return kevent_wait_end(q, c, ret);
}
