// SPDX-License-Identifier: GPL-2.0
/*
 * Watches: how they come, change and go
 */

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/percpu_counter.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "kevent.h"

#define KEVENT_REQ_ALL							\
	(KEVENT_REQ_ONESHOT | KEVENT_REQ_WAKEUP_ALL | KEVENT_REQ_ET |	\
	 KEVENT_REQ_LAST_CHECK | KEVENT_REQ_ALWAYS_QUEUE |		\
	 KEVENT_REQ_READY | KEVENT_REQ_DISPATCH | KEVENT_REQ_DISABLED)

/* fs.kevent.max_user_bytes */
long kevent_max_user_bytes __read_mostly;

/* What a CPU may count for itself before it takes the lock of the counter */
#define KEVENT_CHARGE_BATCH	SZ_64K

static __always_inline bool __kevent_charge(struct kevent_queue *q,
					    size_t bytes)
{
	struct percpu_counter *sum = &q->owner->kevent_bytes;
	long limit = READ_ONCE(kevent_max_user_bytes);

#ifdef CONFIG_SMP
	return __percpu_counter_limited_add(sum, limit, bytes,
					    KEVENT_CHARGE_BATCH);
#else
	return percpu_counter_limited_add(sum, limit, bytes);
#endif
}

/**
 * kevent_charge - charge memory to the owner of a queue
 * @q: the queue
 * @bytes: how much
 *
 * For everything that a program can have the kernel keep, besides descriptors:
 * watches, what they pin, and occurrences that are not delivered yet. Any
 * context.
 *
 * Return: false over the limit, which the program is told as -ENOSPC.
 */
bool kevent_charge(struct kevent_queue *q, size_t bytes)
{
	return __kevent_charge(q, bytes);
}

static __always_inline void __kevent_uncharge(struct kevent_queue *q,
					      size_t bytes)
{
	percpu_counter_add_batch(&q->owner->kevent_bytes, -(s64)bytes,
				 KEVENT_CHARGE_BATCH);
}

/**
 * kevent_uncharge - undo kevent_charge()
 * @q: the queue
 * @bytes: how much
 */
void kevent_uncharge(struct kevent_queue *q, size_t bytes)
{
	__kevent_uncharge(q, bytes);
}

/*
 * Step 1 of the removal of a watch, see "Lifetime of a watch" in kevent.h.
 * Returns whether the caller is the one to go on with kevent_bury().
 */
bool kevent_kill(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DEAD)
		return false;
	ke->state |= KE_DEAD;
	kevent_dequeue(ke);
	return !(ke->state & KE_NEW);
}

/* Step 4. Nobody is busy with @ke, no callback and no lookup finds it. */
void kevent_free(struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	struct kevent_queue *q = ke->queue;

	kevent_index_erase(&q->watches, ke);
	__kevent_uncharge(q, kevent_source_cost(ke->type));
	if (ops->destroy)
		ops->destroy(ke);
	kfree_rcu(ke, rcu);
	kevent_queue_put(q);
}

/* Step 3. Returns whether a busy task takes over. */
static bool kevent_hand_over(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;
	unsigned long flags;
	bool busy;

	/*
	 * A dead watch does not become busy again. The task that was busy
	 * clears the bit under ready_lock, and kfree_rcu() waits for that.
	 */
	if (!(READ_ONCE(ke->state) & KE_BUSY))
		return false;
	spin_lock_irqsave(&q->ready_lock, flags);
	ke->state |= KE_DETACHED;
	busy = ke->state & KE_BUSY;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return busy;
}

/**
 * kevent_bury - steps 2 to 4 of the removal of a watch
 * @ke: the watch; the caller killed it and has its object pinned
 * @held: the object is pinned by hold(): undo that
 */
void kevent_bury(struct kevent *ke, bool held)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	ops->detach(ke);
	if (held && ops->unhold)
		ops->unhold(ke);
	if (!kevent_hand_over(ke))
		kevent_free(ke);
}

static int kevent_check(const struct kevent_source_ops *ops,
			const struct ukevent *uk, struct file *file)
{
	if (uk->req_flags & ~(KEVENT_REQ_ALL | ops->flags))
		return -EINVAL;
	if (ops->file && uk->id.raw[1])
		return -EINVAL;
	return ops->check(uk, file);
}

