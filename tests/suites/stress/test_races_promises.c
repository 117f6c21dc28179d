// SPDX-License-Identifier: GPL-2.0
/*
 * Promises under races, one at a time, on queues of their own
 *
 *	level		each call reports a level watch that is ready, and poll() says so,
 *			whoever else looks at it
 *	hang-up		a peer sees at once that a file was closed, whoever has looked at it
 *	clock		a wait takes its time, though clocks are set
 *	sleepers	what a wake-up takes does not depend on how many sleep
 *
 * Tasks are delayed in windows of the kernel at random, see races.h.
 * KEVENT_STORM_SECONDS sets the budget of each test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "helpers.h"
#include "pairs.h"
#include "races.h"

#define EPOCH	300000000ull	/* with the same delays */
#define LEAST	4		/* rounds, however long they take */

/* Runs @round again and again, with other delays now and then. */
static void for_a_storm(bool (*round)(void *arg, uint64_t *rnd), void *arg)
{
	uint64_t start = now_ns(), next = 0;
	uint64_t rnd = test_seed();
	unsigned int rounds = 0;
	bool ok = true;

	kernel_complains();
	while (ok && storm_goes_on(start, rounds >= LEAST)) {
		if (now_ns() > next) {
			delay_at_random(&rnd);
			next = now_ns() + EPOCH;
		}
		ok = round(arg, &rnd);
		ok = ok && CHECK(!kernel_complains());
		rounds++;
	}
	delay_no_more();
	note("%u rounds in %.1f s", rounds, (now_ns() - start) / 1e9);
	say_delays();
	CHECK(!ok || rounds >= LEAST);
}

/* Level */

#define LOOKERS	3
#define LOOKS_NS	30000000	/* how long they go on */
#define KINDS	4

struct level {
	struct queue	q, below;
	int		fd[2];
	_Atomic long	missed, unreadable, wrong;
};

/* A file that is ready all the time, of several kinds */
static void open_ready(struct level *l, unsigned int kind)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };

	l->fd[0] = l->fd[1] = -1;
	switch (kind) {
	case 0:
		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, l->fd), 0);
		MUST_EQ(add_socket(l->q.fd, l->fd[0], SEND, 0, 0), 0);
		break;
	case 1:
		l->fd[0] = timerfd_create(CLOCK_MONOTONIC, 0);
		MUST_EQ(timerfd_settime(l->fd[0], 0, &soon, NULL), 0);
		MUST_EQ(poll(&(struct pollfd){ l->fd[0], POLLIN, 0 }, 1, -1), 1);
		MUST_EQ(add_poll(l->q.fd, l->fd[0], KEVENT_POLL_POLLIN, 0, 0), 0);
		break;
	case 2:
		open_queue(&l->below, 0);
		l->fd[0] = l->below.fd;
		MUST_EQ(add_user(l->below.fd, 1, 1, KEVENT_REQ_READY, 0), 0);
		MUST_EQ(add_poll(l->q.fd, l->fd[0], KEVENT_POLL_POLLIN, 0, 0), 0);
		break;
	default:
		open_pipe(l->fd);
		put_byte(l->fd[1]);
		MUST_EQ(add_pipe(l->q.fd, l->fd[0], RECV, 0, 0), 0);
	}
}

static long look_again_and_again(void *arg)
{
	struct level *l = arg;
	struct pollfd pfd = { l->q.fd, POLLIN, 0 };
	uint64_t until = now_ns() + LOOKS_NS;
	struct ukevent ev;
	unsigned int i;
	int ret;

	for (i = 0; !i || now_ns() < until; i++) {
		ret = get_events(l->q.fd, 1, 1, 0, &ev);
		if (!ret)
			atomic_fetch_add(&l->missed, 1);
		else if (ret != 1)
			atomic_fetch_add(&l->wrong, 1);
		if (poll(&pfd, 1, 0) != 1)
			atomic_fetch_add(&l->unreadable, 1);
		/* One that is ready to wait does not. */
		if (i % 16 == 0 && get_events(l->q.fd, 1, 1, -1, &ev) != 1)
			atomic_fetch_add(&l->wrong, 1);
	}
	return 0;
}

