// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Texts of errors for a user who has no kevent yet
 */
#include <errno.h>
#include <string.h>

#include "libkevent.h"

const char *kevent_strerror(int error)
{
	switch (error) {
	case -ENOSYS:
		return "there is no kevent here, or not this type of events: the module lacks "
		       "some, kevent_types() says which; a kernel with CONFIG_KEVENT has all, and "
		       "the library can use epoll";
	case -EACCES:
		return "you may not open /dev/kevent: join the group kevent, or let the "
		       "library use epoll";
	case -EPERM:
		return "the queue refuses this type or command (KEVENT_INIT_REFUSE), or kevent "
		       "is forbidden here: see the sysctl kernel.kevent_disabled, and seccomp "
		       "filters of the service or container";
	case -EINVAL:
		return "an argument is not allowed: a ring has a power of two of slots, 2 or more, "
		       "and begins at a multiple of 8; unknown bits are refused";
	case -EXDEV:
		return "the ring belongs to the process that opened the queue: "
		       "open a queue after fork()";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
