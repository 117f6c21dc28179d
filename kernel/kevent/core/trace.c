// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints
 */

#include <linux/compiler.h>

#include "state.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/**
 * kevent_trace_ready - an event has gone to the ring at once, or its watch to the list
 * @ke: the watch; under ready_lock
 * @ready: the conditions
 * @hit: which of the two
 */
void __cold kevent_trace_ready(const struct kevent *ke, u32 ready, bool hit)
{
	trace_kevent_ready(ke, ready, 1, hit);
}
