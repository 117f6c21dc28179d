// SPDX-License-Identifier: GPL-2.0
/*
 * Connected files
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/socket.h>

#include "pairs.h"

void unix_pair(int fd[2])
{
	MUST_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   0, fd), 0);
}

int tcp_listener(struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);
	socklen_t len = sizeof(*addr);

	*addr = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	MUST_EQ(bind(fd, (struct sockaddr *)addr, len), 0);
	MUST_EQ(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	MUST_EQ(listen(fd, 128), 0);
	return fd;
}

int tcp_connect(const struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST_EQ(connect(fd, (const struct sockaddr *)addr, sizeof(*addr)), 0);
	return fd;
}

int tcp_accept(int listener)
{
	uint64_t start = now_ns();
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
		MUST(patient(start, PATIENCE_MS));
	return fd;
}

void tcp_pair(int fd[2])
{
	struct sockaddr_in addr;
	int listener = tcp_listener(&addr);

	fd[1] = tcp_connect(&addr);
	fd[0] = tcp_accept(listener);
	close(listener);
}

void close_pair(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

void fill(int fd)
{
	static const char block[4096];

	MUST_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
}

void fill_and_linger(int fd)
{
	const struct linger wait = { .l_onoff = 1, .l_linger = 4 * PATIENCE_MS / 1000 };
	static char page[4096];

	MUST_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)), 0);
	while (send(fd, page, sizeof(page), MSG_DONTWAIT) > 0)
		;
	MUST_EQ(errno, EAGAIN);
	MUST_EQ(fcntl(fd, F_SETFL, 0), 0);
}

long read_byte(void *fd)
{
	char byte;

	return read(*(int *)fd, &byte, 1);
}

uint32_t next_mask(struct queue *q)
{
	struct ukevent ev;

	MUST_EVENT(q, &ev);
	CHECK_EQ(ev.type, KEVENT_SOCKET);
	CHECK_EQ(ev.ret_flags, KEVENT_RET_DONE);
	return ev.ret_data[0];
}
