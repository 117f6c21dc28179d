/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a watch: what is read, and what hot paths write
 *
 * The legal states, and who moves a watch between them, are explained in
 * state.c. No other file writes &kevent.state of a watch that others can see.
 */
#ifndef _KEVENT_STATE_H
#define _KEVENT_STATE_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/lockdep.h>

#include "queue.h"
#include "source_ops.h"
#include "wake.h"

/**
 * enum kevent_state - bits of &struct kevent.state
 * @KE_NEW:	life: being attached to its source
 * @KE_DEAD:	life: removed, nothing is delivered any more
 * @KE_SPENT:	life: dead because it was delivered
 * @KE_DETACHED: life: dead, and detached from its source
 * @KE_QUEUED:	place: on &kevent_queue.ready or &kevent_queue.level
 * @KE_QUIET:	place: queued, and nobody was woken for it
 * @KE_CLAIMED:	task: one works on it without a lock
 * @KE_FIRED:	task: something happened while it was claimed, or disarmed
 * @KE_STALE:	task: it was modified while it was claimed
 * @KE_VERIFY:	recheck: its condition is polled before delivery
 * @KE_DISARMED: condition: nothing is delivered until it is modified
 * @KE_BROKEN:	condition: its source cannot deliver any more
 * @KE_AWAKE:	mode: its events keep the system awake. With it a watch is never
 *		idle, as hits want it, so its events go through the ready list
 */
enum kevent_state {
	KE_NEW		= BIT(0),
	KE_DEAD		= BIT(1),
	KE_SPENT	= BIT(2),
	KE_DETACHED	= BIT(3),
	KE_QUEUED	= BIT(4),
	KE_QUIET	= BIT(5),
	KE_CLAIMED	= BIT(6),
	KE_FIRED	= BIT(7),
	KE_STALE	= BIT(8),
	KE_VERIFY	= BIT(9),
	KE_DISARMED	= BIT(10),
	KE_BROKEN	= BIT(11),
	KE_AWAKE	= BIT(12),
};

/**
 * enum kevent_claim - what a task does with a watch that it has claimed
 * @KEVENT_TO_ATTACH:	ADD calls attach(); the watch is claimed from the beginning
 * @KEVENT_TO_COPY:	ADD copies the event of the watch to its caller
 * @KEVENT_TO_POLL:	a consumer polls its condition
 * @KEVENT_TO_ARM:	MODIFY calls modify_unlocked()
 */
enum kevent_claim {
	KEVENT_TO_ATTACH,
	KEVENT_TO_COPY,
	KEVENT_TO_POLL,
	KEVENT_TO_ARM,
};

/* A level watch that was delivered and waits for its next look */
#define KE_DELIVERED	(KE_QUEUED | KE_QUIET | KE_VERIFY)

#ifdef CONFIG_KEVENT_DEBUG
void kevent_state_check(const struct kevent *ke);
#else
static inline void kevent_state_check(const struct kevent *ke) {}
#endif

/* Questions about the state. Without ready_lock the answer may be old. */

/*
 * The state is written under ready_lock, often bit by bit, by plain stores to an
 * aligned word. Readers without the lock are ready for any of these values: they look
 * again under it, or a wrong answer costs them a turn.
 */
static inline u16 kevent_peek_state(const struct kevent *ke)
{
	/* Plain stores, see above */
	return data_race(READ_ONCE(ke->state));
}

static inline bool kevent_is_dead(const struct kevent *ke)
{
	return kevent_peek_state(ke) & KE_DEAD;
}

static inline bool kevent_is_spent(const struct kevent *ke)
{
	return kevent_peek_state(ke) & KE_SPENT;
}

/* May it be delivered? */
static inline bool kevent_is_armed(const struct kevent *ke)
{
	return !(kevent_peek_state(ke) & (KE_DEAD | KE_DISARMED));
}

static inline bool kevent_is_broken(const struct kevent *ke)
{
	return kevent_peek_state(ke) & KE_BROKEN;
}

