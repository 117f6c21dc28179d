/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue: its members and lists
 *
 * R: ready_lock protects the member. I: constant. types.h explains these and the other letters,
 * and the order of the locks.
 */
#ifndef _KEVENT_QUEUE_H
#define _KEVENT_QUEUE_H

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/ukevent.h>
#include <linux/wait.h>

#include "../host.h"
#include "max_running.h"
#include "nesting.h"
#include "ring.h"
#include "source_ops.h"
#include "types.h"
#include "watch_memory.h"

struct kevent_timers;
struct mm_struct;
struct kevent_owner;
struct wakeup_source;

/*
 * Bytes that mmgrab() keeps of an address space whose process is gone, with the top of its page
 * table
 */
#define KEVENT_MM_BYTES	(sizeof(struct mm_struct) + cpumask_size() + 2 * PAGE_SIZE)

/* For kevent_queue.taker and kevent_crew.table: several */
#define KEVENT_TAKERS		((const void *)ERR_PTR(-EUSERS))

/* For kevent_queue.wake_request: the next consumer that would sleep returns */
#define KEVENT_REQUEST_NEXT	1U
/* Each consumer that would sleep returns. It stays until the queue is gone */
#define KEVENT_REQUEST_ALL	2U

/* For kevent_queue.ring_mm: kernel threads have NULL. */
#define KEVENT_NO_MM		((struct mm_struct *)ERR_PTR(-ENOENT))

/**
 * struct kevent_busy - busy polling, as EPIOCSPARAMS sets it
 * @usecs:	how long, 0: not
 * @id:		of the device queue to poll, 0: none known
 * @budget:	packets at a time, 0: the default
 * @prefer:	leave interrupts of the device off while consumers poll it
 * @spinning:	consumers that look for events, or poll the device, instead of sleeping
 *
 * Read and written without a lock.
 */
struct kevent_busy {
	u32			usecs;
	u32			id;
	u16			budget;
	u8			prefer;
	atomic_t		spinning;
};

/* Until a program sets another limit: how long an event may wait for others */
#define KEVENT_COALESCE_DEFAULT_NS	(HOST_HOLDS ? 1000 * 1000U : 0U)
/* Before a queue first tries to have an event wait: wake-ups in short succession */
#define KEVENT_COALESCE_PATIENCE	8U

/**
 * struct kevent_coalesce - waking a consumer once for several events
 * @max_ns:	how long an event may wait for others, 0: not at all. Read and written
 *		without a lock
 * @left:	the sleeper is woken when so many more events have come, 0: for the next
 * @batch:	how many it is to sleep for
 * @wake_ns:	mean time from a wake-up until the consumer runs
 * @streak:	wake-ups in short succession, while @batch is 1
 * @patience:	how many of these before a batch of two is tried
 * @woken_at:	when the sleeper was woken, 0: that is not measured
 * @awake_at:	when the last one was awake
 * @held:	events that did not wake the sleeper
 *
 * All but @max_ns is protected by ready_lock. See wake_coalesce.c.
 */
struct kevent_coalesce {
	u32			max_ns;
	u32			left;
	u32			batch;
	u32			wake_ns;
	u32			streak;
	u32			patience;
	ktime_t			woken_at;
	ktime_t			awake_at;
	u64			held;
};

/**
 * struct kevent_mapping - where an address space has the ring
 * @list:	R: on &kevent_queue.mappings, unless it is that of the creator
 * @mm:		I: a pointer to compare, held by mmgrab()
 * @user:	R: the ring there
 * @left:	R: a descriptor was closed there: the memory may be in use for something else,
 *		so nothing is stored there. Set by kevent_ring_leave(). Cleared by a wait,
 *		a commit or an ATTACH that finds another descriptor in its table, see
 *		kevent_ring_back()
 *
 * Charged with KEVENT_MAPPING_BYTES if it is on the list, see kevent_ring_spaces().
 */
struct kevent_mapping {
	struct list_head		list;
	struct mm_struct		*mm;
	struct kevent_ring __user	*user;
	bool				left;
};

/**
 * struct kevent_keys - watches of sources without a file
 * @lock:	protects what is K
 * @tree:	K: the watches, by id and type, the highest first
 */
