// SPDX-License-Identifier: GPL-2.0
/*
 * Which waiters wake, and how many. T1 is always the oldest waiter; "e" is one event, "->" a
 * thread that returns.
 *
 *	T1 T2 T3 T4	e -> T1		e -> T2		...
 *	T1 T2 T3 T4	e, WAKEUP_ALL -> T1 T2 T3 T4
 *	T1(bad buffer) T2	e -> T1 -EFAULT -> T2
 *	T1 T2 T3	level a -> T1, b -> T2, new call -> a, T3 -> b
 *	T1(ring, full) T2(get_events)	e -> T2
 *	T1(ring) T2(get_events)	level, WAKEUP_ALL -> T1 T2
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>

#include "helpers.h"

#define NR	4

static void one_event_wakes_the_oldest_waiter_only(struct queue *q)
{
	struct waiter w[NR];
	long long sleeps[NR];
	int fd[2], i, j;

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET, 0), 0);
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], q, 1);
	for (i = 0; i < NR; i++)
		sleeps[i] = sleeps_so_far(w[i].actor.tid);
	for (i = 0; i < NR; i++) {
		struct ukevent ev;

		put_byte(fd[1]);
		CHECK(join_waiter(&w[i]) > 0);
		if (q->size)
			MUST(kevent_ring_next(q->ring, q->size, &ev));
		for (j = i + 1; j < NR; j++)
			check_asleep(&w[j], sleeps[j]);
	}
}

/* A waiter that left and came back is the youngest one. */
static void returning_waiter_queues_at_the_end(void)
{
	struct waiter w[3];
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	start_waiter(&w[0], &q, 1);
	start_waiter(&w[1], &q, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[0]), 1);
	start_waiter(&w[2], &q, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[1]), 1);
	CHECK(waiter_asleep(&w[2]));
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[2]), 1);
	close_queue(&q);
}

/*
 * There are as many events at once as waiters that take one each. With a ring a waiter may
 * be woken for an event that another one is about to take, and returns for what that one
 * has stored: then an event is left for which nobody sleeps.
 */
static void burst_wakes_one_waiter_per_event(struct queue *q)
{
	struct ukevent ev[2 * NR];
	unsigned int counts[NR] = {};
	struct waiter w[NR];
	struct ukevent got;
	int i;

	for (i = 0; i < NR; i++) {
		MUST_EQ(add_user(q->fd, i, 1, 0, i), 0);
		kevent_set_user(&ev[i], i, 1, 0, 0);
	}
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], q, 1);
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, NR, ev), NR);
	for (i = 0; i < NR; i++)
		CHECK(join_waiter(&w[i]) > 0);
	for (i = 0; i < NR; i++) {
		got = w[i].ev[0];
		if (q->size)
			take_announced(q, &got);
		MUST(got.ptr < NR);
		counts[got.ptr]++;
	}
	for (i = 0; i < NR; i++)
		CHECK_EQ(counts[i], 1);
	CHECK_NO_EVENT(q);
}

static long get_one(void *arg)
{
	struct queue *q = arg;
	struct kevent_queue lib = {
		.fd = q->fd, .size = q->size, .ring = q->ring
	};
	struct ukevent ev;

	return kevent_queue_get(&lib, &ev, 1, NULL);
}

/* A thread that takes one entry is woken for one, and leaves the rest to others. */
static void entry_that_one_leaves_wakes_another(void)
{
	struct actor a[NR];
	struct ukevent ev[NR];
	struct queue q;
	int i;

	open_queue(&q, 8);
	for (i = 0; i < NR; i++) {
		MUST_EQ(add_user(q.fd, i, 1, 0, i), 0);
		kevent_set_user(&ev[i], i, 1, 0, 0);
		start_actor(&a[i], get_one, &q);
		MUST(sleeps_in(a[i].tid, __NR_kevent_wait));
	}
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, NR, ev), NR);
	for (i = 0; i < NR; i++) {
		join_actor(&a[i], PATIENCE_MS);
		CHECK_EQ(a[i].ret, 1);
	}
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/*
 * One CPU: the first waiter runs after both marks and takes two events. The
 * second one was woken for the other event.
 */
static void two_events(struct queue *q)
{
	long long sleeps[NR];
	struct ukevent ev[2];
	struct waiter w[NR];
	int i;

	for (i = 0; i < 2; i++) {
		MUST_EQ(add_user(q->fd, i, 1, 0, i), 0);
		kevent_set_user(&ev[i], i, 1, 0, 0);
	}
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], q, 1);
	for (i = 0; i < NR; i++)
		sleeps[i] = sleeps_so_far(w[i].actor.tid);
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 2, ev), 2);
	for (i = 0; i < 2; i++)
		CHECK(join_waiter(&w[i]) > 0);
	for (i = 2; i < NR; i++)
		check_asleep(&w[i], sleeps[i]);
}

static int waiters_gone(struct waiter w[NR])
{
	int i, nr = 0;

	for (i = 0; i < NR; i++)
		nr += actor_ended(&w[i].actor);
	return nr;
}

