// SPDX-License-Identifier: GPL-2.0
/*
 * Events that the wake-up itself stores: who gets them there, and who does not
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "pairs.h"

static uint32_t unread(struct queue *q)
{
	return kevent_ring_count(q->ring, q->size);
}

static void take_all(struct queue *q)
{
	struct ukevent ev;

	while (next_event(q, &ev, 0) == 1)
		;
}

static void check_counters(struct queue *q, long long hits, long long misses)
{
	CHECK_EQ(fdinfo(q->fd, "kevent-hits"), hits);
	CHECK_EQ(fdinfo(q->fd, "kevent-misses"), misses);
}

static void check_next(struct queue *q, uint64_t user, uint32_t mask)
{
	struct ukevent ev;

	MUST(kevent_ring_next(q->ring, q->size, &ev));
	CHECK_EQ(ev.ptr, user);
	CHECK_EQ(ev.ret_data[0], mask);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
}

/* A ring whose memory is present, with a watch of a pipe, cookie 7 */
static void open_watched(struct queue *q, uint32_t size, int fd[2], uint32_t flags)
{
	open_queue(q, size);
	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, flags, 7), 0);
}

static void write_stores_the_event(void)
{
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	put_byte(fd[1]);
	CHECK_EQ(unread(&q), 1);
	CHECK_EQ(q.ring->ring_flags, 0);
	check_next(&q, 7, RECV);
	check_counters(&q, 1, 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-delivered"), 1);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void send_stores_the_event(void)
{
	int type[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	struct queue q;
	unsigned int i;
	int fd[2];

	open_queue(&q, 8);
	for (i = 0; i < ARRAY_SIZE(type); i++) {
		MUST_EQ(socketpair(AF_UNIX, type[i] | SOCK_CLOEXEC, 0, fd), 0);
		MUST_EQ(add_socket(q.fd, fd[0], RECV, ET, i), 0);
		put_byte(fd[1]);
		check_next(&q, i, RECV);
		check_counters(&q, i + 1, 0);
	}
	close_queue(&q);
}

/* A watch must not keep other waiters of its file from being woken. */
static void check_reader(struct queue *q, int fd[2], uint64_t user)
{
	struct actor reader;

	start_actor(&reader, read_byte, &fd[0]);
	MUST(sleeps_in(reader.tid, SYS_read));
	put_byte(fd[1]);
	join_actor(&reader, PATIENCE_MS);
	CHECK_EQ(reader.ret, 1);
	check_next(q, user, RECV);
}

static void sleeping_reader_is_woken_as_well(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	MUST_EQ(add_socket(q.fd, fd[0], RECV, ET, 7), 0);
	check_reader(&q, fd, 7);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	close_queue(&q);
}

/* A socket has a pointer to its newest watch, which may be removed first. */
static void each_watch_of_a_socket_can_be_the_last(void)
{
	struct queue q;
	int fd[2], i;

	open_queue(&q, 8);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	for (i = 0; i < 2; i++) {
		MUST_EQ(add_socket(q.fd, fd[0], RECV, ET, 1), 0);
		MUST_EQ(add_poll(q.fd, fd[0], POLLIN, ET, 0), 0);
		put_byte(fd[1]);
		CHECK_EQ(unread(&q), 2);
		CHECK_EQ(remove_file(q.fd, i ? KEVENT_POLL : KEVENT_SOCKET,
				     fd[0]), 0);
		take_all(&q);
		put_byte(fd[1]);
		check_next(&q, i, i ? RECV : POLLIN);
		CHECK_EQ(remove_file(q.fd, i ? KEVENT_SOCKET : KEVENT_POLL,
				     fd[0]), 0);
		put_byte(fd[1]);
		CHECK_NO_EVENT(&q);
		CHECK_EQ(recv(fd[0], (char [8]){}, 8, 0), 3);
	}
	close_queue(&q);
}

/* A read makes room, which the writer's end reports. */
static void read_stores_the_event(void)
{
	static char block[65536];
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	CHECK_EQ(write(fd[1], block, sizeof(block)), sizeof(block));
	MUST_EQ(add_pipe(q.fd, fd[1], SEND, ET, 7), 0);
	CHECK_EQ(take_bytes(fd[0]), sizeof(block));
	check_next(&q, 7, SEND);
	check_counters(&q, 1, 0);
	close_queue(&q);
}

static void unread_entry_is_not_repeated(void)
{
	struct queue q;
	int fd[2], i;

	open_watched(&q, 8, fd, ET);
	for (i = 0; i < 3; i++) {
		put_byte(fd[1]);
		put_byte(fd[1]);
		CHECK_EQ(unread(&q), 1);
		check_next(&q, 7, RECV);
	}
	check_counters(&q, 3, 0);
	close_queue(&q);
}

/* A condition that the unread entry does not have gets an entry of its own. */
static void other_condition_is_stored(void)
{
	static char block[65536];
	struct queue q;
	int fd[2], len;

	open_queue(&q, 8);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   0, fd), 0);
	while ((len = write(fd[0], block, sizeof(block))) > 0)
		;
	MUST_EQ(add_socket(q.fd, fd[0], RECV | SEND, ET, 7), 0);
	put_byte(fd[1]);
	CHECK(take_bytes(fd[1]) > 0);
	put_byte(fd[1]);
	CHECK_EQ(unread(&q), 2);
	check_next(&q, 7, RECV);
	check_next(&q, 7, RECV | SEND);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	close_queue(&q);
}

static void full_ring_queues(void)
{
	struct queue q;
	int fd[3][2], i;

	open_queue(&q, 2);
	for (i = 0; i < 3; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, ET, i), 0);
		put_byte(fd[i][1]);
	}
	CHECK_EQ(unread(&q), 2);
	check_counters(&q, 2, 1);
	check_next(&q, 0, RECV);
	put_byte(fd[0][1]);
	CHECK_EQ(unread(&q), 1);
	check_counters(&q, 2, 2);
	CHECK_EQ(kevent_commit(q.fd, 2, 0), 1);
	check_next(&q, 2, RECV);
	check_next(&q, 0, RECV);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

