// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the suites of KEVENT_SIGNAL
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "signals.h"

_Atomic int handled;

void count_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

void handle(int sig, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler,
				.sa_flags = SA_RESTART };

	atomic_store(&handled, 0);
	MUST_EQ(sigaction(sig, &sa, NULL), 0);
}

void block(int sig, int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	MUST_EQ(pthread_sigmask(how, &set, NULL), 0);
}

bool is_pending(int sig)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, sig);
}

int change_signal(int kq, uint32_t cmd, int sig, int consume, uint32_t flags)
{
	struct ukevent ev;

	kevent_set_signal(&ev, sig, consume, flags, sig + 100);
	return kevent_ctl_one(kq, cmd, &ev);
}

int add_signal(int kq, int sig, int consume, uint32_t flags)
{
	return change_signal(kq, KEVENT_CTL_ADD, sig, consume, flags);
}

int remove_signal(int kq, int sig)
{
	return change_signal(kq, KEVENT_CTL_REMOVE, sig, 0, 0);
}

int queue_value(int sig, int value)
{
	return sigqueue(getpid(), sig, (union sigval){ .sival_int = value }) ?
		-errno : 0;
}

int kill_thread(int sig)
{
	return syscall(SYS_tgkill, getpid(), gettid(), sig) ? -errno : 0;
}

void set_limit(rlim_t nr)
{
	struct rlimit lim = { nr, nr };

	MUST_EQ(setrlimit(RLIMIT_SIGPENDING, &lim), 0);
}

void must_signal(struct queue *q, int sig, bool consumed, pid_t pid, int code,
		 int value)
{
	struct ukevent ev;
	int ret;

	/* An observed signal may end the wait before the watch reports it. */
	do {
		ret = next_event(q, &ev, PATIENCE_MS * slowness);
	} while (ret == -EINTR);
	MUST_EQ(ret, 1);
	CHECK_EQ(ev.type, KEVENT_SIGNAL);
	CHECK_EQ(ev.event, KEVENT_SIGNAL_DELIVERY);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.id.raw[0], sig);
	CHECK_EQ(ev.id.raw[1] & INT_MAX, pid);
	CHECK_EQ(!!(ev.id.raw_u64 & NOMASK), consumed);
	CHECK_EQ((int)ev.ret_data[0], code);
	CHECK_EQ((int)ev.ret_data[1], value);
	CHECK_EQ(ev.ptr, sig + 100);
}
