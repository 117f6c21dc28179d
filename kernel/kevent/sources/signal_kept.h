/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Signals that watches keep until they are delivered
 */
#ifndef _KEVENT_SIGNAL_KEPT_H
#define _KEVENT_SIGNAL_KEPT_H

#include "signal_watch.h"

void ev_signal_destroy(struct kevent *ke);
u32 ev_signal_amount(struct kevent *ke, u32 ready);
void ev_signal_fill(struct kevent *ke, struct ukevent *uk);
void ev_signal_delivered(struct kevent *ke);
bool ev_signal_is_armed(const struct kevent_signal *ks);
int ev_signal_reserve(struct kevent_signal *ks,
		      const struct kevent_sent *sent);
void ev_signal_release(struct kevent_signal *ks);
void ev_signal_append(struct kevent_signal *ks,
		      const struct kevent_sent *sent, u64 nomask);
bool ev_signal_offer(struct kevent_signal *ks,
		     const struct kevent_sent *sent, bool consume);
void ev_signal_describe(struct kevent_sent *sent,
			const struct kernel_siginfo *si, bool timer);

#endif /* _KEVENT_SIGNAL_KEPT_H */
