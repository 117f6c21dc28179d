// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_TIMER
 *
 *	request				expires at
 *	relative d			d, 2d, 3d ...
 *	relative d, ONESHOT		d
 *	absolute t			t
 *	either, INTERVAL i		first, first + i, first + 2i ...
 *	either, INTERVAL 0		first
 *
 * Expirations are compared with the clock, read before and after the call that
 * takes the event: due(before) <= all so far <= due(after).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

#include "timers.h"

static int64_t requested(const struct ukevent *ev)
{
	return ev->id.raw_u64;
}

/*
 * No other event comes before that of a timer that is started now and takes
 * @ns. The kernel had time enough for a wrong one.
 */
static void check_silence(struct queue *q, int64_t ns)
{
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, ns, NONE, 0, ONESHOT, 0x51137), 0);
	must_tick(q, &ev, 0x51137);
	CHECK_NO_EVENT(q);
}

/* The events of an interval timer agree with the clock, @nr times. */
static void check_against_clock(struct queue *q, clockid_t clock, int64_t first,
				int64_t interval, unsigned int nr)
{
	int64_t before = first, after, sum = 0;
	struct ukevent ev;

	while (nr--) {
		if (!q->size || q->ring->ring_kidx == q->ring->ring_uidx)
			before = clock_ns(clock);
		MUST_EVENT(q, &ev);
		after = clock_ns(clock);
		CHECK(ticks(&ev) >= 1);
		sum += ticks(&ev);
		CHECK(sum >= due(before, first, interval));
		CHECK(sum <= due(after, first, interval));
	}
}

static void relative_timer_is_periodic(struct queue *q)
{
	int64_t start = now_ns(), sum = 0;
	struct ukevent ev;
	int i;

	MUST_EQ(add_timer(q->fd, 2 * MS, NONE, 0, 0, 7), 0);
	for (i = 0; i < 5; i++) {
		must_tick(q, &ev, 7);
		sum += ticks(&ev);
		CHECK(sum * 2 * MS <= (int64_t)now_ns() - start);
		CHECK_EQ(requested(&ev), 2 * MS);
		CHECK_EQ(ev.event, KEVENT_TIMER_FIRED);
	}
	CHECK(sum >= 5);
	CHECK_EQ(remove_timer(q->fd, 7), 0);
	check_silence(q, 5 * MS);
}

static void oneshot_expires_once_and_goes(struct queue *q)
{
	int64_t start = now_ns();
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, 3 * MS, NONE, 0, ONESHOT, 9), 0);
	must_tick(q, &ev, 9);
	CHECK((int64_t)now_ns() - start >= 3 * MS);
	CHECK_EQ(ticks(&ev), 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	check_silence(q, 10 * MS);
	CHECK_EQ(add_timer(q->fd, HOUR, NONE, 0, ONESHOT, 9), 0);
}

struct consumer {
	struct actor	actor;
	struct queue	*q;
	struct ukevent	ev;
};

static long takes_one(void *arg)
{
	struct consumer *c = arg;

	return next_event(c->q, &c->ev, 2 * PATIENCE_MS);
}

static void oneshot_wakes_a_sleeper(void)
{
	struct consumer c;
	struct queue q;
	unsigned int i;
	uint64_t start;

	open_queue(&q, 8);
	c.q = &q;
	for (i = 0; i < 20; i++) {
		c.actor = (struct actor){};
		start_actor(&c.actor, takes_one, &c);
		MUST(sleeps_in(c.actor.tid, __NR_kevent_wait));
		MUST_EQ(add_timer(q.fd, MS, NONE, 0, ONESHOT, i), 0);
		for (start = now_ns(); now_ns() - start < 3 * MS; )
			;
		join_actor(&c.actor, PATIENCE_MS);
		CHECK_EQ(c.actor.ret, 1);
		CHECK_EQ(c.ev.ptr, i);
	}
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static const struct {
	clockid_t	clock;
	uint32_t	event;
} clocks[] = {
	{ CLOCK_MONOTONIC, 0 },
	{ CLOCK_REALTIME, KEVENT_TIMER_REALTIME },
	{ CLOCK_BOOTTIME, KEVENT_TIMER_BOOTTIME },
	{ CLOCK_TAI, KEVENT_TIMER_TAI },
};

static void each_clock_absolute_and_relative(struct queue *q)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		clockid_t clock = clocks[i].clock;
		uint32_t event = clocks[i].event;
		int64_t at = clock_ns(clock) + 3 * MS;
		struct ukevent ev;

		MUST_EQ(add_timer(q->fd, at, NONE, event | ABS, 0, i), 0);
		must_tick(q, &ev, i);
		CHECK(clock_ns(clock) >= at);
		CHECK_EQ(requested(&ev), at);
		CHECK_EQ(ticks(&ev), 1);

		at = clock_ns(clock) + 3 * MS;
		MUST_EQ(add_timer(q->fd, 3 * MS, ONCE, event, 0, i + 10), 0);
		must_tick(q, &ev, i + 10);
		CHECK(clock_ns(clock) >= at);
		CHECK_EQ(ticks(&ev), 1);
	}
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 2 * ARRAY_SIZE(clocks));
	check_silence(q, 10 * MS);
}

