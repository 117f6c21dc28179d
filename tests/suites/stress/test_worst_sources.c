// SPDX-License-Identifier: GPL-2.0
/* The longest stretch with interrupts off: sources that are no files: see worst.h */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "timers.h"
#include "worst.h"

static void timers_at_once(struct worst *w, bool in_queues, bool sleepers)
{
	struct timespec at = later(CLOCK_MONOTONIC, 1);

	without(wait_until, &at);
	at = later(CLOCK_MONOTONIC, 20);
	add_timers(w, &at, 0, in_queues, FILES);
	/* Two of each queue */
	if (sleepers) {
		sleep_in_queues(w);
		sleep_in_queues(w);
	}
	CHECK(later(CLOCK_MONOTONIC, 0).tv_sec < at.tv_sec);
	at.tv_nsec += 500000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	with(wait_until, &at);
	finish(w);
}

static void timers_of_one_queue_at_once(void)
{
	struct worst w;

	start(&w, "TIMER, one instant");
	timers_at_once(&w, false, false);
}

static void timers_of_many_queues_at_once(void)
{
	struct worst w;

	start(&w, "TIMER, one instant, many queues");
	timers_at_once(&w, true, false);
}

static void timers_of_many_queues_wake_sleepers(void)
{
	struct worst w;

	start(&w, "TIMER, one instant, sleepers");
	timers_at_once(&w, true, true);
}

static void set_the_clock(void *arg)
{
	struct timespec now = later(CLOCK_REALTIME, *(int *)arg);

	become(0);
	MUST_EQ(clock_settime(CLOCK_REALTIME, &now), 0);
	become(USER);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
}

static void timers_cancelled_at_once(void)
{
	struct timespec at;
	struct worst w;
	int step = 5;

	start(&w, "TIMER, clock is set");
	without(set_the_clock, &step);
	at = later(CLOCK_REALTIME, 100000);
	add_timers(&w, &at, KEVENT_TIMER_REALTIME | KEVENT_TIMER_CANCEL_ON_SET,
		   false, FILES);
	with(set_the_clock, &step);
	finish(&w);
}

/* Signals */

static void arm_timer(timer_t timer)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 20000000 };

	MUST_EQ(timer_settime(timer, 0, &soon, NULL), 0);
}

static void expire_signal_timer(void *arg)
{
	arm_timer(*(timer_t *)arg);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static void watch_signal(struct worst *w, int sig, int consume)
{
	struct ukevent ev;
	unsigned int i;

	for (i = 0; i < QUEUES - 1; i++) {
		kevent_set_signal(&ev, sig, consume, 0,
				  i);
		new_queue(w, 8);
		if (!added(w, kevent_ctl_one(last_queue(w)->fd, KEVENT_CTL_ADD,
					     &ev)))
			return;
	}
}

static void one_signal(struct worst *w, int sig, int consume)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = sig,
	};
	timer_t timer;

	signal(sig, SIG_IGN);
	MUST_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	without(expire_signal_timer, &timer);
	watch_signal(w, sig, consume);
	with(expire_signal_timer, &timer);
	finish(w);
}

static void signal_observed(void)
{
	struct worst w;

	start(&w, "SIGNAL, observed");
	one_signal(&w, SIGUSR1, 0);
}

static void signal_consumed(void)
{
	struct worst w;

	start(&w, "SIGNAL, consumed");
	one_signal(&w, SIGRTMIN + 3, 1);
}

/* POSIX timers */

#define POSIX_TIMERS	10000

static int posix_timers[POSIX_TIMERS];

/* RLIMIT_SIGPENDING limits the timers. */
static bool arm_posix_timer(unsigned int nth, int id, const struct timespec *at)
{
	const struct itimerspec when = { .it_value = *at };

	if (is_full(id))
		return false;
	MUST(id >= 0);
	posix_timers[nth] = id;
	MUST_EQ(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &when, NULL), 0);
	return true;
}

