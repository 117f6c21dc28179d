// SPDX-License-Identifier: GPL-2.0
/*
 * The hot path: a source reports, and its event goes to the ring (a hit) or to
 * the ready list (a miss)
 */

#include <linux/irq_work.h>
#include <linux/sched.h>

#include "coalesce.h"
#include "hit.h"
#include "mapping.h"
#include "more.h"
#include "state.h"
#include "trace.h"
#include "watch.h"
#include "window.h"

static __always_inline bool kevent_hit_store(struct kevent_queue *q,
					     struct kevent *ke, u32 mask,
					     u32 amount)
{
	struct kring_entry uk = kevent_entry(ke, mask, amount);

	/* Full barrier: pairs with consumers, see kevent_previous(). */
	smp_mb__after_spinlock();
	if (!kring_push(&q->ring, &uk, &ke->stored, &ke->reported))
		return false;
	if (trace_kevent_ready_enabled())
		kevent_trace_ready(ke, mask, true);
	return true;
}

/*
 * A level watch that is idle, or waits for its next look. It is listed before the
 * entry can be seen: a consumer may take the entry at once, read part of what there
 * is, call, and must then find the watch.
 */
static __always_inline bool kevent_hit_level(struct kevent_queue *q,
					     struct kevent *ke, u32 mask,
					     u32 amount)
{
	bool listed = ke->state;

	/* An entry that nobody verifies must say all there is to say. */
	if ((listed && ke->state != KE_DELIVERED) || mask != ke->event)
		return false;
	if (!listed)
		kevent_look_later(ke);
	if (likely(kevent_hit_store(q, ke, mask, amount))) {
		kevent_window(q, KEVENT_WINDOW_HIT_STORED);
		return true;
	}
	if (!listed)
		kevent_look_not(ke);
	return false;
}

/* A watch that delivery disarms. The end of one takes a task. */
static noinline bool kevent_hit_other(struct kevent_queue *q,
				      struct kevent *ke, u32 mask, u32 amount)
{
	if (ke->state || ke->req_flags & KEVENT_REQ_ONESHOT)
		return false;
	if (!(ke->req_flags & KEVENT_REQ_ET) && mask != ke->event)
		return false;
	if (!kevent_hit_store(q, ke, mask, amount))
		return false;
	kevent_delivered(ke, 0);
	return true;
}

/*
 * Store a report in the ring, from where it is made, interrupts included. Returns
 * false, and nothing has changed, if that is not possible.
 */
static __always_inline bool kevent_hit(struct kevent_queue *q,
				       struct kevent *ke, u32 mask, u32 amount)
{
	lockdep_assert_held(&q->ready_lock);

	switch (kevent_mode(ke)) {
	case KEVENT_EDGE:
		return !ke->state && kevent_hit_store(q, ke, mask, amount);
	case KEVENT_LEVEL:
		return kevent_hit_level(q, ke, mask, amount);
	default:
		return kevent_hit_other(q, ke, mask, amount);
	}
}

/* Nothing is pending, nobody is asleep, and the ring is here. */
static __always_inline bool kevent_queue_may_hit(struct kevent_queue *q)
{
	return list_empty(&q->ready) && !kevent_sleeps(q) &&
	       kevent_ring_ready(q);
}

/*
 * As kevent_queue_may_hit(), but the ring may have to be searched for, and a
 * consumer that waits for the ring may sleep. Events stay in order, and a ring that
 * faulted is left to consumers.
 */
static __always_inline bool
kevent_queue_may_hit_and_wake(struct kevent_queue *q)
{
	return list_empty(&q->ready) && kevent_ring_here(q) &&
	       !(q->ring.flags & KEVENT_RING_BROKEN) &&
	       kevent_may_wait_for_ring(q);
}

static __always_inline bool
kevent_hit_and_wake(struct kevent_queue *q, struct kevent *ke, u32 mask,
		    u32 amount)
{
	u64 kidx = q->ring.kidx;

	if (!kevent_queue_may_hit_and_wake(q) ||
	    !kevent_hit(q, ke, mask, amount))
		return false;
	if (q->ring.kidx != kidx)
		kevent_wake_for(ke, KEVENT_OF_RING);
	return true;
}

static void kevent_miss(struct kevent *ke, u32 mask)
{
	if (kevent_is_checked(ke))
		kevent_look_locked(ke);
	else
		kevent_ready_locked(ke, mask);
}