static void kevent_set(struct kevent *ke, const struct ukevent *uk)
{
	ke->user = uk->ptr;
	/* Wake-ups look at these without ready_lock. */
	WRITE_ONCE(ke->event, uk->event);
	WRITE_ONCE(ke->req_flags, uk->req_flags);
	if (uk->req_flags & KEVENT_REQ_DISABLED)
		ke->state |= KE_DISARMED;
	else
		ke->state &= ~KE_DISARMED;
}

/**
 * kevent_stash_init - prepare to allocate memory for watches at once
 * @stash: an empty one
 * @type: their type
 * @nr: how many will be added, up to %KEVENT_CTL_BATCH
 *
 * kevent_stash_drop() must follow.
 */
void kevent_stash_init(struct kevent_stash *stash, u32 type, u32 nr)
{
	const struct kevent_source_ops *ops = kevent_source(type);

	stash->nr = 0;
	stash->want = nr > 1 ? nr : 0;
	stash->cache = IS_ERR(ops) ? NULL : *ops->cache;
}

/**
 * kevent_stash_drop - free what is left
 * @stash: from kevent_stash_init()
 */
void kevent_stash_drop(struct kevent_stash *stash)
{
	if (stash->nr)
		kmem_cache_free_bulk(stash->cache, stash->nr, stash->ke);
}

static struct kevent *kevent_zalloc(struct kmem_cache *cache,
				    struct kevent_stash *stash)
{
	if (!stash || stash->cache != cache)
		return kmem_cache_zalloc(cache, GFP_KERNEL);
	if (!stash->nr && stash->want)
		stash->nr = kmem_cache_alloc_bulk(cache,
						  GFP_KERNEL | __GFP_ZERO,
						  stash->want, stash->ke);
	stash->want = 0;
	if (stash->nr)
		return stash->ke[--stash->nr];
	return kmem_cache_zalloc(cache, GFP_KERNEL);
}

/* A new watch, busy and in the index, charged to the user. */
static struct kevent *kevent_alloc(struct kevent_queue *q,
				   const struct kevent_source_ops *ops,
				   const struct ukevent *uk,
				   struct kevent_stash *stash)
{
	u32 cost = kevent_source_cost(uk->type);
	struct kevent *ke;

	if (!__kevent_charge(q, cost))
		return ERR_PTR(-ENOSPC);
	ke = kevent_zalloc(*ops->cache, stash);
	if (!ke)
		goto uncharge;
	INIT_LIST_HEAD(&ke->link);
	ke->queue = q;
	ke->type = uk->type;
	ke->id_low = uk->id.raw[0];
	ke->state = KE_BUSY | KE_NEW;
	kevent_set(ke, uk);
	if (kevent_index_insert(&q->watches, ke))
		goto free;
	refcount_inc(&q->refs);
	return ke;

free:
	kmem_cache_free(*ops->cache, ke);
uncharge:
	kevent_uncharge(q, cost);
	return ERR_PTR(-ENOMEM);
}

/*
 * The task that added @ke is done with it; @kill: and it shall go. While it was
 * new, others who wanted it gone have left that to this task.
 */
static void kevent_unbusy(struct kevent *ke, bool kill, unsigned long flags)
	__releases(&ke->queue->ready_lock)
{
	bool mine = (ke->state & (KE_NEW | KE_DEAD)) == (KE_NEW | KE_DEAD);
	bool detached = ke->state & KE_DETACHED;

	ke->state &= ~(KE_NEW | KE_BUSY);
	mine |= kill && kevent_kill(ke);
	kevent_unlock(ke->queue, flags);
	if (mine)
		kevent_bury(ke, false);
	else if (detached)
		kevent_free(ke);
}

/*
 * There is something to report about @ke, or to find out. While it is busy or
 * disarmed this is remembered.
 */
static void kevent_report(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (kevent_is_checked(ke) ||
	    (kevent_source_of(ke)->collect && !ke->ready))
		ke->state |= KE_VERIFY;
	if (ke->state & (KE_BUSY | KE_DISARMED))
		ke->state |= KE_FIRED;
	else
		kevent_enqueue(ke);
}

