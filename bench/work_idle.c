// SPDX-License-Identifier: GPL-2.0
/*
 * idle: what watches without events cost: memory, and time for the events of a
 * hundred other watches in the same queue
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"
#include "loop.h"
#include "slab.h"

#define ACTIVE		100
/*
 * Free objects in a CPU's cache count as used; fewer watches may get only those
 */
#define MEMORY_WATCHES	100000
#define LINEAR_WATCHES	10000	/* most for linear backends */

enum { COST, ADD, MEMORY };

static struct bench_loop loop;
static struct bench_watch *idle;

static int new_eventfd(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		bench_die("eventfd: %s", strerror(errno));
	return fd;
}

/* Each is a file of its own. Their cookies follow those of the loop */
static void idle_setup(const struct bench_point *p)
{
	unsigned int i;

	bench_loop_open(&loop, p->source, ACTIVE, p->batch);
	idle = bench_alloc(p->watches, sizeof(*idle));
	for (i = 0; i < p->watches; i++) {
		idle[i].fd = new_eventfd();
		idle[i].events = POLLIN;
		idle[i].kind = BENCH_FILE;
		idle[i].cookie = ACTIVE + i;
	}
}

static void idle_teardown(const struct bench_point *p)
{
	unsigned int i;

	for (i = 0; i < p->watches; i++)
		close(idle[i].fd);
	free(idle);
	bench_loop_close(&loop);
}

/* poll keeps nothing in the kernel, so it has no such figures */
static void add_idle(const struct bench_point *p,
		     const struct bench_contestant *c, struct bench_queue *q,
		     double *value)
{
	struct slabs *before = slabs_settled();
	uint64_t start = bench_now();
	double grown;

	c->backend->add(q, idle, p->watches);
	if (c->backend->linear)
		return;
	value[ADD] = (double)(bench_now() - start) / p->watches;
	grown = slabs_grown(before, p->watches, c);
	if (p->watches >= MEMORY_WATCHES)
		value[MEMORY] = grown;
}

static void idle_measure(const struct bench_point *p,
			 const struct bench_contestant *c, double *value)
{
	const struct bench_backend *b = c->backend;
	struct bench_queue *q = NULL;

	if (!b->blind) {
		q = b->open(c->mode, ACTIVE + p->watches, p->batch);
		b->add(q, loop.watches, ACTIVE);
		add_idle(p, c, q, value);
	}
	value[COST] = bench_loop_measure(&loop, c, q, p->events);
	if (q)
		b->close(q);
}

/* A wait of poll takes time for every watch */
static bool idle_accepts(const struct bench_contestant *c,
			 const struct bench_point *p)
{
	return !c->backend->linear || p->watches <= LINEAR_WATCHES;
}

static const struct bench_metric metrics[] = {
	[COST]		= { .name = "cost", .unit = "ns/event", .above = true },
	[ADD]		= { .name = "add", .unit = "ns/watch" },
	[MEMORY]	= { .name = "memory", .unit = "bytes/watch" },
};

const struct bench_workload work_idle = {
	.name		= "idle",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe"),
	.batches	= BENCH_NUMBERS(16),
	.watches	= BENCH_NUMBERS(1000, 10000, 100000, 1000000),
	.threads	= BENCH_NUMBERS(1),
	.events		= 8192,
	.runs		= 3,
	.accepts	= idle_accepts,
	.setup		= idle_setup,
	.measure	= idle_measure,
	.teardown	= idle_teardown,
};
