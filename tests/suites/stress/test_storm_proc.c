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

#include "proc.h"
#include "storm.h"

#define FORKERS		3
#define MAX_BORN	100000	/* of one forker */

struct birth {
	_Atomic int	reported;	/* events */
	int		said;	/* by the event */
	int		status;	/* by wait */
	int		want;	/* events */
};

struct forker {
	_Atomic unsigned int born;
	char		stack[4096] __attribute__((aligned(16)));
	struct birth	births[MAX_BORN];
};

static struct forker forkers[FORKERS];

static void account(struct storm *s, const struct ukevent *ev)
{
	unsigned int nr = ev->ptr >> 32, i = (uint32_t)ev->ptr;

	if (ev->type != KEVENT_PROC || nr >= FORKERS || i >= MAX_BORN ||
	    ev->ret_data[1] != STATUS || ev->ret_flags != KEVENT_RET_DONE) {
		storm_expect(s, false);
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
		storm_expect(s, !ret || ret == -ENOENT);
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

static void bear(struct stormer *me)
{
	static const uint32_t modes[] = {
		0, KEVENT_REQ_ONESHOT, KEVENT_REQ_DISPATCH,
		KEVENT_REQ_HAND_BACK,
	};
	struct forker *f = &forkers[me->nr];
	uint64_t user = (uint64_t)me->nr << 32 | f->born;
	uint32_t mode = modes[next_random(&me->rnd) % ARRAY_SIZE(modes)];
	uintptr_t life = next_random(&me->rnd) % (256 * 20000);
	struct ukevent ev;
	struct birth *b;
	pid_t pid;
	int ret;

	pid = f->born < MAX_BORN ? bring_forth(f, life) : -1;
	if (pid < 0)
		return;
	b = &f->births[f->born++];
	b->want = 1;
	ret = add_child(me->storm, pid, mode, user, &ev);
	storm_expect(me->storm, ret >= 0);
	if (ret == 1)
		storm_account(me->storm, &ev);
	else if (!ret)
		meddle(me->storm, b, pid, user, &me->rnd);
	storm_expect(me->storm, waitpid(pid, &b->status, 0) == pid);
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
}

static bool each_bore_ten(const struct storm *s)
{
	unsigned int i;

	(void)s;
	for (i = 0; i < FORKERS; i++)
		if (forkers[i].born <= 10)
			return false;
	return true;
}

static void control_calls_race(uint32_t size)
{
	struct storm s = { .account = account, .enough = each_bore_ten };
	unsigned int i;

	open_queue(&s.q, size);
	storm_begin(&s);
	storm_workers(&s, FORKERS, bear);
	storm_run(&s, NULL);
	storm_end(&s, NULL);
	/* All children have been waited for, so every status is known. */
	storm_drain(&s);
	for (i = 0; i < FORKERS; i++)
		check_births(&forkers[i]);
	CHECK(each_bore_ten(&s));
	storm_close(&s, 0);
}

static _Atomic int shared_kq;

static void close_shared(struct stormer *me)
{
	int kq = atomic_exchange(&shared_kq, -1);

	if (kq < 0) {
		sched_yield();
		return;
	}
	close(kq);
	atomic_fetch_add(&me->storm->taken, 1);
}

static void watch_an_exit(struct storm *s)
{
	int kq = kevent_init(NULL, 0, 0);
	pid_t pid;

	MUST(kq >= 0);
	pid = bring_forth(&forkers[0], 0);
	MUST(pid > 0);
	MUST(add_proc(kq, pid, 0, 0) >= 0);
	atomic_store(&shared_kq, kq);
	MUST_EQ(waitpid(pid, NULL, 0), pid);
	while (atomic_load(&shared_kq) >= 0 && storm_on(s))
		sched_yield();
}

static bool ten_rounds(const struct storm *s)
{
	return s->taken > 10;
}

static void exits_race_close_of_the_queue(void)
{
	struct storm s = { .enough = ten_rounds };

	atomic_store(&shared_kq, -1);
	storm_begin(&s);
	storm_helpers(&s, 1, close_shared);
	storm_run(&s, watch_an_exit);
	storm_end(&s, NULL);
	note("%ld rounds", s.taken);
	CHECK(ten_rounds(&s));
}

static const struct test_case cases[] = {
	TEST_SIZE(exits_race_control_calls, control_calls_race, 0, 30),
	TEST_SIZE(exits_race_control_calls_on_a_ring, control_calls_race, 8, 30),
	TEST_LIMIT(exits_race_close_of_the_queue, 30),
	{}
};

const struct test_suite storm_proc_suite = {
	.name = "storm_proc", .cases = cases,
};
