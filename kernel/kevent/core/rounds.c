// SPDX-License-Identifier: GPL-2.0
/*
 * A collection in rounds: for watches that take more than an entry
 *
 * A round takes up to 16 watches from the head of the ready list, as far as they need no
 * ->poll(), and stores their entries in one user access window. If the first one needs a
 * ->poll(), the round polls, without the lock, those of the first 16 that must be
 * verified, and stores the entries of the ones that turned out ready. A watch is verified
 * if it is level or LAST_CHECK, or if the wake-up had no key, said ERR or HUP, or the
 * interest includes what keys do not say exactly.
 *
 * Only after the store is a watch regarded as delivered: on a fault it stays where it is,
 * the page is faulted in without any lock, and the round is made again.
 *
 * A source that keeps each occurrence returns their number from count(), and makes the
 * entry of the nth in fill(). A round takes up to 16 of them; delivered() is called once
 * for each that reached user memory, oldest first, so a fault in the middle loses none.
 * The rest keeps the watch on the ready list.
 *
 * A file whose ->poll() fires its own watch would keep a consumer busy without end. A
 * collection therefore makes no more rounds than there were watches on the lists when it
 * began, and a caller that has collected nothing twice checks for signals and the clock
 * before it goes on.
 *
 * A poll pins the file. If the descriptor is closed meanwhile, the consumer has the last
 * reference. It drops it with __fput_sync() when its events are delivered, and not on its
 * way to user mode, as it may sleep before that.
 */

#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <trace/events/kevent.h>

#include "collect.h"
#include "lookup.h"
#include "ring_flags.h"
#include "ring_mapping.h"
#include "source_ops.h"
#include "state.h"
#include "testpoint.h"
#include "wakeup_source.h"
#include "watch.h"

/**
 * struct kevent_batch - watches a consumer verifies at a time
 * @nr:		how many
 * @ke:		the watches, busy and held
 * @mask:	the conditions that turned out to hold
 */
struct kevent_batch {
	u32		nr;
	struct kevent	*ke[KRING_BATCH];
	u32		mask[KRING_BATCH];
};

/**
 * struct kevent_round - one pass of a collection
 * @q:		the queue
 * @to:		where events go
 * @max:	how many more are wanted
 * @passes:	how many more there may be; 0 before the first. Without a limit
 *		a file whose ->poll() fires its own watch could keep a consumer
 *		in the kernel
 * @again:	another pass may find more
 * @kept:	a watch has occurrences left, which need no further look
 * @full:	there is no room
 * @flags_err:	the flag of the ring that says whether there is more was not stored
 * @nr_held:	how many files were looked at without the lock
 * @held:	these files, held until the events are delivered
 * @looked:	somebody may have come to sleep meanwhile
 * @askers:	R: who has, see &kevent_queue.askers
 * @dead:	watches to free, detached by others
 * @oneshot:	watches to bury, held, delivered for good
 */
struct kevent_round {
	struct kevent_queue	*q;
	struct kring		*to;
	u32			max;
	u32			passes;
	bool			again;
	bool			kept;
	bool			full;
	int			flags_err;
	u32			nr_held;
	struct file		*held[KRING_BATCH];
	bool			looked;
	struct list_head	askers;
	struct list_head	dead;
	struct list_head	oneshot;
};

/* Verify */

/* Must the watch be verified without the lock? */
static bool kevent_batch_wants(const struct kevent_round *r, struct kevent *ke)
{
	if (kevent_stays_level(ke, r->to) || !kevent_must_verify(ke))
		return false;
	if (!kevent_peek(ke))
		return true;
	/* The lock will be released before delivery. */
	if (kevent_is_listed(ke))
		kevent_doubt(ke);
	return false;
}

/* Take those of the first @want ready watches that must be verified. */
static void kevent_batch_take(const struct kevent_round *r,
			      struct kevent_batch *batch, u32 want)
{
	struct kevent *ke, *next;

	lockdep_assert_held(&r->q->ready_lock);

	batch->nr = 0;
	list_for_each_entry_safe(ke, next, &r->q->ready, link) {
		if (!want--)
			break;
		if (!kevent_batch_wants(r, ke))
			continue;
		kevent_hold(ke);
		kevent_take(ke);
		batch->ke[batch->nr++] = ke;
	}
}

static void kevent_batch_verify(struct kevent_round *r,
				struct kevent_batch *batch)
{
	struct kevent *ke;
	u32 i;

	for (i = 0; i < batch->nr; i++) {
		ke = batch->ke[i];
		batch->mask[i] = kevent_source_of(ke)->collect(ke, false);
		r->held[i] = kevent_held_file(ke);
	}
	r->nr_held = batch->nr;
}

/* Watches that died since, and are detached, are left to be freed. */
static void kevent_batch_return(struct kevent_round *r,
				struct kevent_batch *batch)
{
	struct kevent_queue *q = r->q;
	u32 i = batch->nr;

