// SPDX-License-Identifier: GPL-2.0
/*
 * Which waiters wake, how many, and how long they sleep. T1 is always the oldest
 * waiter; "e" is one event, "->" a thread that returns.
 *
 *	T1 T2 T3 T4	e -> T1		e -> T2		...
 *	T1 T2 T3 T4	e, WAKEUP_ALL -> T1 T2 T3 T4
 *	T1(bad buffer) T2	e -> T1 -EFAULT -> T2
 *	T1 T2 T3	level a -> T1, b -> T2, new call -> a, T3 -> b
 *	T1(ring, full) T2(get_events)	e -> T2
 *	T1(ring) T2(get_events)	level, WAKEUP_ALL -> T1 T2
 *	T1(3) T2(2) T3(get_events)	e, e -> T2	e -> T1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "helpers.h"

#define NR	4

static void check_asleep(struct waiter *w, long long sleeps)
{
	CHECK(waiter_asleep(w));
	CHECK_EQ(sleeps_so_far(w->actor.tid), sleeps);
}

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
 * The next event of a ring. If it is not in the ring, KEVENT_RING_MORE says that there is
 * one.
 */
static void take_announced(struct queue *q, struct ukevent *ev)
{
	if (kevent_ring_next(q->ring, q->size, ev))
		return;
	MUST(q->ring->ring_flags & KEVENT_RING_MORE);
	MUST_EQ(next_event(q, ev, 0), 1);
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

/* A thread that waits until so many entries are there */
struct collector {
	struct actor	actor;
	struct queue	*q;
	uint32_t	min;
};

static long collect(void *arg)
{
	struct collector *c = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC,
		.min_nr = c->min,
	};

	return kevent_wait(c->q->fd, 8, 0, NULL, KEVENT_FLAGS_ARG, &wait);
}

/* In the order in which they have what they wait for, and not in that of their calls */
static void waiters_for_several_wake_when_they_have_them(void)
{
	struct collector c[4] = {
		{ .min = 5 }, { .min = 3 }, { .min = 2 }, { .min = 3 },
	};
	static const unsigned int order[] = { 2, 1, 3, 0 };
	struct queue q, bare;
	struct waiter plain;
	int fd[6][2], i;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	for (i = 0; i < 6; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, ET, i), 0);
	}
	for (i = 0; i < 4; i++) {
		c[i].q = &q;
		start_actor(&c[i].actor, collect, &c[i]);
		MUST(sleeps_in(c[i].actor.tid, __NR_kevent_wait));
	}
	put_byte(fd[0][1]);
	for (i = 1; i < 5; i++) {
		put_byte(fd[i][1]);
		join_actor(&c[order[i - 1]].actor, PATIENCE_MS);
		CHECK_EQ(c[order[i - 1]].actor.ret, i + 1);
	}
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 5);
	start_waiter(&plain, &bare, 1);
	put_byte(fd[5][1]);
	CHECK_EQ(join_waiter(&plain), 1);
	CHECK_EQ(plain.ev[0].ptr, 5);
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

/* Two threads share a ring, and the first one has taken the entry. */
static void start_pair(struct waiter w[2], struct queue *q)
{
	struct ukevent ev;

	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	start_waiter(&w[0], q, 8);
	start_waiter(&w[1], q, 8);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	MUST_EQ(join_waiter(&w[0]), 1);
	MUST(kevent_ring_next(q->ring, q->size, &ev));
	MUST(waiter_asleep(&w[1]));
}

static void wake_request_counts_beside_events_of_others(void)
{
	struct waiter w[2];
	struct queue q;

	open_queue(&q, 8);
	start_pair(w, &q);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(join_waiter(&w[1]), 0);
	close_queue(&q);
}

static long wait_by_library(void *arg)
{
	struct queue *q = arg;
	struct kevent_queue lib = {
		.fd = q->fd, .size = q->size, .ring = q->ring
	};

	return kevent_queue_wait(&lib, NULL);
}

