// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Watch two pipes with one ring
 */
#include <libkevent.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue q;
	struct ukevent ev[2];
	int a[2], b[2], left = 2, ret;
	char c;

	ret = kevent_queue_init(&q, &mem.ring, 8, 0);
	if (ret) {
		fprintf(stderr, "two_pipes: %s\n", kevent_strerror(ret));
		return 1;
	}
	if (pipe(a) || pipe(b))
		return 1;
	kevent_set_pipe(&ev[0], a[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 'a');
	kevent_set_pipe(&ev[1], b[0], KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 'b');
	if (kevent_ctl(q.fd, KEVENT_CTL_ADD, 2, ev) ||
	    write(a[1], "1", 1) != 1 || write(b[1], "2", 1) != 1)
		return 1;
	while (left && kevent_queue_get(&q, ev, 1, NULL) == 1)
		if (read(kevent_fd(ev), &c, 1) == 1 && left--)
			printf("pipe %c: %c\n", (char)ev->ptr, c);
	printf("backend: %s\n", kevent_backend(q.fd));
	return left;
}
