// SPDX-License-Identifier: GPL-2.0
/*
 * kevent_wait_arg.max_running: at most so many of a queue's threads run
 *
 *	A runs		B waits, event		B sleeps on
 *	A blocks				B returns with it
 *	A goes on	B runs			both run; the next wait of one parks
 *
 * A thread that runs spins in user mode until the main thread of the test tells it what to
 * do. That B sleeps on is no matter of time: the kernel says that it is parked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

#define SIZE	16
#define BYTES	4096
#define NR	4
#define MARKS	8

struct worker;
typedef long (*order_t)(struct worker *w);

/* A thread that does what it is told, and spins in between */
struct worker {
	struct actor		actor;
	struct queue		*q;
	uint32_t		max;
	int64_t			ms;	/* < 0: without a limit */
	int			pipe[2];
	_Atomic(order_t)	order;
	long			ret;	/* of the newest order */
	bool			seen;	/* by one_more() */
	pid_t			child;
	_Atomic int		quit;
};

/* What a test has, in memory that children share */
struct team {
	struct queue		q;
	_Atomic int		stop;
	struct worker		w[NR];
};

/* Waits for what is unread, takes one: its ptr, 0 after a timeout or request, -errno */
static long wait_for_event(struct queue *q, uint32_t max, int64_t ms)
{
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.max_running = max,
	};
	struct timespec ts = ms_to_timespec(ms < 0 ? 0 : ms);
	struct ukevent ev;
	uint64_t uidx;
	int ret;

	for (;;) {
		uidx = __atomic_load_n(&q->ring->ring_uidx, __ATOMIC_ACQUIRE);
		ret = kevent_wait(q->fd, 1, (uint32_t)uidx,
				  ms < 0 ? NULL : &ts, KEVENT_FLAGS_ARG, &arg);
		if (ret <= 0)
			return ret;
		/* Another thread may have been faster. */
		if (kevent_ring_pop(q->ring, q->size, &ev, 1))
			return (long)ev.ptr;
	}
}

static long waits(struct worker *w)
{
	return wait_for_event(w->q, w->max, w->ms);
}

static long blocks(struct worker *w)
{
	char byte;

	return read(w->pipe[0], &byte, 1);
}

static long forks(struct worker *w)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			;
	w->child = pid;
	return pid;
}

static long ends(struct worker *w)
{
	atomic_store(&w->quit, 1);
	return 0;
}

static long work(void *arg)
{
	struct worker *w = arg;
	order_t order;

	while (!atomic_load(&w->quit)) {
		order = atomic_load(&w->order);
		if (!order) {
			sched_yield();
			continue;
		}
		w->ret = order(w);
		atomic_store(&w->order, NULL);
	}
	return 0;
}

static void tell(struct worker *w, order_t order)
{
	atomic_store(&w->order, order);
}

static bool is_done(struct worker *w)
{
	return !atomic_load(&w->order);
}

/* The result of an order, which must come */
static long result(struct worker *w)
{
	uint64_t start = now_ns();

	while (!is_done(w))
		MUST(patient(start, PATIENCE_MS));
	return w->ret;
}

/*
 * The next one that is done with its first order, which must come. Of several that were
 * woken any may be faster, and take the event or the place.
 */
static struct worker *one_more(struct team *t)
{
	uint64_t start = now_ns();
	unsigned int i;

	for (;;) {
		for (i = 0; i < NR; i++) {
			if (t->w[i].seen || !is_done(&t->w[i]))
				continue;
			t->w[i].seen = true;
			return &t->w[i];
		}
		MUST(patient(start, PATIENCE_MS));
	}
}

/* All that are done were returned by one_more(). */
static bool no_more(struct team *t)
{
	unsigned int i;

	for (i = 0; i < NR; i++)
		if (!t->w[i].seen && is_done(&t->w[i]))
			return false;
	return true;
}

static void let_read_return(struct worker *w)
{
	put_byte(w->pipe[1]);
}

