// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Sources and clocks of the fallback, on the real kernel
 *
 * Each test runs in a process of its own, which an alarm ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fallback/fallback.h"
#include "libkevent.h"
#include "../processes.h"

#define SIZE		8U
#define MS		1000000LL
#define HOUR		3600

static KEVENT_RING_STORAGE(SIZE) mem;

static void open_queue(struct kevent_queue *q)
{
	setenv("KEVENT_BACKEND", "epoll", 1);
	CHECK_EQ(kevent_queue_init(q, &mem.ring, SIZE, 0), 0);
}

/* Clocks */

/* The second look at a clock that can be set, and later ones, find it so far off. */
static time_t step;
static unsigned int looks;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, now);

	if (!ret && (clock == CLOCK_REALTIME || clock == CLOCK_TAI) && looks++)
		now->tv_sec += step;
	return ret;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* Waits for two events, and has one; the clock is set meanwhile. The time it took */
static long long wait_for_two(clockid_t clock, time_t by, __u32 flags,
			      const struct timespec *timeout, long long min_wait)
{
	struct kevent_wait_arg arg;
	struct kevent_queue q;
	struct ukevent ev;
	long long start;

	open_queue(&q);
	kevent_set_user(&ev, 1, 1, 0, 1);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), 0);
	kevent_set_mark(&ev, 1, 1, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_READY, &ev), 1);
	kevent_wait_arg_init(&arg);
	arg.clockid = clock;
	arg.min_nr = 2;
	arg.min_wait_ns = (__u64)min_wait;
	looks = 0;
	step = by;
	start = now_ns();
	CHECK_EQ(kevent_wait(q.fd, SIZE, 0, timeout, flags | KEVENT_FLAGS_ARG,
			     &arg), 1);
	kevent_queue_close(&q);
	return now_ns() - start;
}

static const clockid_t settable[] = { CLOCK_REALTIME, CLOCK_TAI };

static void span_of_time_ignores_steps_of_its_clock(void)
{
	static const struct timespec timeout = { .tv_nsec = 100 * MS };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		CHECK(wait_for_two(settable[i], HOUR, 0, &timeout, 0) >=
		      100 * MS);
		/* The alarm ends one that became an hour. */
		CHECK(wait_for_two(settable[i], -HOUR, 0, &timeout, 0) >=
		      100 * MS);
	}
}

static void min_wait_ignores_steps_of_the_clock(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		CHECK(wait_for_two(settable[i], HOUR, 0, NULL, 100 * MS) >=
		      100 * MS);
		CHECK(wait_for_two(settable[i], -HOUR, 0, NULL, 100 * MS) >=
		      100 * MS);
	}
}

static void point_of_time_follows_its_clock(void)
{
	struct timespec at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		CHECK_EQ(syscall(SYS_clock_gettime, settable[i], &at), 0);
		at.tv_sec += HOUR;
		/* The alarm ends one that does not. */
		wait_for_two(settable[i], 2 * HOUR, KEVENT_FLAGS_ABSTIME, &at, 0);
		wait_for_two(settable[i], 2 * HOUR, KEVENT_FLAGS_ABSTIME, &at,
			     2 * HOUR * 1000 * MS);
	}
}

/* PROC has its tests in tests/guest. Calls that are not of a source: */

static void delay_is_not_of_this_queue(void)
{
	struct kevent_queue q;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	open_queue(&q);
	CHECK_EQ(kevent_set_delay(q.fd, 100), -ENOTTY);
	CHECK_EQ(kevent_set_delay(q.fd, KEVENT_DELAY_MAX + 1), -ENOTTY);
	CHECK_EQ(kevent_set_delay(epoll, 100), -ENOTTY);
	CHECK_EQ(kevent_set_delay(-1, 100), -EBADF);
	kevent_queue_close(&q);
}

static const struct test tests[] = {
	TEST(span_of_time_ignores_steps_of_its_clock),
	TEST(min_wait_ignores_steps_of_the_clock),
	TEST(point_of_time_follows_its_clock),
	TEST(delay_is_not_of_this_queue),
};

int main(void)
{
	return run_tests("sources", tests, ARRAY_SIZE(tests));
}
