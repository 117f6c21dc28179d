// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_SIGNAL: signals to the process that added the watch
 *
 *	disposition	observed		consumed (NOMASK)
 *	handler		event and handler	event only
 *	ignored		event			event
 *	blocked		event, pending		event, not pending
 *	a fault		event and delivery	event and delivery
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"
#include "sets.h"
#include "signals.h"

/* Observed */

static void observed_signals_are_handled_too(struct queue *q)
{
	handle(SIGUSR2, SIG_IGN);
	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(q->fd, SIGUSR1, OBSERVE, 0), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	must_signal(q, SIGUSR1, false, getpid(), SI_USER, 0);
	CHECK_EQ(kill_thread(SIGUSR1), 0);
	CHECK_EQ(handled, 2);
	must_signal(q, SIGUSR1, false, getpid(), SI_TKILL, 0);
	CHECK_EQ(queue_value(SIGUSR1, -7), 0);
	CHECK_EQ(handled, 3);
	must_signal(q, SIGUSR1, false, getpid(), SI_QUEUE, -7);
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	CHECK_NO_EVENT(q);
}

static void ignored_signals_are_observed(struct queue *q)
{
	handle(SIGUSR1, SIG_IGN);
	handle(SIGWINCH, SIG_DFL);
	MUST_EQ(add_signal(q->fd, SIGUSR1, OBSERVE, 0), 0);
	MUST_EQ(add_signal(q->fd, SIGWINCH, OBSERVE, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(q, SIGUSR1, false, getpid(), SI_USER, 0);
	CHECK_EQ(kill(getpid(), SIGWINCH), 0);
	must_signal(q, SIGWINCH, false, getpid(), SI_USER, 0);
	CHECK_NO_EVENT(q);
	CHECK(!is_pending(SIGUSR1));
}

static void blocked_signals_are_observed_and_stay_pending(struct queue *q)
{
	sigset_t set;
	int sig;

	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_signal(q->fd, SIGUSR1, OBSERVE, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(q, SIGUSR1, false, getpid(), SI_USER, 0);
	CHECK(is_pending(SIGUSR1));
	/*
	 * The signal is pending already: the kernel drops the next one, the
	 * watch does not.
	 */
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(q, SIGUSR1, false, getpid(), SI_USER, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST_EQ(sigwait(&set, &sig), 0);
	CHECK_EQ(sig, SIGUSR1);
	CHECK(!is_pending(SIGUSR1));
	CHECK_NO_EVENT(q);
	block(SIGUSR1, SIG_UNBLOCK);
}

static void signals_before_add_are_not_reported(void)
{
	struct queue q;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	MUST_EQ(add_signal(q.fd, SIGUSR1, OBSERVE, 0), 0);
	CHECK_NO_EVENT(&q);
	CHECK(is_pending(SIGUSR1));
	close_queue(&q);
}

static long send_to_main(void *arg)
{
	return syscall(SYS_tgkill, getpid(), *(pid_t *)arg, SIGUSR1);
}

static long add_in_thread(void *arg)
{
	return add_signal(*(int *)arg, SIGUSR1, CONSUME, 0);
}

/* Any thread may add the watch, and any thread may get the signal. */
static void watch_is_of_the_whole_process(void)
{
	pid_t tid = gettid();
	struct actor a;
	struct queue q;

	open_queue(&q, 0);
	start_actor(&a, add_in_thread, &q.fd);
	join_actor(&a, PATIENCE_MS);
	MUST_EQ(a.ret, 0);
	start_actor(&a, send_to_main, &tid);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	must_signal(&q, SIGUSR1, true, getpid(), SI_TKILL, 0);
	close_queue(&q);
}

static void exit_of_a_child_is_a_signal(struct queue *q)
{
	pid_t pid;

	MUST_EQ(add_signal(q->fd, SIGCHLD, OBSERVE, 0), 0);
	pid = fork();
	if (!pid)
		_exit(3);
	must_signal(q, SIGCHLD, false, pid, CLD_EXITED, 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 3);
	handle(SIGCHLD, count_signal);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, SIGCHLD, CONSUME, 0),
		0);
	pid = fork();
	if (!pid)
		_exit(4);
	must_signal(q, SIGCHLD, true, pid, CLD_EXITED, 0);
	CHECK_EQ(handled, 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 4);
	/* sigaction(2) explains why there is no such signal. */
	handle(SIGCHLD, SIG_IGN);
	pid = fork();
	if (!pid)
		_exit(5);
	while (waitpid(pid, NULL, 0) > 0)
		;
	CHECK_NO_EVENT(q);
	handle(SIGCHLD, SIG_DFL);
}

/* Consumed */

static void consumed_signals_are_not_delivered(struct queue *q)
{
	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(q->fd, SIGUSR1, CONSUME, 0), 0);
	MUST_EQ(add_signal(q->fd, SIGTERM, CONSUME, 0), 0);
	MUST_EQ(add_signal(q->fd, RT, CONSUME, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(kill_thread(SIGUSR1), 0);
	must_signal(q, SIGUSR1, true, getpid(), SI_TKILL, 0);
	/* By default the signal would end the process. */
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	must_signal(q, SIGTERM, true, getpid(), SI_USER, 0);
	CHECK_EQ(queue_value(RT, 9), 0);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 9);
	CHECK_EQ(handled, 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_signal(q->fd, SIGUSR1), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
}

/* Once it is delivered nobody has to look for it again. */
static void consumed_signal_leaves_nothing_ready(struct queue *q)
{
	MUST_EQ(add_signal(q->fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(poll_now(q->fd), 0);
}

static void blocked_signals_are_consumed_and_not_pending(struct queue *q)
{
	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(q->fd, SIGUSR1, CONSUME, 0), 0);
	block(SIGUSR1, SIG_BLOCK);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK(!is_pending(SIGUSR1));
	block(SIGUSR1, SIG_UNBLOCK);
	must_signal(q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(handled, 0);
}

/* What is blocked is taken as well, in order, and for each queue, whoever asks first. */
static void blocked_signals_are_consumed_by_each_queue(void)
{
	struct ukevent ev[8];
	struct queue a, b;
	int i;

	open_queue(&a, 0);
	open_queue(&b, 8);
	handle(RT, count_signal);
	block(RT, SIG_BLOCK);
	MUST_EQ(add_signal(a.fd, RT, CONSUME, 0), 0);
	MUST_EQ(add_signal(b.fd, RT, CONSUME, 0), 0);
	for (i = 0; i < 5; i++)
		CHECK_EQ(queue_value(RT, i), 0);
	must_signal(&a, RT, true, getpid(), SI_QUEUE, 0);
	for (i = 0; i < 5; i++)
		must_signal(&b, RT, true, getpid(), SI_QUEUE, i);
	CHECK_NO_EVENT(&b);
	/* One call has all that are left. */
	MUST_EQ(get_events(a.fd, 1, 8, 0, ev), 4);
	for (i = 1; i < 5; i++)
		CHECK_EQ((int)ev[i - 1].ret_data[1], i);
	CHECK_EQ(queue_value(RT, 5), 0);
	CHECK_EQ(queue_value(RT, 6), 0);
	MUST_EQ(get_events(a.fd, 1, 8, 0, ev), 2);
	CHECK_EQ((int)ev[1].ret_data[1], 6);
	must_signal(&b, RT, true, getpid(), SI_QUEUE, 5);
	must_signal(&b, RT, true, getpid(), SI_QUEUE, 6);
	CHECK_NO_EVENT(&a);
	CHECK(!is_pending(RT));
	block(RT, SIG_UNBLOCK);
	CHECK_EQ(handled, 0);
	close_queue(&b);
	close_queue(&a);
}

/* A watch that consumes takes what is pending when it is added, or armed again. */
static void pending_signals_are_taken_by_add(struct queue *q)
{
	handle(RT, count_signal);
	block(RT, SIG_BLOCK);
	CHECK_EQ(queue_value(RT, 1), 0);
	CHECK_EQ(queue_value(RT, 2), 0);
	MUST_EQ(add_signal(q->fd, RT, CONSUME, KEVENT_REQ_DISPATCH), 0);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 1);
	CHECK_NO_EVENT(q);
	CHECK(is_pending(RT));
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, CONSUME, KEVENT_REQ_DISABLED), 0);
	CHECK_EQ(queue_value(RT, 3), 0);
	CHECK_NO_EVENT(q);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, CONSUME, 0), 0);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 2);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 3);
	CHECK_NO_EVENT(q);
	CHECK(!is_pending(RT));
	CHECK_EQ(remove_signal(q->fd, RT), 0);
	CHECK_EQ(queue_value(RT, 4), 0);
	MUST_EQ(add_signal(q->fd, RT, CONSUME, KEVENT_REQ_ONESHOT), 0);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 4);
	CHECK_EQ(queue_value(RT, 5), 0);
	CHECK_NO_EVENT(q);
	block(RT, SIG_UNBLOCK);
	CHECK_EQ(handled, 1);
}

