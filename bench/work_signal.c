// SPDX-License-Identifier: GPL-2.0
/*
 * signal: signals that are blocked are sent, and taken with what they say
 *
 * kevent has a watch of SIGNAL that consumes. The others read a signalfd when they hear of
 * it; bare reads without a wait. The sender is the same thread, which sends a batch and takes
 * it (self), or another process, which sends one when the one before was taken (process).
 * On one CPU the taker sleeps each time, as it comes first.
 */
#include <errno.h>
#include <libkevent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define BATCH_MAX	64
#define WARM_UP		256

enum { TAKER_CPU, SENDER_CPU };
enum { SENDER = 1, TAKER };		/* priorities on one CPU */

/**
 * struct taker - who takes the signals
 * @c: the contestant
 * @q: its queue; bare has none
 * @fd: a signalfd; kevent has none
 * @sender: the process that sends
 * @next: the value of the next signal
 */
struct taker {
	const struct bench_contestant	*c;
	struct bench_queue		*q;
	int				fd;
	pid_t				sender;
	unsigned int			next;
};

static bool is_kevent(const struct bench_contestant *c)
{
	return !strcmp(c->backend->name, "kevent");
}

/* Level and edge are the same: each signal is reported once. */
static bool signal_accepts(const struct bench_contestant *c, const struct bench_point *p)
{
	if (is_kevent(c) && strcmp(c->mode, "et") && strcmp(c->mode, "copy"))
		return false;
	return p->batch == 1 || !strcmp(p->source, "self");
}

static void signal_setup(const struct bench_point *p)
{
	sigset_t set;

	if (p->batch > BATCH_MAX)
		bench_die("--batch: more than %d", BATCH_MAX);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		bench_die("sigprocmask: %s", strerror(errno));
}

static void send(pid_t to, unsigned int value)
{
	union sigval v = { .sival_int = (int)value };

	if (sigqueue(to, SIGRTMIN, v))
		bench_die("sigqueue: %s", strerror(errno));
}

/* --- the taker ----------------------------------------------------------- */

static void check(struct taker *t, int signal, int code, int from, int value)
{
	if (signal != SIGRTMIN || code != SI_QUEUE || from != t->sender ||
	    value != (int)t->next++)
		bench_die("a signal that is not the next one");
}

static unsigned int take_events(struct taker *t, unsigned int max)
{
	struct kevent_queue *k = t->c->backend->native(t->q);
	struct ukevent ev[BATCH_MAX];
	int nr, i;

	if (k->ring)
		nr = kevent_queue_get(k, ev, max, NULL);
	else
		nr = kevent_get_events(k->fd, 1, max, NULL, ev, 0);
	if (nr < 1)
		bench_die("no event of a signal: %s", strerror(-nr));
	for (i = 0; i < nr; i++)
		check(t, kevent_signal_number(&ev[i]), kevent_signal_code(&ev[i]),
		      kevent_signal_sender(&ev[i]), kevent_signal_value(&ev[i]));
	return (unsigned int)nr;
}

static unsigned int take_read(struct taker *t, unsigned int max)
{
	struct signalfd_siginfo si[BATCH_MAX];
	uint64_t cookie;
	ssize_t len;
	int i;

	if (t->q && t->c->backend->wait(t->q, &cookie, 1, -1) != 1)
		bench_die("a wait without a limit returned nothing");
	len = read(t->fd, si, max * sizeof(*si));
	if (len < (ssize_t)sizeof(*si))
		bench_die("signalfd: %s", strerror(errno));
	for (i = 0; i < len / (ssize_t)sizeof(*si); i++)
		check(t, (int)si[i].ssi_signo, si[i].ssi_code, (int)si[i].ssi_pid,
		      si[i].ssi_int);
	return (unsigned int)i;
}

static void take(struct taker *t, unsigned int nr)
{
	while (nr)
		nr -= is_kevent(t->c) ? take_events(t, nr) : take_read(t, nr);
}

