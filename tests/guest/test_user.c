// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_USER: marks of the program itself
 *
 *	READY with bits		ret_data[0] of the event	ret_data[1]
 *	1			1				1
 *	1, 4			5				2
 *	0 (watch has 7)		7				1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "helpers.h"

#define ET	KEVENT_REQ_ET

static void check_mark(struct queue *q, uint64_t user, uint32_t bits,
		       uint32_t marks)
{
	struct ukevent ev;

	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.type, KEVENT_USER);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.ret_data[0], bits);
	CHECK_EQ(ev.ret_data[1], marks);
	CHECK_EQ(ev.ptr, user);
}

static void marks(struct queue *q)
{
	CHECK_EQ(add_user(q->fd, 1, 7, 0, 11), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	check_mark(q, 11, 1, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(mark_user(q->fd, 1, 4), 1);
	check_mark(q, 11, 5, 2);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 1, 0), 1);
	check_mark(q, 11, 7, 1);
	CHECK_NO_EVENT(q);
}

static void marks_are_merged_and_counted(void)
{
	each_queue(marks);
}

/* Each delivery starts anew, also while the entry before is unread. */
static void marks_after_a_delivery_are_another_event(void)
{
	struct queue q;
	int i;

	open_queue(&q, 4);
	MUST_EQ(add_user(q.fd, 1, 7, 0, 3), 0);
	for (i = 0; i < 3; i++) {
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		MUST_EQ(wait_ring(&q, 4, 0), 1);
	}
	for (i = 0; i < 3; i++)
		check_mark(&q, 3, 1, 1);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void count_of_marks_is_exact(void)
{
	struct queue q;
	unsigned int i;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 3), 0);
	for (i = 0; i < 10000; i++)
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
	check_mark(&q, 3, 1, 10000);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void ids_are_64_bits(void)
{
	static const uint64_t ids[] = {
		0, 1, 1ull << 31, 0xffffffff, 1ull << 32, 1ull << 63, ~0ull,
		0x100000001ull,
	};
	unsigned int i;
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 8);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		CHECK_EQ(add_user(q.fd, ids[i], 1, 0, i), 0);
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		CHECK_EQ(add_user(q.fd, ids[i], 1, 0, i), -EEXIST);
		CHECK_EQ(mark_user(q.fd, ids[i], 1), 1);
		MUST_EQ(next_event(&q, &ev, 0), 1);
		CHECK_EQ(ev.ptr, i);
		CHECK(ev.id.raw_u64 == ids[i]);
	}
	close_queue(&q);
}

static void oneshot(struct queue *q)
{
	CHECK_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_ONESHOT, 2), 0);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	check_mark(q, 2, 1, 2);
	CHECK_EQ(mark_user(q->fd, 1, 1), -ENOENT);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
	CHECK_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_ONESHOT, 2), 0);
	CHECK_NO_EVENT(q);
}

static void oneshot_takes_the_marks_of_one_delivery(void)
{
	each_queue(oneshot);
}

static void ready_at_add(struct queue *q)
{
	CHECK_EQ(add_user(q->fd, 1, 6, KEVENT_REQ_READY, 4), 0);
	check_mark(q, 4, 6, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 1, 2), 1);
	check_mark(q, 4, 2, 1);
	CHECK_EQ(add_user(q->fd, 2, 6, KEVENT_REQ_READY | KEVENT_REQ_ONESHOT,
			  5), 0);
	check_mark(q, 5, 6, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 2, 2), -ENOENT);
}

static void add_with_ready_is_marked(void)
{
	each_queue(ready_at_add);
}

static void disabled(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_user(q->fd, 1, 1, KEVENT_REQ_DISABLED, 1), 0);
	mark_user(q->fd, 1, 1);
	CHECK_NO_EVENT(q);
	kevent_set_user(&ev, 1, 1, 0, 2);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &ev), 0);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.ptr, 2);
	CHECK_NO_EVENT(q);
}

static void disabled_watch_waits_for_modify(void)
{
	each_queue(disabled);
}

static void removed(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	kevent_set_user(&ev, 1, 0, 0, 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 1, 1), -ENOENT);
}

static void remove_takes_the_marks_along(void)
{
	each_queue(removed);
}

static void ready_counts_the_entries_it_marked(void)
{
	struct ukevent ev[3];
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	MUST_EQ(add_user(q.fd, 3, 1, 0, 3), 0);
	kevent_set_user(&ev[0], 1, 1, 0, 0);
	kevent_set_user(&ev[1], 2, 1, 0, 0);
	kevent_set_user(&ev[2], 3, 1, 0, 0);
	CHECK_EQ(kevent_ctl(q.fd, KEVENT_CTL_READY, 3, ev), 2);
	CHECK_EQ(kevent_error(&ev[0]), 0);
	CHECK_EQ(kevent_error(&ev[1]), -ENOENT);
	CHECK_EQ(kevent_error(&ev[2]), 0);
	check_mark(&q, 1, 1, 1);
	check_mark(&q, 3, 1, 1);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void queues_do_not_share_ids(void)
{
	struct queue a, b;

	open_queue(&a, 0);
	open_queue(&b, 0);
	MUST_EQ(add_user(a.fd, 1, 1, 0, 1), 0);
	MUST_EQ(add_user(b.fd, 1, 1, 0, 2), 0);
	MUST_EQ(mark_user(b.fd, 1, 1), 1);
	CHECK_NO_EVENT(&a);
	check_mark(&b, 2, 1, 1);
	close_queue(&a);
	close_queue(&b);
}

static const struct test_case cases[] = {
	TEST(marks_are_merged_and_counted),
	TEST(marks_after_a_delivery_are_another_event),
	TEST(count_of_marks_is_exact),
	TEST(ids_are_64_bits),
	TEST(oneshot_takes_the_marks_of_one_delivery),
	TEST(add_with_ready_is_marked),
	TEST(disabled_watch_waits_for_modify),
	TEST(remove_takes_the_marks_along),
	TEST(ready_counts_the_entries_it_marked),
	TEST(queues_do_not_share_ids),
	{}
};

const struct test_suite user_suite = { .name = "user", .cases = cases };
