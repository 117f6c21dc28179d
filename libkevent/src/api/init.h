/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Which hosts may make a queue
 */
#ifndef LIBKEVENT_INIT_H
#define LIBKEVENT_INIT_H

#include <stdbool.h>
#include "libkevent.h"
#include "kernel.h"

#pragma GCC visibility push(hidden)

/* In this order: each only where those before do not */
enum kevent_host {
	KEVENT_HOST_CALLS = 1,
	KEVENT_HOST_MODULE = 2,
	KEVENT_HOST_EPOLL = 4,
};

/* Bits of enum kevent_host: what the environment wants; 0: it was not read */
extern unsigned int kevent_environment;

/* Bits of enum kevent_host: what a program with these flags, in this environment, wants */
unsigned int kevent_hosts(__u32 flags);

/* Is all for the system calls, as far as is known? */
static inline bool kevent_all_calls(void)
{
	return kevent_only_kernel() &&
	       __atomic_load_n(&kevent_environment, __ATOMIC_RELAXED) & KEVENT_HOST_CALLS;
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_INIT_H */
