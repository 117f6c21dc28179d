/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue as a set of files among others, which watch each other
 */
#ifndef _KEVENT_NESTING_H
#define _KEVENT_NESTING_H

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "../host.h"

struct file;

/**
 * struct kevent_nest - a queue among the sets that watch each other
 * @file:	the queue's file, without a reference; NULL before and after that
 *		is open. Who follows it under RCU may find another file
 * @refs:	items of epolls that watch the queue: &file.f_ep of its file. Written
 *		under its f_lock, read under RCU, too
 * @watched:	the files of watches of queues and epoll files, by &kevent.index.
 *		Its lock protects it: a file that is there is pinned by a descriptor, or by
 *		the task that is about to take it out. Each is charged to the owner
 * @gen:	M: the check that came here last
 * @depth:	M: what it has found: links to the end of the longest path
 * @next:	M: of those that it has come to on its way down
 * @wakes:	lockdep's subclass of &kevent_queue.poll_wait, while that is woken
 *		and locked
 *
 * M: epoll's mutex for nesting.
 */
struct kevent_nest {
	struct file		*file;
	struct hlist_head	refs;
	struct xarray		watched;
	u64			gen;
	struct kevent_nest	*next;
	u8			depth;
	u8			wakes;
};

/* Is this a set of files that can be watched itself? */
static inline bool kevent_is_nesting(struct file *file)
{
	return is_kevent_file(file) || host_is_epoll(file);
}

/*
 * What a wake-up of a watched file passes on to those who poll the queue:
 * EPOLL_URING_WAKE, and lockdep's subclass in the low bits
 */
#define KEVENT_CHAIN_NESTS	7U

/*
 * What a wake-up of a watched file passes on. The lock of the wait queue is held. @nesting:
 * the file is a queue or an epoll file.
 */
static inline u32 kevent_wake_context(struct file *file, bool nesting,
				      __poll_t key)
{
	u32 chain = (__force u32)(key & EPOLL_URING_WAKE);

#if defined(CONFIG_DEBUG_LOCK_ALLOC) && HOST_NESTS
	if (nesting)
		chain |= min(ep_wake_nests(file), KEVENT_CHAIN_NESTS);
#endif
	return chain;
}

#endif /* _KEVENT_NESTING_H */
