// SPDX-License-Identifier: GPL-2.0
/*
 * dumazet: one thread writes to random ones of many streams, another one waits for
 * events and reads
 *
 * Each read that returns data counts as an event, with any number of bytes. At
 * the end every byte written has been read. On one CPU the threads take turns:
 * one writes a batch, the other reads it, and a read that returns nothing is an
 * error. With more CPUs they run at once for a time, and the reader counts such
 * reads.
 *
 * With "+churn" after a source, the reader replaces 1 % of the streams each second:
 * it adds a watch of the new one, the writer closes its end of the old one, and the
 * event of that makes the reader close the other end.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define READ_BYTES	1024
#define SEED		1
#define TURNS_MAX	16		/* to find the first or the last byte */
#define WRITER_NICE	10
#define NSEC_PER_SEC	1000000000
#define PRIORITY	1		/* of both, on one CPU */
#define NOBODY		UINT32_MAX
#define ENDED		(UINT32_MAX - 1)

enum { READER_CPU, WRITER_CPU };

/**
 * struct dumazet - a point in progress
 * @pairs: the streams and as many to come, by cookie; -1: none
 * @cookie: of each stream
 * @spare: cookies without a stream, a circle; the oldest is at @first_spare
 * @first_spare: place in @spare
 * @old: streams, by cookie, of which the writer closes its end
 * @wr: end of each stream to write to; the writer's
 * @heir: stream that gets a new end to write to, or NOBODY; ENDED after the
 *	writer
 * @legacy: that end
 * @stop: the writer has to end
 * @done: the writer has ended except for one byte; @written is right
 * @written: bytes in all
 * @churn_due: streams that should have been replaced by now
 * @start: both threads have come so far
 */
static struct dumazet {
	struct bench_pair	*pairs;
	uint32_t		*cookie;
	uint32_t		*spare;
	unsigned int		first_spare;
	bool			*old;
	int			*wr;
	uint32_t		heir;
	int			legacy;
	bool			stop;
	bool			done;
	uint64_t		written;
	unsigned int		churn_due;
	pthread_barrier_t	start;
} d;

/**
 * struct run - one run of a contestant
 * @p: the point
 * @b: the backend
 * @q: its queue, NULL if it is blind
 * @kind: of the streams
 * @cookies: of the events of one wait
 * @calls: waits
 * @events: reads that returned data
 * @empty: reads that returned nothing
 * @bytes: that were read
 * @churned: streams replaced
 * @closing: streams whose end has not been seen yet
 */
struct run {
	const struct bench_point	*p;
	const struct bench_backend	*b;
	struct bench_queue		*q;
	enum bench_kind			kind;
	uint64_t			*cookies;
	uint64_t			calls;
	uint64_t			events;
	uint64_t			empty;
	uint64_t			bytes;
	unsigned int			churned;
	unsigned int			closing;
};

static bool churns(const struct bench_point *p)
{
	return strstr(p->source, "+churn");
}

/* The source without its suffix */
static const char *plain_source(const struct bench_point *p)
{
	static char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p->source, "+"),
		 p->source);
	return name;
}

static bool dumazet_accepts(const struct bench_contestant *c,
			    const struct bench_point *p)
{
	if (c->backend->linear)
		return false;
	return !churns(p) || (!c->backend->blind && !bench_one_cpu());
}

/* --- the writer --------------------------------------------------------- */

static void take_legacy(void)
{
	uint32_t heir = __atomic_load_n(&d.heir, __ATOMIC_ACQUIRE);

	if (heir == NOBODY)
		return;
	close(d.wr[heir]);
	d.wr[heir] = d.legacy;
	__atomic_store_n(&d.heir, NOBODY, __ATOMIC_RELEASE);
}

static void take_last_legacy(void)
{
	uint32_t nobody = NOBODY;

	while (!__atomic_compare_exchange_n(&d.heir, &nobody, ENDED, false,
					    __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED)) {
		take_legacy();
		nobody = NOBODY;
	}
}

static bool stopped(const struct bench_point *p, uint64_t written)
{
	if (bench_one_cpu())
		return written >= p->events;
	return __atomic_load_n(&d.stop, __ATOMIC_RELAXED);
}

/* In order if the reader gets no events and must know where the writer is */
static uint64_t write_until_stopped(const struct run *run)
{
	uint32_t watches = run->p->watches;
	uint64_t state = SEED, written = 0;

	while (!stopped(run->p, written)) {
		bench_put(d.wr[run->q || bench_one_cpu() ?
			 bench_random(&state) % watches : written % watches]);
		if (!(++written % run->p->batch))
			sched_yield();
		take_legacy();
	}
	take_last_legacy();
	return written;
}

