// SPDX-License-Identifier: GPL-2.0
/*
 * Events that move from a consumer that cannot take them to one that can, and
 * events whose watch changes. "ring" waits in kevent_wait(), "plain" in
 * kevent_get_events().
 *
 *	ring(read-only) plain	e -> plain
 *	plain plain ring	e -> plain; commit fills the ring -> ring
 *	mark, DISABLED, armed	-> the mark
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "helpers.h"

/* The oldest waiter has lost its ring; the event goes to the next one. */
static void unwritable_ring_hands_the_event_on(void)
{
	struct waiter ring, plain;
	struct queue q, bare;
	long ret;

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	MUST_EQ(add_user(q.fd, 1, 1, 0, 7), 0);
	start_waiter(&ring, &q, 8);
	start_waiter(&plain, &bare, 1);
	MUST_EQ(mprotect(q.ring, q.bytes, PROT_READ), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	CHECK_EQ(join_waiter(&plain), 1);
	CHECK_EQ(plain.ev[0].ptr, 7);
	MUST_EQ(mprotect(q.ring, q.bytes, PROT_READ | PROT_WRITE), 0);
	/* It failed, or it found no event and went to sleep again. */
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	ret = join_waiter(&ring);
	CHECK(ret == -EFAULT || ret == 0);
	close_queue(&q);
}

/*
 * An event that a commit stores in the ring is for a thread that waits for the
 * ring. The first waiter takes the event of a level watch and leaves its pipe
 * readable.
 */
static void commit_wakes_a_waiter_of_the_ring(void)
{
	struct waiter first, plain, ring;
	struct queue q, bare;
	int fd[2];

	open_queue(&q, 8);
	bare = (struct queue){ .fd = q.fd };
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 3), 0);
	start_waiter(&first, &bare, 1);
	start_waiter(&plain, &bare, 1);
	start_waiter(&ring, &q, 8);
	put_byte(fd[1]);
	MUST_EQ(join_waiter(&first), 1);
	CHECK_EQ(kevent_commit(q.fd, 0, 0), 0);
	CHECK_EQ(join_waiter(&ring), 1);
	CHECK_EQ(q.ring->event[0].ptr, 3);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 0, NULL), 0);
	CHECK_EQ(join_waiter(&plain), 0);
	close_queue(&q);
}

static int change_user(int kq, uint64_t id, uint32_t flags)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, 3, flags, id);
	return kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev);
}

static void mark_outlives_being_disabled(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 3, 0, 1), 0);
	MUST_EQ(mark_user(q.fd, 1, 2), 1);
	CHECK_EQ(change_user(q.fd, 1, KEVENT_REQ_DISABLED), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(change_user(q.fd, 1, 0), 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[0], 2);
	CHECK_EQ(ev.ret_data[1], 1);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void mark_at_a_disabled_add_is_kept(void)
{
	const uint32_t flags = KEVENT_REQ_READY | KEVENT_REQ_DISABLED;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 0);
	CHECK_EQ(add_user(q.fd, 1, 3, flags, 1), 0);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(change_user(q.fd, 1, 0), 0);
	CHECK_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(ev.ret_data[1], 1);
	close_queue(&q);
}

/* An unread entry in the ring does not replace the event of a buffer reader. */
static void unread_entry_hides_nothing_from_get_events(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	/* The event needs a last check, so it is queued. */
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET | KEVENT_REQ_LAST_CHECK, 5), 0);
	put_byte(fd[1]);
	CHECK_EQ(kevent_wait(q.fd, 8, 0, NULL, 0, NULL), 1);
	put_byte(fd[1]);
	CHECK_EQ(get_events(q.fd, 1, 1, 0, &ev), 1);
	CHECK_EQ(ev.ptr, 5);
	close_queue(&q);
}

/* More level watches than one pass checks, and one event behind them */
static void repeats_do_not_hide_what_is_behind_them(void)
{
	enum { NR = 100 };
	const struct timespec now = {};
	struct queue q;
	unsigned int i;
	int fd[NR][2];

	open_queue(&q, 128);
	for (i = 0; i < NR; i++) {
		open_pipe(fd[i]);
		MUST_EQ(add_pipe(q.fd, fd[i][0], RECV, ET, i), 0);
		put_byte(fd[i][1]);
	}
	CHECK_EQ(kevent_wait(q.fd, 128, 0, NULL, 0, NULL), NR);
	for (i = 0; i < NR; i++)
		put_byte(fd[i][1]);
	MUST_EQ(add_user(q.fd, 1, 1, KEVENT_REQ_READY, NR), 0);
	CHECK_EQ(kevent_wait(q.fd, 128, NR, &now, 0, NULL), 1);
	CHECK_EQ(q.ring->event[NR].ptr, NR);
	CHECK_EQ(q.ring->ring_kidx, NR + 1);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST(unwritable_ring_hands_the_event_on),
	TEST(commit_wakes_a_waiter_of_the_ring),
	TEST(mark_outlives_being_disabled),
	TEST(mark_at_a_disabled_add_is_kept),
	TEST(unread_entry_hides_nothing_from_get_events),
	TEST(repeats_do_not_hide_what_is_behind_them),
	{}
};

const struct test_suite handover_suite = {
	.name = "handover",
	.cases = cases,
	.init_flags = KEVENT_INIT_FAIR,
};
