// SPDX-License-Identifier: GPL-2.0
/*
 * Watches whose removal may sleep, as a hook must not
 *
 * Those are of INODE, whose marks have a mutex. A dead one is buried by its task on the way to user
 * mode, with a reference to its file.
 */

#include <linux/llist.h>
#include <linux/task_work.h>

#include "../kevent/core/types.h"
#include "../kevent/core/watch.h"

static LLIST_HEAD(graves);

/* @head is the rcu member of a watch that waits for its end. Its file is pinned. */
static void bury(struct callback_head *head)
{
	kevent_bury(container_of(head, struct kevent, rcu), true);
}

static void bury_work(struct work_struct *work)
{
	struct llist_node *node, *next;

	llist_for_each_safe(node, next, llist_del_all(&graves))
		bury((struct callback_head *)node);
}

static DECLARE_WORK(graves_work, bury_work);

bool host_bury_later(struct kevent *ke, struct file *file)
{
	if (ke->type != KEVENT_INODE)
		return false;
	get_file(file);
	init_task_work(&ke->rcu, bury);
	if (!(current->flags & PF_KTHREAD) &&
	    !task_work_add(current, &ke->rcu, TWA_RESUME))
		return true;
	llist_add((struct llist_node *)&ke->rcu, &graves);
	queue_work(host_works, &graves_work);
	return true;
}
