/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * System calls by number
 */
#ifndef LIBKEVENT_RAW_SYSCALL_H
#define LIBKEVENT_RAW_SYSCALL_H

#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>

/* Where a machine's, or an ABI's, numbers start; alpha is 110 ahead. */
#if defined(__alpha__)
#define KEVENT_NR_BASE		110
#elif defined(__mips__)
#define KEVENT_NR_BASE		__NR_Linux
#elif defined(__x86_64__) && defined(__ILP32__)
#define KEVENT_NR_BASE		__X32_SYSCALL_BIT
#else
#define KEVENT_NR_BASE		0
#endif

#ifndef __NR_kevent_init
#define __NR_kevent_init	(KEVENT_NR_BASE + 480)
#define __NR_kevent_ctl		(KEVENT_NR_BASE + 481)
#define __NR_kevent_get_events	(KEVENT_NR_BASE + 482)
#define __NR_kevent_wait	(KEVENT_NR_BASE + 483)
#define __NR_kevent_commit	(KEVENT_NR_BASE + 484)
#endif
#ifndef __NR_kevent_call
#define __NR_kevent_call	(KEVENT_NR_BASE + 485)
#endif

/*
 * A system call that returns -errno and leaves errno alone. A call of syscall() costs
 * a wait that finds an event as much as the ring does. The unit tests replace that
 * function, and define LIBKEVENT_CALLS_LIBC.
 */
#if defined(__x86_64__) && defined(__LP64__) && !defined(LIBKEVENT_CALLS_LIBC)
static inline long kevent_call6(long nr, long a, long b, long c, long d, long e,
				long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "+a" (nr)
			 : "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8),
			   "r" (r9)
			 : "rcx", "r11", "memory");
	return nr;
}
#elif defined(__aarch64__) && !defined(LIBKEVENT_CALLS_LIBC)
static inline long kevent_call6(long nr, long a, long b, long c, long d, long e,
				long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r" (x0)
			 : "r" (x8), "r" (x1), "r" (x2), "r" (x3), "r" (x4),
			   "r" (x5)
			 : "memory");
	return x0;
}
#else
static inline long kevent_call6(long nr, long a, long b, long c, long d, long e,
				long f)
{
	int saved = errno;
	long ret = syscall(nr, a, b, c, d, e, f);

	if (ret < 0) {
		ret = -errno;
		errno = saved;
	}
	return ret;
}
#endif

/* The arguments may be integers of any type, and pointers. */
#define kevent_syscall(nr, a, b, c, d, e, f)				\
	((int)kevent_call6((nr), (long)(a), (long)(b), (long)(c), (long)(d), \
			   (long)(e), (long)(f)))

/* close() of the C library is a cancellation point, and changes errno. */
static inline void kevent_close_fd(int fd)
{
	(void)kevent_call6(SYS_close, fd, 0, 0, 0, 0, 0);
}

#endif /* LIBKEVENT_RAW_SYSCALL_H */
