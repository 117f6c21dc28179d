// SPDX-License-Identifier: GPL-2.0
/*
 * The hot path: what a source's callback does
 */

#include <linux/sched.h>

#include "kevent.h"
#include "window.h"

static __always_inline bool kevent_hit_store(struct kevent_queue *q,
					     struct kevent *ke, u32 mask,
					     u32 amount)
{
	struct kring_entry uk = {
		.id		= kevent_id(ke),
		.user		= ke->user,
		.type		= ke->type,
		.event		= ke->event,
		.req_flags	= ke->req_flags,
		.ready		= mask,
		.amount		= amount,
	};

	/* Full barrier: pairs with consumers, see kevent_previous(). */
	smp_mb__after_spinlock();
	return kring_push(&q->ring, &uk, &ke->stored, &ke->reported);
}

/*
 * Nothing is to be done but to store an entry: an edge triggered watch without
 * further modes, nothing else pending, and nobody asleep.
 */
static __always_inline bool kevent_hit_is_plain(struct kevent_queue *q,
						const struct kevent *ke)
{
	if (ke->state ||
	    (ke->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_ONESHOT |
			      KEVENT_REQ_LAST_CHECK |
			      KEVENT_REQ_DISPATCH)) != KEVENT_REQ_ET)
		return false;
	/* Consumers join and leave under ready_lock. */
	return !q->nr_listed && !waitqueue_active(&q->wait) &&
	       q->ring_mm == current->mm && kevent_mm_in_use();
}

/* What a level watch looks like that waits for its next look */
#define KE_ON_LEVEL	(KE_LISTED | KE_QUIET | KE_VERIFY)

static bool kevent_watch_may_hit(const struct kevent *ke, u32 mask)
{
	if (ke->state && ke->state != KE_ON_LEVEL)
		return false;
	if (ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_LAST_CHECK))
		return false;
	/* An entry that nobody verifies shall say all there is to say. */
	return ke->req_flags & KEVENT_REQ_ET || mask == ke->event;
}

/* Events stay in order, and a ring that faulted is for consumers. */
static bool kevent_queue_may_hit(struct kevent_queue *q)
{
	return list_empty(&q->ready) && kevent_ring_here(q) &&
	       !(q->ring.flags & KEVENT_RING_BROKEN) &&
	       kevent_may_wait_for_ring(q);
}

/*
 * A hit of a level watch that is not listed, or waits for its next look. It is listed
 * before the entry can be seen: a consumer may take the entry at once, read part
 * of what there is, call, and must then find the watch.
 */
static __always_inline bool kevent_hit_level(struct kevent_queue *q,
					     struct kevent *ke, u32 mask,
					     u32 amount)
{
	bool listed = ke->state;

	if (!listed)
		kevent_look_later(ke);
	if (likely(kevent_hit_store(q, ke, mask, amount))) {
		kevent_window(q, KEVENT_WINDOW_HIT_STORED);
		return true;
	}
	if (!listed) {
		kevent_dequeue(ke);
		ke->state &= ~KE_VERIFY;
	}
	return false;
}

/*
 * Store what a source has to say in the ring, from wherever that happens:
 * interrupts included, as long as the address space in use has the ring.
 * Returns false, and nothing has changed, if it has to be queued.
 */
static bool kevent_hit(struct kevent_queue *q, struct kevent *ke, u32 mask,
		       u32 amount)
{
	u64 kidx = q->ring.kidx;

	lockdep_assert_held(&q->ready_lock);

	if (!kevent_watch_may_hit(ke, mask) || !kevent_queue_may_hit(q))
		return false;
	if (ke->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_DISPATCH) ?
	    !kevent_hit_store(q, ke, mask, amount) :
	    !kevent_hit_level(q, ke, mask, amount))
		return false;
	if (!ke->state && ke->req_flags & KEVENT_REQ_DISPATCH)
		kevent_delivered(ke, 0);
	if (q->ring.kidx != kidx)
		kevent_wake_for(ke, KEVENT_OF_RING);
	return true;
}

/**
 * kevent_ready_locked - kevent_ready() for a source that has state of its own
 * @ke: the watch
 * @mask: see kevent_ready()
 * @state: see kevent_ready()
 *
 * The caller has taken ready_lock and releases it with kevent_unlock().
 */
void kevent_ready_locked(struct kevent *ke, u32 mask, u16 state)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	/* That it is broken is said when it is armed again. */
	ke->state |= state & KE_BROKEN;
	/* The interest may have changed since the source looked. */
	if (ke->state & KE_DEAD || (mask && !(mask & ke->event)))
		return;
	if (ke->state & KE_DISARMED && !(state & KE_FIRED))
		return;
	if (!(state & KE_VERIFY))
		ke->ready |= mask & ke->event;
	ke->state |= state & ~KE_FIRED;
	if (ke->state & (KE_BUSY | KE_DISARMED))
		ke->state |= KE_FIRED;
	else
		kevent_enqueue(ke);
}

