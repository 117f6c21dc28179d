// SPDX-License-Identifier: GPL-2.0
/*
 * Futex words: watches that wait like a thread in FUTEX_WAIT
 *
 * A watch has a struct futex_q with a wake callback of its own, as io_uring's futex
 * operations do. FUTEX_WAKE calls it under the lock of the hash bucket, which is above
 * ready_lock. The callback reports first and unqueues last: from then on futex_unqueue(),
 * by which a remover makes sure that no callback runs, does not take the lock of the
 * bucket, and the watch may be freed.
 *
 * Arming reads user memory, so it is done where it may fault: by attach(), and for MODIFY
 * by modify_unlocked(), with the watch claimed. A second MODIFY fails with -EBUSY. A remover
 * does not wait for the task that arms. That task joins the futex and sets "armed" under
 * ready_lock, unless the watch is dead. detach() of a dead watch reads "armed" under the
 * same lock, so no watch joins after that. The task that clears "armed" calls
 * futex_unqueue().
 *
 * A wake-up must not be lost with a watch. "woken" is a FUTEX_WAKE that went to the watch
 * and has not reached user memory. The function that clears it without delivery passes it
 * on to waiters with the same key: that is detach(), or ev_futex_rearm() of a watch that is
 * disabled or has died. The callback does not get the bits of FUTEX_WAKE_BITSET.
 * futex_pass_on() goes through the waiters in their order and wakes each that has a bit
 * none of the woken ones so far has. The waiter that the wake-up would have found is
 * always among them, and a waiter for any bit is the last.
 *
 * The key of a private futex is an address and a struct mm_struct. The queue keeps its
 * own from being reused, with mmgrab(), and each watch in another address space keeps that,
 * and is charged for what may be left of it. A requeue replaces the key. Keys of files need
 * no reference, their number is never used again. From a private word only the same process
 * can requeue. From a word in a file another process can, to a word of its own memory:
 * futex_requeue() wakes waiters without a task instead.
 *
 * FUTEX_WAKE walks all waiters of a hash bucket, of whatever word and process, and a requeue
 * can bring all that a user has there. So a watch is charged as the stack of a thread that
 * waits: by default a user has fewer watches than RLIMIT_NPROC allows threads.
 */

#include <linux/cleanup.h>
#include <linux/sched/mm.h>
#include <linux/thread_info.h>

/* As io_uring/futex.c does */
#include "../../kernel/futex/futex.h"

#include "../core/source.h"

/**
 * struct kevent_futex - a watch that waits for a futex
 * @kk:		the watch, found by the address of the word
 * @mm:		I: the address space of that, so that the key of a private futex is not
 *		that of another one. Held by the queue if it is the queue's, else by the
 *		watch, which is charged KEVENT_MM_BYTES for it
 * @q:		what FUTEX_WAKE finds
 * @armed:	R: @q was queued, and futex_unqueue() is due
 * @woken:	R: a FUTEX_WAKE was spent on the watch and is not delivered yet
 *
 * Lock order: lock of the hash bucket > ready_lock. The task that clears @armed calls
 * futex_unqueue(). While @armed is set or @woken is, @q.key does not change but
 * by a requeue. A requeue does not bring in an address space other than @mm: see
 * requeue_loses_mm() in kernel/futex/requeue.c.
 */
struct kevent_futex {
	struct kevent_keyed	kk;
	struct mm_struct	*mm;
	struct futex_q		q;
	bool			armed;
	bool			woken;
};

#define to_futex(watch)	container_of(watch, struct kevent_futex, kk.ke)

/*
 * Called by FUTEX_WAKE and the like under the lock of the hash bucket. A wake-up
 * that comes while the watch is disarmed is kept for MODIFY.
 */
static void ev_futex_wake(struct wake_q_head *wake_q, struct futex_q *fq)
{
	struct kevent_futex *kf = container_of(fq, struct kevent_futex, q);
	struct kevent *ke = &kf->kk.ke;

	scoped_guard(kevent_queue, ke->queue) {
		kf->woken = true;
		kevent_ready_locked(ke, KEVENT_FUTEX_WAKE);
	}
	/* Last: futex_unqueue() does not wait for us from here on. */
	__futex_wake_mark(fq);
}

/* Join the futex, unless the watch died. The lock of @hb is held. */
static void ev_futex_queue(struct kevent_futex *kf,
			   struct futex_hash_bucket *hb)
	__releases(&hb->lock)
{
	struct kevent *ke = &kf->kk.ke;

	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	if (kevent_is_dead(ke)) {
		futex_q_unlock(hb);
		__release(&hb->lock);
		return;
	}
	kf->armed = true;
	futex_queue(&kf->q, hb, NULL);
}

