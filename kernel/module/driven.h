/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KEVENT_DRIVEN_H
#define _KEVENT_DRIVEN_H

struct kevent_queue;
struct ukevent;

int driven_ioctl(struct kevent_queue *q, const struct ukevent __user *arg);

#endif /* _KEVENT_DRIVEN_H */
