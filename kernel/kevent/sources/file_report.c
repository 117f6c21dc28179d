// SPDX-License-Identifier: GPL-2.0
/*
 * Watches of files that can be polled: what a wake-up says to one of them
 *
 * A wake-up of an edge triggered watch may say all that the event has to say. Otherwise the
 * consumer that collects the event calls ->poll() of the file again:
 *
 * - if kevent_is_checked(): the watch is a level one or has LAST_CHECK, so its condition must hold
 *   at the delivery. A level watch that was delivered is polled by the next call, too.
 * - if the wake-up did not say what has become true;
 * - after MODIFY and READY, and if the event could not be copied.
 *
 * kevent_pass() in core/deliver.c polls under the lock where ev_poll_collect() can do that, and
 * kevent_look_unlocked() elsewhere.
 */

#include <linux/net.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../core/busy_poll.h"
#include "../core/lookup.h"
#include "../core/queue_ring.h"
#include "../core/report.h"
#include "../core/testpoint.h"
#include "../host.h"
#include "file_report.h"

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

/* Does anything say when all has arrived? */
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

/*
 * Has all that was written arrived? The socket exists, is one of kevent_sock_knows_empty(),
 * and has a watch of this in its wait queue.
 */
static bool kevent_sock_is_empty(struct socket *sock)
{
	const struct sock *sk = sock->sk;

	if (!sk || READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return false;
	return sk->sk_family == AF_UNIX ? unix_is_empty(sk) : tcp_look(sock);
}

/*
 * A wake-up of a watch that wants to know; the lock of the wait queue is held, interrupts
 * are off. All such watches get the event, whatever else they wait for: they take no turns.
 */
void kevent_wake_empty(struct kevent *ke, struct socket *sock, __poll_t key)
{
	if (key & EV_POLL_EMPTY)
		host_tcp_tell(sock);
	else if (!(key & EPOLLOUT) || sock->sk->sk_family != AF_UNIX ||
		 !unix_is_empty(sock->sk))
		return;
	kevent_ready_amount(ke, KEVENT_SOCKET_EMPTY, 0);
}

/* Masks of poll(), and conditions of a type */

/* Returns the conditions that a mask of poll() means for a watch. */
u32 ev_poll_events(struct kevent *ke, __poll_t mask)
{
	u32 events, wanted = READ_ONCE(ke->event);

	if (ke->type == KEVENT_POLL)
		return (__force u32)mask &
		       (wanted | (__force u32)EV_POLL_ALWAYS);
	events = ev_poll_key_events(ke, mask) & wanted;
	if (IS_ENABLED(CONFIG_NET) && wanted & KEVENT_SOCKET_EMPTY &&
	    ke->type == KEVENT_SOCKET &&
	    kevent_sock_is_empty(kevent_socket(to_poll(ke)->kf.file)))
		events |= KEVENT_SOCKET_EMPTY;
	if (events || mask & EV_POLL_ALWAYS)
		events |= (__force u32)(mask & (EV_POLL_ALWAYS | EPOLLRDHUP));
	return events;
}

/* Conditions that a peek says nothing of */
#define EV_POLL_UNSEEN	(EV_POLL_EVENTS & ~(EPOLLIN | EPOLLRDNORM |	\
					    EPOLLRDHUP | EV_POLL_ALWAYS))

static int ev_poll_peek_sock(struct kevent *ke, const struct socket *sock)
{
	int ret = host_sock_peek(sock);

	return ret > 0 ? ev_poll_events(ke, (__force __poll_t)ret) : ret;
}

/* host_pipe_peek() says whether there is data, or -EAGAIN. */
static int ev_poll_peek_pipe(struct kevent *ke,
			     const struct pipe_inode_info *pipe,
			     const struct file *file)
{
	int ret = host_pipe_peek(pipe, file->f_mode);

	if (likely(ke->type == KEVENT_PIPE) && ret > 0)
		return ke->event & KEVENT_SOCKET_RECV;
	return ret > 0 ? ev_poll_events(ke, (__force __poll_t)ret) : ret;
}

/* The same for a file that may be anything. Not in line: 8 instructions of an event */
static noinline int ev_poll_peek_any(struct kevent *ke, __poll_t keys,
				     struct file *file)
{
	struct socket *sock = kevent_socket(file);
	struct pipe_inode_info *pipe = sock ? NULL : host_pipe(file);

	/* The ->poll() of an eventfd reads a word. It takes no lock and arms nothing. */
	if (keys & EV_POLL_EXACT && !sock && !pipe)
		return ev_poll_events(ke, vfs_poll(file, NULL));
	if (keys & EV_POLL_UNSEEN)
		return -EAGAIN;
	if (sock)
		return ev_poll_peek_sock(ke, sock);
	return pipe ? ev_poll_peek_pipe(ke, pipe, file) : -EAGAIN;
}

