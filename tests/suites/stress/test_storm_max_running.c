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
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

#define THREADS		6
#define MARKS		4	/* watches of a queue */
#define QUEUES		2

struct stage {
	struct queue	q[QUEUES];
	uint64_t	seed;
	_Atomic int	stop;
	_Atomic int	wrong;
	_Atomic long	marked, taken, lives;
	_Atomic long	owed[QUEUES][MARKS];	/* marks that nobody has taken */
};

struct player {
	struct actor	actor;
	struct stage	*stage;
	unsigned int	nr;
	_Atomic int	ended;
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

static void take_mark(struct stage *s, unsigned int nr)
{
	struct ukevent ev;

	if (!kevent_ring_pop(s->q[nr].ring, s->q[nr].size, &ev, 1))
		return;
	if (ev.ptr >= MARKS || atomic_fetch_sub(&s->owed[nr][ev.ptr], 1) != 1)
		atomic_fetch_add(&s->wrong, 1);
	atomic_fetch_add(&s->taken, 1);
}

static void nap(uint64_t *rnd)
{
	struct timespec ts = { .tv_nsec = next_random(rnd) % 200000 };

	nanosleep(&ts, NULL);
}

/* One wait, of any kind */
static void play(struct stage *s, uint64_t *rnd)
{
	unsigned int nr = next_random(rnd) % 16 == 0;
	uint32_t max = next_random(rnd) % 16 ? 2u : next_random(rnd) % 4;
	int64_t ms = next_random(rnd) % 4 ? -1 : (int64_t)(next_random(rnd) % 3);
	int ret;

	/* The second queue has a thread now and then only. */
	ret = wait_limited(&s->q[nr], max, nr ? 1 : ms);
	if (ret < 0 && ret != -EINTR)
		atomic_fetch_add(&s->wrong, 1);
	/* A request ends a wait whatever is in the ring. */
	take_mark(s, nr);
	if (next_random(rnd) % 2)
		nap(rnd);
}

static long lives(void *arg)
{
	struct player *p = arg;
	struct stage *s = p->stage;
	uint64_t rnd = s->seed + p->nr + (uint64_t)atomic_load(&s->lives) * 64;

	while (!atomic_load(&s->stop) && next_random(&rnd) % 256)
		play(s, &rnd);
	atomic_store(&p->ended, 1);
	return 0;
}

static void start(struct player *p)
{
	atomic_store(&p->ended, 0);
	atomic_fetch_add(&p->stage->lives, 1);
	start_actor(&p->actor, lives, p);
}

static void open_stage(struct stage *s)
{
	unsigned int i, k;

	memset(s, 0, sizeof(*s));
	catch_signal(SIGUSR1);
	s->seed = test_seed();
	for (i = 0; i < QUEUES; i++) {
		open_queue(&s->q[i], 8);
		for (k = 0; k < MARKS; k++)
			MUST_EQ(add_user(s->q[i].fd, k, 1, 0, k), 0);
	}
}

static void replace(struct player *p)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		if (atomic_load(&p[i].ended)) {
			join_actor(&p[i].actor, PATIENCE_MS);
			start(&p[i]);
		}
}

static void disturb(struct stage *s, struct player *p, uint64_t *rnd)
{
	struct player *one = &p[next_random(rnd) % THREADS];

	replace(p);
	if (next_random(rnd) % 8 == 0) {
		pthread_kill(one->actor.thread, SIGUSR1);
	} else if (next_random(rnd) % 8 == 0) {
		kevent_ctl(s->q[0].fd, KEVENT_CTL_READY, 0, NULL);
	}
}

