// SPDX-License-Identifier: GPL-2.0
/*
 * Consumers that sleep, and the choice of the one to wake
 *
 * Consumers sleep on kevent_queue.sleepers, a plain list, and join and leave it under
 * ready_lock. A wait queue would have a lock of its own and call a function for each
 * waiter. kevent_wake_one() takes a waiter off the list. One that sleeps for the ring, and has
 * its entry, is "done": nothing is left of it in the queue, and it returns without the
 * lock. All others take the lock and read the ready list.
 *
 * A wake-up must find its waiter in a few instructions, with any number of sleepers:
 * kevent_next_sleeper() reads the ends of a list. The next one is the consumer that slept
 * last, since its stack and its data are in the caches of a CPU. After KEVENT_WARM_MAX such
 * wake-ups it is the oldest, so nobody sleeps for ever beside events. In a queue that is
 * fair, and where all are woken, it is always the oldest. Each sleeper is also on one of
 * four lists:
 *
 * - ring_sleepers: it wants the ring filled, and one entry is enough. It has seen all
 *   entries when it joins, or it would not sleep. So the list is in the order of positions
 *   too, and if the oldest has nothing new, none has.
 * - many_sleepers: it waits for several entries. A tree, by the position that ends the
 *   wait (kevent_consumer.end). many_seen is a second one, by the position it has seen.
 * - buffer_sleepers: it takes events into a buffer, and one is enough.
 * - buffer_several: one is not enough.
 *
 * An entry in the ring is for the head of one of the first two lists, the one with the lower
 * position, see kevent_next_of_ring().
 *
 * An event in the kernel is for any sleeper, but first for one that it is enough for. A consumer
 * that needs more events would move it to the ring, where consumers with a buffer cannot take it.
 * A wake-up takes the waiter off its lists. The waiter may already run, for a timeout or a signal,
 * but it has yet to take ready_lock, and collects then. So a wake-up never finds the same sleeper
 * twice, and never passes over one.
 *
 * 32 consumers at most are woken under one hold of the lock. A task that wakes more for
 * entries releases it in between. WAKEUP_ALL may come from an interrupt, so those that it wakes
 * wake the rest: kevent_wake_rest(). If all of the first 32 are throttled by cpu.max, the others
 * wait for one of them to run.
 *
 * A consumer that leaves with something on the ready list wakes the next (kevent_leave()).
 * A consumer that finds the ring full wakes one that has a buffer. So does one that finds the
 * memory of the ring away. If none with a buffer sleeps, that wakes any that one event is enough
 * for: another process has the ring elsewhere, and may write there. If it cannot, it fails too,
 * and wakes the next. A consumer that needs more events is not woken: it would take this one and
 * sleep on. An event that repeats an unread entry would be dropped if it was moved to the ring,
 * so it waits for a buffer. kevent_commit() fills the ring for others, and wakes those whose
 * entries are there. A consumer that waits for several entries stores the events that come and
 * sleeps again. kevent_wake_others() then wakes those that the entries are enough for.
 *
 * A woken consumer may go without its event. It calls kevent_pass_on() before it is frozen, when
 * it parks, and when it is killed: in __kevent_collect(), or by kevent_wake_left() in
 * kevent_wait_end(). One that a signal interrupts, or stops, calls kevent_pass_unread() there. One
 * whose time is over collects, or wakes another in kevent_join().
 *
 * A wake request is kept in the waiter that it was made for, and ends its wait even if there are
 * events: kevent_join() wakes another for these. A waiter that is killed leaves the request to
 * another one. Consumers that WAKEUP_ALL wakes poll level watches, too, since the first of them has
 * moved the watch to their list. So does one that kevent_pass_on() wakes.
 *
 * A request for all works as if the time of each wait was over.
 */

#include <linux/minmax.h>
#include <linux/sched.h>

#include "../host.h"
#include "max_running.h"
#include "queue.h"
#include "queue_ring.h"
#include "wake.h"