/* One that sleeps is woken for what was pending before ADD, or MODIFY. */
static void pending_signal_wakes_a_sleeper(void)
{
	struct waiter w;
	struct queue q;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	start_waiter(&w, &q, 1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(join_waiter(&w), 1);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGUSR1, CONSUME, KEVENT_REQ_DISABLED),
		0);
	start_waiter(&w, &q, 1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK(!is_pending(SIGUSR1));
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

/* Each takes one, and hands on what is left: a signal waits for no other, however many do. */
static void pending_signals_reach_all_who_sleep(void)
{
	struct waiter w[20];
	struct queue q;
	size_t i;

	open_queue(&q, 0);
	block(RT, SIG_BLOCK);
	/* It has looked. */
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	CHECK_NO_EVENT(&q);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, RT, CONSUME, KEVENT_REQ_DISABLED), 0);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		CHECK_EQ(queue_value(RT, i), 0);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		start_waiter(&w[i], &q, 1);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, RT, CONSUME, 0), 0);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		CHECK_EQ(join_waiter(&w[i]), 1);
	CHECK(!is_pending(RT));
	block(RT, SIG_UNBLOCK);
	close_queue(&q);
}

/* The second has slept last, and is woken first. */
struct two_waiters {
	struct queue	q;
	struct waiter	w, other;
};

