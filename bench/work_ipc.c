// SPDX-License-Identifier: GPL-2.0
/*
 * ipc: messages of 32 bytes between two processes
 *
 * Kevent is a lane of libkevent. The others write to a file of the source, wait, and
 * read; with bare they read without a wait. So a row compares a lane with one source.
 *
 *	awake		both ends in one thread: a message is sent and taken
 *	looking		one way, half of a request and its answer, when neither process
 *			sleeps: a lane, and a CPU for each process
 *	asleep		from the start of the send to the message in hand of a
 *			process that sleeps
 *	ping-pong	a request and its answer; both processes sleep
 *	unpinned	the same where the scheduler chooses the CPUs
 *	two calls	the same with lanes that send, and then wait by another call, so that
 *			no CPU is handed to the other process
 *	stream		one process sends, the other receives
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "ipc.h"
#include "threads.h"

#define WARM_UP		64
#define LOOKS		500		/* with more than one CPU */
/* Messages that take a switch, of all messages */
#define SLEEPS(p)	((p)->events / 100)
#define PINGS(p)	((p)->events / 20)
#define STREAM(p)	((p)->events / 2)

enum { SENDER = 1, RECEIVER };		/* priorities on one CPU */
enum { SENDER_CPU, RECEIVER_CPU };

/**
 * struct board - what both processes see
 * @seen: messages that were received
 * @when: the time the last one was
 */
struct board {
	uint64_t	seen;
	uint64_t	when;
};

static struct board *board;

/**
 * struct peer - the other process
 * @side: both ends
 * @run: what it does with its end
 * @nr: how often
 * @priority: on one CPU
 * @cpu: where it runs
 * @pid: the process
 */
struct peer {
	struct ipc_side	side[2];
	void		(*run)(struct ipc_side *s, unsigned int nr);
	unsigned int	nr;
	int		priority;
	unsigned int	cpu;
	pid_t		pid;
};

