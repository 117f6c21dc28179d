// SPDX-License-Identifier: GPL-2.0
/*
 * The ring: order, positions, RING_MORE, commit, and a header that a program
 * overwrites. Marks of USER watches are the events; each test knows the position
 * of each of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "helpers.h"

/* Opens a queue with @nr one-shot USER watches 0.. and a ring of @size. */
static void open_oneshots(struct queue *q, uint32_t size, unsigned int nr)
{
	unsigned int i;

	open_queue(q, size);
	for (i = 0; i < nr; i++)
		MUST_EQ(add_user(q->fd, i, 1, KEVENT_REQ_ONESHOT, i), 0);
}

static void mark(struct queue *q, unsigned int first, unsigned int nr)
{
	unsigned int i;

	for (i = first; i < first + nr; i++)
		MUST_EQ(mark_user(q->fd, i, 1), 1);
}

static int wait_past(struct queue *q, uint32_t num, uint32_t old_kidx)
{
	static const struct timespec zero;

	return kevent_wait(q->fd, num, old_kidx, &zero, 0, NULL);
}

static void entries_come_in_order_of_events(void)
{
	struct ukevent ev;
	struct queue q;
	unsigned int i;

	open_oneshots(&q, 16, 16);
	for (i = 0; i < 16; i++)
		mark(&q, 15 - i, 1);
	CHECK_EQ(wait_past(&q, 16, 0), 16);
	CHECK_EQ(q.ring->ring_kidx, 16);
	for (i = 0; i < 16; i++) {
		MUST(kevent_ring_next(q.ring, q.size, &ev));
		CHECK_EQ(ev.ptr, 15 - i);
		CHECK_EQ(ev.id.raw_u64, 15 - i);
		CHECK_EQ(ev.type, KEVENT_USER);
		CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	}
	CHECK(!has_more(&q));
	close_queue(&q);
}

static void slots_are_used_in_turn(void)
{
	struct ukevent ev;
	struct queue q;
	unsigned int i;

	open_oneshots(&q, 2, 7);
	for (i = 0; i < 7; i++) {
		mark(&q, i, 1);
		MUST_EQ(wait_past(&q, 2, i), 1);
		CHECK_EQ(q.ring->ring_kidx, i + 1);
		CHECK_EQ(q.ring->event[i & 1].ptr, i);
		MUST(kevent_ring_next(q.ring, q.size, &ev));
		CHECK_EQ(ev.ptr, i);
	}
	close_queue(&q);
}

static void wait_moves_at_most_num(void)
{
	struct queue q;

	open_oneshots(&q, 16, 10);
	mark(&q, 0, 10);
	CHECK_EQ(wait_past(&q, 3, 0), 3);
	CHECK_EQ(q.ring->ring_kidx, 3);
	CHECK(has_more(&q));
	CHECK_EQ(wait_past(&q, 6, 3), 6);
	CHECK(has_more(&q));
	CHECK_EQ(wait_past(&q, 16, 9), 1);
	CHECK(!has_more(&q));
	close_queue(&q);
}

/*
 * Like a futex: the call sleeps only while the position is what the caller saw.
 */
static void wait_returns_at_once_when_the_ring_moved(void)
{
	struct queue q;

	open_oneshots(&q, 8, 2);
	mark(&q, 0, 2);
	CHECK_EQ(wait_past(&q, 8, 0), 2);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, NULL, 0, NULL), 2);
	CHECK_EQ(kevent_wait(q.fd, 8, 1, NULL, 0, NULL), 1);
	CHECK_EQ(wait_past(&q, 8, 2), 0);
	/* Any other value is a position of the past. */
	CHECK_EQ(kevent_wait(q.fd, 8, 0xfffffff0u, NULL, 0, NULL), 18);
	CHECK_EQ(kevent_wait(q.fd, 8, 2u - 0x7fffffff, NULL, 0, NULL),
		 0x7fffffff);
	close_queue(&q);
}

