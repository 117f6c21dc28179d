/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A team: threads that wait on one queue with kevent_wait_arg.max_running
 *
 * A worker that runs spins in user mode until the test tells it what to do. Whether one sleeps
 * on is no matter of time: the kernel says that it is parked.
 */
#ifndef TEAM_H
#define TEAM_H

#include <unistd.h>

#include "helpers.h"

#define SIZE	16
#define NR	4

struct worker;
typedef long (*order_t)(struct worker *w);

/* A thread that does what it is told, and spins in between */
struct worker {
	struct actor		actor;
	struct queue		*q;
	uint32_t		max;
	int64_t			ms;	/* < 0: without a limit */
	int			pipe[2];
	_Atomic(order_t)	order;
	long			ret;	/* of the newest order */
	bool			seen;	/* by one_more() */
	pid_t			child;
	_Atomic int		quit;
};

/* What a test has, in memory that children share */
struct team {
	struct queue		q;
	_Atomic int		stop;
	struct worker		w[NR];
};

long wait_for_event(struct queue *q, uint32_t max, int64_t ms);
long waits(struct worker *w);
long blocks(struct worker *w);
long forks(struct worker *w);
long ends(struct worker *w);
long work(void *arg);
void tell(struct worker *w, order_t order);
bool is_done(struct worker *w);
long result(struct worker *w);
struct worker *one_more(struct team *t);
bool no_more(struct team *t);
void let_read_return(struct worker *w);
bool comes_to(struct team *t, const char *key, long long nr);
bool parked(struct team *t, long long nr);
bool one_is_parked(struct team *t);
bool running(struct team *t, long long nr);
bool waiting(struct team *t, long long nr);
void mark(struct team *t, uint64_t id);

/*
 * A pipe in the queue, and a process without the ring that writes there when it is told:
 * the event waits in the kernel. It is there before threads run: fork() may block them.
 */
struct outside {
	int	fd[2], tell[2];
	pid_t	pid;
};

int write_on_request(void *arg);
void open_outside(struct outside *o);
void add_outside(struct team *t, struct outside *o, uint64_t user);
void write_outside(struct outside *o);
void close_outside(struct outside *o);
struct team *open_team(unsigned int nr, uint32_t max);
void request(struct team *t);
void end(struct team *t, struct worker *w);
void close_team(struct team *t, unsigned int nr);
void sleeps(struct worker *w);
void runs(struct team *t, struct worker *w, uint64_t id);

#endif /* TEAM_H */
