/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file a queue's descriptor refers to
 */
#ifndef _KEVENT_FOPS_H
#define _KEVENT_FOPS_H

#include <linux/fs.h>

extern const struct file_operations kevent_fops;

#endif /* _KEVENT_FOPS_H */
