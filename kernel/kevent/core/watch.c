// SPDX-License-Identifier: GPL-2.0
/*
 * Watches: how they come, change and go
 */

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <trace/events/kevent.h>

#include "../host.h"
#include "entry.h"
#include "lookup.h"
#include "queue.h"
#include "quota.h"
#include "source_ops.h"
#include "state.h"
#include "testpoint.h"
#include "wakeup_source.h"
#include "watch.h"
#include "watch_memory.h"

#define KEVENT_REQ_ALL							\
	(KEVENT_REQ_ONESHOT | KEVENT_REQ_WAKEUP_ALL | KEVENT_REQ_ET |	\
	 KEVENT_REQ_LAST_CHECK | KEVENT_REQ_HAND_BACK |			\
	 KEVENT_REQ_READY | KEVENT_REQ_DISPATCH | KEVENT_REQ_DISABLED |	\
	 KEVENT_REQ_STAY_AWAKE)

/* Release ready_lock after kevent_release(), which has returned @last. */
static void kevent_finish(struct kevent *ke, bool last)
	__releases(&ke->queue->ready_lock)
{
	kevent_unlock_irq(ke->queue);
	if (!last)
		return;
	if (ke->state & KE_DETACHED)
		kevent_free(ke);
	else
		kevent_bury(ke, false);
}

void kevent_fill(struct kevent *ke, struct ukevent *uk)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	*uk = kevent_entry(ke, ke->ready, kevent_amount(ke, ke->ready));
	uk->req_flags = kevent_req_flags(ke);
	if (kevent_is_broken(ke)) {
		uk->ret_flags |= KEVENT_RET_BROKEN;
		uk->ret_data[1] = -EIDRM;
	}
	if (ops->fill)
		ops->fill(ke, uk);
}

static int kevent_check(struct kevent_queue *q,
			const struct kevent_source_ops *ops,
			const struct ukevent *uk, struct file *file)
{
	int err;

	if (uk->req_flags & ~(KEVENT_REQ_ALL | lower_16_bits(ops->flags)))
		return -EINVAL;
	err = ops->check(uk, file);
	if (unlikely(uk->req_flags & KEVENT_REQ_STAY_AWAKE) && !err)
		err = kevent_awake_prepare(q);
	return err;
}

/*
 * A new watch, claimed and in the index, charged to the user. attach() sets the members that its
 * source adds: nobody else reads them before.
 */
static struct kevent *kevent_alloc(struct kevent_queue *q,
				   const struct kevent_source_ops *ops,
				   const struct ukevent *uk, struct file *file)
{
	struct kevent *ke;

	if (!kevent_charge(q->owner, kevent_costs[uk->type]))
		return ERR_PTR(-ENOSPC);
	ke = kmem_cache_alloc(kevent_caches[uk->type], GFP_KERNEL);
	if (!ke)
		goto uncharge;
	*ke = (struct kevent) {
		.queue		= q,
		.link		= LIST_HEAD_INIT(ke->link),
		.user		= uk->ptr,
		.event		= uk->event,
		.id_low		= uk->id.raw[0],
		.state		= kevent_state_new(uk->req_flags),
		.req_flags	= uk->req_flags,
		.type		= uk->type,
	};
	if (ops->flags & KEVENT_SOURCE_FILE) {
		to_kevent_file(ke)->file = file;
		to_kevent_file(ke)->next = NULL;
		to_kevent_file(ke)->table = current->files;
	} else {
		RB_CLEAR_NODE(&to_kevent_keyed(ke)->node);
		to_kevent_keyed(ke)->id = kevent_key_of(ops, uk);
	}
	if (kevent_index_insert(&q->watches, ke))
		goto free;
	refcount_inc(&q->refs);
	return ke;

free:
	kmem_cache_free(kevent_caches[uk->type], ke);
uncharge:
	kevent_uncharge(q->owner, kevent_costs[uk->type]);
	return ERR_PTR(-ENOMEM);
}

/* Have a source do a command, or say that it may be done: see its command(). */
static int kevent_command(struct kevent *ke, u32 cmd, const struct ukevent *uk,
			  void **room)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	if (kevent_is_dead(ke))
		return -ENOENT;
	return ops->command ? ops->command(ke, cmd, uk, room) : 0;
}

