// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The calls of a queue: each to the kernel, the module or the fallback, whichever has made it.
 * init.c chooses that one when a queue is made.
 */
#include <linux/time_types.h>

#include "libkevent.h"
#include "fallback/fallback.h"
#include "module.h"
#include "kernel.h"
#include "raw_syscall.h"

/*
 * The kernel's type has 64-bit members on every machine. The C library's is the same
 * where a long has 64 bits; elsewhere it may have a 32-bit tv_nsec next to padding.
 */
#ifdef __LP64__
#define KERNEL_TIMESPEC(ts)	(ts)
#else
#define KERNEL_TIMESPEC(ts)						\
	((ts) ? &(struct __kernel_timespec){ (ts)->tv_sec, (ts)->tv_nsec } : NULL)
#endif

/*
 * Each call by a system call, if the kernel has it, or else by an ioctl, and if there are
 * queues of the fallback, there first. The latter is a function of its own: it would cost the
 * former registers.
 */

static int kernel_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	return kevent_syscall(__NR_kevent_ctl, fd, cmd, num, arg, 0, 0);
}

static __attribute__((noinline)) int any_ctl(int fd, __u32 cmd, __u32 num,
					     struct ukevent *arg)
{
	int ret = kevent_fb_ctl(fd, cmd, num, arg);

	if (ret != KEVENT_FB_PASS)
		return ret;
	return kevent_kernel_there() ? kernel_ctl(fd, cmd, num, arg) :
				       kevent_module_ctl(fd, cmd, num, arg);
}

int kevent_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	if (kevent_only_kernel())
		return kernel_ctl(fd, cmd, num, arg);
	if (kevent_only_device())
		return kevent_module_ctl(fd, cmd, num, arg);
	return any_ctl(fd, cmd, num, arg);
}

static int kernel_get_events(int fd, __u32 min_nr, __u32 max_nr,
			     const struct timespec *timeout,
			     struct ukevent *buf, __u32 flags)
{
	return kevent_syscall(__NR_kevent_get_events, fd, min_nr, max_nr,
			   KERNEL_TIMESPEC(timeout), buf, flags);
}

static __attribute__((noinline)) int
any_get_events(int fd, __u32 min_nr, __u32 max_nr, const struct timespec *timeout,
	       struct ukevent *buf, __u32 flags)
{
	int ret = kevent_fb_get_events(fd, min_nr, max_nr, timeout, buf, flags);

	if (ret != KEVENT_FB_PASS)
		return ret;
	if (kevent_kernel_there())
		return kernel_get_events(fd, min_nr, max_nr, timeout, buf, flags);
	return kevent_module_get_events(fd, min_nr, max_nr, KERNEL_TIMESPEC(timeout),
					buf, flags);
}

int kevent_get_events(int fd, __u32 min_nr, __u32 max_nr,
		      const struct timespec *timeout, struct ukevent *buf,
		      __u32 flags)
{
	if (kevent_only_kernel())
		return kernel_get_events(fd, min_nr, max_nr, timeout, buf, flags);
	if (kevent_only_device())
		return kevent_module_get_events(fd, min_nr, max_nr,
						KERNEL_TIMESPEC(timeout), buf, flags);
	return any_get_events(fd, min_nr, max_nr, timeout, buf, flags);
}

static int kernel_wait(int fd, __u32 num, __u32 old_kidx,
		       const struct timespec *timeout, __u32 flags,
		       const struct kevent_wait_arg *arg)
{
	return kevent_syscall(__NR_kevent_wait, fd, num, old_kidx,
			   KERNEL_TIMESPEC(timeout), flags, arg);
}

static __attribute__((noinline)) int
any_wait(int fd, __u32 num, __u32 old_kidx, const struct timespec *timeout,
	 __u32 flags, const struct kevent_wait_arg *arg)
{
	int ret = kevent_fb_wait(fd, num, old_kidx, timeout, flags, arg);

	if (ret != KEVENT_FB_PASS)
		return ret;
	if (kevent_kernel_there())
		return kernel_wait(fd, num, old_kidx, timeout, flags, arg);
	return kevent_module_wait(fd, num, old_kidx, KERNEL_TIMESPEC(timeout), flags,
				  arg);
}

int kevent_wait(int fd, __u32 num, __u32 old_kidx,
		const struct timespec *timeout, __u32 flags,
		const struct kevent_wait_arg *arg)
{
	if (kevent_only_kernel())
		return kernel_wait(fd, num, old_kidx, timeout, flags, arg);
	if (kevent_only_device())
		return kevent_module_wait(fd, num, old_kidx,
					  KERNEL_TIMESPEC(timeout), flags, arg);
	return any_wait(fd, num, old_kidx, timeout, flags, arg);
}

int kevent_commit(int fd, __u32 new_uidx, __u32 over)
{
	__u64 uidx = (__u64)over << 32 | new_uidx;
	int ret = KEVENT_FB_PASS;

	if (!kevent_only_kernel() && !kevent_only_device())
		ret = kevent_fb_commit(fd, uidx);
	if (ret != KEVENT_FB_PASS)
		return ret;
	if (!kevent_kernel_there())
		return kevent_module_commit(fd, uidx);
	return kevent_syscall(__NR_kevent_commit, fd, new_uidx, over, 0, 0, 0);
}
