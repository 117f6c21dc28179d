// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Queues of the kevent module
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <linux/time_types.h>

#include "fallback/driven.h"
#include "signal/posted.h"
#include "device.h"
#include "kernel.h"
#include "module.h"

/* Ioctls have answered: so the kernel has no system calls of kevent. */
static int proved(int ret)
{
	if (ret >= 0 && !(kevent_ways_now() & KEVENT_WAY_DEVICE))
		__atomic_or_fetch(&kevent_ways, KEVENT_WAY_DEVICE, __ATOMIC_ACQ_REL);
	return ret;
}

int kevent_module_init(void *ring, __u32 ring_size, __u32 flags)
{
	struct kevent_dev_init arg = {
		.ring = (uintptr_t)ring,
		.ring_size = ring_size,
		.flags = flags,
	};
	int fd = kevent_device();

	if (fd < 0)
		return fd;
	fd = proved(kevent_ioctl(fd, KEVENT_IOC_INIT, &arg));
	if (fd >= 0)
		kevent_driven_close(fd);
	return fd;
}

/* ENOTTY: the descriptor is open, and no queue. */
static __attribute__((noinline)) int refused(int ret)
{
	return ret == -ENOTTY ? -EINVAL : ret;
}

static inline int said(int ret)
{
	return ret < 0 ? refused(ret) : proved(ret);
}

static int queue_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	struct kevent_dev_ctl a = { .cmd = cmd, .num = num, .arg = (uintptr_t)arg };

	return said(kevent_ioctl(fd, KEVENT_IOC_CTL, &a));
}

/*
 * Make a request again if it lacked a handler of signals, or is for a type that the library
 * drives. Returns 0, when nothing is left to say of it, 1 when an event is handed back, or -errno.
 */
static int make_again(int fd, __u32 cmd, struct ukevent *uk)
{
	int ret;

	if (uk->ret_flags & KEVENT_RET_DRIVE)
		return kevent_driven_make(fd, cmd, uk);
	if (!kevent_signal_retry(uk, fd))
		return kevent_error(uk) ? kevent_error(uk) : 1;
	ret = queue_ctl(fd, cmd, 1, uk);
	kevent_signal_retried(uk, ret);
	return kevent_error(uk) ? kevent_error(uk) : ret;
}

/* Entries of ADD that failed, or have an event, are in front. How many there are now */
static __attribute__((noinline)) int add_again(int fd, struct ukevent *arg, int nr)
{
	struct ukevent made;
	int i = 0;

	while (i < nr) {
		if (make_again(fd, KEVENT_CTL_ADD, &arg[i])) {
			i++;
			continue;
		}
		made = arg[i];
		arg[i] = arg[--nr];
		arg[nr] = made;
	}
	return nr;
}

#define PAGE		4096U		/* the least */

/*
 * May what is @at, behind others that were read and written, be so, too? The kernel stops where
 * it cannot read, and does not say where that was. Where nobody knows, it may not.
 */
static bool readable(const void *at, size_t size)
{
	const uintptr_t end = (uintptr_t)at + size - 1;
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)end, 1 };

	return end / PAGE == ((uintptr_t)at - 1) / PAGE ||
	       kevent_syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == 1;
}

/* Of other commands those that failed, @left of them, are where they were. How many fail now */
static __attribute__((noinline)) int change_again(int fd, __u32 cmd, __u32 num,
						  struct ukevent *arg, int left)
{
	struct ukevent *first = arg;
	int nr = left;

	for (; num-- && left && (arg == first || readable(arg, sizeof(*arg))); arg++) {
		if (!kevent_error(arg) && !(arg->ret_flags & KEVENT_RET_DRIVE))
			continue;
		left--;
		nr -= !make_again(fd, cmd, arg);
	}
	return nr;
}

/* Some failed, or have an event. The result, as of kevent_ctl() */
static __attribute__((noinline)) int ctl_again(int fd, const struct kevent_dev_ctl *a, int ret)
{
	struct ukevent *arg = (void *)(uintptr_t)a->arg;

	switch (a->cmd) {
	case KEVENT_CTL_ADD:
		return add_again(fd, arg, ret);
	case KEVENT_CTL_MODIFY:
	case KEVENT_CTL_REMOVE:
		return change_again(fd, a->cmd, a->num, arg, ret);
	case KEVENT_CTL_READY:
		ret = (int)a->num - ret;
		return (int)a->num - change_again(fd, a->cmd, a->num, arg, ret);
	default:
		return ret;
	}
}

/* The usual call saves one register: ctl_again() deals with requests that failed. */
int kevent_module_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	struct kevent_dev_ctl a = { .cmd = cmd, .num = num, .arg = (uintptr_t)arg };
	int ret = kevent_ioctl(fd, KEVENT_IOC_CTL, &a);

	if (ret < 0)
		return refused(ret);
	proved(ret);
	if (ret == (a.cmd == KEVENT_CTL_READY ? (int)a.num : 0))
		return ret;
	return ctl_again(fd, &a, ret);
}

int kevent_module_get_events(int fd, __u32 min_nr, __u32 max_nr, const void *timeout,
			     struct ukevent *buf, __u32 flags)
{
	struct kevent_dev_get a = {
		.min_nr = min_nr,
		.max_nr = max_nr,
		.timeout = (uintptr_t)timeout,
		.buf = (uintptr_t)buf,
		.flags = flags,
	};

	return said(kevent_ioctl(fd, KEVENT_IOC_GET_EVENTS, &a));
}

#if defined(__LP64__) || defined(SYS__llseek)
#define HAVE_SEEK	1
#else
#define HAVE_SEEK	0
#endif

