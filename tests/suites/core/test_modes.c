// SPDX-License-Identifier: GPL-2.0
/*
 * The request flags, on the read end of a pipe, by the ring and by
 * get_events():
 *
 *	flags		after delivery		reported again
 *	-		stays			while ready
 *	ET		stays			at the next activity
 *	ONESHOT		gone			never
 *	DISPATCH	stays, disarmed		after MODIFY
 *	DISABLED	-			after MODIFY
 *	LAST_CHECK	as the others		only what is still true
 *	HAND_BACK	as the others		ADD returns what is ready at once
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>

#include "helpers.h"
#include "pairs.h"

#define LAST_CHECK	KEVENT_REQ_LAST_CHECK

static int modify_pipe(int kq, int fd, uint32_t event, uint32_t flags,
		       uint64_t user)
{
	struct ukevent ev;

	kevent_set_pipe(&ev, fd, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev);
}

/* The next event is RECV for @user. */
static void check_recv(struct queue *q, uint64_t user)
{
	struct ukevent ev;

	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[0], RECV);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.ptr, user);
}

static void level_repeats_until_drained(struct queue *q)
{
	int fd[2], i;

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	for (i = 0; i < 5; i++)
		check_recv(q, 1);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
}

/* Partly read is still ready. */
static void level_reports_what_is_left(struct queue *q)
{
	char buf[2];
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	MUST_EQ(write(fd[1], "abc", 3), 3);
	check_recv(q, 1);
	MUST_EQ(read(fd[0], buf, 2), 2);
	check_recv(q, 1);
	MUST_EQ(read(fd[0], buf, 2), 1);
	CHECK_NO_EVENT(q);
}

/*
 * The condition ended after the delivery, before the kernel checked it again.
 */
static void level_does_not_report_the_past(struct queue *q)
{
	int fd[2], i;

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	for (i = 0; i < 20; i++) {
		put_byte(fd[1]);
		check_recv(q, 1);
		CHECK_EQ(take_bytes(fd[0]), 1);
		CHECK_NO_EVENT(q);
	}
}

static void level_ready_at_add_is_handed_back(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	kevent_set_pipe(&ev, fd[0], RECV, HAND_BACK, 1);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_ADD, 1, &ev), 1);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.ret_data[0], RECV);
	CHECK_EQ(ev.ptr, 1);
	check_recv(q, 1);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 1), -EEXIST);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
}

/*
 * Two level watches and a consumer that takes one event at a time: both are
 * reported.
 */
static void level_watches_take_turns(struct queue *q)
{
	unsigned int counts[3] = {}, i;
	struct ukevent ev;
	int fd[3][2];

	for (i = 0; i < 3; i++) {
		open_pipe(fd[i]);
		CHECK_EQ(add_pipe(q->fd, fd[i][0], RECV, 0, i), 0);
		put_byte(fd[i][1]);
	}
	for (i = 0; i < 9; i++) {
		MUST_EQ(get_events(q->fd, 1, 1, 0, &ev), 1);
		MUST(ev.ptr < 3);
		counts[ev.ptr]++;
	}
	for (i = 0; i < 3; i++)
		CHECK_EQ(counts[i], 3);
}

/* More are ready than the program takes at a time from the ring, which has room for all. */
static void takes_from_the_ring_are_even(int (*add)(int kq, int fd, uint32_t event,
						    uint32_t flags, uint64_t user))
{
	unsigned int counts[13] = {}, i, took;
	struct ukevent ev;
	struct queue q;
	int fd[13][2];

	open_queue(&q, 64);
	for (i = 0; i < 13; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add(q.fd, fd[i][0], RECV, 0, i), 0);
		put_byte(fd[i][1]);
	}
	for (took = 0; took < 13 * 30; took++) {
		if (took % 3 == 0)
			wait_ring(&q, 64, 0);
		MUST(kevent_ring_next(q.ring, q.size, &ev));
		MUST(ev.ptr < 13);
		counts[ev.ptr]++;
	}
	for (i = 0; i < 13; i++) {
		CHECK_EQ(counts[i], 30);
		close(fd[i][0]);
		close(fd[i][1]);
	}
	close_queue(&q);
}

