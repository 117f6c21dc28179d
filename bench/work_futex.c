// SPDX-License-Identifier: GPL-2.0
/*
 * futex: a thread changes one of some words, and wakes who waits for it
 *
 * The taker sleeps, learns which word it is, reads it, and is ready for the next change.
 * kevent has a watch of FUTEX for each word. io_uring has its own requests. The others have
 * a thread, which waits for all words in one call and writes an eventfd. bare knows which word
 * comes next, and waits for it.
 */
#include <errno.h>
#include <libkevent.h>
#include <liburing.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "threads.h"

#define WARM_UP		256
#define WORDS_MAX	64
/* In headers of later kernels */
#define URING_FUTEX_WAIT	51
#define PRIVATE_U32		(0x02 | FUTEX_PRIVATE_FLAG)
#ifndef SYS_futex_waitv
#define SYS_futex_waitv		449
#endif

enum { TAKER_CPU, WAKER_CPU };
enum { WAKER = 1, TAKER };		/* priorities on one CPU */

/* As struct futex_waitv, which older headers lack */
struct waitv {
	uint64_t	val;
	uint64_t	uaddr;
	uint32_t	flags;
	uint32_t	reserved;
};

/**
 * struct run - one run of a contestant
 * @c: the contestant
 * @q: its queue; bare has none
 * @words: the words
 * @nr_words: how many
 * @events: how many changes there are
 * @seen: how many the taker has seen
 * @bell: of who waits for words by a thread: an eventfd
 * @rung: which word the thread means
 * @stop: the thread is to end at the next change
 */
struct run {
	const struct bench_contestant	*c;
	struct bench_queue		*q;
	uint32_t			words[WORDS_MAX];
	unsigned int			nr_words;
	unsigned int			events;
	unsigned int			seen;
	int				bell;
	unsigned int			rung;
	bool				stop;
};

static bool is_kevent(const struct bench_contestant *c)
{
	return !strcmp(c->backend->name, "kevent");
}

static bool is_uring(const struct bench_contestant *c)
{
	return !strcmp(c->backend->name, "uring");
}

/* A thread of @run has the bell. */
static bool has_bell(const struct run *run)
{
	return run->q && !is_kevent(run->c) && !is_uring(run->c);
}

static bool futex_accepts(const struct bench_contestant *c, const struct bench_point *p)
{
	(void)p;
	return !is_kevent(c) || !strcmp(c->mode, "et");
}

static void futex_setup(const struct bench_point *p)
{
	if (p->watches > WORDS_MAX)
		bench_die("--watches: more than %d", WORDS_MAX);
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void wait_for(uint32_t *word, uint32_t expected)
{
	while (load(word) == expected)
		if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL) &&
		    errno != EAGAIN && errno != EINTR)
			bench_die("futex: %s", strerror(errno));
}

/* --- who changes the words ------------------------------------------------ */

static void change(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	if (syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1) < 0)
		bench_die("futex: %s", strerror(errno));
}

static void *waker(void *arg)
{
	struct run *run = arg;
	uint64_t order = 1;
	unsigned int i;

	bench_pin(WAKER_CPU);
	if (bench_one_cpu())
		bench_realtime(WAKER);
	for (i = 0; i < run->events; i++) {
		change(&run->words[bench_random(&order) % run->nr_words]);
		bench_await_seen(&run->seen, i + 1);
	}
	return NULL;
}

/* --- a thread that waits for words, and rings a bell ------------------------ */

/* A wake-up may come after its change was seen. */
static bool is_changed(const uint32_t *word, uint32_t seen)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) != seen;
}

static unsigned int wait_for_any(const struct run *run, const struct waitv *v)
{
	unsigned int i;
	long ret;

	for (;;) {
		ret = syscall(SYS_futex_waitv, v, run->nr_words, 0, NULL, 0);
		if (ret < 0 && errno != EAGAIN && errno != EINTR)
			bench_die("futex_waitv: %s", strerror(errno));
		if (ret >= 0 && is_changed(&run->words[ret], (uint32_t)v[ret].val))
			return (unsigned int)ret;
		for (i = 0; ret < 0 && i < run->nr_words; i++)
			if (is_changed(&run->words[i], (uint32_t)v[i].val))
				return i;
	}
}

static void *listener(void *arg)
{
	struct waitv v[WORDS_MAX];
	struct run *run = arg;
	const uint64_t one = 1;
	unsigned int i;

	for (i = 0; i < run->nr_words; i++)
		v[i] = (struct waitv){ .uaddr = (uintptr_t)&run->words[i],
				       .flags = PRIVATE_U32 };
	for (;;) {
		i = wait_for_any(run, v);
		if (__atomic_load_n(&run->stop, __ATOMIC_ACQUIRE))
			return NULL;
		v[i].val = load(&run->words[i]);
		__atomic_store_n(&run->rung, i, __ATOMIC_RELEASE);
		if (write(run->bell, &one, sizeof(one)) != sizeof(one))
			bench_die("eventfd: %s", strerror(errno));
	}
}

static unsigned int take_bell(struct run *run)
{
	uint64_t value;

	if (run->c->backend->wait(run->q, &value, 1, -1) != 1 ||
	    read(run->bell, &value, sizeof(value)) != sizeof(value) || value != 1)
		bench_die("the bell is not rung once");
	return __atomic_load_n(&run->rung, __ATOMIC_ACQUIRE);
}