/* May fault. The conditions that hold, or -errno */
static int ev_futex_arm(struct kevent_futex *kf, const struct ukevent *uk)
{
	unsigned int flags = FLAGS_SIZE_32;
	struct futex_hash_bucket *hb;
	int err;

	if (!(uk->event & KEVENT_FUTEX_PRIVATE))
		flags |= FLAGS_SHARED;
	kf->q = futex_q_init;
	kf->q.wake = ev_futex_wake;
	err = futex_wait_setup(u64_to_user_ptr(kf->kk.id), uk->ret_data[0],
			       flags, &kf->q, &hb);
	if (err == -EWOULDBLOCK)
		return KEVENT_FUTEX_WAKE;
	if (err)
		return err;
	__acquire(&hb->lock);
	ev_futex_queue(kf, hb);
	return 0;
}

static void ev_futex_leave(struct kevent_futex *kf)
{
	bool armed;

	scoped_guard(spinlock_irqsave, &kf->kk.ke.queue->ready_lock) {
		armed = kf->armed;
		kf->armed = false;
	}
	if (armed)
		futex_unqueue(&kf->q);
}

static int ev_futex_check(const struct ukevent *uk, struct file *file)
{
	if (uk->event & ~(KEVENT_FUTEX_WAKE | KEVENT_FUTEX_PRIVATE) ||
	    !(uk->event & KEVENT_FUTEX_WAKE) || uk->ret_data[1])
		return -EINVAL;
	return IS_ALIGNED(uk->id.raw_u64, sizeof(u32)) ? 0 : -EINVAL;
}

static int ev_futex_attach(struct kevent *ke, const struct ukevent *uk,
			   struct file *file)
{
	struct kevent_futex *kf = to_futex(ke);
	struct kevent_queue *q = ke->queue;
	int err;

	memset_after(kf, 0, kk);
	if (current->mm != q->home.mm) {
		if (!kevent_charge(q->owner, KEVENT_MM_BYTES))
			return -ENOSPC;
		mmgrab(current->mm);
	}
	kf->mm = current->mm;
	err = kevent_key_link(to_kevent_keyed(ke));
	if (err || uk->req_flags & KEVENT_REQ_DISABLED)
		return err;
	return ev_futex_arm(kf, uk);
}

static void ev_futex_detach(struct kevent *ke)
{
	struct kevent_futex *kf = to_futex(ke);
	bool woken;

	ev_futex_leave(kf);
	scoped_guard(spinlock_irqsave, &ke->queue->ready_lock) {
		woken = kf->woken;
		kf->woken = false;
	}
	if (woken)
		futex_pass_on(&kf->q.key);
}

static void ev_futex_destroy(struct kevent *ke)
{
	struct mm_struct *mm = to_futex(ke)->mm;

	if (!mm || mm == ke->queue->home.mm)
		return;
	mmdrop(mm);
	kevent_uncharge(ke->queue->owner, KEVENT_MM_BYTES);
}

/*
 * A wake-up that is not delivered yet stays and needs no futex; a disabled
 * watch gives it away, and so does one that died: detach() may have come too
 * early to see it.
 */
static int ev_futex_rearm(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_futex *kf = to_futex(ke);
	bool woken, idle;

	if (kf->mm != current->mm)
		return -EXDEV;
	ev_futex_leave(kf);
	scoped_guard(spinlock_irqsave, &ke->queue->ready_lock) {
		woken = kf->woken;
		idle = kevent_is_dead(ke) ||
		       uk->req_flags & KEVENT_REQ_DISABLED;
		if (woken && idle) {
			kf->woken = false;
			kevent_forget(ke);
		}
	}
	if (woken && idle)
		futex_pass_on(&kf->q.key);
	return woken || idle ? 0 : ev_futex_arm(kf, uk);
}

/* The watch stands for a waiter of the process, until that is gone. */
static int ev_futex_command(struct kevent *ke, u32 cmd, const struct ukevent *uk,
			    void **room)
{
	struct mm_struct *mm = to_futex(ke)->mm;

	return mm != current->mm && atomic_read(&mm->mm_users) ? -EPERM : 0;
}

static void ev_futex_fill(struct kevent *ke, struct ukevent *uk)
{
	uk->id.raw_u64 = to_futex(ke)->kk.id;
}

static void ev_futex_delivered(struct kevent *ke)
{
	to_futex(ke)->woken = false;
}

const struct kevent_source_ops kevent_futex_ops = {
	.name		= "futex",
	.flags		= KEVENT_SOURCE_ARMS,
	.size		= sizeof(struct kevent_futex),
	/* Not kept: a limit, see above. */
	.pins		= THREAD_SIZE,
	.marks		= KEVENT_FUTEX_WAKE,
	.check		= ev_futex_check,
	.attach		= ev_futex_attach,
	.detach		= ev_futex_detach,
	.destroy	= ev_futex_destroy,
	.command	= ev_futex_command,
	.modify_unlocked = ev_futex_rearm,
	.fill		= ev_futex_fill,
	.delivered	= ev_futex_delivered,
};
