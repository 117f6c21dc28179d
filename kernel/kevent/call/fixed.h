/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bound calls, with CONFIG_KEVENT_AIO
 */
#ifndef _KEVENT_FIXED_H
#define _KEVENT_FIXED_H

#include <linux/types.h>

struct kevent_queue;
struct pt_regs;

long kevent_bound_unfold(struct kevent_queue *q, u64 slot, struct pt_regs *regs);
void kevent_bound_drop(struct kevent_queue *q);

#endif /* _KEVENT_FIXED_H */
