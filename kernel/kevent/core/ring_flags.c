// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_RING_MORE: how consumers that only read memory learn of misses
 *
 * A miss that finds nobody asleep sets the flag, once, when the ready list was empty. Only
 * calls move misses to the ring. But a miss is often made where the ring is not: by
 * another process, by an interrupt of one, on an idle CPU. Then one task_work makes the
 * thread that waited for the ring last store the flag on its way to user mode, with
 * TWA_RESUME: a thread that is in user mode on another CPU gets an interrupt. A call that
 * leaves events behind sets the flag too, and one that leaves none clears it.
 *
 * A miss that wakes a consumer sets no flag. So kevent_more_left() sets it when that
 * consumer does not come to collect, or not soon: it was asked to return, it finds the
 * ring full, it has to wait for a page, or it would have to park and its wait ends. A
 * consumer without the ring leaves the flag to the thread that waited last. While busy
 * polling keeps a thread in kevent_wait(), the thread sees the ready list itself, and no
 * interrupt disturbs it: a miss that finds busy.spinning above 0 sets no flag. The thread
 * lowers the count before it takes ready_lock. A miss between the two sets the flag for
 * nothing, and one before them is on the ready list that the thread reads.
 *
 * The thread that has the task_work may block in another call before it comes back to user
 * mode. kevent_follow() notes when another thread waits after it (notify.elsewhere), and a
 * miss then has a worker store the flag, in the address space of that one
 * (kevent_more_worker()). The task_work is not moved: to find it task_work_cancel() would
 * walk all work of its thread with interrupts off, such as 100,000 files that are closed.
 * Only the task_work itself says that it is not queued any more, before it reads the ready
 * list.
 */

#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

#include "ring_mapping.h"
#include "testpoint.h"

/* Returns -EFAULT when the ring at @where needs to be faulted in first. */
static int kevent_more_store(struct kevent_queue *q, struct kring *where)
{
	int err = 0;

	guard(spinlock_irqsave)(&q->ready_lock);
	if (!list_empty(&q->ready) && kevent_ring_here(q))
		err = kring_set_flags(&q->ring,
				      q->ring.flags | KEVENT_RING_MORE);
	*where = q->ring;
	return err;
}

/*
 * Faults memory in only where that does not wait, as after fork(). Returns what
 * kring_fault_in_flags() does.
 */
static int kevent_more_try(struct kevent_queue *q)
{
	struct kring where;
	int err;

	if (!kevent_more_store(q, &where))
		return 0;
	err = kring_fault_in_flags(&where);
	if (err)
		return err;
	kevent_testpoint(q, KEVENT_TESTPOINT_MORE_FAULT);
	kevent_more_store(q, &where);
	return 0;
}

/*
 * In the thread that was the consumer, about to return to user mode from any call. The
 * next miss may queue it again at once: it looks at the ready list only after that.
 */
static void kevent_more_work(struct callback_head *work)
{
	struct kevent_queue *q = container_of(work, struct kevent_queue,
					      notify.work);

	kevent_testpoint(q, KEVENT_TESTPOINT_MORE_WORK);
	scoped_guard(spinlock_irqsave, &q->ready_lock) {
		WARN_ON_ONCE(!q->notify.queued);
		q->notify.queued = false;
	}
	kevent_more_try(q);
	kevent_testpoint(q, KEVENT_TESTPOINT_MORE_DONE);
	kevent_queue_put(q);
}

/* The address space of the thread that waited last, with a reference; or NULL */
static struct mm_struct *kevent_consumer_mm(struct kevent_queue *q)
{
	struct task_struct *task;
	struct mm_struct *mm;

	scoped_guard(spinlock_irqsave, &q->ready_lock)
		task = get_pid_task(q->notify.consumer, PIDTYPE_PID);
	if (!task)
		return NULL;
	mm = get_task_mm(task);
	put_task_struct(task);
	return mm;
}

/* Returns whether it is to be tried again. */
static bool kevent_more_in(struct kevent_queue *q, struct mm_struct *mm)
{
	int err;

	if (!mm)
		return false;
	kthread_use_mm(mm);
	err = kevent_more_try(q);
	kthread_unuse_mm(mm);
	mmput(mm);
	return err == -EAGAIN;
}

/* The longest pause between two tries: a user may have many queues. */
#define KEVENT_MORE_PAUSE	HZ

/*
 * One work item of a queue is enough for any number of threads. It waits for nothing that a
 * user can hold up: while the address space is locked it comes back later, after pauses twice
 * as long.
 */
