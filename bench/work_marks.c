// SPDX-License-Identifier: GPL-2.0
/*
 * marks: a program makes events for its own queue
 *
 * kevent marks watches of its own (KEVENT_USER), in calls of a batch, and takes their
 * events. The others write to eventfds, wait, and read them; with bare they do not wait.
 */
#include <errno.h>
#include <libkevent.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"

#define BATCH_MAX	64
#define WARM_UP		1000

static int fds[BATCH_MAX];

static void marks_setup(const struct bench_point *p)
{
	unsigned int i;

	if (p->batch > BATCH_MAX)
		bench_die("--batch: more than %d", BATCH_MAX);
	for (i = 0; i < p->batch; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (fds[i] < 0)
			bench_die("eventfd: %s", strerror(errno));
	}
}

static void marks_teardown(const struct bench_point *p)
{
	unsigned int i;

	for (i = 0; i < p->batch; i++)
		close(fds[i]);
}

static void add(const struct bench_contestant *c, struct bench_queue *q, unsigned int nr)
{
	struct kevent_queue *k = c->backend->native(q);
	struct bench_watch w = { .events = POLLIN, .kind = BENCH_FILE };
	bool ours = !strcmp(c->backend->name, "kevent");
	struct ukevent ev;

	for (w.cookie = 0; w.cookie < nr; w.cookie++) {
		w.fd = fds[w.cookie];
		kevent_set_user(&ev, w.cookie, 1,
				strcmp(c->mode, "et") ? 0 : KEVENT_REQ_ET, w.cookie);
		if (!ours)
			c->backend->add(q, &w, 1);
		else if (kevent_ctl_one(k->fd, KEVENT_CTL_ADD, &ev))
			bench_die("cannot add a watch for marks");
	}
}

static void mark(struct kevent_queue *k, unsigned int nr)
{
	struct ukevent ev[BATCH_MAX];
	unsigned int i;

	for (i = 0; i < nr; i++)
		kevent_set_user(&ev[i], i, 1, 0, 0);
	if (kevent_ctl(k->fd, KEVENT_CTL_READY, nr, ev) != (int)nr)
		bench_die("cannot mark");
}

static void write_all(unsigned int nr)
{
	uint64_t one = 1;
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (write(fds[i], &one, sizeof(one)) != sizeof(one))
			bench_die("eventfd: %s", strerror(errno));
}

static void read_all(unsigned int nr)
{
	uint64_t value;
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (read(fds[i], &value, sizeof(value)) != sizeof(value) || value != 1)
			bench_die("an event of another watch");
}

static void take(const struct bench_contestant *c, struct bench_queue *q, unsigned int nr)
{
	uint64_t cookies[BATCH_MAX], seen = 0;
	unsigned int got = 0, i;

	while (got < nr)
		got += c->backend->wait(q, &cookies[got], nr - got, -1);
	for (i = 0; i < nr; i++)
		seen |= 1ull << cookies[i];
	if (seen != ~0ull >> (64 - nr))
		bench_die("an event is missing");
}

static double timed(const struct bench_contestant *c, struct bench_queue *q,
		    unsigned int batch, unsigned int events)
{
	bool ours = !strcmp(c->backend->name, "kevent");
	uint64_t start = bench_now();
	unsigned int done;

	for (done = 0; done < events; done += batch) {
		if (ours)
			mark(c->backend->native(q), batch);
		else
			write_all(batch);
		if (q)
			take(c, q, batch);
		if (!ours)
			read_all(batch);
	}
	return (double)(bench_now() - start) / done;
}

static void marks_measure(const struct bench_point *p, const struct bench_contestant *c,
			  double *value)
{
	struct bench_queue *q = NULL;

	if (!c->backend->blind) {
		q = c->backend->open(c->mode, p->batch, p->batch);
		add(c, q, p->batch);
	}
	timed(c, q, p->batch, WARM_UP);
	value[0] = timed(c, q, p->batch, p->events);
	if (q)
		c->backend->close(q);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns/event" },
};

const struct bench_workload work_marks = {
	.name		= "marks",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("eventfd"),
	.batches	= BENCH_NUMBERS(1, 16),
	.watches	= BENCH_NUMBERS(1),
	.threads	= BENCH_NUMBERS(1),
	.events		= 20000,
	.runs		= 3,
	.setup		= marks_setup,
	.measure	= marks_measure,
	.teardown	= marks_teardown,
};
