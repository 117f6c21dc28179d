/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of KEVENT_PROC share; defined in test_proc.c
 */
#ifndef PROC_H
#define PROC_H

#include <stdint.h>
#include <sys/types.h>

#include "helpers.h"

#define STATUS	KEVENT_PROC_STATUS

int add_proc(int kq, pid_t pid, uint32_t flags, uint64_t user);
int add_pidfd(int kq, int fd, uint32_t flags, uint64_t user);

/* A child that ends when the test closes its gate */
struct child {
	pid_t	pid;
	int	gate[2];
	int	code;	/* it exits with */
	int	sig;	/* it is killed by; or for @fn */
	int	(*fn)(struct child *c);	/* what it does instead of @signal */
};

void spawn(struct child *c, int code);
void let_go(struct child *c);
/* In the child: returns when the test opens the gate. */
void pass_gate(struct child *c);
int reap(struct child *c);
/* Waits until the child has exited and is a zombie. */
void await_zombie(struct child *c);

void check_exit(const struct ukevent *ev, pid_t pid, int status, uint64_t user);
/*
 * Expects one report of the exit, with the status from wait, and no watch left.
 */
void check_end(struct queue *q, struct child *c, uint64_t user);

#endif /* PROC_H */
