// SPDX-License-Identifier: GPL-2.0
/*
 * The queue: how it comes into being and goes, and who polls it
 */

#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/irq_work.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "../host.h"
#include "max_running.h"
#include "queue.h"
#include "quota.h"

/*
 * Wakes those who poll() a queue, once for all that has become ready since it was queued, in an
 * interrupt of its own or at the next tick. Nobody's lock is held there: those who are woken
 * may wake others, and nothing limits their number. An event that comes meanwhile queues it again.
 */
static void kevent_poll_work(struct irq_work *work)
{
	struct kevent_queue *q = container_of(work, struct kevent_queue, poll_work);
	/* An event that goes in a circle through io_uring must end. */
	__poll_t uring = xchg(&q->poll_uring, 0) ? EPOLL_URING_WAKE : 0;

	wake_up_poll(&q->poll_wait, EPOLLIN | EPOLLRDNORM | uring);
}

/* Make a queue without a ring, with one reference; NULL without memory. */
struct kevent_queue *kevent_queue_alloc(void)
{
	struct kevent_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);

	/* A hit touches two cache lines. Locks of kernels for tests are larger. */
	BUILD_BUG_ON(sizeof(spinlock_t) == 4 &&
		     offsetofend(struct kevent_queue, ring) >
		     2 * max(SMP_CACHE_BYTES, 64));

	if (!q)
		return NULL;
	q->owner = host_owner_get(kevent_owner_uid());
	if (!q->owner) {
		kfree(q);
		return NULL;
	}
	spin_lock_init(&q->ready_lock);
	spin_lock_init(&q->keys.lock);
	INIT_LIST_HEAD(&q->ready);
	INIT_LIST_HEAD(&q->level);
	INIT_LIST_HEAD(&q->mappings);
	INIT_LIST_HEAD(&q->sleepers);
	INIT_LIST_HEAD(&q->ring_sleepers);
	INIT_LIST_HEAD(&q->buffer_sleepers);
	INIT_LIST_HEAD(&q->buffer_several);
	init_waitqueue_head(&q->poll_wait);
	init_irq_work(&q->poll_work, kevent_poll_work);
	INIT_HLIST_HEAD(&q->takers);
	INIT_HLIST_HEAD(&q->nest.refs);
	xa_init_flags(&q->nest.watched, XA_FLAGS_ACCOUNT);
	kevent_index_init(&q->watches);
	q->coalesce.max_ns = KEVENT_COALESCE_DEFAULT_NS;
	q->coalesce.batch = 1;
	q->coalesce.patience = KEVENT_COALESCE_PATIENCE;
	q->keys.tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&q->crew.jobs);
	kevent_limit_init(&q->crew.limit, true);
	refcount_set(&q->refs, 1);
	q->taker = current->files;
	q->home.mm = current->mm;
	mmgrab(q->home.mm);
	q->ring_mm = KEVENT_NO_MM;
	q->polls = 1;
	host_pin();
	return q;
}

/* A softirq may look for timers until then. */
static void kevent_queue_free(struct rcu_head *rcu)
{
	struct kevent_queue *q = container_of(rcu, struct kevent_queue, rcu);

	kfree(q->timers);
	kfree(q);
}

/* Drop a reference. After the queue's file only watches on their way out have any. */
void kevent_queue_put(struct kevent_queue *q)
{
	if (!refcount_dec_and_test(&q->refs))
		return;
	kevent_index_destroy(&q->watches);
	kevent_limit_put(q->limit);
	xa_destroy(&q->nest.watched);
	host_owner_put(q->owner);
	mmdrop(q->home.mm);
	call_rcu(&q->rcu, kevent_queue_free);
	host_unpin();
}
