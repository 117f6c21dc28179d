/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The event of a signal
 */
#ifndef LIBKEVENT_SIGINFO_H
#define LIBKEVENT_SIGINFO_H

#include <signal.h>
#include <stdbool.h>
#include <linux/types.h>

#pragma GCC visibility push(hidden)

/**
 * struct fb_siginfo - what an event says of a signal
 * @signal:	its number
 * @code:	si_code, and likewise @value, @pid and @uid; 0 where there is none
 * @observed:	it was delivered as well
 */
struct fb_siginfo {
	__u32	signal;
	__u32	code;
	__u32	value;
	__u32	pid;
	__u32	uid;
	bool	observed;
};

/* Of what a handler has got. Async-signal-safe */
struct fb_siginfo fb_siginfo_of(int signal, const siginfo_t *info);

#pragma GCC visibility pop

#endif /* LIBKEVENT_SIGINFO_H */
