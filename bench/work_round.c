// SPDX-License-Identifier: GPL-2.0
/*
 * round: a server that sleeps for each request of another process
 *
 * The client is a process of its own. It writes a byte to one of its connections, and
 * sleeps until the answer is there; the server waits for an event, reads the byte and
 * answers. Both have the same priority, so that on one CPU each of them goes to sleep
 * before the other one runs, as with a server that is not saturated. On more CPUs each
 * has its own. The connection is another one each time, in an order that both know: the
 * blind backend reads from it, and sleeps there.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define WARM_UP		64
#define PRIORITY	1		/* of both sides on one CPU */

enum { SERVER_CPU, CLIENT_CPU };

/**
 * struct connections - between the client and the server
 * @nr: how many
 * @there: to the server. A socket carries the answers, too
 * @back: to the client; of sockets, the same ones
 * @watches: of the server's ends
 */
static struct connections {
	unsigned int		nr;
	struct bench_pair	*there;
	struct bench_pair	*back;
	struct bench_watch	*watches;
} con;

static void round_setup(const struct bench_point *p)
{
	unsigned int i;

	con.nr = p->watches;
	con.there = bench_pairs_open(p->source, con.nr);
	con.watches = bench_watches(p->source, con.there, con.nr);
	con.back = con.there;
	if (!strcmp(p->source, "pipe"))
		con.back = bench_pairs_open(p->source, con.nr);
	for (i = 0; con.back != con.there && i < con.nr; i++)
		bench_blocking(con.back[i].rd, true);
	for (i = 0; con.back == con.there && i < con.nr; i++)
		bench_blocking(con.there[i].wr, true);
}

static void round_teardown(const struct bench_point *p)
{
	(void)p;
	free(con.watches);
	if (con.back != con.there)
		bench_pairs_close(con.back, con.nr);
	bench_pairs_close(con.there, con.nr);
}

/* Where the server writes, and where the client reads */
static int answer_end(unsigned int i)
{
	return con.back == con.there ? con.there[i].rd : con.back[i].wr;
}

static int client_end(unsigned int i)
{
	return con.back == con.there ? con.there[i].wr : con.back[i].rd;
}

static void take_place(unsigned int cpu)
{
	bench_pin(cpu);
	if (bench_one_cpu())
		bench_realtime(PRIORITY);
}

/* The client, which ends with its parent */
static void ask(unsigned int messages)
{
	uint64_t order = 1;
	unsigned int i, at;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_place(CLIENT_CPU);
	for (i = 0; i < messages; i++) {
		at = bench_random(&order) % con.nr;
		bench_put(con.there[at].wr);
		bench_get(client_end(at));
	}
	_exit(0);
}

/* @at is where the next message comes from, which only the blind backend may know. */
static void answer(const struct bench_contestant *c, struct bench_queue *q,
		   unsigned int at)
{
	uint64_t cookie = at;

	if (q && (c->backend->wait(q, &cookie, 1, -1) != 1 || cookie != at))
		bench_die("a wait without a limit returned something else");
	bench_get(con.there[at].rd);
	bench_put(answer_end(at));
}

static double serve(const struct bench_point *p,
		    const struct bench_contestant *c, struct bench_queue *q)
{
	uint64_t order = 1, start = 0;
	unsigned int i;

	for (i = 0; i < p->events + WARM_UP; i++) {
		if (i == WARM_UP)
			start = bench_now();
		answer(c, q, bench_random(&order) % con.nr);
	}
	return (double)(bench_now() - start) / p->events;
}

static struct bench_queue *open_queue(const struct bench_contestant *c)
{
	struct bench_queue *q;

	if (c->backend->blind)
		return NULL;
	q = c->backend->open(c->mode, con.nr, con.nr);
	c->backend->add(q, con.watches, con.nr);
	return q;
}

static void round_measure(const struct bench_point *p,
			  const struct bench_contestant *c, double *value)
{
	struct bench_queue *q;
	unsigned int i;
	int status;
	pid_t client;

	for (i = 0; i < con.nr; i++)
		bench_blocking(con.there[i].rd, c->backend->blind);
	/* Before the client asks, on one CPU. */
	take_place(SERVER_CPU);
	client = fork();
	if (client < 0)
		bench_die("fork: %s", strerror(errno));
	if (!client)
		ask(p->events + WARM_UP);
	q = open_queue(c);
	value[0] = serve(p, c, q);
	bench_realtime(0);
	if (waitpid(client, &status, 0) != client || status)
		bench_die("the client failed");
	if (!q)
		return;
	bench_expect_nothing(c, q);
	c->backend->close(q);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns/round", .above = true, .pairs = true },
};

const struct bench_workload work_round = {
	.name		= "round",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("pipe", "unix", "inet"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1, 64),
	.threads	= BENCH_NUMBERS(1),
	.events		= 2000,
	.runs		= 3,
	.setup		= round_setup,
	.measure	= round_measure,
	.teardown	= round_teardown,
};
