/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory that users have the kernel keep
 */
#ifndef _KEVENT_CHARGE_H
#define _KEVENT_CHARGE_H

#include <linux/types.h>

struct user_struct;

/* fs.kevent.max_user_bytes */
extern long kevent_max_user_bytes;

bool kevent_charge(struct user_struct *owner, size_t bytes);
void kevent_uncharge(struct user_struct *owner, size_t bytes);

#endif /* _KEVENT_CHARGE_H */
