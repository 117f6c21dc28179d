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
 * A mark with KEVENT_REQ_HANDOFF sets a bit of the task that makes it, and kevent_wake_one()
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
 * enum kevent_outcome - of a look at the queue, a sleep, or a wait until fewer run
 * @KEVENT_AWAKE:	it may be one for another consumer: this one looks at the queue
 * @KEVENT_ASLEEP:	there is nothing: it is on a list, for others to wake it
 * @KEVENT_COLLECT:	there is something to collect
 * @KEVENT_RELIST:	likewise, and level watches may be ready again
 * @KEVENT_STORED:	the ring has its entries, and there is nothing to collect
 * @KEVENT_TIMED_OUT:	the time is over
 * @KEVENT_INTERRUPTED:	a signal came
 * @KEVENT_REQUESTED:	it was asked to return
 *
 * The first two do not leave kevent_sleep() and kevent_park(). The last three end the wait.
 */
enum kevent_outcome {
	KEVENT_AWAKE,
	KEVENT_ASLEEP,
	KEVENT_COLLECT,
	KEVENT_RELIST,
	KEVENT_STORED,
	KEVENT_TIMED_OUT,
	KEVENT_INTERRUPTED,
	KEVENT_REQUESTED,
};

/* What the wait ends with, or 0 */
static int kevent_errno_of(enum kevent_outcome outcome)
{
	switch (outcome) {
	case KEVENT_TIMED_OUT:
		return -ETIME;
	case KEVENT_INTERRUPTED:
		return -EINTR;
	case KEVENT_REQUESTED:
		return -ECANCELED;
	default:
		return 0;
	}
}

/*
 * What a call whose time is over spends on polls by others, in milliseconds: each that it waits for
 * them to come back, one at least, and %KEVENT_TRY for each collection. A file whose ->poll() fires
 * its own watch, or does not return, would keep the call for ever.
 */
#define KEVENT_PATIENCE		3000
#define KEVENT_TRY		3

/* Find out whether a slot is free. A ring that can't be read is not for us to deal with. */
static bool kevent_find_room(struct kevent_queue *q)
{
	return kring_free_slots(&q->ring) || !kevent_ring_select(q) ||
	       kring_sync(&q->ring) || kring_free_slots(&q->ring);
}

/* Find out whether the ring holds what a consumer waits for, or all it will ever hold. */
static bool kevent_find_entries(struct kevent_queue *q, const struct kevent_consumer *c)
{
	u32 stored = (u32)q->ring.kidx - c->old_kidx;

	lockdep_assert_held(&q->ready_lock);

	return stored >= c->min_nr || (stored && !kevent_find_room(q));
}

/* kevent_stored() with the lock */
u32 kevent_stored_locked(struct kevent_queue *q, u32 old_kidx)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return (u32)q->ring.kidx - old_kidx;
}

/* Find out whether there is something for a consumer. */
static bool kevent_find_work(struct kevent_queue *q, const struct kevent_consumer *c)
{
	bool ring = kevent_wants_ring(q, c);

	lockdep_assert_held(&q->ready_lock);

	if (ring && kevent_find_entries(q, c))
		return true;
	if (list_empty(&q->ready))
		return false;
	return !ring || kevent_find_room(q);
}

/*
 * There is something for a consumer. Another one may be faster, and leave a level
 * watch to look at: one that was woken to look does so in any case.
 */
static enum kevent_outcome kevent_next_step(struct kevent_queue *q,
					    const struct kevent_consumer *c)
{
	if (list_empty(&q->ready))
		return KEVENT_STORED;
	if (c->recheck)
		return KEVENT_RELIST;
	/* As for __kevent_collect(), which follows */
	if (unlikely(fatal_signal_pending(current)))
		return KEVENT_COLLECT;
	return kevent_wants_one(q, c) && kevent_hit_late(q) ?
	       KEVENT_STORED : KEVENT_COLLECT;
}

/*
 * Have others polled watches since the consumer collected? A watch that was off the lists then
 * may be on one now. Before the first answer any watch that is queued may be one.
 */
static bool kevent_note_polls(const struct kevent_queue *q, struct kevent_consumer *c)
{
	bool missed = c->polls != q->polls;

	lockdep_assert_held(&q->ready_lock);

	c->polls = q->polls;
	return missed;
}

/*
 * A consumer is awake and has the lock. It may have come for the lock before the one that
 * woke it had stored that it is done.
 */
