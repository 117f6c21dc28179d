// SPDX-License-Identifier: GPL-2.0
/*
 * struct kevent_queue: when it enters the kernel, and that nobody sleeps
 * while there are events
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/time_types.h>

#include "../src/api/process.h"
#include "test.h"

#define RING_SIZE	16
#define MAX_CONSUMERS	6
#define MAX_CALLS	4

static KEVENT_RING_STORAGE(RING_SIZE) mem;
static struct kevent_queue queue = {
	.fd = 42, .size = RING_SIZE, .ring = &mem.ring,
};

static const struct timespec zero, hour = { .tv_sec = 3600 };

/*
 * A kernel that follows a script: one step per kevent_wait(). The last step
 * answers all calls that follow.
 */
struct step {
	int store;		/* entries to store in the ring */
	int steal;		/* then take all: another consumer was faster */
	long ret;
};

static const struct step *script;
static int nr_steps, nr_calls;
static struct fake_call call_log[MAX_CALLS];
static struct __kernel_timespec time_log[MAX_CALLS];

static long play(const struct fake_call *call)
{
	const struct __kernel_timespec *ts = (void *)call->arg[3];
	const struct step *step;
	int i;

	CHECK_EQ(call->nr, 483);
	CHECK(script && nr_calls < MAX_CALLS);
	if (!script || nr_calls >= MAX_CALLS)
		return -EIO;
	step = &script[nr_calls < nr_steps ? nr_calls : nr_steps - 1];
	if (ts)
		time_log[nr_calls] = *ts;
	call_log[nr_calls++] = *call;
	for (i = 0; i < step->store; i++)
		ring_store(queue.ring, RING_SIZE, queue.ring->ring_kidx);
	if (step->steal)
		queue.ring->ring_uidx = queue.ring->ring_kidx;
	return step->ret;
}

static void start_script(const struct step *steps, int nr, __u64 position)
{
	memset(&mem, 0, sizeof(mem));
	memset(call_log, 0, sizeof(call_log));
	memset(time_log, 0, sizeof(time_log));
	queue.ring->ring_kidx = position;
	queue.ring->ring_uidx = position;
	queue.entered = (__u32)position;
	script = steps;
	nr_steps = nr;
	nr_calls = 0;
	fake_kernel = play;
}

/* @steps is an array, or the kernel is not to be entered at all. */
#define start(steps, position)	start_script(steps, ARRAY_SIZE(steps), position)
#define start_alone(position)	start_script(NULL, 0, position)

static void wait_stays_out_of_the_kernel_when_events_are_there(void)
{
	start_alone(7);
	ring_store(queue.ring, RING_SIZE, 0);
	ring_store(queue.ring, RING_SIZE, 1);
	queue.ring->ring_flags = KEVENT_RING_MORE;
	CHECK_EQ(kevent_queue_wait(&queue, NULL), 2);
	CHECK_EQ(kevent_queue_wait(&queue, &hour), 2);
	CHECK_EQ(kevent_queue_wait(&queue, &zero), 2);
	CHECK_EQ(nr_calls, 0);
}

static void wait_names_the_position_it_saw(void)
{
	static const struct step steps[] = { { .store = 3, .ret = 3 } };

	start(steps, 0x5fffffff0ULL);
	CHECK_EQ(kevent_queue_wait(&queue, NULL), 3);
	CHECK_EQ(nr_calls, 1);
	CHECK_EQ((int)call_log[0].arg[0], 42);
	CHECK_EQ((__u32)call_log[0].arg[1], RING_SIZE);
	CHECK_EQ((__u32)call_log[0].arg[2], 0xfffffff0);
	CHECK_EQ(call_log[0].arg[3], 0);
	CHECK_EQ((__u32)call_log[0].arg[4], 0);
	CHECK_EQ(call_log[0].arg[5], 0);
}