	lockdep_assert_held(&q->ready_lock);

	while (i--)
		if (kevent_put_back(batch->ke[i], batch->mask[i]))
			list_add(&batch->ke[i]->link, &r->dead);
	q->looks += q->looks == U32_MAX ? 2 : 1;
	r->looked = !list_empty(&q->askers);
	list_splice_tail_init(&q->askers, &r->askers);
}

/* Those that were verified and do not go, for want of room or memory */
static void kevent_batch_doubt(struct kevent_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->nr; i++)
		if (kevent_is_announced(batch->ke[i]) &&
		    kevent_is_checked(batch->ke[i]))
			kevent_doubt(batch->ke[i]);
}

/* Settle */

static void kevent_settle(struct kevent_round *r, struct kevent *ke, u64 end,
			  u32 nr)
{
	trace_kevent_deliver(ke, ke->ready, nr, r->to->user);
	if (r->to->user) {
		ke->stored = end;
		ke->reported = ke->ready;
		r->q->collected += nr;
	} else {
		r->q->copied += nr;
	}
	ke->ready = 0;
	if (unlikely(kevent_is_awake(ke)))
		kevent_awake_delivered(r->q);
	if (likely(kevent_is_level(ke) &&
		   !(ke->req_flags & (KEVENT_REQ_ONESHOT |
				      KEVENT_REQ_DISPATCH)))) {
		kevent_look_later(ke);
		return;
	}
	kevent_delivered(ke, nr);
	r->kept |= kevent_count(ke);
	if (ke->req_flags & KEVENT_REQ_ONESHOT)
		kevent_expire(ke, &r->oneshot);
}

/* Gather */

/**
 * struct kevent_load - events on their way
 * @nr:		how many
 * @ke:		of each, its watch, at the head of the ready list
 * @uk:		their entries
 */
struct kevent_load {
	u32		nr;
	struct kevent	*ke[KRING_BATCH];
	struct ukevent	uk[KRING_BATCH];
};

/* How many occurrences of a watch go into the next @room entries */
static u32 kevent_share(struct kevent *ke, u32 room)
{
	if (ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH))
		return 1;
	return clamp(kevent_count(ke), 1, room);
}

static void kevent_gather_one(struct kevent_load *load, struct kevent *ke,
			      u32 share)
{
	u32 i;

	for (i = 0; i < share; i++) {
		load->ke[load->nr] = ke;
		kevent_fill(ke, &load->uk[load->nr++], i);
	}
}

/*
 * Of the first watches, up to one that can't be verified here, drop what repeats
 * and gather up to @want of the rest; look at no more than a batch.
 */
static void kevent_gather(struct kevent_round *r, u32 want,
			  struct kevent_load *load)
{
	u32 left = KRING_BATCH;
	struct kevent *ke, *next;

	load->nr = 0;
	list_for_each_entry_safe(ke, next, &r->q->ready, link) {
		if (load->nr == want || !left--)
			break;
		if (kevent_stays_level(ke, r->to))
			continue;
		if (kevent_must_verify(ke)) {
			if (!kevent_peek(ke))
				break;
			if (!kevent_is_listed(ke))
				continue;
		}
		if (kevent_repeats(ke, r->to)) {
			ke->ready = 0;
			kevent_delivered(ke, 0);
			continue;
		}
		kevent_gather_one(load, ke,
				  kevent_share(ke, want - load->nr));
	}
}

/*
 * Store up to @want events from the head of the ready list. Returns how many,
 * or -EFAULT when there was something to store and not even one went through.
 */
static int kevent_deliver(struct kevent_round *r, u32 want)
{
	struct kevent_load load __uninitialized;
	u64 end = r->to->kidx;
	u32 i, nr, done;

	lockdep_assert_held(&r->q->ready_lock);

	r->kept = false;
	kevent_gather(r, want, &load);
	if (!load.nr)
		return 0;
	done = kring_store(r->to, load.uk, load.nr);
	for (i = done; i < load.nr; i++)
		if (kevent_is_checked(load.ke[i]))
			kevent_doubt(load.ke[i]);
	if (!done)
		return -EFAULT;
	kevent_window(r->q, KEVENT_WINDOW_SETTLE);
	kring_set_flags(r->to, r->to->flags & ~KEVENT_RING_BROKEN);
	for (i = 0; i < done; i += nr) {
		nr = 1;
		while (i + nr < done && load.ke[i + nr] == load.ke[i])
			nr++;
		end += nr;
		kevent_settle(r, load.ke[i], end, nr);
	}
	return done;
}

/* Rounds */

static int kevent_round_fits(struct kevent_round *r)
{
	int fits = kevent_fits(r->q, r->to, min(r->max, KRING_BATCH));

	if (fits >= 0)
		r->full = !fits;
	return fits;
}