static void start_peer(struct peer *o)
{
	board->seen = 0;
	o->pid = fork();
	if (o->pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (o->pid)
		return;
	signal(SIGALRM, SIG_DFL);
	bench_pin(o->cpu);
	if (bench_one_cpu())
		bench_realtime(o->priority);
	ipc_watch(&o->side[1]);
	__atomic_store_n(&board->seen, 1, __ATOMIC_RELEASE);
	o->run(&o->side[1], o->nr);
	_exit(0);
}

static void check_patience(uint64_t start, const char *what)
{
	if (bench_now() - start > bench_patience())
		bench_die("%s", what);
}

static void await_seen(uint64_t nr)
{
	uint64_t start = bench_now();

	while (__atomic_load_n(&board->seen, __ATOMIC_ACQUIRE) < nr)
		check_patience(start, "a message was lost");
}

/* It begins with the priority of this process, which therefore yields. */
static void await_start(void)
{
	uint64_t start = bench_now();

	while (!__atomic_load_n(&board->seen, __ATOMIC_ACQUIRE)) {
		sched_yield();
		if (bench_now() - start > BENCH_LOST_MS * 1000000ull)
			bench_die("the other process does not start");
	}
}

static void end_peer(struct peer *o)
{
	int status;

	if (waitpid(o->pid, &status, 0) != o->pid || status)
		bench_die("the other process has failed");
	ipc_close(&o->side[0]);
}

static bool sleeps(pid_t pid)
{
	char name[64], text[256], *state;
	ssize_t len;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		bench_die("cannot read the state of a process");
	close(fd);
	text[len] = 0;
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

/* On one CPU it has the higher priority, and sleeps whenever this one runs. */
static void await_sleep(const struct peer *o)
{
	uint64_t start = bench_now();

	while (!bench_one_cpu() && !sleeps(o->pid))
		check_patience(start, "the receiver does not sleep");
}

static void open_both(struct peer *o, const struct bench_point *p,
		      const struct bench_contestant *c)
{
	ipc_open(p->source, c, o->side);
	ipc_watch(&o->side[0]);
	o->cpu = RECEIVER_CPU;
}

/* --- awake --------------------------------------------------------------- */

static double awake(const struct bench_point *p, const struct bench_contestant *c)
{
	static struct peer o;
	uint64_t start;

	open_both(&o, p, c);
	ipc_watch(&o.side[1]);
	ipc_pass(o.side, WARM_UP);
	start = bench_now();
	ipc_pass(o.side, p->events);
	start = bench_now() - start;
	ipc_close(&o.side[0]);
	ipc_close(&o.side[1]);
	return (double)start / p->events;
}

/* --- asleep -------------------------------------------------------------- */

static void note_each(struct ipc_side *s, unsigned int nr)
{
	struct ipc_message m;

	while (nr--) {
		ipc_receive(s, &m);
		board->when = bench_now();
		__atomic_store_n(&board->seen, m.nr + 2, __ATOMIC_RELEASE);
	}
}

static double asleep(const struct bench_point *p, const struct bench_contestant *c)
{
	unsigned int nr = SLEEPS(p), i;
	double *latency = bench_alloc(nr, sizeof(*latency)), median;
	struct ipc_message m = {};
	static struct peer o;
	uint64_t start;

	open_both(&o, p, c);
	o.run = note_each;
	o.nr = nr + WARM_UP;
	o.priority = RECEIVER;
	start_peer(&o);
	await_start();
	for (i = 0; i < nr + WARM_UP; i++) {
		if (!(i % 8))
			bench_shift_stock();
		await_sleep(&o);
		m.nr = i;
		start = bench_now();
		ipc_send(&o.side[0], &m);
		await_seen(i + 2);
		if (i >= WARM_UP)
			latency[i - WARM_UP] = (double)(board->when - start);
	}
	end_peer(&o);
	bench_sort(latency, nr);
	median = latency[nr / 2];
	free(latency);
	return median;
}

/* --- looking ------------------------------------------------------------- */

static void answer_looking(struct ipc_side *s, unsigned int nr)
{
	struct ipc_message m;

	s->looks = UINT_MAX;
	while (nr--) {
		ipc_receive(s, &m);
		ipc_send(s, &m);
	}
}

static double looking(const struct bench_point *p, const struct bench_contestant *c)
{
	struct ipc_message m = {}, got;
	static struct peer o;
	uint64_t start = 0;

	if (bench_one_cpu() || strcmp(c->backend->name, "kevent"))
		return NAN;
	open_both(&o, p, c);
	o.run = answer_looking;
	o.nr = p->events + WARM_UP;
	start_peer(&o);
	await_start();
	o.side[0].looks = UINT_MAX;
	for (m.nr = 0; m.nr < o.nr; m.nr++) {
		if (m.nr == WARM_UP)
			start = bench_now();
		ipc_send(&o.side[0], &m);
		ipc_receive(&o.side[0], &got);
		if (got.nr != m.nr)
			bench_die("an answer was lost");
	}
	start = bench_now() - start;
	end_peer(&o);
	return (double)start / p->events / 2;
}

/* --- ping-pong ----------------------------------------------------------- */

static void answer_each(struct ipc_side *s, unsigned int nr)
{
	struct ipc_message m;

	while (--nr) {
		ipc_receive(s, &m);
		ipc_send_last(s, &m);
	}
	ipc_receive(s, &m);
	ipc_send(s, &m);
}

static double round_trips(struct peer *o, const struct bench_point *p)
{
	struct ipc_message m = {}, got;
	uint64_t start = 0;
	unsigned int i;

	o->run = answer_each;
	o->nr = PINGS(p) + WARM_UP;
	o->priority = SENDER;
	start_peer(o);
	await_start();
	for (i = 0; i < o->nr; i++) {
		if (i == WARM_UP)
			start = bench_now();
		m.nr = i;
		ipc_send_last(&o->side[0], &m);
		ipc_receive(&o->side[0], &got);
		if (got.nr != i)
			bench_die("an answer was lost");
	}
	start = bench_now() - start;
	end_peer(o);
	return (double)start / PINGS(p);
}

static double ping_pong(const struct bench_point *p,
			const struct bench_contestant *c)
{
	static struct peer o;

	open_both(&o, p, c);
	return round_trips(&o, p);
}

static double unpinned(const struct bench_point *p,
		       const struct bench_contestant *c, bool two_calls)
{
	static struct peer o;
	double time;

	if (bench_one_cpu() || (two_calls && strcmp(c->backend->name, "kevent")))
		return NAN;
	open_both(&o, p, c);
	o.side[0].two_calls = two_calls;
	o.side[1].two_calls = two_calls;
	o.cpu = BENCH_ANY_CPU;
	bench_pin(BENCH_ANY_CPU);
	time = round_trips(&o, p);
	bench_pin(SENDER_CPU);
	return time;
}

/* --- stream -------------------------------------------------------------- */

static void drain(struct ipc_side *s, unsigned int nr)
{
	struct ipc_message m;
	unsigned int i;

	s->looks = bench_one_cpu() ? 0 : LOOKS;
	for (i = 0; i < nr; i++) {
		ipc_receive(s, &m);
		if (m.nr != i)
			bench_die("a message was lost");
	}
	ipc_send(s, &m);
}

static double stream(const struct bench_point *p, const struct bench_contestant *c)
{
	struct ipc_message m = {}, got;
	static struct peer o;
	uint64_t start;

	open_both(&o, p, c);
	o.run = drain;
	o.nr = STREAM(p);
	o.priority = SENDER;
	start_peer(&o);
	await_start();
	start = bench_now();
	for (m.nr = 0; m.nr < o.nr; m.nr++)
		ipc_send(&o.side[0], &m);
	ipc_receive(&o.side[0], &got);
	start = bench_now() - start;
	end_peer(&o);
	return (double)start / STREAM(p);
}

/* ------------------------------------------------------------------------- */

static bool ipc_accepts(const struct bench_contestant *c,
			const struct bench_point *p)
{
	(void)p;
	if (!strcmp(c->backend->name, "kevent"))
		return !strcmp(c->mode, "et");
	return c->backend->blind || (!strcmp(c->backend->name, "epoll") &&
				     !strcmp(c->mode, "lt"));
}

static void ipc_setup(const struct bench_point *p)
{
	(void)p;
	if (!board)
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
}

static void ipc_measure(const struct bench_point *p,
			const struct bench_contestant *c, double *value)
{
	bench_pin(SENDER_CPU);
	if (bench_one_cpu())
		bench_realtime(SENDER);
	value[0] = awake(p, c);
	value[1] = looking(p, c);
	value[2] = asleep(p, c);
	value[3] = ping_pong(p, c);
	value[4] = stream(p, c);
	value[5] = unpinned(p, c, false);
	value[6] = unpinned(p, c, true);
	if (bench_one_cpu())
		bench_realtime(0);
}

static const struct bench_metric metrics[] = {
	{ .name = "awake", .unit = "ns/message", .pairs = true },
	{ .name = "looking", .unit = "ns/message" },
	{ .name = "asleep", .unit = "ns", .pairs = true },
	{ .name = "ping-pong", .unit = "ns/round trip", .pairs = true },
	{ .name = "stream", .unit = "ns/message", .pairs = true },
	{ .name = "unpinned", .unit = "ns/round trip", .pairs = true },
	{ .name = "two calls", .unit = "ns/round trip" },
};

const struct bench_workload work_ipc = {
	.name		= "ipc",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("unix", "pipe", "mqueue"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1),
	.threads	= BENCH_NUMBERS(2),
	.events		= 100000,
	.runs		= 7,
	.accepts	= ipc_accepts,
	.setup		= ipc_setup,
	.measure	= ipc_measure,
};
