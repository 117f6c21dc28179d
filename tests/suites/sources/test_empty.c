// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_SOCKET_EMPTY: all that was written has arrived
 *
 *	TCP		all is acknowledged, so SIOCOUTQ says 0
 *	AF_UNIX		all is read
 *
 * A reader that stops reading closes the window of TCP: no acknowledgement comes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "helpers.h"
#include "pairs.h"

#define EMPTY	KEVENT_SOCKET_EMPTY

/* fd[0] writes and fd[1] reads. */
static void small_tcp_pair(int fd[2])
{
	struct sockaddr_in addr;
	int size = 16384, window = 8192, listener = tcp_listener(&addr);

	/* A small window is soon closed. */
	MUST_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &window,
			   sizeof(window)), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST_EQ(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
		0);
	MUST_EQ(connect(fd[0], (struct sockaddr *)&addr, sizeof(addr)), 0);
	MUST_EQ(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	fd[1] = tcp_accept(listener);
	close(listener);
}

static int left(int fd)
{
	int nr;

	MUST_EQ(ioctl(fd, SIOCOUTQ, &nr), 0);
	return nr;
}

static void fill_up(int fd)
{
	fill(fd);
	CHECK(left(fd) > 0);
}

/* Forget what was empty while it was filled. */
static void forget(struct queue *q)
{
	struct ukevent ev;

	while (next_event(q, &ev, 0) == 1)
		;
}

static void read_until_empty(struct queue *q, int fd[2])
{
	uint64_t start = now_ns();
	struct ukevent ev;

	do {
		MUST(patient(start, PATIENCE_MS));
		take_bytes(fd[1]);
	} while (!next_event(q, &ev, 10));
	CHECK_EQ(ev.ret_data[0], EMPTY);
	CHECK_EQ(left(fd[0]), 0);
}

static void unix_stream_is_empty_when_all_is_read(struct queue *q)
{
	char buf[2];
	int fd[2], i;

	unix_pair(fd);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, ET, 0), 0);
	CHECK_EQ(next_mask(q), EMPTY);
	for (i = 0; i < 3; i++) {
		put_byte(fd[0]);
		put_byte(fd[0]);
		put_byte(fd[0]);
		CHECK_EQ(read(fd[1], buf, 2), 2);
		CHECK_NO_EVENT(q);
		CHECK_EQ(read(fd[1], buf, 2), 1);
		CHECK_EQ(next_mask(q), EMPTY);
		CHECK_NO_EVENT(q);
	}
}

static void unix_level_holds_while_empty(struct queue *q)
{
	int fd[2];

	unix_pair(fd);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, 0, 0), 0);
	CHECK_EQ(next_mask(q), EMPTY);
	CHECK_EQ(next_mask(q), EMPTY);
	put_byte(fd[0]);
	CHECK_NO_EVENT(q);
	CHECK_EQ(take_bytes(fd[1]), 1);
	CHECK_EQ(next_mask(q), EMPTY);
	CHECK_EQ(next_mask(q), EMPTY);
}

static void tcp_stream_is_empty_when_all_is_acknowledged(struct queue *q)
{
	int fd[2], i;

	small_tcp_pair(fd);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, ET, 0), 0);
	CHECK_EQ(next_mask(q), EMPTY);
	CHECK_NO_EVENT(q);
	for (i = 0; i < 3; i++) {
		fill_up(fd[0]);
		forget(q);
		CHECK(left(fd[0]) > 0);
		CHECK_NO_EVENT(q);
		read_until_empty(q, fd);
		CHECK_NO_EVENT(q);
	}
}

static void tcp_level_holds_while_empty(struct queue *q)
{
	int fd[2];

	small_tcp_pair(fd);
	fill_up(fd[0]);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, 0, 0), 0);
	CHECK_NO_EVENT(q);
	read_until_empty(q, fd);
	CHECK_EQ(next_mask(q), EMPTY);
	CHECK_EQ(next_mask(q), EMPTY);
	fill_up(fd[0]);
	CHECK_NO_EVENT(q);
}

/* The watch comes when data has been sent, and lost. Nothing more is written. */
static void lost_data_is_sent_again(struct queue *q)
{
	struct sock_filter drop = { .code = BPF_RET | BPF_K };
	struct sock_fprog prog = { .len = 1, .filter = &drop };
	int fd[2];

	small_tcp_pair(fd);
	MUST_EQ(setsockopt(fd[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			   sizeof(prog)), 0);
	put_byte(fd[0]);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, ET, 0), 0);
	CHECK_NO_EVENT(q);
	CHECK_EQ(left(fd[0]), 1);
	MUST_EQ(setsockopt(fd[1], SOL_SOCKET, SO_DETACH_FILTER, &prog,
			   sizeof(prog)), 0);
	CHECK_EQ(next_mask(q), EMPTY);
	CHECK_EQ(left(fd[0]), 0);
	CHECK_NO_EVENT(q);
}

/* The watch comes when data waits to be sent. */
static void full_stream_becomes_empty(struct queue *q)
{
	int fd[2];

	small_tcp_pair(fd);
	fill_up(fd[0]);
	MUST_EQ(add_socket(q->fd, fd[0], RECV, ET, 0), 0);
	MUST_EQ(remove_file(q->fd, KEVENT_SOCKET, fd[0]), 0);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, ET, 0), 0);
	CHECK_NO_EVENT(q);
	read_until_empty(q, fd);
	CHECK_NO_EVENT(q);
}