static void expirations_of_intervals_are_exact(struct queue *q)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		clockid_t clock = clocks[i].clock;
		uint32_t event = clocks[i].event | ABS;
		int64_t first = clock_ns(clock) + 10 * MS;

		MUST_EQ(add_timer(q->fd, first, MS, event, 0, i), 0);
		check_against_clock(q, clock, first, MS, 8);
		MUST_EQ(remove_timer(q->fd, i), 0);

		first = clock_ns(clock) - 100 * MS;
		MUST_EQ(add_timer(q->fd, first, MS / 2, event, 0, i), 0);
		check_against_clock(q, clock, first, MS / 2, 8);
		MUST_EQ(remove_timer(q->fd, i), 0);
	}
}

/* Some kernels check timers once per tick, but count in nanoseconds. */
static void periods_below_a_tick_are_counted(struct queue *q)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		clockid_t clock = clocks[i].clock;
		int64_t first = clock_ns(clock) + MS;

		MUST_EQ(add_timer(q->fd, first, 10 * US, clocks[i].event | ABS,
				  0, i), 0);
		check_against_clock(q, clock, first, 10 * US, 8);
		MUST_EQ(remove_timer(q->fd, i), 0);
	}
}

/* The other timers expire, whichever of them was the first before. */
static void removal_of_the_first_one_holds_up_nobody(struct queue *q)
{
	int64_t at = now_ns() + 100 * MS * slowness;
	struct ukevent ev;
	int i;

	for (i = 0; i < 8; i++)
		MUST_EQ(add_timer(q->fd, at - i * MS, NONE, ABS, ONESHOT, i),
			0);
	for (i = 7; i > 2; i--)
		MUST_EQ(remove_timer(q->fd, i), 0);
	MUST_EQ(modify_timer(q->fd, HOUR, NONE, 0, ONESHOT, 2), 0);
	must_tick(q, &ev, 1);
	must_tick(q, &ev, 0);
	CHECK_NO_EVENT(q);
	MUST_EQ(add_timer(q->fd, MS, NONE, 0, ONESHOT, 9), 0);
	must_tick(q, &ev, 9);
	MUST_EQ(modify_timer(q->fd, MS, NONE, 0, ONESHOT, 2), 0);
	must_tick(q, &ev, 2);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void first_expiry_differs_from_the_interval(void)
{
	int64_t start, sum = 0;
	struct ukevent ev;
	struct queue q;
	int i;

	open_queue(&q, 0);
	start = now_ns();
	MUST_EQ(add_timer(q.fd, 20 * MS, MS, 0, 0, 1), 0);
	for (i = 0; i < 6; i++) {
		must_tick(&q, &ev, 1);
		sum += ticks(&ev);
		CHECK(sum <= due(now_ns(), start + 20 * MS, MS));
	}
	start = now_ns();
	MUST_EQ(modify_timer(q.fd, 0, 5 * MS, 0, 0, 1), 0);
	must_tick(&q, &ev, 1);
	sum = ticks(&ev);
	must_tick(&q, &ev, 1);
	sum += ticks(&ev);
	CHECK(sum >= 2);
	CHECK(sum <= due(now_ns(), start, 5 * MS));
	close_queue(&q);
}

static void event_that_finds_no_room_counts_on(void)
{
	int64_t first, before, after;
	struct ukevent ev;
	struct queue q;
	int i;

	open_queue(&q, 2);
	for (i = 0; i < 2; i++)
		MUST_EQ(add_user(q.fd, i, 1, KEVENT_REQ_READY, i), 0);
	MUST_EQ(wait_ring(&q, 2, 0), 2);
	first = now_ns();
	MUST_EQ(add_timer(q.fd, first, MS, ABS, 0, 5), 0);
	while ((int64_t)now_ns() < first + 30 * MS)
		CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK_EQ(q.ring->ring_kidx, 2);
	/* It may have expired late. */
	CHECK_EQ(get_events(q.fd, 1, 1, PATIENCE_MS, (void *)8), -EFAULT);
	for (i = 0; i < 2; i++)
		MUST(kevent_ring_next(q.ring, 2, &ev));
	before = now_ns();
	MUST_EQ(wait_ring(&q, 2, 0), 1);
	after = now_ns();
	MUST(kevent_ring_next(q.ring, 2, &ev));
	CHECK((int64_t)ticks(&ev) >= due(before, first, MS));
	CHECK((int64_t)ticks(&ev) <= due(after, first, MS));
	close_queue(&q);
}

/* Another reader of the timers: fdinfo has an entry for each watch. */
static void memory_that_is_not_there_loses_no_tick(void)
{
	int64_t first, before, after;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	first = now_ns();
	MUST_EQ(add_timer(q.fd, first, MS, ABS, 0, 5), 0);
	while ((int64_t)now_ns() < first + 20 * MS) {
		MUST(get_events(q.fd, 1, 1, 1, (void *)8) <= 0);
		CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	}
	CHECK_EQ(get_events(q.fd, 1, 1, -1, (void *)8), -EFAULT);
	before = now_ns();
	must_tick(&q, &ev, 5);
	after = now_ns();
	CHECK((int64_t)ticks(&ev) >= due(before, first, MS));
	CHECK((int64_t)ticks(&ev) <= due(after, first, MS));
	close_queue(&q);
}

static void dispatch_stops_until_modify(struct queue *q)
{
	const uint32_t flags = KEVENT_REQ_DISPATCH;
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, MS, NONE, 0, flags, 1), 0);
	must_tick(q, &ev, 1);
	check_silence(q, 10 * MS);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	MUST_EQ(modify_timer(q->fd, HOUR, HOUR, 0, flags, 1), 0);
	check_silence(q, 5 * MS);
	MUST_EQ(modify_timer(q->fd, MS, ONCE, 0, flags, 1), 0);
	must_tick(q, &ev, 1);
	CHECK_EQ(ticks(&ev), 1);
	check_silence(q, 5 * MS);
}

