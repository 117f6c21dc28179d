// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Whether the kernel has kevent
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"
#include "syscall.h"

#define SYSCTL		"/proc/sys/kernel/kevent_disabled"
#define DESCRIPTORS	"/proc/self/fd"
#define QUEUE		"anon_inode:[kevent]"

unsigned int kevent_ways;

/* The kernel has returned a queue before: without /proc, it does so now. */
static bool proved;

static bool is_there(const char *path)
{
	return !kevent_syscall(SYS_faccessat, AT_FDCWD, path, F_OK, 0, 0, 0);
}

/*
 * What is not there may be there later: /proc may be mounted. Without links of
 * descriptors, nothing would prove a queue.
 */
bool kevent_kernel_look(void)
{
	if (!is_there(SYSCTL) || !is_there(DESCRIPTORS))
		return false;
	__atomic_or_fetch(&kevent_ways, KEVENT_WAY_KERNEL, __ATOMIC_ACQ_REL);
	return true;
}

static bool is_queue(int fd)
{
	char path[sizeof(DESCRIPTORS) + 12], name[sizeof(QUEUE)];
	int len;

	snprintf(path, sizeof(path), DESCRIPTORS "/%d", fd);
	len = kevent_syscall(SYS_readlinkat, AT_FDCWD, path, name, sizeof(name),
			     0, 0);
	if (len < 0)
		return __atomic_load_n(&proved, __ATOMIC_RELAXED) &&
		       kevent_syscall(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0;
	if (len != sizeof(QUEUE) - 1 || memcmp(name, QUEUE, sizeof(QUEUE) - 1))
		return false;
	__atomic_store_n(&proved, true, __ATOMIC_RELAXED);
	return true;
}

/* What is no queue may be anybody's descriptor: it stays as it is. */
int kevent_kernel_init(void *ring, unsigned int ring_size, unsigned int flags)
{
	int fd;

	if (!kevent_kernel_there())
		return -ENOSYS;
	fd = kevent_syscall(__NR_kevent_init, ring, ring_size, flags, 0, 0, 0);
	if (fd < 0 || is_queue(fd))
		return fd;
	__atomic_or_fetch(&kevent_ways, KEVENT_WAY_NONE, __ATOMIC_ACQ_REL);
	return -ENOSYS;
}
