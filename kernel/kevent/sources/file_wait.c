// SPDX-License-Identifier: GPL-2.0
/*
 * The wait queues of watched files: callbacks, and the choice among several queues
 *
 * If several queues watch a file, new data must wake one consumer, not all. An exclusive
 * wait-queue entry would be simpler, but a thread that sleeps in read() or accept() would
 * lose its wake-up to a watch that nobody may collect for long. So the entries are
 * ordinary ones, all of them are called with the lock of the head held, and one queue is
 * notified, round-robin.
 *
 * A wake-up calls all entries of a wait queue. The watches of one file are next to each other
 * there and make a run. A watch that joins finds another one on the list of its file, under
 * RCU, and takes the place in front of it. Nobody else puts anything into the middle of a wait
 * queue. The first entry of the run decides (wake_run()); each other one sees its neighbour in
 * front, and is done. So the time of a wake-up is linear in the entries that it calls, and a
 * watch that is alone costs two reads of its neighbours.
 *
 * round_robin() asks queues by their rank. Two flags say which watch was last notified of data
 * and which of room; the next choice starts behind it. A watch that goes passes these flags to
 * its neighbour in front. A wake-up may say several things at once. Each goes to a queue that
 * asked for it, until nothing is left.
 *
 * When one watch was notified in place of others, its notification is pending:
 * EV_POLL_PENDING in the flags of its entry has the conditions. If the watch leaves the wait
 * queue, or loses interest, before its consumer acted, the notification is passed on to
 * the next queue. A one-shot watch that was delivered passes nothing on that it asked for.
 * MODIFY passes on after ready_lock is released, since the lock of the head comes first in the
 * order. file_wait_hand_on() reads the flags without a lock, and takes the lock of the head if
 * there is something to pass on. Delivery does not clear them: the consumer may be about to do
 * nothing, and the queue that gets the notification polls the file.
 *
 * The watch that is chosen may be modified before it is notified. So the flags are written
 * first. Then kevent_offer() checks under ready_lock whether the watch still wants all it
 * was chosen for. If it does not, the flags are taken back and the next watch is asked. If
 * it does, a MODIFY that comes later sees the flags. A watch that is claimed is delivered
 * with the conditions that were polled before. If it is ONESHOT or DISPATCH, that delivery
 * would take along a notification that comes meanwhile, so others are notified, too.
 */

#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/rcupdate.h>

#include "../core/lookup.h"
#include "../core/queue.h"
#include "../core/report.h"
#include "../core/state.h"
#include "../core/testpoint.h"
#include "../core/wake.h"
#include "../host.h"
#include "file_report.h"
#include "file_wait.h"

/*
 * Watches in one wait queue, of a user, and of all users but root, as %KEVENT_MAX_OF_USERS. They
 * bound what one wake-up does for them with interrupts off. To count them, ADD looks at so many
 * entries at most on each side of the new watch. If there are more, most of what a wake-up takes
 * is not due to watches.
 */
#define KEVENT_MAX_PER_WAIT_QUEUE	192
#define KEVENT_MAX_OF_WAIT_QUEUE	(4 * KEVENT_MAX_PER_WAIT_QUEUE)
#define KEVENT_WAIT_QUEUE_LOOKS		2048

/* Joining */

static void set_flags(struct kevent_poll *kp, u32 flags)
{
	/* file_wait_hand_on() looks without the lock. */
	WRITE_ONCE(kp->wait.flags, flags);
}

static const struct kevent_queue *entry_queue(wait_queue_entry_t *wait)
{
	const struct kevent_poll *kp;

	if (wait->func == ev_poll_wake)
		kp = container_of(wait, struct kevent_poll, wait);
	else if (wait->func == ev_poll_wake_more)
		kp = container_of(wait, struct kevent_poll_more, wait)->kp;
	else
		return NULL;
	return kp->kf.ke.queue;
}

/*
 * Has the owner reached the limit of watches around @place, or have all users but root? Security
 * modules are asked for capabilities under spinlocks, as by ptrace_may_access().
 */
static bool is_full(struct wait_queue_head *head, struct list_head *place,
		    const struct kevent_owner *owner)
{
	unsigned int nr = 0, users = 0, left, side;
	bool root = host_owner_is_root(owner);
	const struct kevent_queue *q;
	struct list_head *at;

	for (side = 0; side < 2; side++) {
		at = side ? place->prev : place;
		for (left = KEVENT_WAIT_QUEUE_LOOKS; left && at != &head->head; left--) {
			q = entry_queue(list_entry(at, wait_queue_entry_t, entry));
			at = side ? at->prev : at->next;
			if (!q)
				continue;
			nr += q->owner == owner;
			users += !host_owner_is_root(q->owner);
			if (nr >= KEVENT_MAX_PER_WAIT_QUEUE ||
			    (!root && users >= KEVENT_MAX_OF_WAIT_QUEUE))
				return !ns_capable_noaudit(&init_user_ns,
							   CAP_SYS_RESOURCE);
		}
	}
	return false;
}

