/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Types that the module lacks, and the library drives
 */
#ifndef LIBKEVENT_DRIVEN_H
#define LIBKEVENT_DRIVEN_H

#include <stdbool.h>
#include <time.h>
#include "libkevent.h"

#pragma GCC visibility push(hidden)

/* Does the library not drive the type, here and now? */
bool kevent_driven_lacks(__u32 type);

/*
 * Make a request that the module has handed back with KEVENT_RET_DRIVE. Returns 0, 1 when an
 * event is handed back, or -errno, which the request says as well.
 */
int kevent_driven_make(int fd, __u32 cmd, struct ukevent *uk);

/* kevent_wait() with KEVENT_FLAGS_SERVE. The caller knows that it is a queue of the module. */
int kevent_driven_serve(int fd, __u32 limit, const struct timespec *timeout, __u32 flags);

/* The queue of the number is about to be closed, or was, as a new one has the number. */
void kevent_driven_close(int fd);

#pragma GCC visibility pop

#endif /* LIBKEVENT_DRIVEN_H */