static inline bool kevent_is_claimed(const struct kevent *ke)
{
	return kevent_peek_state(ke) & KE_CLAIMED;
}

/* Its request flags, those above 0xff too */
static inline u32 kevent_req_flags(const struct kevent *ke)
{
	return ke->req_flags |
	       (ke->state & KE_AWAKE ? KEVENT_REQ_STAY_AWAKE : 0);
}

/* Has it been added and not removed? */
static inline bool kevent_is_alive(const struct kevent *ke)
{
	return !(ke->state & (KE_NEW | KE_DEAD));
}

/* Must its condition be looked at before delivery? */
static inline bool kevent_must_verify(const struct kevent *ke)
{
	return (ke->state & (KE_VERIFY | KE_BROKEN)) == KE_VERIFY;
}

/* Is it looked at again after delivery? */
static inline bool kevent_is_level(const struct kevent *ke)
{
	return kevent_has_level(ke) &&
	       !(ke->req_flags & KEVENT_REQ_ET) && !(ke->state & KE_BROKEN);
}

/*
 * Wake one consumer for an event, or all with WAKEUP_ALL. If the event is in the ring, consumers
 * with a buffer poll a WAKEUP_ALL watch again. All consumers can have the event of a level watch.
 * Only one gets that of an edge, so consumers that one event is enough for are woken, and no
 * others if there are such.
 */
static inline void kevent_wake_for(struct kevent *ke,
				   enum kevent_consumers whom)
{
	if (likely(!(ke->req_flags & KEVENT_REQ_WAKEUP_ALL))) {
		kevent_wake_one(ke->queue, whom, false);
		return;
	}
	if (whom == KEVENT_ANY && !kevent_is_level(ke) && kevent_next_content(ke->queue, true))
		whom = KEVENT_CONTENT;
	kevent_wake_all(ke->queue, whom, true);
	if (whom == KEVENT_OF_RING)
		kevent_wake_all(ke->queue, KEVENT_OF_BUFFER, true);
}

/*
 * Is the newest entry of a watch unread, and does it have all conditions that the watch would
 * report now? The consumer advances ring_uidx, executes a full barrier, and only then reads the
 * watched object. Here the object changes first. Then come the full barrier of
 * kevent_count_slots() or kevent_hit_store(), and the load of ring_uidx. If that load still shows
 * the entry as unread, the consumer will see the change.
 */
static inline bool kevent_repeats(const struct kevent *ke, const struct kring *to)
{
	return to->user && kring_is_unread(to, ke->stored) &&
	       !(ke->ready & ~ke->reported) &&
	       !kevent_source_of(ke)->fill && !kevent_is_broken(ke);
}

/* Occurrences that are not delivered yet; 0 for a source that does not keep each one */
static inline u32 kevent_count(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	return ops->amount && !(ops->flags & KEVENT_SOURCE_LEVEL) ?
	       ops->amount(ke, 0) : 0;
}

/* Moves of hot paths, under ready_lock */

/* A watch has nothing to report. */
static inline void kevent_dequeue(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (!(ke->state & KE_QUEUED))
		return;
	list_del_init(&ke->link);
	WRITE_ONCE(ke->queue->nr_queued, ke->queue->nr_queued - 1);
	ke->state &= ~(KE_QUEUED | KE_QUIET);
}

/* A level watch was delivered: the next collection looks at it again. */
static inline void kevent_recheck_later(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;

	lockdep_assert_held(&q->ready_lock);

	if (ke->state & KE_QUEUED)
		list_move_tail(&ke->link, &q->level);
	else
		kevent_list_add(ke, &q->level);
	ke->state |= KE_DELIVERED;
	ke->state &= ~KE_FIRED;
	kevent_state_check(ke);
}

/*
 * A queued watch was polled under the lock. Before the lock is released its event is delivered,
 * or kevent_doubt() follows.
 */
static inline void kevent_looked(struct kevent *ke, u32 mask)
{
	ke->ready = mask;
	ke->state &= ~(KE_VERIFY | KE_FIRED);
	if (!mask)
		kevent_dequeue(ke);
}