/* Consumers that are woken under one hold of the lock, with interrupts off */
#define KEVENT_WAKE_AT_ONCE	32U

/* Consumers that sleep */

static bool kevent_ends_before(struct rb_node *node,
			       const struct rb_node *other)
{
	return rb_entry(node, struct kevent_consumer, node)->end <
	       rb_entry(other, struct kevent_consumer, node)->end;
}

/* The newest position that one of many_sleepers has seen */
static u64 kevent_consumer_seen(const struct kevent_consumer *c)
{
	return c->end - c->min_nr;
}

static bool kevent_has_seen_less(struct rb_node *node, const struct rb_node *other)
{
	return kevent_consumer_seen(rb_entry(node, struct kevent_consumer, seen_node)) <
	       kevent_consumer_seen(rb_entry(other, struct kevent_consumer, seen_node));
}

/* A consumer is about to sleep, and has found nothing under this hold of the lock. */
void kevent_sleepers_add(struct kevent_queue *q, struct kevent_consumer *c)
{
	lockdep_assert_held(&q->ready_lock);

	list_add_tail(&c->link, &q->sleepers);
	q->nr_asleep++;
	c->asks = q->nr_taken;
	c->since = q->nr_slept++;
	c->several = (kevent_wants_ring(c) ? 0 : (u32)c->to->kidx) + 1 < c->min_nr;
	q->nr_several += c->several;
	if (!kevent_wants_ring(c)) {
		list_add_tail(&c->peers, c->several ? &q->buffer_several :
						      &q->buffer_sleepers);
		return;
	}
	c->end = q->ring.kidx + c->min_nr - ((u32)q->ring.kidx - c->old_kidx);
	if (!c->several) {
		list_add_tail(&c->peers, &q->ring_sleepers);
	} else {
		rb_add_cached(&c->node, &q->many_sleepers, kevent_ends_before);
		rb_add_cached(&c->seen_node, &q->many_seen, kevent_has_seen_less);
	}
	if (unlikely(c->member))
		q->nr_members++;
}

/* A consumer that sleeps is awake, or on its way. */
void kevent_sleepers_del(struct kevent_queue *q, struct kevent_consumer *c)
{
	lockdep_assert_held(&q->ready_lock);

	__list_del_entry(&c->link);
	q->nr_several -= c->several;
	if (c->several && kevent_wants_ring(c)) {
		rb_erase_cached(&c->node, &q->many_sleepers);
		rb_erase_cached(&c->seen_node, &q->many_seen);
	} else {
		__list_del_entry(&c->peers);
	}
	if (unlikely(c->member))
		q->nr_members--;
}

/* Are the entries in the ring that a consumer of the ring waits for? */
static bool kevent_has_entries(const struct kevent_queue *q,
			       const struct kevent_consumer *c)
{
	return c->end <= q->ring.kidx;
}

/* Of those that wait for several entries, the one whose wait ends at the lowest position */
static struct kevent_consumer *kevent_first_of_many(const struct kevent_queue *q)
{
	struct rb_node *node = rb_first_cached(&q->many_sleepers);

	return rb_entry_safe(node, struct kevent_consumer, node);
}

/* One that waits for one more entry. An event makes that, unless it repeats an unread one. */
static struct kevent_consumer *kevent_first_with_one_more(const struct kevent_queue *q)
{
	struct kevent_consumer *c = kevent_first_of_many(q);

	return c && c->end == q->ring.kidx + 1 ? c : NULL;
}

/*
 * The next consumer to wake for entries in the ring, of those whose entries are there. Checks
 * the last and the oldest of ring_sleepers: if neither has its entry, no other of that list has.
 * A consumer that waits for several comes before them if its position is lower. When the ring is
 * full any new entry is enough. A consumer that has seen all of a full ring waits for room, and
 * nobody wakes it in vain.
 */
