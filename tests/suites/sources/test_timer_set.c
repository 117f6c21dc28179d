// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_TIMER and clocks that are set: what follows them, what does not, and what is cancelled
 */
#include <time.h>

#include "timers.h"

static void must_be_cancelled(struct queue *q, uint64_t user)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.type, KEVENT_TIMER);
	CHECK_EQ(ev.ptr, user);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE | KEVENT_RET_BROKEN);
	CHECK_EQ(ev.ret_data[1], (uint32_t)-ECANCELED);
}

static void relative_timers_do_not_follow_a_clock(struct queue *q)
{
	static const uint32_t settable[] = { REALTIME, KEVENT_TIMER_TAI };
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		MUST_EQ(add_timer(q->fd, HOUR, NONE, settable[i], 0, 1), 0);
		step_clock(2 * HOUR);
		CHECK_NO_EVENT(q);
		MUST_EQ(add_timer(q->fd, SECOND, NONE, settable[i],
				  KEVENT_REQ_ONESHOT, 2), 0);
		step_clock(-2 * HOUR);
		must_tick(q, &ev, 2);
		CHECK_EQ(ticks(&ev), 1);
		MUST_EQ(remove_timer(q->fd, 1), 0);
	}
}

static void clock_that_is_set_cancels(struct queue *q)
{
	const uint32_t day = ABS | REALTIME, cancel = ABS | REALTIME | ON_SET;
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, now + HOUR, NONE, cancel, 0, 1), 0);
	MUST_EQ(add_timer(q->fd, now + 2 * HOUR, NONE, day, 0, 2), 0);
	MUST_EQ(add_timer(q->fd, now + HOUR, NONE, cancel,
			  KEVENT_REQ_DISABLED, 3), 0);
	MUST_EQ(add_timer(q->fd, HOUR, NONE, REALTIME, 0, 4), 0);
	step_clock(10 * SECOND);
	must_be_cancelled(q, 1);
	CHECK_NO_EVENT(q);
	step_clock(-20 * SECOND);
	must_be_cancelled(q, 1);
	CHECK_NO_EVENT(q);
	/* A cancelled timer does not run. */
	step_clock(HOUR + 60 * SECOND);
	must_be_cancelled(q, 1);
	CHECK_NO_EVENT(q);
	/* MODIFY starts it again, with or without the flag. */
	now = clock_ns(CLOCK_REALTIME);
	MUST_EQ(modify_timer(q->fd, now + 2 * MS, NONE, cancel, 0, 1), 0);
	must_tick(q, &ev, 1);
	CHECK_EQ(ticks(&ev), 1);
	MUST_EQ(modify_timer(q->fd, now + HOUR, NONE, day, 0, 1), 0);
	step_clock(-(HOUR + 50 * SECOND));
	CHECK_NO_EVENT(q);
	/* Absolute timers of the clock follow it; relative ones do not. */
	step_clock(3 * HOUR);
	MUST_EVENT(q, &ev);
	CHECK(ev.ptr == 1 || ev.ptr == 2);
	CHECK_EQ(ticks(&ev), 1);
	MUST_EVENT(q, &ev);
	CHECK(ev.ptr == 1 || ev.ptr == 2);
	CHECK_NO_EVENT(q);
	step_clock(-3 * HOUR);
}

/*
 * The step past their time is a step in the first place: the timers have not
 * expired.
 */
static void clock_that_skips_their_time_cancels(struct queue *q)
{
	const int64_t now = clock_ns(CLOCK_REALTIME);
	struct ukevent ev;
	int i;

	for (i = 0; i < 100; i++)
		MUST_EQ(add_timer(q->fd, now + HOUR, SECOND,
				  ABS | REALTIME | ON_SET, 0, i), 0);
	step_clock(HOUR + MS);
	for (i = 0; i < 100; i++) {
		MUST_EVENT(q, &ev);
		CHECK(ev.ptr < 100);
		CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE | KEVENT_RET_BROKEN);
		CHECK_EQ(ev.ret_data[0], 0);
		CHECK_EQ(ev.ret_data[1], (uint32_t)-ECANCELED);
	}
	CHECK_NO_EVENT(q);
	step_clock(-HOUR);
}

/*
 * It expired once and was cancelled then, maybe after its event was taken. The time since, as the new
 * clock has it, is no tick.
 */
static void cancelled_timer_counts_no_time(void)
{
	const int64_t now = clock_ns(CLOCK_REALTIME);
	unsigned int nr = 0;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_timer(q.fd, now + MS, SECOND, ABS | REALTIME | ON_SET, 0, 1), 0);
	wait_until_ready(&q, 1);
	step_clock(HOUR);
	do {
		MUST_EVENT(&q, &ev);
		nr += ev.ret_data[0];
	} while (!(ev.ret_flags & KEVENT_RET_BROKEN));
	CHECK_EQ(nr, 1);
	CHECK_EQ(ev.ret_data[1], (uint32_t)-ECANCELED);
	/* It does not run, whatever a mark says. */
	CHECK_EQ(set_timer(q.fd, KEVENT_CTL_READY, 0, NONE, 0, 0, 1), 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ret_data[0], 0);
	step_clock(-HOUR);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(relative_timers_do_not_follow_a_clock),
	TEST_EACH(clock_that_is_set_cancels),
	TEST_EACH(clock_that_skips_their_time_cancels),
	TEST(cancelled_timer_counts_no_time),
	{}
};

const struct test_suite timer_set_suite = { .name = "timer_set", .cases = cases };
