// SPDX-License-Identifier: GPL-2.0
/*
 * Delivery: consumers move events from the ready list to user memory
 *
 * A collection goes through the ready list, and then through the level watches that were
 * delivered before it. It polls each watch that needs it, stores its event, and gives the watch
 * its next state, all under one hold of the lock. It releases the lock and goes on when it has
 * passed many watches, when a poll takes a lock or sleeps, and when user memory is away.
 *
 * file_report.c says why a file is polled at the delivery of its event.
 *
 * While a consumer polls a watch without the lock, the watch is on no list, and may be ready.
 * kevent_queue.nr_taken counts such watches. A call that finds nothing, whatever its timeout,
 * does not return while others poll. It joins the sleepers, so an ordinary event wakes it. The
 * consumer that polled delivers its event, and then wakes all calls that joined meanwhile:
 * kevent_wake_askers().
 *
 * kevent_queue.polls counts these polls. A call that finds nothing compares it, because a
 * consumer may have polled a watch between the collection and the sleep of the call. A call whose
 * time is over spends %KEVENT_PATIENCE on all of that. A consumer that slept when the poll began
 * is not notified, unless more than 32 have come since: one event wakes one consumer.
 *
 * A ->poll() may take for ever. So a consumer takes one watch at a time, and delivers its
 * event before it takes the next. Entries in the ring are for all threads, but
 * a buffer is for one. A buffer may have an event that is not reported again: an edge, ONESHOT,
 * or DISPATCH. The call then polls no file that may be of any driver, and leaves the rest to the
 * next call. A consumer that is killed during a poll takes nothing, and the watch stays ready.
 */

#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <trace/events/kevent.h>

#include "entry.h"
#include "lookup.h"
#include "queue_ring.h"
#include "source_ops.h"
#include "state.h"
#include "testpoint.h"
#include "wait.h"
#include "wake.h"
#include "wakeup_source.h"
#include "watch.h"

/*
 * A consumer returns, or will be away for a while. Wakes another one of those who can take the
 * remaining events, unless one is already waking. Returns false if the ring should say that there
 * are some, and its memory is away: kevent_say_more() must follow.
 */
bool kevent_leave(struct kevent_queue *q, enum kevent_consumers others)
{
	u32 flags = q->ring.flags & KEVENT_RING_BROKEN;

	lockdep_assert_held(&q->ready_lock);

	if (!list_empty(&q->ready)) {
		flags |= KEVENT_RING_MORE;
		if (!q->nr_woken)
			kevent_wake_one(q, others, false);
	}
	/* A flag that stays has consumers call once more than they need to. */
	return flags == q->ring.flags || !kevent_ring_select(q) ||
	       !kring_set_flags(&q->ring, flags) || !(flags & KEVENT_RING_MORE);
}

/*
 * The memory of the ring is away here. Other processes may have the ring in memory that can be
 * written. But if the only event that is ready repeats an unread entry, it makes no entry there:
 * it needs a consumer with a buffer.
 */
static enum kevent_consumers kevent_choose_elsewhere(struct kevent_queue *q)
{
	const struct kevent *ke = list_first_entry(&q->ready, struct kevent, link);

	if (!list_is_singular(&q->ready) || !q->ring.size || !kevent_ring_select(q))
		return KEVENT_ELSEWHERE;
	/* Full barrier: pairs with consumers, see kevent_repeats(). */
	smp_mb__after_spinlock();
	return !kring_sync(&q->ring) && ke->ready && !kevent_must_verify(ke) &&
	       kevent_repeats(ke, &q->ring) ? KEVENT_OF_BUFFER_ONE : KEVENT_ELSEWHERE;
}

/*
 * Make the memory of @to, the ring or a buffer, writable. Called without any lock, since
 * the fault may never end. Before it, wakes a consumer for what is ready. Returns 0,
 * -EFAULT, or -EINTR on a fatal signal.
 */
