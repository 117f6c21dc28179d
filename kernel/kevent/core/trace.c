// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints
 */

#include <linux/compiler.h>

#include "state.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/**
 * kevent_trace_hit - an event has gone to the ring at once
 * @ke: the watch; under ready_lock
 * @ready: the conditions
 */
void __cold kevent_trace_hit(const struct kevent *ke, u32 ready)
{
	trace_kevent_ready(ke, ready, 1, true);
}
