// SPDX-License-Identifier: GPL-2.0
/*
 * Chains race with cancellation, signals, memory that goes away, descriptors that are
 * closed, exec and exit. Each chain that was submitted has one event.
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#ifdef __LP64__	/* a chain of a 32-bit program is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "aio.h"
#include "storm.h"

#define SUBMITTERS	2
#define SERVERS		3
#define CHAINS		64	/* of a submitter, under way at once */
#define ENTRIES		6

/* A chain that is under way, or free */
struct slot {
	struct kevent_call	*c;	/* a page of its own */
	_Atomic int		busy;	/* submitted, and no event yet */
};

struct chains {
	int		pipe[2];
	struct slot	slots[SUBMITTERS][CHAINS];
	_Atomic long	submitted;
	_Atomic long	cancelled;
	_Atomic long	ended;
};

/* A call of any kind: short, one that waits for another, one that is refused */
static struct kevent_call random_entry(struct chains *s, uint64_t *rnd)
{
	static char buf[PAGE];

	switch (next_random(rnd) % 8) {
	case 0:
		return entry(SYS_read, s->pipe[0], KEVENT_ARG(buf), 1);
	case 1:
		return entry(SYS_write, s->pipe[1], KEVENT_ARG(buf), 1);
	case 2:
		return entry(SYS_openat, AT_FDCWD, KEVENT_ARG("/"), O_RDONLY);
	case 3:
		return entry(SYS_fsync, s->pipe[0], 0, 0);
	case 4:
		return BACK(SYS_lseek, 1 + next_random(rnd) % ENTRIES, 0, 0);
	case 5:
		return next_random(rnd) % 64 ? entry(SYS_getpid, 0, 0, 0) :
					       entry(SYS_clone, 0, 0, 0);
	default:
		return entry(SYS_getppid, 0, 0, 0);
	}
}

/* What is opened is closed, so that descriptors do not run out. */
static void build(struct chains *s, struct kevent_call *c, uint64_t *rnd)
{
	unsigned int i;

	for (i = 0; i < ENTRIES; i++)
		c[i] = random_entry(s, rnd);
	for (i = 0; i < ENTRIES; i++)
		if (c[i].nr == SYS_openat)
			c[i] = entry(SYS_faccessat, AT_FDCWD, KEVENT_ARG("/"), 0);
}

static long submit_somehow(struct storm *s, struct kevent_call *c, uint64_t cookie,
			   uint64_t *rnd)
{
	struct ukevent uk;
	long ret;

	if (next_random(rnd) % 2)
		return submit(s->q.fd, c, ENTRIES, cookie);
	set_chain(&uk, c, ENTRIES, cookie);
	ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &uk);
	return ret ? ret : (long)SUBMITTED;
}

static void cancel(struct storm *s, uint64_t cookie)
{
	struct ukevent uk = { .type = KEVENT_AIO, .ptr = cookie };
	int ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_REMOVE, &uk);
	struct chains *c = s->world;

	storm_expect(s, !ret || ret == -EALREADY || ret == -ENOENT);
	if (!ret)
		atomic_fetch_add(&c->cancelled, 1);
}

/* Takes the memory of a chain away for a moment, whoever uses it. */
static void shake(struct kevent_call *c)
{
	mprotect(c, PAGE, PROT_NONE);
	sched_yield();
	mprotect(c, PAGE, PROT_READ | PROT_WRITE);
}

static void submit_one(struct stormer *me, unsigned int i)
{
	struct chains *c = me->storm->world;
	struct slot *slot = &c->slots[me->nr][i];
	long ret;

	build(c, slot->c, &me->rnd);
	atomic_store(&slot->busy, 1);
	atomic_fetch_add(&c->submitted, 1);
	ret = submit_somehow(me->storm, slot->c, (uint64_t)me->nr << 32 | i,
			     &me->rnd);
	if (ret == SUBMITTED)
		return;
	/* It ended in the call, and no event comes. */
	storm_expect(me->storm, ret >= 0 && atomic_exchange(&slot->busy, 0));
	atomic_fetch_add(&c->ended, 1);
}

static void submit_or_cancel(struct stormer *me)
{
	unsigned int i = next_random(&me->rnd) % CHAINS;
	struct chains *c = me->storm->world;
	struct slot *slot = &c->slots[me->nr][i];

	if (!atomic_load(&slot->busy))
		submit_one(me, i);
	else if (next_random(&me->rnd) % 4)
		cancel(me->storm, (uint64_t)me->nr << 32 | i);
	else if (!(next_random(&me->rnd) % 64))
		shake(slot->c);
	else
		sched_yield();
}

static void serve_some(struct stormer *me)
{
	long ret = serve(me->storm->q.fd, 1 + me->nr % 2, 2);

	storm_expect(me->storm, ret >= 0 || ret == -EINTR);
}

static void account(struct storm *s, const struct ukevent *ev)
{
	unsigned int nr = ev->ptr >> 32, i = (uint32_t)ev->ptr;
	struct chains *c = s->world;

	if (ev->type != KEVENT_AIO || nr >= SUBMITTERS || i >= CHAINS ||
	    !atomic_exchange(&c->slots[nr][i].busy, 0))
		storm_expect(s, false);
	else
		atomic_fetch_add(&c->ended, 1);
}

