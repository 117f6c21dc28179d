// SPDX-License-Identifier: GPL-2.0
/*
 * 10,000 watched pipes in one queue, one write to each, and who gets which event.
 * The debug kernel has fewer, because it takes milliseconds to open one.
 *
 *	mode	consumer			each write is
 *	ET	ring, large or of 16 slots	one event
 *	level	ring, large or of 16 slots	one event, once it is read
 *	ET	8 threads on one ring		one event of one thread
 *	ET	8 threads in get_events()	one event of one thread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "helpers.h"

#define NR		10000
#define THREADS		8
#define CHUNK		1000
#define SECONDS		60

static int pipes[NR][2];
static unsigned int counts[NR];
static unsigned int nr;			/* of pipes */

static void open_pipes(void)
{
	unsigned int i;

	nr = NR / slowness;
	open_fds(2 * nr + 64);
	for (i = 0; i < nr; i++)
		open_pipe(pipes[i]);
}

static void watch_pipes(struct queue *q, uint32_t flags)
{
	static struct ukevent ev[CHUNK];
	unsigned int i, j;

	for (i = 0; i < nr; i += j) {
		for (j = 0; j < CHUNK && i + j < nr; j++)
			kevent_set_pipe(&ev[j], pipes[i + j][0],
					KEVENT_SOCKET_RECV, flags, i + j);
		MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, j, ev), 0);
	}
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), nr);
}

static void write_all(void)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		put_byte(pipes[i][1]);
}

/* Reports how many of the counts are wrong instead of each of them. */
static void check_counts(unsigned int want)
{
	unsigned int i, bad = 0, first = 0;

	for (i = 0; i < nr; i++) {
		if (counts[i] == want)
			continue;
		if (!bad++)
			first = i;
	}
	if (!CHECK_EQ(bad, 0))
		note("pipe %u: %u events, not %u", first, counts[first], want);
}

static void check_edges(uint32_t size)
{
	unsigned int round;
	struct queue q;

	open_pipes();
	open_queue(&q, size);
	watch_pipes(&q, ET);
	for (round = 1; round <= 2; round++) {
		write_all();
		CHECK_EQ(drain(&q, counts, nr), nr);
		check_counts(round);
	}
	close_queue(&q);
}

/* The byte is read when its event is taken: commit before processing. */
static unsigned int drain_level(struct queue *q)
{
	unsigned int sum = 0;
	struct ukevent ev;
	int ret;

	while ((ret = next_event(q, &ev, 0)) == 1) {
		MUST(ev.ptr < nr);
		counts[ev.ptr]++;
		MUST_EQ(take_bytes(pipes[ev.ptr][0]), 1);
		sum++;
	}
	CHECK_EQ(ret, 0);
	return sum;
}

static void check_level(uint32_t size)
{
	unsigned int round;
	struct queue q;

	open_pipes();
	open_queue(&q, size);
	watch_pipes(&q, 0);
	for (round = 1; round <= 2; round++) {
		write_all();
		CHECK_EQ(drain_level(&q), nr);
		check_counts(round);
	}
	close_queue(&q);
}

/* Without a read, each round reports every pipe. */
static void level_is_reported_in_each_round(void)
{
	unsigned int round;
	struct ukevent ev;
	struct queue q;

	open_pipes();
	open_queue(&q, 16384);
	watch_pipes(&q, 0);
	write_all();
	for (round = 1; round <= 2; round++) {
		CHECK(wait_ring(&q, 16384, 0) >= 0);
		CHECK_EQ(kevent_ring_count(q.ring, q.size), nr);
		while (kevent_ring_next(q.ring, q.size, &ev)) {
			MUST(ev.ptr < nr);
			counts[ev.ptr]++;
		}
		check_counts(round);
	}
	close_queue(&q);
}

/* Eight consumers; each has its own counts. */
struct crowd {
	struct queue	q;
	_Atomic unsigned int taken;
	_Atomic bool	stop;
};

struct member {
	struct actor	actor;
	struct crowd	*crowd;
	unsigned int	counts[NR];
};