static void position_ahead_of_the_ring_is_refused(void)
{
	struct queue q;

	open_oneshots(&q, 8, 2);
	mark(&q, 0, 2);
	CHECK_EQ(wait_past(&q, 8, 0), 2);
	CHECK_EQ(kevent_wait(q.fd, 8, 3, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(kevent_wait(q.fd, 8, 0x7fffffff, NULL, 0, NULL), -EINVAL);
	CHECK_EQ(wait_past(&q, 8, 1), 1);
	close_queue(&q);
}

static int stays(void *arg)
{
	(void)arg;
	return pause();
}

/* fork() has made the ring's page one that nobody can write without a fault. */
static void call_that_leaves_events_says_so_after_fork(void)
{
	struct ukevent ev;
	struct queue q;
	pid_t pid;
	int i;

	open_queue(&q, 8);
	for (i = 0; i < 2; i++)
		MUST_EQ(add_user(q.fd, i, 1, ET, i), 0);
	touch_ring(&q);
	pid = start_child(stays, NULL);
	for (i = 0; i < 2; i++)
		MUST_EQ(mark_user(q.fd, i, 1), 1);
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	CHECK(has_more(&q));
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	CHECK(!has_more(&q));
	MUST_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(join_child(pid, PATIENCE_MS), -SIGKILL);
	close_queue(&q);
}

/*
 * A flag in the ring says that the kernel has more events, if they were made where the ring
 * is.
 */
static void event_that_is_queued_sets_the_flag(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_oneshots(&q, 8, 1);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 5),
		0);
	mark(&q, 0, 1);
	await_more(&q);
	MUST_EQ(wait_past(&q, 8, 0), 1);
	CHECK(!has_more(&q));
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	/* The other process does not have the ring. */
	put_byte_from_outside(fd[1]);
	CHECK(!has_more(&q));
	MUST_EQ(wait_past(&q, 8, 1), 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(ev.ptr, 5);
	CHECK(!has_more(&q));
	close_queue(&q);
}

/* poll() of the queue says so where the ring is: a program that then pops makes a call. */
static void poll_sets_the_flag(void)
{
	struct pollfd p = { .events = POLLIN };
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 5), 0);
	put_byte_from_outside(fd[1]);
	CHECK(!has_more(&q));
	/* fork() had it shared. */
	touch_ring(&q);
	p.fd = q.fd;
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK(has_more(&q));
	close_queue(&q);
	close(fd[0]);
	close(fd[1]);
}

/*
 * A miss could not write this memory. A consumer that sleeps is still woken
 * first.
 */
static void event_for_a_sleeper_sets_no_flag(void)
{
	struct waiter w;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 5),
		0);
	start_waiter(&w, &q, 8);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK(!has_more(&q));
	close_queue(&q);
}

/*
 * A consumer on CPU 1 that stays in user mode, and a process on CPU 0, without the
 * ring, that makes an event in each round.
 */
#define ROUNDS		50

struct outside {
	_Atomic unsigned int	round;		/* the consumer is in user mode */
	_Atomic unsigned int	written;	/* there is an event of that round */
	int			fd[2];
};

static bool run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

