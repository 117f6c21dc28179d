/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The numbers of the system calls
 */
#ifndef LIBKEVENT_SYSCALL_H
#define LIBKEVENT_SYSCALL_H

#include <sys/syscall.h>

#ifndef __NR_kevent_init
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
#define __NR_kevent_init	(KEVENT_NR_BASE + 480)
#define __NR_kevent_ctl		(KEVENT_NR_BASE + 481)
#define __NR_kevent_get_events	(KEVENT_NR_BASE + 482)
#define __NR_kevent_wait	(KEVENT_NR_BASE + 483)
#define __NR_kevent_commit	(KEVENT_NR_BASE + 484)
#endif

#endif /* LIBKEVENT_SYSCALL_H */
