// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An HTTP server on epoll: see http.h
 *
 * Edge-triggered. A client that has sent its request before accept4() is never watched,
 * unless its connection is kept.
 */
#define _GNU_SOURCE 1
#include <sys/epoll.h>

#include "http.h"

#define EVENTS	64

static int loop;

static void hang_up(int fd)
{
	HTTP_CALL(close(fd));
}

static void watch(int fd, unsigned int events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };
	struct http_client *c = &http_clients[fd];
	int op = c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (!(events & ~c->watched))
		return;
	c->watched = events;
	if (HTTP_CALL(epoll_ctl(loop, op, fd, &ev)))
		hang_up(fd);
}

static void serve(int fd, enum http_next next)
{
	const unsigned int input = EPOLLIN | EPOLLRDHUP | EPOLLET;

	next = http_serve(fd, next);
	if (next == HTTP_CLOSE)
		hang_up(fd);
	else
		watch(fd, next == HTTP_WAIT ? input : input | EPOLLOUT);
}

static void accept_all(int listener)
{
	long fd;

	http_starved = 0;
	do {
		fd = HTTP_RESULT(accept4(listener, NULL, NULL,
					 SOCK_NONBLOCK | SOCK_CLOEXEC));
		if (fd < 0)
			continue;
		http_open((int)fd);
		serve((int)fd, HTTP_RECV);
	} while (fd >= 0 || http_accept_again(fd));
}

static void handle(const struct epoll_event *ev, int listener)
{
	int fd = ev->data.fd;

	if (fd == listener)
		accept_all(fd);
	else
		serve(fd, http_event(&http_clients[fd], ev->events & EPOLLIN,
				     ev->events & (EPOLLRDHUP | EPOLLHUP)));
}

int main(int argc, char **argv)
{
	int listener = http_start(argc, argv), nr, i;
	struct epoll_event ev[EVENTS];

	loop = epoll_create1(EPOLL_CLOEXEC);
	if (loop < 0)
		http_die("epoll_create1");
	watch(listener, EPOLLIN | EPOLLET);
	for (;;) {
		nr = HTTP_CALL(epoll_wait(loop, ev, EVENTS,
					  http_starved ? HTTP_RETRY_MS : -1));
		for (i = 0; i < nr; i++)
			handle(&ev[i], listener);
		if (http_starved)
			accept_all(listener);
	}
}
