// SPDX-License-Identifier: GPL-2.0
/*
 * One wake-up for several events, where they come in short succession
 *
 * Events are made by a child: it does not have the ring, so each of them waits in the
 * kernel for a consumer. "kevent-held" of fdinfo counts those that left the only
 * consumer asleep.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "helpers.h"

#define FILES		4		/* an event of each is a burst */
#define LAPS		400		/* bursts of a flood */
#define PACES		32		/* times from a burst to the next */
#define PACE_NS		10000
#define ROUNDS		1000		/* of a request and its answer */
#define MOST_HELD	16		/* of these, as attempts become rarer */

/**
 * struct flood - many events from a child, taken by one thread or two
 * @q:		the queues; the second has no size unless a test opens it
 * @near:	ends of the parent
 * @far:	ends of the child
 * @bytes:	taken so far, or marks
 * @lost:	a consumer has failed
 *
 * In memory that parent and child share.
 */
struct flood {
	struct queue		q[2];
	int			near[FILES];
	int			far[FILES];
	_Atomic unsigned int	bytes;
	_Atomic bool		lost;
};

static struct flood *open_flood(void)
{
	struct flood *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, pair[2];

	MUST(f != MAP_FAILED);
	open_queue(&f->q[0], 2 * FILES);
	/* As long as the kernel thinks right, on a slow host too */
	MUST_EQ(kevent_set_delay(f->q[0].fd, KEVENT_DELAY_MAX), 0);
	for (i = 0; i < FILES; i++) {
		MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				   pair), 0);
		f->near[i] = pair[0];
		f->far[i] = pair[1];
	}
	return f;
}

static void watch_files(struct flood *f, struct queue *q)
{
	int i;

	for (i = 0; i < FILES; i++)
		MUST_EQ(add_socket(q->fd, f->near[i], KEVENT_SOCKET_RECV,
				   KEVENT_REQ_ET, (uint64_t)i), 0);
}

static void close_flood(struct flood *f)
{
	int i;

	for (i = 0; i < FILES; i++) {
		close(f->near[i]);
		close(f->far[i]);
	}
	close_queue(&f->q[0]);
	munmap(f, sizeof(*f));
}

/*
 * In the child: waits until the last burst is taken, and then for a while that is another
 * one each time: sooner or later the consumer has just fallen asleep.
 */
static bool next_lap(struct flood *f, int lap)
{
	uint64_t start = now_ns();

	while (f->bytes < (unsigned int)(FILES * lap))
		if (!patient(start, PATIENCE_MS))
			return false;
	start = now_ns();
	while (now_ns() - start < (uint64_t)(lap % PACES) * PACE_NS * slowness)
		;
	return true;
}

/* In the child: bursts of a byte for each file */
static int write_all(void *arg)
{
	struct flood *f = arg;
	int lap, i;

	for (lap = 0; lap < LAPS; lap++) {
		CHILD_MUST(next_lap(f, lap));
		for (i = 0; i < FILES; i++)
			CHILD_MUST(write(f->far[i], "x", 1) == 1);
	}
	return 0;
}

/* Takes events of a queue until all bytes have come. */
static void take_all(struct flood *f, struct queue *q)
{
	struct ukevent ev;
	int ret;

	while (f->bytes < FILES * LAPS && !f->lost) {
		ret = next_event(q, &ev, 100);
		if (ret == 1)
			f->bytes += take_bytes(f->near[ev.ptr]);
		else if (ret)
			f->lost = true;
	}
}

/* Returns how many events of the flood were held. */
static long long flood(struct flood *f)
{
	long long held = fdinfo(f->q[0].fd, "kevent-held");
	uint64_t start = now_ns();
	pid_t pid;

	f->bytes = 0;
	pid = start_child(write_all, f);
	while (f->bytes < FILES * LAPS && patient(start, 4 * PATIENCE_MS))
		take_all(f, &f->q[0]);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_EQ(f->bytes, FILES * LAPS);
	CHECK(!f->lost);
	return fdinfo(f->q[0].fd, "kevent-held") - held;
}

static void events_in_short_succession_are_held(void)
{
	struct flood *f;
	uint64_t start;
	long long held;

	if (!two_cpus())
		return;
	f = open_flood();
	watch_files(f, &f->q[0]);
	/* How short a succession is depends on the host, too. */
	start = now_ns();
	do {
		held = flood(f);
	} while (!held && patient(start, PATIENCE_MS));
	note("%lld of %d events were held", held, FILES * LAPS);
	CHECK(held > 0);
	close_flood(f);
}

static void no_event_is_held_if_the_program_says_so(void)
{
	struct flood *f;

	f = open_flood();
	watch_files(f, &f->q[0]);
	MUST_EQ(kevent_set_delay(f->q[0].fd, 0), 0);
	CHECK_EQ(flood(f), 0);
	close_flood(f);
}