static enum kevent_outcome kevent_awoke(struct kevent_queue *q,
					struct kevent_consumer *c)
{
	lockdep_assert_held(&q->ready_lock);

	if (c->done)
		return KEVENT_STORED;
	if (!c->woken)
		kevent_sleepers_del(q, c);
	q->nr_asleep--;
	q->nr_woken -= c->woken;
	if (unlikely(q->wake_rest))
		kevent_wake_rest(q);
	/* One that slept when the polls began has missed nothing. */
	c->recheck |= kevent_note_polls(q, c) && c->asks;
	return KEVENT_AWAKE;
}

/*
 * A call that has slept, or was to look, found too little. What was ready may turn out not to
 * be, again and again. Returns %KEVENT_AWAKE to call kevent_sleep(), or what ends the wait.
 */
static enum kevent_outcome kevent_try_again(struct kevent_consumer *c)
{
	int err = kevent_deadline_over(&c->until);

	if (err == -EINTR)
		return KEVENT_INTERRUPTED;
	c->over = err;
	if (!c->over)
		return KEVENT_AWAKE;
	c->patience -= KEVENT_TRY;
	return c->patience <= 0 ? KEVENT_TIMED_OUT : KEVENT_AWAKE;
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
	c->recheck |= kevent_note_polls(q, c);
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

/* Look at the queue under the lock. If there is nothing, the consumer joins the sleepers. */
static enum kevent_outcome kevent_join(struct kevent_queue *q, struct kevent_consumer *c,
				       bool timed_out)
{
	bool recheck;

	if (c->requested) {
		/* That ends the wait whatever else has happened. Events are for others. */
		if (!list_empty(&q->ready) && !q->nr_woken)
			kevent_wake_one(q, KEVENT_ANY, false);
		return KEVENT_REQUESTED;
	}
	while (unlikely(freezing(current)))
		kevent_sleep_frozen(q, c);
	kevent_ask(q);
	recheck = c->recheck && q->nr_queued;
	/* Others count on the one that they have woken for level watches. */
	if (unlikely(c->woken && recheck))
		return KEVENT_RELIST;
	/* Nobody sleeps beside what it can take, not even until others come back. */
	if ((!c->over || q->nr_taken) && kevent_find_work(q, c))
		return kevent_next_step(q, c);
	if (!list_empty(&q->ready)) {
		kevent_wake_one(q, KEVENT_OF_BUFFER, false);
		kevent_more_left(q);
	}
	if (unlikely(q->wake_request)) {
		if (kevent_take_request(q))
			return KEVENT_REQUESTED;
		if (!timed_out && !recheck)
			return KEVENT_TIMED_OUT;
	}
	if (recheck)
		return KEVENT_RELIST;
	/* As long as others poll, nobody knows that nothing is ready. */
	if (timed_out && (!q->nr_taken || c->patience <= 0))
		return KEVENT_TIMED_OUT;
	if (kevent_is_interrupted())
		return KEVENT_INTERRUPTED;
	__set_current_state(TASK_INTERRUPTIBLE);
	c->woken = false;
	c->recheck = false;
	kevent_sleepers_add(q, c);
	return KEVENT_ASLEEP;
}

/* Others poll watches, and the time is over: wait for them, but not for ever. */
static void kevent_wait_for_polls(struct kevent_consumer *c)
{
	long span = msecs_to_jiffies(c->patience), left = schedule_timeout(span);

	c->patience -= max(1U, jiffies_to_msecs(span - left));
}

/* Sleep until woken, whatever for. Returns whether the time is over, as it may be before. */
static bool kevent_sleep_once(struct kevent_queue *q, struct kevent_consumer *c,
			      u32 window, bool timed_out)
{
	if (unlikely(c->member))
		kevent_limit_rest(c->member);
	if (timed_out) {
		kevent_wait_for_polls(c);
		return true;
	}
	return window ? kevent_coalesce_block(q, window, &c->until) :
			kevent_schedule(&c->until);
}

/*
 * Wait until there is something to collect. A call that may not wait waits all the same while
 * others look at watches: see deliver.c.
 */
static enum kevent_outcome kevent_sleep(struct kevent_queue *q,
					struct kevent_consumer *c)
{
	bool timed_out = c->until.nowait || c->over;
	enum kevent_outcome outcome;
	u32 window;

