/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kevent: watches, queues and sources
 *
 * A program's request becomes a watch, &struct kevent. It belongs to one queue
 * and to one source, which calls kevent_ready() when something happens. The
 * queue keeps ready watches on a list until a consumer moves their events to
 * user memory. Calls run one way: system calls -> queue -> source, and
 * back only through kevent_ready().
 */
#ifndef _KEVENT_H
#define _KEVENT_H

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/ukevent.h>
#include <linux/wait.h>

#include "queue.h"
#include "source.h"
#include "watch.h"

/*
 * Watches of one user on one file. Bounds the walks of its list, which is locked with
 * interrupts on, by the users that have it open. For wake-ups see turns.c.
 */
#define KEVENT_MAX_PER_FILE	1000

struct file;
struct files_struct;
struct kevent_source_ops;
struct kevent_queue;

/**
 * enum kevent_state - bits of &struct kevent.state
 * @KE_LISTED:	on &kevent_queue.ready or &kevent_queue.level
 * @KE_QUIET:	listed, and nobody was woken for it
 * @KE_BUSY:	a task works on it without a lock
 * @KE_FIRED:	something happened while it was busy
 * @KE_STALE:	it was modified while it was busy
 * @KE_VERIFY:	its condition must be looked up before delivery
 * @KE_DISARMED: nothing is delivered until it is modified
 * @KE_BROKEN:	its source cannot deliver any more
 * @KE_DEAD:	removed: nothing is delivered any more
 * @KE_DETACHED: and detached from its source
 * @KE_NEW:	being attached to its source
 * @KE_SPENT:	dead because it was delivered
 */
enum kevent_state {
	KE_LISTED	= BIT(0),
	KE_QUIET	= BIT(1),
	KE_BUSY		= BIT(2),
	KE_FIRED	= BIT(3),
	KE_STALE	= BIT(4),
	KE_VERIFY	= BIT(5),
	KE_DISARMED	= BIT(6),
	KE_BROKEN	= BIT(7),
	KE_DEAD		= BIT(8),
	KE_DETACHED	= BIT(9),
	KE_NEW		= BIT(10),
	KE_SPENT	= BIT(11),
};

/*
 * Protection of members:
 *
 * I: set before the watch or queue can be seen by others, constant afterwards
 * R: &kevent_queue.ready_lock
 * X: the lock of &kevent_index.blocks, taken by index.c
 * K: &kevent_queue.key_lock
 * F: &file.f_lock
 * W: lock of the wait queue head
 *
 * Lock order: f_lock or the lock of a wait queue head (any source's lock)
 * > ready_lock > the locks of kevent_queue.wait. No mutex: control calls and
 * consumers exclude one another per watch, by %KE_BUSY, and no lock is held
 * while user memory is accessed in a way that may fault, or a ->poll() runs.
 * So neither a fault nor a driver that never returns can hold up a
 * close, an exit, a wake-up or another caller.
 *
 * Lifetime of a watch. Whoever sets KE_DEAD, with kevent_kill(), removes it,
 * with kevent_bury(). It must have the watched object pinned, so that detach()
 * can touch it: by a descriptor, by hold(), or by being the object's teardown.
 * 1. kevent_kill() takes it off the queue's lists: it is never delivered.
 *    From a new one, which is not attached yet, everybody but the task that
 *    attaches it goes away here, and that task goes on later.
 * 2. detach() disarms it: no lookup finds it any more, and no callback runs but
 *    kevent_wake_sock(), which RCU lets use the watch and its queue, dead.
 * 3. If a task is busy with the watch, KE_DETACHED tells it to go on from here.
 * 4. kevent_free() takes it out of the queue's index, returns the user's
 *    quota, frees it after a grace period, since lookups run under RCU,
 *    and drops the queue reference the watch held.
 * So a watch that a source or a file still knows has a queue.
 */

/**
 * struct kevent - a watch
 * @queue:	I: where its events go; the watch holds a reference
 * @link:	R: on a list of @queue; after removal on the remover's list
 * @rcu:	for the freeing
 * @user:	R: cookie of the caller
 * @stored:	R: ring position after its newest entry, 0 when there is none
 * @event:	R: conditions of interest, as requested
 * @ready:	R: conditions to report
 * @index:	I: in &kevent_queue.watches
 * @id_low:	I: low half of its id; the file descriptor for file types
 * @reported:	R: what the entry at @stored says
 * @state:	R: enum kevent_state; KE_DEAD may be peeked at
 * @req_flags:	R: KEVENT_REQ_*
 * @type:	I: KEVENT_SOCKET and its like
 * @keys:	R: for the source: wake-up keys that matter
 */
struct kevent {
	struct kevent_queue	*queue;
	union {
		struct list_head	link;
		struct rcu_head		rcu;
	};
	u64			user;
	u64			stored;
	u32			event;
	u32			ready;
	u32			index;
	u32			id_low;
	u16			reported;
	u16			state;
	u8			req_flags;
	u8			type;
	u16			keys;
};

