// SPDX-License-Identifier: GPL-2.0
/*
 * The state of a watch
 *
 * All bits are written under ready_lock, by this file and state.h. These are the legal states.
 * A bit in brackets may be there or not. AWAKE may be added to all, and BROKEN to all but
 * "delivered".
 *
 *	attaching	NEW CLAIMED (FIRED) (STALE) (VERIFY) (DISARMED)
 *	idle		none
 *	queued		QUEUED (VERIFY) (FIRED)
 *	delivered	QUEUED QUIET VERIFY
 *	claimed		CLAIMED (FIRED) (STALE) (VERIFY) (DISARMED)
 *	disarmed	DISARMED (FIRED) (VERIFY)
 *	dead		DEAD (SPENT) (NEW) (CLAIMED) (DETACHED) and what was left
 *
 * A queued watch is on the ready list. If a consumer slept one was woken for it, or deals with
 * it. A delivered one is a level watch that waits for its next poll, on the level list or, if a
 * consumer has had no room for it yet, on the ready list. Where the table below says "noted",
 * FIRED, VERIFY, BROKEN and &kevent.ready keep the report until the watch is released or
 * modified. A queued watch with FIRED is polled again after its delivery.
 *
 *	state		report	   nothing	stored		claim	   release
 *
 *	attaching	noted	   -		-		claimed	   A
 *	idle		queued	   -		B		claimed	   -
 *	queued		queued	   idle		B		claimed	   -
 *	delivered	queued	   idle		B		claimed	   -
 *	claimed		noted	   -		-		-	   A
 *	disarmed	noted	   -		-		claimed	   -
 *
 *	A	queued if something was found or noted, otherwise idle; disarmed. After the
 *		copy of its event B
 *	B	idle; delivered if it is a level watch; queued if there is more; disarmed with
 *		DISPATCH; dead with ONESHOT
 *
 * report: a source calls kevent_ready_locked(), kevent_recheck_locked() or
 * kevent_broken_locked(); MODIFY and READY call kevent_activate_pending(). nothing: a poll under
 * the lock finds that nothing is ready, kevent_looked(), or a source calls kevent_forget().
 * stored: the ring or a buffer has the event, kevent_delivered() or kevent_spend(); a hit of a
 * level watch calls kevent_recheck_later() before. claim and release: kevent_claim() and
 * kevent_release(). Besides MODIFY makes any watch disarmed, or armed again, by
 * kevent_set_mode(), and kevent_kill() makes it dead.
 */

#include <linux/bug.h>

#include "queue_ring.h"
#include "state.h"
#include "wake_coalesce.h"
#include "wakeup_source.h"

#include <trace/events/kevent.h>

#ifdef CONFIG_KEVENT_DEBUG

static const struct {
	u16	bits;
	u16	more;
} kevent_states[] = {
	{ 0, KE_BROKEN },
	{ KE_NEW | KE_CLAIMED,
	  KE_FIRED | KE_STALE | KE_VERIFY | KE_DISARMED | KE_BROKEN },
	{ KE_QUEUED, KE_VERIFY | KE_FIRED | KE_BROKEN },
	{ KE_DELIVERED, 0 },
	{ KE_CLAIMED, KE_FIRED | KE_STALE | KE_VERIFY | KE_DISARMED | KE_BROKEN },
	{ KE_DISARMED, KE_FIRED | KE_VERIFY | KE_BROKEN },
	{ KE_DEAD, (u16)~(KE_QUEUED | KE_QUIET) },
};

/* Warn when the state of a watch is not legal. */
void kevent_state_check(const struct kevent *ke)
{
	u16 state = ke->state & ~KE_AWAKE;
	unsigned int i;

	lockdep_assert_held(&ke->queue->ready_lock);

	for (i = 0; i < ARRAY_SIZE(kevent_states); i++)
		if ((state & kevent_states[i].bits) == kevent_states[i].bits &&
		    !(state & ~(kevent_states[i].bits |
				kevent_states[i].more)))
			return;
	WARN_ONCE(1, "kevent: illegal state %x of type %u", ke->state,
		  ke->type);
}

#endif /* CONFIG_KEVENT_DEBUG */

/* The state of a watch, alive, for people: "Seeing queues" in kevent-kernel.rst explains it. */
const char *kevent_state_word(const struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DISARMED)
		return "disabled";
	if (ke->state & KE_CLAIMED)
		return "busy";
	if (ke->state & KE_QUEUED)
		return ke->state & KE_QUIET ? "delivered" : "queued";
	return ke->state & KE_BROKEN ? "broken" : "idle";
}

