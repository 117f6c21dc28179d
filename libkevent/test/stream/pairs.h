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
#include <sys/epoll.h>
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

/* The tests run with queues, and with a loop of their own: an instance of epoll for each set. */
static bool own_loops;
static int loop_a, loop_b;

#define MAX_WATCHED	1024

/* The streams whose sockets the loops watch, and for which events */
static struct {
	struct kevent_stream	*s;
	int			events;
} watched[MAX_WATCHED];

static void open_sets(void)
{
	memset(watched, 0, sizeof(watched));
	loop_a = epoll_create1(EPOLL_CLOEXEC);
	loop_b = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(kevent_queue_init(&qa, &mem_a.ring, SIZE, 0), 0);
	CHECK_EQ(kevent_queue_init(&qb, &mem_b.ring, SIZE, 0), 0);
	CHECK_EQ(kevent_streams_new(&sa, own_loops ? NULL : &qa, 0), 0);
	CHECK_EQ(kevent_streams_new(&sb, own_loops ? NULL : &qb, 0), 0);
}

static void close_sets(void)
{
	kevent_streams_free(sa);
	kevent_streams_free(sb);
	kevent_queue_close(&qa);
	kevent_queue_close(&qb);
	close(loop_a);
	close(loop_b);
}

/* Of a set with a loop: those whose events have changed, only, as each change has new edges */
static void watch_sockets(struct kevent_streams *set, int loop)
{
	struct epoll_event ev = { .events = EPOLLET };
	struct kevent_stream *s;
	int i, free_slot;

	for (s = set->all; s; s = s->next) {
		free_slot = -1;
		for (i = 0; i < MAX_WATCHED && watched[i].s != s; i++)
			if (!watched[i].s && free_slot < 0)
				free_slot = i;
		if (i < MAX_WATCHED && watched[i].events == kevent_stream_events(s))
			continue;
		ev.events = EPOLLET | (__u32)kevent_stream_events(s);
		ev.data.ptr = s;
		CHECK_EQ(epoll_ctl(loop, i < MAX_WATCHED ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
				   s->sock, &ev), 0);
		i = i < MAX_WATCHED ? i : free_slot;
		watched[i].s = s;
		watched[i].events = kevent_stream_events(s);
	}
}

static void close_stream(struct kevent_stream *s)
{
	int i;

	for (i = 0; i < MAX_WATCHED; i++)
		if (watched[i].s == s)
			watched[i].s = NULL;
	kevent_stream_close(s);
}

/*
 * Takes an event of @set, and gives it to its stream, or to @s. Returns how many there were. The wait
 * ends a round, as that of kevent_streams_get() does.
 */
static int take_event(struct kevent_streams *set, struct kevent_stream *s,
		      const struct timespec *timeout)
{
	int loop = set == sa ? loop_a : loop_b, nr;
	struct epoll_event of_loop;
	struct ukevent ev;

	set->in_round = false;
	if (set->q) {
		nr = kevent_queue_get(set->q, &ev, 1, timeout);
		if (nr == 1) {
			CHECK_EQ(ev.ptr, USER);
			CHECK_EQ(kevent_stream_event(s, &ev), 0);
		}
		return nr;
	}
	watch_sockets(set, loop);
	nr = epoll_wait(loop, &of_loop, 1, (int)timeout->tv_sec * 1000);
	if (nr == 1)
		CHECK_EQ(kevent_stream_ready(of_loop.data.ptr, (int)of_loop.events), 0);
	return nr;
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
