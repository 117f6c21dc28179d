/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a source reports
 *
 * Any context, hard interrupts included. The source's own lock may be held, and
 * the lock that makes detach() wait for this callback must be.
 */
#ifndef _KEVENT_REPORT_H
#define _KEVENT_REPORT_H

#include <linux/types.h>

#include "queue.h"
#include "state.h"

/* kevent_ready_locked() and its like are in state.h. */
void kevent_ready(struct kevent *ke, u32 mask);
void kevent_recheck(struct kevent *ke);
void kevent_broken(struct kevent *ke);

/* For conditions of level sources: these can go straight to the ring. */
int kevent_ready_amount(struct kevent *ke, u32 mask, u32 amount);
void kevent_ready_irqs_on(struct kevent *ke, u32 mask, u32 amount);
bool kevent_offer(struct kevent *ke, u16 keys, u32 mask, u32 amount);

/* For a consumer of the ring that is awake */
bool kevent_hit_late(struct kevent_queue *q);

#endif /* _KEVENT_REPORT_H */
