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
#include "libkevent.h"
#include "raw_syscall.h"

#define SYSCTL		"/proc/sys/kernel/kevent_disabled"
/* The process may go on without its first thread, a thread may have a table of its own. */
#define THREAD		"/proc/thread-self"
#define DESCRIPTORS	THREAD "/fd"
#define QUEUE		"anon_inode:[kevent]"

unsigned int kevent_ways;

/* The kernel has returned a queue before: without /proc, it does so now. */
static bool proved;

static bool is_there(const char *path)
{
	return !kevent_syscall(SYS_faccessat, AT_FDCWD, path, F_OK, 0, 0, 0);
}

static int read_link(const char *path, char *name, size_t size)
{
	return kevent_syscall(SYS_readlinkat, AT_FDCWD, path, name, size, 0, 0);
}

/* Without links of descriptors, nothing would prove a queue. */
static bool may_prove(void)
{
	char c;

	return __atomic_load_n(&proved, __ATOMIC_RELAXED) ||
	       read_link(THREAD, &c, 1) > 0;
}

/*
 * A file that is missing may be there later: /proc may be mounted. The sysctl may be that of the
 * module, which comes with its device.
 */
bool kevent_kernel_look(void)
{
	if (!is_there(SYSCTL) || is_there(KEVENT_DEVICE) || !may_prove())
		return false;
	__atomic_or_fetch(&kevent_ways, KEVENT_WAY_KERNEL, __ATOMIC_ACQ_REL);
	return true;
}

/* Another file ends it; a link that cannot be read says nothing of later ones. */
static bool is_queue(int fd)
{
	char path[sizeof(DESCRIPTORS) + 12], name[sizeof(QUEUE)];
	int len;

	snprintf(path, sizeof(path), DESCRIPTORS "/%d", fd);
	len = read_link(path, name, sizeof(name));
	if (len < 0)
		return __atomic_load_n(&proved, __ATOMIC_RELAXED) &&
		       kevent_syscall(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0;
	if (len == sizeof(QUEUE) - 1 && !memcmp(name, QUEUE, sizeof(QUEUE) - 1)) {
		__atomic_store_n(&proved, true, __ATOMIC_RELAXED);
		return true;
	}
	__atomic_or_fetch(&kevent_ways, KEVENT_WAY_NONE, __ATOMIC_ACQ_REL);
	return false;
}

/* A change of nothing is refused by all but queues. */
bool kevent_kernel_has(int fd)
{
	return __atomic_load_n(&proved, __ATOMIC_RELAXED) &&
	       !kevent_syscall(__NR_kevent_ctl, fd, KEVENT_CTL_ADD, 0, NULL, 0, 0);
}

/* A descriptor that is no queue may be anybody's: it stays as it is. */
int kevent_kernel_init(void *ring, unsigned int ring_size, unsigned int flags)
{
	int fd;

	if (!kevent_kernel_there() || !may_prove())
		return -ENOSYS;
	fd = kevent_syscall(__NR_kevent_init, ring, ring_size, flags, 0, 0, 0);
	return fd < 0 || is_queue(fd) ? fd : -ENOSYS;
}