/* One request for each thread stops a pool of threads. */
static void wake_requests_stop_threads_that_share_a_ring(void)
{
	struct actor a[2];
	struct ukevent ev;
	struct queue q;
	int i;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	for (i = 0; i < 2; i++) {
		start_actor(&a[i], wait_by_library, &q);
		MUST(sleeps_in(a[i].tid, __NR_kevent_wait));
	}
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	join_actor(&a[0], PATIENCE_MS);
	CHECK_EQ(a[0].ret, 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	join_actor(&a[1], PATIENCE_MS);
	CHECK_EQ(a[1].ret, 0);
	close_queue(&q);
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

static void ready_without_entries_wakes_one_waiter(struct queue *q)
{
	long long sleeps[3];
	struct waiter w[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		start_waiter(&w[i], q, 1);
	for (i = 0; i < 3; i++)
		sleeps[i] = sleeps_so_far(w[i].actor.tid);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
		CHECK_EQ(join_waiter(&w[i]), 0);
		if (i < 2)
			check_asleep(&w[2], sleeps[2]);
		if (i < 1)
			check_asleep(&w[1], sleeps[1]);
	}
}

/* A request more than there are waiters is for the next one that would sleep. */
static void request_beside_requested_waiters_is_kept(struct queue *q)
{
	struct waiter w[2];
	struct ukevent ev;
	int i;

	for (i = 0; i < 2; i++)
		start_waiter(&w[i], q, 1);
	for (i = 0; i < 4; i++)
		CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(join_waiter(&w[i]), 0);
	CHECK_EQ(next_event(q, &ev, -1), 0);
	/* The fourth one was nothing new: this one sleeps. */
	start_waiter(&w[0], q, 1);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&w[0]), 1);
}

static void ready_without_entries_and_waiters_is_kept(struct queue *q)
{
	struct waiter w;
	struct ukevent ev;

	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(next_event(q, &ev, -1), 0);
	/* The request is used up: the next call sleeps. */
	start_waiter(&w, q, 1);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
}

/* An event does not use up a wake request, and a request no event. */
static void wake_request_loses_no_event(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 9), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL);
	CHECK_EQ(get_events(q.fd, 1, 1, -1, &ev), 1);
	CHECK_EQ(ev.ptr, 9);
	CHECK_EQ(get_events(q.fd, 1, 1, -1, &ev), 0);
	close_queue(&q);
}

struct timed_call {
	struct queue	*q;
	struct timespec	ts;
	uint32_t	flags;
};

static long timed_call(void *arg)
{
	struct timed_call *c = arg;
	struct ukevent ev;

	if (c->q->size)
		return kevent_wait(c->q->fd, 1, (uint32_t)c->q->ring->ring_kidx,
				   &c->ts, c->flags, NULL);
	return kevent_get_events(c->q->fd, 1, 1, &c->ts, &ev, c->flags);
}

/* Times that never come: the thread sleeps until an event comes. */
static void long_timeouts_sleep_until_the_event(struct queue *q)
{
	static const struct timespec far[] = {
		{ INT_MAX / 1000, 0 },
		{ (1ll << 32) + 1, 0 },
		{ 9223372036, 854775807 },
		{ 9223372036, 854775808 },
		{ INT64_MAX, 0 },
		{ INT64_MAX, 999999999 },
	};
	struct timed_call c = { .q = q };
	struct ukevent ev;
	struct actor a;
	unsigned int i;

	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	for (i = 0; i < 2 * ARRAY_SIZE(far); i++) {
		c.ts = far[i / 2];
		c.flags = i & 1 ? KEVENT_FLAGS_ABSTIME : 0;
		start_actor(&a, timed_call, &c);
		MUST(sleeps_in(a.tid, q->size ? __NR_kevent_wait :
				      __NR_kevent_get_events));
		MUST_EQ(mark_user(q->fd, 1, 1), 1);
		join_actor(&a, PATIENCE_MS);
		CHECK_EQ(a.ret, 1);
		if (q->size)
			MUST(kevent_ring_next(q->ring, q->size, &ev));
	}
}

