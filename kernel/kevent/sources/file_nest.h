/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queues and epoll files as sources of queues, with CONFIG_EPOLL or in the module
 */
#ifndef _KEVENT_FILE_NEST_H
#define _KEVENT_FILE_NEST_H

#include "file_report.h"

int kevent_nest_link(struct kevent_poll *kp, struct file *file);
void kevent_nest_unlink(struct kevent *ke);

#endif /* _KEVENT_FILE_NEST_H */
