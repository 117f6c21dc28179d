// SPDX-License-Identifier: GPL-2.0
/*
 * timers: many timers at once are armed, moved, cancelled, and fire
 *
 * Each timer has to fire once, and not before its time.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "timers.h"

#define NSEC_PER_SEC	1000000000ull
#define FAR_AWAY	(3600 * NSEC_PER_SEC)
#define SLACK		10000000
#define FIRE_STEP	50		/* ns from one timer to the next */
#define CALM_STEP	500000		/* enough to sleep between them */
#define CALM_TIMERS	1000
#define MANY_TIMERS	10000		/* most in random order */

/**
 * struct timers - a point in progress
 * @ids: numbers of the timers, in the order they are dealt with
 * @due: their times, by number
 * @armed: whether each one has yet to fire, by number
 * @late: how late those that fired one by one were, in ns
 */
static struct timers {
	uint32_t	*ids;
	uint64_t	*due;
	bool		*armed;
	double		*late;
} timers;

static const struct timer_peer *peer_of(const struct bench_contestant *c)
{
	const char *name = c->backend->name;

	if (c->backend->blind)
		return &timers_heap;
	if (!strcmp(name, "kevent") && !strcmp(c->mode, "et"))
		return &timers_kevent;
	if (!strcmp(name, "epoll") && !strcmp(c->mode, "et"))
		return &timers_epoll;
	if (!strcmp(name, "uring") && !strcmp(c->mode, "defer"))
		return &timers_uring;
	return NULL;
}

/* io_uring searches a list for a timeout; in order it is always the first */
static bool timers_accepts(const struct bench_contestant *c,
			   const struct bench_point *p)
{
	bool random = !strcmp(p->source, "random");

	return peer_of(c) && random == (p->watches <= MANY_TIMERS);
}

static void timers_setup(const struct bench_point *p)
{
	uint64_t state = 1;
	unsigned int i, j;

	if (p->watches <= CALM_TIMERS)
		bench_die("--watches: more than %d", CALM_TIMERS);
	timers.ids = bench_alloc(p->watches, sizeof(*timers.ids));
	timers.due = bench_alloc(p->watches, sizeof(*timers.due));
	timers.armed = bench_alloc(p->watches, sizeof(*timers.armed));
	timers.late = bench_alloc(CALM_TIMERS, sizeof(*timers.late));
	for (i = 0; i < p->watches; i++) {
		j = strcmp(p->source, "random") ? i :
		    bench_random(&state) % (i + 1);
		timers.ids[i] = timers.ids[j];
		timers.ids[j] = i;
	}
}

static void timers_teardown(const struct bench_point *p)
{
	(void)p;
	free(timers.ids);
	free(timers.due);
	free(timers.armed);
	free(timers.late);
}

static double since(uint64_t start, unsigned int nr)
{
	return (double)(bench_now() - start) / nr;
}

static void set_due(const struct bench_point *p, uint64_t first, uint64_t step)
{
	unsigned int i;

	for (i = 0; i < p->watches; i++) {
		timers.due[timers.ids[i]] = first + i * step;
		timers.armed[timers.ids[i]] = true;
	}
}

/* The lengths of the phases, per timer */
static void change_all(const struct bench_point *p,
		       const struct timer_peer *peer, double *value)
{
	uint64_t start;

	set_due(p, bench_now() + FAR_AWAY, NSEC_PER_SEC / 1000);
	start = bench_now();
	peer->arm(timers.ids, timers.due, p->watches);
	value[0] = since(start, p->watches);

	set_due(p, bench_now() + 2 * FAR_AWAY, NSEC_PER_SEC / 1000);
	start = bench_now();
	peer->rearm(timers.ids, timers.due, p->watches);
	value[1] = since(start, p->watches);

	start = bench_now();
	peer->cancel(timers.ids, p->watches);
	value[2] = since(start, p->watches);
}

static void fired(uint32_t id, uint64_t now)
{
	if (!timers.armed[id])
		bench_die("timer %u fired twice or was cancelled", id);
	if (now < timers.due[id])
		bench_die("timer %u fired %llu ns before its time", id,
			  (unsigned long long)(timers.due[id] - now));
	timers.armed[id] = false;
}

