/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets all of whose data has arrived
 */
#ifndef _KEVENT_FILE_SENT_H
#define _KEVENT_FILE_SENT_H

#include <linux/poll.h>

#include "../core/types.h"

struct socket;

/* In keys of SOCKET watches: KEVENT_SOCKET_EMPTY. In wake-ups: of TCP, for them */
#define EV_POLL_EMPTY	EPOLLMSG

static inline bool kevent_awaits_empty(const struct kevent *ke)
{
	return ke->type == KEVENT_SOCKET &&
	       (__force __poll_t)READ_ONCE(ke->keys) & EV_POLL_EMPTY;
}

#ifdef CONFIG_NET

bool kevent_sock_knows_empty(const struct socket *sock);
bool kevent_sock_is_empty(struct socket *sock);
void kevent_wake_empty(struct kevent *ke, struct socket *sock, __poll_t key);

#else

static inline bool kevent_sock_knows_empty(const struct socket *sock)
{
	return false;
}

static inline bool kevent_sock_is_empty(struct socket *sock)
{
	return false;
}

static inline void kevent_wake_empty(struct kevent *ke, struct socket *sock,
				     __poll_t key)
{
}

#endif /* CONFIG_NET */

#endif /* _KEVENT_FILE_SENT_H */
