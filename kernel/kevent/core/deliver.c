// SPDX-License-Identifier: GPL-2.0
/*
 * Delivery: consumers move events from the ready list to user memory
 *
 * Most events are of watches whose condition can be polled under ready_lock, and whose
 * delivery decides nothing: files, level or edge triggered, with or without LAST_CHECK,
 * and not broken. This file stores the entry of each under the hold of the lock under
 * which it was polled, the position of the ring last. They need no batch, no list of what
 * is held, no copy of the entry, no second visit. One-shot watches that are not polled end
 * here, too. rounds.c does the others.
 *
 * A call polls the level watches that were there when it began, stores the entries of
 * those that are ready, and drops the others. Watches whose entries are unread go to the
 * end of the list. If there is no room left, watches that are ready go to the ready list.
 * One hold of the lock covers 256 polls; a store counts as four. The level watches that
 * are left then go to the ready list, so that a call reports none of them twice. The next
 * hold goes through that list, and a watch with nothing new and an unread entry goes back
 * to the level list without a poll (kevent_stays_level()).
 *
 * A consumer that calls for each event finds that event in the ring already, and behind it
 * a level watch whose file it has read. For it kevent_pass_level() goes through the level
 * list first: it drops watches that are not ready, moves unread ones to the end, and
 * stores nothing. If the ready list is empty and 64 watches at most are to be polled, none
 * of them ready, that is all. Otherwise the collection begins under the same hold.
 *
 * While a consumer polls watches without the lock they are on no list. They may be ready,
 * and kevent_queue.nr_taken says that there are some. A call that finds nothing, whatever
 * its timeout, does not say so while others poll. It joins the sleepers, so an ordinary
 * event wakes it, and kevent_queue.askers. The consumer that comes back wakes all of these
 * when its own events are delivered. kevent_queue.looks counts these polls. A call that
 * finds nothing compares it: somebody may have taken a watch and brought it back between
 * its collection and its sleep. Before the first comparison any watch on a list makes the
 * call collect once more. A call whose time is over does so 1000 times at most, since a
 * file whose ->poll() fires its own watch would keep it in the kernel for ever. It waits
 * three seconds at most for a ->poll() that does not return. A consumer that slept when
 * the poll began is not notified: one event wakes one consumer.
 */

#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <trace/events/kevent.h>

#include "collect.h"
#include "deliver.h"
#include "ring_flags.h"
#include "testpoint.h"
#include "watch.h"

/**
 * kevent_leave - a consumer returns, or will be away for a while
 * @q: the queue
 * @others: who can take events: %KEVENT_OF_BUFFER when the ring is full,
 *	    %KEVENT_ELSEWHERE when its memory is away
 *
 * Wakes another consumer for the remaining events, unless one is already waking.
 *
 * Return: 0, -EFAULT when KEVENT_RING_MORE could not be stored.
 */
int kevent_leave(struct kevent_queue *q, enum kevent_consumers others)
{
	u32 flags = q->ring.flags & KEVENT_RING_BROKEN;
	int err = 0;

	lockdep_assert_held(&q->ready_lock);

	if (!list_empty(&q->ready)) {
		flags |= KEVENT_RING_MORE;
		if (!q->nr_woken)
			kevent_wake(q, others, 1);
	}
	if (flags != q->ring.flags && kevent_ring_here(q))
		err = kring_set_flags(&q->ring, flags);
	else
		kevent_more_left(q);
	/* A flag that stays has consumers call once more than they need to. */
	return flags & KEVENT_RING_MORE ? err : 0;
}

/**
 * kevent_may_go_on - between two holds of the lock
 *
 * Return: false if the consumer is being killed.
 */