/* While an older event waits in the kernel, a younger one waits too. */
static void events_stay_in_order(void)
{
	struct queue q;
	int fd[2][2], i;

	open_queue(&q, 8);
	for (i = 0; i < 2; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, ET, i), 0);
	}
	put_byte_from_outside(fd[0][1]);
	touch_ring(&q);
	put_byte(fd[1][1]);
	CHECK_EQ(unread(&q), 0);
	check_counters(&q, 0, 2);
	CHECK_EQ(wait_ring(&q, 8, 0), 2);
	check_next(&q, 0, RECV);
	check_next(&q, 1, RECV);
	put_byte(fd[1][1]);
	check_next(&q, 1, RECV);
	check_counters(&q, 1, 2);
	close_queue(&q);
}

static void level_is_looked_up_by_the_next_call(void)
{
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, 0);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	check_counters(&q, 1, 0);
	CHECK_EQ(wait_ring(&q, 8, 0), 1);
	check_next(&q, 7, RECV);
	CHECK_EQ(take_bytes(fd[0]), 1);
	/* Without a check in between: still a hit */
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	check_counters(&q, 2, 0);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(&q);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	check_counters(&q, 3, 0);
	close_queue(&q);
}

static long write_two(void *arg)
{
	return write(*(int *)arg, "xy", 2);
}

/*
 * The program takes the entry while the wake-up that stored it is still
 * running, and reads only part of the data. The next call finds the watch
 * ready.
 */
static void level_entry_may_be_taken_during_the_hit(void)
{
	struct actor writer;
	struct ukevent ev;
	struct queue q;
	int fd[2];
	char c;

	open_watched(&q, 8, fd, 0);
	CHECK(start_in_window(&writer, "hit_stored", write_two, &fd[1]));
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	MUST_EQ(read(fd[0], &c, 1), 1);
	/*
	 * The call waits for the lock of the queue before the writer goes on.
	 */
	CHECK_EQ(wait_ring(&q, 8, PATIENCE_MS), 1);
	window_release();
	join_actor(&writer, PATIENCE_MS);
	check_next(&q, 7, RECV);
	close_queue(&q);
}

/*
 * A level entry has all conditions that hold. With two interests the kernel has
 * to look them up.
 */