/* READY of a watch. The caller reports it if this returns 0, and not if it returns -errno. */
static int kevent_mark_locked(struct kevent *ke, const struct ukevent *uk,
			      void **room)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	int done = kevent_command(ke, KEVENT_CTL_READY, uk, room);
	u32 mask = ke->event & ops->marks & (uk->event ?: U32_MAX);

	if (done)
		return min(done, 0);
	if (ops->collect)
		kevent_doubt(ke);
	else if (!mask)
		return -EINVAL;
	ke->ready |= mask;
	return 0;
}

/* ADD and MODIFY with KEVENT_REQ_READY. Returns whether there is something to report. */
static bool kevent_mark_new(struct kevent *ke, const struct ukevent *uk)
{
	void *room = NULL;

	return !kevent_mark_locked(ke, uk, &room);
}

/*
 * attach() has returned the conditions that hold, or -errno. Returns true when they are
 * handed back in @uk, and the watch stays claimed for that. Otherwise the caller releases it.
 */
static bool kevent_attached(struct kevent *ke, int mask, struct ukevent *uk)
{
	u16 how = ke->req_flags & (KEVENT_REQ_HAND_BACK | KEVENT_REQ_READY);

	if (mask < 0 || kevent_is_dead(ke))
		return false;
	/* MODIFY may not want it any more. With collect() a poll finds that. */
	if (!kevent_source_of(ke)->collect)
		mask &= ke->event;
	if (unlikely(how & KEVENT_REQ_READY) && kevent_mark_new(ke, uk))
		kevent_activate_pending(ke);
	if (!mask || !kevent_is_armed(ke) || how != KEVENT_REQ_HAND_BACK)
		return false;
	ke->ready |= mask;
	kevent_fill(ke, uk);
	kevent_claim(ke, KEVENT_TO_COPY);
	return true;
}

/* Would attach() fail with -EEXIST? Looks before memory is taken. */
static bool kevent_is_there(struct kevent_queue *q, const struct ukevent *uk,
			    struct file *file)
{
	const struct kevent *ke;

	guard(rcu)();
	if (!host_watches(file))
		return false;
	ke = kevent_file_find(q, uk, file);
	return ke && kevent_has_key(ke);
}

/*
 * Add a watch. @f is what the request's descriptor refers to, of fdget(), for a source with a
 * file, and pinned until after kevent_add_end(). Returns NULL, or an ERR_PTR(), or the watch when
 * its event is handed back at once in @uk: the caller must call kevent_add_end(), and may sleep
 * and fault before that.
 */
struct kevent *kevent_add(struct kevent_queue *q,
			  const struct kevent_source_ops *ops,
			  struct ukevent *uk, struct fd f)
{
	struct file *file = fd_file(f);
	struct kevent *ke;
	int mask;

	mask = kevent_check(q, ops, uk, file);
	if (mask)
		return ERR_PTR(mask);
	/* With MANY the other watch may be of a program that is gone: attach() finds that out. */
	if ((ops->flags & (KEVENT_SOURCE_FILE | KEVENT_SOURCE_MANY)) == KEVENT_SOURCE_FILE &&
	    kevent_is_there(q, uk, file))
		return ERR_PTR(-EEXIST);
	ke = kevent_alloc(q, ops, uk, file);
	if (IS_ERR(ke))
		return ke;
	kevent_testpoint(q, KEVENT_TESTPOINT_ATTACH);
	mask = ops->attach(ke, uk, file);
	/*
	 * Where fdget() took no reference, no other task has the file table: nobody has closed
	 * the descriptor.
	 */
	if (mask >= 0 && host_fd_counted(f) && !kevent_is_current(ke))
		mask = -EBADF;
	kevent_testpoint(q, KEVENT_TESTPOINT_ATTACHED);

	spin_lock_irq(&q->ready_lock);
	if (mask >= 0)
		trace_kevent_add(ke, mask, 1, q->ring.size);
	if (!mask && kevent_try_release(ke)) {
		spin_unlock_irq(&q->ready_lock);
		return NULL;
	}
	if (kevent_attached(ke, mask, uk)) {
		kevent_unlock_irq(q);
		return ke;
	}
	kevent_finish(ke, kevent_release(ke, KEVENT_TO_ATTACH, mask));
	return mask < 0 ? ERR_PTR(mask) : NULL;
}

/* The event of a watch was copied to user memory, or is queued if @err says that it was not. */
void kevent_add_end(struct kevent *ke, int err)
{
	struct kevent_queue *q = ke->queue;

	kevent_note_taker(q);
	kevent_testpoint(q, KEVENT_TESTPOINT_HANDED);
	spin_lock_irq(&q->ready_lock);
	kevent_finish(ke, kevent_release(ke, KEVENT_TO_COPY, err));
}

