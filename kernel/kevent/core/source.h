/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For sources: all that a source needs of the rest
 *
 * A source reports with kevent_ready(), kevent_recheck() and kevent_broken(), drops
 * what it reported with kevent_forget(), and learns what it may do from
 * kevent_is_dead() and its like. It knows neither the bits of a state nor the
 * ring.
 */
#ifndef _KEVENT_SOURCE_H
#define _KEVENT_SOURCE_H

#include "deadline.h"
#include "lookup.h"
#include "queue.h"
#include "quota.h"
#include "report.h"
#include "ring_mapping.h"
#include "source_ops.h"
#include "state.h"
#include "watch.h"

#endif /* _KEVENT_SOURCE_H */
