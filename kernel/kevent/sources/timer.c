// SPDX-License-Identifier: GPL-2.0
/*
 * Timers: watches in a tree per queue and clock, which has one hrtimer
 *
 * 100,000 timers may expire at one instant, and neither interrupts nor other tasks may
 * wait for all of them. So the hrtimers expire in softirq context, on PREEMPT_RT in a
 * thread. The callback expires 32 timers under one hold of ready_lock. One softirq runs the
 * callbacks of all hrtimers that are due, of many queues. It expires 128 timers in all. The
 * rest waits: the queues that have more are on a list of the CPU, whose own hrtimer goes on
 * 50 us later, with the one that waits longest. A queue has 32 timers in its turn. While some
 * wait, others join them, so that nobody is overtaken. Without high resolution timers the next
 * run would be at the next tick, so 2048 expire in one.
 *
 * A queue has a tree of running timers for each clock, and one hrtimer for the earliest of each.
 * Removing a timer leaves the hrtimer alone: its callback then finds less to do, or nothing.
 *
 * A periodic timer does not restart itself. Its expiry takes it out of the tree, counts
 * once, moves the time on by one interval and makes the watch ready. ev_timer_fill() adds the
 * intervals that have passed since. It may run any number of times, as for fdinfo. It does not
 * use hrtimer_forward(), whose shortest interval is a tick when there are no high resolution
 * timers. Delivery restarts the timer, once it is known to have succeeded. So no period is too
 * short: there is one expiry per event.
 *
 * A callback does all it does to a watch under ready_lock. MODIFY and detach() take the
 * timer out of the tree under that lock, and need not wait for a callback.
 *
 * A step of CLOCK_REALTIME cancels timers of CANCEL_ON_SET. The code that first sees that
 * the offset to CLOCK_MONOTONIC has changed counts it: an expiry, an ADD, or
 * kevent_clock_was_set(). Such a timer has the count of when it was armed. If it expires
 * and the count is another one, it is cancelled: it may have expired because the clock was
 * set. A work item cancels all others, in slices, queue by queue; the task that sets the
 * clock does not, because there may be many timers of other users. It takes them from the head
 * of a list of the queue, so after a close or another step it needs no position. It also starts
 * the hrtimers of REALTIME and TAI anew: without high resolution timers the CPU that sets the
 * clock does not check its soft hrtimers again.
 */

#include <linux/cleanup.h>
#include <linux/hrtimer.h>
#include <linux/kernel_stat.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/timerqueue.h>
#include <linux/workqueue.h>

#include "../core/source.h"
#include "../core/testpoint.h"
#include "../host.h"

#define EV_TIMER_CLOCKS							\
	(KEVENT_TIMER_REALTIME | KEVENT_TIMER_BOOTTIME | KEVENT_TIMER_TAI)
#define EV_TIMER_ALL							\
	(KEVENT_TIMER_FIRED | KEVENT_TIMER_ABSTIME |			\
	 KEVENT_TIMER_INTERVAL | KEVENT_TIMER_CANCEL_ON_SET | EV_TIMER_CLOCKS)

/* Timers dealt with under one hold of ready_lock; each may wake a consumer */
#define EV_TIMER_SLICE		32
/*
 * Slices of one softirq, of all queues, and how long the CPU is left to others after that:
 * until the next tick when there are no high resolution timers
 */
#define EV_TIMER_SLICES		4
#define EV_TIMER_SLICES_LOW_RES	64
#define EV_TIMER_PAUSE_NS	(50 * NSEC_PER_USEC)

enum ev_clock {
	EV_MONOTONIC,
	EV_REALTIME,
	EV_BOOTTIME,
	EV_TAI,
	EV_NR_CLOCKS,
};

/**
 * struct kevent_clock - the timers of a queue that go by one clock
 * @timer:	started under ready_lock, with a timer in @running: never after
 *		kevent_remove_all(). Expires in softirq context
 * @queue:	I: the queue
 * @running:	R: the timers that run, in time of this clock. As many as the
 *		user may have watches
 * @at:		R: when @timer expires, at the latest; KTIME_MIN from when it is to wait
 *		for its turn until then
 * @waiting:	protected by ev_waiting_lock: on &ev_share.waiting of a CPU
 * @id:		I: CLOCK_MONOTONIC and its like
 */
struct kevent_clock {
	struct hrtimer		timer;
	struct kevent_queue	*queue;
	struct timerqueue_head	running;
	ktime_t			at;
	struct list_head	waiting;
	clockid_t		id;
};

