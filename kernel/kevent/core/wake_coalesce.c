// SPDX-License-Identifier: GPL-2.0
/*
 * Waking a consumer once for several events
 *
 * A server is woken for most of its requests while its clients are busy, and a wake-up
 * costs both the client and the server. So the queue's one consumer is left asleep until a
 * batch of events is there, or until a window is over that began when it fell asleep.
 * Only kevent_enqueue() calls kevent_coalesce_hold(), so an event is held only if it waits on
 * the ready list. It has the state and the place that it would have had with the consumer
 * awake. kevent_coalesce.left counts down to the wake-up, and is 0 while nothing is held.
 *
 * No event stays held:
 *
 * - The consumer starts an hrtimer before it sleeps, and cancels it when it is awake. If
 *   something is on the ready list the callback wakes the consumer. If not, the next event
 *   will. So an event waits for the rest of a window that began with the sleep, and the
 *   callback of an idle queue runs once.
 * - Anything else that ends the sleep leads to kevent_join(), which reads the
 *   ready list, or is an event in the ring that found that list empty. If the consumer
 *   leaves without the event, kevent_more() sets KEVENT_RING_MORE.
 * - A second consumer that is about to sleep ends the holding, and wakes one of the two for
 *   what is held. It would not sleep beside it, unless the ring is full.
 * - kevent_offer() ends the holding: an event that several queues could take goes to one
 *   that is awake soon.
 *
 * The window is eight times wake_ns, the time from a wake-up until the consumer runs, and at
 * most max_ns. So an event waits a few times as long as it would have waited anyway. wake_ns
 * is a mean in which the newest wake-up has a weight of one eighth. It is measured from
 * kevent_wake_one() on, and includes the time that the consumer has waited for a CPU. Wake-ups
 * by the callback of the hrtimer do not count, since that mostly runs on the CPU of the
 * consumer. A window of eight wake-ups is about 50 us on a machine that wakes in 6 us. In an
 * emulator a wake-up takes 30 to 200 us, and a fixed window of 50 us would hold next to nothing.
 *
 * A batch that fills up doubles, up to 16. A batch that does not fill up shrinks at once to the
 * number of events that came. If it was a batch of two, "patience" doubles, up to 1024: so many
 * wake-ups in short succession must come before the next attempt. A program with one event
 * under way at a time pays with a window for each attempt, and its other events are not delayed.
 *
 * Only events of files are held. Events of timers, signals and marks are rare, or somebody
 * waits for them.
 */

#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sched/deadline.h>
#include <linux/sched/rt.h>
#include <linux/uaccess.h>

#include "../host.h"
#include "deadline.h"
#include "source_ops.h"
#include "wake.h"
#include "wake_coalesce.h"

/* The largest batch */
#define COALESCE_BATCH		16U
/* A window is so many times as long as a wake-up takes. */
#define COALESCE_WAKE_UPS	8
/* The weight of a new figure in an average is 1 to 2^3. */
#define COALESCE_SHIFT		3
/* Wake-ups in short succession between two attempts, at most */
#define COALESCE_PATIENCE_MAX	1024U

/**
 * struct kevent_hold_timer - the end of a window
 * @timer: takes ready_lock of @q
 * @q: the queue, which the consumer that sleeps keeps
 *
 * On the stack of the consumer, which cancels the timer before it goes on.
 */
struct kevent_hold_timer {
	struct hrtimer		timer;
	struct kevent_queue	*q;
};

/* No window ends within a tick where only ticks end them. */
static u32 window_ns(const struct kevent_coalesce *c)
{
	u64 ns = min((u64)READ_ONCE(c->max_ns),
		     (u64)c->wake_ns * COALESCE_WAKE_UPS);

	return ns > hrtimer_resolution ? ns : 0;
}

/*
 * A consumer with a priority of real time has its events at once, and on one CPU the
 * events of others come while it waits for that CPU.
 */
static bool may_coalesce(const struct kevent_queue *q,
			 const struct kevent_consumer *w)
{
	return kevent_wants_one(w) &&
	       READ_ONCE(q->coalesce.max_ns) && num_online_cpus() > 1 &&
	       !rt_or_dl_task(current);
}

/* Hold nothing more. Returns whether a consumer was woken for what was held. */
bool kevent_coalesce_stop(struct kevent_queue *q)
{
	bool held = q->coalesce.left && !list_empty(&q->ready);

	lockdep_assert_held(&q->ready_lock);

	q->coalesce.left = 0;
	if (held)
		kevent_wake_one(q, KEVENT_ANY, false);
	return held;
}

/*
 * kevent_coalesce_begin() with several CPUs, or with what is held. Two that sleep may be
 * woken for two events: nothing is held then.
 */