static struct kevent_consumer *kevent_next_of_ring(struct kevent_queue *q,
						   bool oldest)
{
	struct kevent_consumer *c, *many = kevent_first_of_many(q);

	c = kevent_pick(&q->ring_sleepers, peers, oldest);
	if (c && !kevent_has_entries(q, c))
		c = kevent_pick(&q->ring_sleepers, peers, true);
	if (!c || (many && many->end < c->end))
		c = many;
	if (!c || kevent_has_entries(q, c))
		return c;
	if (kring_free_slots(&q->ring))
		return NULL;
	c = rb_entry_safe(rb_first_cached(&q->many_seen), struct kevent_consumer, seen_node);
	return c && kevent_consumer_seen(c) < q->ring.kidx ? c : NULL;
}

/* The one of two, each of which may be NULL, that has slept longer, or shorter if not @oldest */
static struct kevent_consumer *kevent_either(struct kevent_consumer *a,
					     struct kevent_consumer *b, bool oldest)
{
	if (!a || !b)
		return a ?: b;
	return (a->since < b->since) == oldest ? a : b;
}

/*
 * kevent_next_content() if some consumers need more than one event. An event that repeats an
 * unread entry makes no new entry. A consumer of the ring that has seen the unread one would get
 * nothing, so a consumer with a buffer comes first.
 */
struct kevent_consumer *kevent_next_of_kinds(struct kevent_queue *q, bool oldest)
{
	struct kevent_consumer *buffer = kevent_pick(&q->buffer_sleepers, peers, oldest);
	struct kevent_consumer *c, *many = kevent_first_of_many(q);

	/* One that has its entries is first, as with an entry. */
	if (many && kevent_has_entries(q, many))
		return many;
	c = kevent_pick(&q->ring_sleepers, peers, oldest);
	if (kevent_unread(q))
		return buffer ?: c;
	c = kevent_either(c, buffer, oldest);
	return kevent_either(c, kevent_first_with_one_more(q), oldest);
}

/* Whom to wake next. Takes a few instructions, however many sleep. */
static struct kevent_consumer *kevent_next_sleeper(struct kevent_queue *q,
						   enum kevent_consumers whom, bool oldest)
{
	struct kevent_consumer *c = kevent_pick(&q->buffer_sleepers, peers, oldest);

	switch (whom) {
	case KEVENT_CONTENT:
		return kevent_next_content(q, oldest);
	case KEVENT_OF_RING:
		return kevent_next_of_ring(q, oldest);
	case KEVENT_OF_BUFFER:
		return c ?: kevent_pick(&q->buffer_several, peers, oldest);
	case KEVENT_OF_BUFFER_ONE:
		return c;
	case KEVENT_ELSEWHERE:
		return c ?: kevent_next_content(q, oldest) ?: kevent_first_with_one_more(q);
	default:
		return kevent_next_of_any(q, oldest);
	}
}

/* The choice of the one to wake */

/*
 * Wake a waiter. It may already run, woken by something else, and has yet to take the lock. It
 * checks the queue then, so it serves as well as any other. A waiter whose entries are there needs
 * nothing more of the queue, and returns without the lock. But with @recheck it may be one of many,
 * and must take the lock for kevent_wake_rest().
 */
static void kevent_wake_consumer(struct kevent_queue *q, struct kevent_consumer *c,
				 enum kevent_consumers whom, bool recheck)
{
	if (c->measured)
		q->coalesce.woken_at = ktime_get();
	if (host_handoff_wanted())
		host_wake_here(c->task);
	else
		wake_up_process(c->task);
	kevent_sleepers_del(q, c);
	if (whom == KEVENT_OF_RING && !recheck && kevent_has_entries(q, c)) {
		q->nr_asleep--;
		/* Pairs with kevent_sleep(): it may return now. */
		smp_store_release(&c->done, true);
		return;
	}
	c->woken = true;
	c->recheck = recheck;
	q->nr_woken++;
}

/*
 * Would each consumer that sleeps park if it was woken? Then none needs to be woken for an event.
 * A member is parked. It is let go, and collects, when a member that runs comes back, blocks or
 * leaves.
 */
