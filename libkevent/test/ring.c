// SPDX-License-Identifier: GPL-2.0
/*
 * Popping from a ring, alone and with many consumers
 *
 *   producer (the kernel) --> ring of 16 --> 4 or 8 consumers
 *
 * Each event carries a number. Every number has to come out exactly once, and
 * in one piece.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define RING_SIZE	16
#define MAX_CONSUMERS	8
#define MAX_BATCH	RING_SIZE

static KEVENT_RING_STORAGE(RING_SIZE) mem;
static struct kevent_ring *const ring = &mem.ring;

static void ring_reset(__u64 position)
{
	memset(&mem, 0, sizeof(mem));
	ring->ring_kidx = position;
	ring->ring_uidx = position;
}

static void store(__u64 first, unsigned int nr)
{
	while (nr--)
		ring_store(ring, RING_SIZE, first++);
}

static void check_entry(const struct ukevent *ev, __u64 nr)
{
	CHECK_EQ(ev->ptr, nr);
	CHECK(entry_intact(ev));
}

static void empty_ring_gives_nothing(void)
{
	struct ukevent ev = { .type = 77 };

	ring_reset(0);
	CHECK_EQ(kevent_ring_count(ring, RING_SIZE), 0);
	CHECK_EQ(kevent_ring_pop(ring, RING_SIZE, &ev, 1), 0);
	CHECK_EQ(kevent_ring_next(ring, RING_SIZE, &ev), 0);
	CHECK_EQ(ev.type, 77);
	CHECK_EQ(ring->ring_uidx, 0);
}

static void entries_come_in_order_and_whole(void)
{
	struct ukevent ev;
	__u64 want = 100;

	ring_reset(0);
	store(100, RING_SIZE);
	while (kevent_ring_next(ring, RING_SIZE, &ev))
		check_entry(&ev, want++);
	CHECK_EQ(want, 100 + RING_SIZE);
}

static void pop_takes_no_more_than_asked(void)
{
	struct ukevent ev[4] = { 0 };

	ring_reset(3);
	store(0, 5);
	CHECK_EQ(kevent_ring_pop(ring, RING_SIZE, ev, 0), 0);
	CHECK_EQ(kevent_ring_pop(ring, RING_SIZE, ev, 3), 3);
	CHECK_EQ(ev[3].ptr, 0);
	check_entry(&ev[2], 2);
	CHECK_EQ(kevent_ring_count(ring, RING_SIZE), 2);
	CHECK_EQ(kevent_ring_pop(ring, RING_SIZE, ev, 4), 2);
	check_entry(&ev[0], 3);
	check_entry(&ev[1], 4);
	CHECK_EQ(ring->ring_uidx, 8);
}

static void full_ring_is_not_empty(void)
{
	struct ukevent ev[RING_SIZE + 1];

	ring_reset(5);
	store(0, RING_SIZE);
	CHECK_EQ(kevent_ring_count(ring, RING_SIZE), RING_SIZE);
	CHECK_EQ(kevent_ring_pop(ring, RING_SIZE, ev, RING_SIZE + 1),
		 RING_SIZE);
	check_entry(&ev[RING_SIZE - 1], RING_SIZE - 1);
	CHECK_EQ(kevent_ring_count(ring, RING_SIZE), 0);
}

static void pass_position(__u64 position)
{
	struct ukevent ev[RING_SIZE];
	unsigned int i;

	ring_reset(position - 10);
	for (i = 0; i < 20; i += 5) {
		store(i, 5);
		CHECK_EQ(kevent_ring_count(ring, RING_SIZE), 5);
		CHECK_EQ(kevent_ring_pop(ring, RING_SIZE, ev, RING_SIZE), 5);
		check_entry(&ev[0], i);
		check_entry(&ev[4], i + 4);
	}
	CHECK_EQ(ring->ring_uidx, position + 10);
}

static void positions_pass_32_bits(void)
{
	pass_position(1ULL << 32);
}

static void positions_pass_64_bits(void)
{
	pass_position(0);
}

static void storage_has_room_and_alignment(void)
{
	CHECK_EQ(KEVENT_RING_BYTES(RING_SIZE), 128 + RING_SIZE * 40);
	CHECK(sizeof(mem) >= KEVENT_RING_BYTES(RING_SIZE));
	CHECK_EQ((size_t)ring % 64, 0);
}

/* Consumers in threads */