static void timeouts_end_in_time_and_not_before(struct queue *q)
{
	static const struct timespec near[] = {
		{ 0, 0 }, { 0, 1 }, { 0, 1000 }, { 0, 3000000 },
		{ 0, 20000000 },
	};
	struct timed_call c = { .q = q };
	uint64_t start, took;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(near); i++) {
		c.ts = near[i];
		c.flags = 0;
		start = now_ns();
		CHECK_EQ(timed_call(&c), 0);
		took = now_ns() - start;
		CHECK(took >= (uint64_t)near[i].tv_nsec);
		CHECK(took < near[i].tv_nsec + PATIENCE_MS * 1000000ull *
		      slowness);
	}
}

static void absolute_times_are_monotonic_clock(struct queue *q)
{
	struct timed_call c = { .q = q, .flags = KEVENT_FLAGS_ABSTIME };
	uint64_t start, then;

	start = now_ns();
	CHECK_EQ(timed_call(&c), 0);
	c.ts.tv_nsec = 1;
	CHECK_EQ(timed_call(&c), 0);
	c.ts = ms_to_timespec((start - 1000000) / 1000000);
	CHECK_EQ(timed_call(&c), 0);
	CHECK(now_ns() - start < PATIENCE_MS * 1000000ull * slowness);
	then = now_ns() / 1000000 + 30;
	c.ts = ms_to_timespec(then);
	CHECK_EQ(timed_call(&c), 0);
	CHECK(now_ns() >= then * 1000000);
}

/* With a time of zero the call takes what is there and never sleeps. */
static void zero_timeout_takes_what_is_there(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	close_queue(&q);
}

static void signal_interrupts_a_wait(struct queue *q)
{
	struct waiter w;

	catch_signal(SIGUSR1);
	start_waiter(&w, q, 1);
	MUST_EQ(pthread_kill(w.actor.thread, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), -EINTR);
}

