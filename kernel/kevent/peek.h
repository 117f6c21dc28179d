/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of sockets and pipes without a lock and without ->poll()
 */
#ifndef _KEVENT_PEEK_H
#define _KEVENT_PEEK_H

#include <linux/types.h>

struct pipe_inode_info;
struct socket;

int ev_peek_sock(const struct socket *sock);
int ev_peek_pipe(const struct pipe_inode_info *pipe, fmode_t mode);

#endif /* _KEVENT_PEEK_H */
