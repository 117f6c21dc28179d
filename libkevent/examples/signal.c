// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Take signals as events: no handler, nothing blocked, values kept in order
 */
#include <libkevent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	static KEVENT_RING_STORAGE(8) mem;
	union sigval value = { .sival_int = 1 };
	struct kevent_queue q;
	struct ukevent ev[2];
	int sum = 0, end = 0;

	if (kevent_queue_init(&q, &mem.ring, 8, 0))
		return 1;
	kevent_set_signal(&ev[0], SIGTERM, 1, 0, 0);
	kevent_set_signal(&ev[1], SIGRTMIN, 1, 0, 0);
	if (kevent_ctl(q.fd, KEVENT_CTL_ADD, 2, ev))
		return 1;

	for (; value.sival_int <= 3; value.sival_int++)
		if (sigqueue(getpid(), SIGRTMIN, value))
			return 1;
	if (kill(getpid(), SIGTERM))	/* which does not end it at once */
		return 1;

	while (!end && kevent_queue_wait(&q, NULL) > 0) {
		while (kevent_queue_pop(&q, ev, 1) > 0) {
			if (ev->id.raw[0] == SIGTERM)
				end = 1;
			else
				sum = 10 * sum + (int)ev->ret_data[1];
		}
	}
	printf("values %d, then SIGTERM\n", sum);
	return sum != 123;
}
