// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_CTL_WAKE_ALL: from then on no wait for events sleeps
 *
 *	T1 ... T40 sleep	WAKE_ALL -> each returns 0
 *	WAKE_ALL		T1 waits -> 0	T1 waits -> 0	...
 *	e, WAKE_ALL		T1 waits -> e	T1 waits -> 0
 *	T1 runs, T2 is parked	WAKE_ALL -> T2 returns 0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

#define MANY	40	/* one hold of the lock wakes 32 */
#define NR	6
#define MARKS	64
#define TESTPOINT	"/sys/kernel/debug/kevent/testpoint"

static int wake_all(const struct queue *q)
{
	return kevent_ctl(q->fd, KEVENT_CTL_WAKE_ALL, 0, NULL);
}

/* Calls that would sleep for ever must not keep the test: another thread makes them. */
static long result_of(long (*fn)(void *arg), void *arg)
{
	struct actor a;

	start_actor(&a, fn, arg);
	join_actor(&a, PATIENCE_MS);
	return a.ret;
}

/* What an endless wait for one event returns */
static long waits(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	return q->size ? wait_ring(q, 1, -1) : get_events(q->fd, 1, 1, -1, &ev);
}

/* The number of events in waits until one returns 0, or -errno */
static long waits_to_the_end(void *arg)
{
	struct queue *q = arg;
	struct kevent_queue lib = {
		.fd = q->fd, .size = q->size, .ring = q->ring
	};
	struct ukevent ev;
	long nr = 0;
	int ret;

	for (;;) {
		ret = q->size ? kevent_queue_get(&lib, &ev, 1, NULL) :
				get_events(q->fd, 1, 1, -1, &ev);
		if (ret <= 0)
			return ret ? ret : nr;
		nr++;
	}
}

static void sleepers_of_both_kinds_return(void)
{
	static struct waiter w[MANY];
	struct queue q, bare;
	unsigned int i;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	for (i = 0; i < MANY; i++)
		start_waiter_for(&w[i], i % 3 ? &q : &bare, 1 + i % 2, 4,
				 i % 5 ? -1 : 1000 * PATIENCE_MS);
	CHECK_EQ(wake_all(&q), 0);
	for (i = 0; i < MANY; i++)
		CHECK_EQ(join_waiter(&w[i]), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-waiting"), 0);
	close_queue(&q);
}

static void later_waits_return_at_once(struct queue *q)
{
	struct queue bare = { .fd = q->fd };
	int i;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(wake_all(q), 0);
		CHECK_EQ(result_of(waits, q), 0);
		CHECK_EQ(result_of(waits, &bare), 0);
		CHECK_EQ(result_of(waits_to_the_end, q), 0);
	}
	CHECK_NO_EVENT(q);
}

static long waits_with_arg(void *arg)
{
	struct kevent_wait_arg more = {
		.size = sizeof(more), .clockid = CLOCK_BOOTTIME,
		.min_nr = 4, .min_wait_ns = 1000 * 1000000000ull,
	};
	struct timespec never = { .tv_sec = 1000000000 };
	struct queue *q = arg;

	return kevent_wait(q->fd, 8, 0, &never,
			   KEVENT_FLAGS_ARG | KEVENT_FLAGS_ABSTIME, &more);
}

static long gets_several(void *arg)
{
	struct timespec never = { .tv_sec = 1000000000 };
	struct queue *q = arg;
	struct ukevent ev[4];

	return kevent_get_events(q->fd, 4, 4, &never, ev,
				 KEVENT_FLAGS_ABSTIME);
}

static void fewer_events_than_enough_are_reported(void)
{
	struct queue q;

	open_queue(&q, 8);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	CHECK_EQ(wake_all(&q), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(result_of(waits_with_arg, &q), 1);
	/* The entry is there still, and a wait that has seen it finds nothing. */
	CHECK_EQ(q.ring->ring_kidx, 1);
	CHECK_EQ(result_of(waits, &q), 0);
	close_queue(&q);
	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	CHECK_EQ(wake_all(&q), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(result_of(gets_several, &q), 1);
	CHECK_EQ(result_of(gets_several, &q), 0);
	close_queue(&q);
}

static void events_come_first(struct queue *q)
{
	unsigned int i;

	MUST_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_KEEP_EACH, 7), 0);
	for (i = 0; i < MARKS; i++)
		MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(wake_all(q), 0);
	CHECK_EQ(result_of(waits_to_the_end, q), MARKS);
	/* What comes later is taken as well. */
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(result_of(waits_to_the_end, q), 1);
	CHECK_EQ(result_of(waits_to_the_end, q), 0);
}