struct kevent_keys {
	spinlock_t		lock;	/* see K */
	struct rb_root_cached	tree;
};

/**
 * struct kevent_crew - serving threads of a queue and chains that wait for them
 * @limit:	the threads, and how many chains. The queue, with which it ends, keeps a
 *		reference
 * @jobs:	chains that no thread has begun, oldest first, under the lock of @limit. Each is a
 *		watch that the owner of the queue is charged for. Nobody walks the list
 * @process:	whose chains these are, a pointer to compare; NULL: of nobody. Changed
 *		under kevent_crews_lock. Who ends gives it up when no chain is left, so
 *		it cancels its own chains only, and as many as there are
 * @table:	the table of descriptors, to compare, of all threads that may serve, or
 *		%KEVENT_TAKERS if there are several; NULL: of none. See kevent_crew_note()
 * @member:	in &signal_struct.kevent_crews of that process, under
 *		kevent_crews_lock. A process has one for each of its queues
 */
struct kevent_crew {
	struct kevent_limit	limit;
	struct list_head	jobs;
	struct signal_struct	*process;
	const void		*table;
	struct hlist_node	member;
};

/**
 * struct kevent_queue - what a kevent file descriptor refers to
 *
 * Members that a hit touches, in two cache lines up to the end of @ring:
 * @ready_lock:	taken in wake-up callbacks, interrupts off
 * @wake_request: R: %KEVENT_REQUEST_NEXT, %KEVENT_REQUEST_ALL or 0
 * @nr_queued:	R: watches on @ready and @level. Counts a level watch before its entry
 *		can be seen: a consumer that has taken the entry does not find 0
 * @ready:	R: watches with something to report, oldest first
 * @sleepers:	R: consumers asleep, oldest first; as many threads as wait, so
 *		RLIMIT_NPROC limits them. No wake-up walks them, see kevent_next_sleeper()
 * @ring_mm:	R: the address space for which @ring says where it is, or
 *		KEVENT_NO_MM; that of @home or of one of @mappings, which it has not left,
 *		and @ring is not known to be broken
 * @poll_wait:	poll() on the queue's own descriptor
 * @ring:	R: the ring; of size 0 when the queue has none. Where it is in
 *		user memory is valid after kevent_ring_select(), under the same
 *		hold of the lock
 *
 * Collections:
 * @level:	R: level watches that were delivered, until a collection polls them
 * @collected:	R: entries stored in the ring by calls; wake-ups stored the others
 * @copied:	R: entries copied to buffers
 * @misses:	R: watches put on @ready
 * @nr_taken:	R: watches that consumers poll without the lock, see deliver.c
 * @polls:	R: how often consumers came back from that, and 1: never 0
 *
 * Consumers asleep:
 * @ring_sleepers: R: those of @sleepers that any new entry is enough for: see wake.c
 * @many_sleepers: R: those that wait for several, by &kevent_consumer.end
 * @many_seen:	R: the same, by the position that they have seen
 * @buffer_sleepers: R: those that take events into a buffer, if one event is enough
 * @buffer_several: R: likewise, if it is not
 * @nr_several:	R: those of @many_sleepers and @buffer_several
 * @nr_slept:	R: how many ever came to sleep, for &kevent_consumer.since
 * @nr_woken:	R: consumers woken that have not taken @ready_lock yet; each then reads @ready
 * @nr_asleep:	R: consumers asleep, and those of @nr_woken
 * @wake_rest:	R: how many of @sleepers are to be woken yet, see kevent_wake_rest()
 * @warm:	R: how often the one that slept last was woken since the oldest was
 * @fair:	I: the oldest is always woken
 * @nr_members:	R: those on @sleepers that are members of the group of @limit
 * @busy:	for busy polling
 * @coalesce:	for waking a consumer once for several events
 * @limit:	threads of which a number may run at once; set once, by the first of them
 * @consumes:	R: signals that watches consume or have consumed, bit by bit
 * @takers:	R: these watches, at most one of each signal
 * @ask:	checks those of @takers that may take a signal of the current task; set before
 *		@consumes
 * @wakeup:	set once, by the first watch with KEVENT_REQ_STAY_AWAKE
 * @awake_new:	R: an event for which @wakeup is active was delivered since a consumer
 *		came back
 * @awake_pos:	R: where the ring was then
 *
 * Where the ring is:
 * @home:	in the address space that created the queue; its user is NULL without a ring
 * @mappings:	R: where others have it
 *
 * Watches, and what sources keep for the queue:
 * @owner:	I: who pays for watches
 * @taker:	the table of descriptors, to compare, of all who may have taken events, or
 *		%KEVENT_TAKERS if there are several. Only ever becomes that; without a lock
 * @refuses:	I: KEVENT_INIT_REFUSE_*
 * @watches:	X: all watches
 * @keys:	those without a file
 * @nest:	the queue as a source of others, and what it watches of that kind
 * @poll_work:	wakes @poll_wait. Idle once the file of the queue is gone
 * @poll_uring:	io_uring is behind an event. Set without a lock before that queues @poll_work,
 *		which takes it, maybe for an earlier event: then no multishot poll is left
 * @timers:	what the source of timers keeps for the queue; set once, by the
 *		first timer. Paid for until kevent_timers_stop()
 * @crew:	serving threads, and chains for them
 * @bounds:	bound calls
 *
 * @ino:	I: number of the file's inode: names the queue in traces and fdinfo
 * @refs:	one for the file and one for each watch; the work that cancels
 *		timers when the clock was set takes one, too
 * @rcu:	for the freeing: who finds a watch under RCU finds its queue
 *
 * Members that others read without a lock are u8 where they could be bool. For UBSAN_BOOL
 * gcc 12 reads a bool without the volatile of READ_ONCE(), and KCSAN sees a plain read.
 */
