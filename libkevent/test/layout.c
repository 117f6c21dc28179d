// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes and offsets of the ABI. Compiled for 32 and 64 bits; nothing runs.
 */
#include <libkevent.h>

#define SIZE(type, bytes) \
	static_assert(sizeof(type) == (bytes), "size of " #type)
#define OFFSET(type, member, bytes) \
	static_assert(offsetof(type, member) == (bytes), #type "." #member)

SIZE(struct kevent_id, 8);
static_assert(alignof(struct kevent_id) == 8, "alignment of kevent_id");

SIZE(struct ukevent, 40);
static_assert(alignof(struct ukevent) == 8, "alignment of ukevent");
OFFSET(struct ukevent, id, 0);
OFFSET(struct ukevent, type, 8);
OFFSET(struct ukevent, event, 12);
OFFSET(struct ukevent, req_flags, 16);
OFFSET(struct ukevent, ret_flags, 20);
OFFSET(struct ukevent, ret_data, 24);
OFFSET(struct ukevent, user, 32);
OFFSET(struct ukevent, ptr, 32);

SIZE(struct kevent_ring, 128);
OFFSET(struct kevent_ring, ring_kidx, 0);
OFFSET(struct kevent_ring, ring_flags, 8);
OFFSET(struct kevent_ring, __pad0, 12);
OFFSET(struct kevent_ring, ring_uidx, 64);
OFFSET(struct kevent_ring, __pad1, 72);
OFFSET(struct kevent_ring, event, 128);

SIZE(struct kevent_change, 48);
OFFSET(struct kevent_change, uk, 0);
OFFSET(struct kevent_change, cmd, 40);
OFFSET(struct kevent_change, result, 44);

SIZE(struct kevent_wait_arg, 48);
static_assert(alignof(struct kevent_wait_arg) == 8,
	      "alignment of kevent_wait_arg");
OFFSET(struct kevent_wait_arg, size, 0);
OFFSET(struct kevent_wait_arg, clockid, 4);
OFFSET(struct kevent_wait_arg, min_nr, 8);
OFFSET(struct kevent_wait_arg, sigsetsize, 12);
OFFSET(struct kevent_wait_arg, sigmask, 16);
OFFSET(struct kevent_wait_arg, min_wait_ns, 24);
OFFSET(struct kevent_wait_arg, changes, 32);
OFFSET(struct kevent_wait_arg, nr_changes, 40);
OFFSET(struct kevent_wait_arg, max_running, 44);

SIZE(struct kevent_call, 64);
static_assert(alignof(struct kevent_call) == 8, "alignment of kevent_call");
OFFSET(struct kevent_call, nr, 0);
OFFSET(struct kevent_call, on_error, 4);
OFFSET(struct kevent_call, on_zero, 5);
OFFSET(struct kevent_call, on_value, 6);
OFFSET(struct kevent_call, flags, 7);
OFFSET(struct kevent_call, result, 8);
OFFSET(struct kevent_call, args, 16);

SIZE(struct kevent_dev_init, 16);
OFFSET(struct kevent_dev_init, ring, 0);
OFFSET(struct kevent_dev_init, ring_size, 8);
OFFSET(struct kevent_dev_init, flags, 12);

SIZE(struct kevent_dev_ctl, 16);
OFFSET(struct kevent_dev_ctl, cmd, 0);
OFFSET(struct kevent_dev_ctl, num, 4);
OFFSET(struct kevent_dev_ctl, arg, 8);

SIZE(struct kevent_dev_get, 32);
OFFSET(struct kevent_dev_get, min_nr, 0);
OFFSET(struct kevent_dev_get, max_nr, 4);
OFFSET(struct kevent_dev_get, timeout, 8);
OFFSET(struct kevent_dev_get, buf, 16);
OFFSET(struct kevent_dev_get, flags, 24);
OFFSET(struct kevent_dev_get, reserved, 28);

SIZE(struct kevent_dev_wait, 32);
OFFSET(struct kevent_dev_wait, num, 0);
OFFSET(struct kevent_dev_wait, old_kidx, 4);
OFFSET(struct kevent_dev_wait, timeout, 8);
OFFSET(struct kevent_dev_wait, flags, 16);
OFFSET(struct kevent_dev_wait, reserved, 20);
OFFSET(struct kevent_dev_wait, arg, 24);

SIZE(struct kevent_dev_commit, 8);
OFFSET(struct kevent_dev_commit, uidx, 0);

static_assert(sizeof(struct ukevent) % sizeof(kevent_ring_word) == 0,
	      "an entry is made of whole words");
static_assert(KEVENT_RING_BYTES(KEVENT_RING_MAX) == 128 + 40 * (1 << 20),
	      "bytes of the largest ring");

/* Programs that know kqueue define these themselves. */
struct kevent {
	int of_the_program;
};

__attribute__((unused))
static inline int kevent(struct kevent *ke)
{
	return ke->of_the_program;
}
