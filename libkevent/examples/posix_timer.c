// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A POSIX timer that tells a queue. It may be one of CPU time, as KEVENT_TIMER has none. Other
 * calls of POSIX timers take its number by syscall(2).
 */
#include <libkevent.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
	const struct itimerspec every = {
		.it_value.tv_nsec = 10 * 1000 * 1000,
		.it_interval.tv_nsec = 10 * 1000 * 1000,
	};
	static KEVENT_RING_STORAGE(8) mem;
	__u64 expiries = 0;
	struct kevent_queue q;
	struct ukevent ev;
	int timer, ret;

	ret = kevent_queue_init(&q, &mem.ring, 8, 0);
	if (ret) {
		fprintf(stderr, "posix_timer: %s\n", kevent_strerror(ret));
		return 1;
	}
	timer = kevent_timer_create(q.fd, CLOCK_MONOTONIC, 7);
	ret = timer < 0 ? timer : kevent_timer_settime(timer, 0, &every, NULL);
	if (ret) {
		fprintf(stderr, "posix_timer: %s\n", kevent_strerror(ret));
		return 1;
	}
	while (expiries < 10 && kevent_queue_get(&q, &ev, 1, NULL) == 1)
		if (ev.ptr == 7)
			expiries += 1 + kevent_overrun(&ev);
	kevent_timer_delete(timer);
	kevent_queue_close(&q);
	printf("timer %d: %s\n", timer, expiries < 10 ? "late" : "10 expiries");
	return expiries < 10;
}