static void disabled_timer_does_not_run(struct queue *q)
{
	int64_t start;
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, MS, NONE, 0, KEVENT_REQ_DISABLED, 1), 0);
	check_silence(q, 10 * MS);
	start = now_ns();
	MUST_EQ(modify_timer(q->fd, MS, NONE, 0, 0, 1), 0);
	must_tick(q, &ev, 1);
	CHECK((int64_t)ticks(&ev) <= ((int64_t)now_ns() - start) / MS);
	MUST_EQ(modify_timer(q->fd, MS, NONE, 0, KEVENT_REQ_DISABLED, 1), 0);
	check_silence(q, 10 * MS);
}

static void modify_starts_the_timer_anew(struct queue *q)
{
	unsigned int i;
	struct ukevent ev;
	int64_t at;

	MUST_EQ(add_timer(q->fd, HOUR, NONE, 0, 0, 1), 0);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		at = clock_ns(clocks[i].clock) + 2 * MS;
		MUST_EQ(modify_timer(q->fd, at, NONE, ABS | clocks[i].event, 0,
				     1), 0);
		must_tick(q, &ev, 1);
		CHECK(clock_ns(clocks[i].clock) >= at);
		CHECK_EQ(ticks(&ev), 1);
	}
	/* Expirations before the MODIFY are dropped. */
	MUST_EQ(modify_timer(q->fd, 1, 1, 0, 0, 1), 0);
	wait_until_ready(q, 1);
	MUST_EQ(modify_timer(q->fd, HOUR, NONE, 0, 0, 1), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 0);
	CHECK_NO_EVENT(q);
	/* The count starts at 0 again. */
	MUST_EQ(modify_timer(q->fd, 1, 1, 0, 0, 1), 0);
	wait_until_ready(q, 1);
	at = now_ns();
	MUST_EQ(modify_timer(q->fd, MS, MS, 0, 0, 1), 0);
	must_tick(q, &ev, 1);
	CHECK((int64_t)ticks(&ev) <= due(now_ns(), at + MS, MS));
	/* With READY, MODIFY reports at once. */
	MUST_EQ(modify_timer(q->fd, HOUR, NONE, 0, KEVENT_REQ_READY, 1), 0);
	must_tick(q, &ev, 1);
	CHECK_EQ(ticks(&ev), 0);
	CHECK_NO_EVENT(q);
}

/*
 * A one-shot timer that has expired: MODIFY starts it anew if its event is still in the
 * kernel. If the event was delivered, also to a ring where it is unread, there is no timer.
 */
