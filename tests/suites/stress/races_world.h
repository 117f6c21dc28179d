/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The world of the generator of races, see test_races.c: the queue, what it watches, who takes
 * events and who makes them
 */
#ifndef RACES_WORLD_H
#define RACES_WORLD_H

#include <poll.h>
#include <unistd.h>

#include "fuse.h"
#include "helpers.h"
#include "races.h"

#define THINGS		8
#define THREADS		4
#define PROCESSES	4
#define CONSUMERS	(THREADS + PROCESSES)
#define STRANGERS	2
#define NOISE		1000		/* user value of files that come and go */

/* What KEVENT_RACES selects */
enum kind {
	MEMORY, FORK, OUTSIDE, POLLERS, BLOCKED, MIXED, LIMIT, KILL, FREEZE, STOP, THROTTLE,
	READ_ONLY, MODIFY, CLOSE, TURNS, SEVERAL, FREE, USERS, SILENT, POSTS,
	NR_KINDS,
};

enum role {
	ABSENT,		/* sleeps outside the queue */
	WAITS,		/* for the ring */
	WAITS_LIMITED,	/* likewise, with a limit */
	WAITS_MANY,	/* likewise, for more than one entry */
	WAITS_BUFFER,
	LOOKS,		/* at memory, and calls when the ring is empty */
	CALLS,		/* for a buffer, again and again, and does not wait */
	BLOCKS,		/* was the last to wait, and is in a call of another file */
	READS_ONLY,	/* waits for a ring that it may not write */
	WAITS_SEVERAL,	/* for two to four entries */
	BUFFER_SEVERAL,	/* likewise, for a buffer */
};

/* Of events that are not handled yet */
enum holding {
	NOTHING,
	MAYBE,		/* a call returns, or not */
	SOME,
};

/* What happens to a process that plays a role */
enum fate {
	LEFT_ALONE, KILLED, DEAD, FROZEN, STOPPED, THROTTLES,
};

/* In memory that all processes share */
struct consumer {
	unsigned int	nr;
	_Atomic int	role;
	_Atomic unsigned int go;	/* the scene to play in; a futex */
	_Atomic unsigned int begun;	/* the scene in which it is about to call */
	_Atomic unsigned int over;	/* the scene that it has left */
	_Atomic int	holding;
	_Atomic pid_t	pid, tid;	/* of the process, of the thread */
	_Atomic int	err;		/* that no page has */
	_Atomic int	where;		/* the call */
	int		fate;
};

struct board {
	struct consumer		c[CONSUMERS];
	_Atomic unsigned int	scene;		/* that goes on; a futex */
	_Atomic bool		ends;
	_Atomic bool		fragile;	/* memory may be away */
	_Atomic unsigned long	sent[THINGS];
	_Atomic unsigned long	taken[THINGS];
	_Atomic unsigned int	again[THINGS];	/* one-shot watches to add */
	_Atomic unsigned long	posted;		/* of the driven thing: given, and not taken */
	_Atomic unsigned int	odd;		/* events that nobody made */
	_Atomic unsigned int	order;		/* for the process that writes */
	_Atomic unsigned int	obeyed;
	_Atomic unsigned int	what;		/* mask of things */
	_Atomic unsigned int	times;
};

struct thing {
	int		fd[2];		/* -1: it is driven */
	uint32_t	type, event, mode;
};

struct world {
	uint64_t	rnd;
	bool		kind[NR_KINDS];
	struct queue	q;
	int		memfd;		/* -1: private memory */
	int		idle_queue;	/* nobody waits there */
	bool		level;		/* all watches report again what is not taken */
	pid_t		pid;		/* who may post */
	struct board	*b;
	struct thing	t[THINGS];
	struct actor	threads[THREADS];
	struct actor	writer, hand;
	pid_t		outsider, strangers[STRANGERS];
	struct daemon	daemon;
	struct actor	serving;
	int		served;		/* the daemon's file; -1: there is none */
	_Atomic bool	silent;		/* the daemon reads no request */
	_Atomic bool	served_enough;
	bool		strange;	/* there are strangers */
	unsigned int	stranger;	/* the next one to start */
	pthread_mutex_t	memory;		/* held while some of it is away, and to fork */
	bool		no_fork;	/* nothing but an event wakes a consumer */
	uint64_t	began;
	int		block[2];	/* nobody writes there */
	bool		freezer, throttle;
	_Atomic unsigned int order, obeyed;	/* for the thread that writes */
	_Atomic unsigned int what, times;
	_Atomic bool	stop;
	bool		looks;		/* in this scene nobody sleeps */
	bool		one_is_silent;	/* likewise, a look does not end */
	unsigned int	scenes, rounds, deaths;
};

extern struct world *world;

unsigned int below(struct world *w, unsigned int nr);
bool chance(struct world *w, enum kind kind, unsigned int one_in);
bool is_process(const struct consumer *c);
unsigned int nr_consumers(const struct world *w);
void futex_wait(_Atomic unsigned int *word, unsigned int value);
void futex_wake(_Atomic unsigned int *word);
void on_fault(int sig);
bool is_driven(const struct thing *t);
int change_in(int kq, const struct thing *t, uint32_t cmd, uint32_t event,
	      uint32_t flags, uint64_t user);
int change(struct world *w, uint32_t cmd, unsigned int i, uint32_t event);
unsigned long take_given(struct world *w, const struct thing *t);
void give_all(struct world *w, unsigned int what, unsigned int times);
bool over(struct consumer *c);
unsigned int several(const struct consumer *c);
long run_consumer(void *arg);
void start_process(struct consumer *c);
long run_writer(void *arg);
int run_outsider(void *arg);
long long user_bytes(void);
bool pays_for(long long bytes);
int run_stranger(void *arg);
long run_daemon(void *arg);
void order(struct world *w, unsigned int what, unsigned int times,
	   bool outside);
void wait_for_writers(struct world *w);
long run_hand(void *arg);
void freeze(bool on);
void open_groups(struct world *w);
void meet_fate(const struct consumer *c);
void end_fate(struct consumer *c);

#endif /* RACES_WORLD_H */
