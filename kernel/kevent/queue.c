// SPDX-License-Identifier: GPL-2.0
/*
 * The queue: ready watches, and delivery to user memory
 */

#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "kevent.h"
#include "window.h"

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

struct kevent_queue *kevent_queue_alloc(void)
{
	struct kevent_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);

	if (!q)
		return NULL;
	spin_lock_init(&q->ready_lock);
	spin_lock_init(&q->key_lock);
	INIT_LIST_HEAD(&q->ready);
	INIT_LIST_HEAD(&q->level);
	INIT_LIST_HEAD(&q->mappings);
	INIT_LIST_HEAD(&q->guests);
	init_waitqueue_head(&q->wait);
	init_waitqueue_head(&q->poll_wait);
	kevent_index_init(&q->watches);
	q->by_key = RB_ROOT;
	refcount_set(&q->refs, 1);
	q->owner = get_uid(current_user());
	q->mm = current->mm;
	mmgrab(q->mm);
	q->ring_mm = KEVENT_NO_MM;
	q->consumer = get_pid(task_pid(current));
	return q;
}

void kevent_queue_put(struct kevent_queue *q)
{
	if (!refcount_dec_and_test(&q->refs))
		return;
	kevent_timers_free(q);
	kevent_mappings_free(q);
	kevent_index_destroy(&q->watches);
	free_uid(q->owner);
	put_pid(q->consumer);
	mmdrop(q->mm);
	kfree_rcu(q, rcu);
}

static bool kevent_is_level(const struct kevent *ke)
{
	return kevent_source_of(ke)->level &&
	       !(ke->req_flags & KEVENT_REQ_ET) && !(ke->state & KE_BROKEN);
}

/**
 * kevent_enqueue - a watch has something to report
 * @ke: the watch
 *
 * Puts it on the ready list once, and wakes a consumer if it was not there.
 */
void kevent_enqueue(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;

	lockdep_assert_held(&q->ready_lock);

	if ((ke->state & (KE_LISTED | KE_QUIET)) == KE_LISTED)
		return;
	if (ke->state & KE_LISTED) {
		list_move_tail(&ke->link, &q->ready);
	} else {
		list_add_tail(&ke->link, &q->ready);
		q->nr_listed++;
	}
	ke->state |= KE_LISTED;
	ke->state &= ~KE_QUIET;
	q->misses++;
	/* Consumers join and leave under ready_lock. */
	if (waitqueue_active(&q->wait))
		kevent_wake_for(ke, KEVENT_ANY);
	if (list_is_singular(&q->ready) && !q->nr_woken)
		kevent_more(q);
}

/**
 * kevent_dequeue - a watch has nothing to report
 * @ke: the watch; under ready_lock
 */
void kevent_dequeue(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (!(ke->state & KE_LISTED))
		return;
	list_del_init(&ke->link);
	ke->queue->nr_listed--;
	ke->state &= ~(KE_LISTED | KE_QUIET);
}

static u32 kevent_count(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	return ops->count ? ops->count(ke) : 0;
}

/**
 * kevent_fill - make the entry of an event
 * @ke: the watch
 * @uk: the entry
 * @nth: which of the occurrences not yet delivered
 */
void kevent_fill(struct kevent *ke, struct ukevent *uk, u32 nth)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	*uk = (struct ukevent) {
		.id.raw_u64	= kevent_id(ke),
		.type		= ke->type,
		.event		= ke->event,
		.req_flags	= ke->req_flags,
		.ret_flags	= KEVENT_RET_DONE,
		.ret_data	= { ke->ready },
		.ptr		= ke->user,
	};
	if (ops->amount)
		uk->ret_data[1] = ops->amount(ke, ke->ready);
	if (ops->fill)
		ops->fill(ke, uk, nth);
	if (ke->state & KE_BROKEN) {
		uk->ret_flags |= KEVENT_RET_BROKEN;
		uk->ret_data[1] = ops->error ? ops->error(ke) : -EIDRM;
	}
}

