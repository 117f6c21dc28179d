/* SPDX-License-Identifier: GPL-2.0 */
/* One thread writes to some sources, waits for their events, and reads */
#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#include "bench.h"

/**
 * struct bench_loop - sources that are written to in turn
 * @pairs: the sources
 * @watches: one for each
 * @nr: how many
 * @order: their indices, shuffled
 * @next: place in @order of the source to write to next
 * @batch: events at once
 * @cookies: of the events of one batch
 */
struct bench_loop {
	struct bench_pair	*pairs;
	struct bench_watch	*watches;
	unsigned int		nr;
	unsigned int		*order;
	unsigned int		next;
	unsigned int		batch;
	uint64_t		*cookies;
};

/**
 * bench_loop_open() - make the sources
 * @loop: to be filled in
 * @source: pipe, unix or inet
 * @nr: how many
 * @batch: events at once, at most @nr
 */
void bench_loop_open(struct bench_loop *loop, const char *source,
		     unsigned int nr, unsigned int batch);

/**
 * bench_loop_close() - the reverse
 * @loop: as filled in by bench_loop_open()
 */
void bench_loop_close(struct bench_loop *loop);

/**
 * bench_loop_run() - cause events and take them
 * @loop: the sources
 * @b: a backend; a blind one gets no call
 * @q: its queue, to which the watches of @loop were added
 * @events: how many; rounded up to whole batches
 *
 * Each source that was written to holds one byte. A read that fails is a wrong
 * or a second event, so as many good reads as writes are exactly the right
 * events.
 *
 * Return: nanoseconds per event.
 */
double bench_loop_run(struct bench_loop *loop, const struct bench_backend *b,
		      struct bench_queue *q, unsigned int events);

/**
 * bench_loop_measure() - warm up, then bench_loop_run()
 * @loop: the sources
 * @c: the contestant
 * @q: its queue
 * @events: how many; a linear backend gets a share of that
 *
 * Afterwards nothing may be left to report.
 *
 * Return: nanoseconds per event.
 */
double bench_loop_measure(struct bench_loop *loop,
			  const struct bench_contestant *c,
			  struct bench_queue *q, unsigned int events);

#endif /* BENCH_LOOP_H */
