// SPDX-License-Identifier: GPL-2.0
/*
 * ctl: what it costs to add, modify and remove watches, and to close files that
 * have one. No event happens on the files in that time.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

enum { ADD, MODIFY, REMOVE, CLOSE };

typedef void (*ctl_fn)(struct bench_queue *q, const struct bench_watch *w,
		       unsigned int nr);

/* Nanoseconds per watch of a change to all of them, in batches */
static double timed(const struct bench_point *p, ctl_fn change,
		    struct bench_queue *q, const struct bench_watch *w)
{
	unsigned int i, now;
	uint64_t start;

	bench_rest();
	start = bench_now();
	for (i = 0; i < p->watches; i += now) {
		now = p->watches - i < p->batch ? p->watches - i : p->batch;
		change(q, &w[i], now);
	}
	return (double)(bench_now() - start) / p->watches;
}

/* An event on one of the watches shows whether they are there */
static void expect(const struct bench_contestant *c, struct bench_queue *q,
		   const struct bench_pair *pairs, unsigned int watch,
		   bool expected)
{
	uint64_t cookie = watch;
	unsigned int nr;

	bench_put(pairs[watch].wr);
	nr = c->backend->wait(q, &cookie, 1, 0);
	if (nr != expected || cookie != watch)
		bench_die("%s %s: %u events, expected %d", c->backend->name,
			  c->mode, nr, expected);
	bench_get(pairs[watch].rd);
	bench_expect_nothing(c, q);
}

static void changes(const struct bench_point *p,
		    const struct bench_contestant *c, struct bench_queue *q,
		    const struct bench_pair *pairs,
		    const struct bench_watch *w, double *value)
{
	const struct bench_backend *b = c->backend;

	value[ADD] = timed(p, b->add, q, w);
	expect(c, q, pairs, 0, true);
	expect(c, q, pairs, p->watches - 1, true);
	value[MODIFY] = timed(p, b->modify, q, w);
	expect(c, q, pairs, 0, true);
	expect(c, q, pairs, p->watches - 1, true);
	value[REMOVE] = timed(p, b->remove, q, w);
	expect(c, q, pairs, 0, false);
	expect(c, q, pairs, p->watches - 1, false);
}

static double closing(const struct bench_point *p,
		      const struct bench_pair *pairs)
{
	uint64_t start;
	unsigned int i;

	bench_rest();
	start = bench_now();
	for (i = 0; i < p->watches; i++)
		if (close(pairs[i].rd))
			bench_die("cannot close a source");
	return (double)(bench_now() - start) / p->watches;
}

static void close_writers(const struct bench_point *p, struct bench_pair *pairs)
{
	unsigned int i;

	for (i = 0; i < p->watches; i++)
		close(pairs[i].wr);
	free(pairs);
}

/* io_uring keeps a polled file open, so a close does not end its poll */
static bool ends_at_close(const struct bench_backend *b)
{
	return b->blind || b->closes;
}

static void ctl_measure(const struct bench_point *p,
			const struct bench_contestant *c, double *value)
{
	struct bench_pair *pairs = bench_pairs_open(p->source, p->watches);
	struct bench_watch *w = bench_watches(p->source, pairs, p->watches);
	const struct bench_backend *b = c->backend;
	struct bench_queue *q = NULL;

	if (!b->blind) {
		q = b->open(c->mode, p->watches, p->watches);
		b->add(q, w, p->watches);
		b->remove(q, w, p->watches);
		changes(p, c, q, pairs, w, value);
		b->add(q, w, p->watches);
	}
	if (ends_at_close(b) && p->batch == 1)
		value[CLOSE] = closing(p, pairs);
	if (q)
		b->close(q);
	if (isnan(value[CLOSE]))
		closing(p, pairs);
	close_writers(p, pairs);
	free(w);
}

static bool ctl_accepts(const struct bench_contestant *c,
			const struct bench_point *p)
{
	(void)p;
	return !c->backend->linear;
}

static const struct bench_metric metrics[] = {
	[ADD]		= { .name = "add", .unit = "ns/watch" },
	[MODIFY]	= { .name = "modify", .unit = "ns/watch" },
	[REMOVE]	= { .name = "remove", .unit = "ns/watch" },
	[CLOSE]		= { .name = "close", .unit = "ns/watch", .above = true },
};


const struct bench_workload work_ctl = {
	.name		= "ctl",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe", "unix"),
	.batches	= BENCH_NUMBERS(1, 64),
	/* RCU frees memory late, but still within the time measured */
	.watches	= BENCH_NUMBERS(8000),
	.threads	= BENCH_NUMBERS(1),
	.runs		= 3,
	.accepts	= ctl_accepts,
	.measure	= ctl_measure,
};
