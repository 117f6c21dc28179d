/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The right to use kevent, its sysctls, and the memory that users have the kernel keep. The cost
 * of a watch is in watch_memory.c.
 */
#ifndef _KEVENT_QUOTA_H
#define _KEVENT_QUOTA_H

#include <linux/types.h>
#include <linux/uidgid.h>

#include "../host.h"

/* fs.kevent.max_user_bytes */
extern long kevent_max_user_bytes;

/*
 * Charge a user for all that a program can have the kernel keep, besides descriptors:
 * watches, what they pin, and occurrences that are not delivered yet. Any context. Returns
 * false over the limit, which the program gets as -ENOSPC.
 */
static inline bool kevent_charge(struct kevent_owner *owner, size_t bytes)
{
	return host_owner_charge(owner, bytes, READ_ONCE(kevent_max_user_bytes));
}

/* Undo kevent_charge(). */
static inline void kevent_uncharge(struct kevent_owner *owner, size_t bytes)
{
	host_owner_uncharge(owner, bytes);
}

kuid_t kevent_owner_uid(void);
bool kevent_allowed(void);
bool kevent_call_allowed(void);
void kevent_quota_init(void);

#endif /* _KEVENT_QUOTA_H */
