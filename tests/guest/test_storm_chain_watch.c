// SPDX-License-Identifier: GPL-2.0
/*
 * Attached chains race with each other, with close, MODIFY, REMOVE and READY, signals,
 * memory that goes away, fork, exec and exit. Each byte that a chain has taken is in one
 * event.
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "helpers.h"

#define PAIRS		8
#define COLLECTORS	3
#define PAGE		4096ul
#define REFUSED		KEVENT_CALL_REFUSED

/* A socket whose chain takes bytes, to a page of its own */
struct pair {
	int			sv[2];
	struct kevent_call	c;
	char			*page;
	unsigned long		sent;
	_Atomic unsigned long	taken;
};

struct storm {
	struct queue	q;
	uint64_t	seed;
	struct pair	pairs[PAIRS];
	_Atomic long	events;
	_Atomic long	busy;
	_Atomic long	wrong;
	_Atomic int	stop;
};

struct player {
	struct actor	actor;
	struct storm	*storm;
	unsigned int	nr;
};

static struct kevent_call entry(uint32_t nr, uint64_t a, uint64_t b, uint64_t c)
{
	return (struct kevent_call){
		.nr = nr, .on_zero = 1, .on_value = 1, .args = { a, b, c },
	};
}

/* The event has what was received as the result of the only entry. */
static int change(struct storm *s, uint32_t cmd, unsigned int i, uint32_t flags)
{
	struct pair *p = &s->pairs[i];
	struct ukevent uk;

	kevent_set_chain(&uk, p->sv[0], KEVENT_POLL_POLLIN, &p->c, 1, flags, i);
	return kevent_ctl_one(s->q.fd, cmd, &uk);
}

static uint32_t random_flags(uint64_t *rnd)
{
	static const uint32_t flags[] = {
		0, KEVENT_REQ_ET, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH,
		KEVENT_REQ_WAKEUP_ALL, KEVENT_REQ_DISABLED,
		KEVENT_REQ_ET | KEVENT_REQ_READY,
		KEVENT_REQ_ET | KEVENT_REQ_DISPATCH,
	};

	return flags[next_random(rnd) % ARRAY_SIZE(flags)];
}

static void account(struct storm *s, const struct ukevent *ev)
{
	int64_t ret = (int64_t)((uint64_t)ev->ret_data[1] << 32 |
				ev->ret_data[0]);

	if (ev->type != KEVENT_CHAIN || ev->ptr >= PAIRS) {
		atomic_fetch_add(&s->wrong, 1);
		return;
	}
	atomic_fetch_add(&s->events, 1);
	if (ev->id.raw[1] == REFUSED) {
		if (ret != -EINTR)
			atomic_fetch_add(&s->wrong, 1);
	} else if (ev->id.raw[1] || (ret <= 0 && ret != -EFAULT)) {
		atomic_fetch_add(&s->wrong, 1);
	} else if (ret > 0) {
		atomic_fetch_add(&s->pairs[ev->ptr].taken, (unsigned long)ret);
	}
}

static long collect_all(void *arg)
{
	struct player *p = arg;
	struct storm *s = p->storm;
	struct ukevent ev[4];
	int i, nr;

	while (!atomic_load(&s->stop)) {
		if (p->nr && s->q.size) {
			nr = next_event(&s->q, ev, 2);
			/* Another thread took it. */
			if (nr == -EPROTO)
				nr = 0;
		} else {
			nr = get_events(s->q.fd, 1, 4, 2, ev);
		}
		for (i = 0; i < nr; i++)
			account(s, &ev[i]);
		if (nr < 0 && nr != -EINTR && nr != -EFAULT)
			atomic_fetch_add(&s->wrong, 1);
	}
	return 0;
}

/* Says what it is to do to a watch, whoever runs its chain. */
static void disturb(struct storm *s, unsigned int i, uint64_t *rnd)
{
	struct pair *p = &s->pairs[i];
	int ret;

	switch (next_random(rnd) % 4) {
	case 0:
		ret = change(s, KEVENT_CTL_REMOVE, i, 0);
		break;
	case 1:
		ret = change(s, KEVENT_CTL_READY, i, 0);
		ret = ret < 0 ? ret : 0;
		break;
	case 2:
		mprotect(p->page, PAGE, PROT_NONE);
		sched_yield();
		ret = mprotect(p->page, PAGE, PROT_READ | PROT_WRITE);
		break;
	default:
		ret = change(s, KEVENT_CTL_MODIFY, i, random_flags(rnd));
	}
	if (ret == -EBUSY)
		atomic_fetch_add(&s->busy, 1);
	else if (ret && ret != -ENOENT)
		atomic_fetch_add(&s->wrong, 1);
}

