/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Signals that watches of the module consume
 */
#ifndef LIBKEVENT_POSTED_H
#define LIBKEVENT_POSTED_H

#include <errno.h>
#include <stdbool.h>

#include "libkevent.h"

#pragma GCC visibility push(hidden)

/*
 * Has the module refused a request of queue @fd, since it does not know that a handler posts
 * signals which are not blocked? Then there is one on return, and the request is ready to be
 * made again.
 */
bool kevent_signal_retry(struct ukevent *uk, int fd);

/* It was made again, with this result: 0, 1 or -errno. The entry is as the program knows it. */
void kevent_signal_retried(struct ukevent *uk, int result);

#pragma GCC visibility pop

#endif /* LIBKEVENT_POSTED_H */
