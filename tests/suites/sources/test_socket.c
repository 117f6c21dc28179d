// SPDX-License-Identifier: GPL-2.0
/*
 * KEVENT_SOCKET: streams, datagrams, listeners, and what ends them
 *
 *	socket		state				mask
 *	stream		data				RECV
 *	stream		peer shut down its side		RECV | RDHUP
 *	stream		peer gone (unix)		RECV | RDHUP | HUP
 *	stream		reset (TCP)			RECV | ERR | HUP ...
 *	stream		room				SEND
 *	listener	connection waiting		ACCEPT
 *
 * An event of TCP has the number of bytes with RECV, and that of connections with
 * ACCEPT. No event is BROKEN: next_mask() and next_amount() check that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "helpers.h"
#include "pairs.h"

#define ACCEPT	KEVENT_SOCKET_ACCEPT
#define RDHUP	KEVENT_POLL_POLLRDHUP

/* ret_data[1] of an event with @mask */
static uint32_t next_amount(struct queue *q, uint32_t mask)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	CHECK_EQ(ev.ret_data[0], mask);
	return ev.ret_data[1];
}

static void check_stream(struct queue *q, int fd[2])
{
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_EQ(next_mask(q), RECV);
	CHECK_EQ(next_mask(q), RECV);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_NO_EVENT(q);
	MUST_EQ(shutdown(fd[1], SHUT_WR), 0);
	CHECK_EQ(next_mask(q), RECV | RDHUP);
	CHECK_EQ(next_mask(q), RECV | RDHUP);
}

static void unix_stream_reports_data_and_shutdown(struct queue *q)
{
	int fd[2];

	unix_pair(fd);
	check_stream(q, fd);
}

static void tcp_stream_reports_data_and_shutdown(struct queue *q)
{
	int fd[2];

	tcp_pair(fd);
	check_stream(q, fd);
}

static void check_edges(struct queue *q, int fd[2])
{
	int i;

	CHECK_EQ(add_socket(q->fd, fd[0], RECV, ET, 0), 0);
	for (i = 0; i < 10; i++) {
		put_byte(fd[1]);
		CHECK_EQ(next_mask(q), RECV);
		CHECK_NO_EVENT(q);
	}
	CHECK_EQ(take_bytes(fd[0]), 10);
}

static void each_write_is_an_edge(struct queue *q)
{
	int fd[2];

	unix_pair(fd);
	check_edges(q, fd);
	close(fd[0]);
	tcp_pair(fd);
	check_edges(q, fd);
}

static void unix_peer_gone_is_hup(struct queue *q)
{
	int fd[2];

	unix_pair(fd);
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	close(fd[1]);
	CHECK_EQ(next_mask(q), RECV | RDHUP | HUP);
}

static void tcp_reset_is_err_and_hup(struct queue *q)
{
	const struct linger linger = { .l_onoff = 1 };
	uint32_t mask;
	int fd[2];

	tcp_pair(fd);
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	MUST_EQ(setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &linger,
			   sizeof(linger)), 0);
	close(fd[1]);
	mask = next_mask(q);
	CHECK(mask & HUP);
	CHECK(mask & ERR);
	CHECK(mask & RECV);
	CHECK_EQ(next_amount(q, mask), 0);
}

static void room_is_send(struct queue *q)
{
	int fd[2];

	unix_pair(fd);
	CHECK_EQ(add_socket(q->fd, fd[0], SEND, HAND_BACK | ET, 0), 1);
	fill(fd[0]);
	CHECK_EQ(remove_file(q->fd, KEVENT_SOCKET, fd[0]), 0);
	CHECK_EQ(add_socket(q->fd, fd[0], SEND, 0, 0), 0);
	CHECK_NO_EVENT(q);
	CHECK(take_bytes(fd[1]) > 0);
	CHECK_EQ(next_mask(q), SEND);
	fill(fd[0]);
	CHECK_NO_EVENT(q);
}

static void data_is_nothing_to_who_waits_for_room(struct queue *q)
{
	int fd[2];

	unix_pair(fd);
	fill(fd[0]);
	MUST_EQ(add_socket(q->fd, fd[0], SEND, ET, 0), 0);
	put_byte(fd[1]);
	CHECK_NO_EVENT(q);
	CHECK(take_bytes(fd[1]) > 0);
	CHECK_EQ(next_mask(q), SEND);
}

