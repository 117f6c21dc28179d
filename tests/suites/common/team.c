// SPDX-License-Identifier: GPL-2.0
/* Threads that wait on one queue with kevent_wait_arg.max_running */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "team.h"

#define BYTES	4096

#define MARKS	8

/* Waits for what is unread, takes one: its ptr, 0 after a timeout or request, -errno */
long wait_for_event(struct queue *q, uint32_t max, int64_t ms)
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

long waits(struct worker *w)
{
	return wait_for_event(w->q, w->max, w->ms);
}

long blocks(struct worker *w)
{
	char byte;

	return read(w->pipe[0], &byte, 1);
}

long forks(struct worker *w)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			;
	w->child = pid;
	return pid;
}

long ends(struct worker *w)
{
	atomic_store(&w->quit, 1);
	return 0;
}

long work(void *arg)
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

void tell(struct worker *w, order_t order)
{
	atomic_store(&w->order, order);
}

bool is_done(struct worker *w)
{
	return !atomic_load(&w->order);
}

/* The result of an order, which must come */
long result(struct worker *w)
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
struct worker *one_more(struct team *t)
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
bool no_more(struct team *t)
{
	unsigned int i;

	for (i = 0; i < NR; i++)
		if (!t->w[i].seen && is_done(&t->w[i]))
			return false;
	return true;
}

void let_read_return(struct worker *w)
{
	put_byte(w->pipe[1]);
}

/* A number of fdinfo that must come */
bool comes_to(struct team *t, const char *key, long long nr)
{
	uint64_t start = now_ns();

	while (fdinfo(t->q.fd, key) != nr)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

bool parked(struct team *t, long long nr)
{
	return comes_to(t, "kevent-parked", nr);
}

/* One or more: another one may have been woken for an event that others took. */
bool one_is_parked(struct team *t)
{
	uint64_t start = now_ns();

	while (fdinfo(t->q.fd, "kevent-parked") <= 0)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

bool running(struct team *t, long long nr)
{
	return comes_to(t, "kevent-running", nr);
}

/* So many threads wait, parked or not. */
bool waiting(struct team *t, long long nr)
{
	uint64_t start = now_ns();

	while (fdinfo(t->q.fd, "kevent-parked") +
	       fdinfo(t->q.fd, "kevent-waiting") != nr)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

void mark(struct team *t, uint64_t id)
{
	MUST_EQ(mark_user(t->q.fd, id, 1), 1);
}

int write_on_request(void *arg)
{
	struct outside *o = arg;
	char byte;

	close(o->tell[1]);
	while (read(o->tell[0], &byte, 1) == 1)
		put_byte(o->fd[1]);
	return 0;
}

void open_outside(struct outside *o)
{
	open_pipe(o->fd);
	MUST_EQ(pipe2(o->tell, O_CLOEXEC), 0);
	o->pid = start_child(write_on_request, o);
}

void add_outside(struct team *t, struct outside *o, uint64_t user)
{
	MUST_EQ(add_pipe(t->q.fd, o->fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET,
			 user), 0);
}

/* Returns when the byte is there. */
void write_outside(struct outside *o)
{
	struct pollfd p = { .fd = o->fd[0], .events = POLLIN };

	put_byte(o->tell[1]);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
}

void close_outside(struct outside *o)
{
	close(o->tell[1]);
	CHECK_EQ(join_child(o->pid, PATIENCE_MS), 0);
	close(o->tell[0]);
	close(o->fd[0]);
	close(o->fd[1]);
}

/* Threads 0 to @nr - 1 spin; the limit is @max, and the watches 1 to MARKS are there. */
struct team *open_team(unsigned int nr, uint32_t max)
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

void request(struct team *t)
{
	MUST_EQ(kevent_ctl(t->q.fd, KEVENT_CTL_READY, 0, NULL), 0);
}

/* Ends a thread, whatever it waits for. */
void end(struct team *t, struct worker *w)
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

void close_team(struct team *t, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		end(t, &t->w[i]);
	close_queue(&t->q);
	munmap(t, sizeof(*t));
}

/* Has it sleep among the consumers: nothing is there. */
void sleeps(struct worker *w)
{
	tell(w, waits);
	MUST(sleeps_in(w->actor.tid, __NR_kevent_wait));
}

/* @w runs: it has taken an event. */
void runs(struct team *t, struct worker *w, uint64_t id)
{
	tell(w, waits);
	mark(t, id);
	MUST_EQ(result(w), (long)id);
}
