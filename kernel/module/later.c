// SPDX-License-Identifier: GPL-2.0
/*
 * Watches that a hook must not remove
 *
 * The removal of watches of INODE may sleep, as their marks have a mutex. The removal of others may
 * be long, above all of many, and some hooks cannot let other tasks run. A dead watch is buried by
 * its task on the way to user mode, with a reference to its file; others run between two of them.
 * The descriptor table is freed while its last task can still run task_work, and so is the program.
 * No kernel thread has watches.
 */

#include <linux/task_work.h>

#include "../kevent/core/lookup.h"
#include "../kevent/core/watch.h"

/* @head is the rcu member of a watch that waits for its end. Its file, if any, is pinned. */
static void bury(struct callback_head *head)
{
	struct kevent *ke = container_of(head, struct kevent, rcu);
	struct file *file = kevent_held_file(ke);

	kevent_bury(ke, false);
	/* It ends on the way to user mode, as after any close. */
	if (file)
		fput(file);
}

bool host_bury_later(struct kevent *ke, struct file *file)
{
	if (ke->type != KEVENT_INODE && host_can_pause())
		return false;
	if (file)
		get_file(file);
	init_task_work(&ke->rcu, bury);
	WARN_ON_ONCE(task_work_add(current, &ke->rcu, TWA_RESUME));
	return true;
}
