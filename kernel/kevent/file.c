// SPDX-License-Identifier: GPL-2.0
/*
 * The file a queue's descriptor refers to
 */

#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <uapi/linux/eventpoll.h>

#include "call/fixed.h"
#include "call/workers.h"
#include "core/busy_poll.h"
#include "core/entry.h"
#include "core/max_running.h"
#include "core/queue.h"
#include "core/queue_ring.h"
#include "core/source_ops.h"
#include "core/state.h"
#include "core/testpoint.h"
#include "core/wait.h"
#include "core/wake.h"
#include "core/wake_coalesce.h"
#include "core/wakeup_source.h"
#include "core/watch.h"
#include "host.h"

/*
 * Each close() of a descriptor, and so each end of a process that has one. The program may
 * have freed the memory of the ring: it is left before anything else is done. A child that
 * has taken no events has none to leave to others, and one that does not serve wakes no
 * server.
 */
static int kevent_fop_flush(struct file *file, fl_owner_t id)
{
	struct kevent_queue *q = file->private_data;
	const void *taker, *table;

	kevent_ring_leave(q);
	taker = READ_ONCE(q->taker);
	if (taker == id || taker == KEVENT_TAKERS)
		kevent_wake_left(q);
	/* Servers that came through the descriptor leave. Pairs with kevent_crew_note(). */
	smp_mb();
	table = READ_ONCE(q->crew.table);
	if (table == id || table == KEVENT_TAKERS)
		kevent_limit_look(&q->crew.limit);
	return 0;
}

static int kevent_fop_release(struct inode *inode, struct file *file)
{
	struct kevent_queue *q = file->private_data;

	/* No set has the queue any more: it is on no path. */
	WRITE_ONCE(q->nest.file, NULL);
	if (IS_ENABLED(CONFIG_KEVENT_AIO))
		kevent_crew_end(q);
	kevent_testpoint(q, KEVENT_TESTPOINT_RELEASED);
	kevent_remove_all(q);
	if (IS_ENABLED(CONFIG_KEVENT_TIMER))
		kevent_timers_stop(q);
	kevent_awake_stop(q);
	/* This takes ready_lock after all who found a live watch, so none queues work later. */
	kevent_mappings_free(q);
	irq_work_sync(&q->poll_work);
	if (IS_ENABLED(CONFIG_KEVENT_AIO))
		kevent_bound_drop(q);
	kevent_queue_put(q);
	return 0;
}

/*
 * Level watches that were delivered count until the next collection finds them
 * idle, and so do watches that a consumer looks at: they may be ready. Unread entries
 * in the ring count as far as this can be known without a fault. That each wait ends does
 * not count: nobody takes that back, and a loop that polls the queue would spin.
 */
static __poll_t kevent_fop_poll(struct file *file, poll_table *wait)
{
	struct kevent_queue *q = file->private_data;
	u32 queued;

	poll_wait(file, &q->poll_wait, wait);
	kevent_testpoint(q, KEVENT_TESTPOINT_POLL);
	guard(spinlock_irqsave)(&q->ready_lock);
	kevent_ring_sync(q);
	queued = q->nr_queued;
	kevent_ask(q);
	/* Others who poll the queue cannot see what only this task may take. */
	if (q->nr_queued != queued)
		kevent_wake_pollers(q);
	/* A poller reads the ring next. The header has to say whether the kernel has more. */
	kevent_more(q);
	return q->nr_queued || q->nr_taken || q->wake_request == KEVENT_REQUEST_NEXT ||
	       q->ring.kidx != q->ring.uidx ? EPOLLIN | EPOLLRDNORM : 0;
}

static long kevent_fop_ioctl(struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	switch (cmd) {
	case KEVENT_IOC_SET_DELAY:
	case KEVENT_IOC_GET_DELAY:
		return kevent_coalesce_ioctl(file->private_data, cmd, arg);
	case EPIOCSPARAMS:
	case EPIOCGPARAMS:
		if (!IS_ENABLED(CONFIG_NET_RX_BUSY_POLL))
			return -EOPNOTSUPP;
		return kevent_busy_ioctl(file->private_data, cmd, arg);
	default:
		return host_ioctl(file, cmd, arg);
	}
}

/* Consumers that fdinfo names */
#define KEVENT_SHOWN_WAITERS	64

