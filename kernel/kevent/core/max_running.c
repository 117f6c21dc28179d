// SPDX-License-Identifier: GPL-2.0
/*
 * A limit for the consumers of a queue that run at once
 *
 * A thread that gives kevent_wait() a limit is a member of the queue's group until it
 * leaves. It runs from the end of one kevent_wait() to the begin of the next one, except
 * while it blocks, which the scheduler says. While as many members run as the limit says,
 * one that waits parks: it sleeps, and does not take events.
 *
 * A task without PF_KEVENT_SERVER pays nothing. Threads that serve a queue are members, too, of
 * another limit of it, see call/workers.c: one of these goes on only if there is room and a job.
 * This file knows the number of jobs, and nothing else about them.
 *
 * A member is counted in "running", or not. It is counted when it gives the limit, and
 *
 * 1. the hook uncounts it when it blocks, and counts it when it goes on;
 * 2. kevent_limit_rest() uncounts it before it sleeps among the sleepers;
 * 3. it parks, uncounted, if at its begin, or after such a sleep, enough others are
 *    counted;
 * 4. the task that admits it counts it, so a slow wake-up gives nobody the same place;
 * 5. when a timeout, signal or request ends its wait it is counted, whatever the limit
 *    says;
 * 6. it leaves, and is not counted.
 *
 * While "waits" is set, in 2 and 3, the hooks do nothing: a member that was admitted
 * before it came to schedule() keeps its place.
 *
 * No event is left while a member is parked and fewer run than may:
 *
 * - "running" becomes lower in kevent_limit_uncount() only, which admits one member if one
 *   is parked and "running" is below the limit. The count is then what it was before. A
 *   call that raises the limit admits one, and each member that is admitted admits the
 *   next.
 * - A member that is admitted collects, with level watches, and reads the ready list and
 *   the ring under ready_lock before it sleeps. So it finds every event that was queued
 *   meanwhile.
 * - A wake-up wakes a consumer, as without a limit. If that is a member and parks, the
 *   event stays. It parks under ready_lock. Then it passes the event on, by
 *   kevent_leave() and kevent_pass_on(). If a consumer without a limit sleeps, these wake
 *   another sleeper, which may be a member that parks in turn, until they find that one.
 * - While one is parked, as many run as may, and all sleepers are members, kevent_wake_one()
 *   wakes nobody, because the woken thread would park. The members that run are counted.
 *   Each of them will come back and collect, or block or leave, and then the parked member
 *   is admitted and collects. If it takes ready_lock after the wake-up it finds the event. If
 *   it was admitted before, the wake-up does not see it as parked, and wakes somebody. So a
 *   busy pool pays one wake-up in vain, not one for each event.
 * - A member whose wait in parking ends calls kevent_wake_left(): it may take one event
 *   and leave others, for which nobody was woken while it was parked. If there may be
 *   something, and nobody else is parked, a sleeper is woken. It collects, or parks in its
 *   place.
 *
 * A request for all (kevent_request_all()) ends the limit: nobody parks any more, and those that
 * are parked wake each other by kevent_limit_look_next().
 *
 * This file counts, and knows no queue; see wait.c for the waits.
 */

#include <linux/cleanup.h>
#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "../host.h"
#include "max_running.h"

static struct kevent_member *kevent_member_of(const struct task_struct *task)
{
	return task->flags & PF_KEVENT_SERVER ? task->worker_private : NULL;
}

/* Counting */

static void kevent_limit_count(struct kevent_limit *l, struct kevent_member *m)
{
	l->running += !m->counted;
	m->counted = true;
}

/* A member may go on. If it serves, there is a job. */
static void kevent_limit_admit(struct kevent_limit *l, struct kevent_member *m)
{
	kevent_limit_count(l, m);
	m->job = l->serves;
	l->jobs -= m->job;
}

static void kevent_limit_unpark(struct kevent_limit *l, struct kevent_member *m)
{
	list_del_init(&m->link);
	l->nr_parked--;
}

/* End the wait of the member that is parked longest. Returns false if none is. */
static bool kevent_limit_release(struct kevent_limit *l, bool requested)
{
	struct kevent_member *m;

	m = list_first_entry_or_null(&l->parked, struct kevent_member, link);
	if (!m)
		return false;
	kevent_limit_unpark(l, m);
	kevent_limit_admit(l, m);
	m->requested = requested;
	wake_up_process(m->task);
	return true;
}

/* May one more go on beside @running? */
static bool kevent_limit_has_room(const struct kevent_limit *l, u32 running)
{
	return running < l->max && (!l->serves || l->jobs);
}