static struct {
	atomic_uchar *seen;	/* how often each number came out */
	__u64 end;		/* position after the last event */
	atomic_uint torn;	/* entries that were not in one piece */
	atomic_uint strange;	/* numbers never stored */
	__u32 batch;
} run;

static void account(const struct ukevent *ev)
{
	if (!entry_intact(ev))
		run.torn++;
	else if (ev->ptr >= test_events)
		run.strange++;
	else
		run.seen[ev->ptr]++;
}

static void *consume(void *arg)
{
	struct ukevent ev[MAX_BATCH];
	__u32 nr, i;

	(void)arg;
	for (;;) {
		nr = kevent_ring_pop(ring, RING_SIZE, ev, run.batch);
		for (i = 0; i < nr; i++)
			account(&ev[i]);
		if (nr)
			continue;
		if (__atomic_load_n(&ring->ring_uidx, __ATOMIC_ACQUIRE) ==
		    run.end)
			return NULL;
		sched_yield();
	}
}

/* Like the kernel: reuses a slot only after ring_uidx has passed it */
static void produce(void)
{
	__u64 nr = 0;

	while (nr < test_events) {
		if (ring->ring_kidx -
		    __atomic_load_n(&ring->ring_uidx, __ATOMIC_ACQUIRE) <
		    RING_SIZE)
			ring_store(ring, RING_SIZE, nr++);
		else
			sched_yield();
	}
}

static unsigned int count_not_once(void)
{
	unsigned int i, bad = 0;

	for (i = 0; i < test_events; i++)
		bad += run.seen[i] != 1;
	return bad;
}

static void share_ring(int consumers, __u32 batch, __u64 position)
{
	pthread_t thread[MAX_CONSUMERS];
	int i;

	memset(&run, 0, sizeof(run));
	ring_reset(position);
	run.end = position + test_events;
	run.batch = batch;
	run.seen = calloc(test_events, sizeof(*run.seen));
	CHECK(run.seen);
	if (!run.seen)
		return;
	for (i = 0; i < consumers; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, consume, NULL), 0);
	produce();
	for (i = 0; i < consumers; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(count_not_once(), 0);
	CHECK_EQ(run.torn, 0);
	CHECK_EQ(run.strange, 0);
	free(run.seen);
}

static void eight_consumers_get_each_event_once(void)
{
	share_ring(8, 1, 0);
}

static void four_consumers_in_batches_get_each_event_once(void)
{
	share_ring(4, MAX_BATCH, 0);
}

static void consumers_pass_32_bits_together(void)
{
	share_ring(4, 3, (1ULL << 32) - test_events / 2);
}

const struct test_case ring_tests[] = {
	{ "empty_ring_gives_nothing", empty_ring_gives_nothing },
	{ "entries_come_in_order_and_whole", entries_come_in_order_and_whole },
	{ "pop_takes_no_more_than_asked", pop_takes_no_more_than_asked },
	{ "full_ring_is_not_empty", full_ring_is_not_empty },
	{ "positions_pass_32_bits", positions_pass_32_bits },
	{ "positions_pass_64_bits", positions_pass_64_bits },
	{ "storage_has_room_and_alignment", storage_has_room_and_alignment },
	{ "eight_consumers_get_each_event_once",
	  eight_consumers_get_each_event_once },
	{ "four_consumers_in_batches_get_each_event_once",
	  four_consumers_in_batches_get_each_event_once },
	{ "consumers_pass_32_bits_together", consumers_pass_32_bits_together },
	{ }
};
