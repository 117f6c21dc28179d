/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Sleeps of sets of lanes, and which of them were rung for
 */
#ifndef LIBKEVENT_RUNG_H
#define LIBKEVENT_RUNG_H

#include <stdbool.h>

#include "libkevent.h"

/*
 * The number of the next sleep of a set, for all its lanes, whose process has the mark
 * @process. 0: there is no mark, so that a child of fork() would use the same numbers.
 */
__u64 kevent_rung_sleep(__u32 process);

/* Which process is behind @sock: 0 if that is not known */
__u32 kevent_rung_origin(int sock);

/* Has a lane to the same set rung for @sleep? */
bool kevent_rung_for(const struct kevent_lane *l, __u64 sleep);
void kevent_rung_note(const struct kevent_lane *l, __u64 sleep);

#endif /* LIBKEVENT_RUNG_H */
