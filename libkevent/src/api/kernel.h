/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Whether the kernel has kevent
 *
 * It has system calls, or the module has a device, or there is neither. A kernel with the
 * calls takes no module, so a process never sees queues of both.
 *
 * The numbers of the calls are those of other calls in a kernel without kevent. So the
 * library makes none of them before it has seen the sysctl of kevent, and no device, and
 * takes a new descriptor for a queue only if /proc says so.
 */
#ifndef LIBKEVENT_KERNEL_H
#define LIBKEVENT_KERNEL_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

enum kevent_way {
	KEVENT_WAY_KERNEL = 1,		/* the sysctl is there */
	KEVENT_WAY_NONE = 2,		/* what answered is not kevent */
	KEVENT_WAY_FALLBACK = 4,	/* there are queues of the fallback */
	KEVENT_WAY_DEVICE = 8,		/* the module has answered */
};

/* Bits of enum kevent_way. They are set, and never cleared. */
extern unsigned int kevent_ways;

static inline unsigned int kevent_ways_now(void)
{
	return __atomic_load_n(&kevent_ways, __ATOMIC_ACQUIRE);
}

/* Are all queues those of the system calls? */
static inline bool kevent_only_kernel(void)
{
	return __builtin_expect(kevent_ways_now() == KEVENT_WAY_KERNEL, 1);
}

/* Are all queues those of the module? */
static inline bool kevent_only_device(void)
{
	const unsigned int others = KEVENT_WAY_DEVICE | KEVENT_WAY_FALLBACK;

	return (kevent_ways_now() & others) == KEVENT_WAY_DEVICE;
}

/* Looks for the sysctl and the device. */
bool kevent_kernel_look(void);

/* May system calls of kevent be made? */
static inline bool kevent_kernel_there(void)
{
	unsigned int ways = kevent_ways_now() & ~(unsigned int)KEVENT_WAY_FALLBACK;

	return ways ? ways == KEVENT_WAY_KERNEL : kevent_kernel_look();
}

/* Is it a queue of the system calls? Only a process that has made one asks. */
bool kevent_kernel_has(int fd);

/* As the system call, but -ENOSYS if what it returns is no queue */
int kevent_kernel_init(void *ring, unsigned int ring_size, unsigned int flags);

#pragma GCC visibility pop

#endif /* LIBKEVENT_KERNEL_H */
