/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How watches are found, and what they watch is pinned
 */
#ifndef _KEVENT_FIND_H
#define _KEVENT_FIND_H

#include <linux/fs.h>
#include <linux/net.h>
#include <linux/ukevent.h>

#include "kevent.h"

/*
 * Watches of one user on one file. Bounds the walks of its list, which is locked with
 * interrupts on, by the users that have it open. For wake-ups see turns.c.
 */
#define KEVENT_MAX_PER_FILE	1000

struct kevent_queue;

int kevent_link(struct kevent *ke, struct file *file);
void kevent_unlink(struct kevent *ke);
struct kevent *kevent_find(struct kevent_queue *q, const struct ukevent *uk,
			   struct file *file);
bool kevent_is_there(struct kevent_queue *q, const struct ukevent *uk,
		     struct file *file);
bool kevent_is_current(const struct kevent *ke);
void kevent_hold(struct kevent *ke);
void kevent_unhold(struct kevent *ke);

static inline struct kevent_file *to_kevent_file(const struct kevent *ke)
{
	return container_of(ke, struct kevent_file, ke);
}

static inline struct kevent_keyed *to_kevent_keyed(const struct kevent *ke)
{
	return container_of(ke, struct kevent_keyed, ke);
}

/* The socket of a file, NULL if it is none */
static inline struct socket *kevent_socket(struct file *file)
{
	return IS_ENABLED(CONFIG_NET) ? sock_from_file(file) : NULL;
}

#endif /* _KEVENT_FIND_H */