/**
 * struct ev_share - what all queues share on a CPU
 * @waiting:	protected by ev_waiting_lock: clocks that wait for their turn, those that wait
 *		longest first. As many as users may have descriptors, and not walked
 * @next:	their next turns, started while there are some
 * @run:	the softirq of this CPU that has @left. Both are used by softirqs of the CPU only
 * @left:	timers that it may expire
 */
struct ev_share {
	struct list_head	waiting;
	struct hrtimer		next;
	unsigned int		run;
	unsigned int		left;
};

/**
 * struct kevent_timers - what a queue with timers has
 * @clocks:	by enum ev_clock
 * @queue:	I: the queue, which frees this with itself
 * @on_set:	R: timers to cancel when the clock is set, those that know of the
 *		fewest settings first. As many as the user may have watches;
 *		walked in slices
 * @link:	protected by ev_timers_lock: on ev_timers_known or
 *		ev_timers_stale, until kevent_timers_stop()
 */
struct kevent_timers {
	struct kevent_clock	clocks[EV_NR_CLOCKS];
	struct kevent_queue	*queue;
	struct list_head	on_set;
	struct list_head	link;
};

/* Charged with the first timer of a queue, until its file is gone */
#define EV_TIMERS_COST	kmalloc_size_roundup(sizeof(struct kevent_timers))

/**
 * struct kevent_timer - a watch that is a timer
 * @kk:		the watch, found by its cookie
 * @node:	R: in &kevent_clock.running unless it has expired or is stopped;
 *		has the time of the next expiry that is not in @ticks
 * @clock:	R: the clock it goes by
 * @when:	R: first expiry in nanoseconds, as requested
 * @interval:	R: time between expiries, 0 when there is one
 * @ticks:	R: expirations not yet delivered; while there are some the timer does not run
 * @on_set:	R: on &kevent_timers.on_set, if that is wanted
 * @settings:	R: of CLOCK_REALTIME that it knows of
 */
struct kevent_timer {
	struct kevent_keyed	kk;
	struct timerqueue_node	node;
	struct kevent_clock	*clock;
	u64			when;
	ktime_t			interval;
	u64			ticks;
	struct list_head	on_set;
	u64			settings;
};

static const clockid_t ev_clock_ids[EV_NR_CLOCKS] = {
	[EV_MONOTONIC]	= CLOCK_MONOTONIC,
	[EV_REALTIME]	= CLOCK_REALTIME,
	[EV_BOOTTIME]	= CLOCK_BOOTTIME,
	[EV_TAI]	= CLOCK_TAI,
};

/*
 * Nests in ready_lock. It protects the lists of queues that have timers, and of those that have
 * yet to look whether the clock was set. Nobody walks them under the lock. A queue on a list has
 * its file. Below is how often CLOCK_REALTIME was set, and what it was off CLOCK_MONOTONIC then.
 */
static DEFINE_SPINLOCK(ev_timers_lock);
static LIST_HEAD(ev_timers_known);
static LIST_HEAD(ev_timers_stale);
static u64 ev_clock_settings;
static ktime_t ev_clock_offset;

/* Nests in ready_lock. Taken where many timers are due only. */
static DEFINE_SPINLOCK(ev_waiting_lock);
static DEFINE_PER_CPU(struct ev_share, ev_shares);

#define to_timer(watch)	container_of(watch, struct kevent_timer, kk.ke)

static u64 ev_timer_data(const struct ukevent *uk)
{
	return (u64)uk->ret_data[1] << 32 | uk->ret_data[0];
}

static int ev_timer_check(const struct ukevent *uk, struct file *file)
{
	u32 clock = uk->event & EV_TIMER_CLOCKS;

	if (uk->event & ~EV_TIMER_ALL || !(uk->event & KEVENT_TIMER_FIRED))
		return -EINVAL;
	if (clock & (clock - 1))
		return -EINVAL;
	if (uk->event & KEVENT_TIMER_CANCEL_ON_SET &&
	    (clock != KEVENT_TIMER_REALTIME ||
	     !(uk->event & KEVENT_TIMER_ABSTIME)))
		return -EINVAL;
	if (uk->id.raw_u64 > KTIME_MAX)
		return -EINVAL;
	if (uk->event & KEVENT_TIMER_INTERVAL)
		return ev_timer_data(uk) > KTIME_MAX ? -EINVAL : 0;
	if (!(uk->event & KEVENT_TIMER_ABSTIME) && !uk->id.raw_u64)
		return -EINVAL;
	return 0;
}

