/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For sources: all that an ev_*.c needs of the rest
 *
 * A source reports with kevent_ready(), kevent_look() and kevent_broken(), drops
 * what it reported with kevent_forget(), and learns what it may do from
 * kevent_is_dead() and its like. It knows neither the bits of a state nor the
 * ring.
 */
#ifndef _KEVENT_SOURCE_H
#define _KEVENT_SOURCE_H

#include "charge.h"
#include "deadline.h"
#include "find.h"
#include "fops.h"
#include "hit.h"
#include "mapping.h"
#include "ops.h"
#include "queue.h"
#include "state.h"
#include "watch.h"

#endif /* _KEVENT_SOURCE_H */