/* The caller reports it, if this returns 0 and not -errno. */
static int kevent_mark_locked(struct kevent *ke, const struct ukevent *uk,
			      void **room)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	u32 mask = uk->event & ke->event;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (ops->mark)
		return ops->mark(ke, uk, room);
	if (ops->level) {
		ke->state |= KE_VERIFY;
		return 0;
	}
	if (uk->event && !mask)
		return -EINVAL;
	ke->ready |= mask ?: ke->event;
	return 0;
}

/*
 * attach() found the conditions @mask. Returns true when they are handed back
 * in @uk, and otherwise has queued what there is to report.
 */
static bool kevent_attached(struct kevent *ke, u32 mask, struct ukevent *uk)
{
	u16 queue = KEVENT_REQ_ALWAYS_QUEUE | KEVENT_REQ_READY;
	bool report = ke->state & KE_FIRED;
	void *room = NULL;

	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DEAD)
		return false;
	/* Without collect() the condition is known from here only. */
	if (ke->state & KE_DISARMED && kevent_source_of(ke)->collect)
		mask = 0;
	ke->ready |= mask;
	if (mask && !(ke->state & KE_DISARMED) && !(ke->req_flags & queue)) {
		kevent_fill(ke, uk, 0);
		/* Should the caller not get it, see kevent_handed_back(). */
		ke->reported = ke->ready;
		ke->ready = 0;
		ke->state &= ~KE_NEW;
		if (!(ke->state & KE_VERIFY))
			ke->state &= ~KE_FIRED;
		return true;
	}
	if (ke->req_flags & KEVENT_REQ_READY)
		report |= !kevent_mark_locked(ke, uk, &room);
	ke->state &= ~(KE_FIRED | KE_BUSY);
	if (report || mask)
		kevent_report(ke);
	return false;
}

/* A look before memory is taken; attach() makes sure. */
static bool kevent_is_there(struct kevent_queue *q,
			    const struct kevent_source_ops *ops,
			    const struct ukevent *uk, struct file *file)
{
	if (!file || !READ_ONCE(file->f_kevent))
		return false;
	guard(rcu)();
	return ops->find(q, uk, file);
}

/**
 * kevent_add - add a watch
 * @q: the queue
 * @uk: the request; receives the event that is handed back
 * @file: what the request's descriptor refers to, for sources with a file;
 *	  pinned until after kevent_handed_back()
 * @stash: where to take the memory from, or NULL
 *
 * Return: NULL, or the watch when its event is handed back at once: the caller
 * must call kevent_handed_back(), and may sleep and fault before that.
 * Or an ERR_PTR().
 */
struct kevent *kevent_add(struct kevent_queue *q, struct ukevent *uk,
			  struct file *file, struct kevent_stash *stash)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);
	unsigned long flags;
	struct kevent *ke;
	int mask;

	mask = kevent_check(ops, uk, file);
	if (mask)
		return ERR_PTR(mask);
	if (kevent_is_there(q, ops, uk, file))
		return ERR_PTR(-EEXIST);
	ke = kevent_alloc(q, ops, uk, stash);
	if (IS_ERR(ke))
		return ke;
	mask = ops->attach(ke, uk, file);

	spin_lock_irqsave(&q->ready_lock, flags);
	if (mask >= 0 && kevent_attached(ke, mask, uk)) {
		kevent_unlock(q, flags);
		return ke;
	}
	kevent_unbusy(ke, mask < 0, flags);
	return mask < 0 ? ERR_PTR(mask) : NULL;
}

/**
 * kevent_handed_back - kevent_ctl() is done with an event it hands back
 * @ke: what kevent_add() returned
 * @copied: the event has reached user memory; else it is queued
 */
void kevent_handed_back(struct kevent *ke, bool copied)
{
	struct kevent_queue *q = ke->queue;
	bool oneshot = false;
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (!(ke->state & KE_DEAD)) {
		if (copied && !(ke->state & KE_STALE)) {
			oneshot = ke->req_flags & KEVENT_REQ_ONESHOT;
			kevent_delivered(ke, 1);
			q->copied++;
			if (oneshot)
				ke->state |= KE_SPENT;
		} else {
			ke->state &= ~(KE_BUSY | KE_FIRED | KE_STALE);
			if (kevent_source_of(ke)->collect)
				ke->state |= KE_VERIFY;
			else
				ke->ready |= ke->reported & ke->event;
			kevent_report(ke);
		}
	}
	kevent_unbusy(ke, oneshot, flags);
}