/* A relative time does not follow a clock that can be set. */
static enum ev_clock ev_timer_clock(u32 event)
{
	if (event & KEVENT_TIMER_BOOTTIME)
		return EV_BOOTTIME;
	if (!(event & KEVENT_TIMER_ABSTIME))
		return EV_MONOTONIC;
	if (event & KEVENT_TIMER_REALTIME)
		return EV_REALTIME;
	return event & KEVENT_TIMER_TAI ? EV_TAI : EV_MONOTONIC;
}

static ktime_t ev_timer_first(clockid_t clock, const struct ukevent *uk)
{
	ktime_t at = uk->id.raw_u64;

	if (uk->event & KEVENT_TIMER_ABSTIME)
		return host_timens(clock, at);
	/* Where the time is that of the last tick, an expiry may be early. */
	if (IS_ENABLED(CONFIG_TIME_LOW_RES))
		at = ktime_add_ns(at, hrtimer_resolution);
	return ktime_add_safe(kevent_clock_now(clock), at);
}

/* How often CLOCK_REALTIME was set so far */
static u64 ev_clock_look(void)
{
	ktime_t offset;

	guard(spinlock_irqsave)(&ev_timers_lock);
	offset = ktime_mono_to_real(0);
	if (offset != ev_clock_offset) {
		ev_clock_offset = offset;
		ev_clock_settings++;
	}
	return ev_clock_settings;
}

static void ev_clock_program(struct kevent_clock *clock, ktime_t at)
{
	clock->at = at;
	hrtimer_start(&clock->timer, at, HRTIMER_MODE_ABS_SOFT);
}

static void ev_timer_start(struct kevent_timer *kt)
{
	struct kevent_clock *clock = kt->clock;

	lockdep_assert_held(&clock->queue->ready_lock);

	if (timerqueue_add(&clock->running, &kt->node) &&
	    kt->node.expires < clock->at)
		ev_clock_program(clock, kt->node.expires);
}

static void ev_timer_stop(struct kevent_timer *kt)
{
	lockdep_assert_held(&kt->kk.ke.queue->ready_lock);

	if (timerqueue_node_queued(&kt->node))
		timerqueue_del(&kt->clock->running, &kt->node);
}

/* The clock was set, for the @settings-th time. */
static void ev_timer_cancel(struct kevent_timer *kt, u64 settings)
{
	struct kevent *ke = &kt->kk.ke;

	kt->settings = settings;
	list_move_tail(&kt->on_set, &ke->queue->timers->on_set);
	if (kevent_is_dead(ke))
		return;
	ev_timer_stop(kt);
	kevent_broken_locked(ke);
}

/* A timer that expires because the clock was set does not: it is cancelled. */
static void ev_timer_expire(struct kevent_timer *kt)
{
	u64 settings = 0;

	ev_timer_stop(kt);
	if (!list_empty(&kt->on_set))
		settings = ev_clock_look();
	if (settings != kt->settings) {
		ev_timer_cancel(kt, settings);
		return;
	}
	kt->ticks++;
	/* Delivery counts intervals that have passed. */
	if (kt->interval)
		kt->node.expires = ktime_add_safe(kt->node.expires,
						  kt->interval);
	kevent_ready_locked(&kt->kk.ke, KEVENT_TIMER_FIRED);
}

/* Expire a slice of what is due, at most *@left. Returns whether there is more. */
static bool ev_clock_expire(struct kevent_clock *clock, unsigned int *left)
{
	ktime_t now = kevent_clock_now(clock->id);
	unsigned int slice = EV_TIMER_SLICE;
	struct timerqueue_node *node;

	while ((node = timerqueue_getnext(&clock->running)) &&
	       node->expires <= now) {
		if (!slice-- || !*left)
			return true;
		--*left;
		ev_timer_expire(container_of(node, struct kevent_timer, node));
	}
	return false;
}

/* Start the hrtimer anew: it is through, or the clock was set. */
static void ev_clock_next(struct kevent_clock *clock)
{
	struct timerqueue_node *node = timerqueue_getnext(&clock->running);

	clock->at = KTIME_MAX;
	if (node)
		ev_clock_program(clock, node->expires);
}

/* Turns */

