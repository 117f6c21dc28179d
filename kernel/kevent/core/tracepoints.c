// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints
 */

#include "queue.h"
#include "state.h"

#define CREATE_TRACE_POINTS
#include <trace/events/kevent.h>
