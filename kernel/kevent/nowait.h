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
 * No results of a call that is made here, and of no other call of the table. Nothing has
 * happened: it would wait for what a look at its file is woken for, or it cannot be made
 * where it must not wait.
 */
#define KEVENT_CALL_BLOCKS	LONG_MIN
#define KEVENT_CALL_ELSEWHERE	(LONG_MIN + 1)

/* Is it one of these? */
static inline bool kevent_call_is_unmade(long ret)
{
	return ret <= KEVENT_CALL_ELSEWHERE;
}

#ifdef CONFIG_KEVENT_AIO
long kevent_call_nowait(struct pt_regs *regs, u32 nr, bool parts);
#else
static inline long kevent_call_nowait(struct pt_regs *regs, u32 nr, bool parts)
{
	return KEVENT_CALL_ELSEWHERE;
}
#endif

#endif /* _KEVENT_NOWAIT_H */
