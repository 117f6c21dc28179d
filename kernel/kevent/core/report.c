// SPDX-License-Identifier: GPL-2.0
/*
 * The hot path: a source reports, and its event goes to the ring (a hit) or to the ready
 * list (a miss)
 *
 * The queue's ring_mm says in one comparison that the ring is here and not known to be broken.
 * A hit requires that
 *
 * - The source allows it, and the key of the wake-up says what has become true. It has
 *   neither HUP nor ERR, and the watch has no interest in what keys do not say. The key for a
 *   level watch covers all of its interest, so that the entry says what ->poll() would.
 * - The watch has neither LAST_CHECK, since its delivery polls it, nor ONESHOT, since its end
 *   needs a task.
 * - The ring is in current->mm. The code compares this each time: the wake-up may come from
 *   the writing thread, from an interrupt, or from another process. The task may be a kernel
 *   thread that uses the address space, or one that exits and still has it.
 * - The ready list is empty, so events stay in order, and the ring is not
 *   KEVENT_RING_BROKEN.
 * - If a consumer sleeps, the one that would be woken waits for the ring, and not in
 *   kevent_get_events().
 * - There is a free slot, and the page is present and writable.
 *
 * A level hit puts its watch on the level list, which nr_queued counts, before it stores the
 * entry. A consumer may take the entry while the hit is not over, read a part of the data,
 * and call again. kevent_is_idle() then finds that something is queued, so the call takes
 * the lock. A watch on the level list can be hit again before a call polls it. A call does
 * not poll a watch whose entry is unread: the consumer of the entry has yet to read the file.
 *
 * An unread entry that says as much makes a further one redundant, see kring_push().
 * kevent_repeats() and "ring ordering" in ukevent.h have the two barriers that this needs.
 */

#include <linux/cleanup.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <trace/events/kevent.h>

#include "entry.h"
#include "queue_ring.h"
#include "report.h"
#include "state.h"
#include "testpoint.h"
#include "wake.h"
#include "wake_coalesce.h"
#include "watch.h"

/* Not in line: the hot path has no more than a branch that is patched in. */
static noinline void __cold __kevent_trace_hit(const struct kevent *ke, u32 ready)
{
	trace_kevent_ready(ke, ready, 1, true);
}

static inline void kevent_trace_hit(const struct kevent *ke, u32 ready)
{
	if (trace_kevent_ready_enabled())
		__kevent_trace_hit(ke, ready);
}

/*
 * Store an entry, or find an unread one that says as much. In line, as kevent_report(): an edge
 * triggered event takes 56 instructions less.
 */
static __always_inline bool kevent_hit_store(struct kevent_queue *q,
					     struct kevent *ke, u32 mask,
					     u32 amount)
{
	struct ukevent uk = kevent_entry(ke, mask, amount);

	/* Full barrier: pairs with consumers, see kevent_repeats(). */
	smp_mb__after_spinlock();
	return kring_push(&q->ring, &uk, &ke->stored, &ke->reported);
}

/*
 * Can an entry be stored without a call? Nobody verifies it, so that of a level watch must
 * say all there is to say.
 */
static bool kevent_may_hit(const struct kevent *ke, enum kevent_mode mode,
			   u32 mask)
{
	switch (mode) {
	case KEVENT_EDGE:
		return !ke->state;
	case KEVENT_LEVEL:
		return mask == ke->event &&
		       (!ke->state || ke->state == KE_DELIVERED);
	default:
		/* DISPATCH. The end of a watch takes a task. */
		return !(ke->req_flags & (KEVENT_REQ_ONESHOT |
					  KEVENT_REQ_LAST_CHECK)) &&
		       (mask == ke->event || ke->req_flags & KEVENT_REQ_ET) &&
		       !ke->state;
	}
}

/*
 * Store a report in the ring, from where it is made, interrupts included. The caller has seen that
 * the ring is here and the ready list empty. Returns false if nothing is stored: a level watch may
 * be on the level list all the same, and kevent_recheck_locked() moves it to the ready list.
 */
static bool kevent_hit(struct kevent_queue *q, struct kevent *ke, u32 mask,
		       u32 amount)
{
	enum kevent_mode mode = kevent_mode(ke);
	u64 kidx = q->ring.kidx;

	if (!kevent_may_wait_for_ring(q) || !kevent_may_hit(ke, mode, mask))
		return false;
	/* Before the entry can be seen: who takes it, and calls, must find the watch. */
	if (mode == KEVENT_LEVEL && !ke->state)
		kevent_recheck_later(ke);
	if (!kevent_hit_store(q, ke, mask, amount))
		return false;
	kevent_trace_hit(ke, mask);
	if (mode == KEVENT_LEVEL)
		kevent_testpoint(q, KEVENT_TESTPOINT_HIT_STORED);
	else if (mode == KEVENT_OTHER)
		kevent_delivered(ke);
	if (kevent_sleeps(q) && q->ring.kidx != kidx)
		kevent_wake_for(ke, KEVENT_OF_RING);
	return true;
}