static void feed(struct storm *s, unsigned int i, uint64_t *rnd)
{
	struct pair *p = &s->pairs[i];
	ssize_t ret;
	int err;

	err = change(s, KEVENT_CTL_ADD, i, random_flags(rnd));
	if (err && err != -EEXIST)
		atomic_fetch_add(&s->wrong, 1);
	ret = send(p->sv[1], "abcdefgh", 1 + next_random(rnd) % 8,
		   MSG_DONTWAIT);
	if (ret > 0)
		p->sent += (unsigned long)ret;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void open_storm(struct storm *s, uint32_t size)
{
	struct sigaction sa = { .sa_handler = on_signal };
	unsigned int i;
	char *page;

	memset(s, 0, sizeof(*s));
	MUST_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	s->seed = test_seed();
	open_queue(&s->q, size);
	for (i = 0; i < PAIRS; i++) {
		struct pair *p = &s->pairs[i];

		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(page != MAP_FAILED);
		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->sv),
			0);
		p->page = page;
		p->c = entry(SYS_recvfrom, (uint64_t)p->sv[0],
			     KEVENT_ARG(page), 3);
	}
}

/* What is left comes, once each watch is armed. */
static bool is_drained(struct storm *s)
{
	bool done = true;
	unsigned int i;
	char byte;

	for (i = 0; i < PAIRS; i++) {
		struct pair *p = &s->pairs[i];

		if (recv(p->sv[0], &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
			continue;
		done = false;
		if (change(s, KEVENT_CTL_MODIFY, i, 0) == -ENOENT)
			change(s, KEVENT_CTL_ADD, i, 0);
	}
	return done;
}

static void run_storm(uint32_t size)
{
	struct player col[COLLECTORS] = {};
	static struct storm s;
	unsigned int i, lost = 0;
	uint64_t rnd, until, start;

	open_storm(&s, size);
	rnd = s.seed;
	until = now_ns() + storm_ns();
	for (i = 0; i < COLLECTORS; i++) {
		col[i].storm = &s;
		col[i].nr = i;
		start_actor(&col[i].actor, collect_all, &col[i]);
	}
	while (now_ns() < until) {
		i = next_random(&rnd) % PAIRS;
		if (next_random(&rnd) % 2)
			disturb(&s, i, &rnd);
		else
			feed(&s, i, &rnd);
		if (!(next_random(&rnd) % 16))
			pthread_kill(col[next_random(&rnd) % COLLECTORS].actor.thread,
				     SIGUSR1);
	}
	start = now_ns();
	while (!is_drained(&s) && patient(start, 2 * PATIENCE_MS))
		sched_yield();
	/* The events of the last runs */
	start = now_ns();
	do {
		for (i = lost = 0; i < PAIRS; i++)
			lost += s.pairs[i].taken != s.pairs[i].sent;
	} while (lost && patient(start, PATIENCE_MS));
	atomic_store(&s.stop, 1);
	for (i = 0; i < COLLECTORS; i++)
		join_actor(&col[i].actor, PATIENCE_MS);
	note("%ld events, %ld times busy", s.events, s.busy);
	CHECK_EQ(lost, 0);
	CHECK_EQ(s.wrong, 0);
	CHECK(s.events > 0);
	for (i = 0; i < PAIRS; i++) {
		close(s.pairs[i].sv[0]);
		close(s.pairs[i].sv[1]);
	}
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), 0);
	close_queue(&s.q);
}

static void each_byte_is_in_one_event(void)
{
	run_storm(0);
}

static void each_byte_is_in_one_event_of_a_ring(void)
{
	run_storm(4);
}

/* Descriptors come and go, by hand and by their own chains. */

struct closing {
	int		kq;
	_Atomic int	stop;
	_Atomic long	wrong;
};

static long collect_until(void *arg)
{
	struct closing *c = arg;
	struct ukevent ev;
	int ret;

	while (!atomic_load(&c->stop)) {
		ret = get_events(c->kq, 1, 1, 2, &ev);
		if (ret < 0 && ret != -EINTR)
			atomic_fetch_add(&c->wrong, 1);
	}
	return 0;
}

/* A number that is not used again soon: a run goes on while its descriptor is closed. */
static int renumber(int fd, unsigned int round)
{
	int other = fcntl(fd, F_DUPFD_CLOEXEC, 64 + round % 512);

	MUST(other >= 0);
	close(fd);
	return other;
}