/*
 * With PREEMPT_RT a waiter runs before the lock is released under which it was
 * woken, so any two waiters may get the events. The others continue to sleep.
 */
static void two_events_for_any(struct queue *q)
{
	uint64_t start = now_ns();
	struct ukevent ev[2];
	struct waiter w[NR];
	int i;

	for (i = 0; i < 2; i++) {
		MUST_EQ(add_user(q->fd, i, 1, 0, i), 0);
		kevent_set_user(&ev[i], i, 1, 0, 0);
	}
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], q, 1);
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 2, ev), 2);
	while (waiters_gone(w) < 2 && patient(start, PATIENCE_MS))
		;
	CHECK_EQ(waiters_gone(w), 2);
	for (i = 0; i < NR; i++)
		if (!actor_ended(&w[i].actor))
			CHECK(waiter_asleep(&w[i]));
}

static void no_waiter_is_woken_for_nothing(void)
{
	cpu_set_t before, one;

	MUST_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	each_queue(preempt_rt() ? two_events_for_any : two_events);
	CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* All of them see the new position. */
static void wakeup_all_wakes_every_waiter(void)
{
	struct waiter w[NR];
	struct queue q;
	int fd[2], i;

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | KEVENT_REQ_WAKEUP_ALL, 0), 0);
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], &q, 1);
	put_byte(fd[1]);
	for (i = 0; i < NR; i++)
		CHECK_EQ(join_waiter(&w[i]), 1);
	CHECK_EQ(q.ring->ring_kidx, 1);
	close_queue(&q);
}

/* The file stays ready, so each waiter has an event. */
static void wakeup_all_wakes_every_waiter_of_a_level_watch(struct queue *q)
{
	struct waiter w[NR];
	int fd[2], i;

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, KEVENT_REQ_WAKEUP_ALL, 7), 0);
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], q, 1);
	put_byte(fd[1]);
	for (i = 0; i < NR; i++) {
		CHECK_EQ(join_waiter(&w[i]), 1);
		if (!q->size)
			CHECK_EQ(w[i].ev[0].ptr, 7);
	}
}

/* More than are woken under one hold of the lock: those that are woken go on. */
static void wakeup_all_wakes_any_number(struct queue *q)
{
	static struct waiter w[100];
	unsigned int i;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, KEVENT_REQ_WAKEUP_ALL, 7), 0);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		start_waiter(&w[i], q, 1);
	put_byte(fd[1]);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		CHECK_EQ(join_waiter(&w[i]), 1);
}

/* The event is an entry in the ring, and the watch is still ready. */
static void wakeup_all_wakes_waiters_of_both_kinds(void)
{
	struct waiter ring, plain;
	struct queue q, bare;
	int fd[2];

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	open_pipe(fd);
	MUST_EQ(add_poll(q.fd, fd[0], KEVENT_POLL_POLLIN,
			 KEVENT_REQ_WAKEUP_ALL, 7), 0);
	start_waiter(&ring, &q, 1);
	start_waiter(&plain, &bare, 1);
	put_byte(fd[1]);
	MUST_EQ(kevent_ring_count(q.ring, q.size), 1);
	CHECK_EQ(join_waiter(&ring), 1);
	CHECK_EQ(join_waiter(&plain), 1);
	CHECK_EQ(plain.ev[0].ptr, 7);
	close_queue(&q);
}

/*
 * One event of a level watch goes to one consumer, although the file stays
 * ready.
 */
static void level_event_wakes_one_waiter(struct queue *q)
{
	struct waiter w[2];
	long long sleeps;
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, 0, 7), 0);
	start_waiter(&w[0], q, 1);
	start_waiter(&w[1], q, 1);
	sleeps = sleeps_so_far(w[1].actor.tid);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[0]), 1);
	check_asleep(&w[1], sleeps);
	/* Its consumer calls again: the file is still ready for it. */
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	CHECK_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(take_bytes(fd[0]), 1);
	kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL);
	join_waiter(&w[1]);
}

/*
 * Without a ring one thread gets the event; the others find none and sleep
 * again.
 */
static void wakeup_all_delivers_once(void)
{
	unsigned int round, i, ended;
	struct waiter w[NR];
	uint64_t start;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | KEVENT_REQ_WAKEUP_ALL, 0), 0);
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], &q, 1);
	for (round = 1; round <= NR; round++) {
		start = now_ns();
		put_byte(fd[1]);
		do {
			MUST(patient(start, PATIENCE_MS));
			for (ended = i = 0; i < NR; i++)
				ended += actor_ended(&w[i].actor);
		} while (ended < round);
		CHECK_EQ(ended, round);
		for (i = 0; i < NR; i++)
			if (!actor_ended(&w[i].actor))
				MUST(sleeps_in(w[i].actor.tid,
					       __NR_kevent_get_events));
	}
	for (i = 0; i < NR; i++)
		CHECK_EQ(join_waiter(&w[i]), 1);
	close_queue(&q);
}

