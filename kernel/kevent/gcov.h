/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included first where CONFIG_KEVENT_GCOV counts code: functions of kevent that are
 * always inline have one set of counters, and not one in each caller
 */
#ifndef _KEVENT_GCOV_H
#define _KEVENT_GCOV_H

/* Functions of these headers stay always inline: some depend on it. */
#include <linux/fsnotify_backend.h>
#include <linux/kevent.h>
#include <linux/pipe_fs_i.h>
#include <linux/poll.h>
#include <linux/ptrace.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <net/busy_poll.h>
#include <net/sock.h>
#include <net/tcp.h>

#undef __always_inline
#define __always_inline inline

#endif /* _KEVENT_GCOV_H */
