// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints
 */

#include <linux/compiler.h>

#include "state.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* An event has gone to the ring at once. Under ready_lock. */
void __cold kevent_trace_hit(const struct kevent *ke, u32 ready)
{
	trace_kevent_ready(ke, ready, 1, true);
}
