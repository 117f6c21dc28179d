/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Streams with both sides in one process, for the tests
 */
#ifndef TEST_STREAM_PAIRS_H
#define TEST_STREAM_PAIRS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "stream/stream.h"
#include "../processes.h"

#define SIZE		64U
#define USER		7

static const struct timespec no_time, a_while = { .tv_sec = 5 };

static KEVENT_RING_STORAGE(SIZE) mem_a, mem_b;
static struct kevent_queue qa, qb;
static struct kevent_streams *sa, *sb;

static void open_sets(void)
{
	CHECK_EQ(kevent_queue_init(&qa, &mem_a.ring, SIZE, 0), 0);
	CHECK_EQ(kevent_queue_init(&qb, &mem_b.ring, SIZE, 0), 0);
	CHECK_EQ(kevent_streams_new(&sa, &qa, 0), 0);
	CHECK_EQ(kevent_streams_new(&sb, &qb, 0), 0);
}

static void close_sets(void)
{
	kevent_streams_free(sa);
	kevent_streams_free(sb);
	kevent_queue_close(&qa);
	kevent_queue_close(&qb);
}

/* A listener with a name of its own that no file has */
static int listen_somewhere(struct sockaddr_un *name, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	CHECK_EQ(bind(fd, (struct sockaddr *)name, sizeof(sa_family_t)), 0);
	*len = sizeof(*name);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)name, len), 0);
	CHECK_EQ(listen(fd, 512), 0);
	return fd;
}

/* Of a listener: [0] has connected. */
static void connect_to(int listener, const struct sockaddr_un *name, socklen_t len,
		       int *sock)
{
	sock[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(connect(sock[0], (const struct sockaddr *)name, len), 0);
	sock[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(sock[1] >= 0);
}

#endif /* TEST_STREAM_PAIRS_H */
