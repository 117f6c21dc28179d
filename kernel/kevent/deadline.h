/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Until when a consumer waits
 */
#ifndef _KEVENT_DEADLINE_H
#define _KEVENT_DEADLINE_H

#include <linux/ktime.h>
#include <linux/types.h>

struct __kernel_timespec;

/**
 * struct kevent_deadline - until when a consumer waits
 * @at:		time of @clock, KTIME_MAX for no limit; see @relative
 * @slack:	how much later is fine, in nanoseconds
 * @clock:	CLOCK_MONOTONIC and its like
 * @nowait:	do not sleep at all
 * @relative:	@at counts from when a consumer is about to sleep, never 0
 */
struct kevent_deadline {
	ktime_t			at;
	u64			slack;
	clockid_t		clock;
	bool			nowait;
	bool			relative;
};

ktime_t kevent_clock_now(clockid_t clock);
int kevent_deadline_get(struct kevent_deadline *until, bool absolute,
			const struct __kernel_timespec __user *timeout);
void kevent_deadline_start(struct kevent_deadline *until);
int kevent_deadline_over(const struct kevent_deadline *until);
bool kevent_deadline_sooner(const struct kevent_deadline *until, u64 ns,
			    struct kevent_deadline *sooner);

#endif /* _KEVENT_DEADLINE_H */
