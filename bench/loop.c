// SPDX-License-Identifier: GPL-2.0
/* One thread writes to some sources, waits for their events, and reads */
#include <stdlib.h>

#include "loop.h"

#define LINEAR_SHARE	64	/* of the events, for linear backends */

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

void bench_loop_open(struct bench_loop *loop, const char *source,
		     unsigned int nr, unsigned int batch)
{
	if (batch > nr)
		bench_die("a batch of %u needs as many sources", batch);
	loop->pairs = bench_pairs_open(source, nr);
	loop->watches = bench_watches(source, loop->pairs, nr);
	loop->nr = nr;
	loop->order = shuffled(nr);
	loop->next = 0;
	loop->batch = batch;
	loop->cookies = bench_alloc(batch, sizeof(*loop->cookies));
}

void bench_loop_close(struct bench_loop *loop)
{
	bench_pairs_close(loop->pairs, loop->nr);
	free(loop->watches);
	free(loop->order);
	free(loop->cookies);
}

/* Writes to no source twice, since a batch is no longer than the order */
static void write_batch(struct bench_loop *loop)
{
	unsigned int i, pick;

	for (i = 0; i < loop->batch; i++) {
		pick = loop->order[loop->next];
		if (++loop->next == loop->nr)
			loop->next = 0;
		bench_put(loop->pairs[pick].wr);
		loop->cookies[i] = pick;
	}
}

static void read_batch(struct bench_loop *loop)
{
	uint64_t cookie;
	unsigned int i;

	for (i = 0; i < loop->batch; i++) {
		cookie = loop->cookies[i];
		if (cookie >= loop->nr)
			bench_die("an event of an idle watch");
		bench_get(loop->pairs[cookie].rd);
	}
}

static void one_batch(struct bench_loop *loop, const struct bench_backend *b,
		      struct bench_queue *q)
{
	unsigned int got = 0;

	write_batch(loop);
	while (q && got < loop->batch)
		got += b->wait(q, &loop->cookies[got], loop->batch - got, -1);
	read_batch(loop);
}

static uint64_t timed(struct bench_loop *loop, const struct bench_backend *b,
		      struct bench_queue *q, unsigned int rounds)
{
	uint64_t start = bench_now();

	while (rounds--)
		one_batch(loop, b, q);
	return bench_now() - start;
}

double bench_loop_run(struct bench_loop *loop, const struct bench_backend *b,
		      struct bench_queue *q, unsigned int events)
{
	unsigned int i, end, done = 0;
	unsigned int rounds = (events + loop->batch - 1) / loop->batch;
	uint64_t ns = 0;

	for (i = 1; i <= BENCH_SHIFTS; i++) {
		bench_shift_stock();
		end = (unsigned int)((uint64_t)rounds * i / BENCH_SHIFTS);
		ns += timed(loop, b, q, end - done);
		done = end;
	}
	return (double)ns / rounds / loop->batch;
}

double bench_loop_measure(struct bench_loop *loop,
			  const struct bench_contestant *c,
			  struct bench_queue *q, unsigned int events)
{
	const struct bench_backend *b = c->backend;
	unsigned int share = b->linear ? LINEAR_SHARE : 1;
	double cost;

	loop->next = 0;
	bench_loop_run(loop, b, q, loop->nr / share);
	cost = bench_loop_run(loop, b, q, events / share);
	if (q)
		bench_expect_nothing(c, q);
	return cost;
}