/*
 * Let one member go if fewer run than may. It does the same for the next one, so nobody
 * holds the lock for all of them.
 */
static void kevent_limit_let_go(struct kevent_limit *l)
{
	if (kevent_limit_has_room(l, l->running))
		kevent_limit_release(l, false);
}

static void kevent_limit_uncount(struct kevent_limit *l,
				 struct kevent_member *m)
{
	l->running -= m->counted;
	m->counted = false;
	l->jobs += m->job;
	m->job = false;
	kevent_limit_let_go(l);
}

/* Members */

/* A limit of nobody, with one reference. It is zeroed. */
void kevent_limit_init(struct kevent_limit *l, bool serves)
{
	raw_spin_lock_init(&l->lock);
	INIT_LIST_HEAD(&l->parked);
	refcount_set(&l->refs, 1);
	l->serves = serves;
}

/* Drop a reference; @l may be NULL. */
void kevent_limit_put(struct kevent_limit *l)
{
	if (l && refcount_dec_and_test(&l->refs))
		kfree(l);
}

static void kevent_member_free(struct kevent_member *m)
{
	struct kevent_limit *l = m->limit;

	current->flags &= ~PF_KEVENT_SERVER;
	current->worker_private = NULL;
	scoped_guard(raw_spinlock_irq, &l->lock)
		kevent_limit_uncount(l, m);
	kevent_limit_put(l);
	kfree(m);
}

/* The current thread is no member of the queue that has @l any more; NULL: of any queue. */
void kevent_limit_leave(const struct kevent_limit *l)
{
	struct kevent_member *m = kevent_member_of(current);

	if (m && (!l || m->limit == l))
		kevent_member_free(m);
}

/* Make the current thread a member of @l, and of no other group. NULL: it stays what it was. */
static struct kevent_member *kevent_member_new(struct kevent_limit *l)
{
	struct kevent_member *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return NULL;
	kevent_limit_leave(NULL);
	INIT_LIST_HEAD(&m->link);
	m->task = current;
	m->limit = l;
	refcount_inc(&l->refs);
	current->worker_private = m;
	current->flags |= PF_KEVENT_SERVER;
	return m;
}

/*
 * Make the current thread the member @to, if it is not one yet. @max members shall run at
 * once. Returns 0, -EINVAL in a chain that the thread runs for others, or where the scheduler
 * does not say who blocks, or -ENOMEM.
 */
int kevent_limit_join(struct kevent_limit **where, u32 max,
		      struct kevent_member **to)
{
	struct kevent_member *m = kevent_member_of(current);
	struct kevent_limit *l;

	if (!IS_ENABLED(CONFIG_KEVENT_AIO) || (m && m->limit->serves))
		return -EINVAL;
	if (!kevent_limit_peek(where)) {
		l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
		if (!l)
			return -ENOMEM;
		kevent_limit_init(l, false);
		/* Pairs with kevent_limit_peek(). */
		if (cmpxchg_release(where, NULL, l))
			kfree(l);
	}
	l = kevent_limit_peek(where);
	if (!m || m->limit != l)
		m = kevent_member_new(l);
	if (!m)
		return -ENOMEM;
	guard(raw_spinlock_irq)(&l->lock);
	l->max = max;
	kevent_limit_count(l, m);
	kevent_limit_let_go(l);
	*to = m;
	return 0;
}

/*
 * Make the current thread a member @to that serves, and of no queue's group. @max shall run at
 * once. It looks at its descriptor first. Returns 0 or -ENOMEM.
 */
int kevent_limit_serve(struct kevent_limit *l, u32 max, struct kevent_member **to)
{
	*to = kevent_member_new(l);
	if (!*to)
		return -ENOMEM;
	(*to)->waits = true;
	guard(raw_spinlock_irq)(&l->lock);
	l->max = max;
	(*to)->looks = l->looks - 1;
	return 0;
}

/* Waiting */

/* May the current thread go on? If not, and it is to @park, the caller sleeps next. */
enum kevent_admission kevent_limit_enter(struct kevent_member *m, bool park)
{
	struct kevent_limit *l = m->limit;

