// SPDX-License-Identifier: GPL-2.0
/* Timers in the program: timeouts of io_uring, and a heap of its own */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <liburing.h>

#include "bench.h"
#include "timers.h"

#define NSEC_PER_SEC	1000000000ull
#define CQ_SIZE		65536		/* the most there is */
#define QUIET		(1ull << 32)	/* user_data of other requests */

/* --- io_uring ------------------------------------------------------------ */

static struct io_uring ring;
static struct __kernel_timespec times[TIMERS_BATCH];

static void uring_open(unsigned int nr)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = CQ_SIZE,
	};
	int ret = io_uring_queue_init_params(TIMERS_BATCH, &ring, &p);

	(void)nr;
	if (ret)
		bench_die("io_uring_queue_init: %s", strerror(-ret));
}

static struct __kernel_timespec *set_time(unsigned int slot, uint64_t due)
{
	times[slot].tv_sec = (long long)(due / NSEC_PER_SEC);
	times[slot].tv_nsec = (long long)(due % NSEC_PER_SEC);
	return &times[slot];
}

static void submit(unsigned int nr)
{
	int ret = io_uring_submit(&ring);

	if (ret != (int)nr)
		bench_die("io_uring_submit: %s", strerror(ret < 0 ? -ret : EIO));
}

static void arm_batch(const uint32_t *ids, const uint64_t *due,
		      unsigned int nr)
{
	struct io_uring_sqe *sqe;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout(sqe, set_time(i, due[ids[i]]), 0,
				      IORING_TIMEOUT_ABS);
		sqe->user_data = ids[i];
	}
	submit(nr);
}

static void rearm_batch(const uint32_t *ids, const uint64_t *due,
			unsigned int nr)
{
	struct io_uring_sqe *sqe;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout_update(sqe, set_time(i, due[ids[i]]),
					     ids[i], IORING_TIMEOUT_ABS);
		sqe->user_data = QUIET | ids[i];
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	}
	submit(nr);
}

static void uring_arm(const uint32_t *ids, const uint64_t *due,
		      unsigned int nr)
{
	for (; nr > TIMERS_BATCH; nr -= TIMERS_BATCH, ids += TIMERS_BATCH)
		arm_batch(ids, due, TIMERS_BATCH);
	arm_batch(ids, due, nr);
}

static void uring_rearm(const uint32_t *ids, const uint64_t *due,
			unsigned int nr)
{
	for (; nr > TIMERS_BATCH; nr -= TIMERS_BATCH, ids += TIMERS_BATCH)
		rearm_batch(ids, due, TIMERS_BATCH);
	rearm_batch(ids, due, nr);
}

static void check(const struct io_uring_cqe *cqe, int expected)
{
	if (cqe->res != expected || cqe->user_data & QUIET)
		bench_die("io_uring timeout %llx: %s",
			  (unsigned long long)cqe->user_data,
			  strerror(-cqe->res));
}

/* A timeout that is removed completes, with ECANCELED */
static void take_cancelled(unsigned int nr)
{
	struct io_uring_cqe *cqe;
	int ret;

	for (; nr; nr--) {
		ret = io_uring_wait_cqe(&ring, &cqe);
		if (ret)
			bench_die("io_uring_wait_cqe: %s", strerror(-ret));
		check(cqe, -ECANCELED);
		io_uring_cqe_seen(&ring, cqe);
	}
}

static void cancel_batch(const uint32_t *ids, unsigned int nr)
{
	struct io_uring_sqe *sqe;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout_remove(sqe, ids[i], 0);
		sqe->user_data = QUIET | ids[i];
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	}
	submit(nr);
	take_cancelled(nr);
}

static void uring_cancel(const uint32_t *ids, unsigned int nr)
{
	for (; nr > TIMERS_BATCH; nr -= TIMERS_BATCH, ids += TIMERS_BATCH)
		cancel_batch(ids, TIMERS_BATCH);
	cancel_batch(ids, nr);
}