/* The event of the last byte makes the reader look at @done */
static void *writer(void *arg)
{
	const struct run *run = arg;
	uint64_t written;

	bench_pin(WRITER_CPU);
	if (bench_one_cpu())
		bench_realtime(PRIORITY);
	else if (setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICE))
		bench_die("setpriority: %s", strerror(errno));
	pthread_barrier_wait(&d.start);
	written = write_until_stopped(run);
	d.written = written + 1;
	__atomic_store_n(&d.done, true, __ATOMIC_RELEASE);
	bench_put(d.wr[written % run->p->watches]);
	return NULL;
}

/* --- the clock ---------------------------------------------------------- */

static void *timekeeper(void *arg)
{
	const struct run *run = arg;
	uint64_t start = bench_now(), end, tick;
	struct timespec nap;

	bench_pin(WRITER_CPU);
	end = start + (uint64_t)(run->p->seconds * NSEC_PER_SEC);
	tick = churns(run->p) ? NSEC_PER_SEC * 100ull / run->p->watches :
	       end - start;
	nap.tv_sec = (time_t)(tick / NSEC_PER_SEC);
	nap.tv_nsec = (long)(tick % NSEC_PER_SEC);
	while (bench_now() < end) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		__atomic_fetch_add(&d.churn_due, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&d.stop, true, __ATOMIC_RELAXED);
	return NULL;
}

/* --- the reader --------------------------------------------------------- */

static bool finished(const struct run *run)
{
	if (!__atomic_load_n(&d.done, __ATOMIC_ACQUIRE))
		return false;
	if (run->bytes > d.written)
		bench_die("read %llu bytes of %llu",
			  (unsigned long long)run->bytes,
			  (unsigned long long)d.written);
	return run->bytes == d.written && !run->closing;
}

static struct bench_watch watch_of(const struct run *run, uint32_t cookie)
{
	struct bench_watch w = {
		.fd = d.pairs[cookie].rd, .events = POLLIN, .kind = run->kind,
		.cookie = cookie,
	};

	return w;
}

static void open_stream(const struct run *run, uint32_t cookie)
{
	struct bench_pair *pair = bench_pairs_open(plain_source(run->p), 1);
	struct bench_watch w;

	d.pairs[cookie] = *pair;
	free(pair);
	bench_blocking(d.pairs[cookie].wr, true);
	w = watch_of(run, cookie);
	run->b->add(run->q, &w, 1);
}

static void close_stream(const struct run *run, uint32_t cookie)
{
	struct bench_watch w = watch_of(run, cookie);

	run->b->remove(run->q, &w, 1);
	close(w.fd);
	d.pairs[cookie].rd = -1;
}

