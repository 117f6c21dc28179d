// SPDX-License-Identifier: GPL-2.0
/*
 * What is known of sockets and pipes without a lock and without ->poll()
 */

#include <linux/fs.h>
#include <linux/net.h>
#include <linux/pipe_fs_i.h>
#include <linux/skbuff.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "peek.h"

/* States in which ->poll() of TCP does what it does when connected */
#define EV_PEEK_TCP							\
	(TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 |		\
	 TCPF_CLOSE_WAIT | TCPF_CLOSE)

/* Is there something to read? 1, 0, or negative when ->poll() has to be asked */
static __always_inline int ev_peek_tcp(const struct sock *sk,
				       unsigned char state)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!(BIT(state) & EV_PEEK_TCP))
		return -1;
	if (READ_ONCE(tp->rcv_nxt) == READ_ONCE(tp->copied_seq))
		return 0;
	return READ_ONCE(tp->urg_data) || READ_ONCE(sk->sk_rcvlowat) > 1 ? -1 :
									   1;
}

static __always_inline int ev_peek_unix(const struct sock *sk,
					unsigned char state)
{
	if (sk->sk_family != AF_UNIX || sk->sk_type != SOCK_STREAM ||
	    state != TCP_ESTABLISHED)
		return -1;
	return !skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/* Does something else decide what is readable, as with a sockmap? */
static bool ev_peek_is_layered(const struct sock *sk)
{
	return READ_ONCE(sk->sk_prot)->sock_is_readable;
}

/* What the ends of a stream that are shut down mean */
static int ev_peek_shutdown(unsigned char shutdown, unsigned char state)
{
	__poll_t mask = 0;

	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	return (__force int)mask;
}

/* Not TCP below TLS or the like, which have a ->poll() of their own */
static bool ev_peek_is_tcp(const struct socket *sock)
{
	return IS_ENABLED(CONFIG_INET) &&
	       READ_ONCE(sock->ops)->poll == tcp_poll;
}

/**
 * ev_peek_sock - what can be read, or accepted, and what has ended
 * @sock: a socket that exists, with its sock
 *
 * As tcp_poll() and unix_poll() say it. Any context.
 *
 * Return: conditions but those of writing, or negative when ->poll() has to be
 * asked.
 */
int ev_peek_sock(const struct socket *sock)
{
	struct sock *sk = sock->sk;
	unsigned char state = inet_sk_state_load(sk);
	unsigned char shutdown = READ_ONCE(sk->sk_shutdown);
	bool tcp = ev_peek_is_tcp(sock);
	int bytes;

	if (tcp && state == TCP_LISTEN)
		return (__force int)inet_csk_listen_poll(sk);
	bytes = tcp ? ev_peek_tcp(sk, state) : ev_peek_unix(sk, state);
	/* Pairs with tcp_reset(): the error comes before the end. */
	smp_rmb();
	if (bytes < 0 || READ_ONCE(sk->sk_err) || ev_peek_is_layered(sk) ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		return -1;
	return (bytes ? (__force int)(EPOLLIN | EPOLLRDNORM) : 0) |
	       ev_peek_shutdown(shutdown, state);
}

/**
 * ev_peek_pipe - is there data in a pipe?
 * @pipe: a pipe that exists
 * @mode: how the file is open
 *
 * As pipe_poll() says it. Any context.
 *
 * Return: conditions but those of writing, or negative when ->poll() has to be
 * asked.
 */
int ev_peek_pipe(const struct pipe_inode_info *pipe, fmode_t mode)
{
	unsigned int head;

	if (!(mode & FMODE_READ) || !READ_ONCE(pipe->writers))
		return -1;
	/* First, as F_SETPIPE_SZ moves both down */
	head = smp_load_acquire(&pipe->head);
	if (pipe_empty(head, READ_ONCE(pipe->tail)))
		return 0;
	return (__force int)(EPOLLIN | EPOLLRDNORM);
}
