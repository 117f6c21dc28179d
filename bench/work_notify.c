// SPDX-License-Identifier: GPL-2.0
/* notify: what it costs to find out which of many sources are readable */
#include "bench.h"
#include "loop.h"

static struct bench_loop loop;

static void notify_setup(const struct bench_point *p)
{
	bench_loop_open(&loop, p->source, p->watches, p->batch);
}

static void notify_teardown(const struct bench_point *p)
{
	(void)p;
	bench_loop_close(&loop);
}

static void notify_measure(const struct bench_point *p,
			   const struct bench_contestant *c, double *value)
{
	const struct bench_backend *b = c->backend;
	struct bench_queue *q = NULL;

	if (!b->blind) {
		q = b->open(c->mode, p->watches, p->batch);
		b->add(q, loop.watches, p->watches);
	}
	value[0] = bench_loop_measure(&loop, c, q, p->events);
	if (q)
		b->close(q);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns/event", .above = true },
};

const struct bench_workload work_notify = {
	.name		= "notify",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe", "unix", "inet"),
	.batches	= BENCH_NUMBERS(1, 16, 256),
	/*
	 * A write to a pipe updates its time once per tick. With so many
	 * sources more than a tick passes until a source is used again, so
	 * the cost of that does not depend on the speed of a contestant.
	 */
	.watches	= BENCH_NUMBERS(4000),
	.threads	= BENCH_NUMBERS(1),
	.events		= 4000,
	.runs		= 3,
	.setup		= notify_setup,
	.measure	= notify_measure,
	.teardown	= notify_teardown,
};
