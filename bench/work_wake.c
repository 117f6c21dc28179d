// SPDX-License-Identifier: GPL-2.0
/*
 * wake: from a write in one thread to the event in another, which sleeps
 *
 * The writer takes the time before the write, and the waiter when its wait has
 * returned. Before the next message the writer waits until the waiter has read
 * this one and sleeps again. On one CPU the waiter runs before the writer; with
 * more CPUs the writer reads the state of the waiter in /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define WARM_UP		16
#define WATCHES		1
#define SHIFT_EACH	8		/* messages per shift of the stock */

enum { WRITER = 1, WAITER };		/* priorities on one CPU */
enum { WRITER_CPU, WAITER_CPU };

static struct bench_pair pair;

/**
 * struct run - one run of a contestant
 * @p: the point
 * @c: the contestant
 * @ready: the waiter is about to wait
 * @stat: of the waiter, in /proc
 * @seen: messages the waiter has read
 * @when: the time the last one was seen
 * @latency: of each message
 */
struct run {
	const struct bench_point	*p;
	const struct bench_contestant	*c;
	pthread_barrier_t		ready;
	int				stat;
	unsigned int			seen;
	uint64_t			when;
	double				*latency;
};

static void wake_setup(const struct bench_point *p)
{
	struct bench_pair *made;

	if (strcmp(p->source, "eventfd")) {
		made = bench_pairs_open(p->source, 1);
		pair = *made;
		free(made);
		return;
	}
	pair.rd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pair.wr = fcntl(pair.rd, F_DUPFD_CLOEXEC, 0);
	if (pair.rd < 0 || pair.wr < 0)
		bench_die("eventfd: %s", strerror(errno));
}

static void wake_teardown(const struct bench_point *p)
{
	(void)p;
	close(pair.rd);
	close(pair.wr);
}

/* --- the waiter --------------------------------------------------------- */

static struct bench_queue *open_queue(const struct run *run)
{
	const char *source = run->p->source;
	struct bench_watch w = { .fd = pair.rd, .events = POLLIN };
	struct bench_queue *q;

	if (run->c->backend->blind)
		return NULL;
	w.kind = strcmp(source, "eventfd") ? bench_kind_of(source) : BENCH_FILE;
	q = run->c->backend->open(run->c->mode, WATCHES, WATCHES);
	run->c->backend->add(q, &w, WATCHES);
	return q;
}

static void open_stat(struct run *run)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", gettid());
	run->stat = open(name, O_RDONLY | O_CLOEXEC);
	if (run->stat < 0)
		bench_die("%s: %s", name, strerror(errno));
}

/* An eventfd reads and writes 8 bytes, so all messages have 8 */
static void receive(struct run *run, struct bench_queue *q)
{
	uint64_t cookie = 0, message, now;

	if (q && (run->c->backend->wait(q, &cookie, 1, -1) != 1 || cookie))
		bench_die("a wait without a limit returned something else");
	now = bench_now();
	if (read(pair.rd, &message, 8) != 8 || message != 1)
		bench_die("an event, but nothing to read: %s", strerror(errno));
	if (!q)
		now = bench_now();
	run->when = now;
	__atomic_fetch_add(&run->seen, 1, __ATOMIC_RELEASE);
}

static void *waiter(void *arg)
{
	struct run *run = arg;
	struct bench_queue *q;
	unsigned int i;

	bench_pin(WAITER_CPU);
	if (bench_one_cpu())
		bench_realtime(WAITER);
	open_stat(run);
	q = open_queue(run);
	pthread_barrier_wait(&run->ready);
	for (i = 0; i < run->p->events + WARM_UP; i++)
		receive(run, q);
	if (q) {
		bench_expect_nothing(run->c, q);
		run->c->backend->close(q);
	}
	return NULL;
}

/* --- the writer --------------------------------------------------------- */

static bool sleeps(const struct run *run)
{
	char text[256], *state;
	ssize_t len = pread(run->stat, text, sizeof(text) - 1, 0);

	if (len <= 0)
		bench_die("cannot read the state of a thread");
	text[len] = 0;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

static void await_sleep(const struct run *run)
{
	uint64_t start = bench_now();

	while (!bench_one_cpu() && !sleeps(run))
		if (bench_now() - start > bench_patience())
			bench_die("the waiter does not sleep");
}

static uint64_t send_one(struct run *run, unsigned int nr)
{
	uint64_t message = 1, start;

	if (!(nr % SHIFT_EACH))
		bench_shift_stock();
	await_sleep(run);
	start = bench_now();
	if (write(pair.wr, &message, 8) != 8)
		bench_die("write: %s", strerror(errno));
	bench_await_seen(&run->seen, nr + 1);
	return run->when - start;
}

static void go(struct run *run)
{
	pthread_t thread = bench_thread(waiter, run);
	unsigned int i;
	uint64_t ns;

	pthread_barrier_wait(&run->ready);
	for (i = 0; i < run->p->events + WARM_UP; i++) {
		ns = send_one(run, i);
		if (i >= WARM_UP)
			run->latency[i - WARM_UP] = (double)ns;
	}
	bench_join(thread);
	close(run->stat);
	bench_sort(run->latency, run->p->events);
}

static void wake_measure(const struct bench_point *p,
			 const struct bench_contestant *c, double *value)
{
	struct run run = { .p = p, .c = c };

	run.latency = bench_alloc(p->events, sizeof(*run.latency));
	bench_blocking(pair.rd, c->backend->blind);
	pthread_barrier_init(&run.ready, NULL, 2);
	bench_pin(WRITER_CPU);
	if (bench_one_cpu())
		bench_realtime(WRITER);
	go(&run);
	if (bench_one_cpu())
		bench_realtime(0);
	pthread_barrier_destroy(&run.ready);
	value[0] = run.latency[p->events / 2];
	value[1] = run.latency[(uint64_t)p->events * 99 / 100];
	free(run.latency);
}

static const struct bench_metric metrics[] = {
	{ .name = "median latency", .unit = "ns", .pairs = true },
	{ .name = "99th percentile", .unit = "ns" },
};

const struct bench_workload work_wake = {
	.name		= "wake",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe", "unix", "eventfd"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1),
	.threads	= BENCH_NUMBERS(2),
	.events		= 500,
	.runs		= 7,
	.setup		= wake_setup,
	.measure	= wake_measure,
	.teardown	= wake_teardown,
};
