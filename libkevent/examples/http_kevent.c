// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An HTTP server on kevent: see http.h and http_kevent.h
 *
 * As http_epoll.c, but a watch takes no call of its own, nor do events in the ring.
 */
#define _GNU_SOURCE 1
#include "http_kevent.h"

static void serve(int fd, enum http_next next)
{
	next = http_serve(fd, next);
	if (next == HTTP_CLOSE)
		hang_up(fd);
	else
		watch(fd, next == HTTP_WAIT ? KEVENT_SOCKET_RECV :
		      KEVENT_SOCKET_RECV | KEVENT_SOCKET_SEND);
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

static void handle(const struct ukevent *ev, int listener)
{
	int fd = client_of(ev);

	if (fd == listener)
		accept_all(fd);
	else if (fd >= 0)
		serve(fd, next_of(ev, fd));
}

int main(int argc, char **argv)
{
	int listener = http_start(argc, argv);
	struct ukevent ev[EVENTS];
	__u32 nr, i;

	make_queue();
	watch(listener, KEVENT_SOCKET_ACCEPT);
	for (;;) {
		nr = next_events(ev);
		for (i = 0; i < nr; i++)
			handle(&ev[i], listener);
		if (http_starved)
			accept_all(listener);
	}
}
