// SPDX-License-Identifier: GPL-2.0
/*
 * What a thread that sleeps gets by the wake-up itself: in the ring or in its buffer, in each
 * mode, once
 *
 *	T1(3) T2(2) T3(get_events)	e, e -> T2	e -> T1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "helpers.h"

/* A thread that waits until so many entries are there */
struct collector {
	struct actor	actor;
	struct queue	*q;
	uint32_t	min;
};

static long collect(void *arg)
{
	struct collector *c = arg;
	struct kevent_wait_arg wait = {
		.size = sizeof(wait), .clockid = CLOCK_MONOTONIC,
		.min_nr = c->min,
	};

	return kevent_wait(c->q->fd, 8, 0, NULL, KEVENT_FLAGS_ARG, &wait);
}

/* In the order in which they have what they wait for, and not in that of their calls */
static void waiters_for_several_wake_when_they_have_them(void)
{
	struct collector c[4] = {
		{ .min = 5 }, { .min = 3 }, { .min = 2 }, { .min = 3 },
	};
	static const unsigned int order[] = { 2, 1, 3, 0 };
	struct queue q, bare;
	struct waiter plain;
	int fd[6][2], i;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	for (i = 0; i < 6; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, ET, i), 0);
	}
	for (i = 0; i < 4; i++) {
		c[i].q = &q;
		start_actor(&c[i].actor, collect, &c[i]);
		MUST(sleeps_in(c[i].actor.tid, __NR_kevent_wait));
	}
	put_byte(fd[0][1]);
	for (i = 1; i < 5; i++) {
		put_byte(fd[i][1]);
		join_actor(&c[order[i - 1]].actor, PATIENCE_MS);
		CHECK_EQ(c[order[i - 1]].actor.ret, i + 1);
	}
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 5);
	start_waiter(&plain, &bare, 1);
	put_byte(fd[5][1]);
	CHECK_EQ(join_waiter(&plain), 1);
	CHECK_EQ(plain.ev[0].ptr, 5);
	close_queue(&q);
}

/* Modes of a watch, and what follows after the delivery of an event */
static const struct mode {
	uint32_t	flags;
	bool		again;	/* another byte is another event */
	bool		gone;	/* the watch is */
} modes[] = {
	{ .flags = ET, .again = true },
	{ .flags = 0, .again = true },
	{ .flags = KEVENT_REQ_LAST_CHECK, .again = true },
	{ .flags = ET | KEVENT_REQ_LAST_CHECK, .again = true },
	{ .flags = ET | KEVENT_REQ_WAKEUP_ALL, .again = true },
	{ .flags = KEVENT_REQ_DISPATCH },
	{ .flags = ET | KEVENT_REQ_DISPATCH },
	{ .flags = KEVENT_REQ_ONESHOT, .gone = true },
	{ .flags = ET | KEVENT_REQ_ONESHOT, .gone = true },
};

/* The event of a byte that another process writes, while a thread sleeps */
static void sleep_for_byte(struct queue *q, int fd)
{
	struct ukevent ev;
	struct waiter w;

	start_waiter(&w, q, 1);
	put_byte_from_outside(fd);
	MUST_EQ(join_waiter(&w), 1);
	ev = w.ev[0];
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(ev.ret_data[0], RECV);
	CHECK(!(ev.ret_flags & KEVENT_RET_BROKEN));
}

/* A ring that stays writable while a child lives */
static void open_shared(struct queue *q)
{
	*q = (struct queue){ .size = 16, .bytes = 4096 };
	q->ring = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q->ring != MAP_FAILED);
	q->fd = kevent_init(q->ring, q->size, init_flags);
	MUST(q->fd >= 0);
}

/* With a buffer, a ring that a child makes read-only, and one that it does not */
static void each_memory(void (*fn)(struct queue *q))
{
	struct queue q;

	each_queue(fn);
	open_shared(&q);
	fn(&q);
	close_queue(&q);
}

