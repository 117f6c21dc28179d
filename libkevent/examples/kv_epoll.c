// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A store of keys and values whose clients are other processes: requests and answers
 * go through sockets of AF_UNIX, and the server waits by epoll. See kv_lane.c
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv.h"

/* --- a client ------------------------------------------------------------ */

static int call(int fd, struct kv_message *m)
{
	if (send(fd, m, kv_bytes(m), MSG_NOSIGNAL) != (ssize_t)kv_bytes(m))
		return -1;
	if (recv(fd, m, KV_HEAD, MSG_WAITALL) != (ssize_t)KV_HEAD ||
	    m->len > KV_VALUE)
		return -1;
	if (m->len && recv(fd, m->value, m->len, MSG_WAITALL) !=
	    (ssize_t)m->len)
		return -1;
	return 0;
}

static int client(int nr)
{
	static struct kv_message m;
	int fd = kv_connect("kv_epoll"), i;

	if (fd < 0)
		return 1;
	for (i = 0; i < KV_ROUNDS; i++)
		if (!kv_ask(&m, nr, i) || call(fd, &m) || m.op)
			return 1;
	return 0;
}

/* --- the server ---------------------------------------------------------- */

static int loop, gone, served;

static void watch(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev);
}

/* A request of these clients arrives in one piece: each waits for its answer. */
static void serve(int fd)
{
	static struct kv_message m;
	ssize_t len = recv(fd, &m, sizeof(m), MSG_DONTWAIT);

	if (len > 0 && kv_serve(&m, (size_t)len) &&
	    send(fd, &m, kv_bytes(&m), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    (ssize_t)kv_bytes(&m)) {
		served++;
		return;
	}
	close(fd);
	gone++;
}

static int server(int listener)
{
	struct epoll_event ev[8];
	int nr, i, fd;

	watch(listener);
	while (gone < KV_CLIENTS) {
		nr = epoll_wait(loop, ev, 8, -1);
		for (i = 0; i < nr; i++) {
			if (ev[i].data.fd != listener) {
				serve(ev[i].data.fd);
				continue;
			}
			fd = accept(listener, NULL, NULL);
			if (fd >= 0)
				watch(fd);
		}
	}
	printf("%d requests served\n", served);
	return served != KV_CLIENTS * KV_ROUNDS;
}

int main(void)
{
	int listener = kv_listen("kv_epoll"), i, status, bad;

	for (i = 0; i < KV_CLIENTS; i++)
		if (!fork())
			_exit(client(i));
	loop = epoll_create1(EPOLL_CLOEXEC);
	if (listener < 0 || loop < 0)
		return 1;
	bad = server(listener);
	while (wait(&status) > 0)
		bad |= status;
	return !!bad;
}
