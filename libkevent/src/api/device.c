// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Queues of the kevent module
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <linux/time_types.h>

#include "device.h"
#include "kernel.h"
#include "syscall.h"

/*
 * The device, or -1. It stays open, so that a program which gives up its rights or its view
 * of /dev can still make queues. exec() closes it.
 */
static int device = -1;

static int dev_ioctl(int fd, unsigned long request, void *arg)
{
	return kevent_syscall(SYS_ioctl, fd, request, arg, 0, 0, 0);
}

/* The program may have closed all descriptors, and the number may be another file's. */
static bool is_device(int fd)
{
	__u64 types;

	return fd >= 0 && !dev_ioctl(fd, KEVENT_IOC_TYPES, &types);
}

/* A daemon that has closed its standard descriptors opens others in their place. */
static int above_standard(int fd)
{
	int up;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	up = kevent_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1, 0, 0, 0);
	kevent_close_fd(fd);
	return up;
}

/* What open() says of a device that is not there, or has no driver */
static int missing(int ret)
{
	return ret == -ENOENT || ret == -ENOTDIR || ret == -ENXIO || ret == -ENODEV ?
	       -ENOSYS : ret;
}

static int open_device(void)
{
	return missing(above_standard(kevent_syscall(SYS_openat, AT_FDCWD, KEVENT_DEVICE,
						     O_RDWR | O_CLOEXEC | O_NOCTTY,
						     0, 0, 0)));
}

/* @old is not the device: keep one that is. Threads may do so at once. */
static int keep_device(int old)
{
	int fd = open_device();

	if (fd < 0)
		return fd;
	if (!is_device(fd)) {
		kevent_close_fd(fd);
		return -ENOSYS;
	}
	if (__atomic_compare_exchange_n(&device, &old, fd, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fd;
	kevent_close_fd(fd);
	return old;
}

static int get_device(void)
{
	int fd = __atomic_load_n(&device, __ATOMIC_ACQUIRE);

	return is_device(fd) ? fd : keep_device(fd);
}

/* Ioctls have answered: so the kernel has no system calls of kevent. */
static int proved(int ret)
{
	if (ret >= 0 && !(kevent_ways_now() & KEVENT_WAY_DEVICE))
		__atomic_or_fetch(&kevent_ways, KEVENT_WAY_DEVICE, __ATOMIC_ACQ_REL);
	return ret;
}

int kevent_device_init(void *ring, __u32 ring_size, __u32 flags)
{
	struct kevent_dev_init arg = {
		.ring = (uintptr_t)ring,
		.ring_size = ring_size,
		.flags = flags,
	};
	int fd = get_device();

	return fd < 0 ? fd : proved(dev_ioctl(fd, KEVENT_IOC_INIT, &arg));
}

/*
 * The descriptor is no queue. As long as the process knows of no queue at all, the answer is
 * that of a kernel without kevent.
 */
static int said(int ret)
{
	const unsigned int any = KEVENT_WAY_DEVICE | KEVENT_WAY_FALLBACK;

	if (ret >= 0)
		return proved(ret);
	if (kevent_ways_now() & any)
		return ret == -ENOTTY ? -EINVAL : ret;
	return ret == -ENOTTY || ret == -EBADF ? -ENOSYS : ret;
}

int kevent_device_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg)
{
	struct kevent_dev_ctl a = { .cmd = cmd, .num = num, .arg = (uintptr_t)arg };

	return said(dev_ioctl(fd, KEVENT_IOC_CTL, &a));
}

int kevent_device_get_events(int fd, __u32 min_nr, __u32 max_nr, const void *timeout,
			     struct ukevent *buf, __u32 flags)
{
	struct kevent_dev_get a = {
		.min_nr = min_nr,
		.max_nr = max_nr,
		.timeout = (uintptr_t)timeout,
		.buf = (uintptr_t)buf,
		.flags = flags,
	};

	return said(dev_ioctl(fd, KEVENT_IOC_GET_EVENTS, &a));
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
	(void)fd;
	(void)num;
	(void)old_kidx;
	(void)whence;
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

int kevent_device_wait(int fd, __u32 num, __u32 old_kidx, const void *timeout,
		       __u32 flags, const struct kevent_wait_arg *arg)
{
	struct kevent_dev_wait a;

	if (may_seek(timeout, flags, arg))
		return sought(seek(fd, seek_num(num), old_kidx,
				   timeout ? SEEK_SET : SEEK_CUR));
	a = (struct kevent_dev_wait){
		.num = num,
		.old_kidx = old_kidx,
		.timeout = (uintptr_t)timeout,
		.flags = flags,
		.arg = (uintptr_t)arg,
	};
	return said(dev_ioctl(fd, KEVENT_IOC_WAIT, &a));
}

int kevent_device_commit(int fd, __u64 uidx)
{
	struct kevent_dev_commit a = { .uidx = uidx };

	return said(dev_ioctl(fd, KEVENT_IOC_COMMIT, &a));
}

bool kevent_device_has(int fd)
{
	return kevent_ways_now() & KEVENT_WAY_DEVICE &&
	       !kevent_device_ctl(fd, KEVENT_CTL_ADD, 0, NULL);
}