static void has_each_event_once(struct queue *q)
{
	const struct mode *m;
	int fd[2];

	for (m = modes; m < modes + ARRAY_SIZE(modes); m++) {
		open_pipe(fd);
		MUST_EQ(add_pipe(q->fd, fd[0], RECV, m->flags, 7), 0);
		sleep_for_byte(q, fd[1]);
		take_bytes(fd[0]);
		CHECK_NO_EVENT(q);
		if (m->again) {
			sleep_for_byte(q, fd[1]);
		} else {
			put_byte_from_outside(fd[1]);
			CHECK_NO_EVENT(q);
		}
		CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]),
			 m->gone ? -ENOENT : 0);
		CHECK_NO_EVENT(q);
		close(fd[0]);
		close(fd[1]);
	}
}

static void sleeper_has_each_event_once(void)
{
	each_memory(has_each_event_once);
}

static int put_two_bytes(void *arg)
{
	const int *fd = arg;

	go_first();
	CHILD_MUST(write(fd[1], "", 1) == 1);
	CHILD_MUST(write(fd[3], "", 1) == 1);
	return 0;
}

/* One CPU: two events come before the sleeper runs, which asks for one. */
static void leaves_the_second_event(struct queue *q)
{
	unsigned int counts[2] = {};
	struct ukevent ev;
	struct waiter w;
	int fd[4], i;

	share_cpu();
	for (i = 0; i < 2; i++) {
		open_pipe(fd + 2 * i);
		MUST_EQ(add_pipe(q->fd, fd[2 * i], RECV, ET, i), 0);
	}
	start_waiter(&w, q, 1);
	CHECK_EQ(join_child(start_child(put_two_bytes, fd), PATIENCE_MS), 0);
	CHECK(join_waiter(&w) > 0);
	for (i = 0; i < 2; i++) {
		ev = w.ev[0];
		if (q->size)
			take_announced(q, &ev);
		else if (i)
			MUST_EVENT(q, &ev);
		MUST(ev.ptr < 2);
		counts[ev.ptr]++;
	}
	CHECK_EQ(counts[0], 1);
	CHECK_EQ(counts[1], 1);
	CHECK_NO_EVENT(q);
	leave_cpu();
}

static void sleeper_leaves_the_second_event(void)
{
	each_memory(leaves_the_second_event);
}

/*
 * One CPU: a thread fills its buffer in two collections, and leaves an event behind, which is
 * for a thread that waits for the ring.
 */
static void full_buffer_hands_the_event_on(void)
{
	struct waiter plain, ring;
	struct queue q, bare;
	int i;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	share_cpu();
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_KEEP_EACH, 0), 0);
	start_waiter_for(&plain, &bare, 2, 2, -1);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST(sleeps_in(plain.actor.tid, __NR_kevent_get_events));
	start_waiter(&ring, &q, 1);
	go_first();
	for (i = 0; i < 2; i++)
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
	go_as_others();
	CHECK_EQ(join_waiter(&plain), 2);
	CHECK_EQ(join_waiter(&ring), 1);
	leave_cpu();
	close_queue(&q);
}