static void established_connection_is_send(struct queue *q)
{
	struct sockaddr_in addr;
	int listener = tcp_listener(&addr), fd, err = -1;
	socklen_t len = sizeof(err);

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		CHECK_EQ(errno, EINPROGRESS);
	CHECK_EQ(add_socket(q->fd, fd, SEND, 0, 0), 0);
	CHECK_EQ(next_mask(q), SEND);
	MUST_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	CHECK_EQ(err, 0);
	close(listener);
}

static void refused_connection_is_err(struct queue *q)
{
	struct sockaddr_in addr;
	uint32_t mask;
	int fd;

	close(tcp_listener(&addr));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	CHECK_EQ(add_socket(q->fd, fd, SEND, 0, 0), 0);
	mask = next_mask(q);
	CHECK(mask & ERR);
	CHECK(mask & HUP);
}

static void waiting_connection_is_accept(struct queue *q)
{
	struct sockaddr_in addr;
	int fd = tcp_listener(&addr), got;

	CHECK_EQ(add_socket(q->fd, fd, ACCEPT, 0, 0), 0);
	CHECK_NO_EVENT(q);
	tcp_connect(&addr);
	CHECK_EQ(next_mask(q), ACCEPT);
	CHECK_EQ(next_mask(q), ACCEPT);
	got = accept(fd, NULL, NULL);
	CHECK(got >= 0);
	CHECK_NO_EVENT(q);
}

static void each_connection_is_an_edge(struct queue *q)
{
	struct sockaddr_in addr;
	int fd = tcp_listener(&addr), i;

	CHECK_EQ(add_socket(q->fd, fd, ACCEPT, ET, 0), 0);
	for (i = 0; i < 5; i++) {
		tcp_connect(&addr);
		CHECK_EQ(next_mask(q), ACCEPT);
		CHECK_NO_EVENT(q);
	}
	for (i = 0; i < 5; i++)
		CHECK(accept(fd, NULL, NULL) >= 0);
}

static void datagram_is_recv(struct queue *q)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int in, out;

	in = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST_EQ(bind(in, (struct sockaddr *)&addr, len), 0);
	MUST_EQ(getsockname(in, (struct sockaddr *)&addr, &len), 0);
	MUST_EQ(connect(out, (struct sockaddr *)&addr, len), 0);
	CHECK_EQ(add_socket(q->fd, in, RECV, 0, 0), 0);
	CHECK_EQ(add_socket(q->fd, out, SEND, HAND_BACK | KEVENT_REQ_ONESHOT, 0), 1);
	put_byte(out);
	CHECK_EQ(next_amount(q, RECV), 0);
	CHECK_EQ(take_bytes(in), 1);
	CHECK_NO_EVENT(q);
}

/* A connected unix datagram socket also waits for room in its peer. */
static void datagram_room_at_the_peer_is_send(void)
{
	int one = 1, fd[2];
	struct queue q;
	char byte;

	open_queue(&q, 0);
	MUST_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   0, fd), 0);
	while (send(fd[0], &one, sizeof(one), 0) > 0)
		;
	CHECK_EQ(add_socket(q.fd, fd[0], SEND, KEVENT_REQ_LAST_CHECK, 0), 0);
	CHECK_NO_EVENT(&q);
	while (read(fd[1], &byte, 1) > 0)
		;
	CHECK(next_mask(&q) & SEND);
	close_queue(&q);
}

/* Nobody asked for urgent data; data and room can come together. */
static void two_conditions_come_in_one_event(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	unix_pair(fd);
	put_byte(fd[1]);
	CHECK_EQ(add_socket(q.fd, fd[0], RECV | SEND, 0, 0), 0);
	CHECK_EQ(next_mask(&q), RECV | SEND);
	CHECK_EQ(take_bytes(fd[0]), 1);
	CHECK_EQ(next_mask(&q), SEND);
	close_queue(&q);
}

static void put_bytes(int fd, unsigned int nr)
{
	static const char block[4096];

	MUST_EQ(send(fd, block, nr, MSG_NOSIGNAL), nr);
}

