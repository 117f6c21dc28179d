/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may use kevent, and the memory that users have the kernel keep
 */
#ifndef _KEVENT_QUOTA_H
#define _KEVENT_QUOTA_H

#include <linux/percpu_counter.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/types.h>

/* fs.kevent.max_user_bytes */
extern long kevent_max_user_bytes;

/* What a CPU may count for itself before it takes the lock of the counter */
#define KEVENT_CHARGE_BATCH	SZ_64K

/*
 * Charge a user for all that a program can have the kernel keep, besides descriptors:
 * watches, what they pin, and occurrences that are not delivered yet. Any context. Returns
 * false over the limit, which the program gets as -ENOSPC.
 */
static inline bool kevent_charge(struct user_struct *owner, size_t bytes)
{
	struct percpu_counter *sum = &owner->kevent_bytes;
	long limit = READ_ONCE(kevent_max_user_bytes);

#ifdef CONFIG_SMP
	return __percpu_counter_limited_add(sum, limit, bytes,
					    KEVENT_CHARGE_BATCH);
#else
	return percpu_counter_limited_add(sum, limit, bytes);
#endif
}

/* Undo kevent_charge(). */
static inline void kevent_uncharge(struct user_struct *owner, size_t bytes)
{
	percpu_counter_add_batch(&owner->kevent_bytes, -(s64)bytes,
				 KEVENT_CHARGE_BATCH);
}

bool kevent_allowed(void);
bool kevent_call_allowed(void);
void kevent_quota_init(void);

#endif /* _KEVENT_QUOTA_H */
