// SPDX-License-Identifier: GPL-2.0
/*
 * The headers before all others, in a program that asks for nothing but its
 * language. Compiled as C and as C++; nothing runs.
 */
#include <libkevent.h>

static KEVENT_RING_STORAGE(4) mem;

int main(void)
{
	struct kevent_wait_arg arg;
	struct kevent_queue q = KEVENT_QUEUE_NONE;
	struct kevent_lane lane = KEVENT_LANE_NONE;
	struct kevent_call calls[2];
	struct kevent_chain chain;
	struct ukevent ev;

	kevent_chain_init(&chain, calls, 2);
	kevent_chain_call(&chain, 1);
	kevent_chain_call(&chain, 1, 1, 2, 3, 4, 5, &ev);
#ifdef SEVEN
	kevent_chain_call(&chain, 1, 1, 2, 3, 4, 5, 6, 7);
#endif
	if (kevent_queue_init(&q, &mem.ring, 4, 0))
		return 1;
	kevent_wait_arg_init(&arg);
	kevent_set_timer(&ev, 1, 0, 0, 0, kevent_from_pointer(&q));
	kevent_set_signal(&ev, 10, KEVENT_SIGNAL_CONSUME, 0, 0);
	kevent_lane_close(&lane);
	return kevent_queue_get(&q, &ev, 1, NULL) != 1;
}
