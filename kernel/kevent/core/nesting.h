/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue as a set of files among others, which watch each other: at most EP_MAX_NESTS deep
 */
#ifndef _KEVENT_NESTING_H
#define _KEVENT_NESTING_H

#include <linux/list.h>
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
};

/* Is this a set of files that can be watched itself? */
static inline bool kevent_is_nesting(struct file *file)
{
	return is_kevent_file(file) || host_is_epoll(file);
}

#endif /* _KEVENT_NESTING_H */