bool kevent_may_go_on(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

/* Collect */

/* Watches that are looked at under one hold of the lock */
#define KEVENT_DIRECT_LOOKS	256
/* Holds of the lock, before rounds count what they have looked at */
#define KEVENT_DIRECT_HOLDS	64U
/* Likewise, before the first event is stored */
#define KEVENT_PASS_LOOKS	64U
/* Looks that take as long as a store */
#define KEVENT_DIRECT_STORE	3

/**
 * struct kevent_direct - a collection that stores each event when it has seen it
 * @q:		the queue
 * @to:		where events go
 * @max:	how many are wanted, and fit
 * @nr:		how many were stored
 * @looks:	how many more watches may be looked at; the last one may cost more
 * @stop:	a watch takes what only rounds do, or memory is away
 * @full:	there is no room
 * @again:	there may be more than fits into one hold of the lock
 * @flags_err:	the flag of the ring that says whether there is more was not stored
 * @oneshot:	watches to bury, held, delivered for good; as many as one hold stores
 */
struct kevent_direct {
	struct kevent_queue	*q;
	struct kring		*to;
	u32			max;
	u32			nr;
	int			looks;
	bool			stop;
	bool			full;
	bool			again;
	int			flags_err;
	struct list_head	oneshot;
};

/* With LAST_CHECK, too: a watch is stored under the lock under which it was verified. */
static __always_inline bool kevent_is_direct(const struct kevent *ke)
{
	return !(ke->state & ~KE_DELIVERED) && kevent_source_of(ke)->level &&
	       !(ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH));
}

static __always_inline void kevent_settle_direct(struct kevent_direct *d,
						 struct kevent *ke)
{
	trace_kevent_deliver(ke, ke->ready, 1, d->to->user);
	if (d->to->user) {
		ke->stored = d->to->kidx;
		ke->reported = ke->ready;
		d->q->collected++;
	} else {
		d->q->copied++;
	}
	ke->ready = 0;
	if (ke->req_flags & KEVENT_REQ_ET)
		kevent_dequeue(ke);
	else
		kevent_look_later(ke);
	d->looks -= KEVENT_DIRECT_STORE;
	d->nr++;
}

/* A one-shot watch whose source has said all: it ends here, and is removed without the lock. */
static noinline bool kevent_direct_last(struct kevent_direct *d,
					struct kevent *ke)
{
	struct ukevent uk __uninitialized;

	if (ke->state != KE_LISTED || kevent_source_of(ke)->collect ||
	    !(ke->req_flags & KEVENT_REQ_ONESHOT))
		return false;
	kevent_fill(ke, &uk, 0);
	if (!kring_store(d->to, &uk, 1))
		return false;
	trace_kevent_deliver(ke, ke->ready, 1, d->to->user);
	if (d->to->user)
		d->q->collected++;
	else
		d->q->copied++;
	ke->ready = 0;
	kevent_delivered(ke, 1);
	kevent_expire(ke, &d->oneshot);
	d->looks -= KEVENT_DIRECT_STORE;
	d->nr++;
	return true;
}

/* Returns false if the watch, which is listed, takes more than this. */
static __always_inline bool kevent_direct_verify(struct kevent *ke)
{
	int mask;

	if (!kevent_is_direct(ke))
		return false;
	if (!(ke->state & KE_VERIFY))
		return true;
	mask = kevent_source_of(ke)->collect(ke, true);
	if (mask < 0)
		return false;
	kevent_looked(ke, mask);
	return true;
}

static __always_inline bool kevent_direct_put(struct kevent_direct *d,
					      struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	u32 amount = ops->amount ? ops->amount(ke, ke->ready) : 0;
	struct kring_entry entry = kevent_entry(ke, ke->ready, amount);

	return d->to->user ? kring_put_ring(d->to, &entry) :
			     kring_put_buffer(d->to, &entry);
}

/* Store the event of a watch that is listed, if it has a new one. */
static __always_inline void kevent_direct_store(struct kevent_direct *d,
						struct kevent *ke)
{
	d->looks--;
	if (!kevent_direct_verify(ke)) {
		d->stop = !kevent_direct_last(d, ke);
		return;
	}
	if (!kevent_is_listed(ke))
		return;
	if (kevent_is_said(ke, d->to, ke->stored)) {
		ke->ready = 0;
		kevent_delivered(ke, 0);
		return;
	}
	if (kevent_direct_put(d, ke)) {
		kevent_settle_direct(d, ke);
		return;
	}
	if (kevent_is_checked(ke))
		kevent_doubt(ke);
	d->stop = true;
}

static __always_inline bool kevent_direct_goes_on(const struct kevent_direct *d)
{
	return d->looks > 0 && !d->stop;
}

/* Pass over a watch that stays on the list of level watches. */
static __always_inline bool kevent_direct_unread(struct kevent_direct *d,
						 struct kevent *ke)
{
	if (!kevent_stays_level(ke, d->to))
		return false;
	d->looks--;
	return true;
}

