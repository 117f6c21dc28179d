// SPDX-License-Identifier: GPL-2.0
/*
 * Forks and exits race with control calls. Each child has a number. Its exit is
 * reported once, with the status from wait, unless its watch was removed.
 *
 * KEVENT_STORM_SECONDS in the environment sets the budget of each test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "proc.h"

#define FORKERS		3
#define MAX_BORN	100000	/* of one forker */

struct birth {
	_Atomic int	reported;	/* events */
	int		said;	/* by the event */
	int		status;	/* by wait */
	int		want;	/* events */
};

struct storm {
	struct queue	q;
	uint64_t	seed;
	uint64_t	until;
	_Atomic long	wrong;
};

struct forker {
	struct actor	actor;
	struct storm	*storm;
	unsigned int	nr;
	unsigned int	born;
	char		stack[4096] __attribute__((aligned(16)));
	struct birth	births[MAX_BORN];
};

static struct forker forkers[FORKERS];

static void account(struct storm *s, const struct ukevent *ev)
{
	unsigned int nr = ev->ptr >> 32, i = (uint32_t)ev->ptr;

	if (ev->type != KEVENT_PROC || nr >= FORKERS || i >= MAX_BORN ||
	    ev->ret_data[1] != STATUS ||
	    ev->ret_flags != KEVENT_RET_DONE) {
		atomic_fetch_add(&s->wrong, 1);
		return;
	}
	forkers[nr].births[i].said = ev->ret_data[0];
	atomic_fetch_add(&forkers[nr].births[i].reported, 1);
}

static int add_some_way(struct storm *s, pid_t pid, uint32_t flags,
			uint64_t user, struct ukevent *ev)
{
	int fd, ret;

	if (pid % 2) {
		kevent_set_proc(ev, pid, flags, user);
		return kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, ev);
	}
	fd = pidfd_open(pid, 0);
	kevent_set_pidfd(ev, fd, flags, user);
	ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_ADD, ev);
	close(fd);
	return ret;
}

/* Makes one of the next steps, before or after the end of the child. */
static void meddle(struct storm *s, struct birth *b, pid_t pid, uint64_t user,
		   uint64_t *rnd)
{
	struct ukevent ev;
	int ret;

	kevent_set_proc(&ev, pid, 0, user);
	switch (next_random(rnd) % 6) {
	case 0:
		ret = kevent_ctl_one(s->q.fd, KEVENT_CTL_REMOVE, &ev);
		if (!ret)
			b->want = 0;
		else if (ret != -ENOENT)
			atomic_fetch_add(&s->wrong, 1);
		break;
	case 1:
		kevent_ctl_one(s->q.fd, KEVENT_CTL_MODIFY, &ev);
		break;
	case 2:
		kill(pid, SIGKILL);
		break;
	}
}

/* An undelivered exit of the same number is still there: wait for it. */
static int add_child(struct storm *s, pid_t pid, uint32_t flags,
		     uint64_t user, struct ukevent *ev)
{
	int ret;

	do {
		ret = add_some_way(s, pid, flags, user, ev);
	} while (ret == -EEXIST && !sched_yield());
	return ret;
}

/* The child shares the memory, so it exits by a system call after a while. */
static int live(void *arg)
{
	uintptr_t life = (uintptr_t)arg, i;

	for (i = 0; i < life / 256; i++)
		atomic_signal_fence(memory_order_seq_cst);
	syscall(SYS_exit_group, (int)(life % 256));
	return 0;
}

static pid_t bring_forth(struct forker *f, uintptr_t life)
{
	return clone(live, f->stack + sizeof(f->stack), CLONE_VM | SIGCHLD,
		     (void *)life);
}

static void bear(struct forker *f, uint64_t *rnd)
{
	static const uint32_t modes[] = {
		0, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH,
		KEVENT_REQ_HAND_BACK,
	};
	uint64_t user = (uint64_t)f->nr << 32 | f->born;
	uint32_t mode = modes[next_random(rnd) % ARRAY_SIZE(modes)];
	uintptr_t life = next_random(rnd) % (256 * 20000);
	struct ukevent ev;
	struct birth *b;
	pid_t pid;
	int ret;

	pid = bring_forth(f, life);
	if (pid < 0)
		return;
	b = &f->births[f->born++];
	b->want = 1;
	ret = add_child(f->storm, pid, mode, user, &ev);
	if (ret == 1)
		account(f->storm, &ev);
	else if (ret)
		atomic_fetch_add(&f->storm->wrong, 1);
	else
		meddle(f->storm, b, pid, user, rnd);
	if (waitpid(pid, &b->status, 0) != pid)
		atomic_fetch_add(&f->storm->wrong, 1);
}

