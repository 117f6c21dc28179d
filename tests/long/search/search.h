/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kevent-search: looks for the input that costs most
 *
 * main.c	 options, what is printed
 * climb.c	 changes inputs at random, and keeps what costs more
 * seeds.c	 an input for each source to begin with
 * text.c	 inputs as text
 * run.c	 runs an input in a process of an ordinary user
 * world.c	 its queues and files
 * steps.c	 its operations
 * measure.c	 instructions and memory
 *
 * An input is a sequence of the fuzzer's operations, each of which may be repeated with
 * other queues and other ids. There is no model: an operation that is out of place
 * fails, and nobody looks.
 */
#ifndef SEARCH_H
#define SEARCH_H

#include "../fuzz/fuzz.h"

#define MAX_STEPS	40
#define MAX_TIMES	2048	/* of a step */
#define MAX_WORK	8000	/* of all steps together */

/* More operations than the fuzzer has */
enum {
	STEP_SLEEP = NR_OPS,	/* a thread sleeps in a call on q */
	STEP_EPOLL,		/* an epoll watches q */
	STEP_DROP,		/* the memory of q's ring is not there */
	STEP_CLOSE_QUEUE,	/* q */
	STEP_NEST,		/* x becomes a descriptor of queue n */
	STEP_FIFO,		/* x: one more file of FIFO n */
	STEP_SAME,		/* x: one more file of inode n */
	NR_STEPS,
};

/**
 * struct step - an operation that is repeated
 * @op:		see &struct op
 * @times:	how often
 * @dq:		the n-th time it is on queue @op.q + n * @dq
 * @dx:		... and on slot or id @op.x + n * @dx
 * @batch:	its requests are one call
 */
struct step {
	struct op	op;
	uint16_t	times;
	uint8_t		dq;
	uint8_t		dx;
	uint8_t		batch;
};

struct input {
	unsigned int	nr;
	struct step	step[MAX_STEPS];
};

/* Sources, by which the inputs are sorted */
enum source {
	SRC_SOCKET, SRC_PIPE, SRC_POLL, SRC_NESTED, SRC_INODE, SRC_TIMER,
	SRC_POSIX_TIMER, SRC_SIGNAL, SRC_PROC, SRC_FUTEX, SRC_USER, SRC_MIXED,
	NR_SOURCES,
};

/*
 * What is to be as large as possible. Of calls: instructions for each entry that the
 * call is given or gives.
 */
enum metric {
	STRETCH,	/* instructions with interrupts off, kevent among them */
	INIT, ADD, MODIFY, REMOVE, READY, GET, WAIT, COMMIT, CLOSE,
	BYTES,		/* of slabs, for 1000 bytes that the user is charged */
	NR_METRICS,
};

struct cost {
	uint64_t	value[NR_METRICS];
	unsigned int	step[NR_METRICS];	/* where */
	bool		failed;
};

/* run.c */
void run_input(const struct input *in, struct cost *cost);
void become(unsigned int uid);
void settle(void);

/* world.c */
#define NR_OPENED	512	/* queues */
#define NR_FILES	4096

struct wqueue {
	int			fd;	/* -1: not open */
	uint32_t		size;
	struct kevent_ring	*ring;
	unsigned int		added;
};

struct wslot {
	int		fd;		/* -1: closed */
	enum kind	kind;
};

extern struct wqueue queues[NR_OPENED];
extern struct wslot slots[NR_FILES];

void world_begin(void);
struct wqueue *queue_of(unsigned int q, bool open);
void queue_open(struct wqueue *q, uint32_t size);
void queue_close(struct wqueue *q);
void open_slot(unsigned int x, enum kind kind);
void close_slot(unsigned int x);
void fill(unsigned int x, int fd, enum kind kind);
void open_fifo(unsigned int x, unsigned int n);
void open_same(unsigned int x, unsigned int n);

/* steps.c */
void open_queues(const struct step *s);
void do_step(const struct step *s);

/* measure.c */
void measure_open(void);
void measure_places(void);
uint64_t host_seconds(void);
void measure_begin(struct cost *cost);
void step_begins(const struct step *s);
void step_ends(unsigned int nth);
/* Around a call: takes the time, which is in instructions. */
uint64_t call_begins(void);
void call_ends(enum metric metric, uint64_t began, int entries);

/* text.c */
extern const char *const source_names[NR_SOURCES];
extern const char *const metric_names[NR_METRICS];
void print_input(FILE *to, const struct input *in);
bool read_input(FILE *from, struct input *in);

/* seeds.c */
void seed_input(enum source source, struct input *in);
void seed_large(enum source source, struct input *in);
void fit(enum source source, struct step *s, uint64_t *state);

/* climb.c */
void climb(uint64_t seed, unsigned int seconds, unsigned int rounds,
	   uint32_t sources);

#endif /* SEARCH_H */
