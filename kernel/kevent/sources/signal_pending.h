/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Signals that are pending, for watches that consume
 */
#ifndef _KEVENT_SIGNAL_PENDING_H
#define _KEVENT_SIGNAL_PENDING_H

#include "signal_watch.h"

void ev_signal_tell(struct kevent_signal *ks, struct task_struct *t);
void ev_signal_take(struct kevent_signal *ks);
void ev_signal_consume(struct kevent_signal *ks, bool consume);
int ev_signal_collect(struct kevent *ke, bool atomic);
bool ev_signal_share(struct kevent_sent *sent);

#endif /* _KEVENT_SIGNAL_PENDING_H */