/*
 * Show the consumers that sleep longest. Consumers join and leave the list under
 * ready_lock, so none of them ends during this walk. There may be as many as RLIMIT_NPROC
 * allows their users, so the walk is short: a reader of fdinfo holds up the queue for less
 * than a collection may. A thread of another pid namespace has no id.
 */
static void kevent_show_waiters(struct seq_file *m, struct kevent_queue *q)
{
	struct pid_namespace *ns = proc_pid_ns(file_inode(m->file)->i_sb);
	u32 left = KEVENT_SHOWN_WAITERS;
	struct kevent_consumer *c;
	const char *gap = "\t";
	pid_t tid;

	seq_printf(m, "kevent-waiting:\t%u\n", q->nr_asleep - q->nr_woken);
	seq_puts(m, "kevent-waiters:");
	list_for_each_entry(c, &q->sleepers, link) {
		if (!left--)
			break;
		tid = task_pid_nr_ns(c->task, ns);
		if (!tid)
			continue;
		seq_put_decimal_ull(m, gap, tid);
		gap = " ";
	}
	seq_putc(m, '\n');
}

/* Show values of one moment, under ready_lock. Printing takes no lock, and does not sleep. */
static void kevent_show_state(struct seq_file *m, struct kevent_queue *q)
{
	const struct kring *ring = &q->ring;

	guard(spinlock_irq)(&q->ready_lock);
	kevent_ring_sync(q);
	seq_printf(m, "kevent-ready:\t%u\n", q->nr_queued);
	seq_printf(m, "kevent-delivered:\t%llu\n", ring->kidx + q->copied);
	seq_printf(m, "kevent-ring-size:\t%u\n", ring->size);
	seq_printf(m, "kevent-ring-kidx:\t%llu\n", ring->kidx);
	seq_printf(m, "kevent-ring-uidx:\t%llu\n", ring->uidx);
	seq_printf(m, "kevent-ring-flags:\t%x\n", ring->flags);
	seq_printf(m, "kevent-ring-spaces:\t%u\n", kevent_ring_spaces(q));
	seq_printf(m, "kevent-hits:\t%llu\n", ring->kidx - q->collected);
	seq_printf(m, "kevent-misses:\t%llu\n", q->misses);
	seq_printf(m, "kevent-held:\t%llu\n", q->coalesce.held);
	kevent_show_waiters(m, q);
}

static void kevent_show_watch(struct seq_file *m, struct kevent *ke)
{
	struct ukevent uk;

	guard(spinlock_irq)(&ke->queue->ready_lock);
	if (!kevent_is_alive(ke))
		return;
	kevent_fill(ke, &uk);
	seq_printf(m, "kevent: type:%s id:%llx event:%x flags:%x user:%llx ready:%x state:%s\n",
		   kevent_source_of(ke)->name, uk.id.raw_u64, ke->event,
		   uk.req_flags, uk.ptr, ke->ready, kevent_state_word(ke));
}

static u32 kevent_show_watches(struct seq_file *m, struct kevent_queue *q,
			       bool show)
{
	struct kevent *ke;
	u32 nr = 0, index = 0;

	for (;; index++, nr++) {
		scoped_guard(rcu) {
			ke = kevent_index_next(&q->watches, &index);
			if (!ke)
				return nr;
			if (show)
				kevent_show_watch(m, ke);
		}
		if (show && seq_has_overflowed(m))
			return nr;
		cond_resched();
	}
}

static void kevent_fop_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct kevent_queue *q = file->private_data;

	seq_printf(m, "kevent-watches:\t%u\n",
		   kevent_show_watches(m, q, false));
	kevent_show_state(m, q);
	kevent_limit_show(m, kevent_limit_peek(&q->limit));
	seq_printf(m, "kevent-user-bytes:\t%lld\n",
		   host_owner_bytes(q->owner));
	seq_printf(m, "kevent-refuses:\t%08x\n", q->refuses);
	kevent_show_watches(m, q, true);
}

const struct file_operations kevent_fops = {
	.owner		= THIS_MODULE,
	.flush		= kevent_fop_flush,
	.release	= kevent_fop_release,
	.poll		= kevent_fop_poll,
	.unlocked_ioctl	= kevent_fop_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= kevent_fop_show_fdinfo,
	.llseek		= host_llseek,
};
