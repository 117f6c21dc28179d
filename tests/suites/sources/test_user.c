// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_USER: marks of the program itself
 *
 *	READY with bits		ret_data[0] of the event	ret_data[1]
 *	1			1				1
 *	1, 4			5				2
 *	0 (watch has 7)		7				1
 *
 * With KEEP_EACH there is an event for each mark, with its bits and its data.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "helpers.h"

#define MAX_KEPT	65536
#define MANY		10000
#define MARKERS		8

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

static int remove_user(int kq, uint64_t id)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, 1, 0, 0);
	return kevent_ctl_one(kq, KEVENT_CTL_REMOVE, &ev);
}

static void marks_are_merged_and_counted(struct queue *q)
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

/* Each delivery starts at 0, even while the entry before it is unread. */
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

static void watch_that_fired_is_not_found_again(void)
{
	struct queue q;
	int i;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 1), 0);
	for (i = 0; i < 16; i++) {
		MUST_EQ(add_user(q.fd, 2, 1, KEVENT_REQ_ONESHOT, 2), 0);
		MUST_EQ(mark_user(q.fd, 2, 1), 1);
		MUST_EQ(mark_user(q.fd, 1, 1), 1);
		check_mark(&q, 2, 1, 1);
		check_mark(&q, 1, 1, 1);
		MUST_EQ(add_user(q.fd, 2, 1, 0, 2), 0);
		CHECK_EQ(remove_user(q.fd, 2), 0);
	}
	close_queue(&q);
}

/* Ids that go up, go down, and jump */
static void ids_are_found_in_any_order(void)
{
	uint64_t state = 0, there = 0;
	unsigned int i, id = 0;
	struct queue q;

	open_queue(&q, 0);
	for (i = 0; i < 20000; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		id = (state >> 62 ? id + (state >> 62) - 2 : state >> 32) % 64;
		if (state >> 40 & 1) {
			CHECK_EQ(add_user(q.fd, id, 1, 0, id),
				 there >> id & 1 ? -EEXIST : 0);
			there |= 1ull << id;
		} else {
			CHECK_EQ(remove_user(q.fd, id),
				 there >> id & 1 ? 0 : -ENOENT);
			there &= ~(1ull << id);
		}
	}
	close_queue(&q);
}

static void oneshot_takes_the_marks_of_one_delivery(struct queue *q)
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

static void add_with_ready_is_marked(struct queue *q)
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

/* A watch of any bits, and a mark without bits: an event nevertheless */
static void add_and_modify_mark_without_bits(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_user(q->fd, 1, 0, KEVENT_REQ_READY, 4), 0);
	check_mark(q, 4, 0, 1);
	CHECK_NO_EVENT(q);
	kevent_set_user(&ev, 1, 0, KEVENT_REQ_READY, 5);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_MODIFY, &ev), 0);
	check_mark(q, 5, 0, 1);
	CHECK_NO_EVENT(q);
}

static void disabled_watch_waits_for_modify(struct queue *q)
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

static void remove_takes_the_marks_along(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_user(q->fd, 1, 1, 0, 1), 0);
	CHECK_EQ(mark_user(q->fd, 1, 1), 1);
	kevent_set_user(&ev, 1, 0, 0, 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_user(q->fd, 1, 1), -ENOENT);
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

/* KEEP_EACH */

static int mark_data(int kq, uint64_t id, uint32_t bits, uint64_t data)
{
	struct ukevent ev;

	kevent_set_mark(&ev, id, bits, data);
	return kevent_ctl_one(kq, KEVENT_CTL_READY, &ev);
}

static int modify_user(int kq, uint64_t id, uint32_t event, uint32_t flags,
		       uint64_t user)
{
	struct ukevent ev;

	kevent_set_user(&ev, id, event, flags, user);
	return kevent_ctl_one(kq, KEVENT_CTL_MODIFY, &ev);
}

static void check_data(struct queue *q, uint32_t bits, uint64_t data)
{
	struct ukevent ev;

	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.type, KEVENT_USER);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.event, bits);
	CHECK(kevent_mark_data(&ev) == data);
}

