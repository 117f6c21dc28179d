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
#include "api/syscall.h"

#pragma GCC visibility push(hidden)

/* May a chain have the call? */
bool kevent_call_allowed(__u32 nr);

/*
 * Make the calls of a chain from entry @i on, by ordinary calls. Returns what
 * kevent_call() does.
 */
int kevent_call_rest(struct kevent_call *chain, __u32 i, __u32 nr);

/* 32-bit programs have no chains in the kernel. */
static inline int kevent_call_kernel(int fd, struct kevent_call *chain, __u32 nr,
				     __u32 flags, __u64 cookie)
{
#ifdef __LP64__
	if (!kevent_kernel_there())
		return -ENOSYS;
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