/* Marks a watch that nobody owes, and returns when there is no other in the queue. */
static bool mark_and_wait(struct stage *s, struct player *p, uint64_t *rnd)
{
	uint64_t begin = now_ns();
	unsigned int k, nr = 1 + next_random(rnd) % MARKS;

	for (k = 0; k < nr; k++) {
		atomic_store(&s->owed[0][k], 1);
		atomic_fetch_add(&s->marked, 1);
		if (mark_user(s->q[0].fd, k, 1) != 1)
			atomic_fetch_add(&s->wrong, 1);
	}
	for (k = 0; k < nr; k++)
		while (atomic_load(&s->owed[0][k]) > 0) {
			if (!patient(begin, PATIENCE_MS))
				return false;
			/* Nothing else happens. */
			replace(p);
		}
	return true;
}

static void end_players(struct stage *s, struct player *p)
{
	uint64_t begin = now_ns();
	unsigned int i;

	atomic_store(&s->stop, 1);
	for (i = 0; i < THREADS; i++)
		while (!atomic_load(&p[i].ended) &&
		       patient(begin, 2 * PATIENCE_MS))
			kevent_ctl(s->q[0].fd, KEVENT_CTL_READY, 0, NULL);
	for (i = 0; i < THREADS; i++)
		join_actor(&p[i].actor, PATIENCE_MS);
}

static void no_event_is_left(void)
{
	static struct player p[THREADS];
	static struct stage s;
	bool ok = true;
	uint64_t until, rnd;
	unsigned int i;

	open_stage(&s);
	rnd = s.seed;
	for (i = 0; i < THREADS; i++) {
		p[i].stage = &s;
		p[i].nr = i;
		start(&p[i]);
	}
	until = now_ns() + storm_ns();
	while (ok && now_ns() < until) {
		for (i = 0; i < 4; i++)
			disturb(&s, p, &rnd);
		ok = mark_and_wait(&s, p, &rnd);
	}
	note("%ld events, %ld threads", s.marked, s.lives);
	CHECK(ok);
	end_players(&s, p);
	CHECK_EQ(s.taken, s.marked);
	CHECK_EQ(s.wrong, 0);
	CHECK_EQ(fdinfo(s.q[0].fd, "kevent-running"), 0);
	CHECK_EQ(fdinfo(s.q[0].fd, "kevent-parked"), 0);
	for (i = 0; i < QUEUES; i++)
		close_queue(&s.q[i]);
}

/* Processes are killed while their threads park, run and block. */

static long waits_for_ever(void *arg)
{
	struct player *p = arg;
	uint64_t rnd = p->stage->seed + p->nr;

	for (;;) {
		if (wait_limited(&p->stage->q[0], 1, -1) > 0)
			take_mark(p->stage, 0);
		if (next_random(&rnd) % 2)
			nap(&rnd);
	}
	return 0;
}

static int lives_until_killed(void *arg)
{
	static struct player p[THREADS];
	static struct stage s;
	unsigned int i;

	s.seed = *(uint64_t *)arg;
	open_queue(&s.q[0], 8);
	for (i = 0; i < MARKS; i++)
		CHILD_MUST(add_user(s.q[0].fd, i, 1, 0, i) == 0);
	for (i = 0; i < THREADS; i++) {
		p[i].stage = &s;
		p[i].nr = i;
		start_actor(&p[i].actor, waits_for_ever, &p[i]);
	}
	for (i = 0;; i++) {
		mark_user(s.q[0].fd, i % MARKS, 1);
		if (next_random(&s.seed) % 1024 == 0)
			close(s.q[0].fd);
		if (next_random(&s.seed) % 512 == 0)
			exec_and_end();
	}
}

static void ends_race_everything(void)
{
	uint64_t seed = test_seed(), until = now_ns() + storm_ns();
	unsigned int nr = 0;

	while (now_ns() < until) {
		struct timespec ts = { .tv_nsec = next_random(&seed) % 5000000 };
		pid_t pid = start_child(lives_until_killed, &seed);

		nanosleep(&ts, NULL);
		kill(pid, SIGKILL);
		MUST_EQ(waitpid(pid, NULL, 0), pid);
		nr++;
	}
	note("%u processes", nr);
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
