// SPDX-License-Identifier: GPL-2.0
/*
 * posix_timer: a timer is made, set, and expires
 *
 * kevent has a POSIX timer of its queue, the others have a timerfd, which they read. bare
 * is a POSIX timer whose signal the thread itself waits for.
 */
#include <errno.h>
#include <libkevent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id	_sigev_un._tid
#endif

#define NSEC_PER_SEC	1000000000ull
#define FAR_AWAY	(3600 * NSEC_PER_SEC)
#define STEP		500000		/* enough to sleep before each expiry */
#define EXPIRIES	500

enum { CREATE, SET, LATENESS };

/**
 * struct timer - a timer of a contestant
 * @c: the contestant
 * @q: its queue; bare has none
 * @id: of a POSIX timer of kevent
 * @fd: a timerfd
 * @bare: a timer of timer_create()
 */
struct timer {
	const struct bench_contestant	*c;
	struct bench_queue		*q;
	int				id;
	int				fd;
	timer_t				bare;
};

static bool is_kevent(const struct bench_contestant *c)
{
	return !strcmp(c->backend->name, "kevent");
}

static bool posix_timer_accepts(const struct bench_contestant *c, const struct bench_point *p)
{
	(void)p;
	return !is_kevent(c) || !strcmp(c->mode, "et");
}

static sigset_t the_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	return set;
}

static void posix_timer_setup(const struct bench_point *p)
{
	sigset_t set = the_signal();

	(void)p;
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		bench_die("sigprocmask: %s", strerror(errno));
}

/* --- one of each kind --------------------------------------------------------- */

static void create_bare(struct timer *t)
{
	struct sigevent sev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };

	sev.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &sev, &t->bare))
		bench_die("timer_create: %s", strerror(errno));
}

static void create_fd(struct timer *t)
{
	struct bench_watch w = { .events = POLLIN, .kind = BENCH_FILE };

	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (t->fd < 0)
		bench_die("timerfd_create: %s", strerror(errno));
	w.fd = t->fd;
	t->c->backend->add(t->q, &w, 1);
}

static void create(struct timer *t)
{
	struct kevent_queue *k;

	if (!t->q) {
		create_bare(t);
	} else if (is_kevent(t->c)) {
		k = t->c->backend->native(t->q);
		t->id = kevent_timer_create(k->fd, CLOCK_MONOTONIC, 0);
		if (t->id < 0)
			bench_die("kevent_timer_create: %s", strerror(-t->id));
	} else {
		create_fd(t);
	}
}

static void delete(struct timer *t)
{
	struct bench_watch w = { .events = POLLIN, .kind = BENCH_FILE, .fd = t->fd };

	if (!t->q) {
		timer_delete(t->bare);
	} else if (is_kevent(t->c)) {
		kevent_timer_delete(t->id);
	} else {
		if (!t->c->backend->closes)
			t->c->backend->remove(t->q, &w, 1);
		close(t->fd);
	}
}

static void set(struct timer *t, uint64_t due)
{
	const struct itimerspec when = {
		.it_value.tv_sec = (time_t)(due / NSEC_PER_SEC),
		.it_value.tv_nsec = (long)(due % NSEC_PER_SEC),
	};
	int ret;

	if (!t->q)
		ret = timer_settime(t->bare, TIMER_ABSTIME, &when, NULL);
	else if (is_kevent(t->c))
		ret = kevent_timer_settime(t->id, TIMER_ABSTIME, &when, NULL);
	else
		ret = timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &when, NULL);
	if (ret)
		bench_die("a timer is not set: %d", ret);
}

static void await_event(struct timer *t)
{
	struct kevent_queue *k = t->c->backend->native(t->q);
	struct ukevent ev;

	if (kevent_queue_get(k, &ev, 1, NULL) != 1 || kevent_overrun(&ev))
		bench_die("a timer has not expired once");
}

static void await_fd(struct timer *t)
{
	uint64_t cookie, expired;

	if (t->c->backend->wait(t->q, &cookie, 1, -1) != 1 ||
	    read(t->fd, &expired, sizeof(expired)) != sizeof(expired) || expired != 1)
		bench_die("a timer has not expired once");
}

static void await_signal(void)
{
	const sigset_t wanted = the_signal();
	siginfo_t info;

	if (sigwaitinfo(&wanted, &info) != SIGRTMIN || info.si_overrun)
		bench_die("a timer has not expired once");
}

static void await(struct timer *t)
{
	if (!t->q)
		await_signal();
	else if (is_kevent(t->c))
		await_event(t);
	else
		await_fd(t);
}

/* ------------------------------------------------------------------------------ */

static double creating(struct timer *t, unsigned int nr)
{
	uint64_t start = bench_now();
	unsigned int i;

	for (i = 0; i < nr; i++) {
		create(t);
		delete(t);
	}
	return (double)(bench_now() - start) / nr;
}

static double setting(struct timer *t, unsigned int nr)
{
	uint64_t start = bench_now();
	unsigned int i;

	for (i = 0; i < nr; i++)
		set(t, start + FAR_AWAY + i);
	return (double)(bench_now() - start) / nr;
}

static double expiring(struct timer *t)
{
	double late[EXPIRIES];
	unsigned int i;
	uint64_t due;

	for (i = 0; i < EXPIRIES; i++) {
		due = bench_now() + STEP;
		set(t, due);
		await(t);
		late[i] = (double)(bench_now() - due);
		if (late[i] < 0)
			bench_die("a timer has expired too soon");
	}
	bench_sort(late, EXPIRIES);
	return late[EXPIRIES / 2];
}

static void posix_timer_measure(const struct bench_point *p, const struct bench_contestant *c,
				double *value)
{
	struct timer t = { .c = c };

	if (!c->backend->blind)
		t.q = c->backend->open(c->mode, 1, 1);
	creating(&t, 1);		/* the thread of the library begins here */
	value[CREATE] = creating(&t, p->events);
	create(&t);
	set(&t, bench_now() + FAR_AWAY);
	value[SET] = setting(&t, p->events);
	value[LATENESS] = expiring(&t);
	delete(&t);
	if (t.q)
		c->backend->close(t.q);
}

static const struct bench_metric metrics[] = {
	[CREATE]	= { .name = "create and delete", .unit = "ns/timer" },
	[SET]		= { .name = "set", .unit = "ns/timer" },
	[LATENESS]	= { .name = "median lateness", .unit = "ns" },
};

const struct bench_workload work_posix_timer = {
	.name		= "posix_timer",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("monotonic"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1),
	.threads	= BENCH_NUMBERS(1),
	.events		= 500,
	.runs		= 3,
	.accepts	= posix_timer_accepts,
	.setup		= posix_timer_setup,
	.measure	= posix_timer_measure,
};