	c->measured = false;
	c->requested = false;
	c->woken = false;
	c->done = false;
	kevent_busy_wait(q, c);
	kevent_testpoint(q, KEVENT_TESTPOINT_SLEEP);
	spin_lock_irq(&q->ready_lock);
	c->recheck = kevent_note_polls(q, c);
	do {
		outcome = kevent_join(q, c, timed_out);
		if (outcome != KEVENT_ASLEEP)
			break;
		window = kevent_coalesce_begin(q, c, timed_out);
		spin_unlock_irq(&q->ready_lock);
		kevent_testpoint(q, KEVENT_TESTPOINT_ASLEEP);
		timed_out = kevent_sleep_once(q, c, window, timed_out);
		kevent_recheck_signals();
		kevent_testpoint(q, KEVENT_TESTPOINT_AWOKE);
		/* Pairs with kevent_wake_consumer(). */
		if (smp_load_acquire(&c->done)) {
			outcome = KEVENT_STORED;
			goto out;
		}
		spin_lock_irq(&q->ready_lock);
		kevent_coalesce_end(q, c);
		c->over = false;
		outcome = kevent_awoke(q, c);
	} while (outcome == KEVENT_AWAKE);
	spin_unlock_irq(&q->ready_lock);
out:
	trace_kevent_wait(q, kevent_wants_ring(q, c), kevent_errno_of(outcome));
	return outcome;
}

/*
 * Members of a group: consumers that wait until fewer of them run. Nothing is lost: when a
 * member stops to run, and one is parked, it is let go. It looks for events under ready_lock
 * before it sleeps among the others.
 */

/*
 * Returns %KEVENT_RELIST to go on, %KEVENT_ASLEEP if the member is parked, or what ends the
 * wait. One that parks may have been woken for an event. It is for one that runs, and for
 * consumers without a limit, if any sleep: see kevent_wake_one().
 */
static enum kevent_outcome kevent_park_locked(struct kevent_queue *q,
					      struct kevent_member *m, bool timed_out)
{
	enum kevent_outcome why = timed_out ? KEVENT_TIMED_OUT : KEVENT_ASLEEP;

	lockdep_assert_held(&q->ready_lock);

	if (q->wake_request) {
		/* The limit holds nobody any more: what is there is taken before the wait ends. */
		if (q->wake_request == KEVENT_REQUEST_ALL)
			return KEVENT_RELIST;
		why = KEVENT_REQUESTED;
	} else if (!timed_out && kevent_is_interrupted()) {
		why = KEVENT_INTERRUPTED;
	}
	switch (kevent_limit_enter(m, why == KEVENT_ASLEEP)) {
	case KEVENT_LIMIT_ADMITTED:
	case KEVENT_LIMIT_LOOK:
		return KEVENT_RELIST;
	case KEVENT_LIMIT_REQUESTED:
		return KEVENT_REQUESTED;
	case KEVENT_LIMIT_PARKED:
		/* If memory is away no flag says so. Who runs calls before it sleeps. */
		kevent_leave(q, KEVENT_ANY);
		kevent_pass_on(q);
		break;
	default:
		if (why == KEVENT_REQUESTED)
			kevent_take_request(q);
	}
	return why;
}

/* Returns what kevent_park_locked() does, but for %KEVENT_ASLEEP. */
static enum kevent_outcome kevent_park(struct kevent_queue *q,
				       struct kevent_consumer *c)
{
	struct kevent_member *m = c->member;
	bool timed_out = c->until.nowait;
	enum kevent_outcome outcome;

	for (;;) {
		scoped_guard(spinlock_irqsave, &q->ready_lock)
			outcome = kevent_park_locked(q, m, timed_out);
		if (outcome != KEVENT_ASLEEP)
			return outcome;
		kevent_testpoint(q, KEVENT_TESTPOINT_PARKED);
		timed_out = kevent_schedule(&c->until);
		kevent_testpoint(q, KEVENT_TESTPOINT_UNPARKED);
		kevent_limit_unparked(m);
		kevent_recheck_signals();
		/* It may have been let go: then another one is. */
		if (unlikely(freezing(current))) {
			kevent_limit_rest(m);
			kevent_wake_left(q);
			kevent_freeze();
		}
	}
}

/*
 * A member is about to take events. If it has slept it does not count, and what it found, as
 * @outcome says, is for it only if it is admitted. Returns @outcome if it is at once, or if that
 * ends its wait; %KEVENT_RELIST if it was parked: then it looks at level watches, as others may
 * not have; or what ended that.
 */
static enum kevent_outcome kevent_admit(struct kevent_queue *q, struct kevent_consumer *c,
					enum kevent_outcome outcome)
{
	if (kevent_errno_of(outcome)) {
		kevent_limit_go_on(c->member);
		return outcome;
	}
	if (kevent_limit_enter(c->member, false) == KEVENT_LIMIT_ADMITTED)
		return outcome;
	outcome = kevent_park(q, c);
	kevent_limit_go_on(c->member);
	kevent_testpoint(q, KEVENT_TESTPOINT_GO_ON);
	/* Others were not woken as long as it was parked: another one looks, or parks. */
	kevent_wake_left(q);
	return outcome;
}

/* The loop */

/*
 * kevent_find_entries() with the lock: some are there, but too few, or the ring is full. Not
 * in line, as it is rare.
 */
static noinline bool kevent_find_some(struct kevent_queue *q, const struct kevent_consumer *c)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return kevent_find_entries(q, c);
}