/* One of two events is in the buffer when the signal comes. */
static void signal_does_not_hide_events(void)
{
	struct waiter w;
	uint64_t start;
	struct queue q;

	catch_signal(SIGUSR1);
	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 5), 0);
	start_waiter_for(&w, &q, 2, 2, -1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	for (start = now_ns(); fdinfo(q.fd, "kevent-delivered") == 0; )
		MUST(patient(start, PATIENCE_MS));
	MUST(sleeps_in(w.actor.tid, __NR_kevent_get_events));
	MUST_EQ(pthread_kill(w.actor.thread, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK_EQ(w.ev[0].ptr, 5);
	close_queue(&q);
}

static void signal_counts_beside_events_of_others(void)
{
	struct waiter w[2];
	struct queue q;

	catch_signal(SIGUSR1);
	open_queue(&q, 8);
	start_pair(w, &q);
	MUST_EQ(pthread_kill(w[1].actor.thread, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w[1]), -EINTR);
	close_queue(&q);
}

/* A signal and an event at once, in either order: the event is not lost. */
static void signal_beside_an_event_loses_nothing(struct queue *q)
{
	uint64_t seed = test_seed();
	struct waiter w;
	struct ukevent ev;
	int i, first;
	long got;

	catch_signal(SIGUSR1);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	for (i = 0; i < 100; i++) {
		start_waiter(&w, q, 1);
		first = next_random(&seed) & 1;
		if (first)
			pthread_kill(w.actor.thread, SIGUSR1);
		MUST_EQ(mark_user(q->fd, 1, 1), 1);
		if (!first)
			pthread_kill(w.actor.thread, SIGUSR1);
		got = join_waiter(&w);
		MUST(got == 1 || got == -EINTR);
		if (q->size || got == -EINTR)
			MUST_EQ(next_event(q, &ev, 0), 1);
		MUST_EQ(next_event(q, &ev, 0), 0);
	}
}

/*
 *	T1 get_events(d)	times out about when the event comes
 *	T2 get_events(long)	must get it if T1 does not
 */
struct handover {
	struct queue		q;
	pthread_barrier_t	round;
	uint32_t		delay_ns;	/* of T1 */
	bool			stop;
	_Atomic int		ret[2];
};

#define RUNNING	12345

static long handover_thread(struct handover *h, int who)
{
	struct timespec ts;
	struct ukevent ev;

	for (;;) {
		pthread_barrier_wait(&h->round);
		if (h->stop)
			return 0;
		ts = who ? ms_to_timespec(PATIENCE_MS * slowness) :
			   (struct timespec){ .tv_nsec = h->delay_ns };
		atomic_store(&h->ret[who],
			     kevent_get_events(h->q.fd, 1, 1, &ts, &ev, 0));
		pthread_barrier_wait(&h->round);
	}
}

static long short_sleeper(void *arg)
{
	return handover_thread(arg, 0);
}

static long long_sleeper(void *arg)
{
	return handover_thread(arg, 1);
}

static bool handover_round(struct handover *h, int fd, uint64_t *seed)
{
	uint64_t start, pause = next_random(seed) % 400000 * slowness;

	h->delay_ns = next_random(seed) % 300000 * slowness;
	atomic_store(&h->ret[0], RUNNING);
	atomic_store(&h->ret[1], RUNNING);
	pthread_barrier_wait(&h->round);
	start = now_ns();
	while (now_ns() - start < pause)
		;
	if (write(fd, "", 1) != 1)
		return false;
	while (atomic_load(&h->ret[0]) == RUNNING)
		;
	if (atomic_load(&h->ret[0]) == 1)
		kevent_ctl(h->q.fd, KEVENT_CTL_READY, 0, NULL);
	pthread_barrier_wait(&h->round);
	return h->ret[0] + h->ret[1] == 1;
}

static void timeout_and_event_race_loses_no_wake_up(void)
{
	struct handover h = {};
	struct actor a[2];
	uint64_t seed = test_seed();
	int fd[2], i, bad = 0, timeouts = 0;

	open_queue(&h.q, 0);
	open_pipe(fd);
	pthread_barrier_init(&h.round, NULL, 3);
	MUST_EQ(add_pipe(h.q.fd, fd[0], RECV, ET, 0), 0);
	start_actor(&a[0], short_sleeper, &h);
	start_actor(&a[1], long_sleeper, &h);
	for (i = 0; i < 1000 && !bad; i++) {
		bad += !handover_round(&h, fd[1], &seed);
		timeouts += !h.ret[0];
	}
	note("%d rounds, %d time-outs of the first thread", i, timeouts);
	CHECK_EQ(bad, 0);
	h.stop = true;
	pthread_barrier_wait(&h.round);
	join_actor(&a[0], PATIENCE_MS);
	join_actor(&a[1], PATIENCE_MS);
	close_queue(&h.q);
}

/*
 * Four threads take one event at a time with short time limits while a writer
 * makes marks. Every mark is taken, whichever thread leaves early.
 */
struct takers {
	struct queue	q;
	_Atomic bool	stop;
	_Atomic unsigned int taken;
};

static long take_some(void *arg)
{
	struct takers *t = arg;
	uint64_t seed = gettid() * 0x9e3779b97f4a7c15ull | 1;
	struct timespec ts = {};
	struct ukevent ev;
	int ret;

	while (!atomic_load(&t->stop)) {
		ts.tv_nsec = next_random(&seed) % 200000;
		ret = kevent_get_events(t->q.fd, 1, 1, &ts, &ev, 0);
		if (ret < 0)
			return ret;
		if (ret)
			atomic_fetch_add(&t->taken, ev.ret_data[1]);
	}
	return 0;
}

static void threads_that_time_out_leave_nothing_behind(void)
{
	struct takers t = {};
	struct actor a[NR];
	struct ukevent ev;
	unsigned int i, marks = 5000;
	uint64_t start;

	open_queue(&t.q, 0);
	for (i = 0; i < 8; i++)
		MUST_EQ(add_user(t.q.fd, i, 1, 0, i), 0);
	for (i = 0; i < NR; i++)
		start_actor(&a[i], take_some, &t);
	for (i = 0; i < marks; i++)
		MUST_EQ(mark_user(t.q.fd, i % 8, 1), 1);
	for (start = now_ns(); atomic_load(&t.taken) < marks; )
		MUST(patient(start, PATIENCE_MS));
	atomic_store(&t.stop, true);
	for (i = 0; i < NR; i++) {
		join_actor(&a[i], PATIENCE_MS);
		CHECK_EQ(a[i].ret, 0);
	}
	CHECK_EQ(t.taken, marks);
	CHECK_EQ(get_events(t.q.fd, 1, 1, 0, &ev), 0);
	close_queue(&t.q);
}

#define WAKE_UPS	20000

/* Sleeps for the ring again and again, until it is requested to stop. */
static long sleep_often(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;
	int ret;

	do {
		ret = wait_ring(q, 1, 60000);
		while (kevent_ring_next(q->ring, q->size, &ev))
			;
	} while (ret > 0);
	return ret;
}

/* The thread may run before the one that wakes it goes on. */
static void each_wake_up_is_counted_once(void)
{
	struct actor actor;
	struct queue q;
	int fd[2], i;

	open_queue(&q, 64);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, KEVENT_REQ_ET, 1), 0);
	start_actor(&actor, sleep_often, &q);
	for (i = 0; i < WAKE_UPS; i++) {
		put_byte(fd[1]);
		take_bytes(fd[0]);
	}
	do
		MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	while (!actor_ended(&actor));
	join_actor(&actor, 60000);
	CHECK_EQ(actor.ret, 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 0);
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

/* Modes of a watch, and what follows after the delivery of an event */
static const struct mode {
	uint32_t	flags;
	bool		again;	/* another byte is another event */
	bool		gone;	/* the watch is */
} modes[] = {
	{ .flags = ET, .again = true },
	{ .flags = 0, .again = true },
	{ .flags = KEVENT_REQ_LAST_CHECK, .again = true },
	{ .flags = ET | KEVENT_REQ_LAST_CHECK, .again = true },
	{ .flags = ET | KEVENT_REQ_WAKEUP_ALL, .again = true },
	{ .flags = KEVENT_REQ_DISPATCH },
	{ .flags = ET | KEVENT_REQ_DISPATCH },
	{ .flags = KEVENT_REQ_ONESHOT, .gone = true },
	{ .flags = ET | KEVENT_REQ_ONESHOT, .gone = true },
};

/* The event of a byte that another process writes, while a thread sleeps */
static void sleep_for_byte(struct queue *q, int fd)
{
	struct ukevent ev;
	struct waiter w;

	start_waiter(&w, q, 1);
	put_byte_from_outside(fd);
	MUST_EQ(join_waiter(&w), 1);
	ev = w.ev[0];
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(ev.ret_data[0], RECV);
	CHECK(!(ev.ret_flags & KEVENT_RET_BROKEN));
}

/* A ring that stays writable while a child lives */
static void open_shared(struct queue *q)
{
	*q = (struct queue){ .size = 16, .bytes = 4096 };
	q->ring = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q->ring != MAP_FAILED);
	q->fd = kevent_init(q->ring, q->size, init_flags);
	MUST(q->fd >= 0);
}