/* A queue without a ring has no hits, and a watch with LAST_CHECK is looked at by a call. */
static __always_inline bool kevent_never_hits(const struct kevent_queue *q,
					      const struct kevent *ke)
{
	return !q->ring.size || ke->req_flags & KEVENT_REQ_LAST_CHECK;
}

/* A report is no hit. A call looks at the watch before it delivers it, if that can be done. */
static __always_inline void kevent_miss_at_once(struct kevent_queue *q,
						struct kevent *ke, u32 mask)
{
	if (!mask)
		return;
	if (kevent_sleeps(q) || !kevent_is_checked(ke) || !kevent_look_next(ke)) {
		kevent_miss(ke, mask);
		return;
	}
	if (trace_kevent_ready_enabled())
		kevent_trace_ready(ke, ke->ready, false);
	kevent_more_listed(q);
}

static noinline void kevent_hit_or_miss(struct kevent *ke, u32 mask,
					u32 amount)
{
	if (mask && !kevent_hit_and_wake(ke->queue, ke, mask, amount))
		kevent_miss_at_once(ke->queue, ke, mask);
}

/* A consumer sleeps. */
static noinline int kevent_ready_asleep(struct kevent_queue *q,
					struct kevent *ke, u32 mask, u32 amount,
					u32 chain)
	__releases(&q->ready_lock)
{
	if (mask && !kevent_hit_and_wake(q, ke, mask, amount))
		kevent_miss(ke, mask);
	kevent_unlock_irqoff(q, chain);
	return 1;
}

/*
 * The most frequent report: of an edge triggered watch, with nothing else listed,
 * nobody asleep, and the ring here. @mask has the conditions of interest only: that
 * may have changed since the source looked.
 */
static __always_inline bool kevent_hit_edge(struct kevent_queue *q,
					    struct kevent *ke, u32 mask,
					    u32 amount)
{
	mask &= ke->event;
	if (!mask || ke->state || kevent_mode(ke) != KEVENT_EDGE ||
	    q->nr_listed)
		return false;
	return !kevent_sleeps(q) && kevent_ring_ready(q) &&
	       kevent_hit_store(q, ke, mask, amount);
}

static __always_inline void kevent_report_any(struct kevent_queue *q,
					      struct kevent *ke, u32 mask,
					      u32 amount)
{
	if (unlikely(!mask || !kevent_queue_may_hit(q) ||
		     !kevent_hit(q, ke, mask, amount)))
		kevent_hit_or_miss(ke, mask, amount);
}

static noinline void kevent_report_ring(struct kevent_queue *q,
					struct kevent *ke, u32 mask, u32 amount)
{
	kevent_report_any(q, ke, mask, amount);
}

static noinline void kevent_report_miss(struct kevent_queue *q,
					struct kevent *ke, u32 mask)
{
	kevent_miss_at_once(q, ke, mask);
}

static __always_inline void kevent_report_slow(struct kevent_queue *q,
					       struct kevent *ke, u32 mask,
					       u32 amount)
{
	if (kevent_never_hits(q, ke))
		kevent_report_miss(q, ke, mask);
	else
		kevent_report_ring(q, ke, mask, amount);
}

static noinline int kevent_ready_slow(struct kevent_queue *q,
				      struct kevent *ke, u32 mask, u32 amount,
				      u32 chain)
	__releases(&q->ready_lock)
{
	kevent_report_any(q, ke, mask, amount);
	kevent_unlock_irqoff(q, chain);
	return 1;
}

static noinline int kevent_miss_now(struct kevent_queue *q, struct kevent *ke,
				    u32 mask, u32 chain)
	__releases(&q->ready_lock)
{
	kevent_miss_at_once(q, ke, mask);
	kevent_unlock_irqoff(q, chain);
	return 1;
}

