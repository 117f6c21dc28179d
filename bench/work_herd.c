// SPDX-License-Identifier: GPL-2.0
/*
 * herd: many threads wait on one queue, and one makes events
 *
 * While all threads sleep, the writer writes one byte to each source of a batch.
 * Then it waits until all events have arrived and all threads sleep again. A thread
 * that gets the event of a source must find the byte there.
 */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define WARM_UP		16	/* batches */
#define WRITER_CPU	0

/*
 * On one CPU: waiters run before the writer, but not in the middle of a batch
 */
enum { AFTER_WAITERS = 1, WAITERS, BEFORE_WAITERS };

/**
 * struct herd - a point in progress
 * @pairs: the sources
 * @watches: of the sources
 * @bare: what all threads read from without a queue; never polled, which a pipe
 *	would remember
 * @next: source that is written to next
 */
static struct herd {
	struct bench_pair	*pairs;
	struct bench_watch	*watches;
	struct bench_pair	*bare;
	unsigned int		next;
} herd;

/**
 * struct run - one run of a contestant
 * @p: the point
 * @c: the contestant
 * @q: its queue, opened by the first waiter
 * @ready: for all waiters and the writer; there is a queue
 * @ended: for all waiters; no thread waits any more
 * @first: a waiter has come
 * @sent: events made
 * @handled: events that found their byte
 * @idle: waiters that sleep, or are about to
 * @sleeps: voluntary context switches of waiters that have ended
 * @stop: a waiter that gets an event ends
 */
struct run {
	const struct bench_point	*p;
	const struct bench_contestant	*c;
	struct bench_queue		*q;
	pthread_barrier_t		ready;
	pthread_barrier_t		ended;
	bool				first;
	uint64_t			sent;
	uint64_t			handled;
	unsigned int			idle;
	uint64_t			sleeps;
	bool				stop;
};

/* A queue of io_uring belongs to one thread; poll() has no queue to share */
static bool herd_accepts(const struct bench_contestant *c,
			 const struct bench_point *p)
{
	const char *name = c->backend->name;

	if (c->backend->blind)
		return true;
	if (!strcmp(name, "uring"))
		return p->threads == 1;
	return !strcmp(c->mode, "et");
}

static void herd_setup(const struct bench_point *p)
{
	if (p->batch > p->watches)
		bench_die("a batch of %u needs as many watches", p->batch);
	herd.pairs = bench_pairs_open(p->source, p->watches);
	herd.watches = bench_watches(p->source, herd.pairs, p->watches);
	herd.bare = bench_pairs_open(p->source, 1);
	bench_blocking(herd.bare->rd, true);
}

static void herd_teardown(const struct bench_point *p)
{
	bench_pairs_close(herd.pairs, p->watches);
	bench_pairs_close(herd.bare, 1);
	free(herd.watches);
}

/* --- waiters ------------------------------------------------------------ */

/* Returns true in the thread that has to close it */
static bool open_queue(struct run *run)
{
	const struct bench_backend *b = run->c->backend;

	if (b->blind || __atomic_exchange_n(&run->first, true, __ATOMIC_RELAXED))
		return false;
	run->q = b->open(run->c->mode, run->p->watches, run->p->watches);
	b->add(run->q, herd.watches, run->p->watches);
	return true;
}

/* Returns the descriptor that has a byte */
static int wait_one(const struct run *run)
{
	uint64_t cookie;

	if (!run->q)
		return herd.bare->rd;
	if (run->c->backend->wait(run->q, &cookie, 1, -1) != 1)
		bench_die("a wait without a limit returned nothing");
	return herd.pairs[cookie].rd;
}

/* Returns false after the last event */
static bool handle_one(struct run *run)
{
	bool stop;

	__atomic_fetch_add(&run->idle, 1, __ATOMIC_ACQ_REL);
	bench_get(wait_one(run));
	stop = __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&run->idle, 1, __ATOMIC_ACQ_REL);
	__atomic_fetch_add(&run->handled, 1, __ATOMIC_ACQ_REL);
	return !stop;
}

static uint64_t sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