static __always_inline void kevent_direct_ready(struct kevent_direct *d)
{
	struct list_head *ready = &d->q->ready;
	struct kevent *ke;

	while (!list_empty(ready) && d->nr < d->max &&
	       kevent_direct_goes_on(d)) {
		ke = list_first_entry(ready, struct kevent, link);
		if (!kevent_direct_unread(d, ke))
			kevent_direct_store(d, ke);
	}
}

/*
 * Look at a level watch again. If there is no room, one that has something to report
 * waits on the ready list. While its entry is unread, its consumer has yet to look
 * itself.
 */
static __always_inline void kevent_direct_look(struct kevent_direct *d,
					       struct kevent *ke)
{
	/* Such watches are not broken, and their source has no fill(): kevent_previous() */
	if (d->to->user && kring_is_unread(d->to, ke->stored)) {
		d->looks--;
		list_move_tail(&ke->link, &d->q->level);
	} else if (d->nr < d->max) {
		kevent_direct_store(d, ke);
	} else {
		d->looks--;
		if (kevent_peek(ke) && !kevent_is_listed(ke))
			return;
		kevent_doubt(ke);
		list_move_tail(&ke->link, &d->q->ready);
	}
}

/*
 * The level watches up to @last are for another hold of the lock, or for rounds. One
 * call reports a level watch once, so they leave those that were delivered.
 */
static noinline void kevent_postpone(struct kevent_queue *q,
				     struct list_head *last)
{
	LIST_HEAD(left);

	lockdep_assert_held(&q->ready_lock);

	list_cut_position(&left, &q->level, last);
	list_splice_tail(&left, &q->ready);
}

/* Look at the level watches up to @last. */
static __always_inline void kevent_direct_level(struct kevent_direct *d,
						struct list_head *last)
{
	struct list_head *level = &d->q->level, *link;

	do {
		if (!kevent_direct_goes_on(d)) {
			kevent_postpone(d->q, last);
			return;
		}
		link = level->next;
		kevent_direct_look(d, list_entry(link, struct kevent, link));
	} while (link != last || d->stop);
}

/* Nothing of what kevent_leave() does is to be done. */
static __always_inline bool kevent_leaves_nothing(const struct kevent_queue *q)
{
	return list_empty(&q->ready) && !q->ring.flags;
}

static __always_inline void kevent_direct_locked(struct kevent_direct *d,
						 u32 want, bool relist)
{
	struct list_head *last = d->q->level.prev;
	int fits = kevent_fits(d->q, d->to, want);

	d->nr = 0;
	d->max = max(fits, 0);
	d->looks = KEVENT_DIRECT_LOOKS;
	d->stop = fits < 0;
	relist &= !list_empty(&d->q->level);
	kevent_direct_ready(d);
	if (relist)
		kevent_direct_level(d, last);
	if (d->nr && unlikely(d->to->flags & KEVENT_RING_BROKEN))
		kring_set_flags(d->to, d->to->flags & ~KEVENT_RING_BROKEN);
	d->full = d->nr == d->max && d->max < want;
	d->again = d->looks <= 0 && !d->full && d->nr < want;
	d->flags_err = 0;
	if (!d->stop && !d->again && !kevent_leaves_nothing(d->q))
		d->flags_err = kevent_leave(d->q, kevent_who_has_room(d->full));
}

/*
 * Peeks, while others change the list: a consumer that is to sleep looks for ready
 * watches again, under ready_lock. It does not look for level watches, see
 * kevent_queue.nr_listed.
 */
static bool kevent_is_idle(const struct kevent_queue *q, const struct kring *to,
			   bool relist)
{
	if (kring_is_ring(to) && READ_ONCE(to->flags))
		return false;
	if (relist)
		return !READ_ONCE(q->nr_listed);
	/* It is changed by plain stores: an old answer will do. */
	return data_race(list_empty_careful(&q->ready));
}

static noinline int kevent_collect_listed(struct kevent_queue *q,
					  struct kring *to, u32 max, bool relist)
	__releases(&q->ready_lock)
{
	u32 total = 0, holds = KEVENT_DIRECT_HOLDS;
	struct kevent_direct d __uninitialized;

	d.q = q;
	d.to = to;
	INIT_LIST_HEAD(&d.oneshot);
	for (;;) {
		kevent_direct_locked(&d, max - total, relist);
		kevent_unlock_irq(q);
		if (unlikely(!list_empty(&d.oneshot)))
			kevent_bury_list(&d.oneshot);
		total += d.nr;
		relist = false;
		if (!d.again || d.stop || !--holds || !kevent_may_go_on())
			break;
		kevent_window(q, KEVENT_WINDOW_AGAIN);
		spin_lock_irq(&q->ready_lock);
	}
	if (d.stop || d.again)
		return kevent_collect_rounds(q, to, max, total);
	if (d.flags_err)
		kevent_retry_flags(q);
	return total;
}