static unsigned int uring_collect(uint32_t *ids, unsigned int max)
{
	struct io_uring_cqe *cqe[TIMERS_BATCH];
	unsigned int i, nr;
	int ret;

	ret = io_uring_wait_cqe(&ring, cqe);
	if (ret)
		bench_die("io_uring_wait_cqe: %s", strerror(-ret));
	nr = io_uring_peek_batch_cqe(&ring, cqe,
				     max < TIMERS_BATCH ? max : TIMERS_BATCH);
	for (i = 0; i < nr; i++) {
		check(cqe[i], -ETIME);
		ids[i] = (uint32_t)cqe[i]->user_data;
	}
	io_uring_cq_advance(&ring, nr);
	return nr;
}

static void uring_close(void)
{
	io_uring_queue_exit(&ring);
}

const struct timer_peer timers_uring = {
	uring_open, uring_arm, uring_rearm, uring_cancel,
	uring_collect, uring_close
};

/* --- a binary heap, and a sleep until its first timer --------------------- */

/* Numbers by rank; ranks and times by number */
static uint32_t *heap, *rank_of;
static uint64_t *due_of;
static unsigned int heap_size;

static void heap_open(unsigned int nr)
{
	heap = bench_alloc(nr, sizeof(*heap));
	rank_of = bench_alloc(nr, sizeof(*rank_of));
	due_of = bench_alloc(nr, sizeof(*due_of));
	heap_size = 0;
	/* clock_nanosleep() may be late by this slack; the others have none */
	if (prctl(PR_SET_TIMERSLACK, 1))
		bench_die("prctl: %s", strerror(errno));
}

static void put(unsigned int rank, uint32_t id)
{
	heap[rank] = id;
	rank_of[id] = rank;
}

static unsigned int rise(unsigned int rank, uint32_t id)
{
	while (rank && due_of[heap[(rank - 1) / 2]] > due_of[id]) {
		put(rank, heap[(rank - 1) / 2]);
		rank = (rank - 1) / 2;
	}
	return rank;
}

static unsigned int sink(unsigned int rank, uint32_t id)
{
	unsigned int child;

	while ((child = 2 * rank + 1) < heap_size) {
		if (child + 1 < heap_size &&
		    due_of[heap[child + 1]] < due_of[heap[child]])
			child++;
		if (due_of[heap[child]] >= due_of[id])
			break;
		put(rank, heap[child]);
		rank = child;
	}
	return rank;
}

static void settle(unsigned int rank, uint32_t id)
{
	put(sink(rise(rank, id), id), id);
}

static void heap_arm(const uint32_t *ids, const uint64_t *due,
		     unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		due_of[ids[i]] = due[ids[i]];
		heap_size++;
		settle(heap_size - 1, ids[i]);
	}
}

static void heap_rearm(const uint32_t *ids, const uint64_t *due,
		       unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		due_of[ids[i]] = due[ids[i]];
		settle(rank_of[ids[i]], ids[i]);
	}
}

static void heap_cancel(const uint32_t *ids, unsigned int nr)
{
	unsigned int i;
	uint32_t last;

	for (i = 0; i < nr; i++) {
		last = heap[--heap_size];
		if (last != ids[i])
			settle(rank_of[ids[i]], last);
	}
}

static uint64_t sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	uint64_t now = bench_now();

	if (ns <= now)
		return now;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	return bench_now();
}

static unsigned int heap_collect(uint32_t *ids, unsigned int max)
{
	uint64_t now = sleep_until(due_of[heap[0]]);
	unsigned int nr = 0;

	while (nr < max && heap_size && due_of[heap[0]] <= now) {
		ids[nr] = heap[0];
		heap_cancel(&ids[nr++], 1);
	}
	return nr;
}

static void heap_close(void)
{
	free(heap);
	free(rank_of);
	free(due_of);
}

const struct timer_peer timers_heap = {
	heap_open, heap_arm, heap_rearm, heap_cancel, heap_collect, heap_close
};
