/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A limit for the consumers of a queue that run at once
 */
#ifndef _KEVENT_MAX_RUNNING_H
#define _KEVENT_MAX_RUNNING_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct seq_file;

/**
 * struct kevent_limit - the members of a queue
 * @lock:	protects all. Held for a few list operations and one wake-up. The last one in
 *		the lock order, behind ready_lock, so it is taken with interrupts off; a raw
 *		one, since the scheduler takes it
 * @parked:	&struct kevent_member that wait until they may go on, oldest first. Nobody walks
 *		the list, which RLIMIT_NPROC limits, and one is let go at a time
 * @nr_parked:	their number
 * @running:	members that are counted, see &struct kevent_member. May exceed @max: a member
 *		that has blocked goes on at once, and so does one whose wait a signal, a timeout
 *		or a request ends
 * @refs:	of the queue and of each member
 * @max:	as many shall run; of the call that came last. Any process with the ring can
 *		set it, and hold members up by running, as it could take their events
 * @serves:	I: the members serve, see workers.c: each that goes on takes a job
 * @jobs:	jobs that wait for a member to go on. A job may be taken back after a member was
 *		let go for it: that member finds none
 * @looks:	how often members were to look: whether their descriptor is still there, or for a
 *		request
 */
struct kevent_limit {
	raw_spinlock_t		lock;	/* see above */
	struct list_head	parked;
	u32			nr_parked;
	u32			running;
	u32			max;
	refcount_t		refs;
	bool			serves;
	u32			jobs;
	u32			looks;
};

/**
 * struct kevent_member - a thread that is a member of a queue's group, or serves a queue
 * @link:	in &kevent_limit.parked, or empty
 * @limit:	I: of its queue, referenced. Once the queue is gone that is some memory which
 *		the thread keeps until it leaves; a thread has one
 * @task:	I: the thread. Alive as long as @link is in the list: it takes the lock before
 *		it goes on
 * @job:	it goes on for one of &kevent_limit.jobs, and has not begun
 * @looks:	&kevent_limit.looks when it last looked at its descriptor
 * @counted:	in &kevent_limit.running. The task that lets it go counts it, so that a slow
 *		wake-up gives nobody the same place
 * @requested:	its wait ends although it may not go on
 * @waits:	it sleeps in kevent_wait() of the queue, and says itself when it runs: the hooks
 *		do nothing. Read and written by the thread alone
 *
 * &task_struct.worker_private of a thread with PF_KEVENT_SERVER, which only the thread itself
 * changes. @link, @job, @looks, @counted and @requested are protected by &kevent_limit.lock.
 * The thread frees it: when it leaves, at the latest when it exits or executes a program.
 */
struct kevent_member {
	struct list_head	link;
	struct kevent_limit	*limit;
	struct task_struct	*task;
	u32			looks;
	bool			job;
	bool			counted;
	bool			requested;
	bool			waits;
};

/**
 * enum kevent_admission - of a member that waits
 * @KEVENT_LIMIT_ADMITTED:	it may go on, and counts
 * @KEVENT_LIMIT_PARKED:	it has to block
 * @KEVENT_LIMIT_FULL:		it may not go on, and was not to park
 * @KEVENT_LIMIT_REQUESTED:	its wait ends although it may not go on
 * @KEVENT_LIMIT_LOOK:		it has to look at its descriptor first
 */
enum kevent_admission {
	KEVENT_LIMIT_ADMITTED,
	KEVENT_LIMIT_PARKED,
	KEVENT_LIMIT_FULL,
	KEVENT_LIMIT_REQUESTED,
	KEVENT_LIMIT_LOOK,
};

/* The limit of a queue, which it has at @where from its first member on */
static inline struct kevent_limit *
kevent_limit_peek(struct kevent_limit *const *where)
{
	/* Pairs with kevent_limit_join(). */
	return smp_load_acquire(where);
}

void kevent_limit_init(struct kevent_limit *l, bool serves);
int kevent_limit_join(struct kevent_limit **where, u32 max,
		      struct kevent_member **to);
int kevent_limit_serve(struct kevent_limit *l, u32 max,
		       struct kevent_member **to);
void kevent_limit_leave(const struct kevent_limit *l);
void kevent_limit_put(struct kevent_limit *l);
enum kevent_admission kevent_limit_enter(struct kevent_member *m, bool park);
void kevent_limit_unparked(struct kevent_member *m);
void kevent_limit_go_on(struct kevent_member *m);
void kevent_limit_rest(struct kevent_member *m);
bool kevent_limit_request(struct kevent_limit *l);
void kevent_limit_add_job(struct kevent_limit *l);
void kevent_limit_del_job(struct kevent_limit *l);
void kevent_limit_look(struct kevent_limit *l);
bool kevent_limit_is_kept(struct kevent_limit *l);
void kevent_limit_show(struct seq_file *m, struct kevent_limit *l);

#endif /* _KEVENT_MAX_RUNNING_H */
