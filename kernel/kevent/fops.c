// SPDX-License-Identifier: GPL-2.0
/*
 * The file a queue's descriptor refers to
 */

#include <linux/file.h>
#include <linux/io_uring_types.h>
#include <linux/kevent.h>
#include <linux/percpu_counter.h>
#include <linux/poll.h>
#include <linux/sched/user.h>
#include <linux/seq_file.h>

#include "awake.h"
#include "busy_poll.h"
#include "fops.h"
#include "index.h"
#include "mapping.h"
#include "ops.h"
#include "queue.h"
#include "state.h"
#include "watch.h"

/*
 * A caller of poll() must not signal an eventfd from the wake-up: see "Prerequisites"
 * in kevent-internals.rst. Trees without this flag do.
 */
static_assert(IOU_F_TWQ_IN_WAKE);

/* Each close() of a descriptor, and so each end of a process that has one */
static int kevent_fop_flush(struct file *file, fl_owner_t id)
{
	kevent_wake_left(file->private_data);
	return 0;
}

static int kevent_fop_release(struct inode *inode, struct file *file)
{
	struct kevent_queue *q = file->private_data;

	/* No set has the queue any more: it is on no path. */
	WRITE_ONCE(q->nest.file, NULL);
	kevent_remove_all(q);
	kevent_timers_stop(q);
	kevent_awake_stop(q);
	kevent_mappings_free(q);
	kevent_queue_put(q);
	return 0;
}

/*
 * Level watches that were delivered count until the next collection finds them
 * idle. Unread entries in the ring count as far as this can be known without
 * a fault.
 */
static bool kevent_pending(struct kevent_queue *q)
{
	unsigned long flags;
	bool ret;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	ret = q->nr_listed || q->wake_request || q->ring.kidx != q->ring.uidx;
	spin_unlock_irqrestore(&q->ready_lock, flags);
	return ret;
}

static __poll_t kevent_fop_poll(struct file *file, poll_table *wait)
{
	struct kevent_queue *q = file->private_data;

	poll_wait(file, &q->poll_wait, wait);
	return kevent_pending(q) ? EPOLLIN | EPOLLRDNORM : 0;
}

static long kevent_fop_ioctl(struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	return kevent_busy_ioctl(file->private_data, cmd, arg);
}

static void kevent_show_watch(struct seq_file *m, struct kevent_queue *q,
			      struct kevent *ke)
{
	struct ukevent uk;
	unsigned long flags;
	bool show;

	spin_lock_irqsave(&q->ready_lock, flags);
	show = kevent_is_alive(ke);
	if (show) {
		kevent_fill(ke, &uk, 0);
		uk.event = ke->event;
	}
	spin_unlock_irqrestore(&q->ready_lock, flags);
	if (!show)
		return;
	seq_printf(m, "kevent: type:%s id:%llx event:%x flags:%x user:%llx\n",
		   kevent_source(uk.type)->name, uk.id.raw_u64, uk.event,
		   uk.req_flags, uk.ptr);
}

static u32 kevent_show_watches(struct seq_file *m, struct kevent_queue *q,
			       bool show)
{
	struct kevent *ke;
	u32 nr = 0, index = 0;

	rcu_read_lock();
	while ((ke = kevent_index_next(&q->watches, &index))) {
		nr++;
		index++;
		if (show)
			kevent_show_watch(m, q, ke);
		if (show && seq_has_overflowed(m))
			break;
		if (need_resched()) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
	return nr;
}

static void kevent_fop_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct kevent_queue *q = file->private_data;
	struct kring ring;
	u64 collected, copied, misses;
	u32 ready;

	spin_lock_irq(&q->ready_lock);
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	ring = q->ring;
	collected = q->collected;
	copied = q->copied;
	misses = q->misses;
	ready = q->nr_listed;
	spin_unlock_irq(&q->ready_lock);

	seq_printf(m, "kevent-watches:\t%u\n",
		   kevent_show_watches(m, q, false));
	seq_printf(m, "kevent-ready:\t%u\n", ready);
	seq_printf(m, "kevent-delivered:\t%llu\n", ring.kidx + copied);
	seq_printf(m, "kevent-ring-size:\t%u\n", ring.size);
	seq_printf(m, "kevent-ring-kidx:\t%llu\n", ring.kidx);
	seq_printf(m, "kevent-ring-uidx:\t%llu\n", ring.uidx);
	seq_printf(m, "kevent-hits:\t%llu\n", ring.kidx - collected);
	seq_printf(m, "kevent-misses:\t%llu\n", misses);
	seq_printf(m, "kevent-user-bytes:\t%lld\n",
		   percpu_counter_sum_positive(&q->owner->kevent_bytes));
	seq_printf(m, "kevent-refuses:\t%08x\n", q->refuses);
	kevent_show_watches(m, q, true);
}

const struct file_operations kevent_fops = {
	.flush		= kevent_fop_flush,
	.release	= kevent_fop_release,
	.poll		= kevent_fop_poll,
	.unlocked_ioctl	= kevent_fop_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= kevent_fop_show_fdinfo,
	.llseek		= noop_llseek,
};
