// SPDX-License-Identifier: GPL-2.0
/*
 * What can be told of sockets and pipes without a lock and without ->poll()
 */

#include <linux/fs.h>
#include <linux/net.h>
#include <linux/pipe_fs_i.h>
#include <linux/skbuff.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "kevent.h"

static int ev_peek_tcp(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (READ_ONCE(tp->rcv_nxt) == READ_ONCE(tp->copied_seq))
		return 0;
	return READ_ONCE(tp->urg_data) || READ_ONCE(sk->sk_rcvlowat) > 1 ? -1 :
									   1;
}

/**
 * ev_peek_sock - is there data, or a connection to accept?
 * @sk: a socket that exists
 *
 * As tcp_poll() and unix_poll() say it. Any context.
 *
 * Return: 1 or 0, or negative when ->poll() has to be asked.
 */
int ev_peek_sock(struct sock *sk)
{
	unsigned char state = READ_ONCE(sk->sk_state);

	if (READ_ONCE(sk->sk_shutdown) || READ_ONCE(sk->sk_err) ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		return -1;
	if (sk_is_tcp(sk) && state == TCP_LISTEN)
		return !!inet_csk_listen_poll(sk);
	if (state != TCP_ESTABLISHED || sk_is_readable(sk))
		return -1;
	if (sk_is_tcp(sk))
		return ev_peek_tcp(sk);
	if (sk->sk_family != AF_UNIX || sk->sk_type != SOCK_STREAM)
		return -1;
	return !skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/**
 * ev_peek_pipe - is there data in a pipe?
 * @file: an end of it that exists
 *
 * As pipe_poll() says it. Any context.
 *
 * Return: 1 or 0, or negative when ->poll() has to be asked.
 */
int ev_peek_pipe(const struct file *file)
{
	const struct pipe_inode_info *pipe = file->private_data;

	if (!(file->f_mode & FMODE_READ) || !READ_ONCE(pipe->writers))
		return -1;
	return !pipe_empty(READ_ONCE(pipe->head), READ_ONCE(pipe->tail));
}