static void two_wait(struct two_waiters *t)
{
	start_waiter(&t->w, &t->q, 1);
	start_waiter(&t->other, &t->q, 1);
}

static void send_to_the_first(struct two_waiters *t)
{
	CHECK_EQ(syscall(SYS_tgkill, getpid(), t->w.actor.tid, SIGUSR1), 0);
}

static void end_of_the_first(struct two_waiters *t)
{
	CHECK_EQ(join_waiter(&t->w), 1);
	MUST_EQ(mark_user(t->q.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&t->other), 1);
}

static int change_usr1(struct two_waiters *t, int consume, uint32_t flags)
{
	return change_signal(t->q.fd, KEVENT_CTL_MODIFY, SIGUSR1, consume, flags);
}

/* Only that thread can take it, whoever looks first. */
static void signal_of_a_thread_wakes_that_thread(void)
{
	struct two_waiters t;

	open_queue(&t.q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_user(t.q.fd, 1, 1, 0, 1), 0);
	two_wait(&t);
	send_to_the_first(&t);
	MUST_EQ(add_signal(t.q.fd, SIGUSR1, CONSUME, 0), 0);
	end_of_the_first(&t);
	MUST_EQ(change_usr1(&t, CONSUME, KEVENT_REQ_DISABLED), 0);
	two_wait(&t);
	send_to_the_first(&t);
	MUST_EQ(change_usr1(&t, CONSUME, 0), 0);
	end_of_the_first(&t);
	MUST_EQ(change_usr1(&t, OBSERVE, KEVENT_REQ_DISABLED), 0);
	two_wait(&t);
	send_to_the_first(&t);
	MUST_EQ(change_usr1(&t, CONSUME, 0), 0);
	end_of_the_first(&t);
	/* One look finds that of the process. */
	MUST_EQ(change_usr1(&t, CONSUME, KEVENT_REQ_DISABLED), 0);
	two_wait(&t);
	send_to_the_first(&t);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	MUST_EQ(change_usr1(&t, CONSUME, 0), 0);
	CHECK_EQ(join_waiter(&t.w), 1);
	CHECK_EQ(join_waiter(&t.other), 1);
	CHECK(!is_pending(SIGUSR1));
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&t.q);
}

static long takes_two(void *arg)
{
	struct waiter *w = arg;

	return get_events(w->q->fd, 2, 2, -1, w->ev);
}

/*
 * Those that one event is enough for are woken first, and sleep again before the last is woken.
 * There are more than three holds of the lock wake.
 */
static void signal_of_a_thread_wakes_it_among_many(void)
{
	struct waiter others[100], last = {};
	struct queue q;
	size_t i;

	open_queue(&q, 0);
	last.q = &q;
	block(RT, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, RT, CONSUME, 0), 0);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, RT, CONSUME, KEVENT_REQ_DISABLED), 0);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		start_waiter(&others[i], &q, 1);
	start_actor(&last.actor, takes_two, &last);
	CHECK(sleeps_in(last.actor.tid, __NR_kevent_get_events));
	CHECK_EQ(syscall(SYS_tgkill, getpid(), last.actor.tid, RT), 0);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), last.actor.tid, RT), 0);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, RT, CONSUME, 0), 0);
	CHECK_EQ(join_waiter(&last), 2);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		CHECK_EQ(queue_value(RT, i), 0);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		CHECK_EQ(join_waiter(&others[i]), 1);
	block(RT, SIG_UNBLOCK);
	close_queue(&q);
}

struct beside_an_add {
	struct two_waiters	t;
	sem_t			has_signal, added;
};

static long adds_usr1(void *arg)
{
	const struct beside_an_add *b = arg;

	return add_signal(b->t.q.fd, SIGUSR1, CONSUME, 0);
}

static long waits_with_a_signal(void *arg)
{
	struct beside_an_add *b = arg;

	if (syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1))
		return -errno;
	sem_post(&b->has_signal);
	sem_wait(&b->added);
	return get_events(b->t.q.fd, 1, 1, -1, b->t.w.ev);
}

