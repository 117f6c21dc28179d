// SPDX-License-Identifier: GPL-2.0
/*
 * Spinning in place of a short sleep
 *
 * A child makes the events: it does not have the ring, so that each of them waits in the
 * kernel for a consumer. "kevent-spun" of fdinfo counts the events that a consumer found
 * before it slept, and "kevent-spun-vain" how often it found none.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>
#include <sys/mman.h>

#include "helpers.h"

#define LAPS		1000		/* events in short succession */
#define CROWDED_LAPS	50		/* where each takes a slice of time */
#define PACES		16		/* times from one to the next */
#define PACE_NS		2000
#define PAUSES		6
#define GAMES		12
#define GAME_LAPS	200
#define PAUSE_NS	20000000
#define SETTING		"/proc/sys/kernel/kevent_spin_max_ns"

/**
 * struct game - a child writes a byte when the one before was taken
 * @q:		the queue
 * @fd:		a pipe
 * @laps:	how many bytes
 * @taken:	of these
 * @stop:	the child ends
 *
 * In memory that parent and child share.
 */
struct game {
	struct queue		q;
	int			fd[2];
	int			laps;
	_Atomic int		taken;
	_Atomic bool		stop;
};

/* In the child: the time from one byte to the next is another one each time. */
static int write_soon(void *arg)
{
	struct game *g = arg;
	uint64_t start;
	int nr;

	for (nr = 0; nr < g->laps; nr++) {
		while (g->taken < nr)
			if (g->stop)
				return 0;
		start = now_ns();
		while (now_ns() - start < (uint64_t)(nr % PACES) * PACE_NS)
			;
		CHILD_MUST(write(g->fd[1], "x", 1) == 1);
	}
	return 0;
}

/* In the child: each consumer has slept for long. */
static int write_late(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct game *g = arg;
	int nr;

	for (nr = 0; nr < g->laps; nr++) {
		while (g->taken < nr && !g->stop)
			sched_yield();
		nanosleep(&pause, NULL);
		CHILD_MUST(write(g->fd[1], "x", 1) == 1);
	}
	return 0;
}

static struct game *open_game(void)
{
	struct game *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(g != MAP_FAILED);
	open_queue(&g->q, 8);
	open_pipe(g->fd);
	MUST_EQ(add_pipe(g->q.fd, g->fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0),
		0);
	return g;
}

static void close_game(struct game *g)
{
	close(g->fd[0]);
	close(g->fd[1]);
	close_queue(&g->q);
	munmap(g, sizeof(*g));
}

static long long spun(struct game *g)
{
	return fdinfo(g->q.fd, "kevent-spun");
}

static long long spun_vainly(struct game *g)
{
	return fdinfo(g->q.fd, "kevent-spun-vain");
}

/* Each byte is an event of its own. */
static void play(struct game *g, int (*child)(void *), int laps)
{
	struct ukevent ev;
	pid_t pid;

	g->laps = laps;
	g->taken = 0;
	g->stop = false;
	pid = start_child(child, g);
	while (g->taken < laps && next_event(&g->q, &ev, PATIENCE_MS) == 1)
		g->taken += take_bytes(g->fd[0]);
	g->stop = true;
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_EQ(g->taken, laps);
}

/* On a host that is busy a CPU may stand still for a whole game. */
static bool play_until_spun(struct game *g)
{
	long long before = spun(g);
	int i;

	for (i = 0; i < GAMES && spun(g) == before; i++)
		play(g, write_soon, LAPS);
	note("%lld events were found in game %d of %d laps", spun(g) - before,
	     i, LAPS);
	return spun(g) > before;
}

static void short_sleeps_are_spun(void)
{
	struct game *g;

	if (!two_cpus())
		return;
	g = open_game();
	CHECK(play_until_spun(g));
	close_game(g);
}

/* What the account has after short sleeps is gone with the first long one. */
static void pauses_are_slept(void)
{
	long long vain;
	struct game *g;
	int i;

	g = open_game();
	/* The account is full after some of these. */
	for (i = 0; i < GAMES; i++) {
		play(g, write_soon, GAME_LAPS);
		vain = spun_vainly(g);
		play(g, write_late, PAUSES);
		CHECK(spun_vainly(g) - vain <= 1);
	}
	close_game(g);
}

/* Though the account is full */
static void plays_without_spinning(struct game *g, int laps)
{
	long long before = spun(g) + spun_vainly(g);

	play(g, write_soon, laps);
	CHECK_EQ(spun(g) + spun_vainly(g), before);
}

static void consumer_of_real_time_does_not_spin(void)
{
	struct sched_param param = { .sched_priority = 1 };
	const struct sched_param usual = {};
	struct game *g;
	int i;

	if (!two_cpus())
		return;
	g = open_game();
	for (i = 0; i < 3; i++) {
		MUST(play_until_spun(g));
		MUST_EQ(sched_setscheduler(0, SCHED_FIFO |
					   SCHED_RESET_ON_FORK, &param), 0);
		plays_without_spinning(g, LAPS);
		MUST_EQ(sched_setscheduler(0, SCHED_OTHER, &usual), 0);
	}
	close_game(g);
}

/* The child that is to write is on the same CPU, and is busy there. */
static void nobody_spins_where_others_want_the_cpu(void)
{
	struct game *g;
	cpu_set_t one;

	if (!two_cpus())
		return;
	g = open_game();
	MUST(play_until_spun(g));
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	plays_without_spinning(g, CROWDED_LAPS);
	close_game(g);
}

static int play_without_spinning(void *arg)
{
	struct game *g;

	(void)arg;
	g = open_game();
	play(g, write_soon, LAPS);
	CHILD_MUST(spun(g) + spun_vainly(g) == 0);
	close_game(g);
	return 0;
}

static void nobody_spins_if_the_administrator_says_so(void)
{
	with_setting(SETTING, "0", play_without_spinning, NULL);
}

static const struct test_case cases[] = {
	TEST(short_sleeps_are_spun),
	TEST_LIMIT(pauses_are_slept, 30),
	TEST(consumer_of_real_time_does_not_spin),
	TEST(nobody_spins_where_others_want_the_cpu),
	TEST(nobody_spins_if_the_administrator_says_so),
	{}
};

const struct test_suite spin_suite = {
	.name = "spin",
	.cases = cases,
};