/* The caller may have been signalled meanwhile: it looks, and calls again. */
static void wait_returns_when_others_were_faster(void)
{
	static const struct step steps[] = {
		{ .store = 2, .steal = 1, .ret = 2 },
		{ .store = 1, .ret = 1 },
	};

	start(steps, 0xfffffffeULL);
	CHECK_EQ(kevent_queue_wait(&queue, NULL), 2);
	CHECK_EQ(nr_calls, 1);
	CHECK_EQ(kevent_queue_wait(&queue, NULL), 1);
	CHECK_EQ(nr_calls, 2);
	CHECK_EQ((__u32)call_log[0].arg[2], 0xfffffffe);
	CHECK_EQ((__u32)call_log[1].arg[2], 0);
}

/* It has a copy of the entry, as it has of all memory. */
static void child_takes_nothing_of_its_parents_queue(void)
{
	struct kevent_queue q = queue;
	struct ukevent ev;
	int status = -1;
	pid_t pid;

	start_alone(0);
	ring_store(q.ring, RING_SIZE, 5);
	q.process = kevent_process_mark();
	CHECK(q.process);
	pid = fork();
	if (!pid)
		_exit(kevent_queue_pop(&q, &ev, 1) != -EXDEV ||
		      kevent_queue_wait(&q, NULL) != -EXDEV ||
		      kevent_queue_get(&q, &ev, 1, NULL) != -EXDEV ||
		      kevent_process_mark() == q.process);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(kevent_process_mark(), q.process);
	CHECK_EQ(kevent_queue_pop(&q, &ev, 1), 1);
	CHECK_EQ(ev.ptr, 5);
}

static void wait_passes_its_timeout(void)
{
	static const struct step steps[] = { { .ret = 0 } };
	static const struct timespec almost = { .tv_nsec = 999999999 };

	start(steps, 0);
	CHECK_EQ(kevent_queue_wait(&queue, &almost), 0);
	CHECK_EQ((__u32)call_log[0].arg[4], 0);
	CHECK_EQ(time_log[0].tv_sec, 0);
	CHECK_EQ(time_log[0].tv_nsec, 999999999);
	CHECK_EQ(nr_calls, 1);
}

static void wait_with_zero_time_calls_once(void)
{
	static const struct step steps[] = {
		{ .store = 2, .steal = 1, .ret = 2 },
	};

	start(steps, 0);
	CHECK_EQ(kevent_queue_wait(&queue, &zero), 2);
	CHECK_EQ(nr_calls, 1);
	CHECK(call_log[0].arg[3]);
	CHECK_EQ(time_log[0].tv_sec, 0);
	CHECK_EQ(time_log[0].tv_nsec, 0);
	CHECK_EQ((__u32)call_log[0].arg[4], 0);
}