static void kevent_modify_locked(struct kevent *ke,
				 const struct kevent_source_ops *ops,
				 const struct ukevent *uk)
{
	bool same = ops->flags & KEVENT_SOURCE_LEVEL && ke->event == uk->event;
	bool report;

	ke->user = uk->ptr;
	/* Wake-ups look at these without ready_lock. */
	WRITE_ONCE(ke->event, uk->event);
	WRITE_ONCE(ke->req_flags, uk->req_flags);
	kevent_set_mode(ke, uk->req_flags);
	ke->stored = 0;
	if (ops->modified && !same)
		ops->modified(ke, uk);
	kevent_testpoint(ke->queue, KEVENT_TESTPOINT_MODIFIED);
	report = kevent_restart(ke);
	if (unlikely(uk->req_flags & KEVENT_REQ_READY))
		report |= kevent_mark_new(ke, uk);
	if (ops->collect) {
		ke->ready = 0;
		/*
		 * A wake-up stores data and then asks what the watch wants. Here that
		 * is stored before the data is looked at, now or by the next consumer
		 * that gets ready_lock: one of the two sees the other. Pairs with the
		 * callbacks of wait queues in sources/file_wait.c and with kevent_sock_readable().
		 */
		smp_mb();
		/* An idle watch is polled here, if that takes no more than the lock. */
		report = ke->state & ~KE_AWAKE || ke->req_flags & KEVENT_REQ_READY ||
			 ops->collect(ke, true);
	}
	if (report)
		kevent_activate_pending(ke);
}

/* The source may sleep to arm a watch that is modified: it is claimed until then. */
static int kevent_rearm(struct kevent *ke, const struct ukevent *uk)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	int mask = ops->modify_unlocked(ke, uk);
	struct kevent_queue *q = ke->queue;
	bool last;

	kevent_testpoint(q, KEVENT_TESTPOINT_REARMED);
	spin_lock_irq(&q->ready_lock);
	last = kevent_release(ke, KEVENT_TO_ARM, mask);
	if (kevent_is_dead(ke))
		mask = -ENOENT;
	else if (mask >= 0)
		kevent_modify_locked(ke, ops, uk);
	kevent_finish(ke, last);
	return min(mask, 0);
}

/**
 * kevent_modify - change what a watch is interested in, its mode and its cookie
 * @q: the queue
 * @ops: its source
 * @uk: names the watch
 * @file: as for kevent_add()
 *
 * Arms it again, and has its condition checked by the next collection, or by the source at once.
 * If modify_unlocked() fails, the watch may be left disarmed.
 * Return: 0, -ENOENT, -EPERM when it is another process's, -EBUSY when another
 * call arms it, or what the source's check() and modify_unlocked() say: -EINVAL, -EACCES,
 * -ENOTSOCK, -EFAULT, -EXDEV.
 */
int kevent_modify(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file)
{
	bool arms = ops->flags & KEVENT_SOURCE_ARMS, withdraws;
	struct kevent *ke;
	int err;

	err = kevent_check(q, ops, uk, file);
	if (err)
		return err;
	err = -ENOENT;
	rcu_read_lock();
	ke = kevent_find(ops, q, uk, file);
	if (ke) {
		kevent_testpoint(q, KEVENT_TESTPOINT_FOUND);
		spin_lock_irq(&q->ready_lock);
		withdraws = ke->event & ~uk->event ||
			    uk->req_flags & KEVENT_REQ_DISABLED;
		err = kevent_command(ke, KEVENT_CTL_MODIFY, uk, NULL);
		if (!err && !arms)
			kevent_modify_locked(ke, ops, uk);
		else if (!err && kevent_is_claimed(ke))
			err = -EBUSY;
		else if (!err)
			kevent_claim(ke, KEVENT_TO_ARM);
		kevent_unlock_irq(q);
		kevent_testpoint(q, KEVENT_TESTPOINT_HAND_ON);
		if (withdraws && !err && !arms && ops->modify_unlocked)
			ops->modify_unlocked(ke, uk);
	}
	rcu_read_unlock();
	return !err && arms ? kevent_rearm(ke, uk) : err;
}

static int kevent_mark_once(struct kevent_queue *q,
			    const struct kevent_source_ops *ops,
			    const struct ukevent *uk, struct file *file,
			    void **room)
{
	struct kevent *ke;
	int err;

	guard(rcu)();
	ke = kevent_find(ops, q, uk, file);
	if (!ke)
		return -ENOENT;
	kevent_testpoint(q, KEVENT_TESTPOINT_FOUND);
	guard(kevent_queue)(q);
	err = kevent_mark_locked(ke, uk, room);
	if (!err)
		kevent_activate_pending(ke);
	return err;
}