/* No security module looks at lseek(): it costs half of an ioctl. */
static int seek(int fd, __u32 num, __u32 old_kidx, int whence)
{
#ifdef __LP64__
	return kevent_syscall(SYS_lseek, fd, KEVENT_SEEK(num, old_kidx), whence, 0, 0, 0);
#elif HAVE_SEEK
	__u32 high = (__u64)KEVENT_SEEK(num, 0) >> 32;
	__s64 result;
	int ret = kevent_syscall(SYS__llseek, fd, high, old_kidx, &result, whence, 0);

	return ret ? ret : (int)result;
#else
	return -ENOTTY;
#endif
}

/* Other files have no position, or one that is 0: so a queue without events says EAGAIN. */
static int sought(int ret)
{
	if (ret == -EAGAIN)
		return 0;
	return !ret || ret == -ESPIPE ? -EINVAL : ret;
}

/* More is as good as a whole ring, but no position of a file. */
static __u32 seek_num(__u32 num)
{
	return num < KEVENT_RING_MAX ? num : KEVENT_RING_MAX;
}

static bool is_zero(const struct __kernel_timespec *ts)
{
	return !ts->tv_sec && !ts->tv_nsec;
}

/* Other files know lseek(), too: it is only for a process that knows the module. */
static bool may_seek(const struct __kernel_timespec *timeout, __u32 flags, const void *arg)
{
	return HAVE_SEEK && !flags && !arg && (!timeout || is_zero(timeout)) &&
	       kevent_ways_now() & KEVENT_WAY_DEVICE;
}

/* An argument of a program that knows of changes has them up to here. */
#define CHANGES_END	(offsetof(struct kevent_wait_arg, nr_changes) + sizeof(__u32))

/* A hand-off to another queue has lost which one it was for. */
static bool may_make_again(const struct kevent_change *c)
{
	if (c->result != -ENOSYS || c->uk.req_flags & KEVENT_REQ_HANDOFF)
		return false;
	return c->uk.ret_flags & KEVENT_RET_DRIVE ||
	       ((c->cmd == KEVENT_CTL_ADD || c->cmd == KEVENT_CTL_MODIFY) &&
		kevent_error(&c->uk) == -ENOSYS);
}

/*
 * Make changes again, as make_again() does. Returns whether some were made, and none
 * has kept the call from its wait.
 */
static __attribute__((noinline)) bool changes_again(int fd, const struct kevent_wait_arg *arg)
{
	struct kevent_change *at = (void *)(uintptr_t)arg->changes;
	bool again = false, held = false;
	__u32 left;

	for (left = arg->nr_changes; left--; at++) {
		if (left + 1 < arg->nr_changes && !readable(at, sizeof(*at)))
			return false;
		if (may_make_again(at)) {
			at->result = make_again(fd, at->cmd, &at->uk);
			again |= !at->result;
		}
		held |= !!at->result;
	}
	return again && !held;
}

static int queue_wait(int fd, const struct kevent_dev_wait *a)
{
	return said(kevent_ioctl(fd, KEVENT_IOC_WAIT, (void *)(uintptr_t)a));
}

/* The same call, whose changes are made */
static int wait_on(int fd, const struct kevent_dev_wait *a, const struct kevent_wait_arg *arg)
{
	struct kevent_wait_arg rest = { .size = 0 };
	struct kevent_dev_wait again = *a;

	memcpy(&rest, arg, arg->size < sizeof(rest) ? arg->size : sizeof(rest));
	rest.size = arg->size < sizeof(rest) ? arg->size : sizeof(rest);
	rest.nr_changes = 0;
	again.arg = (uintptr_t)&rest;
	return queue_wait(fd, &again);
}

/* The module runs no chains: the library does. */
static __attribute__((noinline)) int serve(int fd, __u32 limit,
					   const struct __kernel_timespec *timeout, __u32 flags)
{
	struct timespec ts;
	int err = queue_ctl(fd, KEVENT_CTL_ADD, 0, NULL);

	if (err)
		return err;
	if (!timeout)
		return kevent_driven_serve(fd, limit, NULL, flags);
	ts.tv_sec = (time_t)timeout->tv_sec;
	ts.tv_nsec = (long)timeout->tv_nsec;
	return kevent_driven_serve(fd, limit, &ts, flags);
}

static __attribute__((noinline)) int wait_by_ioctl(int fd, __u32 num, __u32 old_kidx,
						   const struct __kernel_timespec *timeout,
						   __u32 flags, const struct kevent_wait_arg *arg)
{
	const struct kevent_dev_wait a = {
		.num = num,
		.old_kidx = old_kidx,
		.timeout = (uintptr_t)timeout,
		.flags = flags,
		.arg = (uintptr_t)arg,
	};
	int ret;

	if (flags & KEVENT_FLAGS_SERVE)
		return old_kidx || arg ? -EINVAL : serve(fd, num, timeout, flags);
	ret = queue_wait(fd, &a);
	if (ret >= 0 && flags & KEVENT_FLAGS_ARG && arg->size >= CHANGES_END &&
	    arg->nr_changes && changes_again(fd, arg))
		return wait_on(fd, &a, arg);
	return ret;
}

/* The usual wait saves no register. */
int kevent_module_wait(int fd, __u32 num, __u32 old_kidx, const void *timeout,
		       __u32 flags, const struct kevent_wait_arg *arg)
{
	if (may_seek(timeout, flags, arg))
		return sought(seek(fd, seek_num(num), old_kidx,
				   timeout ? SEEK_SET : SEEK_CUR));
	return wait_by_ioctl(fd, num, old_kidx, timeout, flags, arg);
}

int kevent_module_commit(int fd, __u64 uidx)
{
	struct kevent_dev_commit a = { .uidx = uidx };

	return said(kevent_ioctl(fd, KEVENT_IOC_COMMIT, &a));
}
