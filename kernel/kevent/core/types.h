/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watches
 *
 * A program's request becomes a watch, &struct kevent. It belongs to one queue
 * and to one source. Which file does what is listed under "Map" in
 * Documentation/kevent-internals.rst.
 */
#ifndef _KEVENT_TYPES_H
#define _KEVENT_TYPES_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/ukevent.h>

#include "../host.h"

struct file;
struct files_struct;
struct kevent_bound;
struct kevent_queue;
struct mm_struct;
struct obj_cgroup;

/*
 * Protection of members:
 *
 * I: set before the watch or queue can be seen by others, constant afterwards
 * R: &kevent_queue.ready_lock
 * X: the lock of &kevent_index.blocks, taken by watch_memory.c
 * K: &kevent_queue.keys.lock
 * F: &file.f_lock
 * W: lock of the wait queue head
 *
 * Lock order, the outermost first; lockdep checks it on the debug kernel:
 *
 *   a lock of the source: f_lock, the lock of a wait queue head, fsnotify_mark.lock,
 *   sighand_struct.siglock, k_itimer.it_lock, a futex bucket; or kevent_queue.keys.lock
 *     kevent_queue.ready_lock
 *       ev_timers_lock, ev_waiting_lock, the lock of an hrtimer base, wakeup_source.lock,
 *       kevent_limit.lock, which the scheduler takes, too
 *         task_struct.pi_lock of a task that is woken
 *
 * On their own: the locks of kevent_index.blocks and kevent_nest.watched, kevent_tally_lock,
 * kevent_crews_lock, ev_inode_users_lock, files_struct.file_lock. epnested_mutex and
 * eventpoll.mtx are outside of all that, and so is kevent_queue.poll_wait, which an irq_work
 * wakes. Outermost are the mutexes of marks in sources/inode.c, and tasklist_lock in process.c. A
 * watch and a queue have no mutex: control calls and consumers exclude one another per watch, by
 * %KE_CLAIMED. No lock is held during an access to user memory that may fault, or during a
 * ->poll(). So neither a fault nor a driver that never returns delays a close, an exit,
 * a wake-up or another caller.
 *
 * Lifetime of a watch. The task that sets KE_DEAD, with kevent_kill(), removes
 * the watch, with kevent_bury(). It must have the watched object pinned, so
 * that detach() can access the object: by a descriptor, by kevent_hold(), or
 * because it tears the object down.
 * 1. kevent_kill() takes the watch off the queue's lists: it is never delivered.
 *    A watch that is new is not attached yet. Then only the task that attaches
 *    it goes on with step 2, and all others return here.
 * 2. kevent_unlink() and detach() disarm it: no lookup finds it any more, and no
 *    callback runs but kevent_wake_sock(), which RCU lets use the watch and its
 *    queue, dead.
 * 3. If a task has claimed the watch, KE_DETACHED makes that task do step 4.
 * 4. kevent_free() returns the user's quota, takes the watch out of the queue's
 *    index, and drops the watch's reference to the queue. The index frees the memory
 *    after a grace period, because lookups run under RCU.
 * So the queue exists as long as a source or a file knows one of its watches.
 */

/**
 * struct kevent - a watch
 * @queue:	I: where its events go; the watch holds a reference
 * @link:	R: on a list of @queue; after removal on the remover's list
 * @rcu:	for the freeing
 * @user:	R: cookie of the caller
 * @stored:	R: ring position after its newest entry, 0 when there is none
 * @payer:	of a watch that waits for RCU: whom to uncharge
 * @event:	R: conditions of interest, as requested
 * @ready:	R: conditions to report
 * @index:	I: in &kevent_queue.watches
 * @id_low:	I: low half of its id; the file descriptor for file types
 * @reported:	R: what the entry at @stored says, or what %KEVENT_TO_COPY copies
 * @state:	R: &enum kevent_state. kevent_alloc() sets the first one, and state.c and
 *		state.h write all others
 * @req_flags:	R: KEVENT_REQ_*
 * @type:	I: %KEVENT_SOCKET and its like
 * @keys:	R: for the source: wake-up keys that matter
 */
struct kevent {
	struct kevent_queue	*queue;
	union {
		struct list_head	link;
		struct rcu_head		rcu;
	};
	union {
		u64			user;
		struct obj_cgroup	*payer;
	};
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
 * @node:	K: in &kevent_queue.keys.tree, cleared when it is not there
 * @id:		I: with the type the key. attach() may set another one before it
 *		calls kevent_key_link()
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
 * @next:	F: next watch of @file; may be followed under RCU. See
 *		%KEVENT_MAX_PER_FILE
 * @table:	F: the file table the watch was added through, for kevent_is_current(), and to
 *		compare. NULL again once the watch has been taken off the list of @file
 * @host:	F: what host_watches() finds it by
 */
struct kevent_file {
	struct kevent		ke;
	struct file		*file;
	struct kevent_file	*next;
	struct files_struct	*table;
	struct host_file	host;
};

/* Slots in a table of &struct kevent_bounds */
#define KEVENT_BOUND_TABLE	1024U

/**
 * struct kevent_bounds - bound calls
 * @table:	tables of &struct kevent_bound by slot, K, read under RCU; each set once
 * @mm:		K: whose calls they are or were, held by mmgrab(); NULL before the first. Changes
 *		while there is none
 * @nr:		K: slots that are taken
 */
struct kevent_bounds {
	struct kevent_bound	**table[KEVENT_BOUND_MAX / KEVENT_BOUND_TABLE];
	struct mm_struct	*mm;
	u32			nr;
};

/**
 * enum kevent_mode - how a watch reports
 * @KEVENT_LEVEL: while its condition holds, in each call of a consumer
 * @KEVENT_EDGE:  once for each thing that happens
 * @KEVENT_OTHER: a report takes more than to store an entry: the watch is
 *		  verified before its delivery (LAST_CHECK), or ends or is
 *		  disarmed after it (ONESHOT, DISPATCH)
 *
 * A source without conditions that can be looked up, see
 * %KEVENT_SOURCE_LEVEL, reports each thing once in any mode.
 */
enum kevent_mode {
	KEVENT_LEVEL,
	KEVENT_EDGE,
	KEVENT_OTHER,
};

/* The mode of a watch, as MODIFY or ADD set it */
static inline enum kevent_mode kevent_mode(const struct kevent *ke)
{
	switch (ke->req_flags & (KEVENT_REQ_ET | KEVENT_REQ_ONESHOT |
				 KEVENT_REQ_LAST_CHECK | KEVENT_REQ_DISPATCH)) {
	case KEVENT_REQ_ET:
		return KEVENT_EDGE;
	case 0:
		return KEVENT_LEVEL;
	default:
		return KEVENT_OTHER;
	}
}

#endif /* _KEVENT_TYPES_H */
