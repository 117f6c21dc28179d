// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that wait: a sleep, the wait of a member of a group, and the loops of both
 * calls
 *
 * A consumer is not on the list of sleepers while it is frozen, by a suspend or by the freezer
 * of cgroup version 1. The freezer leaves TASK_FREEZABLE tasks asleep. wake_up_process() would
 * report such a task as woken, so its event would wait until it is thawed. nr_woken would count
 * it all the time, so no consumer would pass an event on. Therefore nobody here sleeps in that
 * state. The freezer wakes the thread, which leaves its list, passes on the event that it was
 * woken for, and calls kevent_freeze(). After that it collects and sleeps on: its wait has not
 * ended. Members that are parked and threads that serve chains do likewise. The freezer marks
 * the thread as if it had a signal, and kevent_is_interrupted() ignores that mark.
 *
 * A woken thread that is killed passes its event on. For one that is still in the kernel
 * __kevent_collect() does so, which runs next. If the entry is in the ring kevent_wait_end() wakes
 * others for what is unread. A thread that is killed after that keeps its entry from others until
 * the process has closed the descriptor: kevent_fop_flush().
 *
 * A thread whose cgroup has used up its cpu.max is a waiter like any other, because the
 * scheduler does not say so. Its event is late by the rest of the period. Each event that comes
 * meanwhile wakes another consumer. If that one leaves events behind they wait for the throttled
 * thread, too, because nr_woken says that it is on its way.
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
#include "deadline.h"
#include "max_running.h"
#include "queue.h"
#include "queue_ring.h"
#include "report.h"
#include "testpoint.h"
#include "wait.h"
#include "wake.h"
#include "wake_coalesce.h"
#include "wakeup_source.h"

/**
 * enum kevent_outcome - of a check of the queue, a sleep, or a wait until fewer run
 * @KEVENT_AWAKE:	the consumer is awake, and checks the queue again
 * @KEVENT_ASLEEP:	there is nothing: it is on a list, for others to wake it
 * @KEVENT_COLLECT:	there is something to collect
 * @KEVENT_RELIST:	likewise, and level watches may be ready again
 * @KEVENT_STORED:	the ring has its entries, and there is nothing to collect
 * @KEVENT_TIMED_OUT:	the time is over
 * @KEVENT_INTERRUPTED:	a signal came
 * @KEVENT_REQUESTED:	it was asked to return
 *
 * The first two do not leave kevent_sleep() and kevent_park(). The last three end the wait early,
 * with an error.
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

/* The error that a wait ends with, or 0 */
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
 * A call whose time is over waits for watches that others poll. This is how long, in milliseconds.
 * A wait uses up its length, at least 1, and each collection uses up %KEVENT_TRY. Without a limit
 * a file whose ->poll() fires its own watch, or does not return, would keep the call for ever.
 */
#define KEVENT_PATIENCE		3000
#define KEVENT_TRY		3

/* Find out whether a slot is free, or the ring can't be read: a collection deals with that. */
static bool kevent_find_room(struct kevent_queue *q)
{
	return kring_free_slots(&q->ring) || !kevent_ring_select(q) ||
	       kring_sync(&q->ring) || kring_free_slots(&q->ring);
}

/* Find out whether the ring holds what a consumer waits for, or all it will ever hold. */
static bool kevent_find_entries(struct kevent_queue *q, const struct kevent_consumer *c)
{
	u32 stored = (u32)q->ring.kidx - c->old_kidx;

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
	bool ring = kevent_wants_ring(c);

	if (ring && kevent_find_entries(q, c))
		return true;
	if (list_empty(&q->ready))
		return false;
	return !ring || kevent_find_room(q);
}

/* There is something for a consumer. Another consumer may take it first. */
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
	return kevent_wants_one(c) && kevent_hit_late(q) ?
	       KEVENT_STORED : KEVENT_COLLECT;
}

/*
 * Have others polled watches since the consumer collected? A watch that was off the lists then
 * may be on one now. Before the first answer any watch that is queued may be one.
 */
static bool kevent_note_polls(const struct kevent_queue *q, struct kevent_consumer *c)
{
	bool missed = c->polls != q->polls;

	c->polls = q->polls;
	return missed;
}

/*
 * A consumer is awake and has the lock. Its waker wakes it first and stores @done after that, both
 * under the lock. So the consumer may have read @done too early, and reads it again.
 */