/*
 * A consumer of the ring is awake, in its address space, and a watch is ready, which was reported
 * where the ring is not mapped. Stores its event as a hit would have, if that is all there is to
 * do. Returns whether there is a new entry. Otherwise the consumer collects: several watches, one
 * that needs a poll, or has more to say than conditions, and all if the ring is full, has a flag
 * set, or if its memory was away.
 */
bool kevent_hit_late(struct kevent_queue *q)
{
	struct kevent *ke = list_first_entry(&q->ready, struct kevent, link);
	u64 kidx = q->ring.kidx;
	bool stored;

	lockdep_assert_held(&q->ready_lock);

	if (ke->state != KE_QUEUED || !list_is_singular(&q->ready) ||
	    kevent_mode(ke) != KEVENT_EDGE || !kevent_has_level(ke) ||
	    q->ring.flags || q->ring.away || !kevent_ring_select(q) ||
	    !kevent_hit_store(q, ke, ke->ready, kevent_amount(ke, ke->ready)))
		return false;
	stored = q->ring.kidx != kidx;
	if (stored)
		trace_kevent_deliver(ke, ke->ready, 1, true);
	q->collected += stored;
	ke->ready = 0;
	kevent_dequeue(ke);
	kevent_state_check(ke);
	return stored;
}

/*
 * A source reports @mask: it goes to the ring, or the watch to the ready list. The most
 * frequent hit is in line: that of an edge triggered watch while nobody sleeps.
 */
static __always_inline void kevent_report(struct kevent_queue *q, struct kevent *ke,
					  u32 mask, u32 amount)
{
	/* The interest may have changed since the source looked. */
	mask &= ke->event;
	if (unlikely(!mask))
		return;
	/* A ring that has faulted is left to consumers: ring_mm does not say where it is. */
	if (q->ring.size && likely(list_empty(&q->ready) && kevent_ring_select(q) &&
				   q->ring_mm == current->mm)) {
		if (likely(kevent_mode(ke) == KEVENT_EDGE && !kevent_sleeps(q) &&
			   kevent_may_hit(ke, KEVENT_EDGE, mask) &&
			   kevent_hit_store(q, ke, mask, amount))) {
			kevent_trace_hit(ke, mask);
			return;
		}
		if (kevent_hit(q, ke, mask, amount))
			return;
	}
	if (kevent_is_checked(ke))
		kevent_recheck_locked(ke);
	else
		kevent_ready_locked(ke, mask);
}

/*
 * kevent_ready() for a source with %KEVENT_SOURCE_LEVEL, which reports conditions that hold
 * now; interrupts are off. Stores the event in the ring if that is possible at once. Otherwise
 * the watch is queued, and its delivery polls the conditions again if the mode of the watch
 * wants that. @amount is the second word of the entry. Returns 1, as callbacks of wait queues do.
 */
int kevent_ready_amount(struct kevent *ke, u32 mask, u32 amount)
{
	struct kevent_queue *q = ke->queue;

	/* With PREEMPT_RT no interrupt takes this lock. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		lockdep_assert_irqs_disabled();

	spin_lock(&q->ready_lock);
	kevent_report(q, ke, mask, amount);
	kevent_wake_pollers(q);
	spin_unlock(&q->ready_lock);
	return 1;
}

/*
 * kevent_ready_amount() with interrupts on or off. The watch may be dead and detached, as
 * long as RCU keeps it.
 */
void kevent_ready_irqs_on(struct kevent *ke, u32 mask, u32 amount)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_report(q, ke, mask, amount);
	kevent_unlock(q, flags);
}

/*
 * kevent_ready_amount() for one watch in the place of others. The watch must still have these
 * @keys: a watch that was modified since the source read them gets nothing. If @mask is 0 the
 * conditions have to be polled. Returns true if the watch will report what it was offered,
 * unless it is removed or modified first. Otherwise the caller must offer it to others.
 */
bool kevent_offer(struct kevent *ke, u16 keys, u32 mask, u32 amount)
{
	struct kevent_queue *q = ke->queue;
	bool taken;

	guard(kevent_queue)(q);
	taken = kevent_is_armed(ke) && (ke->keys & keys) == keys;
	if (taken) {
		/* A delivery that has begun without this event will disarm or end the watch. */
		taken = !(ke->state & KE_CLAIMED &&
			  ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH));
		mask &= ke->event;
		/* It is not held: somebody else could have taken it at once. */
		kevent_coalesce_stop(q);
		if (mask)
			kevent_report(q, ke, mask, amount);
		else
			kevent_recheck_locked(ke);
	}
	return taken;
}

/* A source reports conditions that hold now. A disarmed watch keeps them until it is modified. */
void kevent_ready(struct kevent *ke, u32 mask)
{
	guard(kevent_queue)(ke->queue);
	kevent_ready_locked(ke, mask);
}

/* Something has happened to a watch, and collect() knows what. */
void kevent_recheck(struct kevent *ke)
{
	guard(kevent_queue)(ke->queue);
	kevent_recheck_locked(ke);
}

/* The source of a watch cannot deliver any more. The entry has what fill() makes of -EIDRM. */
void kevent_broken(struct kevent *ke)
{
	guard(kevent_queue)(ke->queue);
	kevent_broken_locked(ke);
}
