/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue, and those who wait for it
 *
 * Protection of members is explained in kevent.h.
 */
#ifndef _KEVENT_QUEUE_H
#define _KEVENT_QUEUE_H

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/poll.h>
#include <linux/preempt.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/ukevent.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include <asm/tlb.h>

#include "busy_poll.h"
#include "ring.h"

/* Address spaces that attach one ring, besides the creator's */
#define KEVENT_MAX_MAPPINGS	64

struct file;
struct kevent;
struct kevent_timers;
struct mm_struct;
struct pid;
struct user_struct;

/*
 * What mmgrab() keeps of an address space whose process is gone: with it the top of
 * its page table
 */
#define KEVENT_MM_BYTES	(sizeof(struct mm_struct) + cpumask_size() + 2 * PAGE_SIZE)

/* For kevent_queue.ring_mm: kernel threads have NULL. */
#define KEVENT_NO_MM		((struct mm_struct *)ERR_PTR(-ENOENT))

/**
 * struct kevent_mapping - where an address space other than the creator's has
 *			   the ring
 * @list:	R: on &kevent_queue.mappings
 * @mm:		I: a pointer to compare, held by mmgrab()
 * @user:	R: the ring there
 *
 * Charged with KEVENT_MAPPING_BYTES. One of a process that has ended stays until the
 * next process attaches the ring.
 */
struct kevent_mapping {
	struct list_head		list;
	struct mm_struct		*mm;
	struct kevent_ring __user	*user;
};

/**
 * struct kevent_index - all watches of a queue
 * @blocks:	X: their blocks
 * @room:	X: the blocks that are not full
 */
struct kevent_index {
	struct xarray		blocks;
	struct list_head	room;
};

/**
 * struct kevent_queue - what a kevent file descriptor refers to
 * @ready_lock:	taken in wake-up callbacks, interrupts off
 * @wake_request: R: the next consumer shall not wait
 * @nr_listed:	R: watches on @ready and @level. Counts a level watch before its entry
 *		can be seen: a consumer that has taken the entry does not find 0
 * @ready:	R: watches with something to report, oldest first
 * @level:	R: level watches delivered since the last collection started
 * @wait:	R: consumers asleep, exclusive, oldest first
 * @nr_woken:	R: consumers woken that do not run yet; each will look at @ready
 * @ring:	R: the ring; of size 0 when the queue has none. Where it is in
 *		user memory is valid after kevent_ring_here(), under the same
 *		hold of the lock
 * @collected:	R: entries stored in the ring by calls; wake-ups stored the others
 * @copied:	R: entries copied to buffers
 * @misses:	R: watches put on @ready
 * @consumer:	R: the thread that last waited for the ring, or created it; see
 *		kevent_more()
 * @more_work:	R: runs in @consumer, and holds a reference to the queue
 * @more_queued: R: @more_work is on its way
 * @poll_wait:	poll() on the queue's own descriptor
 * @mm:		I: address space that created the ring; a pointer to compare,
 *		held by mmgrab()
 * @ring_mm:	R: the address space for which @ring says where it is, or
 *		KEVENT_NO_MM; @mm or one of @mappings, and @ring is not known to
 *		be broken
 * @home:	R: the ring there
 * @mappings:	R: where others have it
 * @busy:	for busy polling
 * @refuses:	I: KEVENT_INIT_REFUSE_*
 * @owner:	I: who pays for watches
 * @watches:	X: all watches
 * @key_lock:	protects @by_key and @guests
 * @by_key:	K: watches of sources without a file, by type and id
 * @guests:	K: address spaces other than @mm that watches keep; empty without
 *		watches
 * @timers:	for ev_timer.c; set once, by the first timer
 * @refs:	one for the file and one for each watch; the work that cancels
 *		timers when the clock was set takes one, too
 * @rcu:	for the freeing: who finds a watch under RCU finds its queue
 */
