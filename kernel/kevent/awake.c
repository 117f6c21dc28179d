// SPDX-License-Identifier: GPL-2.0
/*
 * Events that keep the system awake: KEVENT_REQ_STAY_AWAKE
 *
 * From the event of such a watch until a consumer has it, and comes back for more,
 * the system is not suspended. A queue has one wakeup source for all its watches. It
 * is active from the first event on. It is relaxed by a consumer's call when three
 * things are true: no such watch waits to be delivered, none was delivered since the
 * call began, and the ring has no unread entry from before that.
 */

#include <linux/capability.h>
#include <linux/device.h>
#include <linux/pm_wakeup.h>
#include <linux/sched.h>

#include "awake.h"
#include "charge.h"
#include "mapping.h"
#include "state.h"

/* A wakeup source with its device, and a folder of ten files in sysfs */
#define KEVENT_AWAKE_BYTES						\
	(sizeof(struct wakeup_source) + sizeof(struct device) + 2048)

/**
 * kevent_awake_prepare - a watch that keeps the system awake is about to come
 * @q: the queue
 *
 * One per queue, which is a descriptor. Charged to the queue's owner, and gone with the
 * queue. May sleep.
 *
 * Return: 0, -EPERM without CAP_BLOCK_SUSPEND, -ENOSPC, -ENOMEM.
 */
int kevent_awake_prepare(struct kevent_queue *q)
{
	struct wakeup_source *ws;
	char name[24];

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

/**
 * kevent_awake_stop - the queue's file is gone, and its watches are dead
 * @q: the queue
 */
void kevent_awake_stop(struct kevent_queue *q)
{
	if (!q->wakeup)
		return;
	wakeup_source_unregister(q->wakeup);
	kevent_uncharge(q->owner, KEVENT_AWAKE_BYTES);
}

/* Ready watches that are looked at. With more, one is taken to be of this kind. */
#define KEVENT_AWAKE_LOOKS	64

/* May one of the watches that wait to be delivered be one that keeps it awake? */
static bool kevent_awake_pending(const struct kevent_queue *q)
{
	unsigned int left = KEVENT_AWAKE_LOOKS;
	const struct kevent *ke;

	lockdep_assert_held(&q->ready_lock);

	if (q->nr_taken)
		return true;
	list_for_each_entry(ke, &q->ready, link)
		if (!left-- || kevent_is_awake(ke))
			return true;
	return false;
}

/* What has been delivered is in the ring up to here, or in buffers. */
static void kevent_awake_mark(struct kevent_queue *q)
{
	if (!q->awake_new || kevent_awake_pending(q))
		return;
	q->awake_new = false;
	q->awake_pos = q->ring.kidx;
}

void __kevent_awake_begin(struct kevent_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	kevent_awake_mark(q);
	spin_unlock_irqrestore(&q->ready_lock, flags);
}

/* Does the ring have such entries that nobody has taken, as far as known? */
static bool kevent_awake_unread(struct kevent_queue *q)
{
	if (!q->ring.size)
		return false;
	if (kevent_ring_here(q))
		kring_sync(&q->ring);
	return q->ring.uidx < q->awake_pos;
}

void __kevent_awake_end(struct kevent_queue *q, bool nothing)
{
	unsigned long flags;

	spin_lock_irqsave(&q->ready_lock, flags);
	if (nothing)
		kevent_awake_mark(q);
	if (q->awake && !q->awake_new && !kevent_awake_pending(q) &&
	    !kevent_awake_unread(q)) {
		WRITE_ONCE(q->awake, false);
		__pm_relax(q->wakeup);
	}
	spin_unlock_irqrestore(&q->ready_lock, flags);
}