static void modify_says_whether_a_oneshot_was_delivered(struct queue *q)
{
	uint64_t start = now_ns();
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, 1 * MS, NONE, 0, ONESHOT, 1), 0);
	if (!q->size)
		must_tick(q, &ev, 1);
	while (q->size && q->ring->ring_kidx == q->ring->ring_uidx) {
		wait_ring(q, 1, 1);
		MUST(patient(start, PATIENCE_MS));
	}
	CHECK_EQ(modify_timer(q->fd, HOUR, NONE, 0, ONESHOT, 1), -ENOENT);
	if (q->size)
		must_tick(q, &ev, 1);
	CHECK_NO_EVENT(q);
}

static void modify_starts_a_oneshot_anew_that_was_not_delivered(void)
{
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_timer(q.fd, 1 * MS, NONE, 0, ONESHOT, 1), 0);
	wait_until_ready(&q, 1);
	CHECK_EQ(modify_timer(q.fd, HOUR, NONE, 0, ONESHOT, 1), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	close_queue(&q);
}

static void remove_drops_what_is_pending(struct queue *q)
{
	MUST_EQ(add_timer(q->fd, 1, NONE, 0, 0, 1), 0);
	MUST_EQ(add_timer(q->fd, HOUR, NONE, 0, 0, 2), 0);
	CHECK_EQ(add_timer(q->fd, 1, NONE, 0, 0, 2), -EEXIST);
	wait_until_ready(q, 1);
	CHECK_EQ(remove_timer(q->fd, 1), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_timer(q->fd, 1), -ENOENT);
	CHECK_EQ(modify_timer(q->fd, 1, NONE, 0, 0, 1), -ENOENT);
	CHECK_EQ(set_timer(q->fd, KEVENT_CTL_READY, 1, NONE, 0, 0, 1), -ENOENT);
	CHECK_EQ(remove_timer(q->fd, 2), 0);
	check_silence(q, 2 * MS);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void mark_reports_what_has_expired_so_far(struct queue *q)
{
	struct ukevent ev;

	MUST_EQ(add_timer(q->fd, HOUR, NONE, 0, KEVENT_REQ_READY, 1), 0);
	must_tick(q, &ev, 1);
	CHECK_EQ(ticks(&ev), 0);
	CHECK_EQ(set_timer(q->fd, KEVENT_CTL_READY, 0, NONE, 0, 0, 1), 1);
	must_tick(q, &ev, 1);
	CHECK_EQ(ticks(&ev), 0);
	CHECK_EQ(requested(&ev), HOUR);
	CHECK_NO_EVENT(q);
	kevent_set_timer(&ev, 0, 0, REALTIME, 0, 1);
	ev.event = REALTIME;
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), -EINVAL);
	/* A clock and the like are no condition. */
	MUST_EQ(add_timer(q->fd, HOUR, NONE, REALTIME, 0, 2), 0);
	ev.ptr = 2;
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), -EINVAL);
	CHECK_NO_EVENT(q);
}

static const struct {
	uint32_t	event;
	uint32_t	id[2];
	uint32_t	data[2];
	uint32_t	flags;
} refused[] = {
	{ .event = 0, .id = { 1 } },
	{ .event = ABS, .id = { 1 } },
	{ .event = 0x81, .id = { 1 } },
	{ .event = 0x80000001, .id = { 1 } },
	{ .event = 0x31, .id = { 1 } },		/* two clocks */
	{ .event = 0x51, .id = { 1 } },
	{ .event = 0x61, .id = { 1 } },
	{ .event = 0x71, .id = { 1 } },
	{ .event = 1 | ON_SET, .id = { 1 } },
	{ .event = 1 | ON_SET | ABS, .id = { 1 } },
	{ .event = 1 | ON_SET | REALTIME, .id = { 1 } },
	{ .event = 1 | ON_SET | ABS | KEVENT_TIMER_TAI, .id = { 1 } },
	{ .event = 1 },				/* a period of zero */
	{ .event = 1, .flags = ONESHOT },
	{ .event = 1, .id = { 0, 1u << 31 } },	/* 2^63 */
	{ .event = 1 | ABS, .id = { ~0u, ~0u } },
	{ .event = 1 | KEVENT_TIMER_INTERVAL, .id = { 1 },
	  .data = { 0, 1u << 31 } },
	{ .event = 1, .id = { 1 }, .flags = KEVENT_REQ_KEEP_EACH },
};

static void make_refused(struct ukevent *ev, unsigned int i)
{
	kevent_set_timer(ev, HOUR, 0, 0, 0, 1);
	ev->event = refused[i].event;
	ev->req_flags = refused[i].flags;
	memcpy(ev->id.raw, refused[i].id, sizeof(ev->id));
	memcpy(ev->ret_data, refused[i].data, sizeof(ev->ret_data));
}

