/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Short names that mean the same in all suites
 */
#ifndef SHORT_H
#define SHORT_H

#include <linux/ukevent.h>

/* What is watched */
#define RECV		KEVENT_SOCKET_RECV
#define SEND		KEVENT_SOCKET_SEND
#define IN		KEVENT_POLL_POLLIN
#define HUP		KEVENT_POLL_POLLHUP
#define ERR		KEVENT_POLL_POLLERR

/* How */
#define ET		KEVENT_REQ_ET
#define ONESHOT		KEVENT_REQ_ONESHOT
#define DISPATCH	KEVENT_REQ_DISPATCH
#define DISABLED	KEVENT_REQ_DISABLED
#define HAND_BACK	KEVENT_REQ_HAND_BACK
#define KEEP		KEVENT_REQ_KEEP_EACH

/* Of chains */
#define REFUSED		KEVENT_CALL_REFUSED
#define SUBMITTED	KEVENT_CALL_SUBMITTED
#define UNMADE		0x5a5a		/* a result that nobody has written */

#define PAGE		4096ul
#define NOBODY		65534
#define MAX_BYTES	"/proc/sys/fs/kevent/max_user_bytes"

#endif /* SHORT_H */
