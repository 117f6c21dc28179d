// SPDX-License-Identifier: GPL-2.0
/*
 * Queues and epoll files as sources of queues
 *
 * Queues and epolls are sets of files. A set that is watched is linked to the one
 * that watches it. epoll allows no loops of such links, and no path of more than
 * EP_MAX_NESTS. Its check, under its mutex, comes here where it meets a queue: down to
 * what a queue watches, and up to the queues that watch a file. What it does for a
 * link of epoll's it does for a link that a queue adds.
 *
 * A link can be seen by checks before its watch is in a wait queue, and after it has
 * left. Only to add one takes the mutex.
 */

#include <linux/cleanup.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched.h>

#include "../core/lookup.h"
#include "../core/queue.h"
#include "../core/quota.h"
#include "file_nest.h"
#include "file_report.h"

/*
 * Links of queues that one check follows downwards. It holds the mutex that all who
 * nest sets wait for.
 */
#define KEVENT_NEST_LOOKS	4096U

/* A file in &kevent_nest.watched may need a leaf of its own. */
#define KEVENT_NEST_COST	sizeof(struct xa_node)

/* Of the check that holds the mutex: queues on the way down, links followed */
static struct kevent_nest *visited;
static unsigned int looks;

static struct kevent_nest *nest_of(const struct file *file)
{
	struct kevent_queue *q = file->private_data;

	return &q->nest;
}

/* For epoll */

/**
 * kevent_nest_refs - where the items of epolls are that watch a queue
 * @file: the queue's file
 */
struct hlist_head *kevent_nest_refs(struct file *file)
{
	return &nest_of(file)->refs;
}

#ifdef CONFIG_DEBUG_LOCK_ALLOC
/**
 * kevent_nest_wakes - lockdep's subclass for what a queue's wake-up leads to
 * @file: the queue's file; poll_wait is locked
 */
unsigned int kevent_nest_wakes(struct file *file)
{
	return nest_of(file)->wakes + 1;
}
#endif

/* The next file from a number on, with a reference */
static struct file *next_watched(struct kevent_nest *nest, unsigned long *index)
{
	struct file *file;

	xa_lock(&nest->watched);
	file = xa_find(&nest->watched, index, ULONG_MAX, XA_PRESENT);
	if (file)
		get_file(file);
	xa_unlock(&nest->watched);
	return file;
}

static int depth_below(struct kevent_nest *nest, int depth)
{
	unsigned long index = 0;
	struct file *file;
	int result = 0;

	while (result <= EP_MAX_NESTS && (file = next_watched(nest, &index))) {
		if (++looks > KEVENT_NEST_LOOKS)
			result = EP_MAX_NESTS + 1;
		else
			result = max(result, ep_nest_down(file, depth + 1));
		fput(file);
		index++;
		cond_resched();
	}
	return result;
}

/**
 * kevent_nest_down - a check of epoll's has come to a queue on its way down
 * @file: the queue's file
 * @depth: links behind
 *
 * Return: links to the end of the longest path, more than %EP_MAX_NESTS for a loop,
 * too long a path, or too many links.
 */
int kevent_nest_down(struct file *file, int depth)
{
	struct kevent_nest *nest = nest_of(file);

	if (ep_nest_visited(&nest->gen))
		return nest->depth;
	nest->depth = 0;
	/* The queue is being closed, and watched by an epoll that knows it yet. */
	if (!get_file_active(&nest->file))
		return 0;
	nest->next = visited;
	visited = nest;
	nest->depth = depth_below(nest, depth);
	return nest->depth;
}

static int depth_above(struct kevent_nest *nest, int depth)
{
	struct file *file = READ_ONCE(nest->file);

	if (!file)
		return 0;
	if (!ep_nest_visited(&nest->gen))
		nest->depth = ep_nest_up(&nest->refs, file, depth);
	return nest->depth;
}

/**
 * kevent_nest_up - follow the watches of a queue or epoll file upwards
 * @file: the file
 * @depth: links behind
 *
 * Under RCU. The queues of one user are up to %KEVENT_MAX_PER_FILE, see sources/file_wait.c, too.
 *
 * Return: links to the end of the longest path.
 */
int kevent_nest_up(struct file *file, int depth)
{
	struct kevent_file *kf = READ_ONCE(file->f_kevent);
	int result = 0;

	for (; kf; kf = READ_ONCE(kf->next))
		result = max(result, depth_above(&kf->ke.queue->nest,
						 depth + 1) + 1);
	return result;
}

/**
 * kevent_nest_paths - count the paths from a queue or epoll file upwards
 * @file: the file
 * @depth: links behind
 *
 * Under RCU. Return: 0, -1 when there are too many.
 */
int kevent_nest_paths(struct file *file, int depth)
{
	struct kevent_file *kf = READ_ONCE(file->f_kevent);
	struct kevent_nest *nest;
	struct file *above;
	int err = 0;

	for (; kf && !err; kf = READ_ONCE(kf->next)) {
		nest = &kf->ke.queue->nest;
		above = READ_ONCE(nest->file);
		if (above)
			err = ep_nest_paths(&nest->refs, above, depth);
	}
	return err;
}

/**
 * kevent_nest_check - are there too many paths from a queue that was visited?
 *
 * Return: 0 or -1.
 */
int kevent_nest_check(void)
{
	struct kevent_nest *nest;
	int err = 0;

	for (nest = visited; nest && !err; nest = nest->next) {
		err = ep_nest_check_set(nest->file);
		cond_resched();
	}
	return err;
}

/**
 * kevent_nest_done - the check is over, and the mutex still held
 */
void kevent_nest_done(void)
{
	struct kevent_nest *nest;

	while ((nest = visited)) {
		visited = nest->next;
		fput(nest->file);
	}
	looks = 0;
}

/* For queues */

/**
 * kevent_nest_link - kevent_file_link() for a queue or epoll file
 * @kp: the watch, being attached
 * @file: its file
 *
 * Return: 0, -ELOOP for a loop or too long a path, -ENOSPC when there are too many paths,
 * or over another limit, -EEXIST, -ENOMEM, -EINTR on a fatal signal. After an error,
 * too, kevent_file_unlink() and kevent_nest_unlink() must follow.
 */
int kevent_nest_link(struct kevent_poll *kp, struct file *file)
{
	struct kevent *ke = &kp->kf.ke;
	struct kevent_queue *q = ke->queue;
	int err, full;

	err = ep_nest_begin(q->nest.file, file);
	if (err)
		return err;
	if (!kevent_charge(q->owner, KEVENT_NEST_COST)) {
		err = -ENOSPC;
	} else {
		err = xa_err(xa_store(&q->nest.watched, ke->index, file,
				      GFP_KERNEL_ACCOUNT));
		if (err)
			kevent_uncharge(q->owner, KEVENT_NEST_COST);
	}
	if (!err)
		err = kevent_file_link(&kp->kf, file);
	full = ep_nest_end();
	return err ?: full;
}

/**
 * kevent_nest_unlink - undo kevent_nest_link(), after kevent_file_unlink()
 * @ke: the watch; its file is pinned. Nothing is done when it is not linked
 */
void kevent_nest_unlink(struct kevent *ke)
{
	struct kevent_queue *q = ke->queue;

	if (xa_erase(&q->nest.watched, ke->index))
		kevent_uncharge(q->owner, KEVENT_NEST_COST);
}