static enum kevent_outcome kevent_awoke(struct kevent_queue *q,
					struct kevent_consumer *c)
{
	if (c->done)
		return KEVENT_STORED;
	if (!c->woken)
		kevent_sleepers_del(q, c);
	q->nr_asleep--;
	q->nr_woken -= c->woken;
	if (unlikely(q->wake_rest))
		kevent_wake_rest(q);
	/* A consumer that was asleep when the polls began has missed nothing. */
	c->recheck |= kevent_note_polls(q, c) && c->asks;
	return KEVENT_AWAKE;
}

/*
 * A call has slept or collected, and has too few events. Watches may be reported and turn out
 * not to be ready, again and again, so the time is checked here. Returns %KEVENT_AWAKE to call
 * kevent_sleep(), or the outcome that ends the wait.
 */
static enum kevent_outcome kevent_try_again(struct kevent_consumer *c)
{
	if (kevent_is_interrupted())
		return KEVENT_INTERRUPTED;
	c->over = c->until.nowait || kevent_deadline_is_past(&c->until);
	if (!c->over)
		return KEVENT_AWAKE;
	c->patience -= KEVENT_TRY;
	return c->patience <= 0 ? KEVENT_TIMED_OUT : KEVENT_AWAKE;
}

/* A consumer is to be frozen: other consumers take the events. */
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
 * Take a request for the next consumer that would sleep. A request for all is not taken: nobody
 * clears it, so a thread that comes at any time finds it.
 */
static bool kevent_take_request(struct kevent_queue *q)
{
	if (q->wake_request != KEVENT_REQUEST_NEXT)
		return false;
	WRITE_ONCE(q->wake_request, 0);
	return true;
}