/* A number of fdinfo that must come */
static bool comes_to(struct team *t, const char *key, long long nr)
{
	uint64_t start = now_ns();

	while (fdinfo(t->q.fd, key) != nr)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

static bool parked(struct team *t, long long nr)
{
	return comes_to(t, "kevent-parked", nr);
}

/* One or more: another one may have been woken for an event that others took. */
static bool one_is_parked(struct team *t)
{
	uint64_t start = now_ns();

	while (fdinfo(t->q.fd, "kevent-parked") <= 0)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

static bool running(struct team *t, long long nr)
{
	return comes_to(t, "kevent-running", nr);
}

/* So many threads wait, parked or not. */
static bool waiting(struct team *t, long long nr)
{
	uint64_t start = now_ns();

	while (fdinfo(t->q.fd, "kevent-parked") +
	       fdinfo(t->q.fd, "kevent-waiting") != nr)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

static void mark(struct team *t, uint64_t id)
{
	MUST_EQ(mark_user(t->q.fd, id, 1), 1);
}

/*
 * A pipe in the queue, and a process without the ring that writes there when it is told:
 * the event waits in the kernel. It is there before threads run: fork() may block them.
 */
struct outside {
	int	fd[2], tell[2];
	pid_t	pid;
};

static int write_when_told(void *arg)
{
	struct outside *o = arg;
	char byte;

	close(o->tell[1]);
	while (read(o->tell[0], &byte, 1) == 1)
		put_byte(o->fd[1]);
	return 0;
}

static void open_outside(struct outside *o)
{
	open_pipe(o->fd);
	MUST_EQ(pipe2(o->tell, O_CLOEXEC), 0);
	o->pid = start_child(write_when_told, o);
}

static void add_outside(struct team *t, struct outside *o, uint64_t user)
{
	MUST_EQ(add_pipe(t->q.fd, o->fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET,
			 user), 0);
}

/* Returns when the byte is there. */
static void write_outside(struct outside *o)
{
	struct pollfd p = { .fd = o->fd[0], .events = POLLIN };

	put_byte(o->tell[1]);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
}

static void close_outside(struct outside *o)
{
	close(o->tell[1]);
	CHECK_EQ(join_child(o->pid, PATIENCE_MS), 0);
	close(o->tell[0]);
	close(o->fd[0]);
	close(o->fd[1]);
}

/* Threads 0 to @nr - 1 spin; the limit is @max, and the watches 1 to MARKS are there. */
static struct team *open_team(unsigned int nr, uint32_t max)
{
	struct team *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	MUST(t != MAP_FAILED);
	t->q.size = SIZE;
	t->q.bytes = BYTES;
	t->q.ring = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(t->q.ring != MAP_FAILED);
	t->q.fd = kevent_init(t->q.ring, SIZE, init_flags);
	MUST(t->q.fd >= 0);
	for (i = 1; i <= MARKS; i++)
		MUST_EQ(add_user(t->q.fd, i, 1, 0, i), 0);
	for (i = 0; i < nr; i++) {
		t->w[i].q = &t->q;
		t->w[i].max = max;
		t->w[i].ms = -1;
		MUST_EQ(pipe2(t->w[i].pipe, O_CLOEXEC), 0);
		start_actor(&t->w[i].actor, work, &t->w[i]);
	}
	return t;
}

static void request(struct team *t)
{
	MUST_EQ(kevent_ctl(t->q.fd, KEVENT_CTL_READY, 0, NULL), 0);
}

/* Ends a thread, whatever it waits for. */
static void end(struct team *t, struct worker *w)
{
	uint64_t start = now_ns();

	while (!is_done(w)) {
		MUST(patient(start, PATIENCE_MS));
		request(t);
		sched_yield();
	}
	tell(w, ends);
	join_actor(&w->actor, PATIENCE_MS);
	close(w->pipe[0]);
	close(w->pipe[1]);
}

static void close_team(struct team *t, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		end(t, &t->w[i]);
	close_queue(&t->q);
	munmap(t, sizeof(*t));
}

/* Has it sleep among the consumers: nothing is there. */
static void sleeps(struct worker *w)
{
	tell(w, waits);
	MUST(sleeps_in(w->actor.tid, __NR_kevent_wait));
}

/* @w runs: it has taken an event. */
static void runs(struct team *t, struct worker *w, uint64_t id)
{
	tell(w, waits);
	mark(t, id);
	MUST_EQ(result(w), (long)id);
}

/* The limit */

static void one_runs_and_others_wait(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	sleeps(c);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-parked"), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-max-running"), 1);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	/* B is woken, and parks. C need not be woken for the next one. */
	mark(t, 2);
	CHECK(parked(t, 1));
	CHECK(sleeps_in(b->actor.tid, __NR_kevent_wait));
	mark(t, 3);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-waiting"), 1);
	CHECK(!is_done(b) && !is_done(c));
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	tell(a, waits);
	CHECK_EQ(result(a), 2);
	CHECK(!is_done(b) && !is_done(c));
	tell(a, waits);
	CHECK_EQ(result(a), 3);
	close_team(t, 3);
}

static void one_that_blocks_makes_room(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	mark(t, 2);
	CHECK(parked(t, 1));
	mark(t, 3);
	tell(a, blocks);
	CHECK_EQ(result(b), 2);
	/* What B has left may have C look, and park. */
	CHECK(waiting(t, 1));
	CHECK(!is_done(a) && !is_done(c));
	CHECK(running(t, 1));
	/* Now both run: nobody waits for its place. */
	let_read_return(a);
	CHECK_EQ(result(a), 1);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 2);
	tell(a, waits);
	CHECK(waiting(t, 2));
	CHECK(!is_done(a));
	/* B has its place, and takes what is there. */
	tell(b, waits);
	CHECK_EQ(result(b), 3);
	CHECK(!is_done(a) && !is_done(c));
	/* B finds nothing: A is let go, finds nothing, and sleeps. */
	sleeps(b);
	CHECK(parked(t, 0));
	CHECK(running(t, 0));
	close_team(t, 3);
}

