/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * System calls of the fallback: the error is in the return value, and none is a
 * cancellation point
 */
#ifndef LIBKEVENT_FB_SYS_H
#define LIBKEVENT_FB_SYS_H

#include <linux/futex.h>
#include <linux/types.h>

#include "api/raw_syscall.h"

#define fb_sys6(nr, a, b, c, d, e, f, ...)				\
	kevent_call6((nr), (long)(a), (long)(b), (long)(c), (long)(d),	\
		     (long)(e), (long)(f))
#define fb_sys(...)	fb_sys6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* The same for functions of the C library that are no cancellation points */
#define fb_call(expression)					\
__extension__ ({						\
	int __saved = errno;					\
	int __ret = (expression);				\
								\
	if (__ret < 0) {					\
		__ret = -errno;					\
		errno = __saved;				\
	}							\
	__ret;							\
})

/* Futexes of the library: change a word, and wake so many; sleep while it is @value. */
static inline void fb_bump(__u32 *word, int nr)
{
	__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
	fb_sys(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, nr);
}

static inline long fb_sleep_at(__u32 *word, __u32 value, const void *timeout)
{
	return fb_sys(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, timeout);
}

/* For a descriptor that a function opens and closes; see own.c for others. */
static inline void fb_close_local(int fd)
{
	if (fd >= 0)
		fb_sys(SYS_close, fd);
}

#endif /* LIBKEVENT_FB_SYS_H */
