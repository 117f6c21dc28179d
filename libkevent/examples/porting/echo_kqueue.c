// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An echo server on kqueue; on Linux with libkqueue
 */
#define _GNU_SOURCE 1
#include <sys/event.h>

#include "server.h"

static void watch(int kq, int fd)
{
	struct kevent kev;

	EV_SET(&kev, (uintptr_t)fd, EVFILT_READ, EV_ADD, 0, 0, NULL);
	check(kevent(kq, &kev, 1, NULL, 0, NULL), "kevent");
}

int main(void)
{
	int kq = check(kqueue(), "kqueue");
	int listener = start_server(), fd, i, nr;
	struct kevent ev[64];

	watch(kq, listener);
	for (;;) {
		nr = kevent(kq, NULL, 0, ev, 64, NULL);
		if (nr < 0 && errno != EINTR)
			check(nr, "kevent");
		for (i = 0; i < nr; i++) {
			if ((int)ev[i].ident != listener) {
				if (!echo((int)ev[i].ident))
					close((int)ev[i].ident);
				continue;
			}
			while ((fd = next_connection(listener)) >= 0)
				watch(kq, fd);
		}
	}
}