/* An unread entry says all there is to say: a byte more is no news for a sleeper. */
static void unread_entry_is_no_news(void)
{
	struct ukevent ev;
	struct waiter w;
	struct queue q;
	int fd[2];

	open_shared(&q);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	put_byte_from_outside(fd[1]);
	MUST_EQ(wait_ring(&q, 1, 0), 1);
	start_waiter(&w, &q, 1);
	put_byte_from_outside(fd[1]);
	MUST(sleeps_in(w.actor.tid, __NR_kevent_wait));
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* A sleeper that waits for two events goes on to sleep with the first one. */
static void sleeper_for_two_has_two(void)
{
	struct collector c = { .min = 2 };
	struct ukevent ev;
	struct queue q;
	int fd[4], i;

	open_shared(&q);
	for (i = 0; i < 2; i++) {
		open_pipe(fd + 2 * i);
		MUST_EQ(add_pipe(q.fd, fd[2 * i], RECV, ET, i), 0);
	}
	c.q = &q;
	start_actor(&c.actor, collect, &c);
	MUST(sleeps_in(c.actor.tid, __NR_kevent_wait));
	put_byte_from_outside(fd[1]);
	put_byte_from_outside(fd[3]);
	join_actor(&c.actor, PATIENCE_MS);
	CHECK_EQ(c.actor.ret, 2);
	for (i = 0; i < 2; i++) {
		MUST(kevent_ring_next(q.ring, q.size, &ev));
		CHECK_EQ(ev.ptr, i);
	}
	close_queue(&q);
}

/*
 * The slots are on a page that cannot be written, and an event that failed is removed: the
 * ring says that it is broken until an event is stored, for a sleeper too.
 */
static void event_of_a_sleeper_mends_the_ring(void)
{
	struct queue q = { .size = 128, .bytes = 8192 };
	int fd[2], i;

	q.ring = mmap(NULL, q.bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(q.ring != MAP_FAILED);
	q.fd = kevent_init(q.ring, q.size, init_flags);
	MUST(q.fd >= 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	/* As far as the second page */
	for (i = 0; i < 120; i++)
		sleep_for_byte(&q, fd[1]);
	MUST_EQ(mprotect((char *)q.ring + 4096, 4096, PROT_READ), 0);
	put_byte(fd[1]);
	CHECK_EQ(wait_ring(&q, 1, 0), -EFAULT);
	MUST_EQ(remove_file(q.fd, KEVENT_PIPE, fd[0]), 0);
	MUST_EQ(mprotect((char *)q.ring + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	take_bytes(fd[0]);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 7), 0);
	CHECK(q.ring->ring_flags & KEVENT_RING_BROKEN);
	sleep_for_byte(&q, fd[1]);
	CHECK_EQ(q.ring->ring_flags, 0);
	close_queue(&q);
}

static int modify_from_outside(void *arg)
{
	struct ukevent *ev = arg;

	CHILD_MUST(kevent_ctl((int)ev->ptr, KEVENT_CTL_MODIFY, 1, ev) == 0);
	return 0;
}

/* A watch that was modified is looked at, and what does not hold is no event. */
static void modified_watch_is_looked_at(void)
{
	struct ukevent ev;
	struct waiter w;
	struct queue q;
	int fd[2];

	open_shared(&q);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, q.fd), 0);
	start_waiter(&w, &q, 1);
	kevent_set_socket(&ev, fd[0], RECV, ET, q.fd);
	ev.type = KEVENT_PIPE;
	CHECK_EQ(join_child(start_child(modify_from_outside, &ev), PATIENCE_MS),
		 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(ev.ret_data[0], RECV);
	close_queue(&q);
}

struct mark {
	struct queue	*q;
	uint64_t	id;
};

static int mark_from_outside(void *arg)
{
	struct mark *m = arg;

	CHILD_MUST(mark_user(m->q->fd, m->id, 1) == 1);
	return 0;
}

/* An entry of a source that has more to say than conditions */
static void has_the_mark(struct queue *q)
{
	struct mark m = { .q = q, .id = 5ull << 32 | 6 };
	struct ukevent ev;
	struct waiter w;

	MUST_EQ(add_user(q->fd, m.id, 1, ET, 7), 0);
	start_waiter(&w, q, 1);
	CHECK_EQ(join_child(start_child(mark_from_outside, &m), PATIENCE_MS), 0);
	MUST_EQ(join_waiter(&w), 1);
	ev = w.ev[0];
	if (q->size)
		MUST(kevent_ring_next(q->ring, q->size, &ev));
	CHECK_EQ(ev.ptr, 7);
	CHECK_EQ(ev.id.raw_u64, m.id);
	CHECK_NO_EVENT(q);
}

static void sleeper_has_the_mark(void)
{
	each_memory(has_the_mark);
}

static const struct test_case cases[] = {
	TEST(sleeper_has_each_event_once),
	TEST(sleeper_leaves_the_second_event),
	TEST(sleeper_for_two_has_two),
	TEST(sleeper_has_the_mark),
	TEST(event_of_a_sleeper_mends_the_ring),
	TEST(modified_watch_is_looked_at),
	TEST(full_buffer_hands_the_event_on),
	TEST(unread_entry_is_no_news),
	TEST(waiters_for_several_wake_when_they_have_them),
	{}
};

const struct test_suite sleepers_suite = {
	.name = "sleepers",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
