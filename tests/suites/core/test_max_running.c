// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_wait_arg.max_running: at most so many of a queue's threads run
 *
 *	A runs		B waits, event		B sleeps on
 *	A blocks				B returns with it
 *	A goes on	B runs			both run; the next wait of one parks
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "helpers.h"
#include "team.h"

/* The limit */

static void one_runs_and_others_wait(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	sleeps(c);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-parked"), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-max-running"), 1);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	/* B is woken, and parks. C need not be woken for the next one. */
	mark(t, 2);
	CHECK(parked(t, 1));
	CHECK(sleeps_in(b->actor.tid, __NR_kevent_wait));
	mark(t, 3);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-waiting"), 1);
	CHECK(!is_done(b) && !is_done(c));
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	tell(a, waits);
	CHECK_EQ(result(a), 2);
	CHECK(!is_done(b) && !is_done(c));
	tell(a, waits);
	CHECK_EQ(result(a), 3);
	close_team(t, 3);
}

static void one_that_blocks_makes_room(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	mark(t, 2);
	CHECK(parked(t, 1));
	mark(t, 3);
	tell(a, blocks);
	CHECK_EQ(result(b), 2);
	/* What B has left may have C look, and park. */
	CHECK(waiting(t, 1));
	CHECK(!is_done(a) && !is_done(c));
	CHECK(running(t, 1));
	/* Now both run: nobody waits for its place. */
	let_read_return(a);
	CHECK_EQ(result(a), 1);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 2);
	tell(a, waits);
	CHECK(waiting(t, 2));
	CHECK(!is_done(a));
	/* B has its place, and takes what is there. */
	tell(b, waits);
	CHECK_EQ(result(b), 3);
	CHECK(!is_done(a) && !is_done(c));
	/* B finds nothing: A is let go, finds nothing, and sleeps. */
	sleeps(b);
	CHECK(parked(t, 0));
	CHECK(running(t, 0));
	close_team(t, 3);
}

/* The event waits in the kernel: it was made by a process without the ring. */
static void event_in_the_kernel_is_not_left(void)
{
	struct worker *a, *b;
	struct outside o;
	struct team *t;

	open_outside(&o);
	t = open_team(2, 1);
	a = &t->w[0];
	b = &t->w[1];
	add_outside(t, &o, 77);
	sleeps(a);
	sleeps(b);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	write_outside(&o);
	CHECK(parked(t, 1));
	CHECK(!is_done(b));
	tell(a, blocks);
	CHECK_EQ(result(b), 77);
	let_read_return(a);
	close_team(t, 2);
	close_outside(&o);
}

static void two_run_with_a_limit_of_two(void)
{
	struct team *t = open_team(NR, 2);
	struct worker *a, *b, *c;
	unsigned int i;

	for (i = 0; i < NR; i++)
		sleeps(&t->w[i]);
	for (i = 1; i <= 2; i++)
		mark(t, i);
	a = one_more(t);
	b = one_more(t);
	CHECK_EQ(a->ret + b->ret, 3);
	mark(t, 3);
	CHECK(one_is_parked(t));
	mark(t, 4);
	CHECK(no_more(t));
	tell(a, blocks);
	c = one_more(t);
	CHECK_EQ(c->ret, 3);
	CHECK(no_more(t));
	tell(b, blocks);
	CHECK_EQ(one_more(t)->ret, 4);
	let_read_return(a);
	let_read_return(b);
	close_team(t, NR);
}

/*
 * Nobody is woken for the second event, as one is parked. When that one is let go, and
 * takes the first event, another one has to park in its place: nothing but the ring
 * knows of the second event.
 */