/* NULL when there is none, or none any more */
static struct wait_queue_head *head_of(const struct kevent_poll *kp)
{
	/* Pairs with ev_poll_tag() and ev_poll_orphan(). */
	void *private = smp_load_acquire(&kp->wait.private);
	struct kevent_poll_more *more = ev_poll_untag(private);

	/* Pairs with ev_poll_orphan(). */
	return more ? smp_load_acquire(&more->head) : private;
}

/*
 * A watch of the same file in the same wait queue. A watch is on the list of the file all the
 * time that it is in the wait queue, until its removal begins. The list has at most
 * KEVENT_MAX_OF_USERS watches, and KEVENT_MAX_PER_FILE of root, and its newest one is behind the
 * first.
 */
static struct kevent_poll *find_peer(struct kevent_poll *kp,
				     struct wait_queue_head *head)
{
	struct kevent_poll *peer;
	struct kevent_file *kf;

	/* Pairs with kevent_file_link(). */
	kf = host_watches(kp->kf.file);
	for (; kf; kf = READ_ONCE(kf->next)) {
		peer = container_of(kf, struct kevent_poll, kf);
		if (peer != kp && kevent_is_poll(&kf->ke) &&
		    head_of(peer) == head)
			return peer;
	}
	return NULL;
}

#ifdef CONFIG_KEVENT_SOCK_DIRECT
/*
 * The newest watch in the wait queue of a socket can be called without it. It has just
 * joined, and has no flags yet.
 */
static void set_direct(struct kevent_poll *kp, struct socket *sock)
{
	set_flags(kp, EV_POLL_SOCK);
	rcu_assign_pointer(sock->wq.kevent, &kp->wait);
}

static void clear_direct(struct kevent_poll *kp, struct wait_queue_head *head)
{
	struct socket_wq *wq = container_of(head, struct socket_wq, wait);

	if (kp->wait.flags & EV_POLL_SOCK &&
	    rcu_access_pointer(wq->kevent) == &kp->wait)
		RCU_INIT_POINTER(wq->kevent, NULL);
}
#else
static void set_direct(struct kevent_poll *kp, struct socket *sock) {}
static void clear_direct(struct kevent_poll *kp, struct wait_queue_head *head)
{
}
#endif

/*
 * Join the first wait queue of a file, next to watches of the same file. The watch is
 * linked to it. Returns 0, or -ENOSPC when the user has too many watches there.
 */
int file_wait_join(struct kevent_poll *kp, struct wait_queue_head *head,
		   struct socket *sock)
{
	struct kevent_poll *peer;

	guard(rcu)();
	guard(spinlock_irq)(&head->lock);
	/* The list of the file need not be read for one that is alone. */
	peer = list_empty(&head->head) ? NULL : find_peer(kp, head);
	if (is_full(head, peer ? &peer->wait.entry : head->head.next, kp->kf.ke.queue->owner))
		return -ENOSPC;
	if (peer)
		list_add_tail(&kp->wait.entry, &peer->wait.entry);
	else
		__add_wait_queue(head, &kp->wait);
	/* Pairs with head_of(). */
	smp_store_release(&kp->wait.private, head);
	if (sock && head == &sock->wq.wait)
		set_direct(kp, sock);
	return 0;
}

/* Join a further wait queue, which has no turns. Returns as file_wait_join(). */
int file_wait_join_more(struct kevent_poll_more *more,
			struct wait_queue_head *head)
{
	guard(spinlock_irqsave)(&head->lock);
	if (is_full(head, head->head.next, more->kp->kf.ke.queue->owner))
		return -ENOSPC;
	more->wait.private = head;
	__add_wait_queue(head, &more->wait);
	return 0;
}

/* Runs */

/* The watch at a place of a wait queue, if it is one of @file */
static struct kevent_poll *watch_at(struct list_head *at,
				    const struct wait_queue_head *head,
				    const struct file *file)
{
	wait_queue_entry_t *wait = list_entry(at, wait_queue_entry_t, entry);
	struct kevent_poll *kp = container_of(wait, struct kevent_poll, wait);

	if (at == &head->head || wait->func != ev_poll_wake ||
	    kp->kf.file != file)
		return NULL;
	return kp;
}

