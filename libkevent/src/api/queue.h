/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Queues: what other files of the library need
 */
#ifndef LIBKEVENT_QUEUE_PRIVATE_H
#define LIBKEVENT_QUEUE_PRIVATE_H

#include <stdbool.h>

#include "libkevent.h"

bool kevent_timespec_valid(const struct timespec *ts);

/**
 * kevent_queue_ring_and_get() - kevent_queue_get() that adds 1 to an eventfd
 * @q: the queue
 * @ev: where to copy events to
 * @max: at most so many
 * @timeout: as for kevent_queue_get()
 * @bell: the eventfd
 * @rung: set to whether 1 was added: the call that waits does it, and there is none
 *	when the ring has events
 *
 * Return: as kevent_queue_get().
 */
int kevent_queue_ring_and_get(struct kevent_queue *q, struct ukevent *ev,
			      __u32 max, const struct timespec *timeout,
			      int bell, bool *rung);

#endif /* LIBKEVENT_QUEUE_PRIVATE_H */
