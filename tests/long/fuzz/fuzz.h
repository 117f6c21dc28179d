/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kevent-fuzz: random operations on queues, next to a model of what
 * the manual pages say about them
 *
 * main.c	 options, seeds, what is printed
 * generate.c	 a sequence of operations from a seed
 * run.c	 runs a sequence in a child, and stops at the first difference
 * ops.c	 makes one operation, and tells the model what came of it
 * names.c	 names of operations, and signals
 * ids.c	 operations on signals, processes, timers and futex words
 * world.c	 files, and what poll(2) says of them
 * model.c	 watches: what each must report and what it may report
 * files.c	 the model of SOCKET, PIPE and POLL
 * nest.c	 the model of queues in queues
 * turns.c	 the model of several queues on one file
 * sources.c	 the model of sources that have an id
 * times.c	 the model of timers
 * consume.c	 takes events, and compares
 * storm.c	 the same with threads and processes, compared at barriers
 * minimise.c	 leaves out operations as long as the sequence still fails
 * emit.c	 prints operations as a C test
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <libkevent.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NR_QUEUES	3
#define NR_SLOTS	12	/* descriptors of files */
#define NR_ENDS		(4 * NR_SLOTS)
#define NR_IDS		4	/* of each source that has ids */
#define NR_MANY		320	/* pipes that are written to at once */
#define NR_WATCHES	1200
#define MAX_OPS		4096
#define TIMER_USER	0x70000000u	/* the key of a timer is its cookie */
#define MAX_KEPT	64	/* marks and signals of a watch that wait */

/* Conditions of poll(2) in two classes: watches take turns in each. */
#define DATA_BITS	(KEVENT_POLL_POLLIN | KEVENT_POLL_POLLRDNORM)
#define ROOM_BITS	(KEVENT_POLL_POLLOUT | KEVENT_POLL_POLLWRNORM)
#define END_BITS	(KEVENT_POLL_POLLERR | KEVENT_POLL_POLLHUP)
#define ALL_BITS	(DATA_BITS | ROOM_BITS | END_BITS | \
			 KEVENT_POLL_POLLRDHUP | KEVENT_POLL_POLLPRI)

/* Operations */

enum op_code {
	OP_NONE,
	OP_OPEN,	/* x: first slot, n: kind, q: of KIND_QUEUE */
	OP_CLOSE,	/* x: slot */
	OP_AGAIN,	/* x: slot of a regular file: it is closed, and opened again */
	OP_STALE,	/* x: slot that was closed, and a request about it, as of OP_CTL */
	OP_DUP,		/* x to y */
	OP_WRITE,	/* x, n bytes; 0: until it is full */
	OP_READ,	/* x, n bytes; 0: until it is empty */
	OP_SHUTDOWN,	/* x */
	OP_CHANGE,	/* x, n: what is done to a regular file */
	OP_CTL,		/* cmd, type, x: slot or id, event, flags */
	OP_POP,		/* n entries of the ring */
	OP_COMMIT,	/* n entries of the ring */
	OP_COLLECT,	/* n entries at most */
	OP_WAKE_ALL,	/* calls that do not wait do as before */
	OP_REOPEN,	/* n: slots of the new ring */
	OP_HOLD,	/* a child keeps all descriptors open */
	OP_RELEASE,	/* it ends */
	OP_MANY_ADD,	/* event, flags: a watch of each of many pipes */
	OP_MANY_WRITE,	/* each of them */
	OP_MANY_READ,
	OP_KILL,	/* x: signal, n: value */
	OP_SPAWN,	/* x: a process */
	OP_END,		/* it ends, with status n */
	OP_REAP,
	OP_SET,		/* x: futex word, n: value */
	OP_WAKE,	/* x, n: how many */
	OP_SETTIME,	/* x: POSIX timer, n: microseconds of its interval */
	OP_NAP,		/* n microseconds pass */
	OP_SETTLE,	/* wait for all timers that are due */
	NR_OPS,
};

/**
 * struct op - an operation; what is out of place when its turn comes does nothing
 * @code:	&enum op_code
 * @q:		queue
 * @child:	a child process makes it
 * @cmd:	of kevent_ctl()
 * @type:	of a watch
 * @x:		slot or id
 * @y:		another one
 * @n:		a number
 * @event:	interest
 * @flags:	request flags
 */
struct op {
	uint8_t		code;
	uint8_t		q;
	uint8_t		child;
	uint8_t		cmd;
	uint8_t		type;
	uint8_t		x;
	uint8_t		y;
	uint32_t	n;
	uint32_t	event;
	uint32_t	flags;
};

struct sequence {
	unsigned int	nr;
	struct op	op[MAX_OPS];
};

/* Files */