/* The watch has looked for the thread that adds it. When that is done, another one looks. */
static void signal_of_a_thread_is_found_beside_an_add(void)
{
	struct beside_an_add b;
	struct actor adds;

	open_queue(&b.t.q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(sem_init(&b.has_signal, 0, 0), 0);
	MUST_EQ(sem_init(&b.added, 0, 0), 0);
	MUST_EQ(add_user(b.t.q.fd, 1, 1, 0, 1), 0);
	start_actor(&b.t.w.actor, waits_with_a_signal, &b);
	sem_wait(&b.has_signal);
	CHECK(start_in_window(&adds, "attached", adds_usr1, &b));
	sem_post(&b.added);
	CHECK(sleeps_in(b.t.w.actor.tid, __NR_kevent_get_events));
	start_waiter(&b.t.other, &b.t.q, 1);
	window_release();
	join_actor(&adds, PATIENCE_MS);
	CHECK_EQ(adds.ret, 0);
	end_of_the_first(&b.t);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&b.t.q);
}

static long polls_with_a_signal(void *arg)
{
	const struct queue *q = arg;
	struct pollfd pfd = { .fd = q->fd, .events = POLLIN };
	struct ukevent ev;

	if (syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) ||
	    syscall(SYS_ppoll, &pfd, 1, NULL, NULL, 0) != 1)
		return -errno;
	return get_events(q->fd, 1, 1, 0, &ev);
}

/* Nothing is ready for the thread that adds the watch, and so nothing is on a list. */
static void signal_of_a_thread_ends_its_poll(void)
{
	struct actor polls;
	struct queue q;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	start_actor(&polls, polls_with_a_signal, &q);
	CHECK(sleeps_in(polls.tid, SYS_ppoll));
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	join_actor(&polls, PATIENCE_MS);
	CHECK_EQ(polls.ret, 1);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

struct beside_a_poll {
	struct queue	q;
	sem_t		has_signal, asks, ends;
	int		found;
};

static long asks_with_a_signal(void *arg)
{
	struct beside_a_poll *b = arg;

	if (syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1))
		return -errno;
	sem_post(&b->has_signal);
	sem_wait(&b->asks);
	b->found = poll_now(b->q.fd);
	sem_wait(&b->ends);
	return 0;
}

/* It asks whether there is something, and takes nothing. */
static void poll_that_finds_a_signal_ends_others(void)
{
	struct actor asks, polls;
	struct beside_a_poll b = {};

	open_queue(&b.q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(sem_init(&b.has_signal, 0, 0) | sem_init(&b.asks, 0, 0) |
		sem_init(&b.ends, 0, 0), 0);
	start_actor(&asks, asks_with_a_signal, &b);
	sem_wait(&b.has_signal);
	MUST_EQ(add_signal(b.q.fd, SIGUSR1, CONSUME, 0), 0);
	start_actor(&polls, poll_forever, &b.q.fd);
	CHECK(sleeps_in(polls.tid, SYS_poll));
	sem_post(&b.asks);
	join_actor(&polls, PATIENCE_MS);
	CHECK_EQ(polls.ret, POLLIN);
	sem_post(&b.ends);
	join_actor(&asks, PATIENCE_MS);
	CHECK_EQ(asks.ret, 0);
	CHECK(b.found & POLLIN);
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&b.q);
}

/* A thread that sleeps in a wait takes what all threads block. */
static void blocked_signal_ends_a_wait(void)
{
	struct waiter w;
	struct queue q;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	start_waiter(&w, &q, 1);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK(!is_pending(SIGUSR1));
	block(SIGUSR1, SIG_UNBLOCK);
	close_queue(&q);
}

static void signalfd_gets_what_is_observed_only(void)
{
	struct signalfd_siginfo info;
	struct queue q;
	sigset_t set;
	int fd;

	open_queue(&q, 0);
	block(SIGUSR1, SIG_BLOCK);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	MUST(fd >= 0);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(&q, SIGUSR1, true, getpid(), SI_USER, 0);
	CHECK_EQ(read(fd, &info, sizeof(info)), -1);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGUSR1, OBSERVE, 0),
		0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	must_signal(&q, SIGUSR1, false, getpid(), SI_USER, 0);
	CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
	CHECK_EQ(info.ssi_signo, SIGUSR1);
	close(fd);
	close_queue(&q);
}

static sigjmp_buf after_fault;
static volatile char *volatile nowhere;

static volatile bool faults;

/* A signal that a process sent returns. */
static void leave_fault(int sig)
{
	count_signal(sig);
	if (faults)
		siglongjmp(after_fault, 1);
}

static int die_of_fault(void *arg)
{
	struct queue *q = arg;

	CHILD_MUST(add_signal(q->fd, SIGSEGV, CONSUME, 0) == 0);
	*nowhere = 1;
	return 1;
}

