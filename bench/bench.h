/* SPDX-License-Identifier: GPL-2.0 */
/* kevent-bench: the interface between a workload, a backend and the frame */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Lists of a struct bench_workload, with their ends */
#define BENCH_WORDS(...)	((const char *const[]){ __VA_ARGS__, NULL })
#define BENCH_NUMBERS(...)	((const unsigned int[]){ __VA_ARGS__, 0 })

#define BENCH_METRICS	8	/* most metrics of a workload */
#define BENCH_RUNS	64	/* most runs of a figure */
#define BENCH_SHIFTS	64	/* calls of bench_shift_stock() in one cycle */

/**
 * enum bench_kind - what a descriptor is, for interfaces that want to know
 * @BENCH_PIPE: a pipe
 * @BENCH_SOCKET: a socket
 * @BENCH_FILE: anything else that can be polled
 */
enum bench_kind {
	BENCH_PIPE,
	BENCH_SOCKET,
	BENCH_FILE,
};

/**
 * struct bench_watch - interest in a descriptor
 * @fd: the descriptor
 * @events: POLLIN, POLLOUT or both
 * @kind: what @fd is
 * @cookie: comes back with each event; below the number of watches that
 *	bench_backend.open() was given, and unique in the queue
 */
struct bench_watch {
	int		fd;
	short		events;
	enum bench_kind	kind;
	uint64_t	cookie;
};

struct bench_queue;

/**
 * struct bench_backend - an interface that reports events
 * @name: for --backend
 * @modes: for --mode, up to NULL
 * @blind: it reports no events, and has no other member: the workload does the
 *	same I/O in an order that it knows. Others are compared with it
 * @linear: a wait costs time for each watch, so workloads give it fewer events
 * @closes: the close of a file removes its watches
 * @only: the workload that it is for, which calls no member that it lacks; NULL: all
 * @probe: 0, or a negative errno when the kernel has no such interface in @mode
 * @open: a queue for so many watches, of which @ready may be ready at once
 * @close: free all of it
 * @add: add watches, in as few calls as the interface can
 * @modify: give watches, found by descriptor and cookie, the events they have
 *	now
 * @remove: remove watches; their events may be dropped
 * @wait: wait for events, up to @max, of which the cookies go to @cookies.
 *	@timeout is in ms, -1: none. Looks into user memory first if the
 *	interface allows that. Returns how many, 0 after the timeout
 * @native: the queue as the interface knows it: a pointer to the descriptor of
 *	epoll, to a struct kevent_queue or a struct io_uring
 *
 * A queue of io_uring belongs to the thread that opened it; those of epoll and
 * kevent may be shared. A function that fails calls bench_die().
 */
struct bench_backend {
	const char		*name;
	const char *const	*modes;
	bool			blind;
	bool			linear;
	bool			closes;
	const char		*only;
	int (*probe)(const char *mode);
	struct bench_queue *(*open)(const char *mode, unsigned int watches,
				    unsigned int ready);
	void (*close)(struct bench_queue *q);
	void (*add)(struct bench_queue *q, const struct bench_watch *w,
		    unsigned int nr);
	void (*modify)(struct bench_queue *q, const struct bench_watch *w,
		       unsigned int nr);
	void (*remove)(struct bench_queue *q, const struct bench_watch *w,
		       unsigned int nr);
	unsigned int (*wait)(struct bench_queue *q, uint64_t *cookies,
			     unsigned int max, int timeout);
	void *(*native)(struct bench_queue *q);
};

/**
 * struct bench_contestant - a backend in one of its modes
 * @backend: the backend
 * @mode: one of its modes
 */
struct bench_contestant {
	const struct bench_backend	*backend;
	const char			*mode;
};

/**
 * struct bench_point - parameters of one comparison
 * @source: pipe, unix or inet, or a word of the workload's own
 * @batch: events at once
 * @watches: number of watches
 * @threads: number of threads
 * @events: events of one run; 0 if @seconds says when to end
 * @seconds: length of one run
 */
struct bench_point {
	const char	*source;
	unsigned int	batch;
	unsigned int	watches;
	unsigned int	threads;
	unsigned int	events;
	double		seconds;
};

/**
 * struct bench_metric - what a workload measures
 * @name: for the results
 * @unit: its unit; a leading "ns" becomes "instructions" when the clock of the
 *	machine counts these
 * @above: report, as a further figure "@name above bare", how much more it is
 *	than the run of the blind backend in the same turn
 * @pairs: report, as a further figure "@name over PEER MODE", the ratio of
 *	kevent to each other contestant, run by run
 */
struct bench_metric {
	const char	*name;
	const char	*unit;
	bool		above;
	bool		pairs;
};

