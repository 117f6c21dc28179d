// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * What an error means for somebody who has no kevent yet
 */
#include <errno.h>
#include <string.h>

#include "libkevent.h"

const char *kevent_strerror(int error)
{
	switch (error) {
	case -ENOSYS:
		return "this kernel has no kevent, or not this part of it: load the module, "
		       "boot one that has all (CONFIG_KEVENT), or let the library use epoll";
	case -EACCES:
		return "you may not open /dev/kevent: join the group kevent, or let the "
		       "library use epoll";
	case -EPERM:
		return "kevent is forbidden here: see the sysctl "
		       "kernel.kevent_disabled, and seccomp filters of the "
		       "service or container";
	case -EXDEV:
		return "the ring belongs to the process that opened the queue: "
		       "open a queue after fork()";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