static void faults_are_observed_but_not_consumed(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(join_child(start_child(die_of_fault, &q), PATIENCE_MS),
		 -SIGSEGV);
	handle(SIGSEGV, leave_fault);
	MUST_EQ(add_signal(q.fd, SIGSEGV, CONSUME, 0), 0);
	faults = true;
	if (!sigsetjmp(after_fault, 1)) {
		*nowhere = 1;
		CHECK(!"fault");
	}
	faults = false;
	CHECK_EQ(handled, 1);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.id.raw_u64, SIGSEGV);
	CHECK_EQ(ev.ret_data[0], SEGV_MAPERR);
	/* If a process sends it, it is a signal like any other. */
	CHECK_EQ(kill(getpid(), SIGSEGV), 0);
	must_signal(&q, SIGSEGV, true, getpid(), SI_USER, 0);
	CHECK_EQ(handled, 1);
	close_queue(&q);
}

static int traced_child(void *arg)
{
	struct queue *q = arg;

	CHILD_MUST(add_signal(q->fd, SIGUSR1, CONSUME, 0) == 0);
	CHILD_MUST(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	CHILD_MUST(kill(getpid(), SIGUSR1) == 0);
	CHILD_MUST(kill(getpid(), SIGUSR2) == 0);
	return 0;
}

static void tracer_sees_no_consumed_signal(void)
{
	struct queue q;
	int status;
	pid_t pid;

	open_queue(&q, 0);
	handle(SIGUSR2, SIG_IGN);
	pid = start_child(traced_child, &q);
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFSTOPPED(status));
	CHECK_EQ(WSTOPSIG(status), SIGUSR2);
	must_signal(&q, SIGUSR1, true, pid, SI_USER, 0);
	MUST_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	close_queue(&q);
}

static int watch_job_control(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	CHILD_MUST(add_signal(q->fd, SIGTSTP, CONSUME, 0) == 0);
	CHILD_MUST(add_signal(q->fd, SIGCONT, CONSUME, 0) == 0);
	/* The signal does not stop the process. */
	CHILD_MUST(kill(getpid(), SIGTSTP) == 0);
	CHILD_MUST(next_event(q, &ev, 0) == 1 && ev.id.raw[0] == SIGTSTP);
	CHILD_MUST(kill(getpid(), SIGSTOP) == 0);
	CHILD_MUST(next_event(q, &ev, 0) == 1 && ev.id.raw[0] == SIGCONT);
	return 0;
}

static void consumed_sigcont_continues(void)
{
	struct queue q;
	int status;
	pid_t pid;

	open_queue(&q, 0);
	pid = start_child(watch_job_control, &q);
	MUST_EQ(waitpid(pid, &status, WUNTRACED), pid);
	MUST(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK_EQ(kill(pid, SIGCONT), 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	close_queue(&q);
}

static void two_queues_get_it_and_one_consumes(void)
{
	struct queue a, b;

	open_queue(&a, 0);
	open_queue(&b, 8);
	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(a.fd, SIGUSR1, OBSERVE, 0), 0);
	MUST_EQ(add_signal(b.fd, SIGUSR1, OBSERVE, 0), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	must_signal(&a, SIGUSR1, false, getpid(), SI_USER, 0);
	must_signal(&b, SIGUSR1, false, getpid(), SI_USER, 0);
	MUST_EQ(change_signal(b.fd, KEVENT_CTL_MODIFY, SIGUSR1, CONSUME, 0),
		0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	must_signal(&a, SIGUSR1, false, getpid(), SI_USER, 0);
	must_signal(&b, SIGUSR1, true, getpid(), SI_USER, 0);
	close_queue(&b);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 2);
	must_signal(&a, SIGUSR1, false, getpid(), SI_USER, 0);
	close_queue(&a);
}

static void consumed_signals_do_not_interrupt(void)
{
	struct queue q, other;
	struct waiter w;
	long long sleeps;

	open_queue(&q, 0);
	open_queue(&other, 0);
	handle(SIGUSR1, count_signal);
	MUST_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), 0);
	MUST_EQ(add_user(other.fd, 1, 1, 0, 1), 0);
	start_waiter(&w, &other, 1);
	sleeps = sleeps_so_far(w.actor.tid);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), w.actor.tid, SIGUSR1), 0);
	must_signal(&q, SIGUSR1, true, getpid(), SI_TKILL, 0);
	CHECK(waiter_asleep(&w));
	CHECK_EQ(sleeps_so_far(w.actor.tid), sleeps);
	MUST_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGUSR1, OBSERVE, 0),
		0);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), w.actor.tid, SIGUSR1), 0);
	CHECK_EQ(join_waiter(&w), -EINTR);
	CHECK_EQ(handled, 1);
	must_signal(&q, SIGUSR1, false, getpid(), SI_TKILL, 0);
	close_queue(&other);
	close_queue(&q);
}

/* Modes */