static struct kevent_poll *neighbour_before(struct kevent_poll *kp,
					    const struct wait_queue_head *head)
{
	return watch_at(kp->wait.entry.prev, head, kp->kf.file);
}

static struct kevent_poll *neighbour_behind(struct kevent_poll *kp,
					    const struct wait_queue_head *head)
{
	return watch_at(kp->wait.entry.next, head, kp->kf.file);
}

/* Turns */

/**
 * struct kevent_round - something that one queue is to report
 * @head:	of the wait queue; its lock is held
 * @first:	first of the run
 * @left:	conditions that no watch has taken yet
 * @key:	of the wake-up; 0: what holds now has to be looked up
 */
struct kevent_round {
	struct wait_queue_head	*head;
	struct kevent_poll	*first;
	__poll_t		left;
	__poll_t		key;
};

static struct kevent_poll *next_in_round(const struct kevent_round *round,
					 struct kevent_poll *kp)
{
	return neighbour_behind(kp, round->head) ?: round->first;
}

/* Data and room have two names each. */
static __poll_t both_names(__poll_t mask)
{
	if (mask & (EPOLLIN | EPOLLRDNORM))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (mask & (EPOLLOUT | EPOLLWRNORM))
		mask |= EPOLLOUT | EPOLLWRNORM;
	return mask;
}

static __poll_t interest(const struct kevent_poll *kp)
{
	return (__force __poll_t)READ_ONCE(kp->kf.ke.keys) & EV_POLL_EVENTS;
}

static __poll_t pending(const struct kevent_poll *kp)
{
	return (__force __poll_t)((kp->wait.flags & EV_POLL_PENDING) >>
				  EV_POLL_PENDING_SHIFT);
}

static u32 pending_flags(__poll_t mask)
{
	return (__force u32)mask << EV_POLL_PENDING_SHIFT;
}

/**
 * enum kevent_rank - which queues come first
 * @AWAITED:	a consumer sleeps, or spins, and takes what comes
 * @IDLE:	all that came was taken: a consumer may call soon
 * @BEHIND:	has more to do than consumers
 * @NR_RANKS:	how many there are
 */
enum kevent_rank {
	AWAITED,
	IDLE,
	BEHIND,
	NR_RANKS,
};

/* Looks without the lock of the queue: a wrong answer costs a round. */
static enum kevent_rank rank_of(struct kevent_queue *q)
{
	if (kevent_sleeps(q) || atomic_read(&q->busy.spinning))
		return AWAITED;
	return READ_ONCE(q->nr_queued) || kevent_unread(q) ? BEHIND : IDLE;
}

static bool wants(const struct kevent_poll *kp, __poll_t mask)
{
	return mask & interest(kp) &&
	       !(READ_ONCE(kp->kf.ke.req_flags) & KEVENT_REQ_WAKEUP_ALL) &&
	       kevent_is_armed(&kp->kf.ke);
}

/*
 * Offer it to one watch. Returns what the watch takes, so that others need not: it owes
 * that. A watch that was modified since the caller looked may not take it, but looks at
 * the file itself if it is still interested.
 */
static __poll_t offer(const struct kevent_round *round, struct kevent_poll *kp)
{
	__poll_t wanted = round->left & interest(kp);
	__poll_t taken = round->left & both_names(wanted);
	u32 flags = kp->wait.flags;

	kevent_testpoint(kp->kf.ke.queue, KEVENT_TESTPOINT_TURN);
	/* First: a MODIFY that does not see it comes before the offer. */
	set_flags(kp, flags | pending_flags(taken));
	if (wanted && ev_poll_offer(&kp->kf.ke, wanted, round->key))
		return taken;
	set_flags(kp, flags);
	return 0;
}

/* Offer it to @kp and, if that takes it, to all watches of its queue in the run. */
static __poll_t offer_to_queue(const struct kevent_round *round,
			       struct kevent_poll *kp)
{
	struct kevent_queue *q = kp->kf.ke.queue;
	__poll_t taken = offer(round, kp);
	struct kevent_poll *peer;

	if (!taken)
		return 0;
	for (peer = next_in_round(round, kp); peer != kp;
	     peer = next_in_round(round, peer))
		if (peer->kf.ke.queue == q && wants(peer, round->left))
			taken |= offer(round, peer);
	return taken;
}