/* With a buffer, a ring that a child makes read-only, and one that it does not */
static void each_memory(void (*fn)(struct queue *q))
{
	struct queue q;

	each_queue(fn);
	open_shared(&q);
	fn(&q);
	close_queue(&q);
}

static void has_each_event_once(struct queue *q)
{
	const struct mode *m;
	int fd[2];

	for (m = modes; m < modes + ARRAY_SIZE(modes); m++) {
		open_pipe(fd);
		MUST_EQ(add_pipe(q->fd, fd[0], RECV, m->flags, 7), 0);
		sleep_for_byte(q, fd[1]);
		take_bytes(fd[0]);
		CHECK_NO_EVENT(q);
		if (m->again) {
			sleep_for_byte(q, fd[1]);
		} else {
			put_byte_from_outside(fd[1]);
			CHECK_NO_EVENT(q);
		}
		CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]),
			 m->gone ? -ENOENT : 0);
		CHECK_NO_EVENT(q);
		close(fd[0]);
		close(fd[1]);
	}
}

static void sleeper_has_each_event_once(void)
{
	each_memory(has_each_event_once);
}

static int put_two_bytes(void *arg)
{
	const int *fd = arg;

	go_first();
	CHILD_MUST(write(fd[1], "", 1) == 1);
	CHILD_MUST(write(fd[3], "", 1) == 1);
	return 0;
}