/* The event waits in the kernel: it was made by a process without the ring. */
static void event_in_the_kernel_is_not_left(void)
{
	struct worker *a, *b;
	struct outside o;
	struct team *t;

	open_outside(&o);
	t = open_team(2, 1);
	a = &t->w[0];
	b = &t->w[1];
	add_outside(t, &o, 77);
	sleeps(a);
	sleeps(b);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	write_outside(&o);
	CHECK(parked(t, 1));
	CHECK(!is_done(b));
	tell(a, blocks);
	CHECK_EQ(result(b), 77);
	let_read_return(a);
	close_team(t, 2);
	close_outside(&o);
}

static void two_run_with_a_limit_of_two(void)
{
	struct team *t = open_team(NR, 2);
	struct worker *a, *b, *c;
	unsigned int i;

	for (i = 0; i < NR; i++)
		sleeps(&t->w[i]);
	for (i = 1; i <= 2; i++)
		mark(t, i);
	a = one_more(t);
	b = one_more(t);
	CHECK_EQ(a->ret + b->ret, 3);
	mark(t, 3);
	CHECK(one_is_parked(t));
	mark(t, 4);
	CHECK(no_more(t));
	tell(a, blocks);
	c = one_more(t);
	CHECK_EQ(c->ret, 3);
	CHECK(no_more(t));
	tell(b, blocks);
	CHECK_EQ(one_more(t)->ret, 4);
	let_read_return(a);
	let_read_return(b);
	close_team(t, NR);
}

/*
 * Nobody is woken for the second event, as one is parked. When that one is let go, and
 * takes the first event, another one has to park in its place: nothing but the ring
 * knows of the second event.
 */