/*
 * Offer it to those whose turn it is, from the one behind the last one on, until
 * nothing is left, rank by rank. A watch is offered each condition again if its queue has
 * had a better rank, since that may have changed. At most one queue takes each.
 */
static void round_robin(struct kevent_round *round)
{
	u32 mark = round->left & (EPOLLIN | EPOLLRDNORM) ? EV_POLL_LAST_DATA :
							  EV_POLL_LAST_ROOM;
	struct kevent_poll *start, *kp, *taker = NULL, *last = round->first;
	enum kevent_rank rank;
	__poll_t taken;

	while (last && !(last->wait.flags & mark))
		last = neighbour_behind(last, round->head);
	start = last ? next_in_round(round, last) : round->first;
	for (rank = AWAITED; rank < NR_RANKS; rank++) {
		kp = start;
		do {
			if (!wants(kp, round->left) ||
			    rank_of(kp->kf.ke.queue) > rank)
				continue;
			taken = offer_to_queue(round, kp);
			round->left &= ~taken;
			if (taken && !taker)
				taker = kp;
		} while (round->left && (kp = next_in_round(round, kp)) != start);
	}
	if (!taker)
		return;
	if (last)
		set_flags(last, last->wait.flags & ~mark);
	set_flags(taker, taker->wait.flags | mark);
}

/*
 * A wait queue is woken up in which the watch is not alone. @key says what has
 * become true, neither an error nor a hang-up.
 */
static void wake_run(struct kevent_poll *kp, struct wait_queue_head *head,
		     __poll_t key)
{
	struct kevent_round round = {
		.head	= head,
		.first	= kp,
		.left	= key & EV_POLL_EVENTS,
		.key	= key,
	};
	bool first = !neighbour_before(kp, head);
	bool alone = first && !neighbour_behind(kp, head);

	lockdep_assert_held(&head->lock);

	if (alone || READ_ONCE(kp->kf.ke.req_flags) & KEVENT_REQ_WAKEUP_ALL)
		ev_poll_fire(&kp->kf.ke, key);
	if (first && !alone)
		round_robin(&round);
}

/* Callbacks */

/*
 * The owner of a wait queue head that dies before the files it serves says so.
 * Clearing @head must come last: a remover that sees NULL may free the watch.
 */
static void ev_poll_orphan(struct kevent *ke, wait_queue_entry_t *wait,
			   void **head)
{
	kevent_broken(ke);
	list_del_init(&wait->entry);
	/* Pairs with file_wait_leave(). */
	smp_store_release(head, NULL);
}

static int ev_poll_wake_slow(struct kevent_poll *kp, __poll_t key)
{
	struct wait_queue_head *head = *ev_poll_head(kp);

	/*
	 * The change of the file comes before the reads of this watch and of others in
	 * its run. Pairs with kevent_modify_locked().
	 */
	smp_mb();
	if (kevent_awaits_empty(&kp->kf.ke))
		kevent_wake_empty(&kp->kf.ke, kevent_socket(kp->kf.file), key);
	if (unlikely(key & POLLFREE))
		ev_poll_orphan(&kp->kf.ke, &kp->wait, ev_poll_head(kp));
	else if (key == EV_POLL_EMPTY && kp->kf.ke.type == KEVENT_SOCKET)
		return 1;
	else if (!key || key & EV_POLL_ALWAYS ||
		 list_is_singular(&head->head))
		ev_poll_fire(&kp->kf.ke, key);
	else
		wake_run(kp, head, key);
	return 1;
}

/*
 * Callback of the first wait queue of a file. The lock of the wait queue is held,
 * interrupts are off. ev_poll_key_events() of file_report.h reads its key.
 */
int ev_poll_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
		 void *key)
{
	struct kevent_poll *kp = container_of(wait, struct kevent_poll, wait);
	__poll_t keys = (__force __poll_t)READ_ONCE(kp->kf.ke.keys);
	__poll_t mask = key_to_poll(key);

	/* Alone in the wait queue, and all said */
	if (unlikely(wait->entry.next != wait->entry.prev ||
		     mask & (POLLFREE | EPOLL_URING_WAKE) ||
		     keys & EV_POLL_EXTRA || !ev_poll_key_suffices(keys, mask)))
		return ev_poll_wake_slow(kp, mask);
	/* A MODIFY may have stored the interest that is missing: look behind a barrier. */
	if (unlikely(!(mask & keys)))
		return ev_poll_wake_slow(kp, mask);
	return kevent_ready_amount(&kp->kf.ke,
				   ev_poll_key_events(&kp->kf.ke, mask), 0);
}