struct kevent_queue {
	spinlock_t		ready_lock;	/* lists and state, see R */
	u8			wake_request;
	u32			nr_queued;
	struct list_head	ready;
	struct list_head	sleepers;
	struct mm_struct	*ring_mm;
	wait_queue_head_t	poll_wait;
	struct kring		ring;

	struct list_head	level;
	u64			collected;
	u64			copied;
	u64			misses;
	u32			nr_taken;
	u64			polls;
	u64			consumes;
	struct hlist_head	takers;
	void (*ask)(struct kevent_queue *q);

	struct list_head	ring_sleepers;
	struct rb_root_cached	many_sleepers;
	struct rb_root_cached	many_seen;
	struct list_head	buffer_sleepers;
	struct list_head	buffer_several;
	u32			nr_several;
	u64			nr_slept;
	u32			nr_woken;
	u32			nr_asleep;
	u32			wake_rest;
	u32			warm;
	bool			fair;
	u32			nr_members;
	struct kevent_busy	busy;
	struct kevent_coalesce	coalesce;
	struct kevent_limit	*limit;
	struct wakeup_source	*wakeup;
	bool			awake_new;
	u64			awake_pos;

	struct kevent_mapping	home;
	struct list_head	mappings;

	struct kevent_owner	*owner;
	const void		*taker;
	u32			refuses;
	struct kevent_index	watches;
	struct kevent_keys	keys;
	struct kevent_nest	nest;
	struct irq_work		poll_work;
	u32			poll_uring;
	struct kevent_timers	*timers;
	struct kevent_crew	crew;
	struct kevent_bounds	bounds;

	u64			ino;
	refcount_t		refs;
	struct rcu_head		rcu;
};

struct kevent_queue *kevent_queue_alloc(void);
void kevent_queue_put(struct kevent_queue *q);

/*
 * The current thread may take events. Its process has to leave them to others if it ends.
 * One that never comes here, as a child that only executes a program, has taken none.
 */
static inline void kevent_note_taker(struct kevent_queue *q)
{
	const void *taker = READ_ONCE(q->taker);

	if (unlikely(taker != current->files && taker != KEVENT_TAKERS))
		WRITE_ONCE(q->taker, KEVENT_TAKERS);
}

bool __kevent_ring_select(struct kevent_queue *q);

/*
 * Point the ring to where it is in current->mm. Returns false when it is not mapped here,
 * as far as the queue knows, when a descriptor was closed here and no call came after that,
 * or when there is none.
 */
