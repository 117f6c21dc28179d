/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two kinds of collection share, see deliver.c
 */
#ifndef _KEVENT_COLLECT_H
#define _KEVENT_COLLECT_H

#include <linux/minmax.h>

#include "ring_mapping.h"
#include "source_ops.h"
#include "state.h"

/*
 * Is the entry that was stored at @end unread, and does it say all there is to say? For a
 * watch that is not broken, of a source without fill(); 0 for others.
 */
static __always_inline bool kevent_is_said(const struct kevent *ke, const struct kring *to,
					   u64 end)
{
	return to->user && kring_is_unread(to, end) &&
	       !(ke->ready & ~ke->reported);
}

/*
 * The position after the newest entry of a watch, 0 if that cannot make another
 * one redundant. If it can, and is unread, an entry that says no more repeats
 * it. Its consumer advances ring_uidx, executes a full barrier, and only then
 * looks at the watched object. Here the change of the object comes first, then
 * the full barrier of kevent_round_fits() or kevent_hit_store(), then the load of
 * ring_uidx: if that still shows the entry as unread, the consumer will see the
 * change.
 */
static inline u64 kevent_previous(const struct kevent *ke)
{
	if (kevent_source_of(ke)->fill || kevent_is_broken(ke))
		return 0;
	return ke->stored;
}

static inline bool kevent_repeats(const struct kevent *ke, const struct kring *to)
{
	return kevent_is_said(ke, to, kevent_previous(ke));
}

/*
 * A level watch that kevent_postpone() has put on the ready list: nothing was reported
 * since its event was delivered. While its entry is unread, its consumer has yet to look
 * itself, and the call after that looks at the watch.
 */
static __always_inline bool kevent_stays_level(struct kevent *ke,
					       const struct kring *to)
{
	if (ke->state != KE_DELIVERED || !to->user ||
	    !kring_is_unread(to, ke->stored))
		return false;
	list_move_tail(&ke->link, &ke->queue->level);
	return true;
}

/*
 * Verify a watch, if that takes no lock and no sleep. What becomes true after
 * that is reported by a callback, which comes to ready_lock later.
 */
static __always_inline bool kevent_peek(struct kevent *ke)
{
	int mask = kevent_source_of(ke)->collect(ke, true);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (mask < 0)
		return false;
	kevent_looked(ke, mask);
	return true;
}

/* How many of @max events fit now; -EFAULT when that can't be read. */
static __always_inline int kevent_fits(struct kevent_queue *q, struct kring *to, u32 max)
{
	lockdep_assert_held(&q->ready_lock);

	if (!to->user)
		return min3(max, to->size - (u32)to->kidx, INT_MAX);
	if (!kevent_ring_here(q))
		return -EFAULT;
	/* Full barrier: pairs with consumers, see kevent_previous(). */
	smp_mb__after_spinlock();
	if (kring_sync(to))
		return -EFAULT;
	return min3(max, kring_free_slots(to), INT_MAX);
}

/* Who can take what a consumer leaves, when it has found the ring full, or not? */
static inline enum kevent_consumers kevent_who_has_room(bool full)
{
	return full ? KEVENT_OF_BUFFER : KEVENT_ANY;
}

/* deliver.c */
int kevent_leave(struct kevent_queue *q, enum kevent_consumers others);
bool kevent_may_go_on(void);

/* rounds.c */
int kevent_collect_rounds(struct kevent_queue *q, struct kring *to, u32 max,
			  u32 total);

#endif /* _KEVENT_COLLECT_H */