/* Events of a watch */

/* Put it on the ready list once, and wake a consumer if it was not there. */
static void kevent_enqueue(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;

	if ((ke->state & (KE_QUEUED | KE_QUIET)) == KE_QUEUED)
		return;
	if (unlikely(ke->state & KE_AWAKE))
		kevent_stay_awake(q);
	if (ke->state & KE_QUEUED)
		list_move_tail(&ke->link, &q->ready);
	else
		kevent_list_add(ke, &q->ready);
	ke->state |= KE_QUEUED;
	ke->state &= ~KE_QUIET;
	q->misses++;
	trace_kevent_ready(ke, ke->ready, 1, false);
	if (kevent_sleeps(q)) {
		if (unlikely(q->coalesce.left) && kevent_coalesce_hold(ke))
			return;
		kevent_wake_for(ke, KEVENT_ANY);
	}
	/* Later ones find it set. */
	if (list_is_singular(&q->ready))
		kevent_more(q);
}

/* There is something to report: queue the watch, or note it. */
static void kevent_activate(struct kevent *ke)
{
	if (ke->state & (KE_CLAIMED | KE_DISARMED))
		ke->state |= KE_FIRED;
	else
		kevent_enqueue(ke);
	kevent_state_check(ke);
}

/* kevent_activate() after a control call: a poll may have to find out what there is. */
void kevent_activate_pending(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (kevent_is_checked(ke) ||
	    (kevent_source_of(ke)->collect && !ke->ready))
		ke->state |= KE_VERIFY;
	kevent_activate(ke);
}

/*
 * kevent_ready() for a source that has state of its own. The caller has taken ready_lock
 * and releases it with kevent_unlock().
 */
void kevent_ready_locked(struct kevent *ke, u32 mask)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	/* The interest may have changed since the source looked. */
	mask &= ke->event;
	if (ke->state & KE_DEAD || !mask)
		return;
	ke->ready |= mask;
	kevent_activate(ke);
}

/* kevent_recheck() under ready_lock */
void kevent_recheck_locked(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DEAD)
		return;
	ke->state |= KE_VERIFY;
	kevent_activate(ke);
}

/* kevent_broken() under ready_lock */
void kevent_broken_locked(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DEAD)
		return;
	/* First: on the level list nothing is broken. */
	kevent_activate(ke);
	ke->state |= KE_BROKEN;
}

/*
 * Drop what is not delivered yet. STALE makes a consumer that polls the watch drop the conditions
 * that it finds. With the event of an ADD, kevent_release() compares the interest.
 */
void kevent_forget(struct kevent *ke)
{
	kevent_dequeue(ke);
	ke->ready = 0;
	ke->state &= ~(KE_FIRED | KE_VERIFY | KE_BROKEN);
	if (!(ke->state & KE_CLAIMED))
		return;
	ke->state |= KE_STALE;
	if (kevent_source_of(ke)->collect)
		ke->state |= KE_VERIFY;
}

/*
 * User memory has the event of a watch; @ke->ready has conditions not yet delivered.
 * With KEVENT_REQ_ONESHOT the caller removes it.
 */
void kevent_delivered(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (kevent_is_level(ke) && !(ke->req_flags & KEVENT_REQ_DISPATCH)) {
		kevent_recheck_later(ke);
		return;
	}
	if (ke->req_flags & KEVENT_REQ_DISPATCH) {
		kevent_dequeue(ke);
		ke->state &= ~KE_FIRED;
		ke->state |= KE_DISARMED;
		/* MODIFY reports what is left. */
		if (kevent_count(ke) || (ke->ready && !ops->collect))
			ke->state |= KE_FIRED;
	} else if (ke->state & KE_FIRED || kevent_count(ke)) {
		ke->state &= ~KE_FIRED;
		if (!ke->ready && ops->collect)
			ke->state |= KE_VERIFY;
		/* Behind others: the consumer that has the event goes on, or wakes another one. */
		if (ke->state & KE_QUEUED)
			list_move_tail(&ke->link, &ke->queue->ready);
		kevent_enqueue(ke);
	} else {
		kevent_dequeue(ke);
	}
	kevent_state_check(ke);
}

/* Tasks that work on a watch without the lock */

/*
 * Claim a watch for what the caller does next. The claim for attach() becomes one for the
 * copy; otherwise nobody has claimed the watch. kevent_release() must follow.
 */
