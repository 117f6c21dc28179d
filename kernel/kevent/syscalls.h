/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The work of the system calls, given the file of a queue
 */
#ifndef _KEVENT_SYSCALLS_H
#define _KEVENT_SYSCALLS_H

#include <linux/types.h>
#include <linux/ukevent.h>

#include "core/deadline.h"

struct file;

int kevent_start(void);
int kevent_do_init(struct kevent_ring __user *ring, u32 ring_size, u32 flags);
int kevent_do_get_events(struct file *file, u32 min_nr, u32 max_nr,
			 struct kevent_timeout timeout, struct ukevent __user *buf);
int kevent_do_wait(struct file *file, u32 num, u32 old_kidx,
		   struct kevent_timeout timeout,
		   const struct kevent_wait_arg __user *uarg);
int kevent_do_commit(struct file *file, u64 uidx);
int kevent_check_ring(const struct file *file);

#endif /* _KEVENT_SYSCALLS_H */
