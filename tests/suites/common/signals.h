/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of KEVENT_SIGNAL share
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <sys/resource.h>

#include "helpers.h"

#define OBSERVE	0
#define CONSUME	1
#define RT	(SIGRTMIN + 3)
#define NOMASK	KEVENT_SIGNAL_NOMASK

/* Calls of count_signal() since the last handle() */
extern _Atomic int handled;

void count_signal(int sig);
void handle(int sig, void (*handler)(int));
void block(int sig, int how);		/* SIG_BLOCK, SIG_UNBLOCK */
bool is_pending(int sig);
void set_limit(rlim_t nr);		/* RLIMIT_SIGPENDING */

/* Signals to this process, and to this thread: 0 or -errno */
int queue_value(int sig, int value);
int kill_thread(int sig);

/* The user value of a watch is its signal number + 100. */
int change_signal(int kq, uint32_t cmd, int sig, int consume, uint32_t flags);
int add_signal(int kq, int sig, int consume, uint32_t flags);
int remove_signal(int kq, int sig);

/* Expects @sig next, consumed or not, with this siginfo. */
void must_signal(struct queue *q, int sig, bool consumed, pid_t pid, int code,
		 int value);

#endif /* SIGNALS_H */
