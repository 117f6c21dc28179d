// SPDX-License-Identifier: GPL-2.0
/*
 * Who is woken of several: the waiter that slept last, and after 63 such wake-ups the one
 * that sleeps longest. T1 is the oldest waiter.
 *
 *	T1 T2 T3 T4	e -> T4		e -> T3		...
 *	T1 T2		e -> T2, 63 times	e -> T1
 *	T1(ring) T2(get_events)	e -> T2
 *	T1 T2		e -> T2		T3	a process closes the queue -> T1
 *
 * The order of queues with KEVENT_INIT_FAIR is in test_wake.c.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <unistd.h>

#include "helpers.h"

#define NR		4
#define WARM_MAX	63
#define A_PAGE		4096

static void open_watched(struct queue *q, int fd[2])
{
	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, ET, 7), 0);
}

/* An event, which a waiter returns for */
static void event_for(struct queue *q, int fd, struct waiter *w)
{
	struct ukevent ev;

	put_byte(fd);
	CHECK(join_waiter(w) > 0);
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
}

static void newest_waiter_is_woken(struct queue *q)
{
	struct waiter w[NR];
	int fd[2], i, j;

	open_watched(q, fd);
	for (i = 0; i < NR; i++)
		start_waiter(&w[i], q, 1);
	for (i = NR - 1; i >= 0; i--) {
		event_for(q, fd[1], &w[i]);
		for (j = 0; j < i; j++)
			CHECK(waiter_asleep(&w[j]));
	}
}

static void oldest_waiter_has_its_turn(struct queue *q)
{
	struct waiter old, warm;
	int fd[2], i;

	open_watched(q, fd);
	start_waiter(&old, q, 1);
	start_waiter(&warm, q, 1);
	for (i = 0; i < WARM_MAX; i++) {
		event_for(q, fd[1], &warm);
		CHECK(waiter_asleep(&old));
		start_waiter(&warm, q, 1);
	}
	event_for(q, fd[1], &old);
	CHECK(waiter_asleep(&warm));
	start_waiter(&old, q, 1);
	event_for(q, fd[1], &old);
	event_for(q, fd[1], &warm);
}

/* The newest has a buffer: the event is for it, and no entry is stored. */
static void newest_of_both_kinds_is_woken(void)
{
	struct waiter ring, plain;
	struct queue q, bare;
	int fd[2];

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	open_watched(&q, fd);
	start_waiter(&ring, &q, 1);
	start_waiter(&plain, &bare, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&plain), 1);
	CHECK_EQ(plain.ev[0].ptr, 7);
	CHECK(waiter_asleep(&ring));
	event_for(&q, fd[1], &ring);
	close_queue(&q);
}

/* A process that may have taken events, and ends */
static int leave(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	CHILD_MUST(get_events(q->fd, 1, 1, 0, &ev) == 0);
	return 0;
}

/*
 * An entry is left that the newest waiter has seen before it slept. When a process closes
 * the queue it is for the oldest one, which has not.
 */
static void entry_left_is_for_one_that_has_not_seen_it(void)
{
	struct waiter w[3];
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_watched(&q, fd);
	start_waiter(&w[0], &q, 1);
	start_waiter(&w[1], &q, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[1]), 1);
	start_waiter(&w[2], &q, 1);
	CHECK_EQ(join_child(start_child(leave, &q), PATIENCE_MS), 0);
	CHECK_EQ(join_waiter(&w[0]), 1);
	CHECK(waiter_asleep(&w[2]));
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	event_for(&q, fd[1], &w[2]);
	close_queue(&q);
}

/* A thread that waits until three entries are there */
static long wait_for_three(void *arg)
{
	struct queue *q = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC, .min_nr = 3,
	};

	return kevent_wait(q->fd, 8, 0, NULL, KEVENT_FLAGS_ARG, &wait);
}

/* Marks, which wait in the kernel: who waits for several is woken when these have come. */
static void waiter_for_several_has_them_soon(void)
{
	struct actor several;
	struct ukevent ev;
	struct waiter one;
	struct queue q;
	int i;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	start_actor(&several, wait_for_three, &q);
	MUST(sleeps_in(several.tid, __NR_kevent_wait));
	for (i = 0; i < 3; i++) {
		start_waiter(&one, &q, 1);
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		CHECK_EQ(join_waiter(&one), 1);
		MUST(kevent_ring_next(q.ring, q.size, &ev));
	}
	start_waiter(&one, &q, 1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	join_actor(&several, PATIENCE_MS);
	CHECK(several.ret >= 3);
	CHECK(waiter_asleep(&one) || join_waiter(&one) > 0);
	close_queue(&q);
}

/*
 * One event, for which a thread waits that slept before others who want more: it is woken.
 * @of_ring: it waits for the ring, @outside: the event is one of another process.
 */
static void one_event_is_enough(bool of_ring, bool outside)
{
	struct actor several;
	struct waiter one, more;
	struct queue q, bare;
	struct ukevent ev;
	int fd[2];

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	open_watched(&q, fd);
	start_waiter(&one, of_ring ? &q : &bare, 1);
	start_actor(&several, wait_for_three, &q);
	MUST(sleeps_in(several.tid, __NR_kevent_wait));
	start_waiter_for(&more, &bare, 3, 3, -1);
	if (outside)
		put_byte_from_outside(fd[1]);
	else
		put_byte(fd[1]);
	CHECK_EQ(join_waiter(&one), 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 2);
	if (of_ring)
		MUST(kevent_ring_next(q.ring, q.size, &ev));
	while (!actor_ended(&several) || !actor_ended(&more.actor)) {
		MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
		pause_us(1000);
	}
	join_actor(&several, PATIENCE_MS);
	join_waiter(&more);
	close_queue(&q);
}

static long wait_for_two(void *arg)
{
	struct queue *q = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC, .min_nr = 2,
	};

	return kevent_wait(q->fd, 8, 0, NULL, KEVENT_FLAGS_ARG, &wait);
}

