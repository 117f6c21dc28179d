/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Where the library has descriptors that the program does not know
 */
#ifndef LIBKEVENT_OWN_H
#define LIBKEVENT_OWN_H

#include <errno.h>
#include <fcntl.h>

#include "raw_syscall.h"

/*
 * From which number on; 0: the lowest that is free, as all files have it. It is for what is
 * loaded into programs that know nothing of the library, and may have files at fixed numbers.
 */
extern int kevent_own_from;

/* The number of @fd from now on. Where there is no room it stays. */
static inline int kevent_own_place(int fd)
{
	int saved = errno, placed;

	if (!kevent_own_from)
		return fd;
	placed = fcntl(fd, F_DUPFD_CLOEXEC, kevent_own_from);
	errno = saved;
	if (placed < 0)
		return fd;
	kevent_close_fd(fd);
	return placed;
}

#endif /* LIBKEVENT_OWN_H */