static bool await_round(struct outside *o, unsigned int round)
{
	uint64_t start = now_ns();

	while (atomic_load(&o->round) < round)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

/* Interrupts that made CPU 1 look whether there is something to do */
static unsigned int kicks(void)
{
	static char text[1 << 16];
	unsigned int nr = 0;
	char *line;

	read_file("/proc/interrupts", text, sizeof(text));
	line = strstr(text, " Rescheduling interrupts");
	MUST(line);
	while (line > text && line[-1] != '\n')
		line--;
	MUST_EQ(sscanf(line, "%*s %*u %u", &nr), 1);
	return nr;
}

static int write_in_rounds(void *arg)
{
	struct outside *o = arg;
	unsigned int round;

	CHILD_MUST(run_on(0));
	for (round = 1; round <= ROUNDS; round++) {
		CHILD_MUST(await_round(o, round));
		CHILD_MUST(write(o->fd[1], "", 1) == 1);
		atomic_store(&o->written, round);
	}
	return 0;
}

/* Waits for @ms, stays in user mode until there is an event, and then calls. */
static void take_of_round(struct queue *q, struct outside *o,
			  unsigned int round, int64_t ms)
{
	uint64_t start = now_ns();
	struct ukevent ev;

	MUST_EQ(wait_ring(q, q->size, ms), 0);
	atomic_store(&o->round, round);
	while (atomic_load(&o->written) < round)
		MUST(now_ns() - start < slowness * PATIENCE_MS * 1000000ull);
	MUST_EQ(wait_past(q, q->size, round - 1), 1);
	MUST(kevent_ring_next(q->ring, q->size, &ev));
	MUST_EQ(take_bytes(o->fd[0]), 1);
}

/* How often CPU 1 is interrupted by events for a consumer that has waited for @ms before each */
static unsigned int interrupts_by_events(int64_t ms)
{
	struct outside *o = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i, interrupts;
	cpu_set_t before;
	struct queue q;
	pid_t pid;

	MUST(o != MAP_FAILED);
	MUST(sysconf(_SC_NPROCESSORS_ONLN) > 1);
	MUST_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	open_queue(&q, 8);
	open_pipe(o->fd);
	MUST_EQ(add_pipe(q.fd, o->fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 5),
		0);
	pid = start_child(write_in_rounds, o);
	MUST(run_on(1));
	interrupts = kicks();
	for (i = 1; i <= ROUNDS; i++)
		take_of_round(&q, o, i, ms);
	interrupts = kicks() - interrupts;
	note("%u interrupts", interrupts);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
	CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
	close_queue(&q);
	close(o->fd[0]);
	close(o->fd[1]);
	munmap(o, PAGE);
	return interrupts;
}

/* There are others, too, on a busy host more: some time they are few if events make none. */
static bool interrupts_are_few(int64_t ms)
{
	uint64_t start = now_ns();

	while (interrupts_by_events(ms) >= ROUNDS / 2)
		if (!patient(start, PATIENCE_MS))
			return false;
	return true;
}

/* A consumer that runs comes for its events by itself. */
static void consumer_that_runs_is_not_interrupted(void)
{
	CHECK(interrupts_are_few(0));
	CHECK(interrupts_are_few(1));
}

/* The other watch stores an entry before each call: the ring is never empty. */
static void level_watch_is_seen_beside_a_busy_one(void)
{
	struct kevent_queue lib;
	int busy[2], level[2], i;
	unsigned int seen = 0;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	lib = (struct kevent_queue) {
		.fd = q.fd, .size = q.size, .ring = q.ring
	};
	open_pipe(busy);
	open_pipe(level);
	put_byte(level[1]);
	MUST_EQ(add_pipe(q.fd, busy[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 1),
		0);
	MUST_EQ(add_pipe(q.fd, level[0], KEVENT_SOCKET_RECV, 0, 2), 0);
	for (i = 0; i < 100; i++) {
		put_byte(busy[1]);
		MUST_EQ(kevent_queue_get(&lib, &ev, 1, NULL), 1);
		seen += ev.ptr == 2;
		take_bytes(busy[0]);
	}
	CHECK(seen >= 100 / (2 * 8));
	close_queue(&q);
}

static void full_ring_keeps_events_in_the_kernel(void)
{
	unsigned int counts[12] = {}, i;
	struct queue q;

	open_oneshots(&q, 4, 12);
	mark(&q, 0, 12);
	CHECK_EQ(wait_past(&q, 4, 0), 4);
	CHECK(has_more(&q));
	CHECK_EQ(wait_past(&q, 4, 4), 0);
	CHECK_EQ(q.ring->ring_kidx, 4);
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 8);
	CHECK_EQ(drain(&q, counts, 12), 12);
	for (i = 0; i < 12; i++)
		CHECK_EQ(counts[i], 1);
	CHECK_EQ(q.ring->ring_kidx, 12);
	CHECK(!has_more(&q));
	close_queue(&q);
}

static void full_ring_is_not_overwritten(void)
{
	struct queue q;
	unsigned int i;

	open_oneshots(&q, 4, 12);
	mark(&q, 0, 4);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	mark(&q, 4, 8);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(wait_past(&q, 4, 4), 0);
		CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	}
	for (i = 0; i < 4; i++)
		CHECK_EQ(q.ring->event[i].ptr, i);
	CHECK_EQ(q.ring->ring_kidx, 4);
	close_queue(&q);
}

