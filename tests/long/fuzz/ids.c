// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on what has an id: signals, processes, futex words, POSIX timers; and time
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fuzz.h"

#define LATE_NS		5000000000ull	/* for a timer that must expire */

static uint32_t words[NR_IDS];

/* Those that no watch has consumed. Returns how many. */
static unsigned int take_pending(int sig)
{
	static const struct timespec zero;
	unsigned int nr = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	while (sigtimedwait(&set, NULL, &zero) == sig)
		nr++;
	return nr;
}

static void do_kill(const struct op *op)
{
	int sig = signal_of(op->x);
	union sigval value = { .sival_int = op->n };
	unsigned int want, got;

	if (model_is_full(KEVENT_SIGNAL, op->x))
		return;
	emit("CHECK_EQ(sigqueue(getpid(), %d, (union sigval){ .sival_int = %u }), 0);",
	     sig, op->n);
	if (sigqueue(getpid(), sig, value))
		fail("sigqueue() fails");
	want = !source_signal(op->x, op->n);
	got = take_pending(sig);
	if (got != want)
		fail("signal %d is delivered %u times instead of %u", sig, got,
		     want);
}

/* It has nothing of ours open when do_spawn() returns. */
static void be_a_process(int in, int ready)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(in, 0);
	dup2(ready, 1);
	close_range(3, ~0u, 0);
	_exit(write(1, "", 1) == 1 && read(0, &c, 1) == 1 ? c : 99);
}

static void do_spawn(const struct op *op)
{
	struct process *p = &W.process[op->x];
	int fd[2], ready[2];
	char c;

	if (p->pid && !p->reaped)
		return;
	emit("spawn(&process[%d]);", op->x);
	if (pipe(fd) || pipe(ready))
		fail("no pipe");
	*p = (struct process){ .fd = fd[1], .pid = fork() };
	if (!p->pid)
		be_a_process(fd[0], ready[1]);
	if (read(ready[0], &c, 1) != 1)
		fail("no process");
	close(fd[0]);
	close(ready[0]);
	close(ready[1]);
}

static void do_end(const struct op *op)
{
	struct process *p = &W.process[op->x];
	char c = op->n & 15;
	siginfo_t info;

	if (!p->pid || p->ended)
		return;
	emit("end(&process[%d], %d);", op->x, c);
	if (write(p->fd, &c, 1) != 1 ||
	    waitid(P_PID, p->pid, &info, WEXITED | WNOWAIT))
		fail("a process does not end");
	close(p->fd);
	p->ended = true;
	p->status = c << 8;
	source_ended(p->pid);
}

static void do_reap(const struct op *op)
{
	struct process *p = &W.process[op->x];

	if (!p->ended || p->reaped)
		return;
	emit("MUST_EQ(waitpid(process[%d].pid, NULL, 0), process[%d].pid);",
	     op->x, op->x);
	if (waitpid(p->pid, NULL, 0) != p->pid)
		fail("waitpid() fails");
	p->reaped = true;
}

uint32_t *futex_word(int x)
{
	return &words[x % NR_IDS];
}

static void do_set(const struct op *op)
{
	emit("word[%d] = %u;", op->x, op->n & 3);
	*futex_word(op->x) = op->n & 3;
}

static void do_wake(const struct op *op)
{
	int nr = op->n % 3 + 1, want, got;

	want = source_woken(op->x, nr);
	emit("CHECK_EQ(syscall(SYS_futex, &word[%d], FUTEX_WAKE_PRIVATE, %d, NULL, NULL, 0), %d);",
	     op->x, nr, want);
	got = syscall(SYS_futex, futex_word(op->x), FUTEX_WAKE_PRIVATE, nr,
		      NULL, NULL, 0);
	if (got != want)
		fail("FUTEX_WAKE of word %d wakes %d instead of %d",
		     op->x, got, want);
}

/* POSIX timers */

static bool create_timer(const struct op *op, struct watch **w)
{
	struct sigevent sev = { .sigev_notify = SIGEV_KEVENT };
	struct fqueue *q = &W.q[op->q];
	unsigned int x = op->x;
	struct posix_timer *t = &W.timer[x];

	if (t->made || q->fd < 0)
		return false;
	sev.sigev_value.sival_ptr = (void *)(uintptr_t)++W.users;
	sev._sigev_un._tid = q->fd;
	emit("create_timer(&timer[%u], q[%d].fd, %llu);", x, op->q,
	     (unsigned long long)W.users);
	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &sev, &t->id))
		fail("timer_create() fails with %d", errno);
	t->made = true;
	*w = new_watch(q);
	(*w)->type = KEVENT_POSIX_TIMER;
	(*w)->key = x;
	(*w)->id = t->id;
	(*w)->event = KEVENT_POSIX_TIMER_FIRED;
	(*w)->user = W.users;
	(*w)->armed = true;
	return true;
}

static void do_settime(const struct op *op)
{
	uint64_t ns = (op->n % 5000 + 50) * 1000ull;
	const struct itimerspec every = {
		.it_value.tv_nsec = ns, .it_interval.tv_nsec = ns,
	};
	unsigned int x = op->x;
	struct watch *w;

	if (W.fallback)
		return;
	if (!create_timer(op, &w))
		w = find_posix_timer(x);
	if (!W.timer[x].made)
		return;
	emit("set_timer(timer[%u], %llu);", x, (unsigned long long)ns);
	W.begin_ns = now_ns();
	if (syscall(SYS_timer_settime, W.timer[x].id, 0, &every, NULL))
		fail("timer_settime() fails");
	if (w)
		source_set_time(w, ns, ns);
}

/* Time */

static void do_nap(const struct op *op)
{
	const struct timespec ts = { .tv_nsec = op->n % 2000 * 1000 };

	emit("usleep(%u);", op->n % 2000);
	nanosleep(&ts, NULL);
}

static void settle_queue(unsigned int i)
{
	const struct op collect = { .code = OP_COLLECT, .q = i };
	const struct op pop = { .code = OP_POP, .q = i };
	const struct timespec nap = { .tv_nsec = 500000 };
	uint64_t due = now_ns(), start = due;

	while (source_is_late(&W.q[i], due)) {
		if (now_ns() - start > LATE_NS)
			fail("a timer of queue %u does not expire", i);
		do_consume(&pop);
		do_consume(&collect);
		nanosleep(&nap, NULL);
		/* Other queues may watch this one. */
		look_at_files();
	}
}

static void do_settle(const struct op *op)
{
	unsigned int i;

	(void)op;
	for (i = 0; i < NR_QUEUES; i++)
		if (W.q[i].fd >= 0)
			settle_queue(i);
}

void do_id_op(const struct op *given)
{
	struct op all = *given, *op = &all;

	static void (*const makers[NR_OPS])(const struct op *op) = {
		[OP_KILL] = do_kill, [OP_SPAWN] = do_spawn,
		[OP_END] = do_end, [OP_REAP] = do_reap, [OP_SET] = do_set,
		[OP_WAKE] = do_wake, [OP_SETTIME] = do_settime,
		[OP_NAP] = do_nap, [OP_SETTLE] = do_settle,
	};

	op->x %= NR_IDS;
	if (makers[op->code])
		makers[op->code](op);
}
