/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Chains: what other files of the library need
 */
#ifndef LIBKEVENT_CALL_PRIVATE_H
#define LIBKEVENT_CALL_PRIVATE_H

#include <stdbool.h>

#include "kernel.h"
#include "libkevent.h"
#include "syscall.h"

#pragma GCC visibility push(hidden)

/* May a chain have the call? */
bool kevent_call_allowed(__u32 nr);

/*
 * Make the calls of a chain from entry @i on, by ordinary calls. Returns what
 * kevent_call() does.
 */
int kevent_call_rest(struct kevent_call *chain, __u32 i, __u32 nr);

/* kevent_call() with KEVENT_CALL_ASYNC; the other arguments are checked. */
int kevent_call_async(int fd, struct kevent_call *chain, __u32 nr, __u64 cookie);

/* kevent_chain_finish() for the event of a watch */
int kevent_finish_watched(const struct kevent_chain *c);

/* The result of the entry that ended the chain of an event */
static inline __s64 kevent_call_result(const struct ukevent *ev)
{
	return (__s64)((__u64)ev->ret_data[1] << 32 | ev->ret_data[0]);
}

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

#endif /* LIBKEVENT_CALL_PRIVATE_H */
