// SPDX-License-Identifier: GPL-2.0
/*
 * A queue with two unread entries, for the printers of gdb. No kernel is needed.
 */
#include <libkevent.h>

static KEVENT_RING_STORAGE(4) mem;
struct kevent_queue queue = { .fd = 5, .size = 4, .ring = &mem.ring };
struct ukevent request;

void look_here(void);
void look_here(void)
{
}

int main(void)
{
	struct ukevent *ev = mem.ring.event;

	kevent_set_pipe(&request, 7, KEVENT_SOCKET_RECV, KEVENT_REQ_ET, 0x61);
	ev[3] = request;
	ev[3].ret_flags = KEVENT_RET_DONE;
	ev[3].ret_data[0] = KEVENT_SOCKET_RECV;
	ev[3].ret_data[1] = 10;
	kevent_set_timer(&ev[0], 1000, 0, 0, 0, 2);
	ev[0].ret_flags = KEVENT_RET_DONE | KEVENT_RET_BROKEN;
	ev[0].ret_data[1] = (__u32)-125;
	mem.ring.ring_uidx = 7;
	mem.ring.ring_kidx = 9;
	mem.ring.ring_flags = KEVENT_RING_MORE;
	look_here();
	return 0;
}