static void wait_refuses_a_bad_time(void)
{
	static const struct timespec bad[] = {
		{ .tv_sec = -1 }, { .tv_nsec = -1 }, { .tv_nsec = 1000000000 },
	};
	size_t i;

	start_alone(0);
	ring_store(queue.ring, RING_SIZE, 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(kevent_queue_wait(&queue, &bad[i]), -EINVAL);
	CHECK_EQ(nr_calls, 0);
}

static void wait_returns_errors_and_wake_requests(void)
{
	static const struct step fails[] = { { .ret = -EXDEV } };
	static const struct step wakes[] = { { .ret = 0 } };

	start(fails, 0);
	CHECK_EQ(kevent_queue_wait(&queue, NULL), -EXDEV);
	CHECK_EQ(nr_calls, 1);
	start(fails, 0);
	CHECK_EQ(kevent_queue_wait(&queue, &zero), -EXDEV);
	CHECK_EQ(nr_calls, 1);
	start(wakes, 0);
	CHECK_EQ(kevent_queue_wait(&queue, NULL), 0);
	CHECK_EQ(nr_calls, 1);
}

static void pop_stays_out_of_the_kernel(void)
{
	struct ukevent ev[4];

	start_alone(0);
	CHECK_EQ(kevent_queue_pop(&queue, ev, 4), 0);
	queue.ring->ring_flags = KEVENT_RING_MORE;
	ring_store(queue.ring, RING_SIZE, 11);
	CHECK_EQ(kevent_queue_pop(&queue, ev, 4), 1);
	CHECK_EQ(ev[0].ptr, 11);
	CHECK_EQ(kevent_queue_pop(&queue, ev, 0), 0);
	CHECK_EQ(nr_calls, 0);
}

static void pop_refills_a_drained_ring(void)
{
	static const struct step steps[] = {
		{ .store = 3, .ret = 3 }, { .ret = -EFAULT },
	};
	struct ukevent ev[4];

	start(steps, 0x1fffffffeULL);
	queue.ring->ring_flags = KEVENT_RING_MORE;
	CHECK_EQ(kevent_queue_pop(&queue, ev, 2), 2);
	CHECK_EQ(nr_calls, 1);
	CHECK_EQ((__u32)call_log[0].arg[1], RING_SIZE);
	CHECK(call_log[0].arg[3]);
	CHECK_EQ(time_log[0].tv_sec, 0);
	CHECK_EQ(time_log[0].tv_nsec, 0);
	CHECK_EQ(kevent_queue_pop(&queue, ev, 4), 1);
	CHECK_EQ(nr_calls, 1);
	CHECK_EQ(kevent_queue_pop(&queue, ev, 4), -EFAULT);
}

/* A wake request answers the first call that would have to wait */
static void pop_leaves_wake_requests_to_waiters(void)
{
	static const struct step steps[] = { { .ret = 1 } };
	struct ukevent ev;

	start(steps, 1ULL << 32);
	queue.ring->ring_flags = KEVENT_RING_MORE;
	CHECK_EQ(kevent_queue_pop(&queue, &ev, 1), 0);
	CHECK_EQ(nr_calls, 1);
	CHECK((__u32)call_log[0].arg[2] != (__u32)queue.ring->ring_kidx);
}

static void get_takes_what_is_there_without_a_call(void)
{
	struct ukevent ev[4];

	start_alone(7);
	ring_store(queue.ring, RING_SIZE, 0);
	ring_store(queue.ring, RING_SIZE, 1);
	queue.ring->ring_flags = KEVENT_RING_MORE;
	CHECK_EQ(kevent_queue_get(&queue, ev, 1, NULL), 1);
	CHECK_EQ(ev[0].ptr, 0);
	CHECK_EQ(kevent_queue_get(&queue, ev, 4, &zero), 1);
	CHECK_EQ(ev[0].ptr, 1);
	CHECK_EQ(nr_calls, 0);
}

static void get_waits_for_what_is_not_there(void)
{
	static const struct step steps[] = { { .store = 3, .ret = 3 } };
	struct ukevent ev[4];

	start(steps, 0x5fffffff0ULL);
	CHECK_EQ(kevent_queue_get(&queue, ev, 2, NULL), 2);
	CHECK_EQ(nr_calls, 1);
	CHECK_EQ((__u32)call_log[0].arg[1], RING_SIZE);
	CHECK_EQ((__u32)call_log[0].arg[2], 0xfffffff0);
	CHECK_EQ(call_log[0].arg[3], 0);
	CHECK_EQ((__u32)call_log[0].arg[4], 0);
	CHECK_EQ(kevent_queue_get(&queue, ev, 2, NULL), 1);
	CHECK_EQ(nr_calls, 1);
}

static __u64 ns_of(const struct __kernel_timespec *ts)
{
	return (__u64)ts->tv_sec * 1000000000u + (__u64)ts->tv_nsec;
}

/* It waits for the rest of its time, not for all of it once more. */
static void get_waits_on_when_others_were_faster(void)
{
	static const struct step steps[] = {
		{ .store = 2, .steal = 1, .ret = 2 },
		{ .store = 1, .ret = 1 },
	};
	struct timespec before, after;
	struct ukevent ev[4];

	start(steps, 0xfffffffeULL);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK_EQ(kevent_queue_get(&queue, ev, 4, &hour), 1);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK_EQ(nr_calls, 2);
	CHECK_EQ((__u32)call_log[0].arg[4], KEVENT_FLAGS_ABSTIME);
	CHECK_EQ((__u32)call_log[1].arg[4], KEVENT_FLAGS_ABSTIME);
	CHECK_EQ(ns_of(&time_log[0]), ns_of(&time_log[1]));
	CHECK(ns_of(&time_log[0]) >= kevent_ns(&before) + kevent_ns(&hour));
	CHECK(ns_of(&time_log[0]) <= kevent_ns(&after) + kevent_ns(&hour));
	CHECK_EQ((__u32)call_log[1].arg[2], 0);
}

static void get_takes_any_time(void)
{
	static const struct step steps[] = { { .ret = 0 } };
	const struct timespec most = {
		.tv_sec = (time_t)(~0ull >> 1), .tv_nsec = 999999999,
	};
	struct ukevent ev;

	start(steps, 0);
	CHECK_EQ(kevent_queue_get(&queue, &ev, 1, &zero), 0);
	CHECK_EQ(nr_calls, 1);
	CHECK_EQ(ns_of(&time_log[0]), 0);
	start(steps, 0);
	CHECK_EQ(kevent_queue_get(&queue, &ev, 1, &most), 0);
	CHECK_EQ(time_log[0].tv_sec, most.tv_sec);
}

/* A ring that is never empty must not keep level watches from being looked at. */
static void get_calls_once_per_ring(void)
{
	static const struct step steps[] = { { .ret = 1 } };
	struct ukevent ev;
	int i;

	start(steps, 0);
	for (i = 0; i < 2 * RING_SIZE; i++) {
		ring_store(queue.ring, RING_SIZE, 0);
		CHECK_EQ(kevent_queue_get(&queue, &ev, 1, &hour), 1);
		CHECK_EQ(nr_calls, (i + 1) / RING_SIZE);
	}
	CHECK((__u32)call_log[0].arg[2] != RING_SIZE);
	CHECK(call_log[0].arg[3]);
	CHECK_EQ(ns_of(&time_log[0]), 0);
}

static void get_refuses_what_makes_no_sense(void)
{
	static const struct timespec bad = { .tv_nsec = 1000000000 };
	struct ukevent ev;

	start_alone(0);
	ring_store(queue.ring, RING_SIZE, 0);
	CHECK_EQ(kevent_queue_get(&queue, &ev, 1, &bad), -EINVAL);
	CHECK_EQ(kevent_queue_get(&queue, &ev, 0, NULL), -EINVAL);
	CHECK_EQ(nr_calls, 0);
}

static void get_returns_errors_and_wake_requests(void)
{
	static const struct step fails[] = { { .ret = -EINTR } };
	static const struct step wakes[] = { { .ret = 0 } };
	struct ukevent ev;

	start(fails, 0);
	CHECK_EQ(kevent_queue_get(&queue, &ev, 1, NULL), -EINTR);
	start(wakes, 0);
	CHECK_EQ(kevent_queue_get(&queue, &ev, 1, NULL), 0);
	CHECK_EQ(nr_calls, 1);
}

static long init_ret;

static long answer_init(const struct fake_call *call)
{
	if (call->nr == SYS_close)
		return close((int)call->arg[0]);
	CHECK_EQ(call->nr, 480);
	CHECK_EQ(call->arg[0], (long)&mem.ring);
	CHECK_EQ((__u32)call->arg[1], RING_SIZE);
	CHECK_EQ((__u32)call->arg[2], 1);
	return init_ret;
}

static void init_opens_and_close_closes(void)
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
	struct kevent_queue q;

	init_ret = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_kernel = answer_init;
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, RING_SIZE, 1), 0);
	CHECK_EQ(q.fd, init_ret);
	CHECK_EQ(q.size, RING_SIZE);
	CHECK(q.ring == &mem.ring);
	/* All pages of the ring, and no other */
	CHECK_EQ(fake_touched.start % page, 0);
	CHECK_EQ(fake_touched.start, (unsigned long)&mem.ring / page * page);
	CHECK_EQ(fake_touched.start + fake_touched.bytes,
		 (unsigned long)&mem.ring + KEVENT_RING_BYTES(RING_SIZE));
	kevent_queue_close(&q);
	CHECK_EQ(q.fd, -1);
	CHECK_EQ(fcntl((int)init_ret, F_GETFD), -1);
	kevent_queue_close(&q);
}