static inline bool kevent_ring_select(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	return host_mm_in_use() &&
	       (likely(q->ring_mm == current->mm) || __kevent_ring_select(q));
}

/*
 * Can an amount be stored in the ring now? An event that is queued gets one when it
 * is delivered. Peeks: an entry without an amount is no harm.
 */
static inline bool kevent_may_store(const struct kevent_queue *q)
{
	return q->home.mm == current->mm || !list_empty(&q->mappings);
}

void __kevent_awake_begin(struct kevent_queue *q);
void __kevent_awake_end(struct kevent_queue *q);

/* A consumer has come back, before its changes are made, and before it collects. */
static inline void kevent_awake_begin(struct kevent_queue *q)
{
	if (unlikely(READ_ONCE(q->wakeup)))
		__kevent_awake_begin(q);
}

/* It has collected. */
static inline void kevent_awake_end(struct kevent_queue *q)
{
	if (unlikely(READ_ONCE(q->wakeup)))
		__kevent_awake_end(q);
}

/* Put a watch that is on no list at the end of @list. */
static inline void kevent_list_add(struct kevent *ke, struct list_head *list)
{
	list_add_tail(&ke->link, list);
	WRITE_ONCE(ke->queue->nr_queued, ke->queue->nr_queued + 1);
}

/* The first type without a bit of its own, that of which is REFUSE_LATER */
#define KEVENT_TYPE_LATER	12U

static_assert(KEVENT_INIT_REFUSE(KEVENT_TYPE_LATER) == KEVENT_INIT_REFUSE_LATER);

/* Does the queue refuse requests of a type, which may be anything, for good? */
static inline bool kevent_refuses_type(const struct kevent_queue *q, u32 type)
{
	return q->refuses & KEVENT_INIT_REFUSE(min(type, KEVENT_TYPE_LATER));
}

/* Does it refuse a command, KEVENT_CTL_ADD and its like? */
static inline bool kevent_refuses_cmd(const struct kevent_queue *q, u32 cmd)
{
	switch (cmd) {
	case KEVENT_CTL_REMOVE:
	case KEVENT_CTL_MODIFY:
		return q->refuses & KEVENT_INIT_REFUSE_CHANGE;
	case KEVENT_CTL_READY:
	case KEVENT_CTL_WAKE_ALL:
		return q->refuses & KEVENT_INIT_REFUSE_READY;
	case KEVENT_CTL_ATTACH:
		return q->refuses & KEVENT_INIT_REFUSE_ATTACH;
	default:
		return false;
	}
}

/* How many entries of the ring are unread, as far as known? Peeks. */
static inline u64 kevent_unread(const struct kevent_queue *q)
{
	return READ_ONCE(q->ring.kidx) - READ_ONCE(q->ring.uidx);
}

/* Have those who poll() the queue woken, behind this hold of the lock: see kevent_poll_work(). */
static inline void kevent_wake_pollers(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	/*
	 * A caller of poll() joins poll_wait before it takes ready_lock to
	 * look, see kevent_fop_poll(). If it saw nothing, it is seen here.
	 */
	if (waitqueue_active(&q->poll_wait) &&
	    (!list_empty(&q->ready) || q->wake_request == KEVENT_REQUEST_NEXT ||
	     q->ring.kidx != q->ring.uidx))
		irq_work_queue(&q->poll_work);
}

/* Release ready_lock, where something may have become ready. */
static inline void kevent_unlock(struct kevent_queue *q, unsigned long flags)
	__releases(&q->ready_lock)
{
	kevent_wake_pollers(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
}

/* guard(kevent_queue)(q): ready_lock, and kevent_unlock() at the end of the block */
DEFINE_LOCK_GUARD_1(kevent_queue, struct kevent_queue,
		    spin_lock_irqsave(&_T->lock->ready_lock, _T->flags),
		    kevent_unlock(_T->lock, _T->flags), unsigned long flags)

/* The same after spin_lock_irq(), in a task */
static inline void kevent_unlock_irq(struct kevent_queue *q)
	__releases(&q->ready_lock)
{
	kevent_wake_pollers(q);
	spin_unlock_irq(&q->ready_lock);
}

#endif /* _KEVENT_QUEUE_H */
