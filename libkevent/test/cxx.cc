// SPDX-License-Identifier: GPL-2.0
/*
 * The header in a C++ program: everything in it is used once
 */
#include <errno.h>

#include "test.h"

static long no_kevent(const struct fake_call *)
{
	return -ENOSYS;
}

static void ring_helpers_work_in_cxx()
{
	static KEVENT_RING_STORAGE(4) mem;
	struct ukevent ev;

	ring_store(&mem.ring, 4, 5);
	ring_store(&mem.ring, 4, 6);
	CHECK_EQ(kevent_ring_count(&mem.ring, 4), 2);
	CHECK_EQ(kevent_ring_next(&mem.ring, 4, &ev), 1);
	CHECK_EQ(ev.ptr, 5);
	CHECK_EQ(kevent_ring_pop(&mem.ring, 4, &ev, 1), 1);
	CHECK(entry_intact(&ev));
	CHECK_EQ(kevent_ring_pop(&mem.ring, 4, &ev, 1), 0);
	CHECK_EQ(KEVENT_RING_BYTES(4), 288);
}

static void calls_link_from_cxx()
{
	static KEVENT_RING_STORAGE(4) mem;
	struct kevent_queue q;
	struct ukevent ev;

	fake_kernel = no_kevent;
	kevent_set_poll(&ev, 1, KEVENT_POLL_POLLIN, 0, kevent_cookie(2, 3));
	kevent_set_pipe(&ev, 1, KEVENT_SOCKET_RECV, 0, kevent_cookie(2, 3));
	kevent_set_socket(&ev, 1, KEVENT_SOCKET_RECV, 0, kevent_cookie(2, 3));
	kevent_set_user(&ev, 1, 1, 0, kevent_cookie(2, 3));
	CHECK_EQ(kevent_cookie_index(&ev), 2);
	CHECK_EQ(kevent_cookie_gen(&ev), 3);
	CHECK_EQ(kevent_supported(), -ENOSYS);
	CHECK_EQ(kevent_init(nullptr, 0, 0), -ENOSYS);
	CHECK_EQ(kevent_ctl(1, KEVENT_CTL_ADD, 1, &ev), -ENOSYS);
	CHECK_EQ(kevent_ctl_one(1, KEVENT_CTL_ADD, &ev), -ENOSYS);
	CHECK_EQ(kevent_error(&ev), 0);
	CHECK_EQ(kevent_get_events(1, 1, 1, nullptr, &ev, 0), -ENOSYS);
	CHECK_EQ(kevent_wait(1, 1, 0, nullptr, 0, nullptr), -ENOSYS);
	CHECK_EQ(kevent_commit(1, 0, 0), -ENOSYS);
	CHECK_EQ(kevent_queue_init(&q, &mem.ring, 4, 0), -ENOSYS);
	q.ring->ring_flags = KEVENT_RING_MORE;
	CHECK_EQ(kevent_queue_wait(&q, nullptr), -ENOSYS);
	CHECK_EQ(kevent_queue_pop(&q, &ev, 1), -ENOSYS);
	kevent_queue_close(&q);
}

const struct test_case cxx_tests[] = {
	{ "ring_helpers_work_in_cxx", ring_helpers_work_in_cxx },
	{ "calls_link_from_cxx", calls_link_from_cxx },
	{ nullptr, nullptr }
};
