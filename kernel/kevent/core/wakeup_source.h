/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events that keep the system awake
 */
#ifndef _KEVENT_WAKEUP_SOURCE_H
#define _KEVENT_WAKEUP_SOURCE_H

#include "queue.h"

int kevent_awake_prepare(struct kevent_queue *q);
void kevent_awake_stop(struct kevent_queue *q);
void kevent_stay_awake(struct kevent_queue *q);
void kevent_awake_delivered(struct kevent_queue *q);

#endif /* _KEVENT_WAKEUP_SOURCE_H */
