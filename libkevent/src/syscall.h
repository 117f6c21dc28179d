/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The numbers of the system calls
 */
#ifndef LIBKEVENT_SYSCALL_H
#define LIBKEVENT_SYSCALL_H

#include <sys/syscall.h>

#ifndef __NR_kevent_init
#define __NR_kevent_init	480
#define __NR_kevent_ctl		481
#define __NR_kevent_get_events	482
#define __NR_kevent_wait	483
#define __NR_kevent_commit	484
#endif

#endif /* LIBKEVENT_SYSCALL_H */
