// SPDX-License-Identifier: GPL-2.0
/*
 * Queues in queues: what sources/file_nest.c has of epoll's check elsewhere
 *
 * epoll's knows no queues here, and what an epoll watches cannot be seen. So no queue watches an
 * epoll file, and a loop has queues only. An epoll may watch a queue: there ends what is checked
 * here, and begins what epoll checks. A queue wakes its pollers later, without a lock, and asks
 * nobody when it is polled: so the two make neither the stack nor a wake-up longer together.
 */

#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include "../kevent/core/types.h"

#define EP_MAX_NESTS	4

/* Orders all who let a queue watch a queue. */
static DEFINE_MUTEX(nest_lock);

/* Under the mutex: the number of the check, who gets the link, and paths by their length */
static u64 checks;
static struct file *inserting_into;
static unsigned int paths[EP_MAX_NESTS + 1];

/* The limits of epoll: how many paths of 1, 2, ... sets may lead upwards */
static const unsigned int path_limits[] = { UINT_MAX, 500, 100, 50, 10 };
static_assert(ARRAY_SIZE(path_limits) == ARRAY_SIZE(paths));

static bool ep_nest_visited(u64 *gen)
{
	lockdep_assert_held(&nest_lock);

	if (*gen == checks)
		return true;
	*gen = checks;
	return false;
}

static int ep_nest_down(struct file *file, int depth)
{
	if (file == inserting_into || depth > EP_MAX_NESTS)
		return EP_MAX_NESTS + 1;
	return kevent_nest_down(file, depth) + 1;
}

/* Under RCU. It may come to a file that takes the place of one that has just ended. */
static int ep_nest_up(struct hlist_head *refs, struct file *file, int depth)
{
	return depth > EP_MAX_NESTS ? 0 : kevent_nest_up(file, depth);
}

/* Likewise */
static int ep_nest_paths(struct hlist_head *refs, struct file *file, int depth)
{
	if (depth > EP_MAX_NESTS)
		return -1;
	if (host_watches(file))
		return kevent_nest_paths(file, depth + 1);
	return ++paths[depth] > path_limits[depth] ? -1 : 0;
}

static int ep_nest_check_set(struct file *file)
{
	lockdep_assert_held(&nest_lock);

	memset(paths, 0, sizeof(paths));
	guard(rcu)();
	return kevent_nest_paths(file, 0);
}

static int links_of_path(struct file *into, struct file *to)
{
	int below = ep_nest_down(to, 0);

	guard(rcu)();
	return below > EP_MAX_NESTS ? below : below + ep_nest_up(NULL, into, 0);
}

/* @into is about to watch @to. 0, when ep_nest_end() must follow, or -ELOOP or -EINTR */
static int ep_nest_begin(struct file *into, struct file *to)
{
	if (host_is_epoll(to))
		return -ELOOP;
	if (mutex_lock_killable(&nest_lock))
		return -EINTR;
	checks++;
	inserting_into = into;
	if (links_of_path(into, to) <= EP_MAX_NESTS)
		return 0;
	kevent_nest_done();
	mutex_unlock(&nest_lock);
	return -ELOOP;
}

/* The watch is linked, or could not be. 0, or -ENOSPC when there are too many paths */
static int ep_nest_end(void)
{
	int err = kevent_nest_check();

	kevent_nest_done();
	mutex_unlock(&nest_lock);
	return err ? -ENOSPC : 0;
}

/* One object: the walks of both call each other. */
#include "../kevent/sources/file_nest.c"