static __always_inline int __kevent_ready_now(struct kevent *ke, u32 mask,
					      u32 amount, u32 chain)
{
	struct kevent_queue *q = ke->queue;

	/* With PREEMPT_RT no interrupt takes this lock. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		lockdep_assert_irqs_disabled();

	spin_lock(&q->ready_lock);
	if (likely(kevent_hit_edge(q, ke, mask, amount))) {
		kevent_unlock_irqoff(q, chain);
		return 1;
	}
	mask &= ke->event;
	if (kevent_never_hits(q, ke))
		return kevent_miss_now(q, ke, mask, chain);
	if (kevent_sleeps(q))
		return kevent_ready_asleep(q, ke, mask, amount, chain);
	return kevent_ready_slow(q, ke, mask, amount, chain);
}

/**
 * kevent_ready_now - a source reports conditions that hold at this moment
 * @ke: the watch, of a source with collect() and without count()
 * @mask: the conditions: all there is to say
 *
 * Stores the event in the ring if that can be done at once. Otherwise it is
 * looked up before it is delivered, if that is the mode of the watch.
 *
 * As kevent_ready(), but interrupts are off. Return: 1, as callbacks of wait
 * queues do.
 */
int kevent_ready_now(struct kevent *ke, u32 mask)
{
	return __kevent_ready_now(ke, mask, 0, 0);
}

/**
 * kevent_ready_amount - kevent_ready_now() with an amount
 * @ke: the watch
 * @mask: the conditions
 * @amount: second word of the entry
 * @chain: of kevent_chain()
 *
 * Return: 1.
 */
int kevent_ready_amount(struct kevent *ke, u32 mask, u32 amount, u32 chain)
{
	return __kevent_ready_now(ke, mask, amount, chain);
}

/**
 * kevent_ready_irqs_on - kevent_ready_amount() with interrupts on or off
 * @ke: the watch; it may be dead and detached, as long as RCU keeps it
 * @mask: the conditions
 * @amount: second word of the entry
 */
void kevent_ready_irqs_on(struct kevent *ke, u32 mask, u32 amount)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (unlikely(!kevent_hit_edge(q, ke, mask, amount)))
		kevent_report_slow(q, ke, mask & ke->event, amount);
	kevent_unlock(q, flags);
}

/**
 * kevent_offer - kevent_ready_amount() in the place of others
 * @ke: the watch
 * @keys: of &kevent.keys, those it must still have
 * @mask: the conditions; 0: they have to be looked up
 * @amount: second word of the entry
 * @chain: of kevent_chain()
 *
 * A watch that was modified since the source looked gets nothing.
 *
 * Return: true when @ke is sure to report, or to look up, what it was offered: if
 * it is neither removed nor modified before that. Otherwise others must have it.
 */
bool kevent_offer(struct kevent *ke, u16 keys, u32 mask, u32 amount,
		  u32 chain)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;
	bool taken;

	spin_lock_irqsave(&q->ready_lock, flags);
	taken = kevent_is_armed(ke) && (ke->keys & keys) == keys;
	if (taken) {
		taken = !kevent_is_leaving(ke);
		mask &= ke->event;
		kevent_coalesce_stop(q);
		if (!mask)
			kevent_look_locked(ke);
		else if (!kevent_hit_edge(q, ke, mask, amount))
			kevent_report_slow(q, ke, mask, amount);
	}
	kevent_unlock_chain(q, flags, chain);
	return taken;
}

/**
 * kevent_ready - a source reports
 * @ke: the watch
 * @mask: conditions that hold now
 *
 * What a disarmed watch reports is kept until it is modified.
 */
void kevent_ready(struct kevent *ke, u32 mask)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_ready_locked(ke, mask);
	kevent_unlock(q, flags);
}

/*
 * kevent_unlock() for a source that may report many events in one hard interrupt: those
 * who poll() the queue, and nothing limits their number, are woken once behind it.
 */
static void kevent_unlock_later(struct kevent_queue *q, unsigned long flags)
	__releases(&q->ready_lock)
{
	bool wake = kevent_poll_waits(q);

	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (wake)
		irq_work_queue(&q->poll_work);
}

/**
 * kevent_look - something has happened to a watch, and collect() knows what
 * @ke: the watch
 *
 * For a source that may report many watches of a queue in one hard interrupt.
 */
void kevent_look(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_look_locked(ke);
	kevent_unlock_later(q, flags);
}

/**
 * kevent_look_chain - kevent_look() from a wake-up of a watched file
 * @ke: the watch
 * @chain: of kevent_chain()
 */
void kevent_look_chain(struct kevent *ke, u32 chain)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_look_locked(ke);
	kevent_unlock_chain(q, flags, chain);
}

/**
 * kevent_broken - the source of a watch cannot deliver any more
 * @ke: the watch; the entry says it with &kevent_source_ops.error
 */
void kevent_broken(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_broken_locked(ke);
	kevent_unlock(q, flags);
}