static pthread_t open_bell(struct run *run)
{
	struct bench_watch w = { .events = POLLIN, .kind = BENCH_FILE };

	run->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (run->bell < 0)
		bench_die("eventfd: %s", strerror(errno));
	w.fd = run->bell;
	run->c->backend->add(run->q, &w, 1);
	return bench_thread(listener, run);
}

static void close_bell(struct run *run, pthread_t thread)
{
	__atomic_store_n(&run->stop, true, __ATOMIC_RELEASE);
	change(&run->words[0]);
	bench_join(thread);
	close(run->bell);
}

/* --- kevent ----------------------------------------------------------------- */

static void watch(struct run *run, __u32 cmd, unsigned int i)
{
	struct kevent_queue *k = run->c->backend->native(run->q);
	struct ukevent ev;

	kevent_set_futex(&ev, &run->words[i], load(&run->words[i]), KEVENT_FUTEX_PRIVATE, 0, i);
	if (kevent_ctl_one(k->fd, cmd, &ev))
		bench_die("cannot watch a word");
}

static unsigned int take_event(struct run *run)
{
	struct kevent_queue *k = run->c->backend->native(run->q);
	struct ukevent ev;

	if (kevent_queue_get(k, &ev, 1, NULL) != 1)
		bench_die("no event of a word");
	watch(run, KEVENT_CTL_MODIFY, (unsigned int)ev.ptr);
	return (unsigned int)ev.ptr;
}

/* --- io_uring ----------------------------------------------------------------- */

/* It is submitted with the next wait. */
static void request(struct run *run, unsigned int i)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(run->c->backend->native(run->q));

	if (!sqe)
		bench_die("io_uring has no room for a request");
	io_uring_prep_rw(URING_FUTEX_WAIT, sqe, PRIVATE_U32, &run->words[i], 0,
			 load(&run->words[i]));
	sqe->addr3 = FUTEX_BITSET_MATCH_ANY;
	sqe->user_data = i;
}

static unsigned int take_completion(struct run *run)
{
	struct io_uring *ring = run->c->backend->native(run->q);
	struct io_uring_cqe *cqe;
	unsigned int i;

	while (io_uring_peek_cqe(ring, &cqe))
		io_uring_submit_and_wait(ring, 1);
	/* A word that has changed before the request came is as good. */
	if (cqe->res && cqe->res != -EAGAIN)
		bench_die("io_uring: %s", strerror(-cqe->res));
	i = (unsigned int)cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	request(run, i);
	return i;
}

/* ------------------------------------------------------------------------------ */

static unsigned int take(struct run *run, unsigned int next, uint32_t expected)
{
	if (!run->q)
		wait_for(&run->words[next], expected);
	else if (is_kevent(run->c))
		return take_event(run);
	else if (is_uring(run->c))
		return take_completion(run);
	else
		return take_bell(run);
	return next;
}

/* io_uring hands its requests over before the waker runs. */
static void open_all(struct run *run)
{
	unsigned int i;

	for (i = 0; run->q && i < run->nr_words; i++) {
		if (is_kevent(run->c))
			watch(run, KEVENT_CTL_ADD, i);
		else if (is_uring(run->c))
			request(run, i);
	}
	if (is_uring(run->c))
		io_uring_submit(run->c->backend->native(run->q));
}

static double go(struct run *run)
{
	uint32_t seen[WORDS_MAX] = { 0 };
	uint64_t order = 1, start = 0;
	unsigned int i, next, got;

	for (i = 0; i < run->events; i++) {
		if (i == WARM_UP)
			start = bench_now();
		next = bench_random(&order) % run->nr_words;
		do {
			got = take(run, next, seen[next]);
		} while (!is_changed(&run->words[got], seen[got]));
		if (got != next || load(&run->words[next]) != ++seen[next])
			bench_die("another word than the one that has changed");
		__atomic_store_n(&run->seen, i + 1, __ATOMIC_RELEASE);
	}
	return (double)(bench_now() - start) / (run->events - WARM_UP);
}

static void futex_measure(const struct bench_point *p, const struct bench_contestant *c,
			  double *value)
{
	struct run run = { .c = c, .nr_words = p->watches, .events = p->events + WARM_UP };
	pthread_t thread, bell = 0;

	bench_pin(TAKER_CPU);
	if (bench_one_cpu())
		bench_realtime(TAKER);
	if (!c->backend->blind)
		run.q = c->backend->open(c->mode, p->watches, p->watches);
	open_all(&run);
	if (has_bell(&run))
		bell = open_bell(&run);
	thread = bench_thread(waker, &run);
	value[0] = go(&run);
	bench_join(thread);
	if (has_bell(&run))
		close_bell(&run, bell);
	if (run.q)
		c->backend->close(run.q);
	if (bench_one_cpu())
		bench_realtime(0);
}

static const struct bench_metric metrics[] = {
	{ .name = "cost", .unit = "ns/change" },
};

const struct bench_workload work_futex = {
	.name		= "futex",
	.metrics	= metrics,
	.nr_metrics	= ARRAY_SIZE(metrics),
	.sources	= BENCH_WORDS("word"),
	.batches	= BENCH_NUMBERS(1),
	.watches	= BENCH_NUMBERS(1, 64),
	.threads	= BENCH_NUMBERS(1),
	.events		= 1000,
	.runs		= 3,
	.accepts	= futex_accepts,
	.setup		= futex_setup,
	.measure	= futex_measure,
};
