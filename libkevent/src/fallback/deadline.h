/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * When a call gives up
 */
#ifndef LIBKEVENT_FB_DEADLINE_H
#define LIBKEVENT_FB_DEADLINE_H

#include <stdbool.h>
#include <time.h>
#include <linux/types.h>

#define FB_NSEC_PER_SEC	1000000000LL
#define FB_TIME_MAX	((__s64)(~0ULL >> 1))

/**
 * struct fb_deadline - when a call gives up
 * @clock:	the clock
 * @at:		point of time, in ns; %FB_TIME_MAX: never, 0: now
 * @early:	or at this time of a clock that nobody can set, if that is sooner
 * @relative:	@at is a span of time that has not begun
 */
struct fb_deadline {
	clockid_t	clock;
	__s64		at;
	__s64		early;
	bool		relative;
};

bool fb_clock_known(clockid_t clock);
__s64 fb_clock_now(clockid_t clock);
/* No overflow: what is too late is never. */
__s64 fb_time_add(__s64 at, __u64 ns);
/* 0 or -EINVAL */
int fb_deadline_init(struct fb_deadline *until, clockid_t clock, bool absolute,
		     const struct timespec *timeout);
/* May somebody set its clock? Then the time that is left changes. */
bool fb_deadline_steps(const struct fb_deadline *until);
/* How long from now, in ns; %FB_TIME_MAX: without end */
__s64 fb_deadline_left(struct fb_deadline *until);
/* Not after @ns from now, unless that is 0, until it is put off */
void fb_deadline_bring_forward(struct fb_deadline *until, __u64 ns);
/* Was it brought forward? Not any more then. */
bool fb_deadline_put_off(struct fb_deadline *until);
/* Such a time in milliseconds for epoll_pwait(), not too short */
int fb_time_ms(__s64 left);

#endif /* LIBKEVENT_FB_DEADLINE_H */
