// SPDX-License-Identifier: GPL-2.0
/*
 * Timers: watches with a high-resolution timer of their own
 *
 * A periodic timer does not restart itself. Its callback makes the watch ready,
 * and delivery of the event moves the timer past what has been counted and
 * restarts it. So no period is too short: there is one interrupt per event.
 */

#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kevent.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "kevent.h"

#define EV_TIMER_CLOCKS							\
	(KEVENT_TIMER_REALTIME | KEVENT_TIMER_BOOTTIME | KEVENT_TIMER_TAI)
#define EV_TIMER_ALL							\
	(KEVENT_TIMER_FIRED | KEVENT_TIMER_ABSTIME |			\
	 KEVENT_TIMER_INTERVAL | KEVENT_TIMER_CANCEL_ON_SET | EV_TIMER_CLOCKS)

/**
 * struct kevent_timer - a watch that is a timer
 * @kk:		the watch, found by its cookie
 * @timer:	R: but for its callback, which takes ready_lock
 * @when:	R: first expiry, as requested
 * @interval:	R: time between expiries, 0 when there is one
 * @ticks:	R: expirations not yet delivered
 * @offset:	R: of CLOCK_REALTIME when it was armed or cancelled
 * @on_set:	protected by ev_timer_on_set_lock
 * @expired:	R: not restarted since it expired; its expiry time is the first
 *		that is not in @ticks
 */
struct kevent_timer {
	struct kevent_keyed	kk;
	struct hrtimer		timer;
	struct kevent_id	when;
	ktime_t			interval;
	u64			ticks;
	ktime_t			offset;
	struct list_head	on_set;
	bool			expired;
};

struct kmem_cache *kevent_timer_cache;

/*
 * Timers to cancel when the clock is set, walked under RCU. One that was put
 * there stays until detach(). The lock nests in ready_lock.
 */
static LIST_HEAD(ev_timer_on_set);
static DEFINE_SPINLOCK(ev_timer_on_set_lock);

static struct kevent_timer *to_timer(struct kevent *ke)
{
	return container_of(ke, struct kevent_timer, kk.ke);
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
	if (uk->id.raw[1] >= NSEC_PER_SEC)
		return -EINVAL;
	if (uk->event & KEVENT_TIMER_INTERVAL)
		return uk->ret_data[1] < NSEC_PER_SEC ? 0 : -EINVAL;
	if (!(uk->event & KEVENT_TIMER_ABSTIME) && !uk->id.raw_u64)
		return -EINVAL;
	return 0;
}

static clockid_t ev_timer_clock(u32 event)
{
	switch (event & EV_TIMER_CLOCKS) {
	case KEVENT_TIMER_REALTIME:
		return CLOCK_REALTIME;
	case KEVENT_TIMER_BOOTTIME:
		return CLOCK_BOOTTIME;
	case KEVENT_TIMER_TAI:
		return CLOCK_TAI;
	default:
		return CLOCK_MONOTONIC;
	}
}

static ktime_t ev_timer_interval(const struct ukevent *uk)
{
	if (uk->event & KEVENT_TIMER_INTERVAL)
		return ktime_set(uk->ret_data[0], uk->ret_data[1]);
	if (uk->event & KEVENT_TIMER_ABSTIME ||
	    uk->req_flags & KEVENT_REQ_ONESHOT)
		return 0;
	return ktime_set(uk->id.raw[0], uk->id.raw[1]);
}

static enum hrtimer_restart ev_timer_fn(struct hrtimer *timer)
{
	struct kevent_timer *kt = container_of(timer, struct kevent_timer,
					       timer);
	struct kevent *ke = &kt->kk.ke;
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (!(ke->state & KE_BROKEN)) {
		kt->expired = true;
		kt->ticks++;
		hrtimer_add_expires(timer, kt->interval);
		kevent_ready_locked(ke, KEVENT_TIMER_FIRED, 0);
	}
	kevent_unlock(q, flags);
	return HRTIMER_NORESTART;
}

/* Whether the clock is set from now on is seen by kevent_clock_was_set(). */
static void ev_timer_watch_clock(struct kevent_timer *kt)
{
	unsigned long flags;

	spin_lock_irqsave(&ev_timer_on_set_lock, flags);
	if (list_empty(&kt->on_set))
		list_add_rcu(&kt->on_set, &ev_timer_on_set);
	spin_unlock_irqrestore(&ev_timer_on_set_lock, flags);
	kt->offset = ktime_mono_to_real(0);
}

/* Under ready_lock; neither the timer nor its callback is active. */
static void ev_timer_set(struct kevent_timer *kt, const struct ukevent *uk)
{
	clockid_t clock = ev_timer_clock(uk->event);
	bool absolute = uk->event & KEVENT_TIMER_ABSTIME;
	enum hrtimer_mode mode = absolute ? HRTIMER_MODE_ABS : HRTIMER_MODE_REL;
	ktime_t at = ktime_set(uk->id.raw[0], uk->id.raw[1]);

	kt->when = uk->id;
	kt->interval = ev_timer_interval(uk);
	kt->ticks = 0;
	kt->expired = false;
	hrtimer_init(&kt->timer, clock, mode);
	kt->timer.function = ev_timer_fn;
	if (uk->req_flags & KEVENT_REQ_DISABLED)
		return;
	if (uk->event & KEVENT_TIMER_CANCEL_ON_SET)
		ev_timer_watch_clock(kt);
	if (absolute)
		at = timens_ktime_to_host(clock, at);
	hrtimer_start(&kt->timer, at, mode);
}