struct kevent_queue {
	spinlock_t		ready_lock;	/* lists and state, see R */
	bool			wake_request;
	u32			nr_listed;
	struct list_head	ready;
	struct list_head	level;
	wait_queue_head_t	wait;
	u32			nr_woken;
	struct kring		ring;
	u64			collected;
	u64			copied;
	u64			misses;
	struct pid		*consumer;
	struct callback_head	more_work;
	bool			more_queued;
	wait_queue_head_t	poll_wait;
	struct mm_struct	*mm;
	struct mm_struct	*ring_mm;
	struct kevent_ring __user *home;
	struct list_head	mappings;
	struct kevent_busy	busy;
	u32			refuses;
	struct user_struct	*owner;
	struct kevent_index	watches;
	spinlock_t		key_lock;	/* by_key, guests */
	struct rb_root		by_key;
	struct list_head	guests;
	struct kevent_timers	*timers;
	refcount_t		refs;
	struct rcu_head		rcu;
};

/**
 * struct kevent_deadline - until when a consumer sleeps
 * @at:		time of @clock, KTIME_MAX for ever; see @relative
 * @slack:	how much later is fine, in nanoseconds
 * @clock:	CLOCK_MONOTONIC and its like
 * @poll:	do not sleep at all
 * @relative:	@at counts from when a consumer is about to sleep, never 0
 */
struct kevent_deadline {
	ktime_t			at;
	u64			slack;
	clockid_t		clock;
	bool			poll;
	bool			relative;
};

/**
 * struct kevent_news - what a consumer of the ring waits for
 * @old_kidx:	low half of the newest position it knows
 * @min_nr:	entries past that, at least 1
 */
struct kevent_news {
	u32			old_kidx;
	u32			min_nr;
};

/**
 * enum kevent_consumers - whom a wake-up is for
 * @KEVENT_ANY:		whoever sleeps longest
 * @KEVENT_OF_RING:	of those that want the ring filled
 * @KEVENT_OF_BUFFER:	of those that need no room in the ring
 */
enum kevent_consumers {
	KEVENT_ANY,
	KEVENT_OF_RING,
	KEVENT_OF_BUFFER,
};

/* With the above: the level watches are to be looked at again */
#define KEVENT_LOOK		BIT(2)

/* What kevent_sleep() returns then, to have it done */
#define KEVENT_SLEPT_LOOK	2

/* queue.c: for watch.c and system calls */
struct kevent_queue *kevent_queue_alloc(void);
void kevent_queue_put(struct kevent_queue *q);
void kevent_enqueue(struct kevent *ke);
void kevent_dequeue(struct kevent *ke);
void kevent_delivered(struct kevent *ke, u32 nr);
void kevent_fill(struct kevent *ke, struct ukevent *uk, u32 nth);
int kevent_collect(struct kevent_queue *q, struct kring *to, u32 max,
		   bool relist);
int kevent_commit(struct kevent_queue *q, u64 uidx);
int kevent_fault_in(struct kevent_queue *q, const struct kring *to);

/* Does the queue refuse requests of a type, which may be anything, for good? */
static inline bool kevent_refuses_type(const struct kevent_queue *q, u32 type)
{
	if (likely(type <= KEVENT_FUTEX))
		return q->refuses & KEVENT_INIT_REFUSE(type);
	return q->refuses & KEVENT_INIT_REFUSE_LATER;
}

/* Does it refuse a command, KEVENT_CTL_ADD and its like? */
static inline bool kevent_refuses_cmd(const struct kevent_queue *q, u32 cmd)
{
	switch (cmd) {
	case KEVENT_CTL_REMOVE:
	case KEVENT_CTL_MODIFY:
		return q->refuses & KEVENT_INIT_REFUSE_CHANGE;
	case KEVENT_CTL_READY:
		return q->refuses & KEVENT_INIT_REFUSE_READY;
	case KEVENT_CTL_ATTACH:
		return q->refuses & KEVENT_INIT_REFUSE_ATTACH;
	default:
		return false;
	}
}

/* Has the ring entries that are unread, as far as known? Peeks. */
static inline bool kevent_unread(const struct kevent_queue *q)
{
	return READ_ONCE(q->ring.kidx) != READ_ONCE(q->ring.uidx);
}