static void modified_watch_becomes_empty(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	small_tcp_pair(fd);
	fill_up(fd[0]);
	MUST_EQ(add_socket(q->fd, fd[0], RECV, ET, 0), 0);
	kevent_set_socket(&ev, fd[0], EMPTY, ET, 0);
	MUST_EQ(kevent_ctl(q->fd, KEVENT_CTL_MODIFY, 1, &ev), 0);
	CHECK_NO_EVENT(q);
	read_until_empty(q, fd);
	CHECK_NO_EVENT(q);
}

static void end_of_the_stream_is_acknowledged_too(struct queue *q)
{
	int fd[2];

	small_tcp_pair(fd);
	fill_up(fd[0]);
	MUST_EQ(shutdown(fd[0], SHUT_WR), 0);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, ET, 0), 0);
	CHECK_NO_EVENT(q);
	read_until_empty(q, fd);
	CHECK_NO_EVENT(q);
}

/* What was written is lost: ERR and HUP, but not EMPTY. */
static void reset_is_not_empty(struct queue *q)
{
	uint32_t mask;
	int fd[2];

	small_tcp_pair(fd);
	fill_up(fd[0]);
	MUST_EQ(add_socket(q->fd, fd[0], EMPTY, 0, 0), 0);
	CHECK_NO_EVENT(q);
	close(fd[1]);
	mask = next_mask(q);
	CHECK(mask & ERR);
	CHECK(mask & HUP);
	CHECK(!(mask & EMPTY));
}

static void listener_is_never_empty(struct queue *q)
{
	struct sockaddr_in addr;
	int fd = tcp_listener(&addr);

	MUST_EQ(add_socket(q->fd, fd, EMPTY, 0, 0), 0);
	CHECK_NO_EVENT(q);
}

static void each_queue_is_notified(void)
{
	struct queue q[3];
	struct ukevent ev;
	int fd[2], i;

	unix_pair(fd);
	put_byte(fd[0]);
	for (i = 0; i < 3; i++)
		open_queue(&q[i], 4);
	MUST_EQ(add_socket(q[0].fd, fd[0], EMPTY, ET, 0), 0);
	MUST_EQ(add_socket(q[1].fd, fd[0], EMPTY, ET, 0), 0);
	MUST_EQ(add_socket(q[2].fd, fd[0], SEND, ET, 0), 0);
	CHECK_EQ(next_mask(&q[2]), SEND);
	for (i = 0; i < 3; i++)
		CHECK_NO_EVENT(&q[i]);
	CHECK_EQ(take_bytes(fd[1]), 1);
	CHECK_EQ(next_mask(&q[0]), EMPTY);
	CHECK_EQ(next_mask(&q[1]), EMPTY);
	CHECK_EQ(next_mask(&q[2]), SEND);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(next_event(&q[i], &ev, 0), 0);
		close_queue(&q[i]);
	}
}

/* Who waits for room is not woken when the last byte is acknowledged. */
static void epoll_is_left_alone(void)
{
	struct epoll_event want = { .events = EPOLLOUT | EPOLLET }, got;
	int fd[2], ep = epoll_create1(EPOLL_CLOEXEC);
	struct queue q;

	small_tcp_pair(fd);
	open_queue(&q, 4);
	MUST_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &want), 0);
	CHECK_EQ(epoll_wait(ep, &got, 1, 0), 1);
	MUST_EQ(add_socket(q.fd, fd[0], EMPTY, ET, 0), 0);
	CHECK_EQ(next_mask(&q), EMPTY);
	put_byte(fd[0]);
	CHECK_EQ(next_mask(&q), EMPTY);
	CHECK_EQ(epoll_wait(ep, &got, 1, 0), 0);
	close_queue(&q);
}

static void refused_where_the_amount_is_unknown(void)
{
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	int netlink = socket(AF_NETLINK, SOCK_RAW, 0);
	struct queue q;
	int fd[2];

	open_queue(&q, 4);
	open_pipe(fd);
	MUST(udp >= 0 && netlink >= 0);
	CHECK_EQ(add_socket(q.fd, udp, EMPTY, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(add_socket(q.fd, netlink, EMPTY | RECV, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(add_socket(q.fd, fd[0], EMPTY, 0, 0), -ENOTSOCK);
	CHECK_EQ(add_pipe(q.fd, fd[0], EMPTY, 0, 0), -EINVAL);
	CHECK_EQ(add_socket(q.fd, udp, 8, 0, 0), -EINVAL);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(unix_stream_is_empty_when_all_is_read),
	TEST_EACH(unix_level_holds_while_empty),
	TEST_EACH(tcp_stream_is_empty_when_all_is_acknowledged),
	TEST_EACH(tcp_level_holds_while_empty),
	TEST_EACH(lost_data_is_sent_again),
	TEST_EACH(full_stream_becomes_empty),
	TEST_EACH(modified_watch_becomes_empty),
	TEST_EACH(end_of_the_stream_is_acknowledged_too),
	TEST_EACH(reset_is_not_empty),
	TEST_EACH(listener_is_never_empty),
	TEST(each_queue_is_notified),
	TEST(epoll_is_left_alone),
	TEST(refused_where_the_amount_is_unknown),
	{}
};

const struct test_suite empty_suite = { .name = "empty", .cases = cases };
