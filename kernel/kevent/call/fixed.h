/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls that are bound to a descriptor, and made by a slot: call/fixed.c
 */
#ifndef _KEVENT_FIXED_H
#define _KEVENT_FIXED_H

#include <linux/errno.h>
#include <linux/types.h>

struct kevent_queue;
struct pt_regs;

#ifdef CONFIG_KEVENT_AIO
long kevent_bound_unfold(struct kevent_queue *q, u64 slot, struct pt_regs *regs);
void kevent_bound_drop(struct kevent_queue *q);
#else
static inline long kevent_bound_unfold(struct kevent_queue *q, u64 slot,
				       struct pt_regs *regs)
{
	return -ENOSYS;
}

static inline void kevent_bound_drop(struct kevent_queue *q) {}
#endif

#endif /* _KEVENT_FIXED_H */