/* The first watches can only be verified without the lock. */
static noinline int kevent_round_verify(struct kevent_round *r, u32 want,
					unsigned long *flags)
	__must_hold(&r->q->ready_lock)
{
	struct kevent_queue *q = r->q;
	struct kevent_batch batch __uninitialized;
	int ret, fits = want;

	kevent_batch_take(r, &batch, want);
	if (batch.nr) {
		spin_unlock_irqrestore(&q->ready_lock, *flags);
		kevent_window(q, KEVENT_WINDOW_TAKEN);
		kevent_batch_verify(r, &batch);
		kevent_window(q, KEVENT_WINDOW_VERIFIED);
		spin_lock_irqsave(&q->ready_lock, *flags);
		kevent_batch_return(r, &batch);
		if (list_empty(&q->ready))
			return 0;
		fits = kevent_round_fits(r);
	}
	ret = fits > 0 ? kevent_deliver(r, fits) : fits;
	kevent_batch_doubt(&batch);
	return ret;
}

static int kevent_round_locked(struct kevent_round *r, unsigned long *flags)
	__must_hold(&r->q->ready_lock)
{
	struct kevent_queue *q = r->q;
	int ret, fits;

	if (list_empty(&q->ready))
		return 0;
	fits = kevent_round_fits(r);
	if (fits <= 0)
		return fits;
	ret = kevent_deliver(r, fits);
	if (!ret && !list_empty(&q->ready))
		ret = kevent_round_verify(r, fits, flags);
	if (!r->full && !list_empty(&q->ready))
		r->again |= r->kept || --r->passes;
	return ret;
}

static void kevent_round_bury(struct kevent_round *r)
{
	struct kevent *ke, *next;

	list_for_each_entry_safe(ke, next, &r->dead, link)
		kevent_free(ke);
	kevent_bury_list(&r->oneshot);
}

/* The events are delivered: let go of what was looked at. Files that were closed end. */
static void kevent_round_unhold(struct kevent_round *r)
{
	u32 i;

	if (r->looked)
		kevent_wake_askers(r->q, &r->askers);
	for (i = 0; i < r->nr_held; i++)
		kevent_unhold_file(r->held[i]);
}

static int kevent_round(struct kevent_round *r)
{
	struct kevent_queue *q = r->q;
	unsigned long flags;
	int ret;

	INIT_LIST_HEAD(&r->askers);
	INIT_LIST_HEAD(&r->dead);
	INIT_LIST_HEAD(&r->oneshot);
	r->nr_held = 0;
	r->looked = false;
	r->again = false;
	r->full = false;
	spin_lock_irqsave(&q->ready_lock, flags);
	if (!r->passes)
		r->passes = q->nr_listed + 1;
	ret = kevent_round_locked(r, &flags);
	if (ret == (int)r->max || (ret >= 0 && !r->again))
		r->flags_err = kevent_leave(q, kevent_who_has_room(r->full));
	kevent_unlock(q, flags);
	kevent_round_unhold(r);
	if (unlikely(!list_empty(&r->dead) || !list_empty(&r->oneshot)))
		kevent_round_bury(r);
	return ret;
}

/* A consumer goes early: its memory is gone, or it is being killed. */
static void kevent_give_up(struct kevent_queue *q, struct kring *to, int err)
{
	unsigned long flags;
	bool away;

	spin_lock_irqsave(&q->ready_lock, flags);
	away = err == -EFAULT && to->user;
	if (kevent_leave(q, away ? KEVENT_ELSEWHERE : KEVENT_ANY))
		kevent_more_left(q);
	if (away && kevent_ring_here(q)) {
		kring_set_flags(to, to->flags | KEVENT_RING_BROKEN);
		WRITE_ONCE(q->ring_mm, KEVENT_NO_MM);
	}
	kevent_unlock(q, flags);
}

/**
 * kevent_collect_rounds - go on with a collection, in rounds
 * @q: the queue
 * @to: where events go
 * @max: most events to move
 * @total: how many were moved already
 *
 * Return: as kevent_collect().
 */
int kevent_collect_rounds(struct kevent_queue *q, struct kring *to, u32 max,
			  u32 total)
{
	struct kevent_round r = { .q = q, .to = to };
	u32 tries = 0;
	int ret;

	do {
		r.max = max - total;
		ret = kevent_round(&r);
		if (ret > 0) {
			total += ret;
			tries = 0;
		} else if (ret < 0) {
			r.again = true;
			if (++tries < KRING_FAULT_TRIES)
				ret = kevent_ring_fault_in(q, to);
		}
		if (r.again)
			kevent_window(q, KEVENT_WINDOW_AGAIN);
	} while (ret >= 0 && total < max && r.again && kevent_may_go_on());

	if (r.again && total < max) {
		if (ret >= 0)
			ret = -EINTR;
		kevent_give_up(q, to, ret);
	} else if (r.flags_err) {
		kevent_retry_flags(q);
	}
	return total ?: min(ret, 0);
}
