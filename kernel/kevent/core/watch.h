/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How watches come, change and go
 */
#ifndef _KEVENT_WATCH_H
#define _KEVENT_WATCH_H

#include <linux/file.h>
#include <linux/types.h>

#include "queue.h"

struct kevent *kevent_add(struct kevent_queue *q,
			  const struct kevent_source_ops *ops,
			  struct ukevent *uk, struct fd f);
void kevent_add_end(struct kevent *ke, int err);
int kevent_modify(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file);
int kevent_mark(struct kevent_queue *q, const struct kevent_source_ops *ops,
		const struct ukevent *uk, struct file *file);
void kevent_fill(struct kevent *ke, struct ukevent *uk);

int kevent_remove(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file);
bool kevent_kill_one(struct kevent *ke, bool hold);
void kevent_bury(struct kevent *ke, bool held);
void kevent_free(struct kevent *ke);
void kevent_remove_all(struct kevent_queue *q);

/* The second word of the result of a watch whose conditions @ready hold */
static inline u32 kevent_amount(struct kevent *ke, u32 ready)
{
	const struct kevent_source_ops *ops = kevent_source_of(ke);

	return ops->amount ? ops->amount(ke, ready) : 0;
}

/*
 * Make the entry of an event of a watch; kevent_fill() adds what is not in all entries. It needs
 * no memory if the caller is inline, too. A hit has nothing to add: its watch is neither broken
 * nor one for STAY_AWAKE, and its source has no fill().
 */
static inline struct ukevent kevent_entry(const struct kevent *ke, u32 ready,
					  u32 amount)
{
	return (struct ukevent){
		.id.raw_u64	= kevent_id(ke),
		.type		= ke->type,
		.event		= ke->event,
		.req_flags	= ke->req_flags,
		.ret_flags	= KEVENT_RET_DONE,
		.ret_data	= { ready, amount },
		.ptr		= ke->user,
	};
}

#endif /* _KEVENT_WATCH_H */
