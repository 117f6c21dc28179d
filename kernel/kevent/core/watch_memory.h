/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of watches: slab caches, and who pays; and the index of all watches of a queue
 */
#ifndef _KEVENT_WATCH_MEMORY_H
#define _KEVENT_WATCH_MEMORY_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct kevent;
struct kevent_block;
struct kmem_cache;
struct obj_cgroup;

/**
 * struct kevent_index - all watches of a queue
 * @blocks:	X: their blocks
 * @room:	X: the blocks that are not full
 * @last:	X: the block that a watch was last taken out of, NULL: none
 * @payer:	I: memory cgroup that is charged with the watches: that of the task that
 *		made the queue; NULL: the root
 * @paid:	X: bytes that it is charged with for watches to come; a page for each
 *		task that adds, at most
 */
struct kevent_index {
	struct xarray		blocks;
	struct list_head	room;
	struct kevent_block	*last;
	struct obj_cgroup	*payer;
	u32			paid;
};

/* By type. The cost is in bytes that the owner is charged with. */
extern struct kmem_cache *kevent_caches[];
extern u32 kevent_costs[];

int kevent_caches_init(void);
void kevent_index_init(struct kevent_index *index);
void kevent_index_destroy(struct kevent_index *index);
int kevent_index_insert(struct kevent_index *index, struct kevent *ke);
void kevent_index_erase(struct kevent_index *index, struct kevent *ke);
struct kevent *kevent_index_next(struct kevent_index *index, u32 *at);

#endif /* _KEVENT_WATCH_MEMORY_H */
