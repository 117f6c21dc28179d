// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * One periodic timer, and one that ends the program
 */
#include <libkevent.h>
#include <stdio.h>

#define MS	1000000ull	/* in nanoseconds */

enum { TICK, END };

int main(void)
{
	static KEVENT_RING_STORAGE(8) mem;
	struct kevent_queue q;
	struct ukevent ev[2];
	__u64 ticks = 0;
	int ret;

	ret = kevent_queue_init(&q, &mem.ring, 8, 0);
	if (ret) {
		fprintf(stderr, "timer: %s\n", kevent_strerror(ret));
		return 1;
	}
	kevent_set_timer(&ev[0], 10 * MS, 10 * MS, 0, 0, TICK);
	kevent_set_timer(&ev[1], 105 * MS, 0, 0, KEVENT_REQ_ONESHOT, END);
	if (kevent_ctl(q.fd, KEVENT_CTL_ADD, 2, ev))
		return 1;
	while (kevent_queue_get(&q, ev, 1, NULL) == 1 && ev->ptr == TICK)
		ticks += kevent_expirations(ev);
	printf("%llu ticks\n", (unsigned long long)ticks);
	kevent_queue_close(&q);
	return ticks < 9;
}