static void commit_frees_slots_and_refills_them(void)
{
	struct queue q;

	open_oneshots(&q, 4, 10);
	mark(&q, 0, 10);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	CHECK_EQ(kevent_commit(q.fd, 3, 0), 3);
	CHECK_EQ(q.ring->ring_uidx, 3);
	CHECK_EQ(q.ring->ring_kidx, 7);
	CHECK_EQ(q.ring->event[0].ptr, 4);
	CHECK_EQ(q.ring->event[3].ptr, 3);
	CHECK(has_more(&q));
	CHECK_EQ(kevent_commit(q.fd, 7, 0), 4);
	CHECK_EQ(q.ring->ring_kidx, 10);
	CHECK(!has_more(&q));
	CHECK_EQ(kevent_commit(q.fd, 10, 0), 3);
	CHECK_EQ(kevent_commit(q.fd, 10, 0), 0);
	close_queue(&q);
}

static void commit_refills_after_a_store_by_the_program(void)
{
	struct queue q;

	open_oneshots(&q, 4, 6);
	mark(&q, 0, 6);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	__atomic_store_n(&q.ring->ring_uidx, 2, __ATOMIC_RELEASE);
	CHECK_EQ(kevent_commit(q.fd, 2, 0), 0);
	CHECK_EQ(q.ring->ring_kidx, 6);
	close_queue(&q);
}

static void late_commit_is_zero(void)
{
	struct queue q;

	open_oneshots(&q, 4, 4);
	mark(&q, 0, 4);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	MUST_EQ(kevent_commit(q.fd, 3, 0), 3);
	CHECK_EQ(kevent_commit(q.fd, 3, 0), 0);
	CHECK_EQ(kevent_commit(q.fd, 2, 0), 0);
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK_EQ(q.ring->ring_uidx, 3);
	close_queue(&q);
}

static void commit_past_the_front_is_refused(void)
{
	unsigned int counts[4] = {};
	struct queue q;

	open_oneshots(&q, 4, 4);
	CHECK_EQ(kevent_commit(q.fd, 1, 0), -EINVAL);
	mark(&q, 0, 3);
	MUST_EQ(wait_past(&q, 4, 0), 3);
	CHECK_EQ(kevent_commit(q.fd, 4, 0), -EINVAL);
	CHECK_EQ(kevent_commit(q.fd, 0xffffffffu, 0), -EINVAL);
	CHECK_EQ(kevent_commit(q.fd, 0, 1), -EINVAL);
	CHECK_EQ(kevent_commit(q.fd, 3, 1), -EINVAL);
	CHECK_EQ(kevent_commit(q.fd, 3, 0x80000000u), -EINVAL);
	CHECK_EQ(kevent_commit(q.fd, 0xffffffffu, 0xffffffffu), -EINVAL);
	CHECK_EQ(q.ring->ring_uidx, 0);
	CHECK_EQ(drain(&q, counts, 4), 3);
	close_queue(&q);
}

static void full_ring_can_be_committed(void)
{
	struct queue q;

	open_oneshots(&q, 4, 4);
	mark(&q, 0, 4);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	CHECK_EQ(kevent_commit(q.fd, 4, 0), 4);
	CHECK_EQ(q.ring->ring_uidx, 4);
	close_queue(&q);
}

/* The next wait uses slots that a store to ring_uidx has freed. */
static void wait_notices_a_store_by_the_program(void)
{
	struct queue q;

	open_oneshots(&q, 4, 8);
	mark(&q, 0, 8);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	__atomic_store_n(&q.ring->ring_uidx, 4, __ATOMIC_RELEASE);
	CHECK_EQ(wait_past(&q, 4, 4), 4);
	CHECK_EQ(q.ring->ring_kidx, 8);
	CHECK(!has_more(&q));
	close_queue(&q);
}