static void invalid_requests_are_refused(void)
{
	struct ukevent ev;
	struct queue q;
	unsigned int i;

	open_queue(&q, 0);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		make_refused(&ev, i);
		if (!CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev),
			      -EINVAL))
			note("case %u", i);
	}
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	MUST_EQ(add_timer(q.fd, HOUR, NONE, 0, 0, 1), 0);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		make_refused(&ev, i);
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -EINVAL);
	}
	close_queue(&q);
}

static int in_time_namespace(void *arg)
{
	static const clockid_t shifted[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	static const uint32_t event[] = { ABS, ABS | KEVENT_TIMER_BOOTTIME };
	const struct timespec limit = to_timespec(PATIENCE_MS * MS * slowness);
	struct ukevent ev;
	int64_t at;
	int i, kq;

	CHILD_MUST(clock_ns(CLOCK_MONOTONIC) > *(int64_t *)arg + 900 * SECOND);
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	for (i = 0; i < 2; i++) {
		at = clock_ns(shifted[i]) + 3 * MS;
		CHILD_MUST(!add_timer(kq, at, NONE, event[i], 0, i));
		CHILD_MUST(kevent_get_events(kq, 1, 1, &limit, &ev, 0) == 1);
		CHILD_MUST((int)ev.ptr == i);
		CHILD_MUST(clock_ns(shifted[i]) >= at);
	}
	return 0;
}

static int enter_time_namespace(void *arg)
{
	int64_t now = now_ns();

	(void)arg;
	CHILD_MUST(!unshare(CLONE_NEWTIME));
	write_file("/proc/self/timens_offsets",
		   "monotonic 1000 0\nboottime 5000 0");
	return join_child(start_child(in_time_namespace, &now),
			  4 * PATIENCE_MS);
}

static void absolute_times_are_of_the_time_namespace(void)
{
	CHECK_EQ(join_child(start_child(enter_time_namespace, NULL),
			    4 * PATIENCE_MS), 0);
}

/* Its clocks are behind those of the host, which never come to its latest times. */
static int in_late_namespace(void *arg)
{
	const struct timespec never = to_timespec(INT64_MAX);
	struct ukevent ev;
	int kq;

	(void)arg;
	kq = kevent_init(NULL, 0, 0);
	CHILD_MUST(kq >= 0);
	CHILD_MUST(!add_timer(kq, INT64_MAX, NONE, ABS, 0, 1));
	CHILD_MUST(!add_timer(kq, INT64_MAX, NONE, ABS | KEVENT_TIMER_BOOTTIME, 0, 2));
	CHILD_MUST(!add_timer(kq, 3 * MS, NONE, 0, KEVENT_REQ_ONESHOT, 3));
	CHILD_MUST(kevent_get_events(kq, 1, 1, &never, &ev, KEVENT_FLAGS_ABSTIME) == 1);
	CHILD_MUST(ev.ptr == 3);
	return 0;
}

static int enter_late_namespace(void *arg)
{
	(void)arg;
	CHILD_MUST(!unshare(CLONE_NEWTIME));
	write_file("/proc/self/timens_offsets",
		   "monotonic -1 999999999\nboottime -1 999999999");
	return join_child(start_child(in_late_namespace, NULL), 4 * PATIENCE_MS);
}

static void latest_times_of_a_time_namespace_do_not_come(void)
{
	CHECK_EQ(join_child(start_child(enter_late_namespace, NULL), 4 * PATIENCE_MS), 0);
}

/* A period of one nanosecond costs one interrupt per event taken, not more. */
static void tiny_period_keeps_nobody(void)
{
	int64_t first, before, after, last = 0, sum = 0;
	struct ukevent ev[16];
	struct queue q;
	int i, j, nr;

	open_queue(&q, 0);
	first = now_ns();
	for (i = 0; i < 4; i++)
		MUST_EQ(add_timer(q.fd, first, 1, ABS, 0, i), 0);
	for (i = 0; i < 200; i++) {
		before = now_ns();
		nr = get_events(q.fd, 1, 16, -1, ev);
		after = now_ns();
		MUST(nr > 0);
		for (j = 0; j < nr; j++) {
			if (ev[j].ptr)
				continue;
			sum += ticks(&ev[j]);
			last = before;
		}
		CHECK(sum <= due(after, first, 1));
	}
	CHECK(sum >= due(last, first, 1));
	close_queue(&q);
}

static int add_and_leave(void *arg)
{
	CHILD_MUST(!add_timer(*(int *)arg, 50 * MS, NONE, 0, 0, 2));
	return 0;
}

static void timers_belong_to_the_queue_not_to_the_process(void)
{
	struct ukevent ev;
	struct queue q;
	bool seen[3] = {};
	int i;

	open_queue(&q, 0);
	MUST_EQ(add_timer(q.fd, 50 * MS, NONE, 0, 0, 1), 0);
	MUST_EQ(join_child(start_child(add_and_leave, &q.fd), PATIENCE_MS), 0);
	for (i = 0; i < 4; i++) {
		MUST_EVENT(&q, &ev);
		MUST(ev.ptr == 1 || ev.ptr == 2);
		seen[ev.ptr] = true;
	}
	CHECK(seen[1] && seen[2]);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 2);
	close_queue(&q);
}