/**
 * kevent_ready - a source reports
 * @ke: the watch
 * @mask: conditions that hold now; 0 when the source cannot tell
 * @state: %KE_VERIFY to have it looked up before delivery, %KE_BROKEN when
 *	   nothing will come any more, %KE_FIRED to have it kept while the
 *	   watch is disarmed, or 0
 *
 * Any context, hard interrupts included; the source's own lock may be held, and
 * whatever makes detach() wait for this callback must be.
 */
void kevent_ready(struct kevent *ke, u32 mask, u16 state)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_ready_locked(ke, mask, state);
	kevent_unlock(q, flags);
}

/*
 * As kevent_hit_is_plain(), for a level watch: it is not listed, or waits for its
 * next look.
 */
static __always_inline bool kevent_hit_is_level(struct kevent_queue *q,
						const struct kevent *ke,
						u32 mask)
{
	if ((ke->state && ke->state != KE_ON_LEVEL) || mask != ke->event ||
	    ke->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_ONESHOT |
			     KEVENT_REQ_LAST_CHECK | KEVENT_REQ_DISPATCH))
		return false;
	/* Consumers join and leave under ready_lock. */
	return list_empty(&q->ready) && !waitqueue_active(&q->wait) &&
	       q->ring_mm == current->mm && kevent_mm_in_use();
}

static noinline void kevent_ready_otherwise(struct kevent *ke, u32 mask,
					    u32 amount)
{
	struct kevent_queue *q = ke->queue;

	if (!mask)
		return;
	if (likely(kevent_hit_is_level(q, ke, mask)) &&
	    kevent_hit_level(q, ke, mask, amount))
		return;
	if (!kevent_hit(q, ke, mask, amount))
		kevent_ready_locked(ke, mask,
				    kevent_is_checked(ke) ? KE_VERIFY : 0);
}

static noinline int kevent_ready_now_slow(struct kevent_queue *q,
					  struct kevent *ke, u32 mask,
					  u32 amount)
	__releases(&q->ready_lock)
{
	kevent_ready_otherwise(ke, mask, amount);
	kevent_unlock_irqoff(q);
	return 1;
}

/* The interest may have changed since the source looked. */
static __always_inline bool kevent_hit_plain(struct kevent_queue *q,
					     struct kevent *ke, u32 mask,
					     u32 amount)
{
	mask &= ke->event;
	return mask && kevent_hit_is_plain(q, ke) &&
	       kevent_hit_store(q, ke, mask, amount);
}

static __always_inline int __kevent_ready_now(struct kevent *ke, u32 mask,
					      u32 amount)
{
	struct kevent_queue *q = ke->queue;

	/* With PREEMPT_RT no interrupt takes this lock. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		lockdep_assert_irqs_disabled();

	spin_lock(&q->ready_lock);
	if (unlikely(!kevent_hit_plain(q, ke, mask, amount)))
		return kevent_ready_now_slow(q, ke, mask & ke->event, amount);
	kevent_unlock_irqoff(q);
	return 1;
}

/**
 * kevent_ready_now - a source reports what is true at this moment
 * @ke: the watch, of a source without count()
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
	return __kevent_ready_now(ke, mask, 0);
}

/**
 * kevent_ready_amount - kevent_ready_now() with an amount
 * @ke: the watch
 * @mask: the conditions
 * @amount: second word of the entry, see &kevent_source_ops.amount
 *
 * Return: 1.
 */
int kevent_ready_amount(struct kevent *ke, u32 mask, u32 amount)
{
	return __kevent_ready_now(ke, mask, amount);
}

/* Is @ke delivered for what was known before, and then dead or disarmed? */
static bool kevent_is_leaving(const struct kevent *ke)
{
	return ke->state & KE_BUSY &&
	       ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH);
}

/**
 * kevent_offer - kevent_ready_amount() in the place of others
 * @ke: the watch
 * @keys: of &kevent.keys, those it must still have
 * @mask: the conditions; 0: they have to be looked up
 * @amount: second word of the entry
 *
 * What was modified since the source looked is told nothing.
 *
 * Return: true when @ke is sure to report, or to look up, what it was told: if it
 * is neither removed nor modified before that. Others have to be told else.
 */
bool kevent_offer(struct kevent *ke, u16 keys, u32 mask, u32 amount)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;
	bool taken;

	spin_lock_irqsave(&q->ready_lock, flags);
	taken = !(ke->state & (KE_DEAD | KE_DISARMED)) &&
		(ke->keys & keys) == keys;
	if (taken) {
		taken = !kevent_is_leaving(ke);
		mask &= ke->event;
		if (!mask)
			kevent_ready_locked(ke, 0, KE_VERIFY);
		else if (!kevent_hit_plain(q, ke, mask, amount))
			kevent_ready_otherwise(ke, mask, amount);
	}
	kevent_unlock(q, flags);
	return taken;
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
	if (unlikely(!kevent_hit_plain(q, ke, mask, amount)))
		kevent_ready_otherwise(ke, mask & ke->event, amount);
	kevent_unlock(q, flags);
}
