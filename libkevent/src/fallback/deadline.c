// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * When a call gives up
 */
#include <errno.h>
#include <limits.h>

#include "deadline.h"

bool fb_clock_known(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
	       clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

/* The clock that measures a span of time: nobody can set it */
static clockid_t fb_span_clock(clockid_t clock)
{
	return clock == CLOCK_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

__s64 fb_clock_now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * FB_NSEC_PER_SEC + now.tv_nsec;
}

__s64 fb_time_add(__s64 at, __u64 ns)
{
	return ns > (__u64)(FB_TIME_MAX - at) ? FB_TIME_MAX : at + (__s64)ns;
}

int fb_deadline_init(struct fb_deadline *until, clockid_t clock, bool absolute,
		     const struct timespec *timeout)
{
	until->clock = absolute ? clock : fb_span_clock(clock);
	until->at = FB_TIME_MAX;
	until->early = FB_TIME_MAX;
	until->relative = false;
	if (!timeout)
		return 0;
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
	    timeout->tv_nsec >= FB_NSEC_PER_SEC)
		return -EINVAL;
	if (timeout->tv_sec < FB_TIME_MAX / FB_NSEC_PER_SEC)
		until->at = timeout->tv_sec * FB_NSEC_PER_SEC +
			    timeout->tv_nsec;
	until->relative = !absolute && until->at != FB_TIME_MAX;
	return 0;
}

bool fb_deadline_steps(const struct fb_deadline *until)
{
	return until->clock != fb_span_clock(until->clock) && until->at != FB_TIME_MAX;
}

static __s64 fb_time_left(clockid_t clock, __s64 at)
{
	__s64 now;

	if (at == FB_TIME_MAX)
		return FB_TIME_MAX;
	now = fb_clock_now(clock);
	return at > now ? at - now : 0;
}

/* A span begins when the call has found nothing. */
__s64 fb_deadline_left(struct fb_deadline *until)
{
	__s64 left, early;

	if (!until->at)
		return 0;
	if (until->relative)
		until->at = fb_time_add(fb_clock_now(until->clock),
					(__u64)until->at);
	until->relative = false;
	left = fb_time_left(until->clock, until->at);
	early = fb_time_left(fb_span_clock(until->clock), until->early);
	return early < left ? early : left;
}

void fb_deadline_bring_forward(struct fb_deadline *until, __u64 ns)
{
	if (ns && ns < (__u64)fb_deadline_left(until))
		until->early = fb_time_add(fb_clock_now(fb_span_clock(until->clock)), ns);
}

bool fb_deadline_put_off(struct fb_deadline *until)
{
	bool early = until->early != FB_TIME_MAX;

	until->early = FB_TIME_MAX;
	return early;
}

int fb_time_ms(__s64 left)
{
	__s64 ms = left / 1000000 + !!(left % 1000000);

	if (left == FB_TIME_MAX)
		return -1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}
