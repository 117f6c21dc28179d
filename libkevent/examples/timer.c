// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * One periodic timer, and one that ends the program
 */
#include <libkevent.h>
#include <stdio.h>

enum { TICK, END };

int main(void)
{
	const struct timespec tick = { .tv_nsec = 10 * 1000 * 1000 };
	const struct timespec end = { .tv_nsec = 105 * 1000 * 1000 };
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue q;
	struct ukevent ev[2];
	__u64 ticks = 0;

	if (kevent_queue_init(&q, &mem.ring, 8, 0))
		return 1;
	kevent_set_timer(&ev[0], &tick, NULL, 0, 0, TICK);
	kevent_set_timer(&ev[1], &end, NULL, 0, KEVENT_REQ_ONESHOT, END);
	if (kevent_ctl(q.fd, KEVENT_CTL_ADD, 2, ev))
		return 1;
	while (kevent_queue_wait(&q, NULL) > 0) {
		while (kevent_queue_pop(&q, ev, 1) > 0) {
			if (ev->ptr == END) {
				printf("%llu ticks\n", ticks);
				kevent_queue_close(&q);
				return ticks < 9;
			}
			ticks += ev->ret_data[0] |
				 (__u64)ev->ret_data[1] << 32;
		}
	}
	return 1;
}