/*
 * An unread entry that has every condition is not repeated. Once it is
 * consumed, the level is reported again.
 */
static void unread_level_entry_is_not_repeated(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 4);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, 0, 0), 0);
	put_byte(fd[1]);
	MUST_EQ(wait_past(&q, 4, 0), 1);
	put_byte(fd[1]);
	CHECK_EQ(wait_past(&q, 4, 1), 0);
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK_EQ(q.ring->ring_kidx, 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(wait_past(&q, 4, 1), 1);
	close_queue(&q);
}

#define MANY_LEVEL	600

/*
 * The same for more watches than the kernel looks at under one hold of the lock. One
 * with a new condition is reported beside them. None is forgotten.
 */
static void many_unread_level_entries_are_not_repeated(void)
{
	unsigned int counts[MANY_LEVEL] = {}, i;
	int fd[MANY_LEVEL][2];
	struct queue q;

	open_fds(2 * MANY_LEVEL + 100);
	open_queue(&q, 2048);
	for (i = 0; i < MANY_LEVEL; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], KEVENT_SOCKET_RECV, 0, i), 0);
		put_byte(fd[i][1]);
	}
	MUST_EQ(wait_past(&q, 2048, 0), MANY_LEVEL);
	CHECK_EQ(wait_past(&q, 2048, MANY_LEVEL), 0);
	CHECK_EQ(wait_past(&q, 2048, MANY_LEVEL), 0);
	CHECK(!has_more(&q));
	close(fd[MANY_LEVEL - 1][1]);
	CHECK_EQ(wait_past(&q, 2048, MANY_LEVEL), 1);
	CHECK_EQ(q.ring->event[MANY_LEVEL].ptr, MANY_LEVEL - 1);
	for (i = 0; i < MANY_LEVEL; i++)
		CHECK_EQ(q.ring->event[i].ptr, i);
	__atomic_store_n(&q.ring->ring_uidx, MANY_LEVEL + 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(wait_past(&q, 2048, MANY_LEVEL + 1), MANY_LEVEL);
	for (i = 0; i < MANY_LEVEL; i++)
		counts[q.ring->event[MANY_LEVEL + 1 + i].ptr]++;
	for (i = 0; i < MANY_LEVEL; i++)
		CHECK_EQ(counts[i], 1);
	close_queue(&q);
	for (i = 0; i < MANY_LEVEL; i++) {
		close(fd[i][0]);
		if (i < MANY_LEVEL - 1)
			close(fd[i][1]);
	}
}

/* ET: an unread entry covers all activity until it is consumed. */
static void unread_edge_entry_is_not_repeated(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 4);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0),
		0);
	put_byte(fd[1]);
	MUST_EQ(wait_past(&q, 4, 0), 1);
	put_byte(fd[1]);
	CHECK_EQ(wait_past(&q, 4, 1), 0);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	put_byte(fd[1]);
	CHECK_EQ(wait_past(&q, 4, 1), 1);
	close_queue(&q);
}

/* An entry with a bit that the unread entry lacks is reported. */
static void unread_entry_with_less_is_followed_by_more(void)
{
	struct ukevent ev[2];
	struct queue q;
	int fd[2];

	open_queue(&q, 4);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, 0, 0), 0);
	put_byte(fd[1]);
	MUST_EQ(wait_past(&q, 4, 0), 1);
	close(fd[1]);
	CHECK_EQ(wait_past(&q, 4, 1), 1);
	MUST_EQ(kevent_ring_pop(q.ring, q.size, ev, 2), 2);
	CHECK_EQ(ev[0].ret_data[0], KEVENT_SOCKET_RECV);
	CHECK(ev[1].ret_data[0] & KEVENT_POLL_POLLHUP);
	close_queue(&q);
}

