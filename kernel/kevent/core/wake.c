// SPDX-License-Identifier: GPL-2.0
/*
 * Who sleeps, and who is woken
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
 * An entry in the ring is for that one of the first two whose position is lower. If it has
 * not been reached, no other's has, and nobody is woken. A full ring gets no more entries, so
 * any that it has not seen is enough for one that waits for several: many_seen finds it. An
 * event in the kernel is for any sleeper, first for one that it is enough for: one that needs
 * more would move it to the ring, where those with a buffer cannot take it. A woken waiter
 * leaves its lists, even if it runs already, for a timeout or a signal: it has yet to come for
 * ready_lock, and collects then. So a wake-up never meets the same sleeper twice, nor passes
 * over one.
 *
 * 32 consumers at most are woken under one hold of the lock. A task that wakes more for
 * entries releases it in between: kevent_wake_others(). WAKEUP_ALL may come from an
 * interrupt, so it wakes 32, and kevent_queue.wake_rest says how many were asleep besides.
 * kevent_wake_askers() does likewise. Each thread that was woken wakes up to 32 of these as
 * the first thing it does with the lock (kevent_wake_rest()), also if it is killed, or
 * leaves for the freezer. If all of the first 32 are throttled by cpu.max, the others wait
 * for one of them to run.
 *
 * A consumer that leaves with something on the ready list wakes the next (kevent_leave()).
 * A consumer that finds the ring full wakes one that has a buffer. If its memory is away,
 * one that has a buffer comes first; if none sleeps, it is any that one event is enough for:
 * another process has the ring elsewhere, and may write there. One that has no better memory
 * fails too, and wakes the next. One that needs more events would take this one, and sleep
 * on; the next event is for it anyway. An event that an unread entry says already would be
 * gone if it was moved to the ring: that waits for a buffer. kevent_commit(), which fills
 * the ring for others, wakes those whose entries are there. A consumer that waits for
 * several entries stores the events that come and sleeps again; kevent_wake_others() then
 * wakes those it is enough for.
 *
 * A consumer that goes without the event it may have been woken for calls
 * kevent_pass_on(). An entry in the ring is no use to one with a buffer, nor to one that
 * had seen it when it went to sleep. So that wakes one for the events that are queued, and
 * one whose entries are there for the unread ones. When a process closes its descriptor
 * several of its threads may have been woken, for entries that nobody will take:
 * kevent_wake_left() wakes as many as entries are unread. A consumer that takes queued
 * events wakes the next one itself.
 *
 * A wake request is kept in the waiter it was made of, and ends its wait even if there are
 * events: kevent_join() wakes another for these. Those that WAKEUP_ALL wakes
 * collect level watches, too, as the first one has moved the watch there; and so does one that
 * kevent_pass_on() wakes.
 *
 * A request for all stays in the queue, see kevent_request_all(), and hides no event: it is as
 * if the time of each wait was over.
 */

#include <linux/minmax.h>
#include <linux/sched.h>

#include "../host.h"
#include "max_running.h"
#include "queue.h"
#include "ring_mapping.h"
#include "wake.h"

/* Consumers that are woken under one hold of the lock, with interrupts off */
#define KEVENT_WAKE_AT_ONCE	32U

/* Who sleeps */

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

/* Is one more event not enough? */
static bool kevent_needs_several(const struct kevent_queue *q,
				 const struct kevent_consumer *c)
{
	return (kevent_wants_ring(q, c) ? 0 : (u32)c->to->kidx) + 1 < c->min_nr;
}