/* Readers of the pipe go on, and writers: at the end nobody waits for ever. */
static void stir(struct storm *s)
{
	struct stormer *servers = &s->stormers[SUBMITTERS];
	int fd, end = next_random(&s->seed) % 2;
	struct chains *c = s->world;
	char buf[256] = "", path[40];

	if (next_random(&s->seed) % 4 == 0) {
		pthread_kill(servers[next_random(&s->seed) % SERVERS].actor.thread,
			     SIGUSR1);
		return;
	}
	/* An open file of its own, which does not wait: that of the servers does. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->pipe[end]);
	fd = open(path, (end ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (end)
		(void)!write(fd, buf, 16);
	else
		(void)!read(fd, buf, sizeof(buf));
	close(fd);
}

static void open_chains(struct chains *c)
{
	char *pages = mmap(NULL, SUBMITTERS * CHAINS * PAGE,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	unsigned int i;

	MUST(pages != MAP_FAILED);
	catch_signal(SIGUSR1);
	open_blocking_pipe(c->pipe);
	for (i = 0; i < SUBMITTERS * CHAINS; i++)
		c->slots[i / CHAINS][i % CHAINS].c = (void *)(pages + i * PAGE);
}

static bool one_is_cancelled(const struct storm *s)
{
	return ((struct chains *)s->world)->cancelled > 0;
}

static void each_chain_ends_once(void)
{
	static struct chains c;
	struct storm s = { .world = &c, .account = account, .enough = one_is_cancelled };
	uint64_t start;

	open_chains(&c);
	open_queue(&s.q, 64);
	storm_begin(&s);
	storm_workers(&s, SUBMITTERS, submit_or_cancel);
	storm_helpers(&s, SERVERS, serve_some);
	storm_run(&s, stir);
	start = now_ns();
	while (c.ended != c.submitted && patient(start, 2 * PATIENCE_MS)) {
		storm_drain(&s);
		stir(&s);
	}
	storm_end(&s, stir);
	note("%ld chains, %ld cancelled", c.submitted, c.cancelled);
	CHECK_EQ(c.ended, c.submitted);
	CHECK(one_is_cancelled(&s));
	CHECK_NO_EVENT(&s.q);
	storm_close(&s, 0);
	close_pair(c.pipe);
}

/* Ends */

struct mortal {
	struct queue	*q;
	uint64_t	rnd;
};

static long serve_until_the_end(void *arg)
{
	for (;;)
		serve(*(int *)arg, 2, -1);
	return 0;
}

/* Leaves chains that run and chains that wait, and ends somehow. */
static int lives(void *arg)
{
	struct mortal *m = arg;
	static struct kevent_call c[8];
	struct actor servers[2] = {};
	unsigned int i;
	char buf[8];
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return 1;
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		struct ukevent uk;

		set_chain(&uk, &c[i], 1, i);
		c[i] = i % 2 ? entry(SYS_getppid, 0, 0, 0) :
			       entry(SYS_read, fd[0], KEVENT_ARG(buf), 1);
		if (i == next_random(&m->rnd) % 8)
			start_actor(&servers[0], serve_until_the_end, &m->q->fd);
		if (kevent_ctl_one(m->q->fd, KEVENT_CTL_ADD, &uk))
			return 1;
	}
	start_actor(&servers[1], serve_until_the_end, &m->q->fd);
	for (i = next_random(&m->rnd) % 64; i; i--)
		sched_yield();
	switch (next_random(&m->rnd) % 4) {
	case 0:
		kill(getpid(), SIGKILL);
		return 1;
	case 1:
		fcntl(m->q->fd, F_SETFD, 0);
		exec_and_end();
		return 1;
	case 2:
		/* A descriptor that is closed at the exec */
		exec_and_end();
		return 1;
	default:
		_exit(0);
	}
}

static void end_a_process(struct storm *s)
{
	struct mortal m = { .q = &s->q, .rnd = s->seed + s->taken };
	unsigned int i, counts[8] = {};
	struct ukevent ev;
	int ret;

	ret = join_child(start_child(lives, &m), PATIENCE_MS);
	CHECK(ret == 0 || ret == -SIGKILL);
	for (i = 0; i < 8; i++) {
		MUST_EVENT(&s->q, &ev);
		if (ev.ptr < 8)
			counts[ev.ptr]++;
	}
	CHECK_NO_EVENT(&s->q);
	for (i = 0; i < 8; i++)
		CHECK_EQ(counts[i], 1);
	s->taken += 8;
}

static void processes_that_end_leave_an_event_for_each(void)
{
	struct storm s = {};

	open_queue(&s.q, 16);
	storm_begin(&s);
	storm_run(&s, end_a_process);
	note("%ld processes", s.taken / 8);
	storm_close(&s, 0);
}

static const struct test_case cases[] = {
	TEST_LIMIT(each_chain_ends_once, 30),
	TEST_LIMIT(processes_that_end_leave_an_event_for_each, 30),
	{ }
};

const struct test_suite storm_aio_suite = {
	.name = "storm_aio",
	.cases = cases,
};
#endif