static void level_with_two_conditions_is_looked_up(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	MUST_EQ(add_socket(q.fd, fd[0], RECV | SEND, 0,
			   7), 0);
	CHECK_EQ(wait_ring(&q, 8, 0), 1);
	check_next(&q, 7, SEND);
	put_byte(fd[1]);
	CHECK_EQ(unread(&q), 0);
	CHECK_EQ(wait_ring(&q, 8, 0), 1);
	check_next(&q, 7, RECV | SEND);
	CHECK_EQ(fdinfo(q.fd, "kevent-hits"), 0);
	close_queue(&q);
}

static void one_shot_and_last_check_are_queued(void)
{
	const uint32_t flags[] = {
		ET | KEVENT_REQ_ONESHOT, KEVENT_REQ_ONESHOT,
		ET | KEVENT_REQ_LAST_CHECK, KEVENT_REQ_LAST_CHECK,
	};
	struct queue q;
	unsigned int i;
	int fd[2];

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		open_watched(&q, 8, fd, flags[i]);
		put_byte(fd[1]);
		CHECK_EQ(unread(&q), 0);
		CHECK_EQ(q.ring->ring_flags, KEVENT_RING_MORE);
		check_counters(&q, 0, 1);
		CHECK_EQ(wait_ring(&q, 8, 0), 1);
		CHECK_EQ(q.ring->ring_flags, 0);
		check_next(&q, 7, RECV);
		close_queue(&q);
	}
}

#define MANY_CHECKED	40

/* Half of the files are read before the call that looks at them, all but one after it. */
static void last_check_of_many(uint32_t flags)
{
	int fd[MANY_CHECKED][2], i;
	struct queue q;

	open_queue(&q, 64);
	for (i = 0; i < MANY_CHECKED; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, flags, i), 0);
		put_byte(fd[i][1]);
	}
	for (i = 1; i < MANY_CHECKED; i += 2)
		CHECK_EQ(take_bytes(fd[i][0]), 1);
	CHECK_EQ(wait_ring(&q, 64, 0), MANY_CHECKED / 2);
	for (i = 0; i < MANY_CHECKED; i += 2)
		check_next(&q, i, RECV);
	check_counters(&q, 0, MANY_CHECKED);
	for (i = 2; i < MANY_CHECKED; i += 2)
		CHECK_EQ(take_bytes(fd[i][0]), 1);
	CHECK_EQ(wait_ring(&q, 64, 0), !(flags & ET));
	if (!(flags & ET))
		check_next(&q, 0, RECV);
	CHECK_EQ(unread(&q), 0);
	CHECK_EQ(take_bytes(fd[0][0]), 1);
	CHECK_EQ(wait_ring(&q, 64, 0), 0);
	/* With nothing listed, and a ring that was found before */
	put_byte(fd[1][1]);
	CHECK_EQ(unread(&q), 0);
	CHECK_EQ(wait_ring(&q, 64, 0), 1);
	check_next(&q, 1, RECV);
	close_queue(&q);
}

static void last_check_drops_what_was_read(void)
{
	last_check_of_many(KEVENT_REQ_LAST_CHECK);
	last_check_of_many(KEVENT_REQ_LAST_CHECK | ET);
}

static void dispatch_is_stored_once(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET | KEVENT_REQ_DISPATCH);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	put_byte(fd[1]);
	CHECK_NO_EVENT(&q);
	check_counters(&q, 1, 0);
	kevent_set_pipe(&ev, fd[0], RECV, ET | KEVENT_REQ_DISPATCH, 8);
	CHECK_EQ(kevent_ctl_one(q.fd, KEVENT_CTL_MODIFY, &ev), 0);
	MUST_EVENT(&q, &ev);
	CHECK_EQ(ev.ptr, 8);
	close_queue(&q);
}

static void waiter_is_woken(void)
{
	struct waiter w[2];
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	start_waiter(&w[0], &q, 1);
	start_waiter(&w[1], &q, 1);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[0]), 1);
	CHECK(waiter_asleep(&w[1]));
	check_next(&q, 7, RECV);
	put_byte(fd[1]);
	CHECK_EQ(join_waiter(&w[1]), 2);
	check_counters(&q, 2, 0);
	close_queue(&q);
}