/**
 * kevent_delivered - user memory has the event of a watch
 * @ke: the watch; its ready conditions are those not yet delivered
 * @nr: how many of its occurrences; 0: what there was repeats an unread entry
 *
 * Decides what the mode makes of it, except %KEVENT_REQ_ONESHOT.
 */
void kevent_delivered(struct kevent *ke, u32 nr)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	struct kevent_queue *q = ke->queue;

	lockdep_assert_held(&q->ready_lock);

	kevent_dequeue(ke);
	while (nr-- && ops->delivered)
		ops->delivered(ke);
	if (ke->req_flags & KEVENT_REQ_DISPATCH) {
		ke->state |= KE_DISARMED;
		/* MODIFY reports what is left. */
		if (kevent_count(ke) || (ke->ready && !ops->collect))
			ke->state |= KE_FIRED;
		else
			ke->state &= ~KE_FIRED;
		return;
	}
	if (kevent_is_level(ke)) {
		kevent_look_later(ke);
	} else if (ke->state & KE_FIRED || kevent_count(ke)) {
		if (!ke->ready && ops->collect)
			ke->state |= KE_VERIFY;
		kevent_enqueue(ke);
	}
	ke->state &= ~KE_FIRED;
}

static bool kevent_repeats(const struct kevent *ke, const struct kring *to)
{
	return to->user && kring_is_unread(to, kevent_previous(ke)) &&
	       !(ke->ready & ~ke->reported);
}

static bool kevent_must_verify(const struct kevent *ke)
{
	return (ke->state & (KE_VERIFY | KE_BROKEN)) == KE_VERIFY;
}

/*
 * Verify a watch, if that takes no lock and no sleep. What becomes true after
 * that is reported by a callback, which comes to ready_lock later.
 */
static bool kevent_peek(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	int mask = ops->peek ? ops->peek(ke) : -1;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (mask < 0)
		return false;
	ke->ready = mask;
	ke->state &= ~(KE_VERIFY | KE_FIRED | KE_STALE);
	if (!mask)
		kevent_dequeue(ke);
	return true;
}

/* Make busy those of the first @want ready watches that must be verified. */
static void kevent_batch_take(struct kevent_queue *q,
			      struct kevent_batch *batch, u32 want)
{
	struct kevent *ke, *next;

	lockdep_assert_held(&q->ready_lock);

	batch->nr = 0;
	list_for_each_entry_safe(ke, next, &q->ready, link) {
		if (!want--)
			break;
		if (!kevent_must_verify(ke) || kevent_peek(ke))
			continue;
		kevent_dequeue(ke);
		if (!kevent_source_of(ke)->hold(ke))
			continue;
		ke->ready = 0;
		ke->state &= ~(KE_VERIFY | KE_FIRED | KE_STALE);
		ke->state |= KE_BUSY;
		batch->ke[batch->nr++] = ke;
	}
}

static void kevent_batch_verify(struct kevent_batch *batch)
{
	const struct kevent_source_ops *ops;
	u32 i;

	for (i = 0; i < batch->nr; i++) {
		ops = kevent_source_of(batch->ke[i]);
		batch->mask[i] = ops->collect(batch->ke[i]);
		ops->unhold(batch->ke[i]);
	}
}

/*
 * Put a verified watch back: in front when it is ready to be delivered. What
 * its source could name meanwhile is part of @ke->ready; KE_FIRED stays for
 * what it could not, and has it verified again after delivery.
 */