static void each_mark_is_kept_with_its_data(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_user(q->fd, 1, 7, KEEP, 11), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_data(q->fd, 1, 1, 0x123456789abcdef0), 1);
	CHECK_EQ(mark_data(q->fd, 1, 0xc, 0), 1);
	CHECK_EQ(mark_data(q->fd, 1, 0, ~0ull), 1);
	CHECK_EQ(mark_data(q->fd, 1, 8, 5), -EINVAL);
	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(ev.id.raw_u64, 1);
	CHECK_EQ(ev.req_flags, KEEP);
	CHECK_EQ(ev.event, 1);
	CHECK_EQ(ev.ret_data[0], 0x9abcdef0);
	CHECK_EQ(ev.ret_data[1], 0x12345678);
	CHECK_EQ(ev.ptr, 11);
	check_data(q, 4, 0);
	check_data(q, 7, ~0ull);
	CHECK_NO_EVENT(q);
}

/*
 * An entry has the mode in which its marks were made, and entries stay in
 * order.
 */
static void marks_of_both_modes_stay_in_order(struct queue *q)
{
	struct ukevent ev;
	unsigned int i;

	MUST_EQ(add_user(q->fd, 1, 7, 0, 11), 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(modify_user(q->fd, 1, 7, 0, 11), 0);
		CHECK_EQ(mark_user(q->fd, 1, 1), 1);
		CHECK_EQ(mark_user(q->fd, 1, 2), 1);
		CHECK_EQ(modify_user(q->fd, 1, 7, KEEP, 11), 0);
		CHECK_EQ(mark_data(q->fd, 1, 4, 100 + i), 1);
		CHECK_EQ(mark_data(q->fd, 1, 1, 200 + i), 1);
	}
	for (i = 0; i < 3; i++) {
		MUST_EQ(next_event(q, &ev, 0), 1);
		CHECK_EQ(ev.req_flags, 0);
		CHECK_EQ(ev.ret_data[0], 3);
		CHECK_EQ(ev.ret_data[1], 2);
		MUST_EQ(next_event(q, &ev, 0), 1);
		CHECK_EQ(ev.req_flags, KEEP);
		CHECK_EQ(ev.event, 4);
		CHECK_EQ(ev.ret_data[0], 100 + i);
		check_data(q, 1, 200 + i);
	}
	CHECK_NO_EVENT(q);
}

/* An interest of 0 accepts any bits; marks of a request with 0 have no bits. */
static void kept_of_any_bits(void)
{
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 0, KEEP, 0), 0);
	CHECK_EQ(mark_data(q.fd, 1, 0x80000000, 1), 1);
	CHECK_EQ(mark_data(q.fd, 1, 0, 2), 1);
	check_data(&q, 0x80000000, 1);
	check_data(&q, 0, 2);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void take_in_order(struct queue *q, uint64_t first, uint64_t end)
{
	for (; first < end; first++)
		check_data(q, 1, first);
	CHECK_NO_EVENT(q);
}

/* When the ring is full, the other marks wait in the kernel. */
static void marks_come_in_order_through_a_small_ring(void)
{
	struct queue q;
	uint64_t i;

	open_queue(&q, 16);
	MUST_EQ(add_user(q.fd, 1, 1, KEEP, 0), 0);
	for (i = 0; i < MANY; i++)
		MUST_EQ(mark_data(q.fd, 1, 1, i), 1);
	CHECK_EQ(wait_ring(&q, 16, 0), 16);
	CHECK(q.ring->ring_flags & KEVENT_RING_MORE);
	CHECK_EQ(wait_ring(&q, 16, 0), 0);
	take_in_order(&q, 0, MANY);
	CHECK_EQ(fdinfo(q.fd, "kevent-ready"), 0);
	CHECK_EQ(fdinfo(q.fd, "kevent-delivered"), MANY);
	close_queue(&q);
}