static void init_that_failed_leaves_no_descriptor(void)
{
	struct kevent_queue q;

	init_ret = -EPERM;
	fake_kernel = answer_init;
	fake_touched.bytes = 0;
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, RING_SIZE, 1), -EPERM);
	CHECK_EQ(q.fd, -1);
	CHECK_EQ(fake_touched.bytes, 0);
	CHECK_EQ(kevent_queue_init(&q, NULL, 0, 0), -EINVAL);
	CHECK_EQ(q.fd, -1);
	kevent_queue_close(&q);
}

/*
 * A kernel that sleeps and wakes like the real one. An event goes to the ring
 * at once if there is room and none is ahead of it; else it pends until a call
 * moves it. One waiter is woken per event.
 *
 *   sim_produce() --+----------------------------> ring --> consumers
 *                   `--> pending --sim_wait()--^
 *
 * The producer adds one burst, then waits until all of it has come out. So an
 * event that is slept through stops everything, and the watchdog reports it.
 */
static struct {
	pthread_mutex_t lock;	/* guards all but the atomics */
	pthread_cond_t wake;
	__u64 total;		/* events there will be */
	__u64 made;		/* events that have happened */
	__u64 moved;		/* of these, put into the ring */
	unsigned int refills;	/* calls that left RING_MORE set */
	int over;		/* no more events: everybody returns */
	atomic_uchar *seen;
	atomic_ullong taken;
	atomic_uint torn;
	atomic_uint errors;	/* failed calls */
} sim;