static long wait_for_three(void *arg)
{
	struct kevent_wait_arg more = { .size = sizeof(more), .min_nr = 3 };
	struct queue *q = arg;

	more.clockid = CLOCK_MONOTONIC;
	return kevent_wait(q->fd, 8, 0, NULL, KEVENT_FLAGS_ARG, &more);
}

static void waiter_gets_its_number(void)
{
	struct actor actor;
	struct queue q;
	long long sleeps;
	int fd[2], i;

	open_watched(&q, 8, fd, ET);
	start_actor(&actor, wait_for_three, &q);
	MUST(sleeps_in(actor.tid, __NR_kevent_wait));
	sleeps = sleeps_so_far(actor.tid);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(sleeps_so_far(actor.tid), sleeps);
		put_byte(fd[1]);
		check_next(&q, 7, RECV);
	}
	join_actor(&actor, PATIENCE_MS);
	CHECK_EQ(actor.ret, 3);
	check_counters(&q, 3, 0);
	close_queue(&q);
}

static long get_one(void *arg)
{
	struct queue *q = arg;
	struct ukevent ev;

	if (kevent_get_events(q->fd, 1, 1, NULL, &ev, 0) != 1)
		return -1;
	return (long)ev.ptr;
}

/* A thread that waits with a buffer does not look at the ring. */
static void buffer_reader_first_in_line_gets_it(void)
{
	struct actor actor;
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	start_actor(&actor, get_one, &q);
	MUST(sleeps_in(actor.tid, __NR_kevent_get_events));
	put_byte(fd[1]);
	join_actor(&actor, PATIENCE_MS);
	CHECK_EQ(actor.ret, 7);
	CHECK_EQ(unread(&q), 0);
	check_counters(&q, 0, 1);
	close_queue(&q);
}

static void poll_sees_the_entry(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	pfd.fd = q.fd;
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	put_byte(fd[1]);
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	check_next(&q, 7, RECV);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	close_queue(&q);
}

static void other_address_space_is_not_written(void)
{
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(unread(&q), 0);
	check_counters(&q, 0, 1);
	CHECK_EQ(wait_ring(&q, 8, 0), 1);
	check_next(&q, 7, RECV);
	close_queue(&q);
}

struct outsider {
	struct queue	*q;
	int		fd;
};

static int write_with_memory_there(void *arg)
{
	struct outsider *o = arg;

	touch_ring(o->q);
	CHILD_MUST(write(o->fd, "", 1) == 1);
	CHILD_MUST(unread(o->q) == 0);
	return 0;
}

/* The child has a copy of the ring at the address of the ring. */
static void copy_of_the_ring_is_not_written(void)
{
	struct outsider o;
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	o = (struct outsider){ &q, fd[1] };
	CHECK_EQ(join_child(start_child(write_with_memory_there, &o),
			    PATIENCE_MS), 0);
	CHECK_EQ(unread(&q), 0);
	check_counters(&q, 0, 1);
	CHECK_EQ(wait_ring(&q, 8, 0), 1);
	check_next(&q, 7, RECV);
	close_queue(&q);
}

/* fork() makes memory read-only: one event goes through the kernel. */
static void after_fork_a_miss_brings_hits_back(void)
{
	struct queue q;
	int fd[2];

	open_watched(&q, 8, fd, ET);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(wait_ring(&q, 8, 0), 1);
	check_next(&q, 7, RECV);
	put_byte(fd[1]);
	check_next(&q, 7, RECV);
	check_counters(&q, 2, 1);
	close_queue(&q);
}

#define SOME_PIPES	16

/*
 * The kernel may keep the memory of watches that were removed for new ones, which must
 * not take the old position in a ring for one of theirs. A wait for all CPUs is a grace
 * period.
 */