/*
 * Read the state of a file without a lock, in place of ->poll(). The file exists, since its
 * end has to wait until the watch is dead. check() has found that SOCKET and PIPE watch a
 * socket or a pipe, and no file changes its kind. Returns the conditions that hold, or
 * -EAGAIN when only ->poll() knows them.
 */
int ev_poll_peek(struct kevent *ke)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	struct file *file = to_poll(ke)->kf.file;

	if (ke->type == KEVENT_POLL)
		return ev_poll_peek_any(ke, keys, file);
	if (keys & EV_POLL_UNSEEN)
		return -EAGAIN;
	if (ke->type == KEVENT_PIPE)
		return ev_poll_peek_pipe(ke, file->private_data, file);
	return ev_poll_peek_sock(ke, file->private_data);
}

/*
 * Read the amount of a socket without its lock: connections waiting, or bytes of a
 * TCP stream, otherwise 0. It is a hint, which may be old when it arrives.
 */
u32 ev_poll_sock_amount(struct sock *sk, u32 ready)
{
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return sk->sk_family == AF_UNIX ?
		       skb_queue_len_lockless(&sk->sk_receive_queue) :
		       READ_ONCE(sk->sk_ack_backlog);
	if (!(ready & KEVENT_SOCKET_RECV) || !sk_is_tcp(sk))
		return 0;
	/* Old sequence numbers make a wrong amount, nothing worse. */
	return max(data_race(tcp_inq(sk)), 0);
}

/*
 * ev_poll_sock_amount() for a SOCKET watch. The file exists, see kevent_hold(), and
 * ->release() is yet to come: it has to wait until the watch is dead. So the socket and its
 * sock exist too.
 */
u32 ev_poll_amount(struct kevent *ke, u32 ready)
{
	const struct socket *sock = to_poll(ke)->kf.file->private_data;

	if (!(ready & (KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT)))
		return 0;
	return sock->sk ? ev_poll_sock_amount(sock->sk, ready) : 0;
}

/* Wake-ups */

/* ev_poll_note_device() of a queue with busy polling */
void ev_poll_note_socket(struct kevent *ke, struct file *file)
{
	struct socket *sock = kevent_socket(file);

	if (sock && sock->sk)
		kevent_busy_note(&ke->queue->busy, sock->sk);
}

/*
 * Returns the conditions that a wake-up reports to a watch, with their *@amount, or 0 when
 * the file has to be polled. In line: @amount stays in a register, so the caller has no
 * stack protector.
 */
static __always_inline u32 ev_poll_says(struct kevent *ke, __poll_t key,
					u32 *amount)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	u32 events;

	/* The wake-up of the queue's pollers needs this flag, too: io_uring is behind the event. */
	if (key & EPOLL_URING_WAKE)
		WRITE_ONCE(ke->queue->poll_uring, 1);
	*amount = 0;
	if (!ev_poll_key_suffices(keys, key))
		return 0;
	events = ev_poll_key_events(ke, key);
	if (ke->type == KEVENT_SOCKET && keys & EV_POLL_EXTRA &&
	    kevent_may_store(ke->queue))
		*amount = ev_poll_amount(ke, events);
	return events;
}

/*
 * A wake-up is for a watch; the lock of the wait queue is held. A @key of 0 does not say
 * what has become true.
 */
void ev_poll_fire(struct kevent *ke, __poll_t key)
{
	__poll_t keys = (__force __poll_t)READ_ONCE(ke->keys);
	u32 events, amount;

	if (key && !(key & keys))
		return;
	kevent_testpoint(ke->queue, KEVENT_TESTPOINT_FIRE);
	ev_poll_note_device(ke, to_poll(ke)->kf.file);
	events = ev_poll_says(ke, key, &amount);
	if (events)
		kevent_ready_amount(ke, events, amount);
	/* A condition that becomes true after the peek has a wake-up of its own. */
	else if (key || ev_poll_peek(ke))
		kevent_recheck(ke);
}

/*
 * A wake-up is for a watch, which was seen to be interested in @wanted, in the place of
 * others; the lock of the wait queue is held. A @key of 0: some time ago they were true.
 * Returns false when others must have it too.
 */
bool ev_poll_offer(struct kevent *ke, __poll_t wanted, __poll_t key)
{
	u32 events, amount;

	ev_poll_note_device(ke, to_poll(ke)->kf.file);
	events = ev_poll_says(ke, key, &amount);
	if (!key && !ev_poll_peek(ke))
		return true;
	return kevent_offer(ke, (__force u16)wanted, events, amount);
}
