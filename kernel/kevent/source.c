// SPDX-License-Identifier: GPL-2.0
/*
 * The table of sources: the one file that names them all
 */

#include <linux/bug.h>
#include <linux/init.h>
#include <linux/slab.h>

#include "kevent.h"

const struct kevent_source_ops *const kevent_sources[] = {
	[KEVENT_SOCKET]	= &kevent_socket_ops,
	[KEVENT_INODE]	= &kevent_inode_ops,
	[KEVENT_TIMER]	= &kevent_timer_ops,
	[KEVENT_POLL]	= &kevent_poll_ops,
	[KEVENT_PIPE]	= &kevent_pipe_ops,
	[KEVENT_SIGNAL]	= &kevent_signal_ops,
	[KEVENT_POSIX_TIMER] = &kevent_posix_timer_ops,
	[KEVENT_USER]	= &kevent_user_ops,
	[KEVENT_PROC]	= &kevent_proc_ops,
	[KEVENT_FUTEX]	= &kevent_futex_ops,
};

/* What a watch takes in the index of its queue, at most */
#define KEVENT_INDEX_COST	16

u32 kevent_source_costs[KEVENT_NR_TYPES] __ro_after_init;

static void __init kevent_source_check(const struct kevent_source_ops *ops)
{
	WARN_ON(!ops->name || !ops->cache || !*ops->cache);
	WARN_ON(!ops->check || !ops->attach || !ops->detach || !ops->find);
	WARN_ON(!ops->hold != !ops->unhold);
	WARN_ON(ops->collect && !ops->hold);
	WARN_ON(ops->level && !ops->collect);
	WARN_ON(ops->peek && !ops->collect);
	WARN_ON(ops->count && !ops->delivered);
}

void __init kevent_sources_init(void)
{
	const struct kevent_source_ops *ops;
	unsigned int i;

	BUILD_BUG_ON(ARRAY_SIZE(kevent_sources) != KEVENT_NR_TYPES);

	for (i = 0; i < KEVENT_NR_TYPES; i++) {
		ops = kevent_sources[i];
		if (!ops)
			continue;
		kevent_source_check(ops);
		kevent_source_costs[i] = kmem_cache_size(*ops->cache) +
					 KEVENT_INDEX_COST + ops->pins;
	}
}
