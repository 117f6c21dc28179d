// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_RING_MORE: what consumers that look at the ring learn of events without an entry
 *
 * A miss that finds nobody asleep sets the flag, once, when the ready list was empty. Only
 * calls move misses to the ring. A miss that is made where the ring is not, by another process
 * or an interrupt of one, sets no flag: to tell a thread that runs elsewhere would take an
 * interrupt of its CPU, and most threads call anyway when they find the ring empty.
 *
 * A miss that wakes a consumer sets no flag. So kevent_more_left() sets it when that
 * consumer does not come to collect, or not soon: it was asked to return, it finds the
 * ring full, it has to wait for a page, or it would have to park and its wait ends. A call
 * that leaves events behind sets the flag too, and one that leaves none clears it.
 */

#include <linux/sched/signal.h>

#include "ring_mapping.h"
#include "testpoint.h"

/*
 * Something has become ready, and no consumer is on its way: say so in the ring, if that is here.
 * Called for the first watch on the ready list. Does not try memory that a wake-up has just found
 * away: each fault takes as long as a dozen stores, with interrupts off. Any context.
 */
void kevent_more(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (q->ring.size && !q->ring.away && kevent_ring_here(q))
		kring_set_flags(&q->ring, q->ring.flags | KEVENT_RING_MORE);
}

/*
 * A consumer leaves watches on the ready list, or is held up. It may have been woken for
 * them. Unless another one is on its way, the ring says that they are there.
 */
void kevent_more_left(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (!list_empty(&q->ready) && !q->nr_woken)
		kevent_more(q);
}

/*
 * A consumer does not take what it may have been woken for: a watch that is listed, or an
 * entry in the ring, which only those can take whose entries are there.
 */
void kevent_pass_on(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (q->nr_listed)
		kevent_wake(q, KEVENT_ANY | KEVENT_RECHECK);
	if (kevent_unread(q))
		kevent_wake(q, KEVENT_OF_RING);
	kevent_more_left(q);
}

/*
 * A consumer of the ring may be stopped or frozen before it takes the entry that it was woken
 * for. Another one takes it. Process context, no locks held.
 */
void kevent_pass_unread(struct kevent_queue *q)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	if (kevent_unread(q))
		kevent_wake(q, KEVENT_OF_RING);
}

/*
 * A process has closed its descriptor, maybe by being killed. Several of its threads may
 * have been woken for events that they did not take. Who takes one that is listed wakes
 * another consumer for the rest. Each entry in the ring has a consumer, as far as some
 * sleep whose entries are there. Process context, no locks held.
 */
void kevent_wake_left(struct kevent_queue *q)
{
	unsigned long flags;
	u64 unread;

	spin_lock_irqsave(&q->ready_lock, flags);
	/* Programs take entries without a call. */
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	kevent_pass_on(q);
	unread = kevent_unread(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (unread > 1)
		kevent_wake_others(q, unread - 1);
}

/*
 * Make the memory of @to, the ring or a buffer, writable. Called without any lock, since
 * the fault may never end. Before it, wakes a consumer for what is ready. Returns 0,
 * -EFAULT, or -EINTR on a fatal signal.
 */
int kevent_ring_fault_in(struct kevent_queue *q, const struct kring *to)
{
	struct kring where;
	unsigned long flags;
	bool here = !to->user || kevent_ring_back(q);
	int err;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (!list_empty(&q->ready)) {
		kevent_wake(q, KEVENT_ELSEWHERE);
		kevent_more_left(q);
	}
	here = here && (!to->user || kevent_ring_here(q));
	where = *to;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (!here)
		return -EFAULT;
	kevent_testpoint(q, KEVENT_TESTPOINT_FAULT);
	err = kring_fault_in(&where);
	kevent_testpoint(q, KEVENT_TESTPOINT_FAULTED);
	return err;
}

/*
 * A call leaves events behind, and the page of the ring's header was not writable when the
 * flag was to be set: after a fork() both processes share it until one writes. Sets the flag,
 * unless somebody is on the way to the events. Process context, no locks held.
 */
void kevent_say_more(struct kevent_queue *q)
{
	u32 tries = 0;
	int err;

	do {
		err = 0;
		scoped_guard(spinlock_irqsave, &q->ready_lock) {
			if (!list_empty(&q->ready) && !q->nr_woken &&
			    q->ring.size && kevent_ring_here(q))
				err = kring_set_flags(&q->ring, q->ring.flags |
						      KEVENT_RING_MORE);
		}
	} while (err && ++tries < KRING_FAULT_TRIES &&
		 !fatal_signal_pending(current) &&
		 !kevent_ring_fault_in(q, &q->ring));
}