static bool kevent_is_kept(struct kevent_queue *q)
{
	return unlikely(q->nr_members) &&
	       q->nr_members == q->nr_asleep - q->nr_woken &&
	       kevent_limit_is_kept(q->limit);
}

/*
 * Wake one consumer: the one that slept last, or longest, see kevent_wakes_oldest(), or the one
 * whose entries came first. @recheck: it looks at level watches again. Wakes nobody while a limit
 * would have each of them park. Returns whether one was woken.
 */
bool kevent_wake_one(struct kevent_queue *q, enum kevent_consumers whom, bool recheck)
{
	bool oldest = kevent_wakes_oldest(q);
	struct kevent_consumer *c;

	lockdep_assert_held(&q->ready_lock);

	if (kevent_is_kept(q))
		return false;
	c = kevent_next_sleeper(q, whom, oldest);
	if (!c)
		return false;
	/* The oldest of all may be one that the event is not enough for. */
	if (list_is_first(&c->link, &q->sleepers) || (oldest && whom == KEVENT_ANY))
		q->warm = 0;
	else
		q->warm++;
	kevent_wake_consumer(q, c, whom, recheck);
	return true;
}

/* Wake up to @nr consumers, whatever a limit says. Returns whether all were. */
static bool kevent_wake_some(struct kevent_queue *q, enum kevent_consumers whom,
			     bool recheck, u32 nr)
{
	struct kevent_consumer *c;

	while (nr--) {
		c = kevent_next_sleeper(q, whom, true);
		if (!c)
			return false;
		kevent_wake_consumer(q, c, whom, recheck);
	}
	return true;
}

/*
 * Wake all consumers: the first KEVENT_WAKE_AT_ONCE, each of which wakes more, see
 * kevent_wake_rest(). Returns whether so many were woken.
 */
bool kevent_wake_all(struct kevent_queue *q, enum kevent_consumers whom, bool recheck)
{
	bool more;

	lockdep_assert_held(&q->ready_lock);

	/* Somebody is on the way who wakes the rest: those who have come since, too. */
	more = q->wake_rest ||
	       kevent_wake_some(q, whom, recheck, KEVENT_WAKE_AT_ONCE);
	if (more)
		q->wake_rest = q->nr_asleep - q->nr_woken;
	return more;
}

/*
 * A consumer is awake, and more of those that slept are to be woken. Wakes up to 32 of the oldest,
 * so that nobody holds the lock for all of them. Each woken consumer calls this first, even if it
 * is killed or frozen. It takes them in the order in which they came to sleep: one that was woken
 * may sleep again before the last is woken, and comes after all that are counted. If a sleeper was
 * woken by something else, a consumer that came to sleep later may be woken in its place.
 */
void kevent_wake_rest(struct kevent_queue *q)
{
	u32 left = KEVENT_WAKE_AT_ONCE;
	struct kevent_consumer *c;

	lockdep_assert_held(&q->ready_lock);

	for (; q->wake_rest && left; q->wake_rest--, left--) {
		c = kevent_pick(&q->sleepers, link, true);
		if (!c) {
			q->wake_rest = 0;
			return;
		}
		kevent_wake_consumer(q, c, KEVENT_ANY, true);
	}
}

/*
 * @nr entries are in the ring that the current thread does not wait for. They may be enough
 * for others. Process context, no locks held.
 */
void kevent_wake_others(struct kevent_queue *q, u64 nr)
{
	bool more;
	u32 now;

	do {
		now = min_t(u64, nr, KEVENT_WAKE_AT_ONCE);
		scoped_guard(kevent_queue, q)
			more = !kevent_is_kept(q) &&
			       kevent_wake_some(q, KEVENT_OF_RING, false, now);
		nr -= now;
		cond_resched();
	} while (more && nr);
}