static unsigned int arm_kevent_timers(int kq, const struct timespec *at)
{
	unsigned int i;

	for (i = 0; i < POSIX_TIMERS; i++)
		if (!arm_posix_timer(i, create(kq, CLOCK_MONOTONIC, i), at))
			break;
	return i;
}

/* Blocked signals are queued, one for each timer. */
static unsigned int arm_signal_timers(const struct timespec *at)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN + 5,
	};
	unsigned int i;
	sigset_t set;
	int id;

	sigemptyset(&set);
	sigaddset(&set, event.sigev_signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < POSIX_TIMERS; i++) {
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id))
			id = -errno;
		if (!arm_posix_timer(i, id, at))
			break;
	}
	return i;
}

/*
 * Without kevent the same number of timers queue signals, which takes time too.
 */
static void posix_timers_and_epolls(const char *name, unsigned int epolls)
{
	struct timespec at;
	struct worst w;
	unsigned int i, nr;
	int fd;

	start(&w, name);
	at = later(CLOCK_MONOTONIC, 10);
	nr = arm_signal_timers(&at);
	at.tv_sec++;
	without(wait_until, &at);
	signal(SIGRTMIN + 5, SIG_IGN);	/* drops the queued signals */
	for (i = 0; i < nr; i++)
		syscall(SYS_timer_delete, posix_timers[i]);
	at = later(CLOCK_MONOTONIC, 10);
	fd = new_queue(&w, 0)->fd;
	poll_by_epolls(fd, epolls);
	w.watches = arm_kevent_timers(fd, &at);
	at.tv_sec++;
	with(wait_until, &at);
	finish(&w);
}

static void posix_timers_at_once(void)
{
	posix_timers_and_epolls("POSIX_TIMER, one instant", 0);
}

/* The epolls are woken once, in an interrupt of their own. */
static void posix_timers_at_once_polled(void)
{
	posix_timers_and_epolls("POSIX_TIMER, one instant, epolls", 100);
}

static void process_ends(void)
{
	struct ukevent ev;
	unsigned int i;
	struct worst w;
	pid_t pid;

	start(&w, "PROC, one process");
	pid = start_child(wait_for_ever, NULL);
	without(end_process, &pid);
	pid = start_child(wait_for_ever, NULL);
	for (i = 0; i < QUEUES - 1; i++) {
		kevent_set_proc(&ev, pid, 0, i);
		if (!added(&w, kevent_ctl_one(new_queue(&w, 8)->fd,
					      KEVENT_CTL_ADD, &ev)))
			break;
	}
	with(end_process, &pid);
	finish(&w);
}

/* Futexes */

static void wake_futex(void *arg)
{
	MUST(syscall(SYS_futex, arg, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) >= 0);
}

static void futex_is_woken(void)
{
	static uint32_t word;
	struct ukevent ev;
	unsigned int i;
	struct worst w;

	start(&w, "FUTEX, one word");
	without(wake_futex, &word);
	for (i = 0; i < QUEUES - 1; i++) {
		kevent_set_futex(&ev, &word, 0, 0, 0, i);
		if (!added(&w, kevent_ctl_one(new_queue(&w, 8)->fd,
					      KEVENT_CTL_ADD, &ev)))
			break;
	}
	with(wake_futex, &word);
	finish(&w);
}

static const struct test_case cases[] = {
	WORST(timers_of_one_queue_at_once),
	WORST(timers_of_many_queues_at_once),
	WORST(timers_of_many_queues_wake_sleepers),
	WORST(timers_cancelled_at_once),
	WORST(signal_observed),
	WORST(signal_consumed),
	WORST(posix_timers_at_once),
	WORST(posix_timers_at_once_polled),
	WORST(process_ends),
	WORST(futex_is_woken),
	{}
};

const struct test_suite worst_sources_suite = {
	.name = "worst_sources",
	.cases = cases,
	.only_by_name = true,
};