/* One CPU: two events come before the sleeper runs, which asks for one. */
static void leaves_the_second_event(struct queue *q)
{
	unsigned int counts[2] = {};
	struct ukevent ev;
	struct waiter w;
	int fd[4], i;

	share_cpu();
	for (i = 0; i < 2; i++) {
		open_pipe(fd + 2 * i);
		MUST_EQ(add_pipe(q->fd, fd[2 * i], RECV, ET, i), 0);
	}
	start_waiter(&w, q, 1);
	CHECK_EQ(join_child(start_child(put_two_bytes, fd), PATIENCE_MS), 0);
	CHECK(join_waiter(&w) > 0);
	for (i = 0; i < 2; i++) {
		ev = w.ev[0];
		if (q->size)
			take_announced(q, &ev);
		else if (i)
			MUST_EVENT(q, &ev);
		MUST(ev.ptr < 2);
		counts[ev.ptr]++;
	}
	CHECK_EQ(counts[0], 1);
	CHECK_EQ(counts[1], 1);
	CHECK_NO_EVENT(q);
	leave_cpu();
}

static void sleeper_leaves_the_second_event(void)
{
	each_memory(leaves_the_second_event);
}

/*
 * One CPU: a thread fills its buffer in two collections, and leaves an event behind, which is
 * for a thread that waits for the ring.
 */
static void full_buffer_hands_the_event_on(void)
{
	struct waiter plain, ring;
	struct queue q, bare;
	int i;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	share_cpu();
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_KEEP_EACH, 0), 0);
	start_waiter_for(&plain, &bare, 2, 2, -1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST(sleeps_in(plain.actor.tid, __NR_kevent_get_events));
	start_waiter(&ring, &q, 1);
	go_first();
	for (i = 0; i < 2; i++)
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
	go_as_others();
	CHECK_EQ(join_waiter(&plain), 2);
	CHECK_EQ(join_waiter(&ring), 1);
	leave_cpu();
	close_queue(&q);
}

