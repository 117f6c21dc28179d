// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The device of the kevent module
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "device.h"
#include "kernel.h"

/*
 * The device, or -1. It stays open, so that a program which gives up its rights or its view
 * of /dev can still make queues. exec() closes it.
 */
static int device = -1;

/* The program may have closed all descriptors, and the number may be another file's. */
static bool is_device(int fd)
{
	__u64 types;

	return fd >= 0 && !kevent_ioctl(fd, KEVENT_IOC_TYPES, &types);
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

/* Errors of open() for a device that is not there, or has no driver */
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

int kevent_device(void)
{
	int fd = __atomic_load_n(&device, __ATOMIC_ACQUIRE);

	return is_device(fd) ? fd : keep_device(fd);
}

static int post(int fd, const struct ukevent *uk)
{
	return kevent_ioctl(fd, KEVENT_IOC_POST, (void *)(uintptr_t)uk);
}

/* No number is kept: the handler may run in a child of vfork(), which shares the memory. */
int kevent_device_post(const struct ukevent *uk, int queue)
{
	int fd = __atomic_load_n(&device, __ATOMIC_ACQUIRE);
	int ret = post(fd, uk);

	/* No other file has these ioctls, and a queue or device says ENOENT. */
	if (ret && ret != -ENOENT)
		ret = post(queue, uk);
	if (!ret || ret == -ENOENT)
		return ret;
	fd = open_device();
	if (fd < 0)
		return fd;
	ret = post(fd, uk);
	kevent_close_fd(fd);
	return ret;
}

/* A change of nothing is refused by all but queues. */
bool kevent_device_has(int fd)
{
	struct kevent_dev_ctl a = { .cmd = KEVENT_CTL_ADD };

	return kevent_ways_now() & KEVENT_WAY_DEVICE && !kevent_ioctl(fd, KEVENT_IOC_CTL, &a);
}