static void level_watches_take_turns_in_the_ring(void)
{
	takes_from_the_ring_are_even(add_pipe);
	takes_from_the_ring_are_even(add_poll);
}

#define TURNS	8	/* most entries of a call that takes turns */

/* Takes up to @room events at a time: each of @nr watches is reported. */
static void check_turns(struct queue *q, unsigned int room, unsigned int nr)
{
	struct kevent_queue lib = { .fd = q->fd, .size = q->size, .ring = q->ring };
	unsigned int counts[2 * TURNS + 2] = {}, round, i;
	struct timespec now = {};
	struct ukevent ev[TURNS];
	int got;

	for (round = 0; round < 8 * nr; round++) {
		got = q->size ? kevent_queue_get(&lib, ev, room, &now) :
				get_events(q->fd, 1, room, 0, ev);
		MUST(got >= 0);
		while (got--) {
			MUST(ev[got].ptr < nr);
			counts[ev[got].ptr]++;
		}
	}
	for (i = 0; i < nr; i++)
		CHECK(counts[i] > 0);
}

/* Of some descriptors there are two watches: the library has one elsewhere. */
static void try_turns_of_pairs(uint32_t size, unsigned int room, bool early)
{
	int fd[TURNS + 1][2];
	struct queue q;
	unsigned int i;

	open_queue(&q, size);
	for (i = 0; i <= room; i++)
		open_pipe(fd[i]);
	for (i = 0; i < room; i++)
		MUST_EQ(add_poll(q.fd, fd[i][1], KEVENT_POLL_POLLOUT, 0, i), 0);
	if (early)
		MUST_EQ(add_pipe(q.fd, fd[room][1], SEND, 0, 2 * room), 0);
	for (i = 0; i < room; i++)
		MUST_EQ(add_pipe(q.fd, fd[i][1], SEND, 0, room + i), 0);
	if (!early)
		MUST_EQ(add_pipe(q.fd, fd[room][1], SEND, 0, 2 * room), 0);
	check_turns(&q, room, 2 * room + 1);
	for (i = 0; i <= room; i++)
		close_pair(fd[i]);
	close_queue(&q);
}

/* Beside files that are always ready there is a level watch, and an event that comes once. */
static void try_turns_of_files(uint32_t size, unsigned int room, unsigned int files)
{
	struct queue q;
	unsigned int i;
	int fd[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int copy[TURNS + 1];

	open_queue(&q, size);
	open_pipe(fd);
	for (i = 0; i < files; i++) {
		copy[i] = dup(null);
		MUST_EQ(add_poll(q.fd, copy[i], IN, 0, i), 0);
	}
	MUST_EQ(add_pipe(q.fd, fd[1], SEND, 0, files), 0);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, files + 1), 0);
	put_byte(fd[1]);
	check_turns(&q, room, files + 2);
	for (i = 0; i < files; i++)
		close(copy[i]);
	close(null);
	close_pair(fd);
	close_queue(&q);
}

static void level_watch_of_each_kind_has_its_turn(void)
{
	unsigned int room;

	for (room = 2; room <= TURNS; room *= 2) {
		try_turns_of_pairs(0, room, false);
		try_turns_of_pairs(0, room, true);
		try_turns_of_pairs(room, room, false);
		try_turns_of_pairs(room, room, true);
		try_turns_of_files(0, room, room);
		try_turns_of_files(0, room, room + 1);
		try_turns_of_files(room, room, room);
		try_turns_of_files(room, room, room + 1);
	}
}

/* Both watches were found ready, but the call took one event. */
static void level_watch_that_had_no_room_is_looked_at_again(void)
{
	int fd[2][2], i, first;
	struct ukevent ev[2];
	struct queue q;

	open_queue(&q, 0);
	for (i = 0; i < 2; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, 0, i), 0);
		put_byte(fd[i][1]);
	}
	MUST_EQ(get_events(q.fd, 2, 2, PATIENCE_MS, ev), 2);
	MUST_EQ(get_events(q.fd, 1, 1, PATIENCE_MS, ev), 1);
	first = (int)ev[0].ptr;
	CHECK_EQ(take_bytes(fd[!first][0]), 1);
	CHECK_EQ(get_events(q.fd, 1, 2, PATIENCE_MS, ev), 1);
	CHECK_EQ(ev[0].ptr, first);
	close_queue(&q);
}