#define MANY		100000

static void raise_limit(char *old, size_t size)
{
	read_file(MAX_BYTES, old, size);
	write_file(MAX_BYTES, "200000000");
}

static void restore_limit(char *old)
{
	write_file(MAX_BYTES, strtok(old, "\n"));
}

/* Takes events of timers 0 to nr - 1, each once. Returns the greatest delay. */
static int64_t take_each_once(struct queue *q, unsigned int nr,
			      bool (*good)(const struct ukevent *ev))
{
	static unsigned char seen[MANY];
	static struct ukevent ev[512];
	unsigned int left, wrong = 0, i;
	int64_t now, worst = 0;
	int ret, j;

	memset(seen, 0, sizeof(seen));
	for (left = nr; left; left -= ret) {
		ret = get_events(q->fd, 1, ARRAY_SIZE(ev),
				 PATIENCE_MS * slowness, ev);
		now = now_ns();
		MUST(ret > 0);
		for (j = 0; j < ret; j++) {
			MUST(ev[j].ptr < nr);
			seen[ev[j].ptr]++;
			wrong += !good(&ev[j]);
			if (now - requested(&ev[j]) > worst)
				worst = now - requested(&ev[j]);
		}
	}
	for (i = 0; i < nr; i++)
		wrong += seen[i] != 1;
	CHECK_EQ(wrong, 0);
	CHECK_NO_EVENT(q);
	return worst;
}

static bool is_in_time(const struct ukevent *ev)
{
	return ticks(ev) == 1 && requested(ev) <= (int64_t)now_ns();
}

/* How often softirqs of hrtimers have run, on all CPUs */
static long long hrtimer_softirqs(void)
{
	char text[16384], *at, *end;
	long long sum = 0, nr;

	read_file("/proc/softirqs", text, sizeof(text));
	at = strstr(text, "HRTIMER:");
	MUST(at != NULL);
	at = strchr(at, ':') + 1;
	at[strcspn(at, "\n")] = 0;
	while (nr = strtoll(at, &end, 10), end != at) {
		sum += nr;
		at = end;
	}
	return sum;
}

static void stay_on_first_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Shares a CPU with timers; returns the longest time without it, in us. */
static long watch_for_gaps(void *arg)
{
	int64_t last = now_ns(), now, gap = 0;

	stay_on_first_cpu();
	while (!atomic_load((_Atomic bool *)arg)) {
		now = now_ns();
		if (now - last > gap)
			gap = now - last;
		last = now;
	}
	return gap / US;
}

/*
 * A softirq deals with 128 timers. Without high resolution timers there is one softirq per
 * tick, which deals with more.
 */
static unsigned int most_of_a_softirq(void)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC, &tick);
	return tick.tv_nsec > MS / 2 ? 2048 : 128;
}

static void expire_at_once(struct queue *q, unsigned int nr)
{
	int64_t at = now_ns() + 2 * SECOND;
	_Atomic bool stop = false;
	struct actor watcher;
	long long softirqs = hrtimer_softirqs();
	unsigned int i;

	for (i = 0; i < nr; i++)
		MUST_EQ(add_timer(q->fd, at, NONE, ABS, ONESHOT, i), 0);
	note("%u timers armed %lld ms before", nr,
	     (long long)(at - (int64_t)now_ns()) / MS);
	start_actor(&watcher, watch_for_gaps, &stop);
	take_each_once(q, nr, is_in_time);
	softirqs = hrtimer_softirqs() - softirqs;
	atomic_store(&stop, true);
	join_actor(&watcher, PATIENCE_MS);
	CHECK(softirqs >= nr / most_of_a_softirq());
	note("%lld softirqs, a task did not run for %ld us", softirqs,
	     watcher.ret);
}

/*
 * However many timers expire at one instant, other tasks get the CPU in
 * between: the expiry takes many softirqs.
 */