static long get_into_nothing(void *arg)
{
	struct queue *q = arg;

	return kevent_get_events(q->fd, 1, 1, NULL, (void *)8, 0);
}

/* An event that a leaving thread cannot take goes to the next one. */
static void fault_hands_the_event_on(void)
{
	struct actor bad;
	struct waiter good;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	start_actor(&bad, get_into_nothing, &q);
	MUST(sleeps_in(bad.tid, __NR_kevent_get_events));
	start_waiter(&good, &q, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&good), 1);
	CHECK_EQ(good.ev[0].ptr, 7);
	join_actor(&bad, PATIENCE_MS);
	CHECK_EQ(bad.ret, -EFAULT);
	close_queue(&q);
}

/*
 * T1 and T2 have reported level watches a and b but read nothing. A new call
 * finds both ready and takes one: the other one is for T3.
 */
static void level_left_behind_is_handed_on(struct queue *q)
{
	struct waiter w[3];
	struct ukevent ev;
	int fd[2][2], i;

	for (i = 0; i < 2; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q->fd, fd[i][0], RECV, 0, i), 0);
	}
	for (i = 0; i < 3; i++)
		start_waiter(&w[i], q, 1);
	for (i = 0; i < 2; i++) {
		put_byte(fd[i][1]);
		CHECK(join_waiter(&w[i]) > 0);
		if (q->size)
			MUST(kevent_ring_next(q->ring, q->size, &ev));
		else
			ev = w[i].ev[0];
		CHECK_EQ(ev.ptr, i);
	}
	CHECK(waiter_asleep(&w[2]));
	if (q->size) {
		/*
		 * T3 may have stored the other event before the call returns.
		 */
		CHECK(wait_ring(q, 1, 0) > 0);
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	} else {
		MUST_EQ(get_events(q->fd, 1, 1, 0, &ev), 1);
	}
	CHECK_EQ(ev.ptr, 0);
	CHECK(join_waiter(&w[2]) > 0);
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	else
		ev = w[2].ev[0];
	CHECK_EQ(ev.ptr, 1);
}

/* A thread that waits for room in a full ring cannot take an event. */
static void check_full_ring(bool ring_first)
{
	struct waiter ring, plain;
	struct queue q, bare;
	unsigned int i;

	open_queue(&q, 2);
	bare = (struct queue){ .fd = q.fd };
	for (i = 0; i < 3; i++)
		MUST_EQ(add_user(q.fd, i, 1, 0, i), 0);
	for (i = 0; i < 2; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	MUST_EQ(kevent_wait(q.fd, 2, 0, NULL, 0, NULL), 2);
	if (ring_first)
		start_waiter(&ring, &q, 2);
	start_waiter(&plain, &bare, 1);
	if (!ring_first)
		start_waiter(&ring, &q, 2);
	MUST_EQ(mark_user(q.fd, 2, 1), 1);
	CHECK_EQ(join_waiter(&plain), 1);
	CHECK_EQ(plain.ev[0].ptr, 2);
	CHECK(sleeps_in(ring.actor.tid, __NR_kevent_wait));
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(join_waiter(&ring), 0);
	close_queue(&q);
}

static void full_ring_hands_the_event_on(void)
{
	check_full_ring(true);
	check_full_ring(false);
}

static void waiter_on_a_full_ring_wakes_at_commit(void)
{
	struct waiter w;
	struct queue q;
	unsigned int i;

	open_queue(&q, 2);
	for (i = 0; i < 3; i++) {
		MUST_EQ(add_user(q.fd, i, 1, 0, i), 0);
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	}
	MUST_EQ(kevent_wait(q.fd, 2, 0, NULL, 0, NULL), 2);
	start_waiter(&w, &q, 2);
	CHECK_EQ(kevent_commit(q.fd, 1, 0), 1);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(q.ring->ring_kidx, 3);
	CHECK_EQ(q.ring->event[0].ptr, 2);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(one_event_wakes_the_oldest_waiter_only),
	TEST(returning_waiter_queues_at_the_end),
	TEST_EACH(burst_wakes_one_waiter_per_event),
	TEST(entry_that_one_leaves_wakes_another),
	TEST(no_waiter_is_woken_for_nothing),
	TEST(wakeup_all_wakes_every_waiter),
	TEST_EACH(wakeup_all_wakes_every_waiter_of_a_level_watch),
	TEST_EACH(wakeup_all_wakes_any_number),
	TEST_EACH(level_event_wakes_one_waiter),
	TEST(wakeup_all_wakes_waiters_of_both_kinds),
	TEST(wakeup_all_delivers_once),
	TEST(fault_hands_the_event_on),
	TEST_EACH(level_left_behind_is_handed_on),
	TEST(full_ring_hands_the_event_on),
	TEST(waiter_on_a_full_ring_wakes_at_commit),
	{}
};

const struct test_suite wake_suite = {
	.name = "wake",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