static void marks_come_in_order_through_a_buffer(void)
{
	struct ukevent ev[100];
	uint64_t i = 0;
	struct queue q;
	int nr, at;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEEP, 0), 0);
	for (i = 0; i < MANY; i++)
		MUST_EQ(mark_data(q.fd, 1, 1, i), 1);
	for (i = 0; i < MANY; i += nr) {
		nr = get_events(q.fd, 1, 1 + i % ARRAY_SIZE(ev), 0, ev);
		MUST(nr > 0);
		for (at = 0; at < nr; at++)
			MUST(kevent_mark_data(&ev[at]) == i + at);
	}
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

struct marker {
	struct actor	actor;
	int		kq;
	unsigned int	nr;
};

static long mark_many(void *arg)
{
	struct marker *m = arg;
	uint64_t i;
	int ret;

	for (i = 0; i < MANY / MARKERS; i++) {
		ret = mark_data(m->kq, 1, 1u << m->nr, (uint64_t)m->nr << 32 | i);
		if (ret != 1)
			return ret;
	}
	return 1;
}

/* Takes the marks of all @markers, each in its own order. */
static void take_of_markers(struct queue *q, unsigned int markers)
{
	uint32_t next[MARKERS] = {}, nr, left = markers * (MANY / MARKERS);
	struct ukevent ev;

	while (left--) {
		MUST_EVENT(q, &ev);
		nr = ev.ret_data[1];
		MUST(nr < MARKERS);
		MUST_EQ(ev.event, 1u << nr);
		MUST_EQ(ev.ret_data[0], next[nr]++);
	}
	CHECK_NO_EVENT(q);
}

static void marks_of_each_thread_keep_their_order(struct queue *q)
{
	struct marker m[MARKERS];
	unsigned int i;

	MUST_EQ(add_user(q->fd, 1, 0xff, KEEP, 0), 0);
	for (i = 0; i < MARKERS; i++) {
		m[i] = (struct marker){ .kq = q->fd, .nr = i };
		start_actor(&m[i].actor, mark_many, &m[i]);
	}
	take_of_markers(q, MARKERS);
	for (i = 0; i < MARKERS; i++) {
		join_actor(&m[i].actor, PATIENCE_MS);
		CHECK_EQ(m[i].actor.ret, 1);
	}
}

static int mark_in_child(void *arg)
{
	return mark_many(arg) != 1;
}

static void marks_of_another_process_bring_their_data(struct queue *q)
{
	struct marker m = { .kq = q->fd, .nr = 3 };
	pid_t pid;

	MUST_EQ(add_user(q->fd, 1, 0xff, KEEP, 0), 0);
	pid = start_child(mark_in_child, &m);
	take_of_markers(q, 1);
	CHECK_EQ(join_child(pid, PATIENCE_MS), 0);
}

static void kept_mark_wakes_a_waiter(void)
{
	struct waiter w;
	struct queue q;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEEP, 0), 0);
	start_waiter(&w, &q, 16);
	CHECK_EQ(mark_data(q.fd, 1, 1, 77), 1);
	CHECK_EQ(join_waiter(&w), 1);
	CHECK(kevent_mark_data(&w.ev[0]) == 77);
	close_queue(&q);
}

static void kept_marks_are_bounded(void)
{
	struct queue q;
	uint64_t i;

	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEEP, 0), 0);
	for (i = 0; i < MAX_KEPT; i++)
		MUST_EQ(mark_data(q.fd, 1, 1, i), 1);
	CHECK_EQ(mark_data(q.fd, 1, 1, i), -EAGAIN);
	check_data(&q, 1, 0);
	CHECK_EQ(mark_data(q.fd, 1, 1, i), 1);
	CHECK_EQ(mark_data(q.fd, 1, 1, i), -EAGAIN);
	take_in_order(&q, 1, MAX_KEPT + 1);
	close_queue(&q);
}

#define FULL_WATCHES	256

