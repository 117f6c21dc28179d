/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From request to watch, and back
 */
#ifndef _KEVENT_WATCH_H
#define _KEVENT_WATCH_H

#include <linux/file.h>
#include <linux/slab.h>
#include <linux/types.h>

#include "queue.h"

struct file;
struct kevent;
struct kevent_queue;
struct kevent_source_ops;
struct kmem_cache;
struct ukevent;

/* Watches that are allocated at once */
#define KEVENT_STASH	16U

/**
 * struct kevent_stash - memory for watches to be added, charged to the owner
 * @owner:	who is charged
 * @type:	of the first watch that is added: of all of them
 * @want:	how many may be added yet
 * @nr:		how many there are
 * @ke:		zeroed
 */
struct kevent_stash {
	struct user_struct	*owner;
	u32			type;
	u32			want;
	u32			nr;
	void			*ke[KEVENT_STASH];
};

void kevent_stash_free(struct kevent_stash *stash);

/**
 * kevent_stash_init - prepare to allocate memory for watches at once
 * @stash: the stash, not initialised
 *
 * kevent_stash_drop() must follow.
 */
static inline void kevent_stash_init(struct kevent_stash *stash)
{
	stash->type = KEVENT_NR_TYPES;
	stash->want = 0;
	stash->nr = 0;
}

/**
 * kevent_stash_drop - free what is left
 * @stash: the stash
 */
static inline void kevent_stash_drop(struct kevent_stash *stash)
{
	if (unlikely(stash->nr))
		kevent_stash_free(stash);
}

struct kevent *kevent_add(struct kevent_queue *q,
			  const struct kevent_source_ops *ops,
			  struct ukevent *uk, struct fd f,
			  struct kevent_stash *stash);
void kevent_handed_back(struct kevent *ke, bool copied);
int kevent_remove(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file);
int kevent_modify(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file);
int kevent_mark(struct kevent_queue *q, const struct kevent_source_ops *ops,
		const struct ukevent *uk, struct file *file);
void kevent_fill(struct kevent *ke, struct ukevent *uk, u32 nth);
void kevent_bury(struct kevent *ke, bool held);
void kevent_expire(struct kevent *ke, struct list_head *dead);
void kevent_bury_list(struct list_head *dead);
void kevent_free(struct kevent *ke);
void kevent_remove_all(struct kevent_queue *q);

/**
 * kevent_entry - make the entry of an event that is conditions and an amount
 * @ke: the watch, neither broken nor with %KEVENT_REQ_STAY_AWAKE
 * @ready: the conditions to report
 * @amount: second word of the entry
 *
 * Return: the entry, which needs no memory if the caller is inline, too.
 */
static __always_inline struct kring_entry kevent_entry(const struct kevent *ke,
						       u32 ready, u32 amount)
{
	return (struct kring_entry){
		.id		= kevent_id(ke),
		.user		= ke->user,
		.type		= ke->type,
		.event		= ke->event,
		.req_flags	= ke->req_flags,
		.ready		= ready,
		.amount		= amount,
	};
}

#endif /* _KEVENT_WATCH_H */