/* A queued watch was polled, but is delivered later: it has to be polled again then. */
static inline void kevent_doubt(struct kevent *ke)
{
	ke->state |= KE_VERIFY;
}

/* Moves of control calls */

/* The state of a watch that comes into being; kevent_awake_prepare() has returned 0. */
static inline u16 kevent_state_new(u32 req_flags)
{
	return KE_NEW | KE_CLAIMED |
	       (req_flags & KEVENT_REQ_DISABLED ? KE_DISARMED : 0) |
	       (req_flags & KEVENT_REQ_STAY_AWAKE ? KE_AWAKE : 0);
}

/*
 * Step 1 of the removal of a watch, see types.h. Returns true when the caller must go on
 * with kevent_bury().
 */
static inline bool kevent_kill(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DEAD)
		return false;
	kevent_dequeue(ke);
	ke->state |= KE_DEAD;
	kevent_state_check(ke);
	return !(ke->state & KE_NEW);
}

/* kevent_kill() of a watch, not dead, that was delivered for good */
static inline bool kevent_spend(struct kevent *ke)
{
	ke->state |= KE_SPENT;
	return kevent_kill(ke);
}

/*
 * A watch is modified: it is to be delivered, or not until it is modified again, and its
 * events keep the system awake, or do not. kevent_awake_prepare() has returned 0.
 */
static inline void kevent_set_mode(struct kevent *ke, u32 req_flags)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	ke->state &= ~(KE_DISARMED | KE_AWAKE);
	if (req_flags & KEVENT_REQ_STAY_AWAKE)
		ke->state |= KE_AWAKE;
	if (!(req_flags & KEVENT_REQ_DISABLED))
		return;
	if (ke->state & KE_QUEUED) {
		kevent_dequeue(ke);
		ke->state |= KE_FIRED;
	}
	ke->state |= KE_DISARMED;
}

/*
 * A watch has been modified. Returns true when there was something to report:
 * kevent_activate_pending() must follow. It must in any case for a source with collect(), whose
 * watches are looked at again.
 */
static inline bool kevent_restart(struct kevent *ke)
{
	bool pending = ke->state & (KE_FIRED | KE_QUEUED);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_CLAIMED)
		ke->state |= KE_STALE;
	else if (ke->state & KE_QUEUED)
		ke->state &= ~KE_FIRED;
	else
		ke->state &= ~(KE_FIRED | KE_VERIFY);
	kevent_state_check(ke);
	return pending;
}

/*
 * kevent_release() of a watch whose attach() has found nothing, if nothing has happened since
 * either: the frequent case. Returns false otherwise.
 */
static inline bool kevent_try_release(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state != (KE_NEW | KE_CLAIMED) || ke->req_flags & KEVENT_REQ_READY)
		return false;
	ke->state = 0;
	return true;
}

/* state.c: for people */
const char *kevent_state_word(const struct kevent *ke);

/* state.c: tasks that work on a watch without the lock */
void kevent_claim(struct kevent *ke, enum kevent_claim what);
bool kevent_release(struct kevent *ke, enum kevent_claim what, int result);
bool kevent_set_detached(struct kevent *ke);

/* state.c: what happens to a watch */
void kevent_activate_pending(struct kevent *ke);
void kevent_ready_locked(struct kevent *ke, u32 mask);
void kevent_recheck_locked(struct kevent *ke);
void kevent_broken_locked(struct kevent *ke);
void kevent_forget(struct kevent *ke);
void kevent_delivered(struct kevent *ke);

/*
 * Has a watch its key, so that ADD of another one fails? Under RCU or the lock that the
 * watch was found under. A program can see the entry of a one-shot watch some instructions
 * before the watch dies. Both happen under one hold of ready_lock, so this function takes
 * that lock.
 */
static inline bool kevent_has_key(const struct kevent *ke)
{
	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	return !kevent_is_dead(ke);
}

#endif /* _KEVENT_STATE_H */