/* Marks until there is no memory; then every mark that was made must come. */
static int mark_until_full(void *arg)
{
	int kq = kevent_init(NULL, 0, 0), ret = 1;
	uint64_t id, i = 0, sum = 0;
	struct ukevent ev[16];

	CHILD_MUST(kq >= 0);
	for (id = 0; id < FULL_WATCHES; id++)
		CHILD_MUST(add_user(kq, id, 1, KEEP, 0) == 0);
	write_file(arg, "0");
	for (id = 0; id < FULL_WATCHES && ret == 1; id++)
		for (i = 0; i < MAX_KEPT && ret == 1; i++, sum += ret == 1)
			ret = mark_data(kq, id, 1, i);
	CHILD_MUST(ret == -ENOMEM);
	for (; sum; sum -= ret) {
		ret = get_events(kq, 1, 16, 0, ev);
		CHILD_MUST(ret > 0);
	}
	CHILD_MUST(get_events(kq, 1, 16, 0, ev) == 0);
	return 0;
}

/* The group gets 2 MiB, which is less than FULL_WATCHES watches may keep. */
static void full_memory_group_is_enomem(void)
{
	char group[] = "/sys/fs/cgroup/kevent-XXXXXX", procs[64], max[64];

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	MUST(mkdtemp(group));
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	snprintf(max, sizeof(max), "%s/memory.max", group);
	write_file(max, "2097152");
	CHECK_EQ(join_child(start_child(mark_until_full, procs),
			    2 * PATIENCE_MS), 0);
	CHECK_EQ(rmdir(group), 0);
}

/* Room for two events, followed by an unmapped page */
static void fault_keeps_the_marks(void)
{
	struct queue q;
	uint64_t i;
	char *mem;

	mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(mem != MAP_FAILED);
	MUST_EQ(munmap(mem + 4096, 4096), 0);
	open_queue(&q, 0);
	MUST_EQ(add_user(q.fd, 1, 1, KEEP, 0), 0);
	for (i = 0; i < 40; i++)
		MUST_EQ(mark_data(q.fd, 1, 1, i), 1);
	mem += 4096;
	CHECK_EQ(get_events(q.fd, 1, 20, 0, (void *)mem), -EFAULT);
	mem -= 2 * sizeof(struct ukevent);
	CHECK_EQ(get_events(q.fd, 1, 20, 0, (void *)mem), 2);
	CHECK(kevent_mark_data((void *)mem) == 0);
	take_in_order(&q, 2, 40);
	close_queue(&q);
}

static void modify_leaves_undelivered_marks(struct queue *q)
{
	CHECK_EQ(add_user(q->fd, 1, 7, 0, 0), 0);
	CHECK_EQ(mark_data(q->fd, 1, 1, 10), 1);
	CHECK_EQ(mark_data(q->fd, 1, 2, 11), 1);
	CHECK_EQ(modify_user(q->fd, 1, 7, KEEP, 1), 0);
	CHECK_EQ(mark_data(q->fd, 1, 1, 12), 1);
	CHECK_EQ(mark_data(q->fd, 1, 2, 13), 1);
	CHECK_EQ(modify_user(q->fd, 1, 7, 0, 2), 0);
	check_mark(q, 2, 3, 2);
	check_data(q, 1, 12);
	CHECK_EQ(mark_data(q->fd, 1, 4, 14), 1);
	CHECK_EQ(mark_data(q->fd, 1, 1, 15), 1);
	check_data(q, 2, 13);
	check_mark(q, 2, 5, 2);
	CHECK_NO_EVENT(q);
}