/* Each of those that sleep has its event, or returns 0 when others have taken it. */
static void sleepers_take_the_events_first(struct queue *q)
{
	struct actor a[NR];
	long total = 0;
	unsigned int i;

	MUST_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_KEEP_EACH, 7), 0);
	for (i = 0; i < NR; i++) {
		start_actor(&a[i], waits_to_the_end, q);
		MUST(sleeps_in(a[i].tid, q->size ? __NR_kevent_wait :
						   __NR_kevent_get_events));
	}
	for (i = 0; i < MARKS; i++)
		MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(wake_all(q), 0);
	for (i = 0; i < NR; i++) {
		join_actor(&a[i], PATIENCE_MS);
		CHECK(a[i].ret >= 0);
		total += a[i].ret;
	}
	CHECK_EQ(total, MARKS);
	CHECK_NO_EVENT(q);
}

/* Waits as one of a group of which one thread may run. */
static long waits_in_group(void *arg)
{
	struct kevent_wait_arg more = {
		.size = sizeof(more), .clockid = CLOCK_MONOTONIC,
		.max_running = 1,
	};
	struct queue *q = arg;
	struct ukevent ev;
	uint64_t uidx;
	int ret;

	for (;;) {
		uidx = __atomic_load_n(&q->ring->ring_uidx, __ATOMIC_ACQUIRE);
		ret = kevent_wait(q->fd, 1, (uint32_t)uidx, NULL,
				  KEVENT_FLAGS_ARG, &more);
		if (ret <= 0)
			return ret;
		if (kevent_ring_pop(q->ring, q->size, &ev, 1))
			return (long)ev.ptr;
	}
}

/* A thread that runs, as the only one that may, until it is told to stop */
struct runner {
	struct actor	actor;
	struct queue	*q;
	_Atomic int	runs, stop;
};

static int runs_in_group(struct queue *q)
{
	struct kevent_wait_arg more = {
		.size = sizeof(more), .clockid = CLOCK_MONOTONIC,
		.max_running = 1,
	};
	struct timespec now = {};

	return kevent_wait(q->fd, 1, 0, &now, KEVENT_FLAGS_ARG, &more);
}

static long runs_on(void *arg)
{
	struct runner *r = arg;
	int ret = runs_in_group(r->q);

	atomic_store(&r->runs, 1);
	while (!atomic_load(&r->stop))
		sched_yield();
	return ret;
}

static void start_runner(struct runner *r, struct queue *q)
{
	uint64_t start = now_ns();

	*r = (struct runner){ .q = q };
	start_actor(&r->actor, runs_on, r);
	while (!atomic_load(&r->runs))
		MUST(patient(start, PATIENCE_MS));
}

static void end_runner(struct runner *r)
{
	atomic_store(&r->stop, 1);
	join_actor(&r->actor, PATIENCE_MS);
	CHECK_EQ(r->actor.ret, 0);
}

static void check_limit(struct queue *q)
{
	struct actor a[NR];
	struct runner r;
	long sum = 0;
	int i;

	MUST_EQ(add_user(q->fd, 1, 1, 0, 7), 0);
	start_runner(&r, q);
	for (i = 0; i < NR; i++) {
		start_actor(&a[i], waits_in_group, q);
		MUST(sleeps_in(a[i].tid, __NR_kevent_wait));
	}
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(wake_all(q), 0);
	for (i = 0; i < NR; i++) {
		join_actor(&a[i], PATIENCE_MS);
		sum += a[i].ret;
	}
	CHECK_EQ(sum, 7);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(result_of(waits_in_group, q), 7);
	CHECK_EQ(result_of(waits_in_group, q), 0);
	end_runner(&r);
}

