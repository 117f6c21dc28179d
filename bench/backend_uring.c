// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring with multishot poll, which is edge triggered. Completions arrive at
 * each system call (default) or when they are asked for (defer).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <liburing.h>

#include "bench.h"

#define SQ_ENTRIES	256
/*
 * The CQ sets the size of the kernel's table of polls; here the size is largest
 */
#define CQ_ENTRIES_MIN	8192
#define CQ_ENTRIES_MAX	65536

/* In user_data: the completion of a request that is not a poll */
#define CONTROL		(1ULL << 63)

/**
 * struct bench_queue - a ring, used by the thread that opened it
 * @ring: the ring
 * @watch: by cookie, to arm a poll again that has ended; without events where
 *	there is none
 * @watches: length of @watch
 * @early: cookies of events that came while others were removed
 * @nr_early: how many
 * @max_early: for how many there is room
 */
struct bench_queue {
	struct io_uring		ring;
	struct bench_watch	*watch;
	unsigned int		watches;
	uint64_t		*early;
	unsigned int		nr_early;
	unsigned int		max_early;
};

static unsigned int setup_flags(const char *mode)
{
	return strcmp(mode, "defer") ? 0 : IORING_SETUP_SINGLE_ISSUER |
					   IORING_SETUP_DEFER_TASKRUN;
}

static unsigned int cq_entries(unsigned int ready)
{
	if (ready > CQ_ENTRIES_MAX / 2)
		return CQ_ENTRIES_MAX;
	return 2 * ready > CQ_ENTRIES_MIN ? 2 * ready : CQ_ENTRIES_MIN;
}

static struct bench_queue *uring_open(const char *mode, unsigned int watches,
				      unsigned int ready)
{
	struct bench_queue *q = bench_alloc(1, sizeof(*q));
	struct io_uring_params params = {
		.flags = setup_flags(mode) | IORING_SETUP_CQSIZE,
		.cq_entries = cq_entries(ready),
	};
	int ret = io_uring_queue_init_params(SQ_ENTRIES, &q->ring, &params);

	if (ret)
		bench_die("io_uring_queue_init: %s", strerror(-ret));
	ret = io_uring_register_ring_fd(&q->ring);
	if (ret != 1)
		bench_die("io_uring_register_ring_fd: %s", strerror(-ret));
	q->watch = bench_alloc(watches, sizeof(*q->watch));
	q->watches = watches;
	q->max_early = CQ_ENTRIES_MAX;
	q->early = bench_alloc(q->max_early, sizeof(*q->early));
	return q;
}

static void submit(struct bench_queue *q)
{
	int ret = io_uring_submit(&q->ring);

	if (ret < 0)
		bench_die("io_uring_submit: %s", strerror(-ret));
}

static struct io_uring_sqe *next_sqe(struct bench_queue *q)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);

	if (sqe)
		return sqe;
	submit(q);
	return io_uring_get_sqe(&q->ring);
}

static void arm(struct bench_queue *q, const struct bench_watch *w)
{
	struct io_uring_sqe *sqe = next_sqe(q);

	io_uring_prep_poll_multishot(sqe, w->fd, (unsigned int)w->events);
	io_uring_sqe_set_data64(sqe, w->cookie);
}

static void uring_add(struct bench_queue *q, const struct bench_watch *w,
		      unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		q->watch[w[i].cookie] = w[i];
		arm(q, &w[i]);
	}
	submit(q);
}

static void uring_modify(struct bench_queue *q, const struct bench_watch *w,
			 unsigned int nr)
{
	struct io_uring_sqe *sqe;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		q->watch[w[i].cookie] = w[i];
		sqe = next_sqe(q);
		io_uring_prep_poll_update(sqe, w[i].cookie, 0,
					  (unsigned int)w[i].events,
					  IORING_POLL_UPDATE_EVENTS |
					  IORING_POLL_ADD_MULTI);
		io_uring_sqe_set_data64(sqe, CONTROL | w[i].cookie);
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	}
	submit(q);
}

/* A poll ends by itself when the CQ is full */
static void arm_ended(struct bench_queue *q, const struct io_uring_cqe *cqe)
{
	if (!(cqe->flags & IORING_CQE_F_MORE) &&
	    q->watch[cqe->user_data].events)
		arm(q, &q->watch[cqe->user_data]);
}