/* Returns the share of this CPU, which is full in a new softirq. Called in softirqs. */
static struct ev_share *ev_share_here(void)
{
	unsigned int run = kstat_softirqs_cpu(HRTIMER_SOFTIRQ, smp_processor_id());
	struct ev_share *share = this_cpu_ptr(&ev_shares);
	bool low_res = hrtimer_resolution > EV_TIMER_PAUSE_NS;

	if (share->run != run) {
		share->run = run;
		share->left = EV_TIMER_SLICE * (low_res ? EV_TIMER_SLICES_LOW_RES :
						EV_TIMER_SLICES);
	}
	return share;
}

/* Turns follow when others have had the CPU. */
static void ev_share_go_on(struct ev_share *share)
{
	hrtimer_start(&share->next, ktime_add_ns(ktime_get(), EV_TIMER_PAUSE_NS),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * A timer of the clock is due. The clock may already be on the list of this or another CPU. A
 * new first timer may start the hrtimer while the callback has yet to get ready_lock. Then the
 * hrtimer expires once more.
 */
static void ev_clock_wait(struct kevent_clock *clock, struct ev_share *share)
{
	clock->at = KTIME_MIN;
	guard(spinlock)(&ev_waiting_lock);
	if (!list_empty(&clock->waiting))
		return;
	if (list_empty(&share->waiting))
		ev_share_go_on(share);
	list_add_tail(&clock->waiting, &share->waiting);
}

/* The turn of a clock, which lasts as long as *@left; it waits for the next one if it has more. */
static void ev_clock_turn(struct kevent_clock *clock, struct ev_share *share,
			  unsigned int *left)
{
	struct kevent_queue *q = clock->queue;

	scoped_guard(kevent_queue, q) {
		if (ev_clock_expire(clock, left))
			ev_clock_wait(clock, share);
		else
			ev_clock_next(clock);
	}
	kevent_testpoint(q, KEVENT_TESTPOINT_SLICE);
}

/* To those that wait longest. Their queues may be closed then: as softirqs have RCU they exist. */
static void ev_share_give_turns(struct ev_share *share, unsigned int *left)
{
	struct kevent_clock *clock;

	while (*left) {
		scoped_guard(spinlock_irqsave, &ev_waiting_lock) {
			clock = list_first_entry_or_null(&share->waiting,
							 struct kevent_clock, waiting);
			if (!clock)
				return;
			list_del_init(&clock->waiting);
		}
		ev_clock_turn(clock, share, left);
	}
}

static enum hrtimer_restart ev_clock_fn(struct hrtimer *timer)
{
	struct kevent_clock *clock = container_of(timer, struct kevent_clock,
						  timer);
	struct ev_share *share = ev_share_here();

	/* Others start it, too, which HRTIMER_RESTART would undo. */
	if (!share->left || !list_empty(&share->waiting)) {
		kevent_testpoint(clock->queue, KEVENT_TESTPOINT_DUE);
		guard(kevent_queue)(clock->queue);
		if (timerqueue_getnext(&clock->running))
			ev_clock_wait(clock, share);
		else
			clock->at = KTIME_MAX;
		return HRTIMER_NORESTART;
	}
	ev_clock_turn(clock, share, &share->left);
	ev_share_give_turns(share, &share->left);
	return HRTIMER_NORESTART;
}

/* The softirq is that of another CPU if the one that has the list went offline. */
static enum hrtimer_restart ev_share_fn(struct hrtimer *timer)
{
	struct ev_share *share = container_of(timer, struct ev_share, next);

	ev_share_give_turns(share, &ev_share_here()->left);
	guard(spinlock_irqsave)(&ev_waiting_lock);
	if (!list_empty(&share->waiting))
		ev_share_go_on(share);
	return HRTIMER_NORESTART;
}

/* Before the first queue */
void __init kevent_timers_init(void)
{
	struct ev_share *share;
	int cpu;

	for_each_possible_cpu(cpu) {
		share = per_cpu_ptr(&ev_shares, cpu);
		INIT_LIST_HEAD(&share->waiting);
		host_timer_setup(&share->next, ev_share_fn, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_SOFT);
	}
}

/* After the last queue: nobody waits. */
void kevent_timers_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(&ev_shares, cpu)->next);
}

static struct kevent_timers *ev_timers_alloc(struct kevent_queue *q)
{
	struct kevent_timers *timers = kzalloc(sizeof(*timers), GFP_KERNEL_ACCOUNT);
	struct kevent_clock *clock;