/*
 * A consumer has polled files without the lock. Wakes consumers that came to sleep meanwhile: they
 * have asks set. They are the last of the sleepers, because this is called under the hold of the
 * lock in which nr_taken becomes 0, and wakes all of them. If they are too many for one hold, all
 * sleepers are woken.
 */
void kevent_wake_askers(struct kevent_queue *q)
{
	u32 left = KEVENT_WAKE_AT_ONCE;
	struct kevent_consumer *c;

	lockdep_assert_held(&q->ready_lock);

	while ((c = kevent_pick(&q->sleepers, link, false)) && c->asks) {
		if (!left--) {
			q->wake_rest = q->nr_asleep - q->nr_woken;
			return;
		}
		kevent_wake_consumer(q, c, KEVENT_ANY, false);
	}
}

/*
 * Have each consumer call kevent_ask(), which finds signals that only its own process can take.
 * No list has them. Wakes consumers that sleep, and callers of poll(). A consumer or caller that
 * comes later calls kevent_ask() by itself.
 */
void kevent_ask_all(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	kevent_wake_all(q, KEVENT_ANY, false);
	/* As for kevent_wake_pollers() */
	if (waitqueue_active(&q->poll_wait))
		irq_work_queue(&q->poll_work);
}

/*
 * Have one consumer return although nothing is ready: the one that sleeps longest, else the
 * one that a limit keeps parked longest, else the next one that finds nothing.
 */
void kevent_request_one(struct kevent_queue *q)
{
	struct kevent_consumer *c;

	guard(kevent_queue)(q);
	c = list_first_entry_or_null(&q->sleepers, struct kevent_consumer, link);
	if (c) {
		c->requested = true;
		kevent_wake_consumer(q, c, KEVENT_ANY, false);
	} else if (!q->wake_request &&
		   !kevent_limit_request(kevent_limit_peek(&q->limit))) {
		WRITE_ONCE(q->wake_request, KEVENT_REQUEST_NEXT);
	}
}

/*
 * From now on a consumer that finds no event returns where it would sleep or park. Consumers that
 * sleep or are parked are woken, and check the queue once more, as new calls do. None is missed:
 * a consumer sleeps or parks only if it has found the request unset under the same hold of
 * ready_lock.
 */
void kevent_request_all(struct kevent_queue *q)
{
	scoped_guard(kevent_queue, q) {
		WRITE_ONCE(q->wake_request, KEVENT_REQUEST_ALL);
		kevent_wake_all(q, KEVENT_ANY, true);
	}
	kevent_limit_look(kevent_limit_peek(&q->limit));
}

/* A consumer goes without what it may have been woken for */

/*
 * A consumer, perhaps one that is being killed, does not take the event that it may have been
 * woken for. Wakes one for a queued watch, and one for an unread entry. Only consumers that have
 * not seen that entry can take it.
 */
void kevent_pass_on(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (q->nr_queued)
		kevent_wake_one(q, KEVENT_ANY, true);
	if (kevent_unread(q))
		kevent_wake_one(q, KEVENT_OF_RING, false);
	kevent_more(q);
}

/*
 * A consumer of the ring may be stopped or frozen before it takes the entry that it was woken
 * for. Another one takes it. Process context, no locks held.
 */
void kevent_pass_unread(struct kevent_queue *q)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	kevent_ring_sync(q);
	if (kevent_unread(q))
		kevent_wake_one(q, KEVENT_OF_RING, false);
}

/*
 * A process has closed its descriptor, maybe by being killed. Several of its threads may
 * have been woken for events that they did not take. One consumer is woken for queued events, and
 * wakes another for the rest. For unread entries as many are woken as there are entries, of those
 * that sleep and have not seen them. Process context, no locks held.
 */
void kevent_wake_left(struct kevent_queue *q)
{
	unsigned long flags;
	u64 unread;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_ring_sync(q);
	kevent_pass_on(q);
	unread = kevent_unread(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (unread > 1)
		kevent_wake_others(q, unread - 1);
}