/* May the caller change a watch that it has found? 0, -ENOENT or -EPERM */
static int kevent_changeable(const struct kevent *ke)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_DEAD)
		return -ENOENT;
	return ops->may_change && !ops->may_change(ke) ? -EPERM : 0;
}

/**
 * kevent_remove - remove a watch
 * @q: the queue
 * @uk: names the watch
 * @file: as for kevent_add()
 *
 * An event of it that is still in the kernel is dropped. Return: 0, -ENOENT,
 * -EINVAL, or -EPERM when it is another process's.
 */
int kevent_remove(struct kevent_queue *q, const struct ukevent *uk,
		  struct file *file)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);
	unsigned long flags;
	struct kevent *ke;
	bool mine = false;
	int err = -ENOENT;

	if (ops->file && uk->id.raw[1])
		return -EINVAL;
	rcu_read_lock();
	ke = ops->find(q, uk, file);
	if (ke) {
		spin_lock_irqsave(&q->ready_lock, flags);
		err = kevent_changeable(ke);
		mine = !err && kevent_kill(ke);
		spin_unlock_irqrestore(&q->ready_lock, flags);
	}
	rcu_read_unlock();
	if (mine)
		kevent_bury(ke, false);
	return err;
}

static void kevent_change(struct kevent *ke, const struct ukevent *uk)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);
	void *room = NULL;
	bool report;

	lockdep_assert_held(&ke->queue->ready_lock);

	kevent_set(ke, uk);
	ke->stored = 0;
	if (ops->modified)
		ops->modified(ke, uk);
	report = ke->state & (KE_FIRED | KE_LISTED);
	if (ke->state & KE_DISARMED)
		kevent_dequeue(ke);
	if (uk->req_flags & KEVENT_REQ_READY)
		report |= !kevent_mark_locked(ke, uk, &room);
	if (ops->level) {
		ke->ready = 0;
		report = true;
	}
	if (ke->state & KE_BUSY)
		ke->state |= KE_STALE;
	else
		ke->state &= ~KE_FIRED;
	if (report)
		kevent_report(ke);
}

/* The source may sleep to arm a watch that is modified: it is busy meanwhile. */
static int kevent_rearm_begin(struct kevent *ke)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	if (ke->state & KE_BUSY)
		return -EBUSY;
	if (ke->state & KE_LISTED) {
		kevent_dequeue(ke);
		ke->state |= KE_FIRED;
	}
	ke->state |= KE_BUSY;
	return 0;
}

static void kevent_rearmed(struct kevent *ke, const struct ukevent *uk,
			   int mask)
{
	lockdep_assert_held(&ke->queue->ready_lock);

	ke->state &= ~KE_BUSY;
	if (mask > 0) {
		ke->ready |= mask;
		ke->state |= KE_FIRED;
	}
	if (mask >= 0) {
		kevent_change(ke, uk);
	} else if (ke->state & KE_FIRED) {
		ke->state &= ~KE_FIRED;
		kevent_report(ke);
	}
}

static int kevent_rearm(struct kevent *ke, const struct ukevent *uk)
{
	int mask = kevent_source_of(ke)->rearm(ke, uk);
	unsigned long flags;

	spin_lock_irqsave(&ke->queue->ready_lock, flags);
	if (ke->state & KE_DEAD)
		mask = -ENOENT;
	else
		kevent_rearmed(ke, uk, mask);
	kevent_unbusy(ke, false, flags);
	return min(mask, 0);
}

static int kevent_modify_found(struct kevent *ke, const struct ukevent *uk,
			       bool *rearm)
{
	int err = kevent_changeable(ke);

	if (err)
		return err;
	*rearm = kevent_source_of(ke)->rearm;
	if (*rearm)
		return kevent_rearm_begin(ke);
	kevent_change(ke, uk);
	return 0;
}

