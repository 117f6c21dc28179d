/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A system call of kevent in another process, or what the module has for it, as text
 */
#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "decode.h"

/**
 * struct call - the system call that a thread is in
 * @tid: the thread
 * @active: it is a call of kevent
 * @nr: the number of the call less that of kevent_init()
 * @arg: its arguments; those of the system call that the module has an ioctl for
 * @at_once: the timeout, which is not in memory, is zero
 * @to: where the rest of @text goes
 * @text: the call so far
 */
struct call {
	pid_t		tid;
	bool		active;
	unsigned int	nr;
	__u64	arg[6];
	bool	at_once;
	struct text	to;
	char		text[4096];
};

void call_begins(struct call *call, __u64 nr, const __u64 arg[6]);
void call_ends(struct call *call, __s64 ret);

#endif /* CALLS_H */
