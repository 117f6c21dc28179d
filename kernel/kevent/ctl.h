/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control: kevent_ctl(), and the changes kevent_wait() makes
 */
#ifndef _KEVENT_CTL_H
#define _KEVENT_CTL_H

#include <linux/types.h>
#include <linux/ukevent.h>

struct file;
struct kevent_queue;

int kevent_do_ctl(struct file *file, u32 cmd, u32 num,
		  struct ukevent __user *arg);
int kevent_make_changes(struct kevent_queue *q,
			struct kevent_change __user *changes, u32 nr);

#endif /* _KEVENT_CTL_H */