/* So a ring of twice the number of watches never becomes full. */
static void ring_twice_the_watches_never_fills(void)
{
	struct queue q;
	int fd[2][2], i;
	uint64_t kidx;

	open_queue(&q, 4);
	for (i = 0; i < 2; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], KEVENT_SOCKET_RECV,
				 i ? KEVENT_REQ_ET : 0, 0), 0);
	}
	for (i = 0; i < 100; i++) {
		put_byte(fd[i & 1][1]);
		kidx = q.ring->ring_kidx;
		wait_past(&q, 4, (uint32_t)kidx);
	}
	CHECK(!has_more(&q));
	CHECK_EQ(q.ring->ring_kidx, 2);
	close_queue(&q);
}

/* The kernel uses its own count; the program's copy is only output. */
static void stores_to_kidx_and_flags_are_ignored(void)
{
	struct ukevent ev;
	struct queue q;

	open_oneshots(&q, 4, 8);
	mark(&q, 0, 1);
	MUST_EQ(wait_past(&q, 4, 0), 1);
	q.ring->ring_kidx = 0x123456789abcull;
	q.ring->ring_flags = ~0u;
	mark(&q, 1, 1);
	CHECK_EQ(wait_past(&q, 4, 1), 1);
	CHECK_EQ(q.ring->ring_kidx, 2);
	CHECK_EQ(fdinfo(q.fd, "kevent-ring-kidx"), 2);
	CHECK_EQ(q.ring->event[1].ptr, 1);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(ev.ptr, 0);
	close_queue(&q);
}

/*
 * A ring of 4 slots between two filled areas; ring_uidx has any value. With the
 * right value back in it, every event comes once.
 */
static void wild_uidx_writes_nothing_outside_the_ring(void)
{
	static const uint64_t wild[] = {
		0, 1, 3, 4, 5, 7, 8, 1u << 31, 0xffffffffu, 1ull << 32,
		1ull << 63, ~0ull, ~0ull - 3, 0x8000000000000001ull,
	};
	unsigned int counts[64] = {}, i, dirty = 0;
	unsigned char *mem;
	struct queue q;
	uint64_t uidx;

	open_oneshots(&q, 4, 64);
	mem = (unsigned char *)q.ring;
	memset(mem + KEVENT_RING_BYTES(4), 0x5a,
	       q.bytes - KEVENT_RING_BYTES(4));
	mark(&q, 0, 64);
	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		uidx = fdinfo(q.fd, "kevent-ring-uidx");
		q.ring->ring_uidx = wild[i];
		wait_past(&q, 4, (uint32_t)q.ring->ring_kidx);
		kevent_commit(q.fd, (uint32_t)wild[i], wild[i] >> 32);
		CHECK(q.ring->ring_kidx - fdinfo(q.fd, "kevent-ring-uidx") <=
		      4);
		CHECK(fdinfo(q.fd, "kevent-ring-uidx") >= (long long)uidx);
	}
	for (i = KEVENT_RING_BYTES(4); i < q.bytes; i++)
		dirty += mem[i] != 0x5a;
	CHECK_EQ(dirty, 0);
	/* A wild store consumes entries. The other events come in order. */
	uidx = fdinfo(q.fd, "kevent-ring-uidx");
	q.ring->ring_uidx = uidx;
	CHECK_EQ(drain(&q, counts, 64), 64 - uidx);
	for (i = 0; i < 64; i++)
		CHECK_EQ(counts[i], i >= uidx);
	close_queue(&q);
}

/* The kinds of memory a ring may lie in */
struct memory {
	const char *name;
	int flags;	/* of mmap() */
	bool memfd;
};

static void ring_may_lie_in_any_memory(void)
{
	static const struct memory kinds[] = {
		{ "private", MAP_PRIVATE | MAP_ANONYMOUS, false },
		{ "shared", MAP_SHARED | MAP_ANONYMOUS, false },
		{ "memfd", MAP_SHARED, true },
		{ "private memfd", MAP_PRIVATE, true },
	};
	unsigned int k, counts[8];
	struct queue q = { .size = 8 };
	void *mem;
	int fd;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		fd = -1;
		if (kinds[k].memfd) {
			fd = memfd_create("ring", MFD_CLOEXEC);
			MUST_EQ(ftruncate(fd, PAGE), 0);
		}
		mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			   kinds[k].flags, fd, 0);
		MUST(mem != MAP_FAILED);
		q.ring = mem;
		q.fd = kevent_init(q.ring, 8, 0);
		MUST(q.fd >= 0);
		MUST_EQ(add_user(q.fd, 0, 1, 0, k), 0);
		MUST_EQ(mark_user(q.fd, 0, 1), 1);
		memset(counts, 0, sizeof(counts));
		if (!CHECK_EQ(drain(&q, counts, 8), 1) ||
		    !CHECK_EQ(counts[k], 1))
			note("ring in %s memory", kinds[k].name);
		close(q.fd);
		munmap(mem, PAGE);
		if (fd >= 0)
			close(fd);
	}
}