/* A watch was found ready but not stored: the result is not kept. */
static void verified_and_not_stored(struct queue *q, uint32_t flags)
{
	void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	int fd[2];

	MUST(bad != MAP_FAILED);
	open_pipe(fd);
	MUST_EQ(add_pipe(q->fd, fd[0], RECV, flags, 1), 0);
	put_byte(fd[1]);
	MUST_EQ(get_events(q->fd, 1, 1, 0, bad), -EFAULT);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]), 0);
	munmap(bad, 4096);
}

static void event_that_could_not_be_stored_is_verified_again(void)
{
	struct queue q;

	open_queue(&q, 0);
	verified_and_not_stored(&q, 0);
	verified_and_not_stored(&q, KEVENT_REQ_LAST_CHECK);
	verified_and_not_stored(&q, KEVENT_REQ_LAST_CHECK | ET);
	close_queue(&q);
}

#define MANY_LEVEL	600

/* More level watches than the kernel checks under one hold of the lock */
static void all_level_watches_are_looked_at(struct queue *q)
{
	static struct ukevent ev[MANY_LEVEL];
	int fd[MANY_LEVEL][2], i;

	for (i = 0; i < MANY_LEVEL; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q->fd, fd[i][0], RECV, 0, i), 0);
		put_byte(fd[i][1]);
	}
	for (i = 0; i < 2; i++)
		MUST_EQ(get_events(q->fd, 1, MANY_LEVEL, 0, ev), MANY_LEVEL);
	for (i = 0; i < MANY_LEVEL - 1; i++)
		CHECK_EQ(take_bytes(fd[i][0]), 1);
	CHECK_EQ(get_events(q->fd, 1, MANY_LEVEL, 0, ev), 1);
	CHECK_EQ(ev[0].ptr, MANY_LEVEL - 1);
	for (i = 0; i < MANY_LEVEL; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
}

static void many_level_watches_are_all_looked_at(void)
{
	struct queue q;

	open_fds(2 * MANY_LEVEL + 100);
	open_queue(&q, 0);
	all_level_watches_are_looked_at(&q);
	close_queue(&q);
}

static void edge_reports_each_activity_once(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ET, 1), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
}

static void edge_ready_at_add_is_handed_back_once(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, HAND_BACK | ET, 1), 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
}

static void oneshot_fires_once(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ONESHOT, 1), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]), -ENOENT);
	CHECK_EQ(take_bytes(fd[0]), 2);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ONESHOT | ET, 2), 0);
	put_byte(fd[1]);
	check_recv(q, 2);
	CHECK_NO_EVENT(q);
}

static void oneshot_ready_at_add_is_gone(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, HAND_BACK | ONESHOT, 1), 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, HAND_BACK | ONESHOT, 1), 1);
}

static void dispatch_disarms_until_modify(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, DISPATCH, 1), 0);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, DISPATCH, 2), 0);
	check_recv(q, 2);
	CHECK_NO_EVENT(q);
	CHECK_EQ(take_bytes(fd[0]), 2);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, DISPATCH, 3), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 3);
	CHECK_NO_EVENT(q);
}

static void dispatch_ready_at_add_is_disarmed(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, HAND_BACK | DISPATCH | ET, 1), 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, DISPATCH | ET, 1), 0);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
}

static void disabled_reports_nothing_until_modify(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, DISABLED, 1), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, 0, 2), 0);
	check_recv(q, 2);
	check_recv(q, 2);
}

/* MODIFY withdraws an event that waits in the kernel. */
static void modify_to_disabled_withdraws_the_event(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ET, 1), 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, ET | DISABLED, 2), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, ET, 3), 0);
	check_recv(q, 3);
	CHECK_NO_EVENT(q);
}

static void last_check_drops_what_is_no_longer_true(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, LAST_CHECK | ET, 1), 0);
	put_byte(fd[1]);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
}