static void oneshot_takes_one_mark(struct queue *q)
{
	CHECK_EQ(add_user(q->fd, 1, 1, KEEP | KEVENT_REQ_ONESHOT, 0), 0);
	CHECK_EQ(mark_data(q->fd, 1, 1, 1), 1);
	CHECK_EQ(mark_data(q->fd, 1, 1, 2), 1);
	check_data(q, 1, 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(mark_data(q->fd, 1, 1, 3), -ENOENT);
	CHECK_EQ(fdinfo(q->fd, "kevent-watches"), 0);
}

static void dispatch_hands_out_one_mark_at_a_time(struct queue *q)
{
	const uint32_t flags = KEEP | KEVENT_REQ_DISPATCH;
	uint64_t i;

	CHECK_EQ(add_user(q->fd, 1, 1, flags, 0), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(mark_data(q->fd, 1, 1, i), 1);
	for (i = 0; i < 3; i++) {
		check_data(q, 1, i);
		CHECK_NO_EVENT(q);
		CHECK_EQ(modify_user(q->fd, 1, 1, flags, 0), 0);
	}
	CHECK_NO_EVENT(q);
}

static void disabled_watch_keeps_its_marks(struct queue *q)
{
	CHECK_EQ(add_user(q->fd, 1, 1, KEEP, 0), 0);
	CHECK_EQ(mark_data(q->fd, 1, 1, 1), 1);
	CHECK_EQ(modify_user(q->fd, 1, 1, KEEP | KEVENT_REQ_DISABLED, 0), 0);
	CHECK_EQ(mark_data(q->fd, 1, 1, 2), 1);
	CHECK_NO_EVENT(q);
	CHECK_EQ(modify_user(q->fd, 1, 1, KEEP, 0), 0);
	take_in_order(q, 1, 3);
}

static void remove_takes_kept_marks_along(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(add_user(q->fd, 1, 1, KEEP, 0), 0);
	CHECK_EQ(mark_data(q->fd, 1, 1, 1), 1);
	CHECK_EQ(mark_data(q->fd, 1, 1, 2), 1);
	kevent_set_user(&ev, 1, 0, 0, 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_REMOVE, &ev), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(add_user(q->fd, 1, 1, KEEP, 0), 0);
	CHECK_NO_EVENT(q);
}

static void keep_each_is_of_user_marks(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	CHECK_EQ(add_pipe(q.fd, fd[0], KEVENT_SOCKET_RECV, KEEP, 0), -EINVAL);
	CHECK_EQ(add_user(q.fd, 1, 1, KEEP | KEVENT_REQ_READY, 0), -EINVAL);
	CHECK_EQ(add_user(q.fd, 1, 1, KEEP << 2, 0), -EINVAL);
	CHECK_EQ(add_user(q.fd, 1, 1, KEEP, 0), 0);
	CHECK_EQ(modify_user(q.fd, 1, 1, KEEP | KEVENT_REQ_READY, 0),
		 -EINVAL);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(marks_are_merged_and_counted),
	TEST(marks_after_a_delivery_are_another_event),
	TEST(count_of_marks_is_exact),
	TEST(ids_are_64_bits),
	TEST(watch_that_fired_is_not_found_again),
	TEST(ids_are_found_in_any_order),
	TEST_EACH(oneshot_takes_the_marks_of_one_delivery),
	TEST_EACH(add_with_ready_is_marked),
	TEST_EACH(add_and_modify_mark_without_bits),
	TEST_EACH(disabled_watch_waits_for_modify),
	TEST_EACH(remove_takes_the_marks_along),
	TEST(ready_counts_the_entries_it_marked),
	TEST(queues_do_not_share_ids),
	TEST_EACH(each_mark_is_kept_with_its_data),
	TEST_EACH(marks_of_both_modes_stay_in_order),
	TEST(kept_of_any_bits),
	TEST(marks_come_in_order_through_a_small_ring),
	TEST(marks_come_in_order_through_a_buffer),
	TEST_EACH(marks_of_each_thread_keep_their_order),
	TEST_EACH(marks_of_another_process_bring_their_data),
	TEST(kept_mark_wakes_a_waiter),
	TEST_LIMIT(kept_marks_are_bounded, 40),
	TEST_LIMIT(full_memory_group_is_enomem, 40),
	TEST(fault_keeps_the_marks),
	TEST_EACH(modify_leaves_undelivered_marks),
	TEST_EACH(oneshot_takes_one_mark),
	TEST_EACH(dispatch_hands_out_one_mark_at_a_time),
	TEST_EACH(disabled_watch_keeps_its_marks),
	TEST_EACH(remove_takes_kept_marks_along),
	TEST(keep_each_is_of_user_marks),
	{}
};

const struct test_suite user_suite = { .name = "user", .cases = cases };
