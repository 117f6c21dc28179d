// SPDX-License-Identifier: GPL-2.0
/*
 * Suspend, from which the alarm of the real time clock wakes the machine. It is that to
 * memory: the clock that QEMU emulates wakes from no other
 *
 *	CLOCK_MONOTONIC	--------|                    |-------->
 *	CLOCK_BOOTTIME	---------- ... suspended ... --------->
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "helpers.h"

#define ALARM		"/sys/class/rtc/rtc0/wakealarm"
#define SUSPENDED_S	3
#define FIRST_NS	1500000000ull	/* shorter than the time suspended */
#define ONCE		KEVENT_REQ_ONESHOT

/*
 * Returns how long, by CLOCK_BOOTTIME and not by CLOCK_MONOTONIC. A machine of QEMU that was
 * suspended before is woken at once, when all tasks were frozen.
 */
static int64_t suspend(void)
{
	int64_t before = (int64_t)(clock_ns(CLOCK_BOOTTIME) - now_ns());
	char alarm[20];

	snprintf(alarm, sizeof(alarm), "+%d", SUSPENDED_S);
	/* What init has to print is not under way when the port is suspended. */
	MUST(sleeps_in(1, __NR_ppoll));
	write_file(ALARM, "0");
	write_file(ALARM, alarm);
	write_file("/sys/power/mem_sleep", "deep");
	write_file("/sys/power/state", "mem");
	return (int64_t)(clock_ns(CLOCK_BOOTTIME) - now_ns()) - before;
}

/* Machines of arm64 have none. */
static bool can_suspend(void)
{
	char ways[64] = "";

	read_file("/sys/power/mem_sleep", ways, sizeof(ways));
	if (strstr(ways, "deep"))
		return true;
	note("this machine has no suspend to memory");
	return false;
}

static void add_once(struct queue *q, uint32_t clock, uint64_t user)
{
	struct ukevent ev;

	kevent_set_timer(&ev, FIRST_NS, 0, clock, ONCE, user);
	MUST_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 0);
}

static void timers_go_by_their_clocks(void)
{
	uint64_t start = now_ns();
	struct ukevent ev;
	struct queue q;

	if (!can_suspend())
		return;
	open_queue(&q, 8);
	add_once(&q, 0, 1);
	add_once(&q, KEVENT_TIMER_BOOTTIME, 2);
	MUST(suspend() > (int64_t)FIRST_NS);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 2);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 1);
	CHECK(now_ns() - start >= FIRST_NS);
	close_queue(&q);
}

/* The freezer wakes each task: a wait without a limit must not end for that. */
static void wait_goes_on_after_a_suspend(struct queue *q)
{
	struct ukevent ev;
	struct waiter w;
	int fd[2];

	if (!can_suspend())
		return;
	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 5), 0);
	start_waiter(&w, q, 1);
	suspend();
	CHECK(!actor_ended(&w.actor));
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	if (q->size)
		MUST_EQ(next_event(q, &ev, 0), 1);
	else
		ev = w.ev[0];
	CHECK_EQ(ev.ptr, 5);
	close(fd[0]);
	close(fd[1]);
}

static const struct test_case cases[] = {
	TEST(timers_go_by_their_clocks),
	TEST_EACH(wait_goes_on_after_a_suspend),
	{}
};

const struct test_suite suspend_suite = {
	.name = "suspend",
	.cases = cases,
	.only_by_name = true,
};