/**
 * struct kevent_keyed - a watch of a source that has no file
 * @ke:		the watch
 * @node:	K: in &kevent_queue.by_key
 * @id:		I: 64-bit id; with the type the key
 */
struct kevent_keyed {
	struct kevent		ke;
	struct rb_node		node;
	u64			id;
};

/**
 * struct kevent_file - a watch of a source whose id is a file descriptor
 * @ke:		the watch
 * @file:	I: the file; no reference is held, detach() comes before its end
 * @next:	F: next watch of @file; may be followed under RCU
 * @table:	I: the file table the watch was added through, to compare
 */
struct kevent_file {
	struct kevent		ke;
	struct file		*file;
	struct kevent_file	*next;
	struct files_struct	*table;
};

/**
 * struct kevent_source_ops - what a source does
 * @name:	in fdinfo
 * @file:	the id is a file descriptor
 * @mergeable:	an unread entry that says as much makes another one redundant
 * @level:	without %KEVENT_REQ_ET, what was delivered is looked up again by
 *		collect(), and reported again while it holds
 * @flags:	request flags above 0xff that it knows
 * @cache:	of the source's structure, which begins with a struct kevent
 * @pins:	bytes of other objects that each watch keeps: charged with it
 * @check:	pure validation of a request. Called unlocked. 0 or -errno
 * @attach:	arm the watch, which is busy; kevent_ready() may be called
 *		from then on. May sleep. Returns the conditions that
 *		hold already, or -errno; detach() is called in either case
 * @detach:	disarm; on return no callback runs or will run, except under RCU
 *		one that expects a dead watch, and find() does not return it.
 *		Called in process context, with the watched object pinned;
 *		takes no lock that is held across a ->poll() or a fault. Called
 *		once, after attach() has returned
 * @destroy:	free what attach() allocated. Optional
 * @modified:	events and flags of the watch have changed to what the request
 *		says; under ready_lock. May drop what is not delivered yet by
 *		kevent_dequeue() and clearing %KE_FIRED. Optional
 * @settle:	watches of @file have been modified, unlocked, and MODIFY returns
 *		after this; they may be gone. May sleep. Optional, for sources
 *		with a file and without rearm()
 * @hand_on:	MODIFY has disabled the watch or dropped some of its events: what it
 *		was told while others were not, and does not want any more, is for
 *		them. It may be dead since. Under RCU, with the watched
 *		object pinned. Optional
 * @rearm:	MODIFY is about to change the watch, which is busy, and arms it
 *		anew: like attach() it may sleep and returns the conditions that
 *		hold, or -errno, and the watch is not changed. detach() may
 *		be called meanwhile, once the watch is dead. Optional
 * @may_change:	may the current task modify, remove or mark the watch, or only
 *		take its events? Under ready_lock. Optional: everybody who has
 *		the queue may
 * @find:	look up a watch by its key, under rcu_read_lock(). NULL if none
 * @hold:	pin the watched object; called under ready_lock for a watch that
 *		is not dead. false: the object is going away, and will
 *		remove the watch. Optional, with @unhold
 * @unhold:	undo hold(). May sleep
 * @collect:	the conditions that hold now; the watch is busy and held. May
 *		sleep. 0 when there is nothing to report. Optional; needs
 *		@hold. Without it, what happened is only known from
 *		kevent_ready() and attach(), and kept until it is delivered
 * @peek:	as collect(), but called under ready_lock, for a watch that is not
 *		dead. Negative when that takes a lock or sleep. Optional
 * @count:	occurrences not yet delivered; under ready_lock. For sources that
 *		keep each one. Optional: one, while the watch is on the ready
 *		list
 * @amount:	second word of an entry that says the given conditions; under
 *		ready_lock, any context. Optional: 0
 * @fill:	put what the source knows of an occurrence, 0 is the oldest, into
 *		an entry; under ready_lock. When there is none, something the
 *		watch says of itself. Optional
 * @error:	-errno of a broken watch; under ready_lock. Optional: -EIDRM
 * @delivered:	the entry made by fill() of the oldest occurrence has reached
 *		user memory; under ready_lock. Optional
 * @room:	what mark() may need memory for, from kmalloc(). May sleep. NULL
 *		when there is none. Optional
 * @mark:	%KEVENT_CTL_READY on a watch; under ready_lock. Adds to
 *		&kevent.ready. Takes *room if it needs that; without any
 *		it says -ENOBUFS and is called again. 0 or -errno. Optional:
 *		sources with collect() are asked, others report the event itself
 */
