// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_REQ_HANDOFF: a wait that first marks a watch of another queue
 *
 *	caller, in its queue		answerer, in the other queue
 *	mark "asked" there, wait	asleep
 *					awake; mark "answered", wait
 *	awake
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "helpers.h"

#define READY	KEVENT_CTL_READY
#define HANDOFF	KEVENT_REQ_HANDOFF
#define ASKED	1
#define ANSWERED 2
#define STOP	4
#define ROUNDS	200

static struct kevent_change mark_of(int fd, uint64_t id, uint32_t bits)
{
	struct kevent_change c = { .cmd = READY, .result = fd };

	kevent_set_user(&c.uk, id, bits, HANDOFF, 0);
	return c;
}

/* What the change says after a call that may wait @ms; *@ret is what that returns. */
static int wait_with(struct queue *q, struct kevent_change *c, int64_t ms,
		     int *ret)
{
	uint64_t kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
	const struct kevent_wait_arg arg = {
		.size = sizeof(arg),
		.clockid = CLOCK_MONOTONIC,
		.changes = (uintptr_t)c,
		.nr_changes = 1,
	};
	const struct timespec ts = ms_to_timespec(ms < 0 ? 0 : ms);

	*ret = kevent_wait(q->fd, q->size, (uint32_t)kidx, ms < 0 ? NULL : &ts,
			   KEVENT_FLAGS_ARG, &arg);
	return c->result;
}

/* Of a change that fails: the wait, which has no limit, returns at once. */
static int refused(struct queue *q, struct kevent_change c)
{
	int ret, result = wait_with(q, &c, -1, &ret);

	CHECK_EQ(ret, 0);
	CHECK_EQ(kevent_error(&c.uk), result);
	return result;
}

struct pair {
	struct queue	caller, answerer;
	struct actor	actor;
	unsigned int	asked;
	int		ran_on;
};

static void open_both(struct pair *p)
{
	*p = (struct pair){};
	open_queue(&p->caller, 8);
	open_queue(&p->answerer, 8);
	MUST_EQ(add_user(p->caller.fd, 0, 0, 0, 0), 0);
	MUST_EQ(add_user(p->answerer.fd, 0, 0, 0, 0), 0);
}

static void close_both(struct pair *p)
{
	close_queue(&p->caller);
	close_queue(&p->answerer);
}

/* The conditions of the next mark, 0 after too long */
static uint32_t next_mark(struct queue *q)
{
	struct ukevent ev;

	return next_event(q, &ev, PATIENCE_MS * slowness) == 1 ?
		ev.ret_data[0] : 0;
}

/* Answers by a mark of the caller's queue and waits, in one call. */
static long answer_marks(void *arg)
{
	struct pair *p = arg;
	struct kevent_change c;
	uint32_t bits;
	int ret;

	while ((bits = next_mark(&p->answerer)) & ASKED) {
		p->asked++;
		p->ran_on = sched_getcpu();
		c = mark_of(p->caller.fd, 0, ANSWERED);
		if (wait_with(&p->answerer, &c, PATIENCE_MS * slowness, &ret))
			return c.result;
		if (ret < 0)
			return ret;
	}
	return bits == STOP ? 0 : -ETIME;
}

static void stop_answerer(struct pair *p)
{
	MUST_EQ(mark_user(p->answerer.fd, 0, STOP), 1);
	join_actor(&p->actor, PATIENCE_MS);
	CHECK_EQ(p->actor.ret, 0);
}

static void ask(struct pair *p)
{
	struct kevent_change c = mark_of(p->answerer.fd, 0, ASKED);
	int ret;

	MUST_EQ(wait_with(&p->caller, &c, PATIENCE_MS * slowness, &ret), 0);
	MUST_EQ(ret, 1);
	MUST_EQ(next_mark(&p->caller), ANSWERED);
}

static void request_and_answer_are_a_call_each(void)
{
	static struct pair p;
	unsigned int i;

	open_both(&p);
	start_actor(&p.actor, answer_marks, &p);
	for (i = 0; i < ROUNDS; i++)
		ask(&p);
	stop_answerer(&p);
	CHECK_EQ(p.asked, ROUNDS);
	close_both(&p);
}

static void run_on(pid_t tid, int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (; first <= last; first++)
		CPU_SET(first, &set);
	MUST_EQ(sched_setaffinity(tid, sizeof(set), &set), 0);
}

static bool wakes_elsewhere(struct pair *p)
{
	run_on(p->actor.tid, 1, 1);
	ask(p);
	MUST_EQ(p->ran_on, 1);
	MUST(sleeps_in(p->actor.tid, __NR_kevent_wait));
	run_on(p->actor.tid, 0, 1);
	ask(p);
	return p->ran_on != 0;
}

/*
 * The answerer has run on the other CPU, and may run on both. The other one is idle:
 * without the request most wake-ups are there.
 */
static void waker_and_woken_share_a_cpu(void)
{
	unsigned int i, elsewhere;
	uint64_t start = now_ns();
	static struct pair p;

	MUST(sysconf(_SC_NPROCESSORS_ONLN) > 1);
	open_both(&p);
	run_on(0, 0, 0);
	start_actor(&p.actor, answer_marks, &p);
	/* A tick may move it before it says where it runs: on a busy host more often. */
	do {
		for (i = elsewhere = 0; i < ROUNDS; i++)
			elsewhere += wakes_elsewhere(&p);
	} while (elsewhere >= ROUNDS / 10 && patient(start, PATIENCE_MS));
	stop_answerer(&p);
	run_on(0, 0, 1);
	note("%u of %u elsewhere", elsewhere, ROUNDS);
	CHECK(elsewhere < ROUNDS / 10);
	close_both(&p);
}