enum kind {
	KIND_NONE, KIND_PIPE_READ, KIND_PIPE_WRITE, KIND_SOCKET, KIND_EVENTFD,
	KIND_FILE,
	KIND_TCP,	/* only to open: becomes a socket */
	KIND_QUEUE,
};

/**
 * struct end - an open file
 * @kind:	of what
 * @slots:	descriptors of ours
 * @held:	a child has one, too
 * @tcp:	a socket of TCP: never filled, as room comes when it likes
 * @ending:	one of its ends was closed or shut down
 * @peer:	the other end of a pipe or stream, -1: it is closed, or there is none
 * @now:	what poll(2) says
 * @before:	what it said before the operation
 * @queue:	which one this is
 * @name:	of a file in /tmp, 0: it has lost it
 * @open_debt:	class of conditions: one queue of several was to be notified of it
 * @collected:	queues that have been asked since, as bits
 */
struct end {
	enum kind	kind;
	int		slots;
	bool		held;
	bool		tcp, ending;
	int		peer;
	uint32_t	now;
	uint32_t	before;
	unsigned int	name;
	int		queue;
	bool		open_debt[2];
	uint32_t	collected[2];
};

struct slot {
	int		fd;
	int		end;	/* -1: closed */
	int		was;	/* the number that was closed last, or -1 */
};

#include "model.h"

struct process {
	pid_t		pid;
	int		fd;		/* a byte here is its exit code */
	bool		ended, reaped;
	uint32_t	status;
};

struct posix_timer {
	int		id;
	bool		made;
};

/* All there is; one world in a process */
struct world {
	struct fqueue	q[NR_QUEUES];
	struct slot	slot[NR_SLOTS];
	struct end	end[NR_ENDS + NR_MANY];
	int		many[NR_MANY], many_in[NR_MANY];
	bool		has_many;
	struct process	process[NR_IDS];
	struct posix_timer timer[NR_IDS];
	pid_t		holder;
	uint64_t	begin_ns;	/* of the operation */
	uint64_t	stamps;		/* of waiters for futex words */
	uint64_t	users;		/* cookies given */
	unsigned int	names;		/* files made */
	bool		fallback;
	bool		call;		/* a consumer's call is under way */
	bool		handed;		/* ADD has just handed an event back */
	unsigned int	step;
	uint64_t	entries;	/* seen */
};

extern struct world W;

/* run.c */

/* The sequence differs from the model: ends the process. */
void fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
uint64_t now_ns(void);

struct outcome {
	bool		failed;
	unsigned int	step;
	uint64_t	entries;
	unsigned int	names;
	char		text[400];
};

/* Sequences sleep before some operations, after the model has looked. */
extern bool naps;

/* Runs it in a child, with a time limit. */
void run_sequence(const struct sequence *s, struct outcome *out);

void run_storm(uint64_t seed, struct outcome *out);

/* storm.c */
uint64_t storm(uint64_t seed, unsigned int phases);

/* generate.c */
void generate(struct sequence *s, uint64_t seed, unsigned int steps,
	      bool fallback);
uint32_t next_random(uint64_t *state);

/* ids.c */
uint32_t *futex_word(int x);

/* ops.c and ids.c */
void do_op(const struct op *op);
void do_id_op(const struct op *op);
void do_close(const struct op *op);
void open_world(bool fallback);
/* Runs @fn in a child, and returns its value, which may be negative. */
int in_child(int (*fn)(void *arg), void *arg);

/* world.c */
void look_at_files(void);
void look_at_many(void);
uint32_t poll_now(int fd);
void put_end(int slot);
void world_init(void);
void fill_slot(int x, int fd, enum kind kind);
bool world_open(int x, enum kind kind, int q);
/* The file of a slot that was closed, by the same number */
void world_open_again(int x, unsigned int name);
bool many_open(void);
char *file_name(unsigned int name);
void remove_files(pid_t pid);
/* Bytes to read from a TCP socket, or -1 */
long tcp_unread(int end);
/* Waits until poll(2) says one of the @bits, or so much is @unread unless -1. */
void tcp_arrive(int end, uint32_t bits, long unread);

/* nest.c */
bool nest_open(int x, int q);
/* What ADD of a watch of the slot returns because of loops, or 0 */
int nest_check(const struct op *op);
void nest_close(int q);
void nest_looked(void);
uint32_t nest_soon(const struct end *e);

/* consume.c */
void see_entries(struct fqueue *q);
void check_queues(void);
void do_consume(const struct op *op);

/* minimise.c */
void minimise(struct sequence *s, struct outcome *out);

/* emit.c */
extern FILE *emit_to;
void emit(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void emit_begin(FILE *to, const char *line);
void emit_end(const char *why);

/* names.c */
const char *op_name(uint8_t code);
int signal_of(int x);
bool is_realtime(int x);
void block_signals(void);

/* main.c */
void print_op(FILE *to, const struct op *op);

#endif /* FUZZ_H */
