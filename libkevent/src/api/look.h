/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * How long a wait looks before it sleeps
 */
#ifndef LIBKEVENT_LOOK_H
#define LIBKEVENT_LOOK_H

#include <stdbool.h>

#include "libkevent.h"

/*
 * Calls @found until it says true, @looks times, or as long as @l has learned that it pays.
 * The program will sleep otherwise, for up to @timeout.
 */
bool kevent_look(struct kevent_look *l, __u32 looks, const struct timespec *timeout,
		 bool (*found)(const void *set), const void *set);

/*
 * The policy, for a machine on which a wake-up takes @cost nanoseconds: how many of them the
 * next wait may look, and how many were @spent until something was @found, or in vain
 */
__u32 kevent_look_bound(struct kevent_look *l, __u32 cost);
void kevent_look_learn(struct kevent_look *l, __u32 cost, __u32 spent, bool found);

#endif /* LIBKEVENT_LOOK_H */