/* An unread entry says all there is to say: a byte more is no news for a sleeper. */
static void unread_entry_is_no_news(void)
{
	struct ukevent ev;
	struct waiter w;
	struct queue q;
	int fd[2];

	open_shared(&q);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	put_byte_from_outside(fd[1]);
	MUST_EQ(wait_ring(&q, 1, 0), 1);
	start_waiter(&w, &q, 1);
	put_byte_from_outside(fd[1]);
	MUST(sleeps_in(w.actor.tid, __NR_kevent_wait));
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* A sleeper that waits for two events goes on to sleep with the first one. */
static void sleeper_for_two_has_two(void)
{
	struct collector c = { .min = 2 };
	struct ukevent ev;
	struct queue q;
	int fd[4], i;

	open_shared(&q);
	for (i = 0; i < 2; i++) {
		open_pipe(fd + 2 * i);
		MUST_EQ(add_pipe(q.fd, fd[2 * i], RECV, ET, i), 0);
	}
	c.q = &q;
	start_actor(&c.actor, collect, &c);
	MUST(sleeps_in(c.actor.tid, __NR_kevent_wait));
	put_byte_from_outside(fd[1]);
	put_byte_from_outside(fd[3]);
	join_actor(&c.actor, PATIENCE_MS);
	CHECK_EQ(c.actor.ret, 2);
	for (i = 0; i < 2; i++) {
		MUST(kevent_ring_next(q.ring, q.size, &ev));
		CHECK_EQ(ev.ptr, i);
	}
	close_queue(&q);
}

/*
 * The slots are on a page that cannot be written, and an event that failed is removed: the
 * ring says that it is broken until an event is stored, for a sleeper too.
 */
static void event_of_a_sleeper_mends_the_ring(void)
{
	struct queue q = { .size = 128, .bytes = 8192 };
	int fd[2], i;

	q.ring = mmap(NULL, q.bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q.ring != MAP_FAILED);
	q.fd = kevent_init(q.ring, q.size, init_flags);
	MUST(q.fd >= 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	/* As far as the second page */
	for (i = 0; i < 120; i++)
		sleep_for_byte(&q, fd[1]);
	MUST_EQ(mprotect((char *)q.ring + 4096, 4096, PROT_READ), 0);
	put_byte(fd[1]);
	CHECK_EQ(wait_ring(&q, 1, 0), -EFAULT);
	MUST_EQ(remove_file(q.fd, KEVENT_PIPE, fd[0]), 0);
	MUST_EQ(mprotect((char *)q.ring + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	take_bytes(fd[0]);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	CHECK(q.ring->ring_flags & KEVENT_RING_BROKEN);
	sleep_for_byte(&q, fd[1]);
	CHECK_EQ(q.ring->ring_flags, 0);
	close_queue(&q);
}

static int modify_from_outside(void *arg)
{
	struct ukevent *ev = arg;

	CHILD_MUST(kevent_ctl((int)ev->ptr, KEVENT_CTL_MODIFY, 1, ev) == 0);
	return 0;
}

/* A watch that was modified is looked at, and what does not hold is no event. */
static void modified_watch_is_looked_at(void)
{
	struct ukevent ev;
	struct waiter w;
	struct queue q;
	int fd[2];

	open_shared(&q);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, q.fd), 0);
	start_waiter(&w, &q, 1);
	kevent_set_socket(&ev, fd[0], RECV, ET, q.fd);
	ev.type = KEVENT_PIPE;
	CHECK_EQ(join_child(start_child(modify_from_outside, &ev), PATIENCE_MS),
		 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(ev.ret_data[0], RECV);
	close_queue(&q);
}

struct mark {
	struct queue	*q;
	uint64_t	id;
};

static int mark_from_outside(void *arg)
{
	struct mark *m = arg;

	CHILD_MUST(mark_user(m->q->fd, m->id, 1) == 1);
	return 0;
}

/* An entry of a source that has more to say than conditions */
static void has_the_mark(struct queue *q)
{
	struct mark m = { .q = q, .id = 5ull << 32 | 6 };
	struct ukevent ev;
	struct waiter w;

	MUST_EQ(add_user(q->fd, m.id, 1, ET, 7), 0);
	start_waiter(&w, q, 1);
	CHECK_EQ(join_child(start_child(mark_from_outside, &m), PATIENCE_MS), 0);
	MUST_EQ(join_waiter(&w), 1);
	ev = w.ev[0];
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(ev.id.raw_u64, m.id);
	CHECK_NO_EVENT(q);
}

static void sleeper_has_the_mark(void)
{
	each_memory(has_the_mark);
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
	TEST(sleeper_has_each_event_once),
	TEST(sleeper_leaves_the_second_event),
	TEST(sleeper_for_two_has_two),
	TEST(sleeper_has_the_mark),
	TEST(event_of_a_sleeper_mends_the_ring),
	TEST(modified_watch_is_looked_at),
	TEST(full_buffer_hands_the_event_on),
	TEST(unread_entry_is_no_news),
	TEST(wakeup_all_wakes_waiters_of_both_kinds),
	TEST(waiters_for_several_wake_when_they_have_them),
	TEST(wake_request_counts_beside_events_of_others),
	TEST(wake_requests_stop_threads_that_share_a_ring),
	TEST(wakeup_all_delivers_once),
	TEST(fault_hands_the_event_on),
	TEST_EACH(level_left_behind_is_handed_on),
	TEST(full_ring_hands_the_event_on),
	TEST(waiter_on_a_full_ring_wakes_at_commit),
	TEST_EACH(ready_without_entries_wakes_one_waiter),
	TEST_EACH(ready_without_entries_and_waiters_is_kept),
	TEST_EACH(request_beside_requested_waiters_is_kept),
	TEST(wake_request_loses_no_event),
	TEST_EACH(long_timeouts_sleep_until_the_event),
	TEST_EACH(timeouts_end_in_time_and_not_before),
	TEST_EACH(absolute_times_are_monotonic_clock),
	TEST(zero_timeout_takes_what_is_there),
	TEST_EACH(signal_interrupts_a_wait),
	TEST(signal_counts_beside_events_of_others),
	TEST(signal_does_not_hide_events),
	TEST_EACH(signal_beside_an_event_loses_nothing),
	TEST_LIMIT(timeout_and_event_race_loses_no_wake_up, 180),
	TEST_LIMIT(threads_that_time_out_leave_nothing_behind, 30),
	TEST_LIMIT(each_wake_up_is_counted_once, 60),
	{}
};

const struct test_suite wake_suite = {
	.name = "wake",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
