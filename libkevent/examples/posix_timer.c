// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A POSIX timer that tells a queue. The C library's timer_create() does not know
 * SIGEV_KEVENT, so this calls the kernel; ids are those of the kernel then. A queue that
 * the library makes of epoll is of no use to it.
 */
#include <libkevent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id	/* as musl has it */
#define sigev_notify_thread_id	_sigev_un._tid
#endif

/* On 32-bit machines the call without 64 has 32-bit times. */
#ifndef SYS_timer_settime64
#define SYS_timer_settime64	SYS_timer_settime
#endif

int main(void)
{
	const struct itimerspec every = {
		.it_value.tv_nsec = 10 * 1000 * 1000,
		.it_interval.tv_nsec = 10 * 1000 * 1000,
	};
	struct sigevent sev = { .sigev_notify = SIGEV_KEVENT };
	static KEVENT_RING_STORAGE(8) mem;
	__u64 expiries = 0;
	struct kevent_queue q;
	struct ukevent ev;
	int timer, ret;

	ret = kevent_queue_init(&q, &mem.ring, 8, KEVENT_INIT_NO_FALLBACK);
	if (ret) {
		fprintf(stderr, "posix_timer: %s\n", kevent_strerror(ret));
		return 1;
	}
	sev.sigev_value.sival_ptr = &timer;
	sev.sigev_notify_thread_id = q.fd;
	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &sev, &timer) ||
	    syscall(SYS_timer_settime64, timer, 0, &every, NULL)) {
		perror("posix_timer");
		return 1;
	}
	while (expiries < 10 && kevent_queue_get(&q, &ev, 1, NULL) == 1)
		if (kevent_pointer(&ev) == &timer)
			expiries += 1 + kevent_overrun(&ev);
	syscall(SYS_timer_delete, timer);
	kevent_queue_close(&q);
	printf("timer %d: %s\n", timer, expiries < 10 ? "late" : "10 expiries");
	return expiries < 10;
}
