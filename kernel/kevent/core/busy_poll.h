/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Busy polling, of device queues too
 */
#ifndef _KEVENT_BUSY_POLL_H
#define _KEVENT_BUSY_POLL_H

#include <linux/types.h>

#include "../host.h"
#include "queue.h"
#include "wake.h"

struct kevent_consumer;
struct sock;

void kevent_busy_note_sock(struct kevent_busy *busy, const struct sock *sk);
void kevent_busy_wait_on(struct kevent_queue *q, const struct kevent_consumer *c);
long kevent_busy_ioctl(struct kevent_queue *q, unsigned int cmd,
		       unsigned long arg);

static inline bool kevent_busy_on(const struct kevent_busy *busy)
{
	return IS_ENABLED(CONFIG_NET_RX_BUSY_POLL) &&
	       (READ_ONCE(busy->usecs) || host_busy_poll());
}

/* Remember the device queue of a socket that became ready. */
static inline void kevent_busy_note(struct kevent_busy *busy,
				    const struct sock *sk)
{
	if (kevent_busy_on(busy))
		kevent_busy_note_sock(busy, sk);
}

/*
 * Busy polling before a consumer sleeps. Without a device queue the wait is for events from
 * anywhere, if the queue has a time set for that. A consumer that does not want the ring filled
 * sleeps: only on kevent_queue.sleepers it keeps wake-ups from storing its events there.
 */
static inline void kevent_busy_wait(struct kevent_queue *q,
				    const struct kevent_consumer *c)
{
	if (kevent_busy_on(&q->busy) && (kevent_wants_ring(c) || !q->ring.size))
		kevent_busy_wait_on(q, c);
}

#endif /* _KEVENT_BUSY_POLL_H */