void kevent_claim(struct kevent *ke, enum kevent_claim what)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (what == KEVENT_TO_ARM) {
		if (ke->state & KE_QUEUED)
			ke->state |= KE_FIRED;
	} else if (what == KEVENT_TO_POLL) {
		ke->queue->nr_taken++;
		ke->ready = 0;
		ke->state &= ~(KE_VERIFY | KE_FIRED);
	} else {
		ke->reported = ke->ready;
		ke->ready = 0;
		ke->state &= ~KE_NEW;
		if (!(ke->state & KE_VERIFY))
			ke->state &= ~KE_FIRED;
	}
	kevent_dequeue(ke);
	ke->state |= KE_CLAIMED;
	kevent_state_check(ke);
}

/*
 * A consumer has polled a watch, whose state was @was until now, and the conditions in @mask
 * hold. A ready watch goes to the front, since the consumer delivers it next. @ke->ready has the
 * conditions that its source has reported meanwhile. If the source reported without naming any,
 * FIRED stays, and causes another poll after delivery.
 */
static void kevent_polled(struct kevent *ke, u32 mask, u16 was)
{
	ke->state &= ~KE_FIRED;
	if (was & KE_DISARMED)
		return;
	if (mask && !(was & KE_STALE)) {
		ke->ready |= mask;
		if (kevent_must_verify(ke))
			ke->state |= was & KE_FIRED;
		ke->state &= ~KE_VERIFY;
		ke->state |= KE_QUEUED;
		kevent_list_add(ke, ke->queue->ready.next);
		/* Consumers that were woken while it was claimed have found nothing. */
		if (ke->req_flags & KEVENT_REQ_WAKEUP_ALL)
			kevent_wake_for(ke, KEVENT_ANY);
	} else if (was & (KE_FIRED | KE_STALE)) {
		kevent_enqueue(ke);
	}
	kevent_state_check(ke);
}

/* The caller of ADD has the event of a watch. Returns as kevent_release(). */
static bool kevent_copied(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	ke->queue->copied++;
	if (ke->state & KE_AWAKE)
		kevent_awake_delivered(ke->queue);
	if (ops->delivered)
		ops->delivered(ke);
	if (ke->req_flags & KEVENT_REQ_ONESHOT)
		return kevent_spend(ke);
	kevent_delivered(ke);
	return false;
}

/*
 * The claim of a watch ends. @result has the conditions that were found to hold, or -errno.
 * Reports that came meanwhile are queued. A watch whose attach() has failed dies, and so does
 * a one-shot watch whose event was copied. Returns true if the watch is dead, and the caller
 * must go on with its removal: with step 4 if it is detached, see types.h, or with step 2.
 */
bool kevent_release(struct kevent *ke, enum kevent_claim what, int result)
{
	bool collects = kevent_source_of(ke)->collect;
	u16 was = ke->state;
	bool pending = was & KE_FIRED;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (what == KEVENT_TO_POLL)
		ke->queue->nr_taken--;
	ke->state &= ~(KE_NEW | KE_CLAIMED);
	if (was & KE_DEAD)
		return was & (KE_NEW | KE_DETACHED);
	ke->state &= ~KE_STALE;
	switch (what) {
	case KEVENT_TO_ATTACH:
		if (result < 0)
			return kevent_kill(ke);
		/* Without collect() it is known from here only. MODIFY may not want it any more. */
		if (!collects)
			result &= ke->event;
		if (result && !(collects && was & KE_DISARMED)) {
			ke->ready |= result;
			pending = true;
		}
		break;
	case KEVENT_TO_COPY:
		if (!result && !(was & KE_STALE))
			return kevent_copied(ke);
		if (collects)
			ke->state |= KE_VERIFY;
		else
			ke->ready |= ke->reported & ke->event;
		pending |= collects || ke->ready || kevent_count(ke);
		break;
	case KEVENT_TO_POLL:
		kevent_polled(ke, result, was);
		return false;
	case KEVENT_TO_ARM:
		if (result < 0)
			break;
		/* The caller modifies the watch, and kevent_restart() finds that. */
		ke->ready |= result;
		if (result)
			ke->state |= KE_FIRED;
		return false;
	}
	if (pending) {
		ke->state &= ~KE_FIRED;
		kevent_activate_pending(ke);
	}
	kevent_state_check(ke);
	return false;
}

/* Step 3 of the removal of a watch, see types.h. Returns true if it is claimed. */
bool kevent_set_detached(struct kevent *ke)
{
	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	ke->state |= KE_DETACHED;
	return ke->state & KE_CLAIMED;
}