static bool level_round(void *arg, uint64_t *rnd __attribute__((unused)))
{
	unsigned int *kind = arg;
	struct level l = {};
	struct actor a[LOOKERS];
	unsigned int i;
	bool ok;

	open_queue(&l.q, 0);
	open_ready(&l, (*kind)++ % KINDS);
	for (i = 0; i < LOOKERS; i++)
		start_actor(&a[i], look_again_and_again, &l);
	for (i = 0; i < LOOKERS; i++)
		join_actor(&a[i], PATIENCE_MS);
	ok = CHECK_EQ(l.missed, 0);
	ok &= CHECK_EQ(l.unreadable, 0);
	ok &= CHECK_EQ(l.wrong, 0);
	close(l.fd[0]);
	close(l.fd[1]);
	close_queue(&l.q);
	return ok;
}

static void each_call_reports_what_is_ready(void)
{
	unsigned int kind = 0;

	for_a_storm(level_round, &kind);
}

/* Hang-up */

struct hangup {
	struct queue	q;
	struct actor	consumer;
	_Atomic bool	stop;
	_Atomic uint64_t heard;		/* cookie of a peer whose event has come */
	uint64_t	rounds;
};

/* An event is no reason to do anything: who closes the files has read what it wants. */
static long sleep_between_events(void *arg)
{
	struct hangup *h = arg;
	struct ukevent ev;
	int ret;

	while (!atomic_load(&h->stop)) {
		ret = next_event(&h->q, &ev, -1);
		if (ret == 1 && ev.ptr)
			atomic_store(&h->heard, ev.ptr);
		else if (ret < 0 && ret != -EPROTO)
			return ret;
	}
	return 0;
}

/* Watches @fd[0] in a way whose looks take a ->poll(), or not. */
static void watch_one_end(struct hangup *h, int fd[2], uint64_t *rnd)
{
	unsigned int kind = next_random(rnd) % 5;
	uint32_t flags = next_random(rnd) % 2 ? ET : 0;

	switch (kind) {
	case 0:
		tcp_pair(fd);
		break;
	case 1:
		open_pipe(fd);
		break;
	default:
		MUST_EQ(socketpair(AF_UNIX, kind == 2 ? SOCK_SEQPACKET :
				   SOCK_STREAM, 0, fd), 0);
	}
	if (kind == 1)
		MUST_EQ(add_pipe(h->q.fd, fd[0], RECV, flags, 0), 0);
	else if (kind == 3)
		MUST_EQ(add_socket(h->q.fd, fd[0], SEND, flags, 0), 0);
	else
		MUST_EQ(add_poll(h->q.fd, fd[0], KEVENT_POLL_POLLIN |
				 KEVENT_POLL_POLLRDHUP, flags, 0), 0);
}