static void kevent_batch_put(struct kevent *ke, u32 mask)
{
	struct kevent_queue *q = ke->queue;
	u16 state = ke->state;

	lockdep_assert_held(&q->ready_lock);

	ke->state &= ~(KE_FIRED | KE_STALE);
	if (state & KE_DISARMED)
		return;
	if (mask && !(state & KE_STALE)) {
		ke->ready |= mask;
		if (kevent_must_verify(ke))
			ke->state |= state & KE_FIRED;
		ke->state &= ~KE_VERIFY;
		ke->state |= KE_LISTED;
		list_add(&ke->link, &q->ready);
		q->nr_listed++;
		/* Those that were woken while it was busy have found nothing. */
		if (ke->req_flags & KEVENT_REQ_WAKEUP_ALL)
			kevent_wake_for(ke, KEVENT_ANY);
	} else if (state & (KE_FIRED | KE_STALE)) {
		kevent_enqueue(ke);
	}
}

/* Watches that died meanwhile and are detached go to @dead. */
static void kevent_batch_return(struct kevent_queue *q,
				struct kevent_batch *batch,
				struct list_head *dead)
{
	struct kevent *ke;
	u32 i = batch->nr;

	lockdep_assert_held(&q->ready_lock);

	while (i--) {
		ke = batch->ke[i];
		ke->state &= ~KE_BUSY;
		if (!(ke->state & KE_DEAD))
			kevent_batch_put(ke, batch->mask[i]);
		else if (ke->state & KE_DETACHED)
			list_add(&ke->link, dead);
	}
}

/* One-shot watches die at delivery; @dead is for kevent_bury(), held. */
static void kevent_expire(struct kevent *ke, struct list_head *dead)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (!ops->hold || ops->hold(ke)) {
		ke->state |= KE_SPENT;
		kevent_kill(ke);
		list_add_tail(&ke->link, dead);
	} else {
		ke->state |= KE_DISARMED;
	}
}

/**
 * struct kevent_round - one pass of a collection
 * @q:		the queue
 * @to:		where events go
 * @max:	how many more are wanted
 * @passes:	how many more there may be; 0 before the first. A file whose
 *		->poll() fires its own watch would keep a consumer for ever
 * @relist:	most level watches that are to be looked at again: at first as many as
 *		are listed, so each that was delivered before is among them
 * @again:	another pass may find more
 * @kept:	a watch has occurrences left, which need no further look
 * @full:	there is no room
 * @flags_err:	the ring has not been told whether there is more
 * @dead:	watches to free, detached by others
 * @oneshot:	watches to bury, held, delivered for good
 */
struct kevent_round {
	struct kevent_queue	*q;
	struct kring		*to;
	u32			max;
	u32			passes;
	u32			relist;
	bool			again;
	bool			kept;
	bool			full;
	int			flags_err;
	struct list_head	dead;
	struct list_head	oneshot;
};

/* A watch that was verified is not delivered now: it must be verified again. */
static void kevent_doubt(struct kevent *ke)
{
	if (kevent_is_checked(ke))
		ke->state |= KE_VERIFY;
}

/* How many occurrences of a watch go into the next @room entries */
static u32 kevent_share(struct kevent *ke, u32 room)
{
	if (ke->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH))
		return 1;
	return clamp(kevent_count(ke), 1, room);
}