static void kevent_more_worker(struct work_struct *work)
{
	struct kevent_queue *q = container_of(work, struct kevent_queue,
					      notify.worker.work);

	if (kevent_more_in(q, kevent_consumer_mm(q))) {
		q->notify.pause = clamp(2 * q->notify.pause, 1UL, KEVENT_MORE_PAUSE);
		/* The reference is for the next time, unless a miss has taken another. */
		if (queue_delayed_work(host_works, &q->notify.worker,
				       q->notify.pause))
			return;
	} else {
		q->notify.pause = 0;
	}
	kevent_queue_put(q);
}

static void kevent_more_by_worker(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (!q->notify.worker.work.func)
		INIT_DELAYED_WORK(&q->notify.worker, kevent_more_worker);
	/* It takes the lock before it drops the reference. */
	if (queue_delayed_work(host_works, &q->notify.worker, 0))
		refcount_inc(&q->refs);
}

/*
 * A queue has one piece of work under way at most. It may outlive the queue's file
 * until the thread returns to user mode, so a thread can keep as many queues as
 * it had created or waited for: its descriptors limit that.
 */
static void kevent_more_later(struct kevent_queue *q)
{
	struct task_struct *task;

	lockdep_assert_held(&q->ready_lock);

	if (q->notify.queued) {
		kevent_more_by_worker(q);
		return;
	}
	guard(rcu)();
	task = pid_task(q->notify.consumer, PIDTYPE_PID);
	if (!task)
		return;
	init_task_work(&q->notify.work, kevent_more_work);
	q->notify.queued = !task_work_add(task, &q->notify.work, TWA_RESUME);
	if (!q->notify.queued)
		return;
	q->notify.elsewhere = false;
	refcount_inc(&q->refs);
}

/*
 * Something has become ready, and no consumer is on its way: say so in the ring. Called for
 * the first watch on the ready list. Does not try memory that a wake-up has just found
 * away: each fault takes as long as a dozen stores, with interrupts off. Any context.
 */
void kevent_more(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (!q->ring.size || q->ring.flags & KEVENT_RING_MORE ||
	    (q->notify.queued && !q->notify.elsewhere))
		return;
	if (q->ring.away || !kevent_ring_here(q) ||
	    kring_set_flags(&q->ring, q->ring.flags | KEVENT_RING_MORE))
		kevent_more_later(q);
}

/*
 * A consumer leaves watches on the ready list, or is held up. It may have been woken for
 * them. Unless another one is on its way, the ring says that they are there.
 */
void kevent_more_left(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (!list_empty(&q->ready) && !q->nr_woken)
		kevent_more(q);
}

/*
 * A consumer does not take what it may have been woken for: a watch that is listed, or an
 * entry in the ring, which only those can take whose entries are there.
 */
void kevent_pass_on(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	if (q->nr_listed)
		kevent_wake(q, KEVENT_ANY | KEVENT_RECHECK);
	if (kevent_unread(q))
		kevent_wake(q, KEVENT_OF_RING);
	kevent_more_left(q);
}

/*
 * A process has closed its descriptor, maybe by being killed. Several of its threads may
 * have been woken for events that they did not take. Who takes one that is listed wakes
 * another consumer for the rest. Each entry in the ring has a consumer, as far as some
 * sleep. Process context, no locks held.
 */
void kevent_wake_left(struct kevent_queue *q)
{
	unsigned long flags;
	u64 unread;

	spin_lock_irqsave(&q->ready_lock, flags);
	/* Programs take entries without a call. */
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	kevent_pass_on(q);
	unread = kevent_unread(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (unread > 1)
		kevent_wake_others(q, unread - 1);
}

/*
 * Make the memory of @to, the ring or a buffer, writable. Called without any lock, since
 * the fault may never end. Before it, wakes a consumer for what is ready. Returns 0,
 * -EFAULT, or -EINTR on a fatal signal.
 */
int kevent_ring_fault_in(struct kevent_queue *q, const struct kring *to)
{
	struct kring where;
	unsigned long flags;
	bool here;
	int err;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (!list_empty(&q->ready)) {
		kevent_wake(q, to->user ? KEVENT_ELSEWHERE : KEVENT_ANY);
		kevent_more_left(q);
	}
	here = !to->user || kevent_ring_back(q);
	where = *to;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (!here)
		return -EFAULT;
	kevent_testpoint(q, KEVENT_TESTPOINT_FAULT);
	err = kring_fault_in(&where);
	kevent_testpoint(q, KEVENT_TESTPOINT_FAULTED);
	return err;
}

/* kevent_follow() behind another thread */
struct pid *__kevent_follow(struct kevent_queue *q)
{
	struct pid *last = q->notify.consumer;

	lockdep_assert_held(&q->ready_lock);

	q->notify.consumer = get_pid(task_pid(current));
	q->notify.elsewhere = true;
	return last;
}
