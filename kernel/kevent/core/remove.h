/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How watches go
 */
#ifndef _KEVENT_REMOVE_H
#define _KEVENT_REMOVE_H

#include <linux/types.h>

struct file;
struct kevent;
struct kevent_queue;
struct kevent_source_ops;
struct list_head;
struct ukevent;

int kevent_remove(struct kevent_queue *q, const struct kevent_source_ops *ops,
		  const struct ukevent *uk, struct file *file);
bool kevent_kill_one(struct kevent *ke, bool hold);
void kevent_bury(struct kevent *ke, bool held);
void kevent_expire(struct kevent *ke, struct list_head *dead);
void kevent_bury_list(struct list_head *dead);
void kevent_free(struct kevent *ke);
void kevent_remove_all(struct kevent_queue *q);

#endif /* _KEVENT_REMOVE_H */