static void consumer_of_real_time_has_each_event_at_once(void)
{
	struct sched_param param = { .sched_priority = 1 };
	struct flood *f;

	f = open_flood();
	watch_files(f, &f->q[0]);
	MUST_EQ(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param),
		0);
	CHECK_EQ(flood(f), 0);
	close_flood(f);
}

/* In the child, which has the queue: a burst of marks */
static int mark_all(void *arg)
{
	struct flood *f = arg;
	int lap, i;

	for (lap = 0; lap < LAPS; lap++) {
		CHILD_MUST(next_lap(f, lap));
		for (i = 0; i < FILES; i++)
			CHILD_MUST(mark_user(f->q[0].fd, (uint64_t)i, 1) == 1);
	}
	return 0;
}

static void marks_are_not_held(void)
{
	unsigned int counts[FILES] = {};
	struct ukevent ev;
	struct flood *f;
	pid_t pid;
	int i;

	f = open_flood();
	for (i = 0; i < FILES; i++)
		MUST_EQ(add_user(f->q[0].fd, (uint64_t)i, 1, 0, (uint64_t)i), 0);
	pid = start_child(mark_all, f);
	while (f->bytes < FILES * LAPS) {
		MUST_EVENT(&f->q[0], &ev);
		counts[ev.ptr] += ev.ret_data[1];
		f->bytes += ev.ret_data[1];
	}
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	for (i = 0; i < FILES; i++)
		CHECK_EQ(counts[i], LAPS);
	CHECK_EQ(fdinfo(f->q[0].fd, "kevent-held"), 0);
	close_flood(f);
}

static long take_other(void *arg)
{
	struct flood *f = arg;

	take_all(f, &f->q[1]);
	return 0;
}

/* Another queue could have taken what this one was told of. */
static void event_that_has_turns_is_not_held(void)
{
	struct actor other;
	struct flood *f;

	f = open_flood();
	open_queue(&f->q[1], 2 * FILES);
	watch_files(f, &f->q[0]);
	watch_files(f, &f->q[1]);
	start_actor(&other, take_other, f);
	CHECK_EQ(flood(f), 0);
	join_actor(&other, PATIENCE_MS);
	CHECK_EQ(fdinfo(f->q[1].fd, "kevent-held"), 0);
	close_queue(&f->q[1]);
	close_flood(f);
}

/* In the child: answers each byte of the first file. */
static int echo_bytes(void *arg)
{
	struct flood *f = arg;
	int i, flags = 0;
	char c;

	if (ioctl(f->far[0], FIONBIO, &flags))
		return 1;
	for (i = 0; i < ROUNDS; i++)
		if (read(f->far[0], &c, 1) != 1 || write(f->far[0], &c, 1) != 1)
			return 1;
	return 0;
}

/*
 * Each event is the only one until its answer: the queue tries to hold one now and then,
 * ever more rarely, and none of these attempts may keep it for ever.
 */
static void single_events_are_held_rarely_and_not_for_ever(void)
{
	struct ukevent ev;
	struct flood *f;
	long long held;
	pid_t pid;
	int i;

	f = open_flood();
	watch_files(f, &f->q[0]);
	pid = start_child(echo_bytes, f);
	for (i = 0; i < ROUNDS; i++) {
		put_byte(f->near[0]);
		MUST_EQ(next_event(&f->q[0], &ev, PATIENCE_MS), 1);
		MUST_EQ(take_bytes(f->near[0]), 1);
	}
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	held = fdinfo(f->q[0].fd, "kevent-held");
	note("%lld of %d single events were held", held, ROUNDS);
	CHECK(held <= MOST_HELD);
	close_flood(f);
}

static void delay_is_what_was_set(void)
{
	uint32_t ns = 0;
	struct queue q;

	open_queue(&q, 8);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_GET_DELAY, &ns), 0);
	CHECK_EQ(ns, on_module() ? 0 : 1000000);
	CHECK_EQ(kevent_set_delay(q.fd, KEVENT_DELAY_MAX), 0);
	CHECK_EQ(kevent_set_delay(q.fd, KEVENT_DELAY_MAX + 1), -EINVAL);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_GET_DELAY, &ns), 0);
	CHECK_EQ(ns, KEVENT_DELAY_MAX);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_SET_DELAY, (void *)8), -EFAULT);
	CHECK_EQ(try_ioctl(q.fd, KEVENT_IOC_GET_DELAY, (void *)8), -EFAULT);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(events_in_short_succession_are_held),
	TEST(no_event_is_held_if_the_program_says_so),
	TEST(consumer_of_real_time_has_each_event_at_once),
	TEST(marks_are_not_held),
	TEST(event_that_has_turns_is_not_held),
	TEST(single_events_are_held_rarely_and_not_for_ever),
	TEST(delay_is_what_was_set),
	{}
};

const struct test_suite coalesce_suite = { .name = "coalesce", .cases = cases };
