/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reports of wake-ups to one watch of a file
 */
#ifndef _KEVENT_FILE_REPORT_H
#define _KEVENT_FILE_REPORT_H

#include "../core/busy_poll.h"
#include "../core/queue.h"
#include "file_watch.h"

struct sock;
struct socket;

u32 ev_poll_events(struct kevent *ke, __poll_t mask);
int ev_poll_peek(struct kevent *ke);
u32 ev_poll_sock_amount(struct sock *sk, u32 ready);
u32 ev_poll_amount(struct kevent *ke, u32 ready);
void ev_poll_note_socket(struct kevent *ke, struct file *file);
bool kevent_sock_knows_empty(const struct socket *sock);
void kevent_wake_empty(struct kevent *ke, struct socket *sock, __poll_t key);
void ev_poll_fire(struct kevent *ke, __poll_t key);
bool ev_poll_offer(struct kevent *ke, __poll_t wanted, __poll_t key);

/* A socket that becomes ready has a device queue to poll. */
static inline void ev_poll_note_device(struct kevent *ke, struct file *file)
{
	if (kevent_busy_on(&ke->queue->busy))
		ev_poll_note_socket(ke, file);
}

#endif /* _KEVENT_FILE_REPORT_H */