u32 kevent_coalesce_begin_on(struct kevent_queue *q, struct kevent_consumer *w,
			     bool timed_out)
{
	struct kevent_coalesce *c = &q->coalesce;
	u32 window;

	kevent_coalesce_stop(q);
	w->measured = !timed_out && q->nr_asleep == 1 && may_coalesce(q, w);
	if (!w->measured)
		return 0;
	w->misses = q->misses;
	c->woken_at = 0;
	window = c->batch > 1 && list_empty(&q->ready) ? window_ns(c) : 0;
	if (window)
		c->left = c->batch;
	return window;
}

static enum hrtimer_restart window_over(struct hrtimer *timer)
{
	struct kevent_hold_timer *end =
		container_of(timer, struct kevent_hold_timer, timer);
	struct kevent_queue *q = end->q;

	guard(spinlock_irqsave)(&q->ready_lock);
	if (q->coalesce.left) {
		if (!kevent_coalesce_stop(q))
			q->coalesce.batch = 1;
		/* From this CPU: says nothing of wake-ups by others. */
		q->coalesce.woken_at = 0;
	}
	return HRTIMER_NORESTART;
}

/* kevent_schedule(), while events may be held for a @window, which is not 0 */
bool kevent_coalesce_block(struct kevent_queue *q, u32 window,
			   const struct kevent_deadline *until)
{
	struct kevent_hold_timer end = { .q = q };
	bool timed_out;

	host_timer_setup_on_stack(&end.timer, window_over, CLOCK_MONOTONIC,
				  HRTIMER_MODE_REL);
	hrtimer_start(&end.timer, ns_to_ktime(window), HRTIMER_MODE_REL);
	timed_out = kevent_schedule(until);
	hrtimer_cancel(&end.timer);
	destroy_hrtimer_on_stack(&end.timer);
	return timed_out;
}

static void average(u32 *mean, s64 sample)
{
	s32 off = (s32)min_t(s64, sample, S32_MAX / 2) - (s32)*mean;

	*mean += off >> COALESCE_SHIFT;
}

/* A batch was waited for, and so many events came. */
static void learn_from_batch(struct kevent_coalesce *c, u64 came)
{
	if (came >= c->batch) {
		c->batch = min(2 * c->batch, COALESCE_BATCH);
		c->patience = KEVENT_COALESCE_PATIENCE;
		return;
	}
	c->batch = max(came, 1);
	if (c->batch == 1)
		c->patience = min(2 * c->patience, COALESCE_PATIENCE_MAX);
}

/* Nothing was held. A batch may pay if more events came, or came soon after the last ones. */
static void learn_from_one(struct kevent_coalesce *c, u64 came, ktime_t now)
{
	if (ktime_sub(now, c->awake_at) > window_ns(c))
		c->streak = 0;
	else
		c->streak++;
	if (came == 1 && c->streak < c->patience)
		return;
	c->batch = 2;
	c->streak = 0;
}

/* A consumer is awake whose sleep was measured. */
void kevent_coalesce_learn(struct kevent_queue *q,
			   const struct kevent_consumer *w)
{
	struct kevent_coalesce *c = &q->coalesce;
	u64 came = q->misses - w->misses;
	ktime_t now;

	lockdep_assert_held(&q->ready_lock);

	if (!came)
		return;
	now = ktime_get();
	if (c->woken_at)
		average(&c->wake_ns, ktime_sub(now, c->woken_at));
	if (c->batch > 1)
		learn_from_batch(c, came);
	else
		learn_from_one(c, came, now);
	c->awake_at = now;
}

/*
 * A consumer is to be left asleep. Hold the event of a watch that was put on the ready list, if
 * that may be. Returns whether it is held.
 */
bool kevent_coalesce_hold(struct kevent *ke)
{
	struct kevent_coalesce *c = &ke->queue->coalesce;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (!kevent_has_level(ke) ||
	    ke->req_flags & KEVENT_REQ_WAKEUP_ALL)
		c->left = 1;
	if (!--c->left)
		return false;
	c->held++;
	return true;
}

/*
 * KEVENT_IOC_SET_DELAY or KEVENT_IOC_GET_DELAY. A new delay holds from the next sleep on.
 * Returns 0, -EFAULT, or -EINVAL for more than KEVENT_DELAY_MAX.
 */
long kevent_coalesce_ioctl(struct kevent_queue *q, unsigned int cmd,
			   unsigned long arg)
{
	u32 __user *user = (u32 __user *)arg;
	u32 ns;

	if (cmd == KEVENT_IOC_GET_DELAY)
		return put_user(READ_ONCE(q->coalesce.max_ns), user);
	if (get_user(ns, user))
		return -EFAULT;
	if (ns > KEVENT_DELAY_MAX)
		return -EINVAL;
	WRITE_ONCE(q->coalesce.max_ns, ns);
	return 0;
}
