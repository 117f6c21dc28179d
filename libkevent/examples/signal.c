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
	int sum = 0, end = 0, ret;

	ret = kevent_queue_init(&q, &mem.ring, 8, 0);
	if (ret) {
		fprintf(stderr, "signal: %s\n", kevent_strerror(ret));
		return 1;
	}
	kevent_set_signal(&ev[0], SIGTERM, KEVENT_SIGNAL_CONSUME, 0, 0);
	kevent_set_signal(&ev[1], SIGRTMIN, KEVENT_SIGNAL_CONSUME, 0, 0);
	if (kevent_ctl(q.fd, KEVENT_CTL_ADD, 2, ev))
		return 1;

	for (; value.sival_int <= 3; value.sival_int++)
		if (sigqueue(getpid(), SIGRTMIN, value))
			return 1;
	if (kill(getpid(), SIGTERM))	/* which does not end it at once */
		return 1;

	/* Without kevent in the kernel, SIGTERM comes first: by its number. */
	while ((!end || sum < 100) && kevent_queue_get(&q, ev, 1, NULL) == 1) {
		if (kevent_signal_number(ev) == SIGTERM)
			end = 1;
		else
			sum = 10 * sum + kevent_signal_value(ev);
	}
	printf("values %d, then SIGTERM\n", sum);
	return sum != 123;
}
