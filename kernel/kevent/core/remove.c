// SPDX-License-Identifier: GPL-2.0
/*
 * How watches go: the four steps of types.h, for one watch or all of a queue
 */

#include <linux/cleanup.h>
#include <linux/sched.h>

#include "../host.h"
#include "lookup.h"
#include "queue.h"
#include "quota.h"
#include "source_ops.h"
#include "state.h"
#include "testpoint.h"
#include "watch.h"

/*
 * Step 4 of the removal of a watch, see types.h. No task is busy with it, no callback and
 * no lookup finds it.
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
	kevent_testpoint(ke->queue, KEVENT_TESTPOINT_KILLED);
	kevent_unlink(ke);
	kevent_source_of(ke)->detach(ke);
	if (held)
		kevent_unhold_file(kevent_held_file(ke));
	kevent_testpoint(ke->queue, KEVENT_TESTPOINT_DETACHED);
	/*
	 * A dead watch does not become busy again. The task that was busy
	 * clears the bit under ready_lock, and call_rcu() waits for that.
	 */
	if (!kevent_is_busy(ke) || !kevent_hand_over(ke))
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
 * kevent_remove - remove a watch
 * @q: the queue
 * @ops: its source
 * @uk: names the watch
 * @file: as for kevent_add()
 *
 * An event of it that is still in the kernel is dropped. Return: 0, -ENOENT, -EPERM when it
 * is another process's, or what the source's cancel() says: -EALREADY.
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
		if (unlikely(ops->cancel)) {
			/* The end of such a watch is always told. */
			err = kevent_is_dead(ke) ? -ENOENT : ops->cancel(ke);
		} else {
			err = kevent_changeable(ke, ops);
			mine = !err && kevent_kill(ke);
		}
		kevent_unlock_irq(q);
	}
	rcu_read_unlock();
	if (mine)
		kevent_bury(ke, false);
	return err;
}

/* Kill the next watch from @index on. */
static struct kevent *kevent_kill_next(struct kevent_queue *q,
				       u32 *index, bool *killed)
{
	struct kevent *ke;

	guard(rcu)();
	ke = kevent_index_next(&q->watches, index);
	if (!ke)
		return NULL;
	kevent_testpoint(q, KEVENT_TESTPOINT_FOUND);
	*killed = kevent_kill_one(ke, true);
	return ke;
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

	while ((ke = kevent_kill_next(q, &index, &killed))) {
		if (killed)
			kevent_bury(ke, true);
		index++;
		cond_resched();
	}
}