/*
 * Find out whether a consumer has what it waits for. When the ring is full, any entry is
 * enough. A position that was seen is not taken back, and what comes behind this look is seen
 * before the sleep.
 */
static bool kevent_find_enough(struct kevent_queue *q, const struct kevent_consumer *c)
{
	u32 stored;

	if (!kevent_wants_ring(q, c))
		return (u32)c->to->kidx >= c->min_nr;
	stored = kevent_stored(q, c->old_kidx);
	if (likely(!stored) || stored >= c->min_nr)
		return stored;
	return kevent_find_some(q, c);
}

/*
 * Collect again, after a sleep. One call reports a level watch once to a buffer. Returns what
 * kevent_collect() does.
 */
static int kevent_collect_again(struct kevent_queue *q, struct kevent_consumer *c,
				enum kevent_outcome outcome)
{
	bool empty = kevent_wants_ring(q, c) || !c->to->kidx;
	int nr = kevent_collect(q, c->to, c->max,
				empty && outcome == KEVENT_RELIST);

	if (!nr && empty)
		kevent_awake_end(q);
	return nr;
}

/*
 * The loop of both calls: a first collection returned @nr, and was not enough. Returns 0 when
 * the ring or the buffer has what a consumer wants, or what ended the wait early: -ETIME,
 * -ECANCELED, -EINTR, -EFAULT. Entries may have been stored in any case.
 */
static int kevent_wait_loop(struct kevent_queue *q, struct kevent_consumer *c,
			    int nr)
{
	enum kevent_outcome outcome = KEVENT_AWAKE;

	c->polls = 0;
	c->patience = KEVENT_PATIENCE;
	c->over = false;
	while (nr >= 0 && !kevent_find_enough(q, c)) {
		/* Others may want what is not enough for this one. */
		if (nr && kevent_wants_ring(q, c)) {
			kevent_testpoint(q, KEVENT_TESTPOINT_STORED);
			kevent_wake_others(q, nr);
		}
		/* Not before the first sleep: few calls read the clock. */
		if (outcome != KEVENT_AWAKE)
			outcome = kevent_try_again(c);
		if (outcome == KEVENT_AWAKE)
			outcome = kevent_sleep(q, c);
		if (unlikely(c->member) && c->member->waits)
			outcome = kevent_admit(q, c, outcome);
		switch (outcome) {
		case KEVENT_COLLECT:
		case KEVENT_RELIST:
			nr = kevent_collect_again(q, c, outcome);
			break;
		default:
			return kevent_errno_of(outcome);
		}
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
	return kevent_errno_of(kevent_admit(q, c, KEVENT_COLLECT));
}

/*
 * A first collection into the ring or a buffer returned @nr, and was not enough. Wait for
 * @c->min_nr events, or for any after @min_wait_ns, unless that is 0. Returns what
 * kevent_wait_loop() does.
 */
static int kevent_wait_for(struct kevent_queue *q, struct kevent_consumer *c,
			   u64 min_wait_ns, int nr)
{
	struct kevent_deadline last __uninitialized;
	bool sooner = false;
	int err;

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
	err = kevent_wait_loop(q, c, nr);
	if (unlikely(sooner && err == -ETIME)) {
		c->until = last;
		c->min_nr = 1;
		err = kevent_enter(q, c);
		if (err)
			return err;
		err = kevent_wait_loop(q, c, 0);
	}
	/* A request leaves whatever is ready, see kevent_join(): the ring says so. */
	if (unlikely(err == -ECANCELED))
		kevent_say_more(q);
	return err;
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

/* Find out whether the ring has entries that nobody has taken. */
static bool kevent_find_unread(struct kevent_queue *q)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	kevent_ring_sync(q);
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
	    !kevent_find_unread(q))
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