	guard(raw_spinlock_irqsave)(&l->lock);
	if (m->requested)
		return KEVENT_LIMIT_REQUESTED;
	if (m->looks != l->looks) {
		m->looks = l->looks;
		return KEVENT_LIMIT_LOOK;
	}
	if (m->job || kevent_limit_has_room(l, l->running - m->counted)) {
		if (!m->job)
			kevent_limit_admit(l, m);
		kevent_limit_let_go(l);
		m->waits = false;
		return KEVENT_LIMIT_ADMITTED;
	}
	if (!park)
		return KEVENT_LIMIT_FULL;
	m->waits = true;
	set_current_state(TASK_INTERRUPTIBLE);
	kevent_limit_uncount(l, m);
	list_add_tail(&m->link, &l->parked);
	l->nr_parked++;
	return KEVENT_LIMIT_PARKED;
}

/* The member that is parked longest is to look, unless it has. It wakes the next one. */
static void kevent_limit_look_next(struct kevent_limit *l)
{
	struct kevent_member *m;

	m = list_first_entry_or_null(&l->parked, struct kevent_member, link);
	if (m && m->looks != l->looks)
		wake_up_process(m->task);
}

/* The current thread was parked and is awake, maybe for another reason. */
void kevent_limit_unparked(struct kevent_member *m)
{
	struct kevent_limit *l = m->limit;

	guard(raw_spinlock_irq)(&l->lock);
	if (!list_empty(&m->link))
		kevent_limit_unpark(l, m);
	kevent_limit_look_next(l);
}

/* The wait of the current thread ends, whatever runs. */
void kevent_limit_go_on(struct kevent_member *m)
{
	guard(raw_spinlock_irq)(&m->limit->lock);
	kevent_limit_count(m->limit, m);
	m->requested = false;
	m->waits = false;
}

/* The current thread is about to sleep among the consumers. */
void kevent_limit_rest(struct kevent_member *m)
{
	struct kevent_limit *l = m->limit;

	m->waits = true;
	guard(raw_spinlock_irq)(&l->lock);
	kevent_limit_uncount(l, m);
}

/* End the wait of a member that is parked. @l may be NULL. Returns false if none is parked. */
bool kevent_limit_request(struct kevent_limit *l)
{
	if (!l)
		return false;
	guard(raw_spinlock_irqsave)(&l->lock);
	return kevent_limit_release(l, true);
}

/* Do as many members run as may, and is one parked? */
bool kevent_limit_is_kept(struct kevent_limit *l)
{
	guard(raw_spinlock_irqsave)(&l->lock);
	return l->nr_parked && l->running >= l->max;
}

/* There is one more job for members that serve. */
void kevent_limit_add_job(struct kevent_limit *l)
{
	lockdep_assert_held(&l->lock);

	l->jobs++;
	kevent_limit_let_go(l);
}

/* There is one less. If a member goes on for each of them, one does so for nothing. */
void kevent_limit_del_job(struct kevent_limit *l)
{
	lockdep_assert_held(&l->lock);

	if (l->jobs)
		l->jobs--;
}

/*
 * Members that are parked are to look: whether their descriptors are still there, or whether
 * each wait ends. @l may be NULL.
 */
void kevent_limit_look(struct kevent_limit *l)
{
	if (!l)
		return;
	/* One that comes to the lock later sees what the caller has done before. */
	guard(raw_spinlock_irq)(&l->lock);
	l->looks++;
	kevent_limit_look_next(l);
}

/* For fdinfo; @l may be NULL. */
void kevent_limit_show(struct seq_file *m, struct kevent_limit *l)
{
	if (!l)
		return;
	/* Printing takes no lock. */
	guard(raw_spinlock_irq)(&l->lock);
	/* There may be no memory for the first member. */
	if (!l->max)
		return;
	seq_printf(m, "kevent-max-running:\t%u\n", l->max);
	seq_printf(m, "kevent-running:\t%u\n", l->running);
	seq_printf(m, "kevent-parked:\t%u\n", l->nr_parked);
}

#ifdef CONFIG_KEVENT_AIO

/* The current thread exits, or executes a program. */
void __kevent_leave_limit(void)
{
	kevent_limit_leave(NULL);
}

/* The current task, which is a member, blocks. */
void kevent_server_sleeping(struct task_struct *task)
{
	struct kevent_member *m = task->worker_private;
	struct kevent_limit *l = m->limit;

	if (m->waits)
		return;
	guard(raw_spinlock_irq)(&l->lock);
	kevent_limit_uncount(l, m);
}

/* It goes on, and does not wait for others: what blocked may be a lock that they want. */
void kevent_server_running(struct task_struct *task)
{
	struct kevent_member *m = task->worker_private;
	struct kevent_limit *l = m->limit;

	if (m->waits)
		return;
	guard(raw_spinlock_irq)(&l->lock);
	kevent_limit_count(l, m);
}

#endif /* CONFIG_KEVENT_AIO */
