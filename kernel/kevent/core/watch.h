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

#endif /* _KEVENT_WATCH_H */