static void get_bytes(int fd, unsigned int nr)
{
	char block[4096];

	MUST_EQ(recv(fd, block, nr, 0), nr);
}

/* Loopback usually delivers before send() returns, but not always. */
static void arrive(int fd, int nr)
{
	uint64_t start = now_ns();
	int there;

	for (;;) {
		MUST_EQ(ioctl(fd, FIONREAD, &there), 0);
		if (there == nr)
			break;
		MUST(patient(start, PATIENCE_MS));
	}
}

static void tcp_stream_says_how_much(struct queue *q)
{
	int fd[2];

	tcp_pair(fd);
	CHECK_EQ(add_socket(q->fd, fd[0], RECV | SEND, 0, 0), 0);
	CHECK_EQ(next_amount(q, SEND), 0);
	put_bytes(fd[1], 1000);
	arrive(fd[0], 1000);
	CHECK_EQ(next_amount(q, RECV | SEND), 1000);
	put_bytes(fd[1], 1);
	arrive(fd[0], 1001);
	CHECK_EQ(next_amount(q, RECV | SEND), 1001);
	get_bytes(fd[0], 600);
	CHECK_EQ(next_amount(q, RECV | SEND), 401);
	MUST_EQ(shutdown(fd[1], SHUT_WR), 0);
	while (next_mask(q) != (RECV | SEND | RDHUP))
		;
	CHECK_EQ(next_amount(q, RECV | SEND | RDHUP), 401);
	get_bytes(fd[0], 401);
	CHECK_EQ(next_amount(q, RECV | SEND | RDHUP), 0);
	CHECK_EQ(take_bytes(fd[0]), 0);
	CHECK_EQ(next_amount(q, RECV | SEND | RDHUP), 0);
	put_bytes(fd[0], 1);
}

/* SO_RCVLOWAT counts for poll(), and for us. */
static void data_below_the_low_mark_is_no_event(struct queue *q)
{
	const int mark = 100;
	int fd[2];

	tcp_pair(fd);
	MUST_EQ(setsockopt(fd[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)), 0);
	put_bytes(fd[1], mark - 1);
	arrive(fd[0], mark - 1);
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	CHECK_NO_EVENT(q);
	put_bytes(fd[1], 1);
	CHECK_EQ(next_mask(q), RECV);
	get_bytes(fd[0], 1);
	CHECK_NO_EVENT(q);
	close_pair(fd);
}

/* recv() without MSG_OOB does not return it. */
static void urgent_byte_is_no_event(struct queue *q)
{
	struct pollfd urgent = { .events = POLLPRI };
	int fd[2];

	tcp_pair(fd);
	urgent.fd = fd[0];
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	put_byte(fd[1]);
	CHECK_EQ(next_mask(q), RECV);
	MUST_EQ(send(fd[1], "", 1, MSG_OOB), 1);
	MUST_EQ(poll(&urgent, 1, PATIENCE_MS), 1);
	CHECK_EQ(next_mask(q), RECV);
	get_bytes(fd[0], 1);
	CHECK_NO_EVENT(q);
	put_byte(fd[1]);
	CHECK_EQ(next_mask(q), RECV);
	close_pair(fd);
}

static void amount_is_handed_back_and_comes_with_edges(struct queue *q)
{
	struct ukevent ev;
	int fd[2];

	tcp_pair(fd);
	put_bytes(fd[1], 77);
	arrive(fd[0], 77);
	kevent_set_socket(&ev, fd[0], RECV, HAND_BACK | ET, 0);
	CHECK_EQ(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), 1);
	CHECK_EQ(ev.ret_data[0], RECV);
	CHECK_EQ(ev.ret_data[1], 77);
	put_bytes(fd[1], 3);
	arrive(fd[0], 80);
	CHECK_EQ(next_amount(q, RECV), 80);
	CHECK_NO_EVENT(q);
}

static void listener_says_how_many(struct queue *q)
{
	struct sockaddr_in addr;
	int fd = tcp_listener(&addr), i;

	CHECK_EQ(add_socket(q->fd, fd, ACCEPT, 0, 0), 0);
	for (i = 1; i <= 5; i++) {
		tcp_connect(&addr);
		CHECK_EQ(next_amount(q, ACCEPT), i);
	}
	for (i = 4; i > 0; i--) {
		CHECK(accept(fd, NULL, NULL) >= 0);
		CHECK_EQ(next_amount(q, ACCEPT), i);
	}
	CHECK(accept(fd, NULL, NULL) >= 0);
	CHECK_NO_EVENT(q);
}

