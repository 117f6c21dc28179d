/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Counts that threads share
 *
 * As long as the process has one thread, a locked instruction and a full barrier order
 * nothing: they are a third of what the library adds to a call of epoll. A thread that
 * the caller creates begins after the call, and sees all its stores.
 */
#ifndef LIBKEVENT_FALLBACK_COUNT_H
#define LIBKEVENT_FALLBACK_COUNT_H

#include <limits.h>		/* says which C library it is */
#include <stdbool.h>

#include "libkevent.h"

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define fb_single_threaded() ((bool)__libc_single_threaded)
#endif
#endif
#ifndef fb_single_threaded
#define fb_single_threaded() false
#endif

/* Returns the new value. */
static inline __u32 fb_count_add(__u32 *count, __u32 nr)
{
	if (!fb_single_threaded())
		return __atomic_add_fetch(count, nr, __ATOMIC_SEQ_CST);
	nr += __atomic_load_n(count, __ATOMIC_RELAXED);
	__atomic_store_n(count, nr, __ATOMIC_RELAXED);
	return nr;
}

static inline void fb_full_barrier(void)
{
	if (!fb_single_threaded())
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif /* LIBKEVENT_FALLBACK_COUNT_H */
