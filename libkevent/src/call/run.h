/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Chains of calls, in the kernel or by ordinary calls. It is below the fallback, whose
 * threads run chains, too.
 */
#ifndef LIBKEVENT_RUN_H
#define LIBKEVENT_RUN_H

#include <errno.h>
#include <stdbool.h>

#include "libkevent.h"
#include "api/kernel.h"
#include "api/raw_syscall.h"

#pragma GCC visibility push(hidden)

/* May a chain have the call? */
bool kevent_call_allowed(__u32 nr);

/*
 * Make the calls of a chain from entry @i on, by ordinary calls. Returns what
 * kevent_call() does.
 */
int kevent_call_rest(struct kevent_call *chain, __u32 i, __u32 nr);

/*
 * Where a chain goes on behind the entry @i, which was @call and has the result @ret; @nr:
 * nowhere. Entries between are marked as not made.
 */
__u32 kevent_call_behind(struct kevent_call *chain, __u32 i, __u32 nr,
			 const struct kevent_call *call, long ret);

/*
 * The system call, for a process that knows of it: see kevent_kernel_there(). 32-bit programs
 * have no chains in the kernel.
 */
static inline int kevent_call_chain(int fd, struct kevent_call *chain, __u32 nr,
				    __u32 flags, __u64 cookie)
{
#ifdef __LP64__
	return kevent_syscall(__NR_kevent_call, fd, chain, nr, flags, cookie, 0);
#else
	(void)fd;
	(void)chain;
	(void)nr;
	(void)flags;
	(void)cookie;
	return -EOPNOTSUPP;
#endif
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_RUN_H */