static void unix_listener_says_how_many(struct queue *q)
{
	/* Only the family: the kernel chooses a name. */
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr.sun_family);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), i;

	MUST_EQ(bind(fd, (struct sockaddr *)&addr, len), 0);
	len = sizeof(addr);
	MUST_EQ(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	MUST_EQ(listen(fd, 8), 0);
	CHECK_EQ(add_socket(q->fd, fd, ACCEPT, 0, 0), 0);
	for (i = 1; i <= 5; i++) {
		int peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		MUST_EQ(connect(peer, (struct sockaddr *)&addr, len), 0);
		CHECK_EQ(next_amount(q, ACCEPT), i);
	}
	CHECK(accept(fd, NULL, NULL) >= 0);
	CHECK_EQ(next_amount(q, ACCEPT), 4);
}

/* The conditions of poll() as a SOCKET watch for RECV reports them */
static uint32_t poll_mask(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };
	uint32_t mask;

	MUST(poll(&p, 1, 0) >= 0);
	mask = p.revents & (POLLERR | POLLHUP);
	if (p.revents & POLLIN)
		mask |= RECV;
	return mask ? mask | (p.revents & POLLRDHUP) : 0;
}

/*
 * For some watches the kernel does not call ->poll(); the result is the same.
 */
static void check_like_poll(struct queue *q, int fd)
{
	uint64_t start = now_ns();
	struct ukevent ev;
	uint32_t before, mask;

	do {
		before = poll_mask(fd);
		mask = next_event(q, &ev, 0) == 1 ? ev.ret_data[0] : 0;
		/*
		 * An entry that was in the ring before may have fewer
		 * conditions.
		 */
		if (mask && next_event(q, &ev, 0) == 1)
			mask = ev.ret_data[0];
	} while ((poll_mask(fd) != before || mask != before) &&
		 patient(start, PATIENCE_MS));
	CHECK_EQ(mask, before);
}

enum deed { OWN_END, PEER_DATA, PEER_END, READ, OWN_DEAF, PEER_GONE };

static void do_deed(enum deed deed, int fd[2])
{
	switch (deed) {
	case OWN_END:
		MUST_EQ(shutdown(fd[0], SHUT_WR), 0);
		break;
	case OWN_DEAF:
		MUST_EQ(shutdown(fd[0], SHUT_RD), 0);
		break;
	case PEER_DATA:
		/*
		 * AF_UNIX refuses writes to an end that was shut down for
		 * reading.
		 */
		if (send(fd[1], "data", 4, MSG_NOSIGNAL) < 0)
			CHECK_EQ(errno, EPIPE);
		break;
	case PEER_END:
		MUST_EQ(shutdown(fd[1], SHUT_WR), 0);
		break;
	case PEER_GONE:
		close(fd[1]);
		break;
	case READ:
		take_bytes(fd[0]);
		break;
	}
}

static void check_deeds(struct queue *q, void (*pair)(int fd[2]),
			const enum deed deeds[4])
{
	struct ukevent ev;
	int fd[2], i;

	pair(fd);
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	check_like_poll(q, fd[0]);
	for (i = 0; i < 4; i++) {
		do_deed(deeds[i], fd);
		check_like_poll(q, fd[0]);
	}
	close(fd[0]);
	if (deeds[3] != PEER_GONE)
		close(fd[1]);
	while (next_event(q, &ev, 0) == 1)
		;
}

static void ends_and_data_are_what_poll_says(struct queue *q)
{
	static const enum deed orders[][4] = {
		{ OWN_END, PEER_DATA, READ, PEER_END },
		{ PEER_DATA, OWN_END, PEER_END, READ },
		{ PEER_END, READ, OWN_END, PEER_GONE },
		{ PEER_DATA, OWN_DEAF, READ, OWN_END },
		{ PEER_DATA, READ, OWN_END, PEER_GONE },
		{ OWN_DEAF, PEER_DATA, READ, PEER_GONE },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		check_deeds(q, tcp_pair, orders[i]);
		check_deeds(q, unix_pair, orders[i]);
	}
}

