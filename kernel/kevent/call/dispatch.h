/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a call of a chain is made: as the entry of system calls would make it, as far as it does
 * not block, or by the slot of a bound call
 */
#ifndef _KEVENT_DISPATCH_H
#define _KEVENT_DISPATCH_H

#include <linux/limits.h>
#include <linux/ptrace.h>
#include <linux/syscalls.h>

#include <asm/syscall.h>

/* Where a call looks for its arguments */
#ifdef CONFIG_X86_64
#define KEVENT_CALL_ARG0	di
#define KEVENT_CALL_ARG1	si
#define KEVENT_CALL_ARG2	dx
#define KEVENT_CALL_ARG3	r10
#define KEVENT_CALL_ARG4	r8
#define KEVENT_CALL_ARG5	r9
#else
#define KEVENT_CALL_ARG0	regs[0]
#define KEVENT_CALL_ARG1	regs[1]
#define KEVENT_CALL_ARG2	regs[2]
#define KEVENT_CALL_ARG3	regs[3]
#define KEVENT_CALL_ARG4	regs[4]
#define KEVENT_CALL_ARG5	regs[5]
#endif

/* Make the call @nr, one that may be in a chain. Registers beside the arguments are 0. */
static inline long kevent_call_dispatch(struct pt_regs *regs, u32 nr)
{
#ifdef CONFIG_X86_64
	regs->orig_ax = nr;
	return x64_sys_call(regs, nr);
#else
	regs->syscallno = nr;
	regs->orig_x0 = regs->regs[0];
	return sys_call_table[nr](regs);
#endif
}

/*
 * No result of a call that is made here, and of no other call of the table. Nothing has
 * happened: the call would block, or cannot be made where it must not.
 */
#define KEVENT_CALL_ELSEWHERE	LONG_MIN

/* nowait.c, with CONFIG_KEVENT_AIO */
long kevent_call_nowait(struct pt_regs *regs, u32 nr);

#endif /* _KEVENT_DISPATCH_H */