static void limit_holds_nobody(void)
{
	struct queue q;

	open_queue(&q, 8);
	/* The module has no limit. */
	if (on_module())
		CHECK_EQ(runs_in_group(&q), -EINVAL);
	else
		check_limit(&q);
	close_queue(&q);
}

static short polled(const struct queue *q)
{
	struct pollfd p = { .fd = q->fd, .events = POLLIN };

	CHECK(poll(&p, 1, 0) >= 0);
	return p.revents;
}

static void poll_tells_of_events_only(struct queue *q)
{
	CHECK_EQ(wake_all(q), 0);
	CHECK_EQ(polled(q), 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 7), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(polled(q), POLLIN);
	CHECK_EQ(result_of(waits_to_the_end, q), 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(polled(q), 0);
}

static void requests_for_one_are_over(struct queue *q)
{
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(wake_all(q), 0);
	CHECK_EQ(polled(q), 0);
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(polled(q), 0);
	CHECK_EQ(result_of(waits, q), 0);
	CHECK_EQ(result_of(waits, q), 0);
}

static void calls_that_are_wrong_are_refused(void)
{
	struct ukevent ev = {};
	struct waiter w;
	struct queue q;
	int fd[2];

	open_pipe(fd);
	open_queue(&q, 8);
	CHECK_EQ(kevent_ctl(fd[0], KEVENT_CTL_WAKE_ALL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_ctl(-1, KEVENT_CTL_WAKE_ALL, 0, NULL), -EBADF);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_WAKE_ALL, 1, &ev), -EINVAL);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_WAKE_ALL, 1, NULL), -EINVAL);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_WAKE_ALL, 0, &ev), -EINVAL);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_WAKE_ALL + 1, 0, NULL), -EINVAL);
	close_queue(&q);
	/* It is for those who may make READY. */
	open_refusing(&q, KEVENT_INIT_REFUSE_READY);
	MUST_EQ(add_poll(q.fd, fd[0], KEVENT_POLL_POLLIN, 0, 7), 0);
	start_waiter(&w, &q, 1);
	CHECK_EQ(wake_all(&q), -EPERM);
	CHECK(waiter_asleep(&w));
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

/* As a program closes it */
static void close_by_library(const struct queue *q)
{
	struct kevent_queue lib = {
		.fd = q->fd, .size = q->size, .ring = q->ring
	};

	kevent_queue_close(&lib);
}

/* Its descriptor, and what the library has for a queue, are used again. */
static void next_queue_has_waits_that_sleep(struct queue *q)
{
	struct waiter w;
	struct queue next;

	CHECK_EQ(wake_all(q), 0);
	CHECK_EQ(result_of(waits, q), 0);
	close_by_library(q);
	open_queue(&next, q->size);
	CHECK_EQ(next.fd, q->fd);
	start_waiter(&w, &next, 1);
	MUST_EQ(add_user(next.fd, 1, 1, 0, 7), 0);
	CHECK(waiter_asleep(&w));
	MUST_EQ(mark_user(next.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&w), 1);
	close_queue(&next);
	open_queue(q, 0);
}

static int ends_from_outside(void *arg)
{
	CHILD_MUST(wake_all(arg) == (on_fallback() ? -EXDEV : 0));
	return 0;
}

static void other_process_ends_waits(struct queue *q)
{
	struct waiter w;

	start_waiter(&w, q, 1);
	CHECK_EQ(join_child(start_child(ends_from_outside, q), PATIENCE_MS), 0);
	if (on_fallback()) {
		CHECK(waiter_asleep(&w));
		CHECK_EQ(wake_all(q), 0);
	}
	CHECK_EQ(join_waiter(&w), 0);
	CHECK_EQ(result_of(waits, q), 0);
}

static long serves(void *arg)
{
	return kevent_chain_serve(((struct queue *)arg)->fd, 1, NULL);
}

