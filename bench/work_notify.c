// SPDX-License-Identifier: GPL-2.0
/*
 * notify: one thread writes to some sources, is told, and reads from them
 *
 * Each source that was written to holds one byte. A read that fails is a wrong
 * or a second event; so as many good reads as writes are exactly the right
 * events.
 */
#include <stdlib.h>

#include "bench.h"

#define LINEAR_SHARE	32	/* of the events, for linear backends */

/**
 * struct notify - a point in progress
 * @pairs: the sources
 * @watches: one for each
 * @order: their indices, shuffled; written to in that order, from @next on
 * @next: place in @order
 * @cookies: of the events of one batch
 */
static struct notify {
	struct bench_pair	*pairs;
	struct bench_watch	*watches;
	unsigned int		*order;
	unsigned int		next;
	uint64_t		*cookies;
} notify;

static unsigned int *shuffled(unsigned int nr)
{
	unsigned int *order = bench_alloc(nr, sizeof(*order));
	uint64_t state = 1;
	unsigned int i, j;

	for (i = 0; i < nr; i++) {
		j = bench_random(&state) % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static void notify_setup(const struct bench_point *p)
{
	if (p->batch > p->watches)
		bench_die("a batch of %u needs as many watches", p->batch);
	notify.pairs = bench_pairs_open(p->source, p->watches);
	notify.watches = bench_watches(p->source, notify.pairs, p->watches);
	notify.order = shuffled(p->watches);
	notify.cookies = bench_alloc(p->batch, sizeof(*notify.cookies));
}

static void notify_teardown(const struct bench_point *p)
{
	bench_pairs_close(notify.pairs, p->watches);
	free(notify.watches);
	free(notify.order);
	free(notify.cookies);
}

/* Different sources, since a batch is no longer than the order */
static void write_batch(const struct bench_point *p, uint64_t *told)
{
	unsigned int i, pick;

	for (i = 0; i < p->batch; i++) {
		pick = notify.order[notify.next];
		if (++notify.next == p->watches)
			notify.next = 0;
		bench_put(notify.pairs[pick].wr);
		told[i] = pick;
	}
}

static void one_batch(const struct bench_point *p,
		      const struct bench_backend *b, struct bench_queue *q)
{
	unsigned int i, got = 0;

	write_batch(p, notify.cookies);
	while (q && got < p->batch)
		got += b->wait(q, &notify.cookies[got], p->batch - got, -1);
	for (i = 0; i < p->batch; i++)
		bench_get(notify.pairs[notify.cookies[i]].rd);
}

static double batches(const struct bench_point *p,
		      const struct bench_backend *b, struct bench_queue *q,
		      unsigned int events)
{
	unsigned int i, rounds = (events + p->batch - 1) / p->batch;
	uint64_t start;

	start = bench_now();
	for (i = 0; i < rounds; i++)
		one_batch(p, b, q);
	return (double)(bench_now() - start) / rounds / p->batch;
}

static void notify_measure(const struct bench_point *p,
			   const struct bench_contestant *c, double *value)
{
	const struct bench_backend *b = c->backend;
	unsigned int share = b->linear ? LINEAR_SHARE : 1;
	struct bench_queue *q = NULL;

	notify.next = 0;
	if (!b->blind) {
		q = b->open(c->mode, p->watches, p->batch);
		b->add(q, notify.watches, p->watches);
	}
	batches(p, b, q, p->watches / share);
	value[0] = batches(p, b, q, p->events / share);
	if (q) {
		if (b->wait(q, notify.cookies, 1, 0))
			bench_die("%s %s: an event that nobody caused",
				  b->name, c->mode);
		b->close(q);
	}
}

static const struct bench_metric metrics[] = {
	{ "cost", "ns/event", true },
};

static const char *const sources[] = { "pipe", "unix", "inet", NULL };
static const unsigned int batch_sizes[] = { 1, 16, 256, 0 };
static const unsigned int watches[] = { 2000, 0 };
static const unsigned int threads[] = { 1, 0 };

const struct bench_workload work_notify = {
	.name		= "notify",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= sources,
	.batches	= batch_sizes,
	.watches	= watches,
	.threads	= threads,
	.events		= 8192,
	.runs		= 3,
	.setup		= notify_setup,
	.measure	= notify_measure,
	.teardown	= notify_teardown,
};
