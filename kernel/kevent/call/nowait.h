/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of chains as far as they do not block
 */
#ifndef _KEVENT_NOWAIT_H
#define _KEVENT_NOWAIT_H

#include <linux/limits.h>
#include <linux/types.h>

struct pt_regs;

/*
 * No result of a call that is made here, and of no other call of the table. Nothing has
 * happened: the call would block, or cannot be made where it must not.
 */
#define KEVENT_CALL_ELSEWHERE	LONG_MIN

#ifdef CONFIG_KEVENT_AIO
long kevent_call_nowait(struct pt_regs *regs, u32 nr);
#else
static inline long kevent_call_nowait(struct pt_regs *regs, u32 nr)
{
	return KEVENT_CALL_ELSEWHERE;
}
#endif

#endif /* _KEVENT_NOWAIT_H */
