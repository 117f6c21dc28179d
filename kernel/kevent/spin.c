// SPDX-License-Identifier: GPL-2.0
/*
 * Spinning in place of a short sleep
 *
 * A sleep costs its consumer a switch to another task and back, and whoever ends it a
 * wake-up. A consumer that looks for events for as long as a short wake-up takes has
 * neither if one comes. It does so while recent sleeps were shorter than that, by an
 * account in nanoseconds: spinning that found an event pays in what it took less than such
 * a wake-up, and spinning in vain takes out what it took. A short sleep pays in an eighth
 * of what spinning would have, so that a queue whose account is empty tries again, and a
 * pause empties the account. How long a short wake-up takes is an estimate of the CPU time
 * that a sleep costs: spinning takes more than it saves where that is too high.
 */

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/sched/clock.h>
#include <linux/sched/deadline.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "spin.h"

/* As long as a short wake-up takes, but no longer */
unsigned int kevent_spin_max_ns __read_mostly = 200 * 1000;

/* The account has enough for so many times of spinning in vain. */
#define SPIN_CREDIT_WAKE_UPS	4
/* A sleep that is so many wake-ups long is a pause. */
#define SPIN_PAUSE_WAKE_UPS	8
/* What a short sleep pays in: 1 of 2^3 parts */
#define SPIN_SHARE_SHIFT	3

static u32 spin_ns(const struct kevent_queue *q)
{
	return min(READ_ONCE(kevent_spin_max_ns), READ_ONCE(q->spin.wake_ns));
}

static void spin_pay(struct kevent_queue *q, s64 ns)
{
	s64 most = (s64)spin_ns(q) * SPIN_CREDIT_WAKE_UPS;

	WRITE_ONCE(q->spin.credit,
		   clamp((s64)READ_ONCE(q->spin.credit) + ns, 0, most));
}

/* Peeks at what others change under ready_lock: a hint. */
static bool spin_finds(const struct kevent_queue *q,
		       const struct kevent_news *news)
{
	/* As in kevent_busy_found() */
	return data_race(!list_empty_careful(&q->ready)) ||
	       READ_ONCE(q->wake_request) ||
	       (u32)READ_ONCE(q->ring.kidx) - news->old_kidx >= news->min_nr;
}

/* Does nobody else want this CPU, and nothing else this task? */
static bool spin_may_go_on(void)
{
	return single_task_running() && !need_resched() &&
	       !signal_pending(current);
}

/* Is the consumer the only one, and will it wait for so long? */
static bool spin_may_begin(const struct kevent_queue *q,
			   const struct kevent_news *news,
			   const struct kevent_deadline *until, u32 ns)
{
	if (num_online_cpus() == 1 || rt_or_dl_task(current) || news->member ||
	    news->min_nr > 1 || kevent_sleeps(q) ||
	    atomic_read(&q->busy.spinning) || !spin_may_go_on())
		return false;
	return until->at == KTIME_MAX ||
	       ktime_sub(until->at, kevent_clock_now(until->clock)) > ns;
}

/* Returns whether there is something for the consumer; @spent receives how long it took. */
static bool spin_for(const struct kevent_queue *q,
		     const struct kevent_news *news, u32 ns, u64 *spent)
{
	u64 start = local_clock();
	bool found;

	do {
		cpu_relax();
		found = spin_finds(q, news);
		*spent = local_clock() - start;
	} while (!found && *spent < ns && spin_may_go_on());
	/* The clock of another CPU may be ahead. */
	*spent = min(*spent, ns);
	return found;
}

/*
 * kevent_spin() where the account is not empty. A miss that sees @spinning does not set
 * KEVENT_RING_MORE: this consumer takes ready_lock next, and looks at the ready list.
 */
void kevent_spin_on(struct kevent_queue *q, const struct kevent_news *news,
		    const struct kevent_deadline *until)
{
	u32 ns = spin_ns(q);
	u64 spent;

	if (!ns || READ_ONCE(q->spin.credit) < ns ||
	    !spin_may_begin(q, news, until, ns))
		return;
	atomic_inc(&q->busy.spinning);
	if (spin_for(q, news, ns, &spent)) {
		spin_pay(q, ns - spent);
		WRITE_ONCE(q->spin.found, READ_ONCE(q->spin.found) + 1);
	} else {
		spin_pay(q, -(s64)spent);
		WRITE_ONCE(q->spin.vain, READ_ONCE(q->spin.vain) + 1);
	}
	atomic_dec(&q->busy.spinning);
}

/**
 * kevent_spin_woken - learn from a wake-up
 * @q: the queue
 * @took: until the consumer ran, in nanoseconds
 */
void kevent_spin_woken(struct kevent_queue *q, s64 took)
{
	lockdep_assert_held(&q->ready_lock);

	WRITE_ONCE(q->spin.wake_ns, kevent_spin_wake_ns(q->spin.wake_ns, took));
}

/**
 * kevent_spin_slept - learn from a sleep
 * @q: the queue
 * @slept: until the first event came, in nanoseconds
 */
void kevent_spin_slept(struct kevent_queue *q, s64 slept)
{
	s64 ns = spin_ns(q);

	lockdep_assert_held(&q->ready_lock);

	if (slept > ns * SPIN_PAUSE_WAKE_UPS)
		WRITE_ONCE(q->spin.credit, 0);
	else if (slept < ns)
		spin_pay(q, (ns - slept) >> SPIN_SHARE_SHIFT);
}