static void one_that_is_let_go_is_replaced(void)
{
	struct team *t = open_team(4, 2);
	const struct timespec now = {};
	unsigned int i;

	for (i = 11; i <= 14; i++)
		MUST_EQ(add_user(t->q.fd, i, 1, KEVENT_REQ_ET, i), 0);
	for (i = 0; i < 4; i++)
		sleeps(&t->w[i]);
	for (i = 0; i < 2; i++) {
		mark(t, 11 + i);
		CHECK_EQ(result(&t->w[i]), 11 + i);
	}
	mark(t, 13);
	CHECK(parked(t, 1));
	mark(t, 14);
	/* All that is ready is in the ring now. */
	CHECK(kevent_wait(t->q.fd, SIZE, 0, &now, 0, NULL) > 0);
	tell(&t->w[0], blocks);
	CHECK_EQ(result(&t->w[2]), 13);
	CHECK(parked(t, 1));
	tell(&t->w[1], blocks);
	CHECK_EQ(result(&t->w[3]), 14);
	let_read_return(&t->w[0]);
	let_read_return(&t->w[1]);
	close_team(t, 4);
}

static void raised_limit_lets_all_go(void)
{
	struct team *t = open_team(4, 1);
	unsigned int i;

	runs(t, &t->w[0], 1);
	for (i = 1; i < 4; i++) {
		tell(&t->w[i], waits);
		CHECK(parked(t, i));
	}
	t->w[0].max = 4;
	t->w[0].ms = 0;
	for (i = 1; i <= 4; i++)
		mark(t, i);
	tell(&t->w[0], waits);
	for (i = 0; i < 4; i++)
		CHECK(result(&t->w[i]) > 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 4);
	/* A lower one holds from the next wait on. */
	t->w[0].max = 1;
	tell(&t->w[0], waits);
	CHECK_EQ(result(&t->w[0]), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-max-running"), 1);
	mark(t, 5);
	tell(&t->w[1], waits);
	CHECK(parked(t, 1));
	CHECK(!is_done(&t->w[1]));
	close_team(t, 4);
}

/* Ends of a wait */

static void parked_one_has_its_timeout(void)
{
	struct worker *a, *b;
	struct outside o;
	struct team *t;
	uint64_t start = now_ns();

	open_outside(&o);
	t = open_team(2, 1);
	a = &t->w[0];
	b = &t->w[1];
	add_outside(t, &o, 77);
	runs(t, a, 1);
	/* In the kernel: what is in the ring is there for all. */
	write_outside(&o);
	b->ms = 30;
	tell(b, waits);
	CHECK_EQ(result(b), 0);
	CHECK(now_ns() - start >= 30000000);
	b->ms = 0;
	tell(b, waits);
	CHECK_EQ(result(b), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-parked"), 0);
	/* It runs, whatever the limit says, and so does A. */
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 2);
	tell(b, blocks);
	CHECK(running(t, 1));
	tell(a, waits);
	CHECK_EQ(result(a), 77);
	let_read_return(b);
	close_team(t, 2);
	close_outside(&o);
}

static void parked_one_is_interrupted(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	catch_signal(SIGUSR1);
	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	MUST_EQ(pthread_kill(b->actor.thread, SIGUSR1), 0);
	CHECK_EQ(result(b), -EINTR);
	close_team(t, 2);
}

/* Returns what the worker returns, which was woken for an event and has a signal. */
static long interrupt_with_event(struct team *t, struct worker *a)
{
	MUST_EQ(add_user(t->q.fd, 11, 1, KEVENT_REQ_ONESHOT, 11), 0);
	sleeps(a);
	/* Now the main thread runs, as far as the limit knows. */
	CHECK_EQ(wait_for_event(&t->q, 1, 0), 0);
	go_first();
	mark(t, 11);
	MUST_EQ(pthread_kill(a->actor.thread, SIGUSR1), 0);
	go_as_others();
	return result(a);
}

/*
 * It was woken for the event, and is interrupted before it parks. If the main thread has
 * blocked meanwhile, the worker had its place and takes the event.
 */
static void event_of_an_interrupted_one_is_told(void)
{
	unsigned int tries = 0;
	struct worker *a;
	struct team *t;

	catch_signal(SIGUSR1);
	share_cpu();
	t = open_team(1, 1);
	a = &t->w[0];
	while (interrupt_with_event(t, a) != -EINTR)
		MUST(++tries < 100);
	CHECK(t->q.ring->ring_flags & KEVENT_RING_MORE);
	CHECK_EQ(wait_for_event(&t->q, 0, 0), 11);
	leave_cpu();
	close_team(t, 1);
}

/* Requests stop threads one by one, as far as they wait. */
static void parked_one_hears_a_request(void)
{
	struct team *t = open_team(4, 1);
	unsigned int i;

	runs(t, &t->w[0], 1);
	for (i = 1; i < 4; i++)
		tell(&t->w[i], waits);
	MUST(parked(t, 3));
	for (i = 1; i < 4; i++)
		request(t);
	for (i = 1; i < 4; i++)
		CHECK_EQ(result(&t->w[i]), 0);
	/* Nobody waits: the next one that does returns. */
	request(t);
	tell(&t->w[1], waits);
	CHECK_EQ(result(&t->w[1]), 0);
	tell(&t->w[1], waits);
	CHECK(parked(t, 1));
	close_team(t, 4);
}

/* An event for which a parked thread was woken is not lost when its wait ends. */
static void timeout_of_a_parked_one_hands_on(void)
{
	struct worker *a, *b, *c;
	struct outside o;
	struct team *t;

	open_outside(&o);
	t = open_team(3, 1);
	a = &t->w[0];
	b = &t->w[1];
	c = &t->w[2];
	add_outside(t, &o, 77);
	sleeps(a);
	b->ms = 4000;	/* until the event is there */
	sleeps(b);
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	write_outside(&o);
	CHECK(parked(t, 1));
	CHECK_EQ(result(b), 0);
	/* Now C looks for it, and parks. */
	CHECK(parked(t, 1));
	CHECK(!is_done(c));
	tell(b, blocks);
	tell(a, blocks);
	CHECK_EQ(result(c), 77);
	let_read_return(a);
	let_read_return(b);
	close_team(t, 3);
	close_outside(&o);
}

static void min_nr_is_waited_for(void)
{
	struct team *t = open_team(2, 1);
	struct kevent_wait_arg arg = {
		.size = sizeof(arg), .clockid = CLOCK_MONOTONIC,
		.max_running = 1, .min_nr = 3, .min_wait_ns = 1000000,
	};
	struct timespec ts = ms_to_timespec(50);

	runs(t, &t->w[0], 1);
	/* The time after which one is enough does not let the thread go on. */
	mark(t, 2);
	CHECK_EQ(kevent_wait(t->q.fd, SIZE, (uint32_t)t->q.ring->ring_kidx, &ts,
			     KEVENT_FLAGS_ARG, &arg), 0);
	arg.max_running = 2;
	mark(t, 3);
	mark(t, 4);
	CHECK_EQ(kevent_wait(t->q.fd, SIZE, (uint32_t)t->q.ring->ring_uidx, &ts,
			     KEVENT_FLAGS_ARG, &arg), 3);
	CHECK_EQ(kevent_wait(t->q.fd, SIZE, (uint32_t)t->q.ring->ring_kidx - 2,
			     &ts, KEVENT_FLAGS_ARG, &arg), 2);
	/* This thread leaves, and then it waits for its time. */
	ts = ms_to_timespec(1);
	CHECK_EQ(wait_ring(&t->q, SIZE, 1), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	close_team(t, 2);
}

/* Membership */

static void exit_makes_room(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	mark(t, 2);
	CHECK(parked(t, 1));
	tell(a, ends);
	join_actor(&a->actor, PATIENCE_MS);
	CHECK_EQ(result(b), 2);
	tell(b, ends);
	join_actor(&b->actor, PATIENCE_MS);
	CHECK(running(t, 0));
	runs(t, c, 3);
	end(t, c);
	close_queue(&t->q);
}

static int runs_until_killed(void *arg)
{
	struct team *t = arg;

	CHILD_MUST(kevent_ctl(t->q.fd, KEVENT_CTL_ATTACH, SIZE,
			      (void *)t->q.ring) == 0);
	CHILD_MUST(wait_for_event(&t->q, 1, -1) == 1);
	for (;;)
		;
}

static void killed_process_makes_room(void)
{
	struct team *t = open_team(1, 1);
	pid_t pid;

	pid = start_child(runs_until_killed, t);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	mark(t, 1);
	MUST(running(t, 1));
	mark(t, 2);
	tell(&t->w[0], waits);
	MUST(parked(t, 1));
	CHECK(!is_done(&t->w[0]));
	kill(pid, SIGKILL);
	CHECK_EQ(result(&t->w[0]), 2);
	waitpid(pid, NULL, 0);
	CHECK(running(t, 1));
	close_team(t, 1);
}

static int runs_another_program(void *arg)
{
	struct team *t = arg;

	CHILD_MUST(kevent_ctl(t->q.fd, KEVENT_CTL_ATTACH, SIZE,
			      (void *)t->q.ring) == 0);
	CHILD_MUST(wait_for_event(&t->q, 1, -1) == 1);
	while (!atomic_load(&t->stop))
		;
	CHILD_MUST(dup2(t->w[0].pipe[1], 1) == 1);
	exec_and_run();
	return 1;
}

static void exec_makes_room(void)
{
	struct team *t = open_team(1, 1);
	pid_t pid;

	pid = start_child(runs_another_program, t);
	MUST(sleeps_in(pid, __NR_kevent_wait));
	mark(t, 1);
	MUST(running(t, 1));
	mark(t, 2);
	tell(&t->w[0], waits);
	MUST(parked(t, 1));
	atomic_store(&t->stop, 1);
	CHECK_EQ(result(&t->w[0]), 2);
	/* exec may block, but the program has no place when it runs. */
	tell(&t->w[0], blocks);
	CHECK_EQ(result(&t->w[0]), 1);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
	close_team(t, 1);
}

static void child_of_a_member_is_none(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	tell(a, forks);
	MUST(result(a) > 0);
	/* fork() may have blocked for a moment. */
	tell(a, blocks);
	CHECK(parked(t, 0));
	CHECK(running(t, 0));
	mark(t, 2);
	CHECK_EQ(result(b), 2);
	CHECK_EQ(kill(a->child, SIGKILL), 0);
	waitpid(a->child, NULL, 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	let_read_return(a);
	close_team(t, 2);
}

static void member_moves_to_another_queue(void)
{
	struct team *t = open_team(2, 1), *u = open_team(0, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	a->q = &u->q;
	runs(u, a, 3);
	CHECK(parked(t, 0));
	CHECK(running(t, 0));
	CHECK_EQ(fdinfo(u->q.fd, "kevent-running"), 1);
	mark(t, 2);
	CHECK_EQ(result(b), 2);
	/* The queue of a member is closed: it is memory only. */
	close_queue(&u->q);
	a->q = &t->q;
	tell(a, waits);
	CHECK(parked(t, 1));
	close_team(t, 2);
}

static void close_of_the_queue_ends_nothing_else(void)
{
	struct team *t = open_team(2, 1), *u = open_team(0, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	runs(t, a, 2);
	close_queue(&t->q);
	tell(a, blocks);
	let_read_return(a);
	CHECK_EQ(result(a), 1);
	tell(a, ends);
	join_actor(&a->actor, PATIENCE_MS);
	b->q = &u->q;
	runs(u, b, 1);
	end(u, b);
	close_queue(&u->q);
}

static void wait_without_a_limit_ends_membership(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	/* A look at what is there does not. */
	a->max = 0;
	a->ms = 0;
	tell(a, waits);
	CHECK_EQ(result(a), 0);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	a->ms = -1;
	sleeps(a);
	mark(t, 2);
	CHECK_EQ(result(a), 2);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 0);
	runs(t, b, 3);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	close_team(t, 2);
}

static void wait_elsewhere_without_a_limit_is_a_block(void)
{
	struct team *t = open_team(2, 1), *u = open_team(0, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	mark(t, 2);
	a->q = &u->q;
	a->max = 0;
	sleeps(a);
	CHECK_EQ(result(b), 2);
	mark(u, 3);
	CHECK_EQ(result(a), 3);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 2);
	close_team(t, 2);
	close_queue(&u->q);
}

static void consumer_without_a_limit_gets_the_event(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];

	sleeps(a);
	sleeps(b);
	c->max = 0;
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	/* B is woken first, and hands it on. */
	mark(t, 2);
	CHECK_EQ(result(c), 2);
	CHECK(parked(t, 1));
	sleeps(c);
	mark(t, 3);
	CHECK_EQ(result(c), 3);
	CHECK(!is_done(b));
	close_team(t, 3);
}

/* B is woken for an entry in the ring, and hands it on, but not to one with a buffer. */
static void entry_is_for_one_that_waits_for_it(void)
{
	struct team *t = open_team(3, 1);
	struct worker *a = &t->w[0], *b = &t->w[1], *c = &t->w[2];
	struct queue bare = { .fd = t->q.fd };
	struct waiter plain;
	int fd[2];

	open_pipe(fd);
	MUST_EQ(add_pipe(t->q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 20),
		0);
	sleeps(a);
	sleeps(b);
	start_waiter(&plain, &bare, 1);
	c->max = 0;
	sleeps(c);
	mark(t, 1);
	CHECK_EQ(result(a), 1);
	put_byte(fd[1]);
	CHECK_EQ(result(c), 20);
	CHECK(parked(t, 1));
	CHECK(!is_done(b) && waiter_asleep(&plain));
	request(t);
	CHECK_EQ(join_waiter(&plain), 0);
	close_team(t, 3);
}

#ifdef __LP64__
static long serves(struct worker *w)
{
	struct timespec ts = { 0 };

	return raw_kevent(__NR_kevent_wait, w->q->fd, 1, 0, &ts,
			  KEVENT_FLAGS_SERVE, NULL);
}

static void one_that_serves_is_no_member(void)
{
	struct team *t = open_team(2, 1);
	struct worker *a = &t->w[0], *b = &t->w[1];

	runs(t, a, 1);
	tell(b, waits);
	MUST(parked(t, 1));
	mark(t, 2);
	tell(a, serves);
	CHECK_EQ(result(a), 0);
	CHECK_EQ(result(b), 2);
	CHECK_EQ(fdinfo(t->q.fd, "kevent-running"), 1);
	close_team(t, 2);
}
#endif

/* All together */

#define EVENTS	1000
#define THREADS	8
#define MOST	2

struct crowd {
	struct queue	q;
	uint64_t	seed;
	uint32_t	max;	/* the limit, or 0 */
	_Atomic int	in_user;	/* run, as far as they know themselves */
	_Atomic int	unblocked;	/* of these, have blocked since they waited */
	_Atomic int	taken, wrong, most, stop;
	_Atomic int	got[EVENTS + 1];
};

struct one {
	struct actor	actor;
	struct crowd	*crowd;
	unsigned int	nr;
};

static void block_for_a_while(struct crowd *c, bool *blocked)
{
	struct timespec ts = { .tv_nsec = 100000 };

	atomic_fetch_sub(&c->in_user, 1);
	if (*blocked)
		atomic_fetch_sub(&c->unblocked, 1);
	nanosleep(&ts, NULL);
	*blocked = true;
	atomic_fetch_add(&c->unblocked, 1);
	atomic_fetch_add(&c->in_user, 1);
}

static void count_in(struct crowd *c, long id)
{
	int now = atomic_fetch_add(&c->in_user, 1) + 1;

	if (c->max && now - atomic_load(&c->unblocked) > (int)c->max)
		atomic_fetch_add(&c->wrong, 1);
	if (now > atomic_load(&c->most))
		atomic_store(&c->most, now);
	if (id < 1 || id > EVENTS || atomic_fetch_add(&c->got[id], 1))
		atomic_fetch_add(&c->wrong, 1);
	else
		atomic_fetch_add(&c->taken, 1);
}

static long takes_part(void *arg)
{
	struct one *one = arg;
	struct crowd *c = one->crowd;
	uint64_t rnd = c->seed + one->nr;
	bool blocked;
	int i;

	while (!atomic_load(&c->stop)) {
		long id = wait_for_event(&c->q, c->max, -1);

		if (!id)
			continue;
		count_in(c, id);
		blocked = false;
		while (next_random(&rnd) % 2)
			block_for_a_while(c, &blocked);
		for (i = next_random(&rnd) % 50000; i > 0; i--)
			__asm__ volatile("" ::: "memory");
		atomic_fetch_sub(&c->in_user, 1);
		if (blocked)
			atomic_fetch_sub(&c->unblocked, 1);
	}
	return 0;
}

static void open_crowd(struct crowd *c, struct one *all)
{
	int i;

	open_queue(&c->q, 64);
	for (i = 1; i <= EVENTS; i++)
		MUST_EQ(add_user(c->q.fd, i, 1, 0, i), 0);
	for (i = 0; i < THREADS; i++) {
		all[i].crowd = c;
		all[i].nr = i;
		start_actor(&all[i].actor, takes_part, &all[i]);
	}
}

static void close_crowd(struct crowd *c, struct one *all)
{
	uint64_t start = now_ns();
	int i;

	atomic_store(&c->stop, 1);
	for (i = 0; i < THREADS; i++)
		while (!actor_ended(&all[i].actor) &&
		       patient(start, 2 * PATIENCE_MS))
			kevent_ctl(c->q.fd, KEVENT_CTL_READY, 0, NULL);
	for (i = 0; i < THREADS; i++)
		join_actor(&all[i].actor, PATIENCE_MS);
	note("limit %u: at most %d of %d ran, some of them after a block",
	     c->max, c->most, THREADS);
	CHECK_EQ(c->taken, EVENTS);
	CHECK_EQ(c->wrong, 0);
	if (c->max)
		CHECK_EQ(fdinfo(c->q.fd, "kevent-parked"), 0);
	close_queue(&c->q);
}

static void take_all_events(uint32_t max)
{
	static struct one all[THREADS];
	static struct crowd c;
	uint64_t start;
	int i;

	memset(&c, 0, sizeof(c));
	c.seed = test_seed();
	c.max = max;
	open_crowd(&c, all);
	for (i = 1; i <= EVENTS; i++) {
		MUST_EQ(mark_user(c.q.fd, i, 1), 1);
		if (i % 16 == 0)
			sched_yield();
	}
	start = now_ns();
	while (c.taken < EVENTS && patient(start, 2 * PATIENCE_MS))
		;
	close_crowd(&c, all);
}

static void each_event_comes_once(void)
{
	take_all_events(MOST);
	take_all_events(0);
}

static const struct test_case cases[] = {
	TEST(one_runs_and_others_wait),
	TEST(one_that_blocks_makes_room),
	TEST(event_in_the_kernel_is_not_left),
	TEST(two_run_with_a_limit_of_two),
	TEST(one_that_is_let_go_is_replaced),
	TEST(raised_limit_lets_all_go),
	TEST(parked_one_has_its_timeout),
	TEST(parked_one_is_interrupted),
	TEST(event_of_an_interrupted_one_is_told),
	TEST(parked_one_hears_a_request),
	TEST(timeout_of_a_parked_one_hands_on),
	TEST(min_nr_is_waited_for),
	TEST(exit_makes_room),
	TEST(killed_process_makes_room),
	TEST(exec_makes_room),
	TEST(child_of_a_member_is_none),
	TEST(member_moves_to_another_queue),
	TEST(close_of_the_queue_ends_nothing_else),
	TEST(wait_without_a_limit_ends_membership),
	TEST(wait_elsewhere_without_a_limit_is_a_block),
	TEST(consumer_without_a_limit_gets_the_event),
	TEST(entry_is_for_one_that_waits_for_it),
#ifdef __LP64__
	TEST(one_that_serves_is_no_member),
#endif
	TEST(each_event_comes_once),
	{}
};

const struct test_suite max_running_suite = {
	.name = "max_running",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