static void timers_at_one_instant_expire_bit_by_bit(void)
{
	struct queue q;
	cpu_set_t all;
	char old[64];

	raise_limit(old, sizeof(old));
	MUST_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	open_queue(&q, 0);
	stay_on_first_cpu();
	expire_at_once(&q, slowness > 1 ? MANY / 20 : MANY / 2);
	sched_setaffinity(0, sizeof(all), &all);
	close_queue(&q);
	restore_limit(old);
}

#define SHARERS		64	/* queues whose timers expire at one instant */
#define OF_SHARER	100	/* timers */

static void arm_sharers(struct queue *q, int64_t at)
{
	unsigned int i, k;

	for (i = 0; i < SHARERS; i++) {
		open_queue(&q[i], 0);
		for (k = 0; k < OF_SHARER; k++)
			MUST_EQ(add_timer(q[i].fd, at, NONE, ABS, ONESHOT, k), 0);
	}
	MUST(now_ns() < (uint64_t)at);
}

static void take_all_of_sharers(struct queue *q)
{
	unsigned int i, k, seen[OF_SHARER];
	struct ukevent ev;

	for (i = 0; i < SHARERS; i++) {
		memset(seen, 0, sizeof(seen));
		for (k = 0; k < OF_SHARER; k++) {
			MUST_EVENT(&q[i], &ev);
			seen[ev.ptr]++;
		}
		for (k = 0; k < OF_SHARER; k++)
			CHECK_EQ(seen[k], 1);
		CHECK_NO_EVENT(&q[i]);
		close_queue(&q[i]);
	}
}

/* However many queues they are of */
static void timers_of_many_queues_share_a_softirq(void)
{
	struct queue q[SHARERS];
	long long softirqs;
	cpu_set_t all;

	MUST_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	stay_on_first_cpu();
	arm_sharers(q, now_ns() + 2 * SECOND * slowness);
	softirqs = hrtimer_softirqs();
	take_all_of_sharers(q);
	softirqs = hrtimer_softirqs() - softirqs;
	sched_setaffinity(0, sizeof(all), &all);
	note("%lld softirqs", softirqs);
	CHECK(softirqs >= SHARERS * OF_SHARER / most_of_a_softirq());
}

static unsigned int more_than_a_softirq(void)
{
	return most_of_a_softirq() + 16;
}

/*
 * The timers of the first queue take the softirq; that of the second one is due at the same
 * instant, and waits for its turn behind the rest of the first, which needs no turn after that.
 */
static long arm_two(void *arg)
{
	struct queue *q = arg;
	int64_t at = now_ns() + 100 * MS * slowness;
	unsigned int i;

	for (i = 0; i < more_than_a_softirq(); i++)
		MUST_EQ(add_timer(q[0].fd, at, NONE, ABS, ONESHOT, i), 0);
	MUST_EQ(add_timer(q[1].fd, at, NONE, ABS, ONESHOT, 0), 0);
	return 0;
}

/* An earlier timer starts the hrtimer again before its callback says that it waits. */
static void clock_that_waits_for_its_turn_is_started_again(void)
{
	struct actor armer;
	struct queue q[2];
	struct ukevent ev;
	bool seen[2] = {};
	unsigned int i;

	open_queue(&q[0], 0);
	open_queue(&q[1], 0);
	MUST(start_in_window(&armer, "due", arm_two, q));
	MUST_EQ(add_timer(q[1].fd, 1, NONE, ABS, ONESHOT, 1), 0);
	window_release();
	join_actor(&armer, PATIENCE_MS);
	for (i = 0; i < 2; i++) {
		MUST_EVENT(&q[1], &ev);
		seen[ev.ptr] = true;
	}
	CHECK(seen[0] && seen[1]);
	take_each_once(&q[0], more_than_a_softirq(), is_in_time);
	close_queue(&q[0]);
	close_queue(&q[1]);
}

/* Those that wait for their turn on a CPU that goes offline have it on another one. */
static void timers_outlive_their_cpu(void)
{
	const char *online = "/sys/devices/system/cpu/cpu1/online";
	struct queue q[SHARERS];
	struct ukevent first;
	cpu_set_t all, one;

	/* It is a CPU of a guest. */
	if (on_fallback() || !two_cpus() || access(online, W_OK))
		return;
	MUST_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(1, &one);
	MUST_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	arm_sharers(q, now_ns() + 2 * SECOND * slowness);
	sched_setaffinity(0, sizeof(all), &all);
	/* One of them has come: add it again. */
	MUST_EVENT(&q[0], &first);
	MUST_EQ(add_timer(q[0].fd, 1, NONE, ABS, ONESHOT, first.ptr), 0);
	write_file(online, "0");
	take_all_of_sharers(q);
	write_file(online, "1");
}