/**
 * kevent_mark - mark a watch ready from user space
 * @q: the queue
 * @ops: its source
 * @uk: names the watch
 * @file: as for kevent_add()
 *
 * Return: 0, -ENOENT, -EPERM when it is another process's, -EINVAL when the request has no event
 * bit in common with the watch, -ENOMEM, or what the source's command() says: -EAGAIN.
 */
int kevent_mark(struct kevent_queue *q, const struct kevent_source_ops *ops,
		const struct ukevent *uk, struct file *file)
{
	void *room = NULL;
	int err;

	err = kevent_mark_once(q, ops, uk, file, &room);
	if (err == -ENOBUFS) {
		kevent_testpoint(q, KEVENT_TESTPOINT_ROOM);
		/* A full memory cgroup is an error, not a reason to kill. */
		room = kmalloc(KEVENT_MARK_BYTES,
			       GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL);
		if (!room)
			return -ENOMEM;
		err = kevent_mark_once(q, ops, uk, file, &room);
		kfree(room);
	}
	return err;
}

/* Removal: the four steps of types.h, for one watch or all of a queue */

/*
 * Step 4 of the removal of a watch, by the task that removes it or by the one that claimed it.
 * kevent_index_erase() frees the memory after a grace period.
 */
void kevent_free(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	struct kevent_queue *q = ke->queue;

	kevent_uncharge(q->owner, kevent_costs[ke->type]);
	if (ops->destroy)
		ops->destroy(ke);
	kevent_index_erase(&q->watches, ke);
	kevent_queue_put(q);
}

/*
 * Steps 2 to 4 of the removal of a watch. The caller killed it and has its object pinned;
 * if that is @held by kevent_hold(), undo it.
 */
void kevent_bury(struct kevent *ke, bool held)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	kevent_testpoint(ke->queue, KEVENT_TESTPOINT_KILLED);
	kevent_unlink(ke);
	if (ops->detach)
		ops->detach(ke);
	if (held)
		kevent_unhold_file(kevent_held_file(ke));
	kevent_testpoint(ke->queue, KEVENT_TESTPOINT_DETACHED);
	/*
	 * A dead watch is not claimed again. If the claim is seen as gone here, the task that
	 * had it may still hold ready_lock. The grace period of call_rcu() outlasts that.
	 */
	if (!kevent_is_claimed(ke) || !kevent_set_detached(ke))
		kevent_free(ke);
}

/* kevent_kill() without the lock, and kevent_hold() if @hold. The caller must bury it. */
bool kevent_kill_one(struct kevent *ke, bool hold)
{
	guard(spinlock_irqsave)(&ke->queue->ready_lock);
	if (!kevent_kill(ke))
		return false;
	if (hold)
		kevent_hold(ke);
	return true;
}

/**
 * kevent_remove - remove a watch, and drop its event that is still in the kernel
 * @q: the queue
 * @ops: its source
 * @uk: names the watch
 * @file: as for kevent_add()
 *
 * Return: 0, -ENOENT, -EPERM when it is another process's, or what the source's command() says:
 * -EALREADY.
 */
int kevent_remove(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file)
{
	struct kevent *ke;
	bool mine = false;
	int err = -ENOENT;

	rcu_read_lock();
	ke = kevent_find(ops, q, uk, file);
	if (ke) {
		kevent_testpoint(q, KEVENT_TESTPOINT_FOUND);
		spin_lock_irq(&q->ready_lock);
		err = kevent_command(ke, KEVENT_CTL_REMOVE, uk, NULL);
		mine = !err && kevent_kill(ke);
		kevent_unlock_irq(q);
	}
	rcu_read_unlock();
	if (mine)
		kevent_bury(ke, false);
	return min(err, 0);
}

/*
 * Remove the watches of a queue whose file is gone. A watch that another task removes at
 * the same time is left to that task, with the queue reference it holds.
 */
void kevent_remove_all(struct kevent_queue *q)
{
	struct kevent *ke;
	u32 index = 0;
	bool killed;

	for (;; index++) {
		scoped_guard(rcu) {
			ke = kevent_index_next(&q->watches, &index);
			if (!ke)
				return;
			kevent_testpoint(q, KEVENT_TESTPOINT_FOUND);
			killed = kevent_kill_one(ke, true);
		}
		if (killed)
			kevent_bury(ke, true);
		cond_resched();
	}
}