static int kevent_ring_fault_in(struct kevent_queue *q, const struct kring *to)
{
	struct kring where;
	unsigned long flags;
	bool here = !to->user || kevent_ring_back(q);
	int err;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (!list_empty(&q->ready)) {
		kevent_wake_one(q, kevent_choose_elsewhere(q), false);
		kevent_more(q);
	}
	here = here && (!to->user || kevent_ring_select(q));
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
			    q->ring.size && kevent_ring_select(q))
				err = kring_set_flags(&q->ring, q->ring.flags |
						      KEVENT_RING_MORE);
		}
	} while (err && ++tries < KRING_FAULT_TRIES &&
		 !fatal_signal_pending(current) &&
		 !kevent_ring_fault_in(q, &q->ring));
}

/*
 * Let others run between two holds of the lock. Returns false if the consumer is being killed,
 * or if it has events and a signal: others may make events as fast as it takes them.
 */
static bool kevent_resched(u32 total)
{
	cond_resched();
	return total ? !signal_pending(current) : !fatal_signal_pending(current);
}

/* Collect */

/* Watches that are passed under one hold of the lock. A store counts as this many more. */
#define KEVENT_HOLD_LOOKS	256U
#define KEVENT_STORE_LOOKS	3U

/**
 * struct kevent_collection - events on their way to user memory
 * @q:		the queue
 * @to:		where events go
 * @max:	how many are wanted
 * @relist:	level watches are to be looked at, too
 * @total:	how many were stored
 * @room:	how many more are wanted, and fit
 * @left:	how many more watches may be passed. Without a limit a file whose ->poll()
 *		fires its own watch could keep a consumer in the kernel
 * @again:	there is more to do under another hold of the lock
 * @once:	an event that is not reported again was copied to a buffer: a poll that does not
 *		return must not keep it from its thread
 * @unsaid:	events are left, and the ring's memory was away when its flags were to say so
 * @kept:	level watches whose entries are unread, under this hold of the lock. They go
 *		before those that are delivered now: a ring that is read in part gets the
 *		next entries in the order of the last ones
 * @looked:	the watch that was polled without the lock, or NULL. Valid until the lock is
 *		released: others may remove it then
 * @file:	its file, to let go of when the lock is released, or NULL
 * @dead:	a watch to free, detached by others, or NULL
 * @oneshot:	watches to bury, held, delivered for good
 */
struct kevent_collection {
	struct kevent_queue	*q;
	struct kring		*to;
	u32			max;
	bool			relist;
	u32			total;
	u32			room;
	u32			left;
	bool			again;
	bool			once;
	bool			unsaid;
	struct list_head	kept;
	struct kevent		*looked;
	struct file		*file;
	struct kevent		*dead;
	struct list_head	oneshot;
};

/**
 * enum kevent_stop - why a hold of the lock ends
 * @KEVENT_AT_END:	the list has an end, or the room; of kevent_pass(): go on
 * @KEVENT_ENOUGH:	enough watches were passed
 * @KEVENT_NEEDS_TASK:	the next watch must be looked at without the lock
 * @KEVENT_FAULTED:	user memory is away
 * @KEVENT_KILLED:	the consumer is being killed
 *
 * But for the first, the next watch is still to be delivered.
 */
enum kevent_stop {
	KEVENT_AT_END,
	KEVENT_ENOUGH,
	KEVENT_NEEDS_TASK,
	KEVENT_FAULTED,
	KEVENT_KILLED,
};

/* Count the slots for events, at most @max. Returns -EFAULT when that can't be read. */
static int kevent_count_slots(struct kevent_queue *q, struct kring *to, u32 max)
{
	if (!to->user)
		return min3(max, to->size - (u32)to->kidx, INT_MAX);
	if (!kevent_ring_select(q))
		return -EFAULT;
	/* Full barrier: pairs with consumers, see kevent_repeats(). */
	smp_mb__after_spinlock();
	if (kring_sync(to))
		return -EFAULT;
	return min3(max, kring_free_slots(to), INT_MAX);
}

/* User memory has an occurrence of a watch. */
static void kevent_settle(struct kevent_collection *c, struct kevent *ke)
{
	trace_kevent_deliver(ke, ke->ready, 1, c->to->user);
	if (c->to->user) {
		ke->stored = c->to->kidx;
		ke->reported = ke->ready;
		c->q->collected++;
	} else {
		c->q->copied++;
	}
	ke->ready = 0;
	if (unlikely(ke->state & KE_AWAKE))
		kevent_awake_delivered(c->q);
	if (ke->req_flags & KEVENT_REQ_ONESHOT) {
		/* kevent_let_go() buries it. */
		kevent_hold(ke);
		kevent_spend(ke);
		list_add_tail(&ke->link, &c->oneshot);
	} else {
		kevent_delivered(ke);
	}
	c->once |= !c->to->user && (ke->state & KE_DELIVERED) != KE_DELIVERED;
}