	if (!timers)
		return NULL;
	timers->queue = q;
	INIT_LIST_HEAD(&timers->on_set);
	INIT_LIST_HEAD(&timers->link);
	for (clock = timers->clocks; clock < timers->clocks + EV_NR_CLOCKS; clock++) {
		clock->queue = q;
		clock->id = ev_clock_ids[clock - timers->clocks];
		clock->at = KTIME_MAX;
		INIT_LIST_HEAD(&clock->waiting);
		timerqueue_init_head(&clock->running);
		host_timer_setup(&clock->timer, ev_clock_fn, clock->id, HRTIMER_MODE_ABS_SOFT);
	}
	return timers;
}

/* The first timer of a queue brings what all of them need. */
static int ev_timers_get(struct kevent_queue *q)
{
	struct kevent_timers *timers;

	/* Pairs with the store below. */
	if (smp_load_acquire(&q->timers))
		return 0;
	if (!kevent_charge(q->owner, EV_TIMERS_COST))
		return -ENOSPC;
	timers = ev_timers_alloc(q);
	scoped_guard(spinlock_irqsave, &ev_timers_lock) {
		if (timers && !q->timers) {
			list_add_tail(&timers->link, &ev_timers_known);
			/* Pairs with the load above: they are initialized. */
			smp_store_release(&q->timers, timers);
			return 0;
		}
	}
	kevent_uncharge(q->owner, EV_TIMERS_COST);
	kfree(timers);
	return timers ? 0 : -ENOMEM;
}

/*
 * No timer of a queue expires any more: its file is gone, and its timers are removed. A
 * callback that still runs starts nothing, as it finds no timer.
 */
void kevent_timers_stop(struct kevent_queue *q)
{
	struct kevent_timers *timers = q->timers;
	int i;

	if (!timers)
		return;
	scoped_guard(spinlock_irqsave, &ev_timers_lock)
		list_del_init(&timers->link);
	for (i = 0; i < EV_NR_CLOCKS; i++) {
		hrtimer_cancel(&timers->clocks[i].timer);
		guard(spinlock_irqsave)(&ev_waiting_lock);
		list_del_init(&timers->clocks[i].waiting);
	}
	kevent_uncharge(q->owner, EV_TIMERS_COST);
}

/* Start a timer, or give it a new setting. */
static void ev_timer_set(struct kevent_timer *kt, const struct ukevent *uk)
{
	struct kevent_timers *timers = kt->kk.ke.queue->timers;

	lockdep_assert_held(&timers->queue->ready_lock);

	ev_timer_stop(kt);
	list_del_init(&kt->on_set);
	kt->clock = &timers->clocks[ev_timer_clock(uk->event)];
	kt->when = uk->id.raw_u64;
	if (uk->event & KEVENT_TIMER_INTERVAL)
		kt->interval = ev_timer_data(uk);
	else if (uk->event & KEVENT_TIMER_ABSTIME || uk->req_flags & KEVENT_REQ_ONESHOT)
		kt->interval = 0;
	else
		kt->interval = uk->id.raw_u64;
	kt->ticks = 0;
	kt->settings = 0;
	if (uk->req_flags & KEVENT_REQ_DISABLED)
		return;
	if (uk->event & KEVENT_TIMER_CANCEL_ON_SET) {
		/* Whether it is set from now on is seen by ev_clock_look(). */
		kt->settings = ev_clock_look();
		list_add_tail(&kt->on_set, &timers->on_set);
	}
	kt->node.expires = ev_timer_first(kt->clock->id, uk);
	ev_timer_start(kt);
}

static int ev_timer_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_timer *kt = to_timer(ke);
	int err;

	timerqueue_init(&kt->node);
	INIT_LIST_HEAD(&kt->on_set);
	err = ev_timers_get(ke->queue);
	if (err)
		return err;
	scoped_guard(spinlock_irq, &ke->queue->ready_lock)
		ev_timer_set(kt, uk);
	return kevent_key_link(to_kevent_keyed(ke));
}

static void ev_timer_detach(struct kevent *ke)
{
	struct kevent_timer *kt = to_timer(ke);

	/*
	 * A watch that is dead joins no tree and no list. Only a callback may
	 * take it out now, and RCU keeps the watch until that is done.
	 */
	if (!data_race(timerqueue_node_queued(&kt->node)) &&
	    list_empty(&kt->on_set))
		return;
	guard(spinlock_irq)(&ke->queue->ready_lock);
	ev_timer_stop(kt);
	list_del_init(&kt->on_set);
}