/* Gives the new end to the writer; returns false if that has ended */
static bool bequeath(uint32_t stream, int wr)
{
	uint32_t nobody = NOBODY;

	d.legacy = wr;
	return __atomic_compare_exchange_n(&d.heir, &nobody, stream, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Replaces the next stream in turn, once the writer has taken the last one */
static void churn(struct run *run)
{
	uint32_t watches = run->p->watches, stream = run->churned % watches;
	uint32_t cookie = d.spare[d.first_spare];

	if (run->churned >= __atomic_load_n(&d.churn_due, __ATOMIC_RELAXED) ||
	    run->closing == watches ||
	    __atomic_load_n(&d.heir, __ATOMIC_ACQUIRE) != NOBODY)
		return;
	open_stream(run, cookie);
	if (!bequeath(stream, d.pairs[cookie].wr)) {
		close(d.pairs[cookie].wr);
		close_stream(run, cookie);
		return;
	}
	d.spare[d.first_spare] = d.cookie[stream];
	d.first_spare = (d.first_spare + 1) % watches;
	d.old[d.cookie[stream]] = true;
	d.old[cookie] = false;
	d.cookie[stream] = cookie;
	run->churned++;
	run->closing++;
}

/* Returns whether there was data */
static bool read_once(struct run *run, uint32_t cookie)
{
	char buf[READ_BYTES];
	ssize_t len = read(d.pairs[cookie].rd, buf, sizeof(buf));

	if (len < 0 && errno != EAGAIN)
		bench_die("read: %s", strerror(errno));
	if (!len) {
		close_stream(run, cookie);
		run->closing--;
	}
	if (len <= 0)
		return false;
	run->events++;
	run->bytes += (uint64_t)len;
	return true;
}

/*
 * An event may still come after its stream was closed. One event may report
 * both a byte and the end.
 */
static void take(struct run *run, uint32_t cookie)
{
	unsigned int closing = run->closing;

	if (d.pairs[cookie].rd < 0) {
		run->empty++;
	} else if (!read_once(run, cookie)) {
		run->empty += run->closing == closing;
	} else if (d.old[cookie]) {
		while (read_once(run, cookie))
			;
	}
}

static void read_events(struct run *run)
{
	unsigned int i, nr;
	bool done;

	while (!finished(run)) {
		done = __atomic_load_n(&d.done, __ATOMIC_ACQUIRE);
		nr = run->b->wait(run->q, run->cookies, run->p->batch,
				  done ? BENCH_LOST_MS : -1);
		if (!nr && done)
			bench_die("an event was lost: %llu bytes of %llu, %u ends",
				  (unsigned long long)run->bytes,
				  (unsigned long long)d.written, run->closing);
		run->calls++;
		for (i = 0; i < nr; i++)
			take(run, (uint32_t)run->cookies[i]);
		if (churns(run->p))
			churn(run);
		if (nr < run->p->batch)
			sched_yield();
	}
}

/* With more CPUs: reads one byte each, in the order of the writes */
static void read_in_order(struct run *run)
{
	while (!finished(run)) {
		bench_get(d.pairs[d.cookie[run->bytes % run->p->watches]].rd);
		run->events++;
		if (!(++run->bytes % run->p->batch))
			sched_yield();
	}
}

static void read_written(struct run *run, uint32_t stream)
{
	unsigned int turns = 0;
	char buf[READ_BYTES];
	ssize_t len;

	while ((len = read(d.pairs[d.cookie[stream]].rd, buf, sizeof(buf))) < 0 &&
	       errno == EAGAIN && turns++ < TURNS_MAX)
		sched_yield();
	if (len <= 0)
		bench_die("read: %s", len ? strerror(errno) : "end of file");
	run->events++;
	run->bytes += (uint64_t)len;
}

/*
 * On one CPU: makes the same reads as a reader with events does, because the
 * order is known. A stream that was written twice in a batch is read once.
 */
static void replay(struct run *run)
{
	uint32_t *batch_of = bench_alloc(run->p->watches, sizeof(*batch_of));
	uint32_t stream, batch = 0, i;
	uint64_t state = SEED;

	for (i = 0; i < run->p->events; i++) {
		if (i % run->p->batch == 0 && batch++)
			sched_yield();
		stream = bench_random(&state) % run->p->watches;
		if (batch_of[stream] != batch)
			read_written(run, stream);
		batch_of[stream] = batch;
	}
	while (!finished(run))
		read_written(run, run->p->events % run->p->watches);
	free(batch_of);
}

/* --- runs --------------------------------------------------------------- */

/* A pipe keeps its first page, and remembers that it was polled */
static void warm_up(const struct bench_pair *pair)
{
	struct pollfd fd = { .fd = pair->rd, .events = POLLIN };

	bench_put(pair->wr);
	if (poll(&fd, 1, BENCH_LOST_MS) != 1)
		bench_die("poll: a byte does not arrive");
	bench_get(pair->rd);
}

static void dumazet_setup(const struct bench_point *p)
{
	struct bench_pair *pairs = bench_pairs_open(plain_source(p), p->watches);
	uint32_t i;

	d.pairs = bench_alloc(2 * (size_t)p->watches, sizeof(*d.pairs));
	d.cookie = bench_alloc(p->watches, sizeof(*d.cookie));
	d.spare = bench_alloc(p->watches, sizeof(*d.spare));
	d.old = bench_alloc(2 * (size_t)p->watches, sizeof(*d.old));
	d.wr = bench_alloc(p->watches, sizeof(*d.wr));
	for (i = 0; i < p->watches; i++) {
		d.pairs[i] = pairs[i];
		d.wr[i] = pairs[i].wr;
		bench_blocking(d.wr[i], true);
		warm_up(&pairs[i]);
		d.cookie[i] = i;
		d.spare[i] = p->watches + i;
	}
	free(pairs);
	d.first_spare = 0;
}

static void dumazet_teardown(const struct bench_point *p)
{
	uint32_t i;

	for (i = 0; i < p->watches; i++) {
		close(d.wr[i]);
		close(d.pairs[d.cookie[i]].rd);
	}
	free(d.pairs);
	free(d.cookie);
	free(d.spare);
	free(d.old);
	free(d.wr);
}

static void prepare(struct run *run, const char *mode)
{
	const struct bench_point *p = run->p;
	struct bench_watch *w;
	uint32_t i;

	d.stop = false;
	d.done = false;
	d.churn_due = 0;
	d.heir = NOBODY;
	for (i = 0; i < p->watches; i++)
		bench_blocking(d.pairs[d.cookie[i]].rd,
			       run->b->blind && !bench_one_cpu());
	run->cookies = bench_alloc(p->batch, sizeof(*run->cookies));
	if (run->b->blind)
		return;
	run->q = run->b->open(mode, 2 * p->watches, p->watches);
	w = bench_alloc(p->watches, sizeof(*w));
	for (i = 0; i < p->watches; i++)
		w[i] = watch_of(run, d.cookie[i]);
	run->b->add(run->q, w, p->watches);
	free(w);
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* Returns how long it took, in ns */
static double go(struct run *run)
{
	unsigned int nr = 0;
	pthread_t threads[2];
	uint64_t start;
	double ns;

	pthread_barrier_init(&d.start, NULL, 2);
	threads[nr++] = bench_thread(writer, run);
	pthread_barrier_wait(&d.start);
	if (!bench_one_cpu())
		threads[nr++] = bench_thread(timekeeper, run);
	start = bench_now();
	if (run->q)
		read_events(run);
	else if (bench_one_cpu())
		replay(run);
	else
		read_in_order(run);
	ns = (double)(bench_now() - start);
	while (nr)
		bench_join(threads[--nr]);
	pthread_barrier_destroy(&d.start);
	return ns;
}

enum {
	RATE, BYTES, COST, PER_EVENT, PER_WAIT, SWITCHES, EMPTY, REPLACED,
};

static void results(const struct run *run, double ns, uint64_t switched,
		    double *value)
{
	double events = (double)run->events, bytes = (double)run->bytes;
	double seconds = ns / NSEC_PER_SEC;
	bool one = bench_one_cpu();

	value[RATE] = one ? NAN : events / seconds;
	value[BYTES] = one ? NAN : bytes / seconds;
	value[COST] = one ? ns / events : NAN;
	value[PER_EVENT] = bytes / events;
	value[PER_WAIT] = run->q ? events / (double)run->calls : NAN;
	value[SWITCHES] = (double)switched / events;
	value[EMPTY] = run->q ? (double)run->empty / events : NAN;
	value[REPLACED] = churns(run->p) ? run->churned / seconds : NAN;
}

static void dumazet_measure(const struct bench_point *p,
			    const struct bench_contestant *c, double *value)
{
	struct run run = { .p = p, .b = c->backend,
			   .kind = bench_kind_of(plain_source(p)) };
	uint64_t switched;
	double ns;

	bench_pin(READER_CPU);
	prepare(&run, c->mode);
	if (bench_one_cpu())
		bench_realtime(PRIORITY);
	switched = switches();
	ns = go(&run);
	switched = switches() - switched;
	bench_realtime(0);
	if (bench_one_cpu() && run.empty)
		bench_die("%s %s: %llu events without data", c->backend->name,
			  c->mode, (unsigned long long)run.empty);
	results(&run, ns, switched, value);
	if (run.q)
		run.b->close(run.q);
	free(run.cookies);
}

static const struct bench_metric metrics[] = {
	[RATE]		= { .name = "rate", .unit = "events/s", .pairs = true },
	[BYTES]		= { .name = "bytes", .unit = "bytes/s" },
	[COST]		= { .name = "cost", .unit = "ns/event", .above = true },
	[PER_EVENT]	= { .name = "read", .unit = "bytes/event" },
	[PER_WAIT]	= { .name = "batch", .unit = "events/wait" },
	[SWITCHES]	= { .name = "switches", .unit = "switches/event" },
	[EMPTY]		= { .name = "empty", .unit = "reads/event" },
	[REPLACED]	= { .name = "replaced", .unit = "streams/s" },
};

const struct bench_workload work_dumazet = {
	.name		= "dumazet",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe", "unix", "inet", "pipe+churn"),
	.batches	= BENCH_NUMBERS(256),
	.watches	= BENCH_NUMBERS(2000),
	.threads	= BENCH_NUMBERS(2),
	.events		= 10240,
	.seconds	= 0.5,
	.runs		= 7,
	.accepts	= dumazet_accepts,
	.setup		= dumazet_setup,
	.measure	= dumazet_measure,
	.teardown	= dumazet_teardown,
};