/*
 * Store the entry of the oldest occurrence, which kevent_entry() of entry.h builds. Returns false
 * on a fault.
 */
static bool kevent_store_entry(struct kring *to, struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	struct ukevent plain, uk __uninitialized;

	/* Conditions and an amount: such an entry needs no memory. */
	if (likely(kevent_has_level(ke) && !kevent_is_broken(ke))) {
		plain = kevent_entry(ke, ke->ready, kevent_amount(ke, ke->ready));
		plain.req_flags = kevent_req_flags(ke);
		return kring_store(to, &plain);
	}
	kevent_fill(ke, &uk);
	if (!kring_store(to, &uk))
		return false;
	if (ops->delivered)
		ops->delivered(ke);
	return true;
}

/*
 * Deal with a watch that is queued, unless the hold of the lock must end first. If it has more
 * events than one, it is passed again behind the others.
 */
static enum kevent_stop kevent_pass(struct kevent_collection *c,
				    struct kevent *ke)
{
	int mask;

	/* It has reported nothing since its delivery: who has the entry will read the file. */
	if (ke->state & KE_QUIET && c->to->user && kring_is_unread(c->to, ke->stored)) {
		list_move_tail(&ke->link, &c->kept);
		return KEVENT_AT_END;
	}
	if (kevent_must_verify(ke)) {
		mask = kevent_source_of(ke)->collect(ke, true);
		if (mask < 0 && c->room)
			return KEVENT_NEEDS_TASK;
		if (mask >= 0)
			kevent_looked(ke, mask);
		if (!mask)
			return KEVENT_AT_END;
	}
	if (!c->room) {
		/* A level watch: it waits for room, and is looked at again then. */
		kevent_doubt(ke);
		list_move_tail(&ke->link, &c->q->ready);
		return KEVENT_AT_END;
	}
	if (kevent_repeats(ke, c->to)) {
		ke->ready = 0;
		kevent_delivered(ke);
		return KEVENT_AT_END;
	}
	if (!kevent_store_entry(c->to, ke)) {
		if (kevent_is_checked(ke))
			kevent_doubt(ke);
		return KEVENT_FAULTED;
	}
	c->room--;
	kevent_testpoint(c->q, KEVENT_TESTPOINT_SETTLE);
	kevent_settle(c, ke);
	return KEVENT_AT_END;
}

/*
 * Go through the ready list, and once through the level watches. When there is no room, the
 * latter are looked at all the same: those that are ready join the ready list.
 */
static enum kevent_stop kevent_walk(struct kevent_collection *c)
{
	struct kevent_queue *q = c->q;
	struct list_head *link, *last = q->level.prev;
	enum kevent_stop stop = KEVENT_AT_END;
	bool asked = c->relist, relist = asked && !list_empty(&q->level);
	u32 room, stored, passed = 0;
	int fits;

	c->relist = false;
	if (list_empty(&q->ready) && !relist)
		return KEVENT_AT_END;
	fits = kevent_count_slots(q, c->to, c->max - c->total);
	if (fits < 0)
		stop = KEVENT_FAULTED;
	room = max(fits, 0);
	c->room = room;
	while (!stop) {
		if (c->room && !list_empty(&q->ready))
			link = q->ready.next;
		else if (relist)
			link = q->level.next;
		else
			break;
		stored = room - c->room;
		if (passed + KEVENT_STORE_LOOKS * stored >= KEVENT_HOLD_LOOKS) {
			stop = KEVENT_ENOUGH;
			break;
		}
		passed++;
		stop = kevent_pass(c, list_entry(link, struct kevent, link));
		if (link == last && !stop)
			relist = false;
	}
	stored = room - c->room;
	c->total += stored;
	if (stored)
		kring_set_flags(c->to, c->to->flags & ~KEVENT_RING_BROKEN);
	if (stop && relist) {
		LIST_HEAD(later);

		/* One call reports a level watch once: these leave those that were delivered. */
		list_cut_position(&later, &q->level, last);
		list_splice_tail(&later, &q->ready);
	}
	list_splice_init(&c->kept, &q->level);
	if (!stop)
		return KEVENT_AT_END;
	/*
	 * While the memory is away others may take what is ready, and level watches move to their
	 * list. So this call goes through the level watches again, if it has stored nothing. After
	 * a poll kevent_note_polls() says so.
	 */
	c->relist = asked && !c->total && stop == KEVENT_FAULTED;
	/* Stored events are not deducted from @left: c->room limits them. */
	c->left += stored;
	c->left -= min(c->left, passed);
	return stop;
}

