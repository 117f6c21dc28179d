// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The sources, by type: the files below know them by this table alone
 */
#include "ops.h"

const struct fb_ops *const fb_sources[FB_NR_TYPES] = {
	[KEVENT_SOCKET]		= &fb_socket_ops,
	[KEVENT_INODE]		= &fb_inode_ops,
	[KEVENT_TIMER]		= &fb_timer_ops,
	[KEVENT_POLL]		= &fb_poll_ops,
	[KEVENT_AIO]		= &fb_aio_ops,
	[KEVENT_PIPE]		= &fb_pipe_ops,
	[KEVENT_SIGNAL]		= &fb_signal_ops,
	[KEVENT_POSIX_TIMER]	= &fb_posix_timer_ops,
	[KEVENT_USER]		= &fb_user_ops,
	[KEVENT_PROC]		= &fb_proc_ops,
	[KEVENT_FUTEX]		= &fb_futex_ops,
};
