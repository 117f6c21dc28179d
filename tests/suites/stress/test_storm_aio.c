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

#include "helpers.h"

#define SUBMITTERS	2
#define SERVERS		3
#define CHAINS		64	/* of a submitter, under way at once */
#define ENTRIES		6
#define PAGE		4096ul

/* A chain that is under way, or free */
struct slot {
	struct kevent_call	*c;	/* a page of its own */
	_Atomic int		busy;	/* submitted, and no event yet */
};

struct storm {
	struct queue	q;
	uint64_t	seed;
	uint64_t	until;
	int		pipe[2];
	struct slot	slots[SUBMITTERS][CHAINS];
	_Atomic long	submitted;
	_Atomic long	cancelled;
	_Atomic long	ended;
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
		.nr = nr, .on_error = 1, .on_zero = 1, .on_value = 1,
		.args = { a, b, c },
	};
}

/* A call of any kind: short, one that waits for another, one that is refused */
static struct kevent_call random_entry(struct storm *s, uint64_t *rnd)
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
		return entry(KEVENT_CALL_COPY, KEVENT_ARG(buf), 0, 8);
	case 5:
		return next_random(rnd) % 64 ? entry(SYS_getpid, 0, 0, 0) :
					       entry(SYS_clone, 0, 0, 0);
	default:
		return entry(SYS_getppid, 0, 0, 0);
	}
}

/* What is opened is closed, so that descriptors do not run out. */
static void build(struct storm *s, struct kevent_call *c, uint64_t *rnd)
{
	unsigned int i;

	for (i = 0; i < ENTRIES; i++)
		c[i] = random_entry(s, rnd);
	for (i = 0; i < ENTRIES; i++)
		if (c[i].nr == SYS_openat)
			c[i] = entry(SYS_faccessat, AT_FDCWD, KEVENT_ARG("/"), 0);
}

static long submit(struct storm *s, struct kevent_call *c, uint64_t cookie,
		   uint64_t *rnd)
{
	struct ukevent uk = {
		.id.raw_u64 = KEVENT_ARG(c), .type = KEVENT_AIO,
		.event = KEVENT_AIO_DONE, .ret_data = { ENTRIES },
		.ptr = cookie,
	};
	long ret;

	if (next_random(rnd) % 2) {
		ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, &uk);
		return ret ? ret : (long)KEVENT_CALL_SUBMITTED;
	}
	ret = syscall(__NR_kevent_call, s->q.fd, c, ENTRIES, KEVENT_CALL_ASYNC,
		      cookie);
	return ret < 0 ? -errno : ret;
}

static void cancel(struct storm *s, uint64_t cookie)
{
	struct ukevent uk = { .type = KEVENT_AIO, .ptr = cookie };
	int ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_REMOVE, &uk);

	if (!ret)
		atomic_fetch_add(&s->cancelled, 1);
	else if (ret != -EALREADY && ret != -ENOENT)
		atomic_fetch_add(&s->wrong, 1);
}

/* Takes the memory of a chain away for a moment, whoever uses it. */
static void shake(struct kevent_call *c)
{
	mprotect(c, PAGE, PROT_NONE);
	sched_yield();
	mprotect(c, PAGE, PROT_READ | PROT_WRITE);
}

static void submit_one(struct player *p, unsigned int i, uint64_t *rnd)
{
	struct storm *s = p->storm;
	struct slot *slot = &s->slots[p->nr][i];
	long ret;

	build(s, slot->c, rnd);
	atomic_store(&slot->busy, 1);
	atomic_fetch_add(&s->submitted, 1);
	ret = submit(s, slot->c, (uint64_t)p->nr << 32 | i, rnd);
	if (ret == KEVENT_CALL_SUBMITTED)
		return;
	/* It ended in the call, and no event comes. */
	if (ret < 0 || !atomic_exchange(&slot->busy, 0))
		atomic_fetch_add(&s->wrong, 1);
	atomic_fetch_add(&s->ended, 1);
}

static long submit_all(void *arg)
{
	struct player *p = arg;
	struct storm *s = p->storm;
	uint64_t rnd = s->seed + p->nr;

	while (now_ns() < s->until) {
		unsigned int i = next_random(&rnd) % CHAINS;
		struct slot *slot = &s->slots[p->nr][i];

		if (!atomic_load(&slot->busy))
			submit_one(p, i, &rnd);
		else if (next_random(&rnd) % 4)
			cancel(s, (uint64_t)p->nr << 32 | i);
		else if (!(next_random(&rnd) % 64))
			shake(slot->c);
		else
			sched_yield();
	}
	return 0;
}

static void on_signal(int sig)
{
	(void)sig;
}

static long serve_all(void *arg)
{
	struct player *p = arg;
	struct storm *s = p->storm;
	struct timespec ts = { .tv_nsec = 2000000 };

	while (!atomic_load(&s->stop))
		if (syscall(__NR_kevent_wait, s->q.fd, 1 + p->nr % 2, 0, &ts,
			    KEVENT_FLAGS_SERVE, NULL) < 0 && errno != EINTR)
			atomic_fetch_add(&s->wrong, 1);
	return 0;
}