static bool hears(struct hangup *h, uint64_t cookie)
{
	uint64_t start = now_ns();

	while (atomic_load(&h->heard) != cookie)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

/* The peer is told by poll(), or the consumer by an event. */
static bool hangup_round(void *arg, uint64_t *rnd)
{
	struct hangup *h = arg;
	unsigned int pause = next_random(rnd) % 4;
	struct pollfd peer = {};
	int fd[2];
	bool ok;

	watch_one_end(h, fd, rnd);
	peer.fd = fd[1];
	h->rounds++;
	/* EPOLLHUP and EPOLLERR are reported whether asked for or not. */
	if (next_random(rnd) % 4 == 0)
		peer.fd = -1;
	if (peer.fd < 0)
		MUST_EQ(add_poll(h->q.fd, fd[1], KEVENT_POLL_POLLRDHUP, ET,
				 h->rounds), 0);
	put_byte(fd[1]);
	if (pause)
		pause_us(next_random(rnd) % (pause * 200));
	close(fd[0]);
	peer.events = POLLRDHUP;
	ok = peer.fd < 0 ? hears(h, h->rounds) :
			   poll(&peer, 1, PATIENCE_MS * slowness) == 1;
	close(fd[1]);
	return CHECK(ok);
}

static void run_hangups(uint32_t size)
{
	struct hangup h = {};

	open_queue(&h.q, size);
	start_actor(&h.consumer, sleep_between_events, &h);
	for_a_storm(hangup_round, &h);
	atomic_store(&h.stop, true);
	MUST_EQ(kevent_ctl(h.q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	join_actor(&h.consumer, PATIENCE_MS);
	CHECK_EQ(h.consumer.ret, 0);
	CHECK_EQ(fdinfo(h.q.fd, "kevent-watches"), 0);
	close_queue(&h.q);
}

/* Clock */

struct clocks {
	struct queue	q;
	_Atomic bool	stop;
	uint64_t	span;
	struct kevent_wait_arg arg;
	bool		min_wait;
	uint64_t	took;
};

static void step(clockid_t id, int64_t seconds)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	ts.tv_sec += seconds;
	if (clock_settime(id, &ts))
		sched_yield();
}

static long step_clocks(void *arg)
{
	struct clocks *c = arg;

	while (!atomic_load(&c->stop)) {
		step(CLOCK_REALTIME, 3600);
		pause_us(3000);
		step(CLOCK_REALTIME, -3600);
		pause_us(3000);
	}
	return 0;
}

static long wait_a_span(void *arg)
{
	struct clocks *c = arg;
	const struct timespec span = {
		.tv_nsec = (long)c->span,
	};
	uint64_t start = now_ns();
	int ret;

	ret = kevent_wait(c->q.fd, 8, (uint32_t)c->q.ring->ring_uidx,
			  c->min_wait ? NULL : &span, KEVENT_FLAGS_ARG, &c->arg);
	c->took = now_ns() - start;
	return ret;
}

static bool clock_round(void *arg, uint64_t *rnd)
{
	static const clockid_t ids[] = {
		CLOCK_REALTIME, CLOCK_TAI, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
	};
	struct clocks *c = arg;
	struct actor waiter;
	struct ukevent ev;
	bool ok;

	kevent_wait_arg_init(&c->arg);
	c->arg.clockid = ids[next_random(rnd) % ARRAY_SIZE(ids)];
	c->span = (5 + next_random(rnd) % 30) * 1000000ull;
	c->min_wait = next_random(rnd) % 2;
	if (c->min_wait) {
		c->arg.min_nr = 2;
		c->arg.min_wait_ns = c->span;
		MUST_EQ(mark_user(c->q.fd, 1, 1), 1);
	}
	start_actor(&waiter, wait_a_span, c);
	/* Until an hour has passed */
	join_actor(&waiter, PATIENCE_MS);
	ok = CHECK_EQ(waiter.ret, c->min_wait);
	if (c->took < c->span)
		note("clock %d: %llu of %llu ns", c->arg.clockid,
		     (unsigned long long)c->took, (unsigned long long)c->span);
	ok &= CHECK(c->took >= c->span);
	while (kevent_ring_next(c->q.ring, 8, &ev))
		;
	return ok;
}

static void waits_take_their_time_while_clocks_are_set(void)
{
	struct clocks c = {};
	struct actor stepper;

	open_queue(&c.q, 8);
	MUST_EQ(add_user(c.q.fd, 1, 1, ET, 0), 0);
	start_actor(&stepper, step_clocks, &c);
	for_a_storm(clock_round, &c);
	atomic_store(&c.stop, true);
	join_actor(&stepper, PATIENCE_MS);
	close_queue(&c.q);
}

/* Sleepers */

#define FEW		16
#define MANY		1600
#define WRITES		16
#define TRIES		100
#define WANTED		2048		/* entries, more than ever come */
#define STACK		(64 << 10)

struct crowd {
	struct queue	q;
	int		fd[2];
	pthread_t	sleeper[MANY];
	unsigned int	nr;
};

static void *want_more(void *arg)
{
	struct crowd *c = arg;
	struct kevent_wait_arg wait;

	kevent_wait_arg_init(&wait);
	wait.min_nr = WANTED;
	kevent_wait(c->q.fd, WANTED, 0, NULL, KEVENT_FLAGS_ARG, &wait);
	return NULL;
}

/* What is in the ring is not for them, and one event is not enough. */
static void *want_none(void *arg)
{
	struct crowd *c = arg;
	struct ukevent ev[2];

	get_events(c->q.fd, 2, 2, -1, ev);
	return NULL;
}

/* However slow the machine is, some more come or go in a while. */
static void await_waiting(struct crowd *c, unsigned int nr)
{
	unsigned int now, last = UINT_MAX;
	uint64_t start = now_ns();

	while ((now = fdinfo(c->q.fd, "kevent-waiting")) != nr) {
		if (now != last)
			start = now_ns();
		last = now;
		if (!nr)
			MUST_EQ(kevent_ctl(c->q.fd, KEVENT_CTL_READY, 0, NULL), 0);
		MUST(patient(start, PATIENCE_MS));
	}
}

static void add_sleepers(struct crowd *c, unsigned int nr)
{
	pthread_attr_t attr;

	MUST_EQ(pthread_attr_init(&attr), 0);
	MUST_EQ(pthread_attr_setstacksize(&attr, STACK), 0);
	for (; c->nr < nr; c->nr++)
		MUST_EQ(pthread_create(&c->sleeper[c->nr], &attr,
				       c->nr % 4 == 3 ? want_none : want_more,
				       c), 0);
	pthread_attr_destroy(&attr);
	await_waiting(c, nr);
}

/* The fastest of some: others have waited for a CPU. */
static uint64_t write_ns(struct crowd *c)
{
	uint64_t best = UINT64_MAX, start, took;
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < WRITES; i++) {
		start = now_ns();
		put_byte(c->fd[1]);
		took = now_ns() - start;
		best = took < best ? took : best;
		MUST_EQ(kevent_ring_next(c->q.ring, c->q.size, &ev), 1);
		take_bytes(c->fd[0]);
	}
	return best;
}

static void wake_up_takes_no_longer_with_sleepers(void)
{
	struct crowd *c = calloc(1, sizeof(*c));
	uint64_t few, many;
	unsigned int i;

	MUST(c);
	open_queue(&c->q, 2 * WANTED);
	open_pipe(c->fd);
	MUST_EQ(add_pipe(c->q.fd, c->fd[0], RECV, ET, 0), 0);
	/* The first one decides that events go to the ring. */
	add_sleepers(c, 1);
	add_sleepers(c, FEW);
	few = write_ns(c);
	add_sleepers(c, MANY);
	/* On a busy host it takes longer now and then, but not for ever. */
	i = 0;
	do {
		many = write_ns(c);
	} while (many >= 3 * few + 20000 && ++i < TRIES);
	note("write(): %llu ns with %u sleepers, %llu with %u",
	     (unsigned long long)few, FEW, (unsigned long long)many, MANY);
	CHECK(many < 3 * few + 20000);
	await_waiting(c, 0);
	for (i = 0; i < MANY; i++)
		pthread_join(c->sleeper[i], NULL);
	close_queue(&c->q);
	free(c);
}

static const struct test_case cases[] = {
	TEST_LIMIT(each_call_reports_what_is_ready, 60),
	TEST_SIZE(hang_up_is_seen_at_once, run_hangups, 0, 60),
	TEST_SIZE(hang_up_is_seen_at_once_beside_a_ring, run_hangups, 8, 60),
	TEST_LIMIT(waits_take_their_time_while_clocks_are_set, 60),
	TEST_LIMIT(wake_up_takes_no_longer_with_sleepers, 60),
	{}
};

const struct test_suite races_promises_suite = {
	.name = "races_promises",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
