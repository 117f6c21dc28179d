// SPDX-License-Identifier: GPL-2.0
/*
 * Watches whose removal may sleep, as a hook must not
 *
 * Those are of INODE, whose marks have a mutex. A dead one is buried by its task on the way to user
 * mode, with a reference to its file. A table ends before its last task takes no more such work, and
 * no kernel thread has one with watches.
 */

#include <linux/task_work.h>

#include "../kevent/core/lookup.h"
#include "../kevent/core/watch.h"

/* @head is the rcu member of a watch that waits for its end. Its file is pinned. */
static void bury(struct callback_head *head)
{
	struct kevent *ke = container_of(head, struct kevent, rcu);
	struct file *file = kevent_held_file(ke);

	kevent_bury(ke, false);
	/* It ends on the way to user mode, as after any close. */
	fput(file);
}

bool host_bury_later(struct kevent *ke, struct file *file)
{
	if (ke->type != KEVENT_INODE)
		return false;
	get_file(file);
	init_task_work(&ke->rcu, bury);
	WARN_ON_ONCE(task_work_add(current, &ke->rcu, TWA_RESUME));
	return true;
}