static int next_of_few(struct queue *q, struct ukevent *ev)
{
	const struct timespec limit = { .tv_nsec = 50000000 };
	uint32_t kidx;
	int ret;

	if (!q->size)
		return kevent_get_events(q->fd, 1, 1, &limit, ev, 0);
	kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
	if (kevent_ring_next(q->ring, q->size, ev))
		return 1;
	ret = kevent_wait(q->fd, 4, kidx, &limit, 0, NULL);
	return ret < 0 ? ret : 0;
}

static long consume(void *arg)
{
	struct member *m = arg;
	struct crowd *crowd = m->crowd;
	struct ukevent ev;
	int ret;

	while (!atomic_load(&crowd->stop)) {
		ret = next_of_few(&crowd->q, &ev);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		if (ev.ptr >= nr)
			return -ERANGE;
		m->counts[ev.ptr]++;
		atomic_fetch_add(&crowd->taken, 1);
	}
	return 0;
}

static void check_crowd(uint32_t size)
{
	static struct member members[THREADS];
	struct crowd crowd = {};
	unsigned int i, j;
	uint64_t start;

	open_pipes();
	open_queue(&crowd.q, size);
	watch_pipes(&crowd.q, ET);
	for (i = 0; i < THREADS; i++) {
		members[i].crowd = &crowd;
		start_actor(&members[i].actor, consume, &members[i]);
	}
	write_all();
	for (start = now_ns(); atomic_load(&crowd.taken) < nr; )
		MUST(patient(start, SECONDS / 2 * 1000));
	/*
	 * By now an event that comes twice has been delivered, or is in the
	 * queue.
	 */
	atomic_store(&crowd.stop, true);
	for (i = 0; i < THREADS; i++) {
		join_actor(&members[i].actor, PATIENCE_MS);
		CHECK_EQ(members[i].actor.ret, 0);
		for (j = 0; j < nr; j++)
			counts[j] += members[i].counts[j];
	}
	CHECK_EQ(drain(&crowd.q, counts, nr), 0);
	check_counts(1);
	close_queue(&crowd.q);
}

/* All descriptors are closed at once while their events wait. */
static void closing_everything_leaves_nothing(void)
{
	struct queue q;
	unsigned int i;

	open_pipes();
	open_queue(&q, 0);
	watch_pipes(&q, 0);
	write_all();
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), nr);
	for (i = 0; i < nr; i++)
		MUST_EQ(close(pipes[i][0]), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 0);
	CHECK_EQ(drain(&q, counts, nr), 0);
	close_queue(&q);
}

static int die_with_watches(void *arg)
{
	struct queue q;

	(void)arg;
	open_queue(&q, 16);
	watch_pipes(&q, ET);
	write_all();
	raise(SIGKILL);
	return 0;
}

static void killed_process_leaves_nothing(void)
{
	struct queue q;

	open_pipes();
	CHECK_EQ(join_child(start_child(die_with_watches, NULL),
			    SECONDS * 1000), -SIGKILL);
	open_queue(&q, 16384);
	CHECK_EQ(add_pipe(q.fd, pipes[0][0], KEVENT_SOCKET_RECV, HAND_BACK | ET, 0), 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_SIZE(edges_arrive_once, check_edges, 16384, SECONDS),
	TEST_SIZE(edges_arrive_once_through_16_slots, check_edges, 16, SECONDS),
	TEST_SIZE(edges_arrive_once_without_a_ring, check_edges, 0, SECONDS),
	TEST_SIZE(level_arrives_until_drained, check_level, 16384, SECONDS),
	TEST_SIZE(level_arrives_until_drained_through_16_slots, check_level, 16,
		  SECONDS),
	TEST_SIZE(level_arrives_until_drained_without_a_ring, check_level, 0, SECONDS),
	TEST_LIMIT(level_is_reported_in_each_round, SECONDS),
	TEST_SIZE(eight_threads_share_a_ring, check_crowd, 1024, SECONDS),
	TEST_SIZE(eight_threads_share_a_ring_of_16_slots, check_crowd, 16, SECONDS),
	TEST_SIZE(eight_threads_share_get_events, check_crowd, 0, SECONDS),
	TEST_LIMIT(closing_everything_leaves_nothing, SECONDS),
	TEST_LIMIT(killed_process_leaves_nothing, SECONDS),
	{}
};

const struct test_suite scale_suite = { .name = "scale", .cases = cases };
