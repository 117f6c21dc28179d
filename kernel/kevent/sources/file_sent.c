// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets all of whose data has arrived: KEVENT_SOCKET_EMPTY
 *
 * TCP: all that was written is acknowledged. tcp_check_empty() says when, to
 * sockets with SOCK_TELL_EMPTY. It clears the bit, and the callbacks of watches
 * set it again: so it goes with the last watch.
 *
 * AF_UNIX: the receiver has freed all. It wakes the sender each time it frees
 * some, as long as there is room, and then the callback looks.
 */

#include <linux/net.h>
#include <linux/skbuff.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../core/report.h"
#include "../host.h"
#include "file_sent.h"

/**
 * kevent_sock_knows_empty - does anything say when all has arrived?
 * @sock: the socket
 */
bool kevent_sock_knows_empty(const struct socket *sock)
{
	const struct sock *sk = sock->sk;

	return sk && (sk->sk_family == AF_UNIX ||
		      (HOST_TCP_TELLS && sk_is_tcp(sk)));
}

/*
 * Writers move one end and acknowledgements the other. If they look equal in this
 * order, they were when the second one was read.
 */
static bool tcp_is_empty(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 una = READ_ONCE(tp->snd_una);

	/* Orders the loads, see above. */
	smp_rmb();
	return una == READ_ONCE(tp->write_seq);
}

/* Look, and have TCP tell when that changes from false to true. */
static bool tcp_look(struct socket *sock)
{
	const struct sock *sk = sock->sk;

	host_tcp_tell(sock);
	/* Pairs with tcp_check_space(). */
	smp_mb__after_atomic();
	if (tcp_is_empty(sk))
		return true;
	host_tcp_tell_next(sock);
	/* Pairs with tcp_check_space(). */
	smp_mb__after_atomic();
	return tcp_is_empty(sk);
}

/*
 * sock_wfree() keeps one byte while it wakes the sender. So some tasks may free
 * at once, and each finds the socket empty.
 */
static bool unix_is_empty(const struct sock *sk)
{
	return refcount_read(&sk->sk_wmem_alloc) < SKB_TRUESIZE(0);
}

/**
 * kevent_sock_is_empty - has all that was written arrived?
 * @sock: a socket that exists, of kevent_sock_knows_empty(), with a watch of
 *	  this in its wait queue
 */
bool kevent_sock_is_empty(struct socket *sock)
{
	const struct sock *sk = sock->sk;

	if (!sk || READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return false;
	return sk->sk_family == AF_UNIX ? unix_is_empty(sk) : tcp_look(sock);
}

/**
 * kevent_wake_empty - a wake-up of a watch that wants to know
 * @ke: the watch; the lock of the wait queue is held, interrupts are off
 * @sock: the socket
 * @key: what has become true
 *
 * All such watches get the event, whatever else they wait for: they take no turns.
 */
void kevent_wake_empty(struct kevent *ke, struct socket *sock, __poll_t key)
{
	if (key & EV_POLL_EMPTY)
		host_tcp_tell(sock);
	else if (!(key & EPOLLOUT) || sock->sk->sk_family != AF_UNIX ||
		 !unix_is_empty(sock->sk))
		return;
	kevent_ready_amount(ke, KEVENT_SOCKET_EMPTY, 0, 0);
}