static void threads_that_serve_go_on(struct queue *q)
{
	struct actor a;

	start_actor(&a, serves, q);
	/* Where the kernel makes no calls of a chain the library does. */
	MUST(sleeps_in(a.tid, on_fallback() || on_module() ? SYS_futex :
							     __NR_kevent_wait));
	CHECK_EQ(wake_all(q), 0);
	CHECK_EQ(result_of(waits, q), 0);
	close_by_library(q);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, -EBADF);
	open_queue(q, 0);
}

/*
 * A thread that has found nothing, or sleeps but has not blocked, is not missed. It returns with
 * the event if there is one.
 */
static void check_window(const char *name, uint32_t size, bool event)
{
	struct actor a;
	struct queue q;

	open_queue(&q, size);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	if (name)
		CHECK(start_in_window(&a, name, waits, &q));
	else
		start_actor(&a, waits, &q);
	if (event)
		CHECK_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(wake_all(&q), 0);
	if (name)
		window_release();
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, event);
	close_queue(&q);
}

static void check_windows(const char *name)
{
	int i;

	for (i = 0; i < 4; i++)
		check_window(name, i & 1 ? 8 : 0, i & 2);
}

static void check_window_of_group(const char *name)
{
	struct runner r;
	struct actor a;
	struct queue q;

	open_queue(&q, 8);
	start_runner(&r, &q);
	CHECK(start_in_window(&a, name, waits_in_group, &q));
	CHECK_EQ(wake_all(&q), 0);
	window_release();
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, 0);
	end_runner(&r);
	close_queue(&q);
}

static void thread_on_its_way_is_not_missed(void)
{
	check_windows(NULL);
	if (on_fallback() || access(TESTPOINT, F_OK))
		return;
	check_windows("sleep");
	check_windows("asleep");
	if (!on_module())
		check_window_of_group("parked");
}

static void spin(uint64_t *rnd)
{
	unsigned int i;

	for (i = next_random(rnd) % 2000; i; i--)
		__asm__ volatile("" ::: "memory");
}

/*
 * Threads come, sleep, and take marks while the waits come to end; none of them is left, and no
 * mark. The last mark comes just before the end: a thread that has found nothing, before both,
 * looks again.
 */
static void end_of_a_pool(uint32_t size, uint64_t *rnd)
{
	unsigned int i, marks = next_random(rnd) % 8, nr = 1 + next_random(rnd) % NR;
	struct actor a[NR];
	struct queue q;
	long total = 0;

	open_queue(&q, size);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_KEEP_EACH, 7), 0);
	for (i = 0; i < nr; i++)
		start_actor(&a[i], waits_to_the_end, &q);
	for (i = 0; i < marks; i++) {
		spin(rnd);
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
	}
	CHECK_EQ(wake_all(&q), 0);
	for (i = 0; i < nr; i++) {
		join_actor(&a[i], PATIENCE_MS);
		CHECK(a[i].ret >= 0);
		total += a[i].ret;
	}
	CHECK_EQ(total, marks);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void threads_that_come_meanwhile_end(void)
{
	uint64_t rnd = test_seed(), start = now_ns();
	unsigned int rounds = 0;

	while (storm_goes_on(start, rounds >= 20)) {
		end_of_a_pool(0, &rnd);
		end_of_a_pool(8, &rnd);
		rounds++;
	}
	note("%u rounds", rounds);
}

static const struct test_case cases[] = {
	TEST(sleepers_of_both_kinds_return),
	TEST_EACH(later_waits_return_at_once),
	TEST(fewer_events_than_enough_are_reported),
	TEST_EACH(events_come_first),
	TEST_EACH(sleepers_take_the_events_first),
	TEST(limit_holds_nobody),
	TEST_EACH(poll_tells_of_events_only),
	TEST_EACH(requests_for_one_are_over),
	TEST(calls_that_are_wrong_are_refused),
	TEST_EACH(next_queue_has_waits_that_sleep),
	TEST_EACH(other_process_ends_waits),
	TEST_EACH(threads_that_serve_go_on),
	TEST(thread_on_its_way_is_not_missed),
	TEST_LIMIT(threads_that_come_meanwhile_end, 60),
	{}
};

const struct test_suite wake_all_suite = { .name = "wake_all", .cases = cases };
