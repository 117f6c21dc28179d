// SPDX-License-Identifier: GPL-2.0
/*
 * Watches whose removal may sleep, as a hook must not
 *
 * Those are of INODE, whose marks have a mutex. A dead one is buried by its task on the way to user
 * mode, with a reference to its file.
 */

#include <linux/llist.h>
#include <linux/task_work.h>

#include "../kevent/core/remove.h"
#include "../kevent/core/types.h"

static LLIST_HEAD(graves);

/* The file of a watch is pinned, and so is the module. */
static void bury(struct kevent *ke)
{
	kevent_bury(ke, true);
	host_unpin();
}

/* @head is the rcu member of a watch that waits for its end. */
static void bury_task_work(struct callback_head *head)
{
	bury(container_of(head, struct kevent, rcu));
}

static void bury_work(struct work_struct *work)
{
	struct llist_node *node, *next;

	llist_for_each_safe(node, next, llist_del_all(&graves))
		bury(container_of((struct callback_head *)node, struct kevent,
				  rcu));
}

static DECLARE_WORK(graves_work, bury_work);

bool host_bury_later(struct kevent *ke, struct file *file)
{
	if (ke->type != KEVENT_INODE)
		return false;
	get_file(file);
	host_pin();
	init_task_work(&ke->rcu, bury_task_work);
	if (!(current->flags & PF_KTHREAD) &&
	    !task_work_add(current, &ke->rcu, TWA_RESUME))
		return true;
	llist_add((struct llist_node *)&ke->rcu, &graves);
	queue_work(host_works, &graves_work);
	return true;
}
