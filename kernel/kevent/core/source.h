/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All that a source needs of the rest. It knows neither the bits of a state nor the ring.
 */
#ifndef _KEVENT_SOURCE_H
#define _KEVENT_SOURCE_H

#include "deadline.h"
#include "lookup.h"
#include "queue.h"
#include "queue_ring.h"
#include "quota.h"
#include "report.h"
#include "source_ops.h"
#include "state.h"
#include "watch.h"

#endif /* _KEVENT_SOURCE_H */