static inline bool kevent_poll_waits(struct kevent_queue *q)
{
	/*
	 * Who polls joins poll_wait before taking ready_lock to look, see
	 * kevent_fop_poll(): whoever saw nothing is seen here.
	 */
	return waitqueue_active(&q->poll_wait) &&
	       (!list_empty(&q->ready) || q->wake_request ||
		q->ring.kidx != q->ring.uidx);
}

/**
 * kevent_unlock - release ready_lock, then tell poll() what became ready
 * @q: the queue; somebody keeps it alive
 * @flags: of spin_lock_irqsave()
 */
static inline void kevent_unlock(struct kevent_queue *q, unsigned long flags)
	__releases(&q->ready_lock)
{
	bool tell = kevent_poll_waits(q);

	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (tell)
		wake_up_poll(&q->poll_wait, EPOLLIN | EPOLLRDNORM);
}

/* The same after spin_lock(), with interrupts off */
static inline void kevent_unlock_irqoff(struct kevent_queue *q)
	__releases(&q->ready_lock)
{
	bool tell = kevent_poll_waits(q);

	spin_unlock(&q->ready_lock);
	if (tell)
		wake_up_poll(&q->poll_wait, EPOLLIN | EPOLLRDNORM);
}

/*
 * Is the address space in use that of current->mm? A task is interrupted where it
 * is not: a firmware call, by a driver for a user's read() too, runs in efi_mm with
 * interrupts on. A task that stores itself is not in such a place. This is
 * nmi_uaccess_okay() in line, for data that a soft interrupt brings.
 */
static __always_inline bool kevent_mm_in_use(void)
{
#ifdef CONFIG_X86
	return likely(in_task()) ||
	       this_cpu_read(cpu_tlbstate.loaded_mm) == current->mm;
#else
	return likely(in_task()) || nmi_uaccess_okay();
#endif
}

/* mapping.c */
bool kevent_ring_elsewhere(struct kevent_queue *q);

/**
 * kevent_ring_here - point the ring to where it is in current->mm
 * @q: the queue
 *
 * Return: false when it is not mapped here, as far as the queue knows, or when
 * there is none.
 */
static inline bool kevent_ring_here(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	return kevent_mm_in_use() &&
	       (likely(q->ring_mm == current->mm) || kevent_ring_elsewhere(q));
}

int kevent_ring_attach(struct kevent_queue *q, struct kring *ring);
void kevent_mappings_free(struct kevent_queue *q);

/* more.c */
void kevent_more(struct kevent_queue *q);
void kevent_retry_flags(struct kevent_queue *q);
struct pid *kevent_follow(struct kevent_queue *q);

/* wait.c */
void kevent_wake(struct kevent_queue *q, unsigned int kind, int nr);
void kevent_wake_for(struct kevent *ke, enum kevent_consumers kind);
void kevent_wake_one(struct kevent_queue *q);
void kevent_wake_left(struct kevent_queue *q);
void kevent_wake_others(struct kevent_queue *q, int nr);
bool kevent_may_wait_for_ring(struct kevent_queue *q);
ktime_t kevent_clock_now(clockid_t clock);
u32 kevent_stored(struct kevent_queue *q, u32 old_kidx);
bool kevent_has_news(struct kevent_queue *q, const struct kevent_news *news);
int kevent_sleep(struct kevent_queue *q, const struct kevent_news *news,
		 const struct kevent_deadline *until);

/* index.c */
void kevent_index_init(struct kevent_index *index);
void kevent_index_destroy(struct kevent_index *index);
int kevent_index_insert(struct kevent_index *index, struct kevent *ke);
void kevent_index_erase(struct kevent_index *index, struct kevent *ke);
struct kevent *kevent_index_next(struct kevent_index *index, u32 *at);

/* ctl.c, for kevent_wait() */
int kevent_make_changes(struct kevent_queue *q,
			struct kevent_change __user *changes, u32 nr);

/* ev_timer.c */
void kevent_timers_stop(struct kevent_queue *q);
void kevent_timers_free(struct kevent_queue *q);

/* fops.c */
extern const struct file_operations kevent_fops;

#endif /* _KEVENT_QUEUE_H */
