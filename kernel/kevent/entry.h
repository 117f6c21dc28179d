/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the system calls do, given the file of a queue
 */
#ifndef _KEVENT_ENTRY_H
#define _KEVENT_ENTRY_H

#include <linux/time_types.h>
#include <linux/types.h>
#include <linux/ukevent.h>

struct file;
struct kevent_queue;

int kevent_start(void);
int kevent_do_init(struct kevent_ring __user *ring, u32 ring_size, u32 flags);
int kevent_do_get_events(struct file *file, u32 min_nr, u32 max_nr,
			 const struct __kernel_timespec __user *timeout,
			 struct ukevent __user *buf, u32 flags);
int kevent_do_wait(struct file *file, u32 num, u32 old_kidx,
		   const struct __kernel_timespec __user *timeout, u32 flags,
		   const struct kevent_wait_arg __user *uarg);
int kevent_do_commit(struct file *file, u64 uidx);
int kevent_do_ctl(struct file *file, u32 cmd, u32 num,
		  struct ukevent __user *arg);
int kevent_make_changes(struct kevent_queue *q,
			struct kevent_change __user *changes, u32 nr);
int kevent_check_ring(const struct file *file);

#endif /* _KEVENT_ENTRY_H */
