/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints
 */
#ifndef _KEVENT_TRACE_H
#define _KEVENT_TRACE_H

#include <linux/types.h>
#include <trace/events/kevent.h>

struct kevent;

/* Not in line: the hot path has no more than a branch that is patched in. */
void kevent_trace_hit(const struct kevent *ke, u32 ready);

#endif /* _KEVENT_TRACE_H */