static void close_races_runs(void)
{
	static struct kevent_call chains[64][2];
	uint64_t rnd = test_seed(), until = now_ns() + storm_ns();
	struct closing c = { .kq = kevent_init(NULL, 0, 0) };
	struct actor col[2] = {};
	unsigned int i, rounds = 0;
	char buf[8];

	MUST(c.kq >= 0);
	for (i = 0; i < 2; i++)
		start_actor(&col[i], collect_until, &c);
	while (now_ns() < until) {
		struct kevent_call *chain = chains[rounds++ % 64];
		struct ukevent uk;
		int sv[2], own = next_random(&rnd) % 2;

		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
		sv[0] = renumber(sv[0], rounds);
		chain[0] = entry(SYS_recvfrom, (uint64_t)sv[0], KEVENT_ARG(buf), 8);
		chain[1] = entry(SYS_close, (uint64_t)sv[0], 0, 0);
		kevent_set_chain(&uk, sv[0], KEVENT_POLL_POLLIN, chain, 1 + own,
				 next_random(&rnd) % 2 ? KEVENT_REQ_ET : 0, 1);
		MUST_EQ(kevent_ctl_one(c.kq, KEVENT_CTL_ADD, &uk), 0);
		put_byte(sv[1]);
		if (next_random(&rnd) % 2)
			sched_yield();
		if (!own) {
			close(sv[0]);
		} else {
			/* Its chain closes it. */
			char byte;

			MUST_EQ(read(sv[1], &byte, 1), 0);
		}
		close(sv[1]);
	}
	atomic_store(&c.stop, 1);
	for (i = 0; i < 2; i++)
		join_actor(&col[i], PATIENCE_MS);
	note("%u rounds", rounds);
	CHECK_EQ(c.wrong, 0);
	CHECK_EQ(fdinfo(c.kq, "kevent-watches"), 0);
	close(c.kq);
}

/* Ends */

struct mortal {
	struct queue	*q;
	uint64_t	rnd;
};

static long collect_for_ever(void *arg)
{
	struct ukevent ev[4];

	for (;;)
		get_events(*(int *)arg, 1, 4, -1, ev);
	return 0;
}

static int lives(void *arg)
{
	static struct kevent_call c[8];
	static char big[65536];
	struct mortal *m = arg;
	struct actor col[2] = {};
	unsigned int i;
	int sv[2];

	if (next_random(&m->rnd) % 2)
		fcntl(m->q->fd, F_SETFD, 0);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		struct ukevent uk;

		if (socketpair(AF_UNIX, SOCK_STREAM |
			       (next_random(&m->rnd) % 2 ? SOCK_CLOEXEC : 0), 0, sv))
			return 1;
		c[i] = entry(SYS_recvfrom, (uint64_t)sv[0], KEVENT_ARG(big), 1);
		kevent_set_chain(&uk, sv[0], KEVENT_POLL_POLLIN, &c[i], 1, 0, i);
		if (kevent_ctl_one(m->q->fd, KEVENT_CTL_ADD, &uk))
			return 1;
		if (write(sv[1], big, 2048) != 2048)
			return 1;
	}
	start_actor(&col[0], collect_for_ever, &m->q->fd);
	if (next_random(&m->rnd) % 2)
		start_actor(&col[1], collect_for_ever, &m->q->fd);
	for (i = next_random(&m->rnd) % 64; i; i--)
		sched_yield();
	switch (next_random(&m->rnd) % 4) {
	case 0:
		kill(getpid(), SIGKILL);
		return 1;
	case 1:
		/* Its copy of the descriptors keeps the watches, until it ends. */
		if (!fork()) {
			struct ukevent ev;

			get_events(m->q->fd, 1, 1, 0, &ev);
			_exit(0);
		}
		_exit(0);
	case 2:
		exec_and_end();
		return 1;
	default:
		_exit(0);
	}
}

static void processes_end_while_chains_run(void)
{
	uint64_t seed = test_seed(), until = now_ns() + storm_ns(), start;
	unsigned int rounds = 0;
	struct queue q;

	open_queue(&q, 0);
	do {
		struct mortal m = { .q = &q, .rnd = seed + rounds++ };
		struct ukevent ev;
		int ret;

		ret = join_child(start_child(lives, &m), PATIENCE_MS);
		CHECK(ret == 0 || ret == -SIGKILL);
		while (get_events(q.fd, 1, 1, 0, &ev) > 0)
			CHECK_EQ(ev.type, KEVENT_CHAIN);
	} while (now_ns() < until);
	note("%u processes", rounds);
	start = now_ns();
	while (fdinfo(q.fd, "kevent-watches") && patient(start, PATIENCE_MS))
		;
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_LIMIT(each_byte_is_in_one_event, 40),
	TEST_LIMIT(each_byte_is_in_one_event_of_a_ring, 40),
	TEST_LIMIT(close_races_runs, 30),
	TEST_LIMIT(processes_end_while_chains_run, 30),
	{ }
};

const struct test_suite storm_chain_watch_suite = {
	.name = "storm_chain_watch",
	.cases = cases,
};
#endif
