// SPDX-License-Identifier: GPL-2.0
/*
 * Events that keep the system awake: KEVENT_REQ_STAY_AWAKE
 *
 * From the event of such a watch until a consumer has it, and comes back for more,
 * the system is not suspended. A queue has one wakeup source for all its watches: the
 * event of a one-shot watch is processed when the watch is gone. The source is active
 * from the first event on. A consumer's call relaxes it if no watch of the queue waits to be
 * delivered, no such event was delivered since the call began, and the ring has no unread
 * entry from before the call.
 */

#include <linux/capability.h>
#include <linux/device.h>
#include <linux/pm_wakeup.h>
#include <linux/sched.h>

#include "queue_ring.h"
#include "quota.h"
#include "wakeup_source.h"

/* A wakeup source with its device, and a folder of ten files in sysfs */
#define KEVENT_AWAKE_BYTES						\
	(sizeof(struct wakeup_source) + sizeof(struct device) + 2048)

/* A watch that keeps the system awake is about to come. May sleep. Returns 0 or -errno. */
int kevent_awake_prepare(struct kevent_queue *q)
{
	struct wakeup_source *ws;
	char name[24];

	if (!IS_ENABLED(CONFIG_PM_SLEEP))
		return -EOPNOTSUPP;
	if (!capable(CAP_BLOCK_SUSPEND))
		return -EPERM;
	if (READ_ONCE(q->wakeup))
		return 0;
	if (!kevent_charge(q->owner, KEVENT_AWAKE_BYTES))
		return -ENOSPC;
	snprintf(name, sizeof(name), "kevent:%d", task_tgid_nr(current));
	ws = wakeup_source_register(NULL, name);
	if (ws && !cmpxchg(&q->wakeup, NULL, ws))
		return 0;
	/* Another thread was faster, or there is no memory. */
	kevent_uncharge(q->owner, KEVENT_AWAKE_BYTES);
	wakeup_source_unregister(ws);
	return ws ? 0 : -ENOMEM;
}

/* The queue's file is gone, and its watches are dead. */
void kevent_awake_stop(struct kevent_queue *q)
{
	if (!q->wakeup)
		return;
	wakeup_source_unregister(q->wakeup);
	kevent_uncharge(q->owner, KEVENT_AWAKE_BYTES);
}

/* A watch that keeps the system awake is ready. */
void kevent_stay_awake(struct kevent_queue *q)
{
	lockdep_assert_held(&q->ready_lock);

	__pm_stay_awake(q->wakeup);
}

/* User memory has the event of such a watch. */
void kevent_awake_delivered(struct kevent_queue *q)
{
	kevent_stay_awake(q);
	q->awake_new = true;
	q->awake_pos = q->ring.kidx;
}

void __kevent_awake_begin(struct kevent_queue *q)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	q->awake_new = false;
}

void __kevent_awake_end(struct kevent_queue *q)
{
	guard(spinlock_irqsave)(&q->ready_lock);
	if (q->awake_new || !list_empty(&q->ready) || q->nr_taken)
		return;
	if (q->ring.size)
		kevent_ring_sync(q);
	/* Nor does the ring have such an entry that nobody has taken, as far as known. */
	if (q->ring.uidx >= q->awake_pos)
		__pm_relax(q->wakeup);
}
