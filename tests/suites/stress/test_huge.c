// SPDX-License-Identifier: GPL-2.0
/*
 * A million watches, and ten thousand threads on one queue
 *
 * Needs 4 GB, and minutes where a processor is emulated, so it runs only by its name.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>

#include "helpers.h"

#define FILES		200000
#define QUEUES		5		/* each watches each file */
#define BATCH		1000
#define THREADS		10000
#define ROUNDS		2
#define SECONDS		1800
#define LEFT_KB		(16 << 10)	/* of slabs: caches of the allocator */

static int files[FILES];
static unsigned char seen[FILES];

static void open_files(void)
{
	unsigned int i;

	write_file("/proc/sys/fs/nr_open", "400000");
	write_file("/proc/sys/fs/file-max", "4000000");
	write_file("/proc/sys/fs/kevent/max_user_bytes", "1000000000");
	open_fds(FILES + 64);
	for (i = 0; i < FILES; i++)
		MUST((files[i] = eventfd(0, EFD_NONBLOCK)) >= 0);
}

/* Kernel memory in slabs that nobody can take back, in KiB */
static long slabs(void)
{
	char text[8192], *at;

	read_file("/proc/meminfo", text, sizeof(text));
	at = strstr(text, "SUnreclaim:");
	return at ? atol(at + strlen("SUnreclaim:")) : -1;
}

/* The caches of the processors and what RCU holds back are given back in time. */
static void memory_is_back(long before)
{
	uint64_t start = now_ns();

	while (slabs() > before + LEFT_KB && patient(start, 6 * PATIENCE_MS))
		;
	note("slabs: %ld KiB before, %ld after", before, slabs());
	CHECK(slabs() <= before + LEFT_KB);
}

static void for_each_batch(struct queue *q, uint32_t cmd)
{
	static struct ukevent ev[BATCH];
	unsigned int i, j;

	for (i = 0; i < FILES; i += BATCH) {
		for (j = 0; j < BATCH; j++)
			kevent_set_poll(&ev[j], files[i + j], KEVENT_POLL_POLLIN,
					KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL,
					i + j);
		MUST_EQ(kevent_ctl(q->fd, cmd, BATCH, ev), 0);
	}
}

static void write_all(void)
{
	unsigned int i;

	for (i = 0; i < FILES; i++)
		MUST_EQ(eventfd_write(files[i], 1), 0);
}

/* Each file once, and nothing else */
static void take_all(struct queue *q)
{
	static struct ukevent ev[BATCH];
	unsigned int taken = 0, twice = 0;
	int i, nr;

	memset(seen, 0, sizeof(seen));
	while ((nr = get_events(q->fd, 1, BATCH, 0, ev)) > 0)
		for (i = 0; i < nr; i++, taken++)
			twice += ev[i].ptr >= FILES || seen[ev[i].ptr]++;
	CHECK_EQ(nr, 0);
	CHECK_EQ(taken, FILES);
	CHECK_EQ(twice, 0);
}

static void million_watches_leave_no_memory(void)
{
	struct queue q[QUEUES];
	unsigned int i, round;
	long before;

	open_files();
	for (i = 0; i < QUEUES; i++)
		open_queue(&q[i], 0);
	before = slabs();
	for (i = 0; i < QUEUES; i++) {
		for_each_batch(&q[i], KEVENT_CTL_ADD);
		CHECK_EQ(fdinfo(q[i].fd, "kevent-watches"), FILES);
	}
	note("%u bytes in slabs for a watch", (unsigned int)
	     ((slabs() - before) * 1024.0 / FILES / QUEUES));
	for (round = 0; round < ROUNDS; round++) {
		write_all();
		for (i = 0; i < QUEUES; i++)
			take_all(&q[i]);
	}
	for (i = 0; i < QUEUES; i++)
		for_each_batch(&q[i], KEVENT_CTL_REMOVE);
	CHECK_EQ(fdinfo(q[0].fd, "kevent-user-bytes"), 0);
	memory_is_back(before);
	for (i = 0; i < QUEUES; i++)
		close_queue(&q[i]);
}

static struct queue many;
static _Atomic unsigned int answers[THREADS];

static void *takes_one(void *arg)
{
	struct ukevent ev;

	(void)arg;
	if (get_events(many.fd, 1, 1, -1, &ev) == 1 && ev.ptr < THREADS)
		answers[ev.ptr]++;
	return NULL;
}

static void start_threads(pthread_t *thread)
{
	pthread_attr_t attr;
	unsigned int i;

	write_file("/proc/sys/kernel/threads-max", "40000");
	write_file("/proc/sys/kernel/pid_max", "60000");
	write_file("/proc/sys/vm/max_map_count", "100000");
	MUST_EQ(pthread_attr_init(&attr), 0);
	MUST_EQ(pthread_attr_setstacksize(&attr, 64 << 10), 0);
	for (i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], &attr, takes_one, NULL), 0);
	pthread_attr_destroy(&attr);
}

static void wait_for_sleepers(unsigned int nr)
{
	uint64_t start = now_ns();

	while (fdinfo(many.fd, "kevent-waiting") != nr)
		MUST(patient(start, 20 * PATIENCE_MS));
}

static void ten_thousand_threads_get_one_event_each(void)
{
	static pthread_t thread[THREADS];
	unsigned int i, wrong = 0;

	open_queue(&many, 0);
	MUST_EQ(add_user(many.fd, 1, 1, KEVENT_REQ_DISABLED, 1), 0);
	start_threads(thread);
	wait_for_sleepers(THREADS);
	for (i = 0; i < THREADS; i++)
		MUST_EQ(add_user(many.fd, 1000 + i, 1, KEVENT_REQ_READY |
				 KEVENT_REQ_ONESHOT, i), 0);
	for (i = 0; i < THREADS; i++)
		MUST_EQ(pthread_join(thread[i], NULL), 0);
	for (i = 0; i < THREADS; i++)
		wrong += answers[i] != 1;
	CHECK_EQ(wrong, 0);
	CHECK_NO_EVENT(&many);
	CHECK_EQ(fdinfo(many.fd, "kevent-waiting"), 0);
	close_queue(&many);
}

static const struct test_case cases[] = {
	TEST_LIMIT(million_watches_leave_no_memory, SECONDS),
	TEST_LIMIT(ten_thousand_threads_get_one_event_each, SECONDS),
	{}
};

const struct test_suite huge_suite = {
	.name = "huge",
	.cases = cases,
	.only_by_name = true,
};
