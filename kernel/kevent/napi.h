/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Busy polling, of device queues too
 */
#ifndef _KEVENT_NAPI_H
#define _KEVENT_NAPI_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <net/busy_poll.h>

struct kevent_deadline;
struct kevent_news;
struct kevent_queue;
struct sock;

/**
 * struct kevent_napi - busy polling, as EPIOCSPARAMS sets it
 * @usecs:	how long, 0: not
 * @id:		of the device queue to poll, 0: none known
 * @budget:	packets at a time, 0: the default
 * @prefer:	leave interrupts of the device off meanwhile
 * @spinning:	consumers that look for events and would sleep else
 *
 * Read and written without a lock.
 */
struct kevent_napi {
	u32			usecs;
	u32			id;
	u16			budget;
	bool			prefer;
	atomic_t		spinning;
};

void kevent_napi_note_sock(struct kevent_napi *napi, const struct sock *sk);
void kevent_napi_poll(struct kevent_queue *q, const struct kevent_news *news,
		      const struct kevent_deadline *until);
long kevent_napi_ioctl(struct kevent_queue *q, unsigned int cmd,
		       unsigned long arg);

static inline bool kevent_napi_on(const struct kevent_napi *napi)
{
	return READ_ONCE(napi->usecs) || net_busy_loop_on();
}

/**
 * kevent_napi_note - remember the device queue of a socket that became ready
 * @napi: the queue's state
 * @sk: the socket
 */
static inline void kevent_napi_note(struct kevent_napi *napi,
				    const struct sock *sk)
{
	if (kevent_napi_on(napi))
		kevent_napi_note_sock(napi, sk);
}

#endif /* _KEVENT_NAPI_H */