static void kevent_settle(struct kevent_round *r, struct kevent *ke, u64 end,
			  u32 nr)
{
	if (r->to->user) {
		ke->stored = end;
		ke->reported = ke->ready;
		r->q->collected += nr;
	} else {
		r->q->copied += nr;
	}
	ke->ready = 0;
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
		if (kevent_must_verify(ke)) {
			if (!kevent_peek(ke))
				break;
			if (!(ke->state & KE_LISTED))
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

/* How many events fit now, up to a batch; -EFAULT when that can't be read. */
static int kevent_round_fits(struct kevent_round *r)
{
	u32 fits;

	lockdep_assert_held(&r->q->ready_lock);

	if (r->to->user && !kevent_ring_here(r->q))
		return -EFAULT;
	/* Full barrier: pairs with consumers, see kevent_previous(). */
	smp_mb__after_spinlock();
	if (kring_sync(r->to))
		return -EFAULT;
	fits = min3(r->max, kring_free_slots(r->to), KRING_BATCH);
	r->full = !fits;
	return fits;
}

/* Level watches that are looked at under one hold of the lock */
#define KEVENT_RELIST_LOOKS	256U

/*
 * Look at a level watch again, to drop it if it has nothing to report. If it has,
 * it may have to wait for room, so it is looked at when it is delivered. While its
 * entry is unread, its consumer has yet to look itself.
 */
static __always_inline void kevent_relist_one(struct kevent_round *r,
					      struct kevent *ke)
{
	/* Such watches are mergeable and not broken: kevent_previous() */
	if (r->to->user && kring_is_unread(r->to, ke->stored)) {
		list_move_tail(&ke->link, &r->q->level);
		return;
	}
	if (kevent_must_verify(ke) && kevent_peek(ke) &&
	    !(ke->state & KE_LISTED))
		return;
	ke->state |= KE_VERIFY;
	list_move_tail(&ke->link, &r->q->ready);
}

static void kevent_relist(struct kevent_round *r)
{
	struct list_head *level = &r->q->level;
	u32 looks = min(r->relist, KEVENT_RELIST_LOOKS);

	lockdep_assert_held(&r->q->ready_lock);

	r->relist -= looks;
	while (looks-- && !list_empty(level))
		kevent_relist_one(r, list_first_entry(level, struct kevent,
						      link));
	if (list_empty(level))
		r->relist = 0;
}

/* Those that were verified and do not go, for want of room or memory */
static void kevent_batch_doubt(struct kevent_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->nr; i++)
		if ((batch->ke[i]->state & (KE_LISTED | KE_QUIET)) == KE_LISTED)
			kevent_doubt(batch->ke[i]);
}

/* The first watches can only be verified without the lock. */
static noinline int kevent_round_verify(struct kevent_round *r, u32 want,
					unsigned long *flags)
	__must_hold(&r->q->ready_lock)
{
	struct kevent_queue *q = r->q;
	struct kevent_batch batch __uninitialized;
	int ret, fits = want;

	kevent_batch_take(q, &batch, want);
	if (batch.nr) {
		spin_unlock_irqrestore(&q->ready_lock, *flags);
		kevent_batch_verify(&batch);
		kevent_window(q, KEVENT_WINDOW_VERIFIED);
		spin_lock_irqsave(&q->ready_lock, *flags);
		kevent_batch_return(q, &batch, &r->dead);
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

	if (list_empty(&q->ready) && !r->relist)
		return 0;
	fits = kevent_round_fits(r);
	if (fits >= 0 && r->relist)
		kevent_relist(r);
	r->again = r->relist && fits > 0;
	if (fits <= 0 || list_empty(&q->ready))
		return min(fits, 0);
	ret = kevent_deliver(r, fits);
	if (!ret && !list_empty(&q->ready))
		ret = kevent_round_verify(r, fits, flags);
	if (!r->full && !list_empty(&q->ready))
		r->again |= r->kept || --r->passes;
	return ret;
}

/*
 * A consumer goes, or does not come back soon: whoever is next shall have what
 * it leaves, be it one that was woken for other events and is on its way. When
 * that is for want of room in the ring, or for the ring's memory, only consumers
 * that do not need it can. Returns -EFAULT when KEVENT_RING_MORE could not be
 * stored.
 */
static int kevent_leave(struct kevent_queue *q, bool full)
{
	u32 flags = q->ring.flags & KEVENT_RING_BROKEN;
	int err = 0;

	lockdep_assert_held(&q->ready_lock);

	if (!list_empty(&q->ready)) {
		flags |= KEVENT_RING_MORE;
		if (!q->nr_woken)
			kevent_wake(q, full ? KEVENT_OF_BUFFER : KEVENT_ANY, 1);
	}
	if (kevent_ring_here(q))
		err = kring_set_flags(&q->ring, flags);
	/* A flag that stays has consumers call once more than they need to. */
	return flags & KEVENT_RING_MORE ? err : 0;
}

static void kevent_round_bury(struct kevent_round *r)
{
	struct kevent *ke, *next;

	list_for_each_entry_safe(ke, next, &r->dead, link)
		kevent_free(ke);
	list_for_each_entry_safe(ke, next, &r->oneshot, link)
		kevent_bury(ke, true);
}

static int kevent_round(struct kevent_round *r)
{
	struct kevent_queue *q = r->q;
	unsigned long flags;
	int ret;

	INIT_LIST_HEAD(&r->dead);
	INIT_LIST_HEAD(&r->oneshot);
	r->again = false;
	r->full = false;
	spin_lock_irqsave(&q->ready_lock, flags);
	if (!r->passes) {
		r->passes = q->nr_listed + 1;
		r->relist = min(r->relist, q->nr_listed);
	}
	ret = kevent_round_locked(r, &flags);
	if (ret == (int)r->max || (ret >= 0 && !r->again))
		r->flags_err = kevent_leave(q, r->full);
	kevent_unlock(q, flags);
	if (unlikely(!list_empty(&r->dead) || !list_empty(&r->oneshot)))
		kevent_round_bury(r);
	return ret;
}

/**
 * kevent_fault_in - make user memory writable
 * @q: the queue
 * @to: its ring, or a buffer
 *
 * Called without any lock: that may take for ever. Return: 0, -EFAULT, -EINTR on
 * a fatal signal.
 */
int kevent_fault_in(struct kevent_queue *q, const struct kring *to)
{
	struct kring where;
	unsigned long flags;
	bool here;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (!list_empty(&q->ready))
		kevent_wake(q, to->user ? KEVENT_OF_BUFFER : KEVENT_ANY, 1);
	here = !to->user || kevent_ring_here(q);
	where = *to;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return here ? kring_fault_in(&where) : -EFAULT;
}

/* A consumer goes early: its memory is gone, or it is being killed. */
static void kevent_give_up(struct kevent_queue *q, struct kring *to, int err)
{
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_leave(q, err == -EFAULT && to->user);
	if (err == -EFAULT && to->user && kevent_ring_here(q)) {
		kring_set_flags(to, to->flags | KEVENT_RING_BROKEN);
		q->ring_mm = KEVENT_NO_MM;
	}
	kevent_unlock(q, flags);
}

/*
 * Peeks: a consumer that is to sleep looks for ready watches again, under
 * ready_lock. It does not look for level watches, see kevent_queue.nr_listed.
 */
static bool kevent_is_idle(const struct kevent_queue *q, const struct kring *to,
			   bool relist)
{
	return (relist ? !READ_ONCE(q->nr_listed) :
			 list_empty_careful(&q->ready)) &&
	       (!to->user || !READ_ONCE(to->flags));
}

static bool kevent_may_go_on(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

/**
 * kevent_collect - move events of ready watches to user memory
 * @q: the queue; the caller keeps it alive
 * @to: the queue's ring, when it is in current->mm, or a buffer
 * @max: most events to move
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
	struct kevent_round r = {
		.q = q,
		.to = to,
		.relist = relist ? U32_MAX : 0,
	};
	u32 total = 0, tries = 0;
	int ret;

	if (kevent_is_idle(q, to, relist))
		return 0;
	do {
		r.max = max - total;
		ret = kevent_round(&r);
		if (ret > 0) {
			total += ret;
			tries = 0;
		} else if (ret < 0) {
			r.again = true;
			if (++tries < KRING_FAULT_TRIES)
				ret = kevent_fault_in(q, to);
		}
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
			ret = kevent_fault_in(q, &q->ring) ?: -EAGAIN;
	} while (ret == -EAGAIN && kevent_may_go_on());
	if (ret == -EAGAIN)
		return -EINTR;
	if (ret < 0)
		return ret;

	/* The caller did not ask for events: tell somebody who did. */
	stored = kevent_collect(q, &q->ring, q->ring.size, true);
	if (stored > 0)
		kevent_wake_others(q, stored);
	return ret;
}
