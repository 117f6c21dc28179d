// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An echo server on epoll
 */
#define _GNU_SOURCE 1
#include <sys/epoll.h>

#include "server.h"

static void watch(int epfd, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	check(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev), "epoll_ctl");
}

int main(void)
{
	int epfd = check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	int listener = start_server(), fd, i, nr;
	struct epoll_event ev[64];

	watch(epfd, listener);
	for (;;) {
		nr = epoll_wait(epfd, ev, 64, -1);
		if (nr < 0 && errno != EINTR)
			check(nr, "epoll_wait");
		for (i = 0; i < nr; i++) {
			if (ev[i].data.fd != listener) {
				if (!echo(ev[i].data.fd))
					close(ev[i].data.fd);
				continue;
			}
			while ((fd = next_connection(listener)) >= 0)
				watch(epfd, fd);
		}
	}
}