static bool is_cancelled(const struct ukevent *ev)
{
	return ev->ret_flags & KEVENT_RET_BROKEN;
}

/*
 * CPU time that setting the clock costs the caller, the shortest of some: on a busy host it
 * is longer now and then, but not always: less than @most is enough.
 */
static int64_t cost_of_setting(struct queue *q, unsigned int nr, int64_t most)
{
	int64_t start, cost, least = HOUR;
	uint64_t begun = now_ns();
	int round;

	for (round = 0; round % 2 || round < 8 ||
	     (least >= most && patient(begun, PATIENCE_MS)); round++) {
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		step_clock(round % 2 ? -SECOND : SECOND);
		cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		least = cost < least ? cost : least;
		take_each_once(q, nr, is_cancelled);
	}
	return least;
}

/*
 * A task that sets the clock does not pay for cancelling the timers of others.
 */
static void who_sets_the_clock_does_not_cancel_timers(void)
{
	const unsigned int nr = slowness > 1 ? MANY / 40 : MANY / 2;
	int64_t one, all, at = clock_ns(CLOCK_REALTIME) + HOUR;
	struct queue q;
	unsigned int i;
	char old[64];

	raise_limit(old, sizeof(old));
	open_queue(&q, 0);
	MUST_EQ(add_timer(q.fd, at, NONE, ABS | REALTIME | ON_SET, 0, 0), 0);
	one = cost_of_setting(&q, 1, HOUR);
	for (i = 1; i < nr; i++)
		MUST_EQ(add_timer(q.fd, at, NONE, ABS | REALTIME | ON_SET, 0,
				  i), 0);
	all = cost_of_setting(&q, nr, one + 2 * MS);
	note("%lld us with %u timers, %lld us with one", (long long)all / US,
	     nr, (long long)one / US);
	CHECK(all < one + 2 * MS);
	close_queue(&q);
	restore_limit(old);
}

static void many_timers_expire_once_and_not_early(void)
{
	unsigned int nr = slowness > 1 ? MANY / 20 : MANY, i;
	struct queue q;
	int64_t at;
	char old[64];

	raise_limit(old, sizeof(old));
	open_queue(&q, 0);
	at = now_ns() + 4 * SECOND;
	/* Half of the timers at the same instant, the others around it */
	for (i = 0; i < nr; i++)
		MUST_EQ(add_timer(q.fd, i % 2 ? at : at + i * US - nr / 2 * US,
				  NONE, ABS, ONESHOT, i), 0);
	note("%u timers armed %lld ms before", nr,
	     (long long)(at - (int64_t)now_ns()) / MS);
	note("all taken at most %lld ms late",
	     (long long)take_each_once(&q, nr, is_in_time) / MS);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	restore_limit(old);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(relative_timer_is_periodic),
	TEST_EACH(oneshot_expires_once_and_goes),
	TEST(oneshot_wakes_a_sleeper),
	TEST_EACH(each_clock_absolute_and_relative),
	TEST_EACH(expirations_of_intervals_are_exact),
	TEST_EACH(periods_below_a_tick_are_counted),
	TEST_EACH(removal_of_the_first_one_holds_up_nobody),
	TEST(first_expiry_differs_from_the_interval),
	TEST(event_that_finds_no_room_counts_on),
	TEST(memory_that_is_not_there_loses_no_tick),
	TEST_EACH(dispatch_stops_until_modify),
	TEST_EACH(disabled_timer_does_not_run),
	TEST_EACH(modify_starts_the_timer_anew),
	TEST_EACH(modify_says_whether_a_oneshot_was_delivered),
	TEST(modify_starts_a_oneshot_anew_that_was_not_delivered),
	TEST_EACH(remove_drops_what_is_pending),
	TEST_EACH(mark_reports_what_has_expired_so_far),
	TEST(invalid_requests_are_refused),
	TEST(absolute_times_are_of_the_time_namespace),
	TEST(latest_times_of_a_time_namespace_do_not_come),
	TEST(tiny_period_keeps_nobody),
	TEST(timers_belong_to_the_queue_not_to_the_process),
	TEST_LIMIT(timers_at_one_instant_expire_bit_by_bit, 60),
	TEST_LIMIT(timers_of_many_queues_share_a_softirq, 60),
	TEST(clock_that_waits_for_its_turn_is_started_again),
	TEST_LIMIT(timers_outlive_their_cpu, 60),
	TEST_LIMIT(who_sets_the_clock_does_not_cancel_timers, 60),
	TEST_LIMIT(many_timers_expire_once_and_not_early, 60),
	{}
};

const struct test_suite timer_suite = { .name = "timer", .cases = cases };