/* Returns false, and the watch stays where it is, if it may have an event. */
static __always_inline bool kevent_pass(struct kevent_queue *q,
					struct kevent *ke)
{
	if (kring_is_unread(&q->ring, ke->stored)) {
		list_move_tail(&ke->link, &q->level);
		return true;
	}
	if (!kevent_is_direct(ke) || kevent_source_of(ke)->collect(ke, true))
		return false;
	kevent_looked(ke, 0);
	return true;
}

/*
 * A consumer that calls each time finds what wake-ups have stored, and level watches
 * whose files it has read: there is nothing to store. Returns false if there may be,
 * or if more watches are left.
 */
static bool kevent_pass_level(struct kevent_queue *q)
{
	struct list_head *last = q->level.prev;
	u32 looks = KEVENT_PASS_LOOKS;
	struct kevent *ke;

	if (!kevent_leaves_nothing(q) || list_empty(&q->level) ||
	    kevent_fits(q, &q->ring, 1) < 0)
		return false;
	do {
		ke = list_first_entry(&q->level, struct kevent, link);
		if (!kevent_pass(q, ke))
			return false;
	} while (&ke->link != last && --looks);
	return &ke->link == last;
}

static noinline int kevent_collect_ring(struct kevent_queue *q, u32 max)
{
	spin_lock_irq(&q->ready_lock);
	if (!kevent_pass_level(q))
		return kevent_collect_listed(q, &q->ring, max, true);
	kevent_unlock_irq(q);
	return 0;
}

static noinline int kevent_collect_any(struct kevent_queue *q, struct kring *to,
				       u32 max, bool relist)
{
	spin_lock_irq(&q->ready_lock);
	return kevent_collect_listed(q, to, max, relist);
}

/**
 * kevent_collect - move events of ready watches to user memory
 * @q: the queue; the caller keeps it alive
 * @to: the queue's ring, when it is in current->mm, or a buffer
 * @max: most events to move, at least 1
 * @relist: report level watches again that were delivered before
 *
 * Any number of tasks may collect at once: each watch is taken by one of them.
 *
 * Return: number of events moved, or when that is 0 and memory or a fatal
 * signal is to blame -EFAULT or -EINTR. What was not moved stays ready.
 */
int kevent_collect(struct kevent_queue *q, struct kring *to, u32 max,
		   bool relist)
{
	if (kevent_is_idle(q, to, relist))
		return 0;
	/* Two functions, so that this one only jumps and has no stack frame */
	return relist && kring_is_ring(to) ?
	       kevent_collect_ring(q, max) :
	       kevent_collect_any(q, to, max, relist);
}

/**
 * kevent_commit - advance the position of consumers and refill the ring
 * @q: the queue
 * @uidx: position of the first entry that stays unread
 *
 * Return: slots freed, 0 when consumers are there already, -EINVAL beyond the
 * newest entry, -EXDEV when the ring is not mapped here, -EFAULT, -EINTR on a
 * fatal signal.
 */
int kevent_commit(struct kevent_queue *q, u64 uidx)
{
	unsigned long flags;
	u32 tries = 0;
	int ret, stored;

	do {
		spin_lock_irqsave(&q->ready_lock, flags);
		ret = kevent_ring_here(q) ? kring_commit(&q->ring, uidx) :
					    -EXDEV;
		spin_unlock_irqrestore(&q->ready_lock, flags);
		if (ret == -EFAULT && ++tries < KRING_FAULT_TRIES)
			ret = kevent_ring_fault_in(q, &q->ring) ?: -EAGAIN;
	} while (ret == -EAGAIN && kevent_may_go_on());
	if (ret == -EAGAIN)
		return -EINTR;
	if (ret < 0)
		return ret;

	kevent_window(q, KEVENT_WINDOW_COMMITTED);
	/* The caller did not ask for events: wake one that did. */
	stored = kevent_collect(q, &q->ring, q->ring.size, true);
	if (stored > 0) {
		kevent_window(q, KEVENT_WINDOW_STORED);
		kevent_wake_others(q, stored);
	}
	return ret;
}
