/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Delivery: consumers move events from the ready list to user memory
 */
#ifndef _KEVENT_DELIVER_H
#define _KEVENT_DELIVER_H

#include <linux/types.h>

#include "waiter.h"

struct kevent_queue;
struct kring;

int kevent_collect(struct kevent_queue *q, struct kring *to, u32 max,
		   bool relist);
int kevent_leave(struct kevent_queue *q, enum kevent_consumers others);
int kevent_commit(struct kevent_queue *q, u64 uidx);

#endif /* _KEVENT_DELIVER_H */