static void account(struct storm *s, const struct ukevent *ev)
{
	unsigned int nr = ev->ptr >> 32, i = (uint32_t)ev->ptr;

	if (ev->type != KEVENT_AIO || nr >= SUBMITTERS || i >= CHAINS ||
	    !atomic_exchange(&s->slots[nr][i].busy, 0)) {
		atomic_fetch_add(&s->wrong, 1);
		return;
	}
	atomic_fetch_add(&s->ended, 1);
}

/* Readers of the pipe go on, and writers: at the end nobody waits for ever. */
static void stir(struct storm *s, struct player *servers, uint64_t *rnd)
{
	int fd, end = next_random(rnd) % 2;
	char buf[256] = "", path[40];

	if (next_random(rnd) % 4 == 0) {
		pthread_kill(servers[next_random(rnd) % SERVERS].actor.thread,
			     SIGUSR1);
		return;
	}
	/* An open file of its own, which does not wait: that of the servers does. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->pipe[end]);
	fd = open(path, (end ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (end)
		(void)!write(fd, buf, 16);
	else
		(void)!read(fd, buf, sizeof(buf));
	close(fd);
}

static void open_storm(struct storm *s)
{
	struct sigaction sa = { .sa_handler = on_signal };
	char *pages = mmap(NULL, SUBMITTERS * CHAINS * PAGE,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	unsigned int i;

	MUST(pages != MAP_FAILED);
	MUST_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	s->seed = test_seed();
	s->until = now_ns() + storm_ns();
	open_queue(&s->q, 64);
	MUST_EQ(pipe2(s->pipe, O_CLOEXEC), 0);
	for (i = 0; i < SUBMITTERS * CHAINS; i++)
		s->slots[i / CHAINS][i % CHAINS].c = (void *)(pages + i * PAGE);
}

static void take(struct storm *s)
{
	struct ukevent ev;

	while (next_event(&s->q, &ev, 1) == 1)
		account(s, &ev);
}

static void each_chain_ends_once(void)
{
	static struct storm s;
	struct player sub[SUBMITTERS] = {}, serv[SERVERS] = {};
	uint64_t rnd, start;
	unsigned int i;

	open_storm(&s);
	rnd = s.seed;
	for (i = 0; i < SERVERS; i++) {
		serv[i].storm = &s;
		serv[i].nr = i;
		start_actor(&serv[i].actor, serve_all, &serv[i]);
	}
	for (i = 0; i < SUBMITTERS; i++) {
		sub[i].storm = &s;
		sub[i].nr = i;
		start_actor(&sub[i].actor, submit_all, &sub[i]);
	}
	while (now_ns() < s.until) {
		take(&s);
		stir(&s, serv, &rnd);
	}
	for (i = 0; i < SUBMITTERS; i++)
		join_actor(&sub[i].actor, PATIENCE_MS);
	start = now_ns();
	while (s.ended != s.submitted && patient(start, 2 * PATIENCE_MS)) {
		take(&s);
		stir(&s, serv, &rnd);
	}
	atomic_store(&s.stop, 1);
	for (i = 0; i < SERVERS; i++)
		while (!actor_ended(&serv[i].actor) &&
		       patient(start, 4 * PATIENCE_MS))
			stir(&s, serv, &rnd);
	for (i = 0; i < SERVERS; i++)
		join_actor(&serv[i].actor, PATIENCE_MS);
	note("%ld chains, %ld cancelled", s.submitted, s.cancelled);
	CHECK_EQ(s.ended, s.submitted);
	CHECK_EQ(s.wrong, 0);
	CHECK(s.cancelled > 0);
	CHECK_NO_EVENT(&s.q);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), 0);
	close_queue(&s.q);
	close(s.pipe[0]);
	close(s.pipe[1]);
}

/* Ends */

struct mortal {
	struct queue	*q;
	uint64_t	rnd;
};

static long serve_until_the_end(void *arg)
{
	int kq = *(int *)arg;

	for (;;)
		syscall(__NR_kevent_wait, kq, 2, 0, NULL, KEVENT_FLAGS_SERVE, NULL);
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
		struct ukevent uk = {
			.id.raw_u64 = KEVENT_ARG(&c[i]), .type = KEVENT_AIO,
			.event = KEVENT_AIO_DONE, .ret_data = { 1 }, .ptr = i,
		};

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

static void processes_that_end_leave_an_event_for_each(void)
{
	uint64_t seed = test_seed(), until = now_ns() + storm_ns();
	unsigned int i, rounds = 0;
	struct queue q;

	open_queue(&q, 16);
	do {
		struct mortal m = { .q = &q, .rnd = seed + rounds };
		unsigned int counts[8] = {};
		struct ukevent ev;
		int ret;

		ret = join_child(start_child(lives, &m), PATIENCE_MS);
		CHECK(ret == 0 || ret == -SIGKILL);
		for (i = 0; i < 8; i++) {
			MUST_EVENT(&q, &ev);
			if (ev.ptr < 8)
				counts[ev.ptr]++;
		}
		CHECK_NO_EVENT(&q);
		for (i = 0; i < 8; i++)
			CHECK_EQ(counts[i], 1);
		rounds++;
	} while (now_ns() < until);
	note("%u processes", rounds);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	close_queue(&q);
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