static void eventfd_is_rung(void)
{
	int fd = eventfd(0, EFD_CLOEXEC), ret;
	struct kevent_change c;
	struct queue q, other;
	struct waiter w;
	uint64_t count;

	MUST(fd >= 0);
	open_queue(&q, 8);
	open_queue(&other, 8);
	MUST_EQ(add_poll(other.fd, fd, POLLIN, KEVENT_REQ_ET, 7), 0);
	start_waiter(&w, &other, 8);
	/* The type, and all else, is of no meaning for an eventfd. */
	c = mark_of(fd, 0, 0);
	c.uk.type = 99;
	CHECK_EQ(wait_with(&q, &c, 0, &ret), 0);
	CHECK_EQ(ret, 0);
	CHECK_EQ(c.uk.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(join_waiter(&w), 1);
	MUST_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	CHECK_EQ(count, 1);
	close(fd);
	close_queue(&q);
	close_queue(&other);
}

/* A write() would sleep, for as long as the one who filled the counter likes. */
static void full_eventfd_blocks_nobody(void)
{
	uint64_t most = ULLONG_MAX - 1;
	struct kevent_change c;
	struct queue q;
	int fd = eventfd(0, EFD_CLOEXEC), ret;

	MUST(fd >= 0);
	MUST_EQ(write(fd, &most, sizeof(most)), sizeof(most));
	open_queue(&q, 8);
	c = mark_of(fd, 0, 0);
	CHECK_EQ(wait_with(&q, &c, 0, &ret), 0);
	c = mark_of(fd, 0, 0);
	CHECK_EQ(wait_with(&q, &c, 0, &ret), 0);
	close(fd);
	close_queue(&q);
}

static void what_cannot_be_marked_is_an_error(void)
{
	struct kevent_change c;
	struct queue q, other;
	int fd[2];

	open_queue(&q, 8);
	open_queue(&other, 8);
	open_pipe(fd);
	MUST_EQ(add_user(other.fd, 0, 1, 0, 0), 0);
	CHECK_EQ(refused(&q, mark_of(-1, 0, 1)), -EBADF);
	CHECK_EQ(refused(&q, mark_of(1000, 0, 1)), -EBADF);
	CHECK_EQ(refused(&q, mark_of(fd[0], 0, 1)), -EINVAL);
	CHECK_EQ(refused(&q, mark_of(other.fd, 5, 1)), -ENOENT);
	CHECK_EQ(refused(&q, mark_of(other.fd, 0, 2)), -EINVAL);
	c = mark_of(other.fd, 0, 1);
	c.uk.type = 99;
	CHECK_EQ(refused(&q, c), -EINVAL);
	CHECK_NO_EVENT(&other);
	close_queue(&q);
	close_queue(&other);
}

/* As with kevent_ctl(), it is the queue with the watch that refuses. */
static void refusals_are_those_of_the_other_queue(void)
{
	struct queue q, other;
	struct kevent_change c;
	int ret;

	open_refusing(&q, KEVENT_INIT_REFUSE_READY);
	open_queue(&other, 8);
	MUST_EQ(add_user(other.fd, 0, 1, 0, 7), 0);
	c = mark_of(other.fd, 0, 1);
	CHECK_EQ(wait_with(&q, &c, 0, &ret), 0);
	MUST_EQ(next_mark(&other), 1);
	close_queue(&other);
	open_refusing(&other, KEVENT_INIT_REFUSE_READY);
	MUST_EQ(add_user(other.fd, 0, 1, 0, 7), 0);
	CHECK_EQ(refused(&q, mark_of(other.fd, 0, 1)), -EPERM);
	CHECK_NO_EVENT(&other);
	close_queue(&q);
	close_queue(&other);
}

/* With kevent_ctl() the queue is the one of the call. */
static void ctl_may_ask_for_it_too(void)
{
	struct ukevent ev;
	struct waiter w;
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 3, 1, 0, 7), 0);
	start_waiter(&w, &q, 8);
	kevent_set_user(&ev, 3, 1, HANDOFF, 0);
	CHECK_EQ(kevent_ctl(q.fd, READY, 1, &ev), 1);
	CHECK_EQ(join_waiter(&w), 1);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(ev.req_flags, 0);
	/* It says how to wake, not what to watch. */
	CHECK_EQ(add_user(q.fd, 4, 1, HANDOFF, 0), -EINVAL);
	kevent_set_user(&ev, 3, 1, HANDOFF, 0);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), -EINVAL);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(request_and_answer_are_a_call_each),
	TEST(waker_and_woken_share_a_cpu),
	TEST(eventfd_is_rung),
	TEST(full_eventfd_blocks_nobody),
	TEST(what_cannot_be_marked_is_an_error),
	TEST(refusals_are_those_of_the_other_queue),
	TEST(ctl_may_ask_for_it_too),
	{}
};

const struct test_suite handoff_suite = {
	.name = "handoff",
	.cases = cases,
};