static long forker(void *arg)
{
	struct forker *f = arg;
	uint64_t rnd = f->storm->seed + f->nr * 0x9e3779b97f4a7c15ull;

	rnd |= 1;
	while (now_ns() < f->storm->until && f->born < MAX_BORN)
		bear(f, &rnd);
	return 0;
}

static void check_births(struct forker *f)
{
	unsigned int i, removed = 0;
	struct birth *b;

	for (i = 0; i < f->born; i++) {
		b = &f->births[i];
		removed += !b->want;
		if (b->reported == b->want && (!b->reported || b->said == b->status))
			continue;
		CHECK_EQ(b->reported, b->want);
		CHECK_EQ(b->said, b->status);
	}
	note("%u children, %u watches removed", f->born, removed);
	CHECK(f->born > 10);
}

static bool all_ended(void)
{
	unsigned int i;

	for (i = 0; i < FORKERS; i++)
		if (!actor_ended(&forkers[i].actor))
			return false;
	return true;
}

static void run_storm(uint32_t size)
{
	struct storm s = { .seed = test_seed() };
	struct ukevent ev;
	unsigned int i;

	open_queue(&s.q, size);
	s.until = now_ns() + storm_ns();
	for (i = 0; i < FORKERS; i++) {
		forkers[i].storm = &s;
		forkers[i].nr = i;
		start_actor(&forkers[i].actor, forker, &forkers[i]);
	}
	while (!all_ended())
		while (next_event(&s.q, &ev, 1) == 1)
			account(&s, &ev);
	for (i = 0; i < FORKERS; i++)
		join_actor(&forkers[i].actor, PATIENCE_MS);
	/* All children have been waited for, so every status is known. */
	while (next_event(&s.q, &ev, 0) == 1)
		account(&s, &ev);
	CHECK_EQ(s.wrong, 0);
	for (i = 0; i < FORKERS; i++)
		check_births(&forkers[i]);
	CHECK_EQ(fdinfo(s.q.fd, "kevent-watches"), 0);
	close_queue(&s.q);
}

static _Atomic int shared_kq;

static long closer(void *arg)
{
	uint64_t until = *(uint64_t *)arg;
	long closed = 0;
	int kq;

	while (now_ns() < until) {
		kq = atomic_exchange(&shared_kq, -1);
		if (kq < 0) {
			sched_yield();
			continue;
		}
		close(kq);
		closed++;
	}
	return closed;
}

static void exits_race_close_of_the_queue(void)
{
	uint64_t until = now_ns() + storm_ns();
	struct actor a;
	pid_t pid;
	int kq;

	atomic_store(&shared_kq, -1);
	start_actor(&a, closer, &until);
	while (now_ns() < until) {
		kq = kevent_init(NULL, 0, 0);
		MUST(kq >= 0);
		pid = bring_forth(&forkers[0], 0);
		MUST(pid > 0);
		MUST(add_proc(kq, pid, 0, 0) >= 0);
		atomic_store(&shared_kq, kq);
		MUST_EQ(waitpid(pid, NULL, 0), pid);
		while (atomic_load(&shared_kq) >= 0 && now_ns() < until)
			sched_yield();
	}
	join_actor(&a, PATIENCE_MS);
	note("%ld rounds", a.ret);
	CHECK(a.ret > 10);
}

static const struct test_case cases[] = {
	TEST_SIZE(exits_race_control_calls, run_storm, 0, 30),
	TEST_SIZE(exits_race_control_calls_on_a_ring, run_storm, 8, 30),
	TEST_LIMIT(exits_race_close_of_the_queue, 30),
	{}
};

const struct test_suite storm_proc_suite = {
	.name = "storm_proc", .cases = cases,
};