/* Look without the lock */

/*
 * The lock is about to be released after a poll. If the event is not delivered by now, the watch
 * must be polled again. Wakes the calls that wait for the result.
 */
static void kevent_end_look(struct kevent_collection *c)
{
	struct kevent *ke = c->looked;

	if (ke && ke->state & KE_QUEUED && kevent_is_checked(ke))
		kevent_doubt(ke);
	c->looked = NULL;
	kevent_wake_askers(c->q);
}

/*
 * Without the lock: let go of what was looked at, and of what was delivered for good. A file
 * that was closed meanwhile ends.
 */
static void kevent_let_go(struct kevent_collection *c)
{
	struct kevent *ke, *next;

	kevent_unhold_file(c->file);
	c->file = NULL;
	if (c->dead)
		kevent_free(c->dead);
	c->dead = NULL;
	list_for_each_entry_safe(ke, next, &c->oneshot, link)
		kevent_bury(ke, true);
	INIT_LIST_HEAD(&c->oneshot);
}

/*
 * The first ready watch can only be polled without the lock. If it is ready it goes to the front
 * again. Returns false if the consumer is being killed: then other consumers take the watch.
 */
static bool kevent_look_unlocked(struct kevent_collection *c)
	__must_hold(&c->q->ready_lock)
{
	struct kevent_queue *q = c->q;
	struct kevent *ke = list_first_entry(&q->ready, struct kevent, link);
	int mask;

	kevent_hold(ke);
	kevent_claim(ke, KEVENT_TO_POLL);
	c->left -= min(c->left, 1U);
	/* Other events wait as long as the poll. The flag has programs that read the ring call. */
	kevent_more(q);
	spin_unlock_irq(&q->ready_lock);
	kevent_let_go(c);
	kevent_testpoint(q, KEVENT_TESTPOINT_TAKEN);
	mask = kevent_source_of(ke)->collect(ke, false);
	c->file = kevent_held_file(ke);
	kevent_testpoint(q, KEVENT_TESTPOINT_VERIFIED);
	spin_lock_irq(&q->ready_lock);
	if (kevent_release(ke, KEVENT_TO_POLL, mask))
		c->dead = ke;
	else if (!kevent_is_dead(ke))
		c->looked = ke;
	q->polls++;
	return likely(!fatal_signal_pending(current));
}

/* Watches that are looked at before a consumer asks whether to go on */
#define KEVENT_LOOKS_AT_ONCE	KRING_BATCH

/* One hold of the lock, or several around looks without it */
static enum kevent_stop kevent_collect_some(struct kevent_collection *c)
{
	struct kevent_queue *q = c->q;
	u32 looks = 0;
	enum kevent_stop stop;
	bool full, waits = false;
	struct kevent *ke;

	spin_lock_irq(&q->ready_lock);
	kevent_ask(q);
	for (;;) {
		stop = kevent_walk(c);
		if (looks)
			kevent_end_look(c);
		if (stop == KEVENT_NEEDS_TASK && c->once) {
			ke = list_first_entry(&q->ready, struct kevent, link);
			waits = kevent_source_of(ke)->flags & KEVENT_SOURCE_FOREIGN;
		}
		if (stop != KEVENT_NEEDS_TASK || waits ||
		    looks++ == KEVENT_LOOKS_AT_ONCE)
			break;
		if (!kevent_look_unlocked(c)) {
			kevent_end_look(c);
			stop = KEVENT_KILLED;
			break;
		}
	}
	c->again = stop == KEVENT_FAULTED || stop == KEVENT_KILLED ||
		   (stop && c->room && c->left && !waits);
	if (!c->again && (!list_empty(&q->ready) || q->ring.flags)) {
		/* A buffer that is full is no reason to pass over those with the ring. */
		full = kring_is_ring(c->to) && !c->room && c->total < c->max;
		c->unsaid = !kevent_leave(q, full ? KEVENT_OF_BUFFER : KEVENT_ANY);
	}
	kevent_unlock_irq(q);
	kevent_let_go(c);
	return stop;
}

