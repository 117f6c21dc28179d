// SPDX-License-Identifier: GPL-2.0
/*
 * notify: what it costs to be told which of many sources can be read
 */
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

static const char *const sources[] = { "pipe", "unix", "inet", NULL };
static const unsigned int batches[] = { 1, 16, 256, 0 };
/*
 * Enough that more than a tick passes until a source is used again: a write to
 * a pipe updates its time when the tick has, which else would depend on how
 * fast the contestants are.
 */
static const unsigned int watches[] = { 4000, 0 };
static const unsigned int threads[] = { 1, 0 };

const struct bench_workload work_notify = {
	.name		= "notify",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= sources,
	.batches	= batches,
	.watches	= watches,
	.threads	= threads,
	.events		= 4000,
	.runs		= 3,
	.setup		= notify_setup,
	.measure	= notify_measure,
	.teardown	= notify_teardown,
};