/* Callback of further wait queues, as ev_poll_wake() */
int ev_poll_wake_more(wait_queue_entry_t *wait, unsigned int mode, int sync,
		      void *key)
{
	struct kevent_poll_more *more =
		container_of(wait, struct kevent_poll_more, wait);
	__poll_t mask = key_to_poll(key);

	/* As in ev_poll_wake_slow(). Pairs with kevent_modify_locked(). */
	smp_mb();
	if (unlikely(mask & POLLFREE))
		ev_poll_orphan(&more->kp->kf.ke, wait, &wait->private);
	else
		ev_poll_fire(&more->kp->kf.ke, mask);
	return 1;
}

/* Handing on */

/* Conditions that other watches of the queue of @kp have taken, too */
static __poll_t pending_of_queue(const struct kevent_round *round,
				 struct kevent_poll *kp)
{
	struct kevent_poll *peer;
	__poll_t mask = 0;

	for (peer = next_in_round(round, kp); peer != kp;
	     peer = next_in_round(round, peer))
		if (peer->kf.ke.queue == kp->kf.ke.queue &&
		    wants(peer, pending(peer)))
			mask |= pending(peer) & both_names(interest(peer));
	return mask;
}

static void hand_on(struct kevent_poll *kp, struct wait_queue_head *head,
		    __poll_t mask)
{
	struct kevent_round round = { .head = head, .first = kp };
	struct kevent_poll *before;

	while ((before = neighbour_before(round.first, head)))
		round.first = before;
	round.left = mask & ~pending_of_queue(&round, kp);
	set_flags(kp, kp->wait.flags & ~pending_flags(mask));
	if (round.left)
		round_robin(&round);
}

/*
 * The watch is dead and about to leave its wait queue. If it was delivered, it hands on what a
 * MODIFY has withdrawn and not handed on yet.
 */
static void cut_ties(struct kevent_poll *kp, struct wait_queue_head *head)
{
	__poll_t mask = pending(kp);
	struct kevent_poll *before;
	u32 last;

	if (kevent_is_spent(&kp->kf.ke))
		mask &= ~both_names(interest(kp));
	if (mask)
		hand_on(kp, head, mask);
	/* The round of that may have given the turn to another one. */
	last = kp->wait.flags & (EV_POLL_LAST_DATA | EV_POLL_LAST_ROOM);
	before = last ? neighbour_before(kp, head) : NULL;
	if (before)
		set_flags(before, before->wait.flags | last);
	clear_direct(kp, head);
}

/*
 * A dead watch leaves a wait queue, whose head is remembered in @slot, see ev_poll_head().
 * Callbacks are over when this returns. After POLLFREE a head is freed with RCU: while
 * @slot is not NULL, and RCU is held since that was seen, the head can be locked.
 */
void file_wait_leave(wait_queue_entry_t *wait, void **slot)
{
	struct wait_queue_head *head;

	guard(rcu)();
	/* Pairs with ev_poll_orphan(). */
	head = smp_load_acquire(slot);
	if (!head)
		return;
	kevent_testpoint(entry_queue(wait), KEVENT_TESTPOINT_LEAVE);
	guard(spinlock_irq)(&head->lock);
	/* POLLFREE may have come first: then there is nothing to leave. */
	if (*slot != head)
		return;
	if (wait->func == ev_poll_wake && wait->flags & EV_POLL_TIES)
		cut_ties(container_of(wait, struct kevent_poll, wait), head);
	list_del_init(&wait->entry);
	WRITE_ONCE(*slot, NULL);
}

/*
 * A watch was modified; under RCU, with its file pinned. Conditions that it took and does
 * not want any more are offered to others, even if the event was delivered: its consumer
 * need not have acted on it.
 */
int file_wait_hand_on(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_poll *kp = to_poll(ke);
	struct wait_queue_head *head;
	__poll_t mask;
	bool armed;

	if (likely(!(READ_ONCE(kp->wait.flags) & EV_POLL_PENDING)))
		return 0;
	head = head_of(kp);
	if (!head)
		return 0;
	guard(spinlock_irqsave)(&head->lock);
	/* First: a watch that dies between the two counts as dead, not as disarmed. */
	armed = kevent_is_armed(ke);
	/* A watch that is dead hands on when it leaves, or has. */
	if (head_of(kp) != head || kevent_is_dead(ke))
		return 0;
	mask = pending(kp);
	if (armed)
		mask &= ~both_names(interest(kp));
	if (mask)
		hand_on(kp, head, mask);
	return 0;
}
