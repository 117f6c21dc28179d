// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Say what queues are made of here: kevent, or epoll where the kernel has none
 */
#include <libkevent.h>
#include <stdio.h>

int main(void)
{
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue q;
	int ret = kevent_queue_init(&q, &mem.ring, 8, 0);

	if (ret) {
		fprintf(stderr, "backend: %s\n", kevent_strerror(ret));
		return 1;
	}
	printf("backend: %s\n", kevent_backend(q.fd));
	kevent_queue_close(&q);
	return 0;
}