/*
 * A time by which all are armed again; @each is the cost of one before, in ns
 */
static uint64_t soon(const struct bench_point *p, double each)
{
	bench_rest();
	return bench_now() + 2 * SLACK + (uint64_t)(4 * each * p->watches);
}

/* Waits so that the program is awake when the first one expires */
static void await(uint64_t first)
{
	struct timespec ts = {
		.tv_sec = (time_t)((first - SLACK) / NSEC_PER_SEC),
		.tv_nsec = (long)((first - SLACK) % NSEC_PER_SEC),
	};

	if (bench_now() >= first - SLACK)
		bench_die("the first timer fires before all are armed");
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	while (bench_now() < first)
		;
}

static unsigned int collect(const struct timer_peer *peer, double *late)
{
	uint32_t ids[TIMERS_BATCH];
	unsigned int i, nr = peer->collect(ids, TIMERS_BATCH);
	uint64_t now = bench_now();

	for (i = 0; i < nr; i++) {
		fired(ids[i], now);
		if (late)
			late[i] = (double)(now - timers.due[ids[i]]);
	}
	return nr;
}

/*
 * All timers expire faster than the program handles them, so nothing is idle
 * and the time is that of the work.
 */
static double fire_all(const struct bench_point *p,
		       const struct timer_peer *peer, double each)
{
	uint64_t first, end;
	unsigned int got;

	set_due(p, bench_now() + FAR_AWAY, FIRE_STEP);
	peer->arm(timers.ids, timers.due, p->watches);
	first = soon(p, each);
	set_due(p, first, FIRE_STEP);
	peer->rearm(timers.ids, timers.due, p->watches);
	await(first);
	for (got = 0; got < p->watches;)
		got += collect(peer, NULL);
	end = bench_now();
	if (end - first < p->watches * FIRE_STEP * 5 / 4)
		bench_die("timers were awaited: a shorter step is needed");
	return (double)(end - first) / p->watches;
}

/* A few expire one by one while all the others are armed */
static void fire_some(const struct bench_point *p,
		      const struct timer_peer *peer, double *value)
{
	uint64_t first = soon(p, value[0]);
	unsigned int i, got;

	set_due(p, first + FAR_AWAY, FIRE_STEP);
	for (i = 0; i < CALM_TIMERS; i++)
		timers.due[timers.ids[i]] = first + i * CALM_STEP;
	peer->arm(timers.ids, timers.due, p->watches);
	await(first);
	for (got = 0; got < CALM_TIMERS;)
		got += collect(peer, &timers.late[got]);
	bench_sort(timers.late, CALM_TIMERS);
	value[4] = timers.late[CALM_TIMERS / 2];
	value[5] = timers.late[CALM_TIMERS - 1];
	peer->cancel(&timers.ids[CALM_TIMERS], p->watches - CALM_TIMERS);
}

static void timers_measure(const struct bench_point *p,
			   const struct bench_contestant *c, double *value)
{
	const struct timer_peer *peer = peer_of(c);

	peer->open(p->watches);
	change_all(p, peer, value);
	value[3] = fire_all(p, peer, value[0]);
	fire_some(p, peer, value);
	peer->close();
}

static const struct bench_metric metrics[] = {
	{ .name = "arm", .unit = "ns/timer" },
	{ .name = "rearm", .unit = "ns/timer" },
	{ .name = "cancel", .unit = "ns/timer" },
	{ .name = "fire", .unit = "ns/timer" },
	{ .name = "median lateness", .unit = "ns" },
	{ .name = "maximum lateness", .unit = "ns" },
};

const struct bench_workload work_timers = {
	.name		= "timers",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("ordered", "random"),
	.batches	= BENCH_NUMBERS(TIMERS_BATCH),
	.watches	= BENCH_NUMBERS(10000, 100000),
	.threads	= BENCH_NUMBERS(1),
	.runs		= 3,
	.accepts	= timers_accepts,
	.setup		= timers_setup,
	.measure	= timers_measure,
	.teardown	= timers_teardown,
};