/* A consumer goes early: its memory is gone, or a signal has come. Returns as kevent_leave(). */
static bool kevent_give_up(struct kevent_queue *q, struct kring *to, int err)
{
	bool away = err == -EFAULT && to->user;
	bool said;

	spin_lock_irq(&q->ready_lock);
	/* A killed consumer may have been woken for an event, even for one in the ring. */
	if (fatal_signal_pending(current))
		kevent_pass_on(q);
	said = kevent_leave(q, away ? kevent_choose_elsewhere(q) : KEVENT_ANY);
	if (away && kevent_ring_select(q)) {
		kring_set_flags(to, to->flags | KEVENT_RING_BROKEN);
		WRITE_ONCE(q->ring_mm, KEVENT_NO_MM);
	}
	kevent_unlock_irq(q);
	return said || away;
}

/*
 * kevent_collect() when the queue is not idle. Any number of tasks may collect at once: each
 * watch is taken by one of them. However often watches become ready meanwhile, a call ends,
 * see &kevent_collection.left.
 */
int __kevent_collect(struct kevent_queue *q, struct kring *to, u32 max,
		     bool relist)
{
	struct kevent_collection c = {
		.q = q, .to = to, .max = max, .relist = relist, .room = max,
		.kept = LIST_HEAD_INIT(c.kept), .oneshot = LIST_HEAD_INIT(c.oneshot),
	};
	u32 total, tries = 0;
	bool faulted;
	int err = 0;

	/* A killed consumer takes nothing. It passes on the event that it was woken for. */
	if (unlikely(fatal_signal_pending(current))) {
		guard(kevent_queue)(q);
		kevent_pass_on(q);
		return -EINTR;
	}
	kevent_note_taker(q);
	/* One that must be looked at without the lock is passed, taken, and passed again. */
	c.left = 3 * READ_ONCE(q->nr_queued) + KRING_BATCH;
	do {
		total = c.total;
		faulted = kevent_collect_some(&c) == KEVENT_FAULTED;
		if (c.total > total)
			tries = 0;
		if (faulted) {
			err = -EFAULT;
			if (++tries < KRING_FAULT_TRIES)
				err = kevent_ring_fault_in(q, to);
		}
		if (c.again)
			kevent_testpoint(q, KEVENT_TESTPOINT_AGAIN);
	} while (c.again && !err && kevent_resched(c.total));

	if (c.again) {
		err = err ?: -EINTR;
		c.unsaid = !kevent_give_up(q, to, err);
	}
	if (unlikely(c.unsaid))
		kevent_say_more(q);
	return c.total ?: err;
}

/* Advance the position of consumers, and refill the ring. Returns as sys_kevent_commit(). */
int kevent_commit(struct kevent_queue *q, u64 uidx)
{
	u32 tries = 0;
	int ret, stored;

	do {
		scoped_guard(spinlock_irqsave, &q->ready_lock)
			ret = kevent_ring_select(q) ?
			      kring_commit(&q->ring, uidx) : -EFAULT;
		if (ret == -EFAULT && ++tries < KRING_FAULT_TRIES)
			ret = kevent_ring_fault_in(q, &q->ring) ?: -EAGAIN;
	} while (ret == -EAGAIN && kevent_resched(0));
	if (ret == -EAGAIN)
		return -EINTR;
	if (ret < 0)
		return ret;

	kevent_testpoint(q, KEVENT_TESTPOINT_COMMITTED);
	/* The caller did not ask for events: wake one that did. */
	stored = kevent_collect(q, &q->ring, q->ring.size, true);
	if (stored > 0) {
		kevent_testpoint(q, KEVENT_TESTPOINT_STORED);
		kevent_wake_others(q, stored);
	}
	return ret;
}