/* A consumer is about to sleep. What it waits for has not come, under this hold of the lock. */
void kevent_sleepers_add(struct kevent_queue *q, struct kevent_consumer *c)
{
	lockdep_assert_held(&q->ready_lock);

	list_add_tail(&c->link, &q->sleepers);
	q->nr_asleep++;
	c->asks = q->nr_taken;
	c->since = q->nr_slept++;
	c->several = kevent_needs_several(q, c);
	q->nr_several += c->several;
	if (!kevent_wants_ring(q, c)) {
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
	if (c->several && kevent_wants_ring(q, c)) {
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

/* The one that has what it waits for first, of those that wait for several entries */
static struct kevent_consumer *kevent_first_of_many(const struct kevent_queue *q)
{
	struct rb_node *node = rb_first_cached(&q->many_sleepers);

	return rb_entry_safe(node, struct kevent_consumer, node);
}

/* One that waits for one more entry, which an event makes if no unread one says the same */
static struct kevent_consumer *kevent_first_with_one_more(const struct kevent_queue *q)
{
	struct kevent_consumer *c = kevent_first_of_many(q);

	return c && c->end == q->ring.kidx + 1 ? c : NULL;
}

/* One that waits for several entries, and has not seen the newest one; or NULL */
static struct kevent_consumer *kevent_first_with_some(const struct kevent_queue *q)
{
	struct rb_node *node = rb_first_cached(&q->many_seen);
	struct kevent_consumer *c = rb_entry_safe(node, struct kevent_consumer, seen_node);

	return c && kevent_consumer_seen(c) < q->ring.kidx ? c : NULL;
}

/*
 * Who is next for entries in the ring, of those whose entries are there. If neither the one
 * that slept last has its entry nor the one that sleeps longest, then nobody has; one that
 * waits for several has it before. When the ring is full any new entry is enough. Who has seen
 * all of a full ring waits for room, and is woken for nothing by anybody.
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
	return kring_free_slots(&q->ring) ? NULL : kevent_first_with_some(q);
}

/* That one of two, each of which may be NULL, who has slept for longer, or is the last */
static struct kevent_consumer *kevent_either(struct kevent_consumer *a,
					     struct kevent_consumer *b, bool oldest)
{
	if (!a || !b)
		return a ?: b;
	return (a->since < b->since) == oldest ? a : b;
}

/*
 * kevent_next_content() if there are some for whom one event is not enough. An event that an
 * unread entry says already makes no further one: it does those no good who have seen that
 * entry, so one with a buffer comes first.
 */
struct kevent_consumer *kevent_next_of_kinds(struct kevent_queue *q, bool oldest)
{
	struct kevent_consumer *buffer = kevent_pick(&q->buffer_sleepers, peers, oldest);
	struct kevent_consumer *c, *many = kevent_first_of_many(q);

	lockdep_assert_held(&q->ready_lock);

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

	lockdep_assert_held(&q->ready_lock);

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

/* Who is woken */

/*
 * A waiter that runs was woken by something else, and has yet to come for the lock. It
 * looks then, whatever woke it, so it is as good as any other. One that has its entries needs
 * nothing more of the queue, so it does not come for the lock, unless it is to @recheck: it may be
 * one of many, which kevent_wake_rest() counts on.
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
 * Would each consumer that sleeps park if it was woken? It need not be woken for an event
 * as long as somebody looks for it: one is parked, and will be let go when a member that
 * runs comes back, blocks or leaves.
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
 * A consumer is awake, and maybe all that slept are to be. Wakes the oldest ones, first those
 * that one event is enough for, so that nobody holds the lock for all of them. Each that was
 * woken comes here before it does anything else, also one that is killed or frozen. One that
 * has come to sleep since may be woken in the place of another that is awake by itself.
 */
void kevent_wake_rest(struct kevent_queue *q)
{
	u32 left = KEVENT_WAKE_AT_ONCE;
	struct kevent_consumer *c;

	lockdep_assert_held(&q->ready_lock);

	for (; q->wake_rest && left; q->wake_rest--, left--) {
		c = kevent_next_of_any(q, true);
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
 * Files were looked at, of which nobody knew whether they are ready. Wakes those who came to
 * sleep before that was known. They are the last of the sleepers: nr_taken becomes 0 under
 * a hold of the lock that ends with this, so nobody who asks is left when one comes who does
 * not. If too many ask for one hold, all that sleep are woken.
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
 * Have each consumer find out what only it can take, see kevent_ask(): those that sleep, and
 * those in poll(), for whom there is nothing on a list. Who joins either later asks by itself.
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
 * From now on a consumer returns where it would sleep or park, for want of events. Those that
 * do so already are woken, and look once more, as new calls do. Nobody is missed: a consumer
 * joins the sleepers or those that are parked under ready_lock, and has found the request
 * unset under the same hold.
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
 * A consumer does not take what it may have been woken for: a watch that is queued, or an
 * entry in the ring, which only those can take whose entries are there.
 */
void kevent_pass_on(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (q->nr_queued)
		kevent_wake_one(q, KEVENT_ANY, true);
	if (kevent_unread(q))
		kevent_wake_one(q, KEVENT_OF_RING, false);
	kevent_more_left(q);
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
 * have been woken for events that they did not take. Who takes one that is queued wakes
 * another consumer for the rest. Each entry in the ring has a consumer, as far as some
 * sleep whose entries are there. Process context, no locks held.
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
