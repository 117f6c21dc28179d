// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * An echo server on io_uring, which it uses for readiness only
 */
#define _GNU_SOURCE 1
#include <liburing.h>
#include <poll.h>

#include "server.h"

static void watch(struct io_uring *ring, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		check(-1, "io_uring_get_sqe");
	io_uring_prep_poll_add(sqe, fd, POLLIN);
	io_uring_sqe_set_data(sqe, (void *)(intptr_t)fd);
}

int main(void)
{
	int listener = start_server(), fd, conn, ret;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	if (io_uring_queue_init(64, &ring, 0))
		check(-1, "io_uring_queue_init");
	watch(&ring, listener);
	for (;;) {
		ret = io_uring_submit_and_wait(&ring, 1);
		errno = ret < 0 ? -ret : 0;
		if (errno && errno != EINTR)
			check(-1, "io_uring_submit_and_wait");
		while (!io_uring_peek_cqe(&ring, &cqe)) {
			fd = (int)(intptr_t)io_uring_cqe_get_data(cqe);
			io_uring_cqe_seen(&ring, cqe);
			if (fd != listener && !echo(fd)) {
				close(fd);
				continue;
			}
			while (fd == listener &&
			       (conn = next_connection(listener)) >= 0)
				watch(&ring, conn);
			watch(&ring, fd);
		}
	}
}