static void oneshot_and_dispatch_take_one_signal(struct queue *q)
{
	handle(RT, count_signal);
	MUST_EQ(add_signal(q->fd, RT, CONSUME, KEVENT_REQ_ONESHOT), 0);
	CHECK_EQ(queue_value(RT, 1), 0);
	CHECK_EQ(handled, 0);
	/* The watch has one signal, although nobody has read it. */
	CHECK_EQ(queue_value(RT, 2), 0);
	CHECK_EQ(handled, 1);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);

	MUST_EQ(add_signal(q->fd, RT, CONSUME, KEVENT_REQ_DISPATCH), 0);
	CHECK_EQ(queue_value(RT, 3), 0);
	CHECK_EQ(queue_value(RT, 4), 0);
	CHECK_EQ(handled, 2);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 3);
	CHECK_EQ(queue_value(RT, 5), 0);
	CHECK_EQ(handled, 3);
	CHECK_NO_EVENT(q);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, CONSUME,
			      KEVENT_REQ_DISPATCH),
		0);
	CHECK_EQ(queue_value(RT, 6), 0);
	CHECK_EQ(handled, 3);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 6);
}

static void disabled_watch_takes_nothing(struct queue *q)
{
	handle(RT, count_signal);
	MUST_EQ(add_signal(q->fd, RT, CONSUME, KEVENT_REQ_DISABLED), 0);
	CHECK_EQ(queue_value(RT, 1), 0);
	CHECK_EQ(handled, 1);
	CHECK_NO_EVENT(q);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, CONSUME, 0),
		0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(queue_value(RT, 2), 0);
	CHECK_EQ(queue_value(RT, 3), 0);
	/*
	 * The signal that the watch has taken waits while the watch is
	 * disabled.
	 */
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, CONSUME,
			      KEVENT_REQ_DISABLED),
		0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(handled, 1);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, OBSERVE,
			      KEVENT_REQ_DISPATCH),
		0);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 2);
	CHECK_NO_EVENT(q);
	MUST_EQ(change_signal(q->fd, KEVENT_CTL_MODIFY, RT, OBSERVE, 0),
		0);
	must_signal(q, RT, true, getpid(), SI_QUEUE, 3);
	CHECK_EQ(queue_value(RT, 4), 0);
	CHECK_EQ(handled, 2);
	must_signal(q, RT, false, getpid(), SI_QUEUE, 4);
	CHECK_NO_EVENT(q);
}

static void mark_tells_of_no_signal(struct queue *q)
{
	struct ukevent ev;

	MUST_EQ(add_signal(q->fd, SIGUSR1, CONSUME, 0), 0);
	CHECK_EQ(change_signal(q->fd, KEVENT_CTL_READY, SIGUSR1, 0, 0), 1);
	must_signal(q, SIGUSR1, false, 0, 0, 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(change_signal(q->fd, KEVENT_CTL_READY, SIGUSR2, 0, 0),
		 -ENOENT);
	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	ev.event = 2;
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &ev), -EINVAL);
}

static void wrong_requests_are_refused(void)
{
	static const uint64_t ids[] = {
		0, _NSIG, 1u << 31, 1ull << 32 | SIGUSR1, 1ull << 62 | SIGUSR1,
		SIGKILL, SIGSTOP, NOMASK, NOMASK | SIGKILL, NOMASK | SIGSTOP,
	};
	static const uint32_t events[] = { 0, 2, 3 };
	struct ukevent ev;
	struct queue q;
	unsigned int i;

	open_queue(&q, 0);
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		kevent_set_signal(&ev, 0, 0, 0, 0);
		ev.id.raw_u64 = ids[i];
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), -EINVAL);
	}
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
		ev.event = events[i];
		CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_ADD, &ev), -EINVAL);
	}
	CHECK_EQ(add_signal(q.fd, SIGUSR1, 0, KEVENT_REQ_KEEP_EACH), -EINVAL);
	CHECK_EQ(add_signal(q.fd, SIGUSR1, OBSERVE, 0), 0);
	CHECK_EQ(add_signal(q.fd, SIGUSR1, OBSERVE, 0), -EEXIST);
	CHECK_EQ(add_signal(q.fd, SIGUSR1, CONSUME, 0), -EEXIST);
	CHECK_EQ(add_signal(q.fd, 1, OBSERVE, 0), 0);
	CHECK_EQ(add_signal(q.fd, _NSIG - 1, CONSUME, 0), 0);
	CHECK_EQ(remove_signal(q.fd, SIGUSR2), -ENOENT);
	kevent_set_signal(&ev, SIGUSR1, 0, 0, 0);
	ev.id.raw_u64 |= 1ull << 40;
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_REMOVE, &ev), -ENOENT);
	CHECK_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGUSR2, 0, 0),
		 -ENOENT);
	CHECK_EQ(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGKILL, 0, 0),
		 -EINVAL);
	CHECK_EQ(remove_signal(q.fd, SIGUSR1), 0);
	CHECK_EQ(remove_signal(q.fd, SIGUSR1), -ENOENT);
	close_queue(&q);
}

/* A signal affects only its own watches, 16 of a process. */