/*
 * An unread entry says what the event says, so that makes no further one: who waits for a
 * second entry can't use it, and who slept before, with a buffer, can. After a fork() that
 * buffer is not writable at first.
 */
static void one_repeats_an_entry(uint32_t flags, bool outside)
{
	/* Its buffer has a page that nobody else writes to: it is not writable until the event. */
	static struct {
		char		fill[A_PAGE - offsetof(struct waiter, ev)];
		struct waiter	one;
	} __attribute__((aligned(A_PAGE))) apart;
	const struct timespec none = {};
	struct waiter *one = &apart.one;
	struct actor several;
	struct queue q, bare;
	long long before;
	int fd[2];

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | flags, 7), 0);
	put_byte(fd[1]);
	MUST_EQ(kevent_wait(q.fd, 8, 0, &none, 0, NULL), 1);
	start_waiter(one, &bare, 1);
	start_actor(&several, wait_for_two, &q);
	MUST(sleeps_in(several.tid, __NR_kevent_wait));
	before = sleeps_so_far(several.tid);
	if (outside)
		put_byte_from_outside(fd[1]);
	else
		put_byte(fd[1]);
	CHECK_EQ(join_waiter(one), 1);
	/* If it was woken it runs until it sleeps again. */
	MUST(sleeps_in(several.tid, __NR_kevent_wait));
	CHECK_EQ(sleeps_so_far(several.tid), before);
	while (!actor_ended(&several)) {
		MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
		pause_us(1000);
	}
	join_actor(&several, PATIENCE_MS);
	close(fd[0]);
	close(fd[1]);
	close_queue(&q);
}

static void event_that_repeats_an_entry_is_for_a_buffer(void)
{
	one_repeats_an_entry(0, false);
	one_repeats_an_entry(0, true);
	one_repeats_an_entry(KEVENT_REQ_WAKEUP_ALL, false);
	one_repeats_an_entry(KEVENT_REQ_WAKEUP_ALL, true);
}

static void event_is_for_who_it_is_enough_for(void)
{
	one_event_is_enough(false, false);
	one_event_is_enough(false, true);
	one_event_is_enough(true, false);
	one_event_is_enough(true, true);
}

#define FULL_SLEEPERS	40

static int leaves_many_times(void *arg)
{
	int i;

	for (i = 0; i < 10; i++) {
		CHILD_MUST(leave(arg) == 0);
		CHILD_MUST(close(dup(((struct queue *)arg)->fd)) == 0);
	}
	return 0;
}

static long long sleeps_of(struct waiter *w, unsigned int nr)
{
	long long sum = 0;

	while (nr--)
		sum += sleeps_so_far(w[nr].actor.tid);
	return sum;
}

/* Threads that have seen all of a full ring wait for room. Nobody who leaves wakes them. */
static void full_ring_wakes_nobody_in_vain(void)
{
	static struct waiter w[FULL_SLEEPERS];
	long long before;
	struct ukevent ev;
	struct queue q;
	int i;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_KEEP_EACH, 7), 0);
	for (i = 0; i < 8; i++)
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST_EQ(wait_ring(&q, 8, 0), 8);
	for (i = 0; i < FULL_SLEEPERS; i++)
		start_waiter(&w[i], &q, 1);
	before = sleeps_of(w, FULL_SLEEPERS);
	CHECK_EQ(join_child(start_child(leaves_many_times, &q), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), FULL_SLEEPERS);
	CHECK_EQ(sleeps_of(w, FULL_SLEEPERS), before);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	for (i = 0; i < FULL_SLEEPERS; i++)
		MUST_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	for (i = 0; i < FULL_SLEEPERS; i++)
		CHECK_EQ(join_waiter(&w[i]), 0);
	close_queue(&q);
}

static int takes_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int took_it_too(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	CHILD_MUST(get_events(q->fd, 1, 1, 0, &ev) == 1);
	return 0;
}

/* A thread is at work on a connection when the process has system() done. */
static void child_that_took_nothing_wakes_nobody(void)
{
	struct waiter idle, busy;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 7), 0);
	start_waiter(&idle, &q, 1);
	start_waiter(&busy, &q, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&busy), 1);
	CHECK_EQ(join_child(start_child(takes_nothing, NULL), PATIENCE_MS), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 1);
	/* One that has taken events leaves the watch to others. */
	CHECK_EQ(join_child(start_child(took_it_too, &q), PATIENCE_MS), 0);
	CHECK_EQ(join_waiter(&idle), 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(newest_waiter_is_woken),
	TEST_EACH(oldest_waiter_has_its_turn),
	TEST(newest_of_both_kinds_is_woken),
	TEST(entry_left_is_for_one_that_has_not_seen_it),
	TEST(waiter_for_several_has_them_soon),
	TEST(event_is_for_who_it_is_enough_for),
	TEST(event_that_repeats_an_entry_is_for_a_buffer),
	TEST(full_ring_wakes_nobody_in_vain),
	TEST(child_that_took_nothing_wakes_nobody),
	{}
};

const struct test_suite wake_order_suite = {
	.name = "wake_order",
	.cases = cases,
};
