// SPDX-License-Identifier: GPL-2.0
/*
 * The table of sources: the one file that names them all
 */

#include "core/source_ops.h"
#include "host.h"

const struct kevent_source_ops *const kevent_sources[KEVENT_NR_TYPES] = {
	[KEVENT_SOCKET]	= &kevent_socket_ops,
#ifdef CONFIG_KEVENT_INODE
	[KEVENT_INODE]	= &kevent_inode_ops,
#endif
#ifdef CONFIG_KEVENT_TIMER
	[KEVENT_TIMER]	= &kevent_timer_ops,
#endif
	[KEVENT_POLL]	= &kevent_poll_ops,
	[KEVENT_PIPE]	= &kevent_pipe_ops,
#ifdef CONFIG_KEVENT_SIGNAL
	[KEVENT_SIGNAL]	= &kevent_signal_ops,
#endif
#if defined(CONFIG_KEVENT_POSIX_TIMER) || HOST_DRIVES
	[KEVENT_POSIX_TIMER] = &kevent_posix_timer_ops,
#endif
#ifdef CONFIG_KEVENT_USER
	[KEVENT_USER]	= &kevent_user_ops,
#endif
#ifdef CONFIG_KEVENT_PROC
	[KEVENT_PROC]	= &kevent_proc_ops,
#endif
#if defined(CONFIG_KEVENT_FUTEX) || HOST_DRIVES
	[KEVENT_FUTEX]	= &kevent_futex_ops,
#endif
#if defined(CONFIG_KEVENT_AIO) || HOST_DRIVES
	[KEVENT_AIO]	= &kevent_aio_ops,
#endif
#ifdef CONFIG_KEVENT_AIO
	[KEVENT_BOUND]	= &kevent_bound_ops,
#endif
};