static void one_that_is_let_go_is_replaced(void)
{
	struct team *t = open_team(4, 2);
	const struct timespec now = {};
	unsigned int i;

	for (i = 11; i <= 14; i++)
		MUST_EQ(add_user(t->q.fd, i, 1, KEVENT_REQ_ET, i), 0);
	for (i = 0; i < 4; i++)
		sleeps(&t->w[i]);
	for (i = 0; i < 2; i++) {
		mark(t, 11 + i);
		CHECK_EQ(result(&t->w[i]), 11 + i);
	}
	mark(t, 13);
	CHECK(parked(t, 1));
	mark(t, 14);
	/* All that is ready is in the ring now. */
	CHECK(kevent_wait(t->q.fd, SIZE, 0, &now, 0, NULL) > 0);
	tell(&t->w[0], blocks);
	CHECK_EQ(result(&t->w[2]), 13);
	CHECK(parked(t, 1));
	tell(&t->w[1], blocks);
	CHECK_EQ(result(&t->w[3]), 14);
	let_read_return(&t->w[0]);
	let_read_return(&t->w[1]);
	close_team(t, 4);
}

static void raised_limit_lets_all_go(void)
{
	struct team *t = open_team(4, 1);
	unsigned int i;

	runs(t, &t->w[0], 1);
	for (i = 1; i < 4; i++) {
		tell(&t->w[i], waits);
		CHECK(parked(t, i));
	}
	t->w[0].max = 4;
	t->w[0].ms = 0;
	for (i = 1; i <= 4; i++)
		mark(t, i);
	tell(&t->w[0], waits);
	for (i = 0; i < 4; i++)
		CHECK(result(&t->w[i]) > 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 4);
	/* A lower one holds from the next wait on. */
	t->w[0].max = 1;
	tell(&t->w[0], waits);
	CHECK_EQ(result(&t->w[0]), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-max-running"), 1);
	mark(t, 5);
	tell(&t->w[1], waits);
	CHECK(parked(t, 1));
	CHECK(!is_done(&t->w[1]));
	close_team(t, 4);
}

/* Ends of a wait */

static void parked_one_has_its_timeout(void)
{
	struct worker *a, *b;
	struct outside o;
	struct team *t;
	uint64_t start = now_ns();

	open_outside(&o);
	t = open_team(2, 1);
	a = &t->w[0];
	b = &t->w[1];
	add_outside(t, &o, 77);
	runs(t, a, 1);
	/* In the kernel: what is in the ring is there for all. */
	write_outside(&o);
	b->ms = 30;
	tell(b, waits);
	CHECK_EQ(result(b), 0);
	CHECK(now_ns() - start >= 30000000);
	b->ms = 0;
	tell(b, waits);
	CHECK_EQ(result(b), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-parked"), 0);
	/* It runs, whatever the limit says, and so does A. */
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 2);
	tell(b, blocks);
	CHECK(running(t, 1));
	tell(a, waits);
	CHECK_EQ(result(a), 77);
	let_read_return(b);
	close_team(t, 2);
	close_outside(&o);
}

static void parked_one_is_interrupted(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	catch_signal(SIGUSR1);
	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	MUST_EQ(pthread_kill(b->actor.thread, SIGUSR1), 0);
	CHECK_EQ(result(b), -EINTR);
	close_team(t, 2);
}

/* Returns what the worker returns, which was woken for an event and has a signal. */
static long interrupt_with_event(struct team *t, struct worker *a)
{
	MUST_EQ(add_user(t->q.fd, 11, 1, KEVENT_REQ_ONESHOT, 11), 0);
	sleeps(a);
	/* Now the main thread runs, as far as the limit knows. */
	CHECK_EQ(wait_for_event(&t->q, 1, 0), 0);
	go_first();
	mark(t, 11);
	MUST_EQ(pthread_kill(a->actor.thread, SIGUSR1), 0);
	go_as_others();
	return result(a);
}

/*
 * It was woken for the event, and is interrupted before it parks. If the main thread has
 * blocked meanwhile, the worker had its place and takes the event.
 */
static void event_of_an_interrupted_one_is_delivered(void)
{
	unsigned int tries = 0;
	struct worker *a;
	struct team *t;

	catch_signal(SIGUSR1);
	share_cpu();
	t = open_team(1, 1);
	a = &t->w[0];
	while (interrupt_with_event(t, a) != -EINTR)
		MUST(++tries < 100);
	CHECK(t->q.ring->ring_flags & KEVENT_RING_MORE);
	CHECK_EQ(wait_for_event(&t->q, 0, 0), 11);
	leave_cpu();
	close_team(t, 1);
}

/* Requests stop threads one by one, as far as they wait. */
static void parked_one_hears_a_request(void)
{
	struct team *t = open_team(4, 1);
	unsigned int i;

	runs(t, &t->w[0], 1);
	for (i = 1; i < 4; i++)
		tell(&t->w[i], waits);
	MUST(parked(t, 3));
	for (i = 1; i < 4; i++)
		request(t);
	for (i = 1; i < 4; i++)
		CHECK_EQ(result(&t->w[i]), 0);
	/* Nobody waits: the next one that does returns. */
	request(t);
	tell(&t->w[1], waits);
	CHECK_EQ(result(&t->w[1]), 0);
	tell(&t->w[1], waits);
	CHECK(parked(t, 1));
	close_team(t, 4);
}

/* An event for which a parked thread was woken is not lost when its wait ends. */
static void timeout_of_a_parked_one_hands_on(void)
{
	struct worker *a, *b, *c;
	struct outside o;
	struct team *t;

	open_outside(&o);
	t = open_team(3, 1);
	a = &t->w[0];
	b = &t->w[1];
	c = &t->w[2];
	add_outside(t, &o, 77);
	sleeps(a);
	b->ms = 4000;	/* until the event is there */
	sleeps(b);
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	write_outside(&o);
	CHECK(parked(t, 1));
	CHECK_EQ(result(b), 0);
	/* Now C looks for it, and parks. */
	CHECK(parked(t, 1));
	CHECK(!is_done(c));
	tell(b, blocks);
	tell(a, blocks);
	CHECK_EQ(result(c), 77);
	let_read_return(a);
	let_read_return(b);
	close_team(t, 3);
	close_outside(&o);
}

static void min_nr_is_waited_for(void)
{
	struct team *t = open_team(2, 1);
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.max_running = 1, .min_nr = 3, .min_wait_ns = 1000000,
	};
	struct timespec ts = ms_to_timespec(50);

	runs(t, &t->w[0], 1);
	/* The time after which one is enough does not let the thread go on. */
	mark(t, 2);
	CHECK_EQ(kevent_wait(t->q.fd, SIZE, (uint32_t)t->q.ring->ring_kidx, &ts,
			     KEVENT_FLAGS_ARG, &arg), 0);
	arg.max_running = 2;
	mark(t, 3);
	mark(t, 4);
	CHECK_EQ(kevent_wait(t->q.fd, SIZE, (uint32_t)t->q.ring->ring_uidx, &ts,
			     KEVENT_FLAGS_ARG, &arg), 3);
	CHECK_EQ(kevent_wait(t->q.fd, SIZE, (uint32_t)t->q.ring->ring_kidx - 2,
			     &ts, KEVENT_FLAGS_ARG, &arg), 2);
	/* This thread leaves, and then it waits for its time. */
	ts = ms_to_timespec(1);
	CHECK_EQ(wait_ring(&t->q, SIZE, 1), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	close_team(t, 2);
}

/* All together */

#define EVENTS	1000
#define THREADS	8
#define MOST	2

struct crowd {
	struct queue	q;
	uint64_t	seed;
	uint32_t	max;	/* the limit, or 0 */
	_Atomic int	in_user;	/* run, as far as they know themselves */
	_Atomic int	unblocked;	/* of these, have blocked since they waited */
	_Atomic int	taken, wrong, most, stop;
	_Atomic int	got[EVENTS + 1];
};

struct one {
	struct actor	actor;
	struct crowd	*crowd;
	unsigned int	nr;
};

static void block_for_a_while(struct crowd *c, bool *blocked)
{
	struct timespec ts = { .tv_nsec = 100000 };

	atomic_fetch_sub(&c->in_user, 1);
	if (*blocked)
		atomic_fetch_sub(&c->unblocked, 1);
	nanosleep(&ts, NULL);
	*blocked = true;
	atomic_fetch_add(&c->unblocked, 1);
	atomic_fetch_add(&c->in_user, 1);
}

static void count_in(struct crowd *c, long id)
{
	int now = atomic_fetch_add(&c->in_user, 1) + 1;

	if (c->max && now - atomic_load(&c->unblocked) > (int)c->max)
		atomic_fetch_add(&c->wrong, 1);
	if (now > atomic_load(&c->most))
		atomic_store(&c->most, now);
	if (id < 1 || id > EVENTS || atomic_fetch_add(&c->got[id], 1))
		atomic_fetch_add(&c->wrong, 1);
	else
		atomic_fetch_add(&c->taken, 1);
}

static long takes_part(void *arg)
{
	struct one *one = arg;
	struct crowd *c = one->crowd;
	uint64_t rnd = c->seed + one->nr;
	bool blocked;
	int i;

	while (!atomic_load(&c->stop)) {
		long id = wait_for_event(&c->q, c->max, -1);

		if (!id)
			continue;
		count_in(c, id);
		blocked = false;
		while (next_random(&rnd) % 2)
			block_for_a_while(c, &blocked);
		for (i = next_random(&rnd) % 50000; i > 0; i--)
			__asm__ volatile("" ::: "memory");
		atomic_fetch_sub(&c->in_user, 1);
		if (blocked)
			atomic_fetch_sub(&c->unblocked, 1);
	}
	return 0;
}

static void open_crowd(struct crowd *c, struct one *all)
{
	int i;

	open_queue(&c->q, 64);
	for (i = 1; i <= EVENTS; i++)
		MUST_EQ(add_user(c->q.fd, i, 1, 0, i), 0);
	for (i = 0; i < THREADS; i++) {
		all[i].crowd = c;
		all[i].nr = i;
		start_actor(&all[i].actor, takes_part, &all[i]);
	}
}

static void close_crowd(struct crowd *c, struct one *all)
{
	uint64_t start = now_ns();
	int i;

	atomic_store(&c->stop, 1);
	for (i = 0; i < THREADS; i++)
		while (!actor_ended(&all[i].actor) &&
		       patient(start, 2 * PATIENCE_MS))
			kevent_ctl(c->q.fd, KEVENT_CTL_READY, 0, NULL);
	for (i = 0; i < THREADS; i++)
		join_actor(&all[i].actor, PATIENCE_MS);
	note("limit %u: at most %d of %d ran, some of them after a block",
	     c->max, c->most, THREADS);
	CHECK_EQ(c->taken, EVENTS);
	CHECK_EQ(c->wrong, 0);
	if (c->max)
		CHECK_EQ(fdinfo(c->q.fd, "kevent-parked"), 0);
	close_queue(&c->q);
}

static void take_all_events(uint32_t max)
{
	static struct one all[THREADS];
	static struct crowd c;
	uint64_t start;
	int i;

	memset(&c, 0, sizeof(c));
	c.seed = test_seed();
	c.max = max;
	open_crowd(&c, all);
	for (i = 1; i <= EVENTS; i++) {
		MUST_EQ(mark_user(c.q.fd, i, 1), 1);
		if (i % 16 == 0)
			sched_yield();
	}
	start = now_ns();
	while (c.taken < EVENTS && patient(start, 2 * PATIENCE_MS))
		;
	close_crowd(&c, all);
}

static void each_event_comes_once(void)
{
	take_all_events(MOST);
	take_all_events(0);
}

static const struct test_case cases[] = {
	TEST(one_runs_and_others_wait),
	TEST(one_that_blocks_makes_room),
	TEST(event_in_the_kernel_is_not_left),
	TEST(two_run_with_a_limit_of_two),
	TEST(one_that_is_let_go_is_replaced),
	TEST(raised_limit_lets_all_go),
	TEST(parked_one_has_its_timeout),
	TEST(parked_one_is_interrupted),
	TEST(event_of_an_interrupted_one_is_delivered),
	TEST(parked_one_hears_a_request),
	TEST(timeout_of_a_parked_one_hands_on),
	TEST(min_nr_is_waited_for),
	TEST(each_event_comes_once),
	{}
};

const struct test_suite max_running_suite = {
	.name = "max_running",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
