// SPDX-License-Identifier: GPL-2.0
/*
 * A queue as a file that others poll
 *
 *	poll, epoll, io_uring --> kevent
 *
 * Queues that watch queues are in the suites nested and nested_random.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "sets.h"

static void poll_sees_pending_events(struct queue *q)
{
	struct ukevent ev;

	CHECK_EQ(poll_now(q->fd), 0);
	MUST_EQ(add_user(q->fd, 1, 1, 0, 0), 0);
	CHECK_EQ(poll_now(q->fd), 0);
	MUST_EQ(mark_user(q->fd, 1, 1), 1);
	CHECK_EQ(poll_now(q->fd), POLLIN | POLLRDNORM);
	MUST_EQ(next_event(q, &ev, 0), 1);
	CHECK_EQ(poll_now(q->fd), 0);
}

static void poll_sees_unread_entries(void)
{
	struct ukevent ev;
	struct queue q;

	open_queue(&q, 4);
	MUST_EQ(add_user(q.fd, 1, 1, 0, 0), 0);
	MUST_EQ(mark_user(q.fd, 1, 1), 1);
	MUST_EQ(wait_ring(&q, 4, 0), 1);
	CHECK_EQ(poll_now(q.fd), POLLIN | POLLRDNORM);
	MUST(kevent_ring_next(q.ring, q.size, &ev));
	CHECK_EQ(poll_now(q.fd), 0);
	close_queue(&q);
}

/* A level watch keeps the queue readable until the kernel finds it idle. */
static void poll_sees_level_watches_that_stay_ready(void)
{
	struct ukevent ev;
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 0), 0);
	put_byte(fd[1]);
	MUST_EQ(next_event(&q, &ev, 0), 1);
	CHECK_EQ(poll_now(q.fd), POLLIN | POLLRDNORM);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(&q);
	CHECK_EQ(poll_now(q.fd), 0);
	close_queue(&q);
}

static void event_wakes_poll(void)
{
	struct actor a;
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	start_actor(&a, poll_forever, &q.fd);
	MUST(sleeps_in(a.tid, NR_POLL));
	put_byte(fd[1]);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, POLLIN);
	close_queue(&q);
}

static long epoll_forever(void *arg)
{
	struct epoll_event ev;
	int ep = *(int *)arg;

	return epoll_wait(ep, &ev, 1, -1) == 1 ? (long)ev.events : -1;
}

static void check_epoll(struct queue *q, uint32_t mode)
{
	struct epoll_event ev = { .events = EPOLLIN | mode };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd, i;
	struct ukevent got;
	struct actor a;

	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	MUST_EQ(add_poll(q->fd, fd, KEVENT_POLL_POLLIN, ET, 3), 0);
	MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, q->fd, &ev), 0);
	for (i = 0; i < 5; i++) {
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
		start_actor(&a, epoll_forever, &ep);
		MUST(sleeps_in(a.tid, NR_EPOLL_WAIT));
		MUST_EQ(eventfd_write(fd, 1), 0);
		join_actor(&a, PATIENCE_MS);
		CHECK_EQ(a.ret, EPOLLIN);
		if (!mode)
			CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
		MUST_EQ(next_event(q, &got, 0), 1);
		CHECK_EQ(got.ptr, 3);
		CHECK_NO_EVENT(q);
	}
	close(ep);
	close(fd);
}

static void event_wakes_epoll(struct queue *q)
{
	check_epoll(q, 0);
	check_epoll(q, EPOLLET);
}

/* eventfd --> kevent --> epoll --> epoll --> poll */
static void event_wakes_a_chain_of_epolls(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ukevent got;
	struct actor a;
	struct queue q;
	int ep[3], fd, i;

	open_queue(&q, 8);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	MUST_EQ(add_poll(q.fd, fd, KEVENT_POLL_POLLIN, ET, 3), 0);
	for (i = 0; i < 3; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		MUST_EQ(epoll_ctl(ep[i], EPOLL_CTL_ADD, i ? ep[i - 1] : q.fd,
				  &ev), 0);
	}
	start_actor(&a, poll_forever, &ep[2]);
	MUST(sleeps_in(a.tid, NR_POLL));
	MUST_EQ(eventfd_write(fd, 1), 0);
	join_actor(&a, PATIENCE_MS);
	CHECK_EQ(a.ret, POLLIN);
	MUST_EQ(next_event(&q, &got, 0), 1);
	CHECK_EQ(poll_now(ep[2]), 0);
	close_queue(&q);
	CHECK_EQ(poll_now(ep[2]), 0);
}

static void event_completes_a_poll_of_io_uring(void)
{
	struct uring u;
	struct queue q;
	int fd[2], res;

	open_queue(&q, 8);
	open_pipe(fd);
	MUST_EQ(add_pipe(q.fd, fd[0], RECV, ET, 0), 0);
	map_uring(&u);
	submit_poll(&u, q.fd, false);
	CHECK(!completed(&u));
	put_byte(fd[1]);
	MUST_EQ(syscall(__NR_io_uring_enter, u.fd, 0, 1, IORING_ENTER_GETEVENTS,
			NULL, 0), 0);
	MUST_EQ(take_completions(&u, &res), 1);
	CHECK_EQ(res, POLLIN);
	close_uring(&u);
	close_queue(&q);
}

static void watched_queue_may_be_closed(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd[2], i;
	struct queue q;

	for (i = 0; i < 20; i++) {
		open_queue(&q, 0);
		open_pipe(fd);
		MUST_EQ(add_pipe(q.fd, fd[0], RECV, 0, 0), 0);
		MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, q.fd, &ev), 0);
		put_byte(fd[1]);
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
		close_queue(&q);
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
		close(fd[0]);
		close(fd[1]);
	}
}

static const struct test_case cases[] = {
	TEST_EACH(poll_sees_pending_events),
	TEST(poll_sees_unread_entries),
	TEST(poll_sees_level_watches_that_stay_ready),
	TEST(event_wakes_poll),
	TEST_EACH(event_wakes_epoll),
	TEST(event_wakes_a_chain_of_epolls),
	TEST(event_completes_a_poll_of_io_uring),
	TEST(watched_queue_may_be_closed),
	{}
};

const struct test_suite nesting_suite = { .name = "nesting", .cases = cases };
