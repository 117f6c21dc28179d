/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All watches of a queue
 */
#ifndef _KEVENT_INDEX_H
#define _KEVENT_INDEX_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct kevent;

/**
 * struct kevent_index - all watches of a queue
 * @blocks:	X: their blocks
 * @room:	X: the blocks that are not full
 */
struct kevent_index {
	struct xarray		blocks;
	struct list_head	room;
};

void kevent_index_init(struct kevent_index *index);
void kevent_index_destroy(struct kevent_index *index);
int kevent_index_insert(struct kevent_index *index, struct kevent *ke);
void kevent_index_erase(struct kevent_index *index, struct kevent *ke);
struct kevent *kevent_index_next(struct kevent_index *index, u32 *at);

#endif /* _KEVENT_INDEX_H */