#define PER_SIGNAL	16

static int adds_its_own(void *arg)
{
	struct queue q;

	(void)arg;
	open_queue(&q, 0);
	CHILD_MUST(add_signal(q.fd, SIGWINCH, OBSERVE, 0) == 0);
	return 0;
}

static void watches_of_one_signal_are_limited(void)
{
	struct queue q[PER_SIGNAL + 1];
	unsigned int i;

	for (i = 0; i <= PER_SIGNAL; i++) {
		open_queue(&q[i], 0);
		CHECK_EQ(add_signal(q[i].fd, SIGWINCH, OBSERVE, 0),
			 i < PER_SIGNAL ? 0 : -ENOSPC);
	}
	/* Another signal, another process */
	CHECK_EQ(add_signal(q[PER_SIGNAL].fd, SIGURG, OBSERVE, 0), 0);
	CHECK_EQ(join_child(start_child(adds_its_own, NULL), PATIENCE_MS), 0);
	CHECK_EQ(kill(getpid(), SIGWINCH), 0);
	for (i = 0; i < PER_SIGNAL; i++)
		must_signal(&q[i], SIGWINCH, false, getpid(), SI_USER, 0);
	CHECK_NO_EVENT(&q[PER_SIGNAL]);
	close_queue(&q[3]);
	CHECK_EQ(add_signal(q[PER_SIGNAL].fd, SIGWINCH, OBSERVE, 0), 0);
	CHECK_EQ(kill(getpid(), SIGWINCH), 0);
	must_signal(&q[PER_SIGNAL], SIGWINCH, false, getpid(), SI_USER, 0);
}

static bool can_be_watched(int sig)
{
	/* The C library uses those between the standard ones and SIGRTMIN. */
	return sig != SIGKILL && sig != SIGSTOP &&
	       (sig <= SIGSYS || sig >= SIGRTMIN);
}

static void all_signals_have_their_watches(void)
{
	struct queue q[PER_SIGNAL];
	unsigned int i;
	int sig;

	for (i = 0; i < PER_SIGNAL; i++) {
		open_queue(&q[i], 0);
		for (sig = 1; sig < _NSIG; sig++)
			if (can_be_watched(sig))
				MUST_EQ(add_signal(q[i].fd, sig, OBSERVE, 0),
					0);
	}
	for (sig = 1; sig < _NSIG; sig++) {
		if (!can_be_watched(sig))
			continue;
		handle(sig, SIG_IGN);
		if (sig == SIGCHLD)
			handle(sig, count_signal);
		CHECK_EQ(kill(getpid(), sig), 0);
		for (i = 0; i < PER_SIGNAL; i++)
			must_signal(&q[i], sig, false, getpid(), SI_USER, 0);
		if (sig % 2)
			CHECK_EQ(remove_signal(q[sig % PER_SIGNAL].fd, sig),
				 0);
	}
	for (i = 0; i < PER_SIGNAL; i++)
		close_queue(&q[i]);
	CHECK_EQ(kill(getpid(), SIGURG), 0);
}

/* A signal that a tracer puts back, or replaces, is not sent again. */