static bool kevent_withdraws(const struct kevent *ke, const struct ukevent *uk)
{
	return ke->event & ~uk->event ||
	       uk->req_flags & KEVENT_REQ_DISABLED;
}

/**
 * kevent_modify - change what a watch is interested in, and its mode
 * @q: the queue
 * @uk: names the watch; has its new events, flags and cookie
 * @file: as for kevent_add()
 *
 * Arms the watch again, and has its condition checked by the next collection,
 * or by the source at once. Return: 0, -ENOENT, -EPERM when it is another
 * process's, -EBUSY when another call arms it, or what the source's check() and
 * rearm() say: -EINVAL, -ELOOP, -ENOTSOCK, -EFAULT, -EXDEV.
 */
int kevent_modify(struct kevent_queue *q, const struct ukevent *uk,
		  struct file *file)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);
	bool rearm = false, withdraws;
	struct kevent *ke;
	unsigned long flags;
	int err;

	err = kevent_check(ops, uk, file);
	if (err)
		return err;
	err = -ENOENT;
	rcu_read_lock();
	ke = ops->find(q, uk, file);
	if (ke) {
		spin_lock_irqsave(&q->ready_lock, flags);
		withdraws = kevent_withdraws(ke, uk);
		err = kevent_modify_found(ke, uk, &rearm);
		kevent_unlock(q, flags);
		if (withdraws && !err && ops->hand_on)
			ops->hand_on(ke);
	}
	rcu_read_unlock();
	if (!err && ops->settle)
		ops->settle(q, file);
	return !err && rearm ? kevent_rearm(ke, uk) : err;
}

static int kevent_mark_once(struct kevent_queue *q, const struct ukevent *uk,
			    struct file *file, void **room)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);
	struct kevent *ke;
	unsigned long flags;
	int err;

	guard(rcu)();
	ke = ops->find(q, uk, file);
	if (!ke)
		return -ENOENT;
	spin_lock_irqsave(&q->ready_lock, flags);
	err = kevent_changeable(ke) ?: kevent_mark_locked(ke, uk, room);
	if (!err)
		kevent_report(ke);
	kevent_unlock(q, flags);
	return err;
}

/**
 * kevent_mark - mark a watch ready from user space
 * @q: the queue
 * @uk: names the watch
 * @file: as for kevent_add()
 *
 * Return: 0, -ENOENT, -EPERM when it is another process's, -EINVAL when the
 * request has no event bit in common with the watch, -ENOMEM, or what the
 * source's mark() says: -EAGAIN.
 */
int kevent_mark(struct kevent_queue *q, const struct ukevent *uk,
		struct file *file)
{
	const struct kevent_source_ops *ops = kevent_source(uk->type);
	void *room = NULL;
	int err;

	if (ops->file && uk->id.raw[1])
		return -EINVAL;
	err = kevent_mark_once(q, uk, file, &room);
	if (err == -ENOBUFS) {
		room = ops->room();
		if (!room)
			return -ENOMEM;
		err = kevent_mark_once(q, uk, file, &room);
		kfree(room);
	}
	return err;
}

/* Kill the next watch from @index on, unless its object is going away. */
static struct kevent *kevent_kill_next(struct kevent_queue *q,
				       u32 *index, bool *killed)
{
	const struct kevent_source_ops *ops;
	unsigned long flags;
	struct kevent *ke;

	guard(rcu)();
	ke = kevent_index_next(&q->watches, index);
	if (!ke)
		return NULL;
	ops = kevent_source_of(ke);
	spin_lock_irqsave(&q->ready_lock, flags);
	*killed = !(ke->state & KE_DEAD) && (!ops->hold || ops->hold(ke)) &&
		  kevent_kill(ke);
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return ke;
}

/**
 * kevent_remove_all - remove the watches of a queue whose file is gone
 * @q: the queue
 *
 * A watch whose object is going away at the same time is left to that side,
 * with the queue reference it holds.
 */
void kevent_remove_all(struct kevent_queue *q)
{
	struct kevent *ke;
	u32 index = 0;
	bool killed;

	while ((ke = kevent_kill_next(q, &index, &killed))) {
		if (killed)
			kevent_bury(ke, true);
		index++;
		cond_resched();
	}
}
