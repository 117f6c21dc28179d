// SPDX-License-Identifier: GPL-2.0
/*
 * What ends a wait that has no event: a time-out, a signal, and READY without entries, which
 * requests a wake-up; that none of them loses an event
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "helpers.h"

#define NR	4

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

static const struct test_case cases[] = {
	TEST(wake_request_counts_beside_events_of_others),
	TEST(wake_requests_stop_threads_that_share_a_ring),
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

const struct test_suite wait_ends_suite = {
	.name = "wait_ends",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