struct kevent_source_ops {
	const char		*name;
	bool			file;
	bool			mergeable;
	bool			level;
	u32			flags;
	struct kmem_cache	**cache;
	u32			pins;
	int (*check)(const struct ukevent *uk, struct file *file);
	int (*attach)(struct kevent *ke, const struct ukevent *uk,
		      struct file *file);
	void (*detach)(struct kevent *ke);
	void (*destroy)(struct kevent *ke);
	void (*modified)(struct kevent *ke, const struct ukevent *uk);
	void (*settle)(struct kevent_queue *q, struct file *file);
	void (*hand_on)(struct kevent *ke);
	int (*rearm)(struct kevent *ke, const struct ukevent *uk);
	bool (*may_change)(const struct kevent *ke);
	struct kevent *(*find)(struct kevent_queue *q, const struct ukevent *uk,
			       struct file *file);
	bool (*hold)(struct kevent *ke);
	void (*unhold)(struct kevent *ke);
	u32 (*collect)(struct kevent *ke);
	int (*peek)(struct kevent *ke);
	u32 (*count)(struct kevent *ke);
	u32 (*amount)(struct kevent *ke, u32 ready);
	void (*fill)(struct kevent *ke, struct ukevent *uk, u32 nth);
	int (*error)(struct kevent *ke);
	void (*delivered)(struct kevent *ke);
	void *(*room)(void);
	int (*mark)(struct kevent *ke, const struct ukevent *uk, void **room);
};

/* The source of a watch */
static inline const struct kevent_source_ops *
kevent_source_of(const struct kevent *ke)
{
	return kevent_sources[ke->type];
}

/*
 * The position after the newest entry of a watch, 0 if that cannot make another
 * one redundant. If it can, and is unread, an entry that says no more repeats
 * it. Its consumer advances ring_uidx, executes a full barrier, and only then
 * looks at the watched object. Here the change of the object comes first, then
 * the full barrier of kevent_round_fits() or kevent_hit(), then the load of
 * ring_uidx: if that still shows the entry as unread, the consumer will see the
 * change.
 */
static inline u64 kevent_previous(const struct kevent *ke)
{
	if (!kevent_source_of(ke)->mergeable || ke->state & KE_BROKEN)
		return 0;
	return ke->stored;
}

/* Is the condition looked up before each delivery? */
static inline bool kevent_is_checked(const struct kevent *ke)
{
	return kevent_source_of(ke)->level &&
	       (ke->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_LAST_CHECK)) !=
	       KEVENT_REQ_ET;
}

/* A level watch was delivered: the next collection looks at it again. */
static inline void kevent_look_later(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;

	lockdep_assert_held(&q->ready_lock);

	if (ke->state & KE_LISTED) {
		list_move_tail(&ke->link, &q->level);
	} else {
		list_add_tail(&ke->link, &q->level);
		q->nr_listed++;
	}
	ke->state |= KE_VERIFY | KE_LISTED | KE_QUIET;
	ke->state &= ~KE_FIRED;
}

/* The id of an entry, unless fill() knows better */
static inline u64 kevent_id(const struct kevent *ke)
{
	struct kevent_id id = { .raw = { ke->id_low } };

	return id.raw_u64;
}

/*
 * Is an amount of use to kevent_ready_amount()? An event that is queued gets one
 * when it is delivered. Peeks: an entry without an amount is no harm.
 */
static inline bool kevent_may_store(const struct kevent *ke)
{
	return ke->queue->mm == current->mm ||
	       !list_empty(&ke->queue->mappings);
}

/* The socket of a file, NULL if it is none */
static inline struct socket *kevent_socket(struct file *file)
{
	return IS_ENABLED(CONFIG_NET) ? sock_from_file(file) : NULL;
}

/* hit.c: for sources */
void kevent_ready(struct kevent *ke, u32 mask, u16 state);
int kevent_ready_now(struct kevent *ke, u32 mask);
int kevent_ready_amount(struct kevent *ke, u32 mask, u32 amount);
bool kevent_offer(struct kevent *ke, u16 keys, u32 mask, u32 amount);
void kevent_ready_irqs_on(struct kevent *ke, u32 mask, u32 amount);
void kevent_ready_locked(struct kevent *ke, u32 mask, u16 state);

/* queue.c: for sources */
void kevent_dequeue(struct kevent *ke);

/* file.c: for sources whose id is a file descriptor */
int kevent_file_link(struct kevent_file *kf, struct file *file);
void kevent_file_unlink(struct kevent_file *kf);
bool kevent_file_is_current(const struct kevent_file *kf);
struct kevent *kevent_file_find(struct kevent_queue *q,
				const struct ukevent *uk, struct file *file);
bool kevent_file_hold(struct kevent *ke);
void kevent_file_unhold(struct kevent *ke);
int kevent_file_check_nesting(struct file *file);

/* key.c: for sources without a file */
int kevent_key_insert(struct kevent_keyed *kk);
void kevent_key_erase(struct kevent_keyed *kk);
struct kevent *kevent_key_find(struct kevent_queue *q, u32 type, u64 id);

#endif /* _KEVENT_H */