/* Expiries that are not delivered yet belong to the former setting. */
static void ev_timer_modified(struct kevent *ke, const struct ukevent *uk)
{
	kevent_forget(ke);
	ev_timer_set(to_timer(ke), uk);
}

static u64 ev_timer_key(const struct ukevent *uk)
{
	return uk->ptr;
}

/* Count what has expired since, to the nanosecond. */
static void ev_timer_count(struct kevent_timer *kt)
{
	ktime_t delta = ktime_sub(kevent_clock_now(kt->clock->id),
				  kt->node.expires);
	u64 nr;

	/* The time says nothing if the clock was set: the timer is about to be cancelled. */
	if (delta < 0 || (!list_empty(&kt->on_set) && ev_clock_look() != kt->settings))
		return;
	nr = ktime_divns(delta, kt->interval);
	kt->node.expires = ktime_add_ns(kt->node.expires, nr * kt->interval);
	kt->node.expires = ktime_add_safe(kt->node.expires, kt->interval);
	kt->ticks += nr + 1;
}

static void ev_timer_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_timer *kt = to_timer(ke);

	/* None passes of a timer that was cancelled. */
	if (kt->ticks && kt->interval && !kevent_is_broken(ke))
		ev_timer_count(kt);
	uk->id.raw_u64 = kt->when;
	uk->ret_data[0] = lower_32_bits(kt->ticks);
	uk->ret_data[1] = kevent_is_broken(ke) ? -ECANCELED : upper_32_bits(kt->ticks);
}

static void ev_timer_delivered(struct kevent *ke)
{
	struct kevent_timer *kt = to_timer(ke);
	bool expired = kt->ticks;

	kt->ticks = 0;
	if (expired && kt->interval && !kevent_is_broken(ke) &&
	    !(ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH)))
		ev_timer_start(kt);
}

const struct kevent_source_ops kevent_timer_ops = {
	.name		= "timer",
	.size		= sizeof(struct kevent_timer),
	.marks		= KEVENT_TIMER_FIRED,
	.check		= ev_timer_check,
	.key		= ev_timer_key,
	.attach		= ev_timer_attach,
	.detach		= ev_timer_detach,
	.modified	= ev_timer_modified,
	.fill		= ev_timer_fill,
	.delivered	= ev_timer_delivered,
};

/* Cancel a slice of a queue's timers. Returns whether there are more. */
static bool ev_timers_cancel(struct kevent_timers *timers)
{
	unsigned int left = EV_TIMER_SLICE;
	struct kevent_timer *kt;
	u64 settings;

	guard(kevent_queue)(timers->queue);
	settings = ev_clock_look();
	while ((kt = list_first_entry_or_null(&timers->on_set,
					      struct kevent_timer, on_set)) &&
	       kt->settings != settings) {
		if (!left--)
			return true;
		ev_timer_cancel(kt, settings);
	}
	return false;
}

static void ev_timers_look(struct work_struct *work)
{
	struct kevent_timers *timers;
	struct kevent_queue *q;
	int i;

	scoped_guard(spinlock_irq, &ev_timers_lock)
		list_splice_tail_init(&ev_timers_known, &ev_timers_stale);
	for (;;) {
		scoped_guard(spinlock_irq, &ev_timers_lock) {
			timers = list_first_entry_or_null(&ev_timers_stale,
							  struct kevent_timers, link);
			if (!timers)
				return;
			list_move_tail(&timers->link, &ev_timers_known);
			q = timers->queue;
			refcount_inc(&q->refs);
		}
		kevent_testpoint(q, KEVENT_TESTPOINT_CLOCK_SET);
		/* One that waits for its turn looks at its clock then. */
		scoped_guard(spinlock_irqsave, &q->ready_lock)
			for (i = EV_REALTIME; i < EV_NR_CLOCKS; i++)
				if (timers->clocks[i].at != KTIME_MIN)
					ev_clock_next(&timers->clocks[i]);
		while (ev_timers_cancel(timers))
			cond_resched();
		kevent_queue_put(q);
		cond_resched();
	}
}

static DECLARE_WORK(ev_timer_work, ev_timers_look);

/* CLOCK_REALTIME may have been set. Process context, no locks held. */
void kevent_clock_was_set(void)
{
	/* A setting that is undone by the next one counts, too. */
	ev_clock_look();
	queue_work(host_works, &ev_timer_work);
}

/* kevent_clock_was_set() from timekeeping_resume() */
void kevent_clock_resumed(void)
{
	queue_work(host_works, &ev_timer_work);
}