/* The memory of the ring is gone when the file under it is truncated. */
static void truncated_file_under_the_ring_faults(void)
{
	struct queue q = { .size = 8 };
	unsigned int counts[1] = {};
	int fd = memfd_create("ring", MFD_CLOEXEC);

	MUST_EQ(ftruncate(fd, PAGE), 0);
	q.ring = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(q.ring != MAP_FAILED);
	q.fd = kevent_init(q.ring, 8, 0);
	MUST(q.fd >= 0);
	MUST_EQ(add_user(q.fd, 0, 1, 0, 0), 0);
	MUST_EQ(mark_user(q.fd, 0, 1), 1);
	MUST_EQ(ftruncate(fd, 0), 0);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, NULL, 0, NULL), -EFAULT);
	MUST_EQ(ftruncate(fd, PAGE), 0);
	CHECK_EQ(drain(&q, counts, 1), 1);
	close(q.fd);
}

/* A ring whose last slot ends with the last mapped page */
static void ring_may_end_at_the_end_of_memory(void)
{
	struct queue q = { .size = 8 };
	unsigned int counts[8] = {}, i;
	char *mem;

	mem = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(mem != MAP_FAILED);
	MUST_EQ(munmap(mem + PAGE, PAGE), 0);
	q.ring = (void *)(mem + PAGE - KEVENT_RING_BYTES(8));
	q.fd = kevent_init(q.ring, 8, 0);
	MUST(q.fd >= 0);
	for (i = 0; i < 8; i++)
		MUST_EQ(add_user(q.fd, i, 1, KEVENT_REQ_ONESHOT, i), 0);
	mark(&q, 0, 8);
	CHECK_EQ(drain(&q, counts, 8), 8);
	close(q.fd);
}

static void get_events_takes_from_the_kernel_not_the_ring(void)
{
	struct ukevent ev[8];
	struct queue q;
	unsigned int i;

	open_oneshots(&q, 4, 6);
	mark(&q, 0, 6);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	CHECK_EQ(get_events(q.fd, 1, 8, 0, ev), 2);
	CHECK_EQ(ev[0].ptr, 4);
	CHECK_EQ(ev[1].ptr, 5);
	CHECK_EQ(get_events(q.fd, 1, 8, 0, ev), 0);
	for (i = 0; i < 4; i++) {
		MUST(kevent_ring_next(q.ring, q.size, &ev[0]));
		CHECK_EQ(ev[0].ptr, i);
	}
	close_queue(&q);
}

static void get_events_waits_for_min_nr(void)
{
	struct queue q;
	struct waiter w;
	unsigned int i;

	open_oneshots(&q, 0, 5);
	start_waiter_for(&w, &q, 3, 8, -1);
	for (i = 0; i < 2; i++) {
		mark(&q, i, 1);
		MUST(sleeps_in(w.actor.tid, __NR_kevent_get_events));
		CHECK(!actor_ended(&w.actor));
	}
	mark(&q, 2, 1);
	CHECK_EQ(join_waiter(&w), 3);
	for (i = 0; i < 3; i++)
		CHECK_EQ(w.ev[i].ptr, i);
	close_queue(&q);
}