static __u64 sim_used(void)
{
	return queue.ring->ring_kidx -
	       __atomic_load_n(&queue.ring->ring_uidx, __ATOMIC_ACQUIRE);
}

static void sim_flush(__u32 num)
{
	__u32 more;

	while (num-- && sim.moved < sim.made && sim_used() < RING_SIZE)
		ring_store(queue.ring, RING_SIZE, sim.moved++);
	more = sim.moved < sim.made ? KEVENT_RING_MORE : 0;
	__atomic_store_n(&queue.ring->ring_flags, more, __ATOMIC_RELAXED);
	if (more) {
		sim.refills++;
		pthread_cond_signal(&sim.wake);
	}
}

static long sim_wait(const struct fake_call *call)
{
	__u32 news;

	pthread_mutex_lock(&sim.lock);
	for (;;) {
		sim_flush((__u32)call->arg[1]);
		news = (__u32)queue.ring->ring_kidx - (__u32)call->arg[2];
		if (news || sim.over || call->arg[3])
			break;
		pthread_cond_wait(&sim.wake, &sim.lock);
	}
	pthread_mutex_unlock(&sim.lock);
	return news;
}

static void sim_reset(unsigned int total)
{
	start_alone((1ULL << 32) - total / 2);
	fake_kernel = sim_wait;
	memset(&sim, 0, sizeof(sim));
	pthread_mutex_init(&sim.lock, NULL);
	pthread_cond_init(&sim.wake, NULL);
	sim.total = total;
	sim.seen = calloc(total, sizeof(*sim.seen));
	CHECK(sim.seen);
}

static void sim_account(const struct ukevent *ev)
{
	if (!entry_intact(ev) || ev->ptr >= sim.total)
		sim.torn++;
	else
		sim.seen[ev->ptr]++;
}

static void *sim_consume(void *arg)
{
	struct ukevent ev[3];
	int i, nr;

	(void)arg;
	while (kevent_queue_wait(&queue, NULL) > 0) {
		while ((nr = kevent_queue_pop(&queue, ev, 3)) > 0) {
			for (i = 0; i < nr; i++)
				sim_account(&ev[i]);
			sim.taken += (unsigned int)nr;
		}
		if (nr < 0)
			sim.errors++;
	}
	return NULL;
}

static void *sim_get(void *arg)
{
	struct ukevent ev[3];
	int i, nr;

	(void)arg;
	while ((nr = kevent_queue_get(&queue, ev, 3, NULL)) > 0) {
		for (i = 0; i < nr; i++)
			sim_account(&ev[i]);
		sim.taken += (unsigned int)nr;
	}
	if (nr < 0)
		sim.errors++;
	return NULL;
}

static void sim_event(void)
{
	if (sim.moved == sim.made && sim_used() < RING_SIZE)
		ring_store(queue.ring, RING_SIZE, sim.moved++);
	else
		__atomic_store_n(&queue.ring->ring_flags, KEVENT_RING_MORE,
				 __ATOMIC_RELAXED);
	sim.made++;
	pthread_cond_signal(&sim.wake);
}