static void *waiter(void *arg)
{
	struct run *run = arg;
	uint64_t before;
	bool mine;

	bench_pin(BENCH_ANY_CPU);
	if (bench_one_cpu())
		bench_realtime(WAITERS);
	mine = open_queue(run);
	pthread_barrier_wait(&run->ready);
	before = sleeps();
	while (handle_one(run))
		;
	__atomic_fetch_add(&run->sleeps, sleeps() - before, __ATOMIC_RELAXED);
	pthread_barrier_wait(&run->ended);
	if (mine)
		run->c->backend->close(run->q);
	return NULL;
}

/* --- the writer --------------------------------------------------------- */

static void write_batch(struct run *run, unsigned int nr)
{
	unsigned int i;

	if (bench_one_cpu())
		bench_realtime(BEFORE_WAITERS);
	for (i = 0; i < nr; i++) {
		bench_put(run->q ? herd.pairs[herd.next].wr : herd.bare->wr);
		if (++herd.next == run->p->watches)
			herd.next = 0;
	}
	run->sent += nr;
	if (bench_one_cpu())
		bench_realtime(AFTER_WAITERS);
}

static void await(const struct run *run, unsigned int idle)
{
	uint64_t start = bench_now();

	while (__atomic_load_n(&run->handled, __ATOMIC_ACQUIRE) != run->sent ||
	       __atomic_load_n(&run->idle, __ATOMIC_ACQUIRE) != idle) {
		if (bench_now() - start > bench_patience())
			bench_die("an event was lost: %llu of %llu",
				  (unsigned long long)run->handled,
				  (unsigned long long)run->sent);
		sched_yield();
	}
}

static void batches(struct run *run, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		write_batch(run, run->p->batch);
		await(run, run->p->threads);
	}
}

/* Each waiter takes one more event and ends */
static void stop_waiters(struct run *run, const pthread_t *threads)
{
	unsigned int left;

	__atomic_store_n(&run->stop, true, __ATOMIC_RELAXED);
	for (left = run->p->threads; left; left--) {
		write_batch(run, 1);
		await(run, left - 1);
	}
	for (; left < run->p->threads; left++)
		bench_join(threads[left]);
}

static double go(struct run *run)
{
	unsigned int i, nr = run->p->events / run->p->batch;
	pthread_t *threads = bench_alloc(run->p->threads, sizeof(*threads));
	uint64_t start;
	double ns;

	for (i = 0; i < run->p->threads; i++)
		threads[i] = bench_thread(waiter, run);
	pthread_barrier_wait(&run->ready);
	await(run, run->p->threads);
	batches(run, WARM_UP);
	start = bench_now();
	batches(run, nr);
	ns = (double)(bench_now() - start) / nr / run->p->batch;
	stop_waiters(run, threads);
	free(threads);
	return ns;
}

enum { COST, TIME, WAKEUPS };

static void herd_measure(const struct bench_point *p,
			 const struct bench_contestant *c, double *value)
{
	struct run run = { .p = p, .c = c };
	double ns;

	if (p->events < p->batch)
		bench_die("--events: fewer than a batch");
	herd.next = 0;
	pthread_barrier_init(&run.ready, NULL, p->threads + 1);
	pthread_barrier_init(&run.ended, NULL, p->threads);
	bench_pin(WRITER_CPU);
	if (bench_one_cpu())
		bench_realtime(AFTER_WAITERS);
	ns = go(&run);
	bench_realtime(0);
	value[COST] = bench_one_cpu() ? ns : NAN;
	value[TIME] = bench_one_cpu() ? NAN : ns;
	value[WAKEUPS] = (double)run.sleeps / (double)run.sent;
	pthread_barrier_destroy(&run.ready);
	pthread_barrier_destroy(&run.ended);
}

static const struct bench_metric metrics[] = {
	[COST]		= { .name = "cost", .unit = "ns/event", .above = true },
	[TIME]		= { .name = "time", .unit = "ns/event", .pairs = true },
	[WAKEUPS]	= { .name = "wake-ups", .unit = "wake-ups/event" },
};

const struct bench_workload work_herd = {
	.name		= "herd",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe"),
	.batches	= BENCH_NUMBERS(1, 16),
	.watches	= BENCH_NUMBERS(64),
	.threads	= BENCH_NUMBERS(1, 4, 16, 64),
	.events		= 1024,
	.runs		= 7,
	.accepts	= herd_accepts,
	.setup		= herd_setup,
	.measure	= herd_measure,
	.teardown	= herd_teardown,
};
