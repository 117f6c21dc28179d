// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An echo server on kevent
 */
#define _GNU_SOURCE 1
#include <libkevent.h>

#include "server.h"

static void check_kevent(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, kevent_strerror(ret));
		exit(1);
	}
}

static void watch(struct kevent_queue *q, int fd, __u32 event)
{
	struct ukevent ev;

	kevent_set_socket(&ev, fd, event, 0, 0);
	check_kevent(kevent_ctl_one(q->fd, KEVENT_CTL_ADD, &ev), "ADD");
}

int main(void)
{
	static KEVENT_RING_STORAGE(1024) mem;
	int listener = start_server(), fd, i, nr;
	struct ukevent ev[64];
	struct kevent_queue q;

	check_kevent(kevent_queue_init(&q, &mem.ring, 1024, 0),
		     "kevent_queue_init");
	watch(&q, listener, KEVENT_SOCKET_ACCEPT);
	for (;;) {
		nr = kevent_queue_get(&q, ev, 64, NULL);
		if (nr != -EINTR)
			check_kevent(nr, "kevent_queue_get");
		for (i = 0; i < nr; i++) {
			if (kevent_fd(&ev[i]) != listener) {
				if (!echo(kevent_fd(&ev[i])))
					kevent_close(q.fd, kevent_fd(&ev[i]));
				continue;
			}
			while ((fd = next_connection(listener)) >= 0)
				watch(&q, fd, KEVENT_SOCKET_RECV);
		}
	}
}