/* Bursts of one event to three times the ring */
static void sim_produce(void)
{
	__u64 burst;

	while (sim.made < sim.total) {
		burst = sim.made % 4 ? 1 : 1 + sim.made % (3 * RING_SIZE);
		pthread_mutex_lock(&sim.lock);
		while (burst-- && sim.made < sim.total)
			sim_event();
		pthread_mutex_unlock(&sim.lock);
		while (sim.taken < sim.made)
			sched_yield();
	}
	pthread_mutex_lock(&sim.lock);
	sim.over = 1;
	pthread_cond_broadcast(&sim.wake);
	pthread_mutex_unlock(&sim.lock);
}

static void sim_check(void)
{
	unsigned int bad = 0;
	__u64 i;

	for (i = 0; i < sim.total; i++)
		bad += sim.seen[i] != 1;
	CHECK_EQ(bad, 0);
	CHECK_EQ(sim.torn, 0);
	CHECK_EQ(sim.errors, 0);
	CHECK(sim.refills > 0);
}

static void sim_run(int consumers, void *(*consume)(void *))
{
	pthread_t thread[MAX_CONSUMERS];
	int i;

	sim_reset(test_events / 8);
	if (!sim.seen)
		return;
	for (i = 0; i < consumers; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, consume, NULL),
			 0);
	sim_produce();
	for (i = 0; i < consumers; i++)
		pthread_join(thread[i], NULL);
	sim_check();
	free(sim.seen);
}

static void one_consumer_sleeps_through_nothing(void)
{
	sim_run(1, sim_consume);
}

static void six_consumers_sleep_through_nothing(void)
{
	sim_run(6, sim_consume);
}

static void get_sleeps_through_nothing(void)
{
	sim_run(1, sim_get);
	sim_run(6, sim_get);
}

const struct test_case queue_tests[] = {
	{ "wait_stays_out_of_the_kernel_when_events_are_there",
	  wait_stays_out_of_the_kernel_when_events_are_there },
	{ "wait_names_the_position_it_saw", wait_names_the_position_it_saw },
	{ "wait_returns_when_others_were_faster",
	  wait_returns_when_others_were_faster },
	{ "wait_passes_its_timeout", wait_passes_its_timeout },
	{ "child_takes_nothing_of_its_parents_queue",
	  child_takes_nothing_of_its_parents_queue },
	{ "wait_with_zero_time_calls_once", wait_with_zero_time_calls_once },
	{ "wait_refuses_a_bad_time", wait_refuses_a_bad_time },
	{ "wait_returns_errors_and_wake_requests",
	  wait_returns_errors_and_wake_requests },
	{ "pop_stays_out_of_the_kernel", pop_stays_out_of_the_kernel },
	{ "pop_refills_a_drained_ring", pop_refills_a_drained_ring },
	{ "pop_leaves_wake_requests_to_waiters",
	  pop_leaves_wake_requests_to_waiters },
	{ "init_opens_and_close_closes", init_opens_and_close_closes },
	{ "init_that_failed_leaves_no_descriptor",
	  init_that_failed_leaves_no_descriptor },
	{ "one_consumer_sleeps_through_nothing",
	  one_consumer_sleeps_through_nothing },
	{ "six_consumers_sleep_through_nothing",
	  six_consumers_sleep_through_nothing },
	{ "get_takes_what_is_there_without_a_call",
	  get_takes_what_is_there_without_a_call },
	{ "get_waits_for_what_is_not_there", get_waits_for_what_is_not_there },
	{ "get_waits_on_when_others_were_faster",
	  get_waits_on_when_others_were_faster },
	{ "get_takes_any_time", get_takes_any_time },
	{ "get_calls_once_per_ring", get_calls_once_per_ring },
	{ "get_refuses_what_makes_no_sense", get_refuses_what_makes_no_sense },
	{ "get_returns_errors_and_wake_requests",
	  get_returns_errors_and_wake_requests },
	{ "get_sleeps_through_nothing", get_sleeps_through_nothing },
	{ }
};