/*
 * The shutdown wakes all waiters of the socket, but there is nothing to read.
 */
static void own_shutdown_is_no_news(struct queue *q)
{
	int fd[2];

	tcp_pair(fd);
	CHECK_EQ(add_socket(q->fd, fd[0], RECV, 0, 0), 0);
	CHECK_NO_EVENT(q);
	MUST_EQ(shutdown(fd[0], SHUT_WR), 0);
	CHECK_EQ(take_bytes(fd[1]), 0);
	CHECK_EQ(fdinfo(q->fd, "kevent-ready"), 0);
	CHECK_NO_EVENT(q);
	MUST_EQ(shutdown(fd[1], SHUT_WR), 0);
	CHECK(next_mask(q) & RDHUP);
}

/* The amount is 0 where the kernel cannot get it without a lock. */
static void others_do_not_say_how_much(struct queue *q)
{
	int type[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET }, fd[2];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(type); i++) {
		MUST_EQ(socketpair(AF_UNIX, type[i] | SOCK_NONBLOCK |
				   SOCK_CLOEXEC, 0, fd), 0);
		CHECK_EQ(add_socket(q->fd, fd[0], RECV, ET, 0), 0);
		put_bytes(fd[1], 100);
		CHECK_EQ(next_amount(q, RECV), 0);
		close(fd[0]);
		close(fd[1]);
	}
}

/* While an entry is unread, a new amount makes no second entry. */
static void amount_is_no_news(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 8);
	tcp_pair(fd);
	CHECK_EQ(add_socket(q.fd, fd[0], RECV, ET, 0), 0);
	put_bytes(fd[1], 10);
	arrive(fd[0], 10);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	put_bytes(fd[1], 10);
	arrive(fd[0], 20);
	CHECK_EQ(kevent_ring_count(q.ring, q.size), 1);
	CHECK_EQ(wait_ring(&q, 8, 0), 0);
	CHECK_EQ(next_amount(&q, RECV), 10);
	CHECK_NO_EVENT(&q);
	close_queue(&q);
}

static void socket_as_pipe_is_refused(void)
{
	struct queue q;
	int fd[2];

	open_queue(&q, 0);
	unix_pair(fd);
	CHECK_EQ(add_pipe(q.fd, fd[0], RECV, 0, 0), -EINVAL);
	CHECK_EQ(add_poll(q.fd, fd[0], KEVENT_POLL_POLLIN, 0, 0), 0);
	CHECK_EQ(add_socket(q.fd, fd[0], RECV, 0, 0), 0);
	close_queue(&q);
}

static const struct test_case cases[] = {
	TEST_EACH(unix_stream_reports_data_and_shutdown),
	TEST_EACH(tcp_stream_reports_data_and_shutdown),
	TEST_EACH(each_write_is_an_edge),
	TEST_EACH(unix_peer_gone_is_hup),
	TEST_EACH(tcp_reset_is_err_and_hup),
	TEST_EACH(room_is_send),
	TEST_EACH(data_is_nothing_to_who_waits_for_room),
	TEST_EACH(established_connection_is_send),
	TEST_EACH(refused_connection_is_err),
	TEST_EACH(waiting_connection_is_accept),
	TEST_EACH(each_connection_is_an_edge),
	TEST_EACH(datagram_is_recv),
	TEST(datagram_room_at_the_peer_is_send),
	TEST(two_conditions_come_in_one_event),
	TEST_EACH(tcp_stream_says_how_much),
	TEST_EACH(data_below_the_low_mark_is_no_event),
	TEST_EACH(urgent_byte_is_no_event),
	TEST_EACH(amount_is_handed_back_and_comes_with_edges),
	TEST_EACH(listener_says_how_many),
	TEST_EACH(unix_listener_says_how_many),
	TEST_EACH(ends_and_data_are_what_poll_says),
	TEST_EACH(own_shutdown_is_no_news),
	TEST_EACH(others_do_not_say_how_much),
	TEST(amount_is_no_news),
	TEST(socket_as_pipe_is_refused),
	{}
};

const struct test_suite socket_suite = { .name = "socket", .cases = cases };
