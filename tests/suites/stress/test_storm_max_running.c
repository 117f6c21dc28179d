// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of which two may run come and go, block, are signalled and time out, change the
 * limit and the queue, while events are made one by one. Each event is taken: a lost one
 * fails the test.
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "storm.h"

#define THREADS		6
#define MARKS		4	/* watches of a queue */

struct stage {
	struct queue	seldom;		/* has a thread now and then only */
	_Atomic long	marked, lives;
	_Atomic long	owed[MARKS];	/* marks in the other queue that nobody has taken */
	bool		all_taken;	/* in time */
};

static int wait_limited(struct queue *q, uint32_t max, int64_t ms)
{
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.max_running = max,
	};
	uint64_t uidx = __atomic_load_n(&q->ring->ring_uidx, __ATOMIC_ACQUIRE);
	struct timespec ts = ms_to_timespec(ms < 0 ? 0 : ms);

	return kevent_wait(q->fd, 1, (uint32_t)uidx, ms < 0 ? NULL : &ts,
			   KEVENT_FLAGS_ARG, &arg);
}

static void take_mark(struct storm *s)
{
	struct stage *st = s->world;
	struct ukevent ev;

	if (!kevent_ring_pop(s->q.ring, s->q.size, &ev, 1))
		return;
	storm_expect(s, ev.ptr < MARKS && atomic_fetch_sub(&st->owed[ev.ptr], 1) == 1);
	atomic_fetch_add(&s->taken, 1);
}

static void nap(uint64_t *rnd)
{
	struct timespec ts = { .tv_nsec = next_random(rnd) % 200000 };

	nanosleep(&ts, NULL);
}

/* One wait, of any kind */
static void play(struct stormer *me)
{
	struct stage *st = me->storm->world;
	bool seldom = next_random(&me->rnd) % 16 == 0;
	uint32_t max = next_random(&me->rnd) % 16 ? 2u : next_random(&me->rnd) % 4;
	int64_t ms = next_random(&me->rnd) % 4 ? -1 : (int64_t)(next_random(&me->rnd) % 3);
	int ret;

	ret = wait_limited(seldom ? &st->seldom : &me->storm->q, max, seldom ? 1 : ms);
	storm_expect(me->storm, ret >= 0 || ret == -EINTR);
	/* A request ends a wait whatever is in the ring. */
	if (!seldom)
		take_mark(me->storm);
	if (next_random(&me->rnd) % 2)
		nap(&me->rnd);
	me->ends = next_random(&me->rnd) % 256 == 0;
	if (me->ends)
		atomic_fetch_add(&st->lives, 1);
}

static void open_marks(struct queue *q)
{
	unsigned int k;

	open_queue(q, 8);
	for (k = 0; k < MARKS; k++)
		MUST_EQ(add_user(q->fd, k, 1, 0, k), 0);
}

static void disturb(struct storm *s)
{
	struct stormer *one = &s->stormers[next_random(&s->seed) % THREADS];

	storm_replace(s);
	if (next_random(&s->seed) % 8 == 0)
		pthread_kill(one->actor.thread, SIGUSR1);
	else if (next_random(&s->seed) % 8 == 0)
		kevent_ctl(s->q.fd, KEVENT_CTL_READY, 0, NULL);
}

/* Marks watches that nobody owes, and returns when there is no other in the queue. */
static void mark_and_wait(struct storm *s)
{
	struct stage *st = s->world;
	uint64_t begin = now_ns();
	unsigned int k, nr = 1 + next_random(&s->seed) % MARKS;

	for (k = 0; k < 4; k++)
		disturb(s);
	for (k = 0; st->all_taken && k < nr; k++) {
		atomic_store(&st->owed[k], 1);
		atomic_fetch_add(&st->marked, 1);
		storm_expect(s, mark_user(s->q.fd, k, 1) == 1);
	}
	for (k = 0; k < nr; k++)
		while (st->all_taken && atomic_load(&st->owed[k]) > 0) {
			st->all_taken = patient(begin, PATIENCE_MS);
			/* Nothing else happens. */
			storm_replace(s);
		}
}

static void request(struct storm *s)
{
	kevent_ctl(s->q.fd, KEVENT_CTL_READY, 0, NULL);
}

static void no_event_is_left(void)
{
	struct stage st = { .all_taken = true };
	struct storm s = { .world = &st };

	catch_signal(SIGUSR1);
	open_marks(&s.q);
	open_marks(&st.seldom);
	storm_begin(&s);
	storm_helpers(&s, THREADS, play);
	storm_run(&s, mark_and_wait);
	note("%ld events, %ld threads", st.marked, st.lives + THREADS);
	CHECK(st.all_taken);
	storm_end(&s, request);
	CHECK_EQ(s.taken, st.marked);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-running"), 0);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-parked"), 0);
	close_queue(&st.seldom);
	storm_close(&s, MARKS);
}

/* Processes are killed while their threads park, run and block. */

static void wait_for_ever(struct stormer *me)
{
	if (wait_limited(&me->storm->q, 1, -1) > 0)
		take_mark(me->storm);
	if (next_random(&me->rnd) % 2)
		nap(&me->rnd);
}

static int lives_until_killed(void *arg)
{
	struct stage st = {};
	struct storm s = { .world = &st, .seed = *(uint64_t *)arg };
	unsigned int i;

	open_queue(&s.q, 8);
	for (i = 0; i < MARKS; i++)
		CHILD_MUST(add_user(s.q.fd, i, 1, 0, i) == 0);
	storm_helpers(&s, THREADS, wait_for_ever);
	for (i = 0;; i++) {
		mark_user(s.q.fd, i % MARKS, 1);
		if (next_random(&s.seed) % 1024 == 0)
			close(s.q.fd);
		if (next_random(&s.seed) % 512 == 0)
			exec_and_end();
	}
}

static void kill_one(struct storm *s)
{
	struct timespec ts = { .tv_nsec = next_random(&s->seed) % 5000000 };
	pid_t pid = start_child(lives_until_killed, &s->seed);

	nanosleep(&ts, NULL);
	kill(pid, SIGKILL);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
	atomic_fetch_add(&s->taken, 1);
}

static void ends_race_everything(void)
{
	struct storm s = {};

	storm_begin(&s);
	storm_run(&s, kill_one);
	note("%ld processes", s.taken);
}

static const struct test_case cases[] = {
	TEST(no_event_is_left),
	TEST(ends_race_everything),
	{}
};

const struct test_suite storm_max_running_suite = {
	.name = "storm_max_running",
	.cases = cases,
};