static void add_watch(struct taker *t)
{
	struct kevent_queue *k = t->c->backend->native(t->q);
	struct ukevent ev;

	kevent_set_signal(&ev, SIGRTMIN, KEVENT_SIGNAL_CONSUME, 0, 0);
	if (kevent_ctl_one(k->fd, KEVENT_CTL_ADD, &ev))
		bench_die("cannot add a watch of a signal");
}

static void open_fd(struct taker *t)
{
	struct bench_watch w = { .events = POLLIN, .kind = BENCH_FILE };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	t->fd = signalfd(-1, &set, SFD_CLOEXEC | (t->q ? SFD_NONBLOCK : 0));
	if (t->fd < 0)
		bench_die("signalfd: %s", strerror(errno));
	w.fd = t->fd;
	if (t->q)
		t->c->backend->add(t->q, &w, 1);
}

static void open_taker(struct taker *t, const struct bench_point *p)
{
	if (!t->c->backend->blind)
		t->q = t->c->backend->open(t->c->mode, 1, p->batch);
	if (is_kevent(t->c))
		add_watch(t);
	else
		open_fd(t);
}

static void close_taker(struct taker *t)
{
	if (t->q)
		t->c->backend->close(t->q);
	if (!is_kevent(t->c))
		close(t->fd);
}

/* --- self ----------------------------------------------------------------- */

static double to_self(struct taker *t, unsigned int batch, unsigned int events)
{
	uint64_t start = bench_now();
	unsigned int done, i;

	for (done = 0; done < events; done += batch) {
		for (i = 0; i < batch; i++)
			send(t->sender, t->next + i);
		take(t, batch);
	}
	return (double)(bench_now() - start) / done;
}

static void measure_self(const struct bench_point *p, struct taker *t, double *value)
{
	t->sender = getpid();
	open_taker(t, p);
	to_self(t, p->batch, WARM_UP);
	*value = to_self(t, p->batch, p->events);
	close_taker(t);
}

/* --- process -------------------------------------------------------------- */

static void take_place(unsigned int cpu, int priority)
{
	bench_pin(cpu);
	if (bench_one_cpu())
		bench_realtime(priority);
}

/* The sender, which ends with its parent */
static void send_all(const unsigned int *seen, unsigned int nr)
{
	pid_t parent = getppid();
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_place(SENDER_CPU, SENDER);
	for (i = 0; i < nr; i++) {
		send(parent, i);
		bench_await_seen(seen, i + 1);
	}
	_exit(0);
}

static double from_other(struct taker *t, unsigned int *seen, unsigned int events)
{
	uint64_t start = bench_now();
	unsigned int i;

	for (i = 0; i < events; i++) {
		take(t, 1);
		__atomic_store_n(seen, t->next, __ATOMIC_RELEASE);
	}
	return (double)(bench_now() - start) / events;
}

static void measure_process(const struct bench_point *p, struct taker *t, double *value)
{
	unsigned int *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	if (seen == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	take_place(TAKER_CPU, TAKER);
	t->sender = fork();
	if (t->sender < 0)
		bench_die("fork: %s", strerror(errno));
	if (!t->sender)
		send_all(seen, WARM_UP + p->events);
	open_taker(t, p);
	from_other(t, seen, WARM_UP);
	*value = from_other(t, seen, p->events);
	bench_realtime(0);
	if (waitpid(t->sender, &status, 0) != t->sender || status)
		bench_die("the sender failed");
	close_taker(t);
	munmap(seen, sizeof(*seen));
}

static void signal_measure(const struct bench_point *p, const struct bench_contestant *c,
			   double *value)
{
	struct taker t = { .c = c, .fd = -1 };

	if (!strcmp(p->source, "self"))
		measure_self(p, &t, value);
	else
		measure_process(p, &t, value);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns/signal" },
};

const struct bench_workload work_signal = {
	.name		= "signal",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("self", "process"),
	.batches	= BENCH_NUMBERS(1, 16),
	.watches	= BENCH_NUMBERS(1),
	.threads	= BENCH_NUMBERS(1),
	.events		= 1000,
	.runs		= 3,
	.accepts	= signal_accepts,
	.setup		= signal_setup,
	.measure	= signal_measure,
};