/* Check the queue under the lock. If there is nothing, the consumer joins the sleepers. */
static enum kevent_outcome kevent_join(struct kevent_queue *q, struct kevent_consumer *c,
				       bool timed_out)
{
	bool recheck;

	if (c->requested) {
		/* The request ends the wait even if there are events, which others take. */
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
	/* No consumer sleeps while there is an event for it, even if others poll watches. */
	if ((!c->over || q->nr_taken) && kevent_find_work(q, c))
		return kevent_next_step(q, c);
	if (!list_empty(&q->ready)) {
		kevent_wake_one(q, KEVENT_OF_BUFFER, false);
		kevent_more(q);
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

/* Sleep until woken, whatever for. Returns whether the time is over, as it may be before. */
static bool kevent_sleep_once(struct kevent_queue *q, struct kevent_consumer *c,
			      u32 window, bool timed_out)
{
	long span, left;

	if (unlikely(c->member))
		kevent_limit_rest(c->member);
	if (timed_out) {
		/* Others poll watches: wait for them, but not for ever. */
		span = msecs_to_jiffies(c->patience);
		left = schedule_timeout(span);
		c->patience -= max(1U, jiffies_to_msecs(span - left));
		return true;
	}
	return window ? kevent_coalesce_block(q, window, &c->until) :
			kevent_schedule(&c->until);
}

/*
 * Wait until there is something to collect. Even a call with a timeout of 0 waits while others
 * poll watches: see deliver.c.
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
	trace_kevent_wait(q, kevent_wants_ring(c), kevent_errno_of(outcome));
	return outcome;
}

/* Members of a group: max_running.c says why no event is lost */

/*
 * Returns %KEVENT_RELIST to go on, %KEVENT_ASLEEP if the member is parked, or the outcome that
 * ends the wait. A member that parks may have been woken for an event. It leaves that to a
 * consumer without a limit, if one sleeps, or to a member that runs: see kevent_wake_one().
 */
static enum kevent_outcome kevent_park_locked(struct kevent_queue *q,
					      struct kevent_member *m, bool timed_out)
{
	enum kevent_outcome why = timed_out ? KEVENT_TIMED_OUT : KEVENT_ASLEEP;

	if (q->wake_request) {
		/* The limit holds nobody any more. A consumer takes events before its wait ends. */
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
		/*
		 * If the memory of the ring is away KEVENT_RING_MORE stays unset: a member that
		 * runs collects before it sleeps.
		 */
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
		/* It may have been let go: kevent_limit_rest() then lets another one go. */
		if (unlikely(freezing(current))) {
			kevent_limit_rest(m);
			kevent_wake_left(q);
			kevent_freeze();
		}
	}
}

/*
 * A member is about to take events. Returns @outcome if the limit admits it at once, or if
 * @outcome ends its wait. Otherwise it parks. Returns %KEVENT_RELIST after that, since perhaps
 * nobody has polled the level watches meanwhile, or the outcome that ended the wait.
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
	/* While it was parked others were not woken. Wake one: it collects, or parks in turn. */
	kevent_wake_left(q);
	return outcome;
}

/* The loop */

/*
 * kevent_find_entries() with the lock, for some entries that may be too few. They are enough if
 * the ring is full. Not in line, as it is rare.
 */
static noinline bool kevent_find_some(struct kevent_queue *q, const struct kevent_consumer *c)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	return kevent_find_entries(q, c);
}

/*
 * Find out whether a consumer has what it waits for. When the ring is full, any entry is
 * enough. Positions never go back, so an entry that was seen still counts. kevent_join() sees
 * entries that are stored after this.
 */
static bool kevent_find_enough(struct kevent_queue *q, const struct kevent_consumer *c)
{
	u32 stored;

	if (!kevent_wants_ring(c))
		return (u32)c->to->kidx >= c->min_nr;
	stored = kevent_stored(q, c->old_kidx);
	if (likely(!stored) || stored >= c->min_nr)
		return stored;
	return kevent_find_some(q, c);
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
	bool empty;

	c->polls = 0;
	c->patience = KEVENT_PATIENCE;
	c->over = false;
	while (nr >= 0 && !kevent_find_enough(q, c)) {
		/* Others may want what is not enough for this one. */
		if (nr && kevent_wants_ring(c)) {
			kevent_testpoint(q, KEVENT_TESTPOINT_STORED);
			kevent_wake_others(q, nr);
		}
		/* Only after the first sleep, so that few calls read the clock. */
		if (outcome != KEVENT_AWAKE)
			outcome = kevent_try_again(c);
		if (outcome == KEVENT_AWAKE)
			outcome = kevent_sleep(q, c);
		if (unlikely(c->member) && c->member->waits)
			outcome = kevent_admit(q, c, outcome);
		if (outcome != KEVENT_COLLECT && outcome != KEVENT_RELIST)
			return kevent_errno_of(outcome);
		/* A call must not report a level watch twice to one buffer. */
		empty = kevent_wants_ring(c) || !c->to->kidx;
		nr = kevent_collect(q, c->to, c->max, empty && outcome == KEVENT_RELIST);
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
	/* A thread that waits without a limit leaves this queue's group. */
	if (IS_ENABLED(CONFIG_KEVENT_AIO) && unlikely(current->flags & PF_KEVENT_SERVER) &&
	    !c->member && !c->until.nowait && kevent_limit_peek(&q->limit))
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
	/* A request ends the wait while events may be ready, see kevent_join(): set the flag. */
	if (unlikely(err == -ECANCELED))
		kevent_say_more(q);
	return err;
}

/* Have a buffer filled, and wait for that. Returns as sys_kevent_get_events(). */
int kevent_wait_buffer(struct kevent_queue *q, struct kevent_consumer *c)
{
	int ret;

	kevent_awake_begin(q);
	ret = kevent_collect(q, c->to, c->max, true);
	kevent_awake_end(q);
	if (likely(ret < 0 || ret >= (int)c->min_nr))
		return ret;
	ret = kevent_wait_for(q, c, 0, ret);
	if (unlikely(ret == -ECANCELED && fatal_signal_pending(current)))
		kevent_request_one(q);
	if (c->to->kidx || ret == -ETIME || ret == -ECANCELED)
		return c->to->kidx;
	return ret;
}

/* The result of a wait for the ring that has ended with @ret, as of sys_kevent_wait() */
int kevent_wait_end(struct kevent_queue *q, const struct kevent_consumer *c, int ret)
{
	u32 stored;

	/*
	 * An exec in another thread kills this one, and may keep the descriptor open. So no close
	 * wakes others for the entry of this thread. A thread that is killed after this check
	 * keeps an entry in the ring from others. A signal that is not fatal may stop the thread,
	 * or be the freezer's mark: another consumer takes its entry.
	 */
	if (fatal_signal_pending(current)) {
		kevent_wake_left(q);
		if (ret == -ECANCELED)
			kevent_request_one(q);
	} else if (signal_pending(current)) {
		kevent_pass_unread(q);
	}
	/* Even if entries were stored, another thread may have taken them. */
	if (ret == -ECANCELED)
		return 0;
	if (kevent_is_interrupted() && !c->until.nowait && ret != -ETIME) {
		scoped_guard(spinlock_irqsave, &q->ready_lock) {
			kevent_ring_sync(q);
			if (!kevent_unread(q))
				return -EINTR;
		}
	}
	stored = kevent_stored(q, c->old_kidx);
	if (stored > INT_MAX)
		return -EINVAL;
	return stored || ret == -ETIME ? stored : ret;
}

/*
 * Have the ring, which is in the address space of the caller, filled, and wait for that, after
 * kevent_awake_begin(). It waits for more than one at most @min_wait_ns. Returns as
 * sys_kevent_wait().
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