static void cancel(struct bench_queue *q, uint64_t cookie)
{
	struct io_uring_sqe *sqe = next_sqe(q);

	io_uring_prep_poll_remove(sqe, cookie);
	io_uring_sqe_set_data64(sqe, CONTROL | cookie);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

/*
 * A request fails if its poll has ended by itself, or is about to report. In
 * the second case this tries again. Returns whether the poll is gone.
 */
static bool cancel_failed(struct bench_queue *q, const struct io_uring_cqe *cqe)
{
	if (cqe->res == -EALREADY)
		cancel(q, cqe->user_data & ~CONTROL);
	else if (cqe->res != -ENOENT)
		bench_die("io_uring poll remove: %s", strerror(-cqe->res));
	return cqe->res == -ENOENT;
}

static void keep_early(struct bench_queue *q, uint64_t cookie)
{
	if (q->nr_early == q->max_early) {
		q->max_early *= 2;
		q->early = realloc(q->early,
				   q->max_early * sizeof(*q->early));
		if (!q->early)
			bench_die("no memory");
	}
	q->early[q->nr_early++] = cookie;
}

/* Take all completions, returns how many polls are gone */
static unsigned int reap_cancelled(struct bench_queue *q)
{
	unsigned int head, seen = 0, gone = 0;
	struct io_uring_cqe *cqe;

	io_uring_for_each_cqe(&q->ring, head, cqe) {
		seen++;
		if (cqe->user_data & CONTROL) {
			gone += cancel_failed(q, cqe);
		} else if (cqe->res == -ECANCELED) {
			gone++;
		} else {
			keep_early(q, cqe->user_data);
			arm_ended(q, cqe);
		}
	}
	io_uring_cq_advance(&q->ring, seen);
	return gone;
}

static void wait_cancelled(struct bench_queue *q, unsigned int nr)
{
	int ret;

	while (nr) {
		ret = io_uring_submit_and_wait(&q->ring, nr);
		if (ret < 0 && ret != -EINTR)
			bench_die("io_uring_enter: %s", strerror(-ret));
		nr -= reap_cancelled(q);
	}
}

/* A poll is gone only after its last completion */
static void uring_remove(struct bench_queue *q, const struct bench_watch *w,
			 unsigned int nr)
{
	unsigned int i, now;

	for (; nr; nr -= now, w += now) {
		now = nr < SQ_ENTRIES ? nr : SQ_ENTRIES;
		for (i = 0; i < now; i++) {
			q->watch[w[i].cookie].events = 0;
			cancel(q, w[i].cookie);
		}
		wait_cancelled(q, now);
	}
}

/*
 * The kernel itself would end the polls some time after the close. It keeps
 * polls in lists with the newest first, so remove the newest first.
 */
static void remove_all(struct bench_queue *q)
{
	struct bench_watch batch[SQ_ENTRIES];
	unsigned int i, nr = 0;

	for (i = q->watches; i--; ) {
		if (q->watch[i].events)
			batch[nr++] = q->watch[i];
		if (nr == SQ_ENTRIES || !i) {
			uring_remove(q, batch, nr);
			nr = 0;
		}
	}
}

static void uring_close(struct bench_queue *q)
{
	remove_all(q);
	io_uring_queue_exit(&q->ring);
	free(q->watch);
	free(q->early);
	free(q);
}

static void check(const struct io_uring_cqe *cqe)
{
	if (cqe->res < 0 || cqe->user_data & CONTROL)
		bench_die("io_uring poll: %s", strerror(-cqe->res));
}

/*
 * Takes the completions that are there; makes a system call only to arm again
 */
static unsigned int take(struct bench_queue *q, uint64_t *cookies,
			 unsigned int max)
{
	unsigned int head, seen = 0;
	struct io_uring_cqe *cqe;

	while (q->nr_early && seen < max)
		cookies[seen++] = q->early[--q->nr_early];
	if (seen)
		return seen;
	io_uring_for_each_cqe(&q->ring, head, cqe) {
		if (seen == max)
			break;
		check(cqe);
		cookies[seen++] = cqe->user_data;
		arm_ended(q, cqe);
	}
	io_uring_cq_advance(&q->ring, seen);
	if (io_uring_sq_ready(&q->ring))
		submit(q);
	return seen;
}

static int enter(struct bench_queue *q, int timeout)
{
	struct __kernel_timespec ts = {
		.tv_sec = timeout / 1000,
		.tv_nsec = timeout % 1000 * 1000000,
	};
	struct io_uring_cqe *cqe;

	if (timeout < 0)
		return io_uring_submit_and_wait(&q->ring, 1);
	if (!timeout)
		return io_uring_get_events(&q->ring);
	return io_uring_submit_and_wait_timeout(&q->ring, &cqe, 1, &ts, NULL);
}

static unsigned int uring_wait(struct bench_queue *q, uint64_t *cookies,
			       unsigned int max, int timeout)
{
	unsigned int nr;
	int ret;

	for (;;) {
		nr = take(q, cookies, max);
		if (nr)
			return nr;
		ret = enter(q, timeout);
		if (ret == -ETIME || !timeout)
			return take(q, cookies, max);
		if (ret < 0 && ret != -EINTR)
			bench_die("io_uring_enter: %s", strerror(-ret));
	}
}

static void *uring_native(struct bench_queue *q)
{
	return &q->ring;
}

static int uring_probe(const char *mode)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(1, &ring, setup_flags(mode));

	if (!ret)
		io_uring_queue_exit(&ring);
	return ret;
}

static const char *const modes[] = { "default", "defer", NULL };

const struct bench_backend backend_uring = {
	.name	= "uring",
	.modes	= modes,
	.probe	= uring_probe,
	.open	= uring_open,
	.close	= uring_close,
	.add	= uring_add,
	.modify	= uring_modify,
	.remove	= uring_remove,
	.wait	= uring_wait,
	.native	= uring_native,
};