static int traced_requeue(void *arg)
{
	struct queue *q = arg;

	CHILD_MUST(add_signal(q->fd, SIGUSR1, OBSERVE, 0) == 0);
	CHILD_MUST(add_signal(q->fd, SIGUSR2, CONSUME, 0) == 0);
	CHILD_MUST(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	CHILD_MUST(kill(getpid(), SIGUSR1) == 0);
	CHILD_MUST(is_pending(SIGUSR1) && !is_pending(SIGUSR2));
	block(SIGUSR1, SIG_UNBLOCK);
	CHILD_MUST(!is_pending(SIGUSR1) && is_pending(SIGUSR2));
	return 0;
}

static void must_stop(pid_t pid, int sig)
{
	int status;

	MUST_EQ(waitpid(pid, &status, WUNTRACED), pid);
	MUST(WIFSTOPPED(status));
	MUST_EQ(WSTOPSIG(status), sig);
}

static void resume(pid_t pid, uint64_t blocked, long sig)
{
	if (blocked)
		MUST_EQ(ptrace(PTRACE_SETSIGMASK, pid,
			       (void *)sizeof(blocked), &blocked), 0);
	MUST_EQ(ptrace(PTRACE_CONT, pid, NULL, (void *)sig), 0);
}

static void signal_a_tracer_requeues_is_observed_once(void)
{
	struct queue q;
	pid_t pid;

	open_queue(&q, 0);
	pid = start_child(traced_requeue, &q);
	must_stop(pid, SIGUSR1);
	must_signal(&q, SIGUSR1, false, pid, SI_USER, 0);
	resume(pid, 1ull << (SIGUSR1 - 1) | 1ull << (SIGUSR2 - 1), SIGUSR1);
	/* The child unblocks it; this time the tracer replaces it. */
	must_stop(pid, SIGUSR1);
	CHECK_NO_EVENT(&q);
	resume(pid, 0, SIGUSR2);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/*
 * The terminal stops a background process that reads, and makes it try again.
 */

static int reads_in_background(void *arg)
{
	struct ukevent ev;
	struct queue q;
	char c;

	CHILD_MUST(setpgid(0, 0) == 0);
	open_queue(&q, 0);
	CHILD_MUST(add_signal(q.fd, SIGTTIN, CONSUME, 0) == -EINVAL);
	CHILD_MUST(add_signal(q.fd, SIGTTOU, CONSUME, 0) == -EINVAL);
	CHILD_MUST(add_signal(q.fd, SIGTTIN, OBSERVE, 0) == 0);
	CHILD_MUST(change_signal(q.fd, KEVENT_CTL_MODIFY, SIGTTIN, CONSUME,
				 0) == -EINVAL);
	CHILD_MUST(read(*(int *)arg, &c, 1) == 1);
	CHILD_MUST(next_event(&q, &ev, 0) == 1);
	CHILD_MUST(ev.id.raw_u64 == SIGTTIN && ev.ret_data[0] == SI_KERNEL);
	return 0;
}

static int leads_session(void *arg)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), tty, status;
	pid_t pid;

	(void)arg;
	CHILD_MUST(master >= 0 && !grantpt(master) && !unlockpt(master));
	CHILD_MUST(setsid() > 0);
	tty = open(ptsname(master), O_RDWR);
	CHILD_MUST(tty >= 0);
	pid = start_child(reads_in_background, &tty);
	CHILD_MUST(waitpid(pid, &status, WUNTRACED) == pid);
	CHILD_MUST(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN);
	handle(SIGTTOU, SIG_IGN);
	CHILD_MUST(tcsetpgrp(tty, pid) == 0);
	CHILD_MUST(write(master, "a\n", 2) == 2);
	CHILD_MUST(kill(pid, SIGCONT) == 0);
	CHILD_MUST(join_child(pid, PATIENCE_MS) == 0);
	return 0;
}

static void background_process_stops_at_the_terminal(void)
{
	CHECK_EQ(join_child(start_child(leads_session, NULL), PATIENCE_MS), 0);
}

/* The kernel sends SIGPIPE to the writer, and says no more than that. */
static void signal_without_information_is_the_own(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	close(fd[0]);
	MUST_EQ(add_signal(q->fd, SIGPIPE, CONSUME, 0), 0);
	CHECK_EQ(write(fd[1], "", 1), -1);
	CHECK_EQ(errno, EPIPE);
	must_signal(q, SIGPIPE, true, getpid(), SI_USER, 0);
	CHECK_NO_EVENT(q);
	close(fd[1]);
}

static const struct test_case cases[] = {
	TEST_EACH(observed_signals_are_handled_too),
	TEST_EACH(ignored_signals_are_observed),
	TEST_EACH(blocked_signals_are_observed_and_stay_pending),
	TEST(signals_before_add_are_not_reported),
	TEST(watch_is_of_the_whole_process),
	TEST_EACH(exit_of_a_child_is_a_signal),
	TEST_EACH(consumed_signals_are_not_delivered),
	TEST_EACH(consumed_signal_leaves_nothing_ready),
	TEST_EACH(blocked_signals_are_consumed_and_not_pending),
	TEST(blocked_signals_are_consumed_by_each_queue),
	TEST_EACH(pending_signals_are_taken_by_add),
	TEST(pending_signal_wakes_a_sleeper),
	TEST(pending_signals_reach_all_who_sleep),
	TEST(signal_of_a_thread_wakes_that_thread),
	TEST(signal_of_a_thread_wakes_it_among_many),
	TEST(signal_of_a_thread_is_found_beside_an_add),
	TEST(signal_of_a_thread_ends_its_poll),
	TEST(poll_that_finds_a_signal_ends_others),
	TEST(blocked_signal_ends_a_wait),
	TEST(signalfd_gets_what_is_observed_only),
	TEST(tracer_sees_no_consumed_signal),
	TEST(faults_are_observed_but_not_consumed),
	TEST_EACH(signal_without_information_is_the_own),
	TEST(consumed_sigcont_continues),
	TEST(two_queues_get_it_and_one_consumes),
	TEST(consumed_signals_do_not_interrupt),
	TEST_EACH(oneshot_and_dispatch_take_one_signal),
	TEST_EACH(disabled_watch_takes_nothing),
	TEST_EACH(mark_tells_of_no_signal),
	TEST(wrong_requests_are_refused),
	TEST(watches_of_one_signal_are_limited),
	TEST(all_signals_have_their_watches),
	TEST(signal_a_tracer_requeues_is_observed_once),
	TEST(background_process_stops_at_the_terminal),
	{}
};

const struct test_suite signal_suite = { .name = "signal", .cases = cases };
