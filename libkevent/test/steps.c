// SPDX-License-Identifier: GPL-2.0
/*
 * Events that come between two loads of the library
 *
 * This file compiles src/api/queue.c and the ring functions once more, with a hook
 * after each atomic load. Each test runs once per load, and lets the kernel
 * store an event, or another consumer take one, just there.
 */
static void after_load(void);

#define __atomic_load_n(ptr, order)				\
({								\
	__auto_type __value = __atomic_load_n(ptr, order);	\
								\
	after_load();						\
	__value;						\
})

#define kevent_close		stepped_close
#define kevent_queue_attach	stepped_queue_attach
#define kevent_queue_close	stepped_queue_close
#define kevent_queue_get	stepped_queue_get
#define kevent_queue_init	stepped_queue_init
#define kevent_queue_pop	stepped_queue_pop
#define kevent_queue_ring_and_get stepped_queue_ring_and_get
#define kevent_queue_wait	stepped_queue_wait
#define kevent_timespec_valid	stepped_timespec_valid

#include "../src/api/queue.c"

#include <string.h>

#include "test.h"

#define RING_SIZE	4
#define MAX_EVENTS	8

static KEVENT_RING_STORAGE(RING_SIZE) mem;
static struct kevent_queue queue = {
	.fd = 42, .size = RING_SIZE, .ring = &mem.ring,
};

static void (*intruder)(void);
static int loads_left;		/* until the intruder comes; -1: it has come */
static unsigned char seen[MAX_EVENTS];

static void after_load(void)
{
	if (loads_left >= 0 && !loads_left--)
		intruder();
}

static void start(void (*who)(void), int loads, unsigned int nr_entries)
{
	unsigned int i;

	memset(&mem, 0, sizeof(mem));
	memset(seen, 0, sizeof(seen));
	intruder = who;
	loads_left = -1;
	for (i = 0; i < nr_entries; i++)
		ring_store(queue.ring, RING_SIZE, i);
	loads_left = loads;
}

static void account(const struct ukevent *ev, int nr)
{
	for (; nr > 0; nr--, ev++) {
		CHECK(entry_intact(ev));
		CHECK(ev->ptr < MAX_EVENTS);
		if (ev->ptr < MAX_EVENTS)
			seen[ev->ptr]++;
	}
}

static void check_each_seen_once(unsigned int nr)
{
	struct ukevent ev;
	unsigned int i;

	while (kevent_ring_next(queue.ring, RING_SIZE, &ev))
		account(&ev, 1);
	for (i = 0; i < nr; i++)
		CHECK_EQ(seen[i], 1);
}

static void kernel_stores(void)
{
	ring_store(queue.ring, RING_SIZE, 0);
}

/* The last chance for the event is when the consumer is asleep */
static long sleep_in_kernel(const struct fake_call *call)
{
	struct kevent_ring *ring = queue.ring;

	if ((__u32)ring->ring_kidx == (__u32)call->arg[2]) {
		CHECK_EQ(ring->ring_uidx, ring->ring_kidx);
		if (!ring->ring_kidx)
			kernel_stores();
	}
	loads_left = -1;
	return 1;
}

static void wait_meets_an_event_after_each_load(void)
{
	int loads;

	fake_kernel = sleep_in_kernel;
	for (loads = 0; loads < 6; loads++) {
		start(kernel_stores, loads, 0);
		CHECK_EQ(stepped_queue_wait(&queue, NULL), 1);
		check_each_seen_once(1);
	}
}

static void get_meets_an_event_after_each_load(void)
{
	struct ukevent ev;
	int loads;

	fake_kernel = sleep_in_kernel;
	for (loads = 0; loads < 8; loads++) {
		start(kernel_stores, loads, 0);
		CHECK_EQ(stepped_queue_get(&queue, &ev, 1, NULL), 1);
		account(&ev, 1);
		check_each_seen_once(1);
	}
}

/* The other consumer takes an entry, and the kernel uses the slot again */
static void rival_pops(void)
{
	struct ukevent ev;

	if (!kevent_ring_next(queue.ring, RING_SIZE, &ev))
		return;
	account(&ev, 1);
	ring_store(queue.ring, RING_SIZE, RING_SIZE);
}

static void pop_meets_a_rival_after_each_load(void)
{
	struct ukevent ev[RING_SIZE];
	int loads = 0;
	int came, nr;

	do {
		start(rival_pops, loads++, RING_SIZE);
		nr = stepped_queue_pop(&queue, ev, 3);
		came = loads_left < 0;
		CHECK_EQ(nr, 3);
		account(ev, nr);
		loads_left = -1;
		check_each_seen_once(came ? RING_SIZE + 1 : RING_SIZE);
	} while (came);
	/* two positions, five words of three entries, and a run undisturbed */
	CHECK_EQ(loads, 2 + 3 * 5 + 1);
}

const struct test_case step_tests[] = {
	{ "wait_meets_an_event_after_each_load",
	  wait_meets_an_event_after_each_load },
	{ "get_meets_an_event_after_each_load",
	  get_meets_an_event_after_each_load },
	{ "pop_meets_a_rival_after_each_load",
	  pop_meets_a_rival_after_each_load },
	{ }
};