static void get_events_returns_fewer_at_the_timeout(void)
{
	struct ukevent ev[8];
	struct queue q;

	open_oneshots(&q, 0, 5);
	mark(&q, 0, 2);
	CHECK_EQ(get_events(q.fd, 3, 8, 1, ev), 2);
	mark(&q, 2, 3);
	CHECK_EQ(get_events(q.fd, 1, 2, 0, ev), 2);
	CHECK_EQ(get_events(q.fd, 1, 2, 0, ev), 1);
	close_queue(&q);
}

static void fdinfo_tells_the_positions(void)
{
	struct ukevent ev;
	struct queue q;

	open_oneshots(&q, 4, 6);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 6);
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-delivered"), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-ring-size"), 4);
	mark(&q, 0, 6);
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 6);
	MUST_EQ(wait_past(&q, 4, 0), 4);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	MUST_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-watches"), 1);
	CHECK_EQ(fdinfo(q.fd, "kevent-delivered"), 5);
	CHECK_EQ(fdinfo(q.fd, "kevent-ring-kidx"), 4);
	wait_past(&q, 4, 4);
	CHECK_EQ(fdinfo(q.fd, "kevent-ring-uidx"), 1);
	close_queue(&q);
}

static void fdinfo_lists_the_watches(void)
{
	char path[40], text[4096], want[120];
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET,
			 0x1234567890ull), 0);
	MUST_EQ(add_user(q.fd, 0xabcdef0123ull, 3, 0, 7), 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", q.fd);
	read_file(path, text, sizeof(text));
	snprintf(want, sizeof(want),
		 "\nkevent: type:pipe id:%x event:1 flags:4 user:1234567890 ready:0 state:idle\n",
		 fd[0]);
	CHECK(strstr(text, want));
	CHECK(strstr(text, "\nkevent: type:user id:abcdef0123 event:3 "
		     "flags:0 user:7 ready:0 state:idle\n"));
	MUST_EQ(mark_user(q.fd, 0xabcdef0123ull, 2), 1);
	read_file(path, text, sizeof(text));
	CHECK(strstr(text, "flags:0 user:7 ready:2 state:queued\n"));
	close(fd[0]);
	read_file(path, text, sizeof(text));
	CHECK(!strstr(text, "type:pipe"));
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(entries_come_in_order_of_events),
	TEST(slots_are_used_in_turn),
	TEST(wait_moves_at_most_num),
	TEST(wait_returns_at_once_when_the_ring_moved),
	TEST(position_ahead_of_the_ring_is_refused),
	TEST(event_that_is_queued_sets_the_flag),
	TEST(call_that_leaves_events_says_so_after_fork),
	TEST(poll_sets_the_flag),
	TEST(event_for_a_sleeper_sets_no_flag),
	TEST(consumer_that_runs_is_not_interrupted),
	TEST(level_watch_is_seen_beside_a_busy_one),
	TEST(full_ring_keeps_events_in_the_kernel),
	TEST(full_ring_is_not_overwritten),
	TEST(commit_frees_slots_and_refills_them),
	TEST(commit_refills_after_a_store_by_the_program),
	TEST(late_commit_is_zero),
	TEST(commit_past_the_front_is_refused),
	TEST(full_ring_can_be_committed),
	TEST(wait_notices_a_store_by_the_program),
	TEST(unread_level_entry_is_not_repeated),
	TEST(many_unread_level_entries_are_not_repeated),
	TEST(unread_edge_entry_is_not_repeated),
	TEST(unread_entry_with_less_is_followed_by_more),
	TEST(ring_twice_the_watches_never_fills),
	TEST(stores_to_kidx_and_flags_are_ignored),
	TEST(wild_uidx_writes_nothing_outside_the_ring),
	TEST(ring_may_lie_in_any_memory),
	TEST(truncated_file_under_the_ring_faults),
	TEST(ring_may_end_at_the_end_of_memory),
	TEST(get_events_takes_from_the_kernel_not_the_ring),
	TEST(get_events_waits_for_min_nr),
	TEST(get_events_returns_fewer_at_the_timeout),
	TEST(fdinfo_tells_the_positions),
	TEST(fdinfo_lists_the_watches),
	{}
};

const struct test_suite ring_suite = { .name = "ring", .cases = cases };