/**
 * struct bench_workload - something to measure
 * @name: for --workload
 * @metrics: what it measures, @nr_metrics of them
 * @nr_metrics: up to BENCH_METRICS
 * @sources: default of --source, up to NULL; all combinations of the lists are
 *	measured
 * @batches: default of --batch, up to 0
 * @watches: default of --watches, up to 0
 * @threads: default of --threads, up to 0
 * @events: default of --events
 * @seconds: default of --seconds
 * @runs: default of --runs
 * @accepts: whether a backend takes part at a point; NULL: all do
 * @setup: get ready for a point; NULL: nothing to do
 * @measure: one run. Sets those members of @value, in the order of @metrics,
 *	that the contestant has; they come as NAN. Contestants take turns, so
 *	that a drift of the machine hits all of them
 * @teardown: the reverse of @setup; NULL: nothing to do
 */
struct bench_workload {
	const char			*name;
	const struct bench_metric	*metrics;
	unsigned int			nr_metrics;
	const char *const		*sources;
	const unsigned int		*batches;
	const unsigned int		*watches;
	const unsigned int		*threads;
	unsigned int			events;
	double				seconds;
	unsigned int			runs;
	bool (*accepts)(const struct bench_contestant *c,
			const struct bench_point *p);
	void (*setup)(const struct bench_point *p);
	void (*measure)(const struct bench_point *p,
			const struct bench_contestant *c, double *value);
	void (*teardown)(const struct bench_point *p);
};

/* Both end with NULL; see tables.c */
extern const struct bench_backend *const bench_backends[];
extern const struct bench_workload *const bench_workloads[];

/**
 * struct bench_pair - two ends; what is written to @wr can be read from @rd
 * @rd: end to read, does not block
 * @wr: end to write, does not block
 */
struct bench_pair {
	int	rd;
	int	wr;
};

/**
 * bench_pairs_open() - make pairs
 * @source: pipe, unix or inet
 * @nr: how many
 *
 * Return: an array of @nr pairs.
 */
struct bench_pair *bench_pairs_open(const char *source, unsigned int nr);

/**
 * bench_pairs_close() - close pairs and free the array
 * @pairs: as bench_pairs_open() returned it
 * @nr: its length
 */
void bench_pairs_close(struct bench_pair *pairs, unsigned int nr);

/**
 * bench_watches() - watches that wait for the pairs to become readable
 * @source: as for bench_pairs_open()
 * @pairs: the pairs
 * @nr: how many; the cookie of each is its index
 *
 * Return: an array of @nr watches, to be freed.
 */
struct bench_watch *bench_watches(const char *source,
				  const struct bench_pair *pairs,
				  unsigned int nr);

/**
 * bench_kind_of() - kind of the descriptors of a source
 * @source: as for bench_pairs_open()
 *
 * Return: their kind.
 */
enum bench_kind bench_kind_of(const char *source);

/**
 * bench_put() - write one byte
 * @fd: end of a pair to write to
 */
void bench_put(int fd);

/**
 * bench_get() - read one byte, which must be there
 * @fd: end of a pair to read from
 */
void bench_get(int fd);

/**
 * bench_shift_stock() - change what is left of the last page charged
 *
 * Leaves a byte in a socket, or reads all of them when there are BENCH_SHIFTS. A
 * run that allocates and frees the same few objects again and again calls it
 * BENCH_SHIFTS times at equal distances, outside of the time that it measures.
 * Then each contestant charges pages as often as the others.
 */
void bench_shift_stock(void);

/**
 * bench_random() - next number of a sequence that is the same in each program
 * @state: of the sequence; start with any value but 0
 *
 * Return: 32 random bits.
 */
static inline uint32_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

/**
 * bench_now() - the time
 *
 * Return: CLOCK_MONOTONIC in nanoseconds.
 */
static inline uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/**
 * bench_sort() - sort figures, the smallest first
 * @figures: the figures
 * @nr: how many
 */
void bench_sort(double *figures, unsigned int nr);

/**
 * bench_expect_nothing() - end the program if a queue reports an event
 * @c: the contestant
 * @q: its queue
 */
void bench_expect_nothing(const struct bench_contestant *c,
			  struct bench_queue *q);

/**
 * bench_kevent_probe() - bench_backend.probe() of those that use kevent
 * @mode: any
 *
 * Return: 0, or a negative errno when there is no kevent.
 */
int bench_kevent_probe(const char *mode);

/**
 * bench_alloc() - memory for an array, cleared
 * @nr: elements
 * @size: of each
 *
 * Return: the memory, for free().
 */
void *bench_alloc(size_t nr, size_t size);

/**
 * bench_rest() - let the kernel finish what is left: memory to free, output
 *
 * Called before each run. Idle time passes at once on a machine whose clock
 * counts instructions; on others nothing is done.
 */
void bench_rest(void);

/**
 * bench_die() - say in one line what is wrong, and exit with status 1
 * @format: as for printf()
 */
void __attribute__((noreturn, format(printf, 1, 2)))
bench_die(const char *format, ...);

#endif /* BENCH_H */
