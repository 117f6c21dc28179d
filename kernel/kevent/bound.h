/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls that are bound to a descriptor, and made by a slot: ev_bound.c
 */
#ifndef _KEVENT_BOUND_H
#define _KEVENT_BOUND_H

#include <linux/errno.h>
#include <linux/types.h>

#include "kevent.h"

struct file;
struct kevent_queue;
struct pt_regs;

/**
 * struct kevent_bound - a bound call
 * @shared:	the watch; its event is the slot
 * @nr:		I: number of the call
 * @arg:	I: its arguments behind the descriptor, as far as a call of the list in
 *		bound_check() has any; the others are 0
 */
struct kevent_bound {
	struct kevent_shared	shared;
	u32			nr;
	u64			arg[3];
};

static inline struct kevent_bound *to_bound(struct kevent *ke)
{
	return container_of(ke, struct kevent_bound, shared.kf.ke);
}

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

#endif /* _KEVENT_BOUND_H */