static int ev_timer_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_timer *kt = to_timer(ke);
	unsigned long flags;

	RB_CLEAR_NODE(&kt->kk.node);
	INIT_LIST_HEAD(&kt->on_set);
	kt->kk.id = uk->ptr;
	spin_lock_irqsave(&ke->queue->ready_lock, flags);
	ev_timer_set(kt, uk);
	spin_unlock_irqrestore(&ke->queue->ready_lock, flags);
	return kevent_key_insert(&kt->kk);
}

static void ev_timer_detach(struct kevent *ke)
{
	struct kevent_timer *kt = to_timer(ke);
	unsigned long flags;

	kevent_key_erase(&kt->kk);
	spin_lock_irqsave(&ev_timer_on_set_lock, flags);
	if (!list_empty(&kt->on_set))
		list_del_rcu(&kt->on_set);
	spin_unlock_irqrestore(&ev_timer_on_set_lock, flags);
	hrtimer_cancel(&kt->timer);
}

/* A callback that waits for ready_lock must be through before a new setting. */
static bool ev_timer_quiesce(struct kevent *ke, unsigned long *flags)
	__must_hold(&ke->queue->ready_lock)
{
	struct kevent_timer *kt = to_timer(ke);

	if (hrtimer_try_to_cancel(&kt->timer) >= 0)
		return true;
	spin_unlock_irqrestore(&ke->queue->ready_lock, *flags);
	hrtimer_cancel_wait_running(&kt->timer);
	spin_lock_irqsave(&ke->queue->ready_lock, *flags);
	return false;
}

/* What is not delivered yet was of the former setting. */
static void ev_timer_modified(struct kevent *ke, const struct ukevent *uk)
{
	kevent_dequeue(ke);
	ke->ready = 0;
	ke->state &= ~(KE_FIRED | KE_BROKEN);
	ev_timer_set(to_timer(ke), uk);
}

static struct kevent *ev_timer_find(struct kevent_queue *q,
				    const struct ukevent *uk, struct file *file)
{
	return kevent_key_find(q, uk->type, uk->ptr);
}

static void ev_timer_fill(struct kevent *ke, struct ukevent *uk, u32 nth)
{
	struct kevent_timer *kt = to_timer(ke);

	if (kt->expired && kt->interval)
		kt->ticks += hrtimer_forward_now(&kt->timer, kt->interval);
	uk->id = kt->when;
	uk->ret_data[0] = lower_32_bits(kt->ticks);
	uk->ret_data[1] = upper_32_bits(kt->ticks);
}

static void ev_timer_delivered(struct kevent *ke)
{
	struct kevent_timer *kt = to_timer(ke);

	kt->ticks = 0;
	if (!kt->expired || !kt->interval || ke->state & KE_BROKEN ||
	    ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH))
		return;
	kt->expired = false;
	hrtimer_restart(&kt->timer);
}

static int ev_timer_error(struct kevent *ke)
{
	return -ECANCELED;
}

const struct kevent_source_ops kevent_timer_ops = {
	.name		= "timer",
	.cache		= &kevent_timer_cache,
	.check		= ev_timer_check,
	.attach		= ev_timer_attach,
	.detach		= ev_timer_detach,
	.quiesce	= ev_timer_quiesce,
	.modified	= ev_timer_modified,
	.find		= ev_timer_find,
	.fill		= ev_timer_fill,
	.error		= ev_timer_error,
	.delivered	= ev_timer_delivered,
};

static void ev_timer_cancel(struct kevent_timer *kt)
{
	struct kevent *ke = &kt->kk.ke;
	struct kevent_queue *q = ke->queue;
	unsigned long flags;
	ktime_t offset;

	spin_lock_irqsave(&q->ready_lock, flags);
	offset = ktime_mono_to_real(0);
	if (!(ke->state & KE_DEAD) && kt->offset != offset &&
	    ke->event & KEVENT_TIMER_CANCEL_ON_SET &&
	    !(ke->req_flags & KEVENT_REQ_DISABLED)) {
		kt->offset = offset;
		/* If it runs it waits for ready_lock, and sees KE_BROKEN. */
		hrtimer_try_to_cancel(&kt->timer);
		kevent_ready_locked(ke, 0, KE_BROKEN);
	}
	kevent_unlock(q, flags);
}

/**
 * kevent_clock_was_set - CLOCK_REALTIME may have been set
 *
 * Process context, no locks held.
 */
void kevent_clock_was_set(void)
{
	struct kevent_timer *kt;

	/* A watch found here has a queue: it is freed after a grace period. */
	rcu_read_lock();
	list_for_each_entry_rcu(kt, &ev_timer_on_set, on_set)
		ev_timer_cancel(kt);
	rcu_read_unlock();
}

static void ev_timer_resumed(struct work_struct *work)
{
	kevent_clock_was_set();
}

static DECLARE_WORK(ev_timer_work, ev_timer_resumed);

/**
 * kevent_clock_resumed - as kevent_clock_was_set(), from timekeeping_resume()
 */
void kevent_clock_resumed(void)
{
	schedule_work(&ev_timer_work);
}

static int __init ev_timer_init(void)
{
	BUILD_BUG_ON(offsetof(struct kevent_timer, kk.ke));
	kevent_timer_cache = KMEM_CACHE(kevent_timer,
					SLAB_PANIC | SLAB_ACCOUNT);
	return 0;
}
core_initcall(ev_timer_init);