/* A dropped event is not a delivery: a one-shot watch stays. */
static void last_check_keeps_a_oneshot_it_drops(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, LAST_CHECK | ONESHOT, 1), 0);
	put_byte(fd[1]);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 1);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void ready_at_add_comes_through_the_queue(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	put_byte(fd[1]);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ET, 1), 0);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]), 0);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ONESHOT, 2), 0);
	check_recv(q, 2);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void modify_replaces_the_mask_and_looks_again(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[1], RECV, ET, 1), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[1], SEND, ET, 2), 0);
	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[0], SEND);
	CHECK_EQ(ev.event, SEND);
	CHECK_EQ(ev.ptr, 2);
	CHECK_NO_EVENT(q);
}

/* The interest is lost while an event waits: the event is withdrawn. */
static void modify_withdraws_what_is_not_asked_for(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(modify_pipe(q->fd, fd[0], SEND, 0, 1), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	check_recv(q, 1);
}

/* A consumer sees that the pipe can be written. MODIFY comes before it reports that. */
static void modify_counts_although_a_consumer_has_looked(void)
{
	struct actor consumer;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[1], SEND, 0, 1), 0);
	CHECK(start_in_window(&consumer, "verified", collect_one, &q.fd));
	CHECK_EQ(modify_pipe(q.fd, fd[1], RECV, 0, 2), 0);
	window_release();
	join_actor(&consumer, PATIENCE_MS);
	CHECK_EQ(consumer.ret, 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(modify_pipe(q.fd, fd[1], SEND, ET, 3), 0);
	CHECK_EQ(collect_one(&q.fd), 1);
	close_queue(&q);
}

static void modify_changes_the_mode(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ET, 1), 0);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	check_recv(q, 1);
	check_recv(q, 1);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, ONESHOT, 1), 0);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_pipe(q->fd, fd[0], RECV, 0, 1), -ENOENT);
}

/*
 * READY on a file makes the kernel check it: it is reported only if it is
 * ready.
 */
static void ready_on_a_file_has_it_checked(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, ET, 1), 0);
	kevent_set_pipe(&ev, fd[0], RECV, 0, 0);
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 1, &ev), 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(kevent_ctl(q->fd, KEVENT_CTL_READY, 1, &ev), 1);
	check_recv(q, 1);
	CHECK_NO_EVENT(q);
}

static void remove_withdraws_the_event(struct queue *q)
{
	int fd[2];

	open_pipe(fd);
	CHECK_EQ(add_pipe(q->fd, fd[0], RECV, 0, 1), 0);
	put_byte_from_outside(fd[1]);
	CHECK_EQ(remove_file(q->fd, KEVENT_PIPE, fd[0]), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 0);
}

static const struct test_case cases[] = {
	TEST_EACH(level_repeats_until_drained),
	TEST_EACH(level_reports_what_is_left),
	TEST_EACH(level_does_not_report_the_past),
	TEST_EACH(level_ready_at_add_is_handed_back),
	TEST_EACH(level_watches_take_turns),
	TEST(level_watches_take_turns_in_the_ring),
	TEST(level_watch_of_each_kind_has_its_turn),
	TEST(level_watch_that_had_no_room_is_looked_at_again),
	TEST(event_that_could_not_be_stored_is_verified_again),
	TEST(many_level_watches_are_all_looked_at),
	TEST_EACH(edge_reports_each_activity_once),
	TEST_EACH(edge_ready_at_add_is_handed_back_once),
	TEST_EACH(oneshot_fires_once),
	TEST_EACH(oneshot_ready_at_add_is_gone),
	TEST_EACH(dispatch_disarms_until_modify),
	TEST_EACH(dispatch_ready_at_add_is_disarmed),
	TEST_EACH(disabled_reports_nothing_until_modify),
	TEST_EACH(modify_to_disabled_withdraws_the_event),
	TEST_EACH(last_check_drops_what_is_no_longer_true),
	TEST_EACH(last_check_keeps_a_oneshot_it_drops),
	TEST_EACH(ready_at_add_comes_through_the_queue),
	TEST_EACH(modify_replaces_the_mask_and_looks_again),
	TEST_EACH(modify_withdraws_what_is_not_asked_for),
	TEST(modify_counts_although_a_consumer_has_looked),
	TEST_EACH(modify_changes_the_mode),
	TEST_EACH(ready_on_a_file_has_it_checked),
	TEST_EACH(remove_withdraws_the_event),
	{}
};

const struct test_suite modes_suite = { .name = "modes", .cases = cases };