static void new_watch_has_no_unread_entry(void)
{
	struct ukevent ev[SOME_PIPES];
	int fd[SOME_PIPES][2], i;
	struct queue old, new;

	open_queue(&old, 8);
	for (i = 0; i < 50 * SOME_PIPES; i++) {
		if (i < SOME_PIPES) {
			open_pipe(fd[i]);
			MUST_EQ(add_pipe(old.fd, fd[i][0], RECV, ET, i), 0);
		}
		put_byte(fd[i % SOME_PIPES][1]);
		take_all(&old);
	}
	for (i = 0; i < SOME_PIPES; i++)
		kevent_set_pipe(&ev[i], fd[i][0], RECV, ET, i);
	MUST_EQ(kevent_ctl(old.fd, KEVENT_CTL_REMOVE, SOME_PIPES, ev), 0);
	for (i = 0; i < 2; i++)
		MUST_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0);
	open_queue(&new, 2 * SOME_PIPES);
	for (i = 0; i < SOME_PIPES; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(new.fd, fd[i][0], RECV, ET, i), 0);
		put_byte(fd[i][1]);
	}
	CHECK_EQ(unread(&new), SOME_PIPES);
	close_queue(&new);
	close_queue(&old);
}

struct giver {
	struct actor actor;
	int kq, fd;
};

static long hands_back(void *arg)
{
	struct giver *h = arg;

	return add_pipe(h->kq, h->fd, RECV, HAND_BACK | ET | ONESHOT, 1);
}

/* Nobody would take it, and somebody would be woken for it. */
static void one_shot_handed_back_is_not_queued(void)
{
	struct giver h;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	put_byte(fd[1]);
	h = (struct giver) { .kq = q.fd, .fd = fd[0] };
	CHECK(start_in_window(&h.actor, "handed", hands_back, &h));
	put_byte(fd[1]);
	window_release();
	join_actor(&h.actor, PATIENCE_MS);
	CHECK_EQ(h.actor.ret, 1);
	check_counters(&q, 0, 0);
	close_queue(&q);
}

/* A consumer goes on with them itself, and each miss would wake another one. */
static void kept_marks_are_queued_once(void)
{
	struct ukevent ev[90];
	struct queue q;
	int i;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEEP, 8), 0);
	for (i = 0; i < 90; i++)
		CHECK_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(get_events(q.fd, 1, 90, 0, ev), 90);
	check_counters(&q, 0, 1);
	close_queue(&q);
}

/* What is left of it goes with it, and is no reason to wake anyone. */
static void oneshot_with_marks_left_is_queued_once(struct queue *q)
{
	struct ukevent ev, mark;

	CHECK_EQ(add_user(q->fd, 1, 1, KEEP | KEVENT_REQ_ONESHOT, 0), 0);
	kevent_set_mark(&mark, 1, 1, 1);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &mark), 1);
	kevent_set_mark(&mark, 1, 1, 2);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_READY, &mark), 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-misses"), 1);
	MUST_EVENT(q, &ev);
	CHECK(kevent_mark_data(&ev) == 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-misses"), 1);
}

static const struct test_case cases[] = {
	TEST(write_stores_the_event),
	TEST(send_stores_the_event),
	TEST(sleeping_reader_is_woken_as_well),
	TEST(each_watch_of_a_socket_can_be_the_last),
	TEST(read_stores_the_event),
	TEST(unread_entry_is_not_repeated),
	TEST(other_condition_is_stored),
	TEST(full_ring_queues),
	TEST(events_stay_in_order),
	TEST(level_is_looked_up_by_the_next_call),
	TEST(level_entry_may_be_taken_during_the_hit),
	TEST(level_with_two_conditions_is_looked_up),
	TEST(one_shot_and_last_check_are_queued),
	TEST_EACH(oneshot_with_marks_left_is_queued_once),
	TEST(last_check_drops_what_was_read),
	TEST(dispatch_is_stored_once),
	TEST(waiter_is_woken),
	TEST(waiter_gets_its_number),
	TEST(buffer_reader_first_in_line_gets_it),
	TEST(poll_sees_the_entry),
	TEST(other_address_space_is_not_written),
	TEST(copy_of_the_ring_is_not_written),
	TEST(after_fork_a_miss_brings_hits_back),
	TEST(new_watch_has_no_unread_entry),
	TEST(one_shot_handed_back_is_not_queued),
	TEST(kept_marks_are_queued_once),
	{}
};

const struct test_suite hits_suite = {
	.name = "hits",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
