/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A watch of a file that can be polled, its private bits, and what wake-ups report to it
 */
#ifndef _KEVENT_FILE_REPORT_H
#define _KEVENT_FILE_REPORT_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "../core/busy_poll.h"
#include "../core/queue.h"
#include "../core/types.h"

struct sock;
struct socket;

/**
 * struct kevent_poll - a watch of a file
 * @kf:		the watch
 * @wait:	in the file's wait queue. Its private member is the head, see
 *		ev_poll_head(); with a file that has more than one wait queue it
 *		is the first &struct kevent_poll_more, tagged
 */
struct kevent_poll {
	struct kevent_file	kf;
	wait_queue_entry_t	wait;
};

/**
 * struct kevent_poll_more - a further wait queue of a watched file
 * @kp:		the watch
 * @wait:	in the wait queue; its private member is the head
 * @head:	in the first element: the head of &kevent_poll.wait
 * @next:	next element
 * @rcu:	for the freeing
 */
struct kevent_poll_more {
	struct kevent_poll	*kp;
	wait_queue_entry_t	wait;
	void			*head;
	struct kevent_poll_more	*next;
	struct rcu_head		rcu;
};

/* Conditions reported whether asked for or not */
#define EV_POLL_ALWAYS	(EPOLLERR | EPOLLHUP)

#define EV_POLL_EVENTS							\
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP |		\
	 EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND |	\
	 EPOLLMSG | EPOLLRDHUP)

/*
 * The private bits of a watch: EV_POLL_
 *
 *	name		bit	set by				cleared by
 * In kevent.keys, beside conditions that wake-ups report:
 *	EXACT		15	ev_poll_keys()			ev_poll_keys()
 *	NESTING		12	ev_poll_keys()			never
 *	EXTRA		11	ev_poll_keys()			ev_poll_keys()
 *	EMPTY		10	ev_poll_keys()			ev_poll_keys()
 * In kevent_poll.wait.flags, beside those of wait queues:
 *	LAST_DATA	31	round_robin(), cut_ties()	round_robin()
 *	LAST_ROOM	30	round_robin(), cut_ties()	round_robin()
 *	SOCK		29	set_direct()			never
 *	PENDING		8-21	offer()				offer(), hand_on()
 *
 * attach() writes the keys before the watch is linked to its file, and MODIFY under ready_lock.
 * Wake-ups read them without it. The flags are written under the lock of the head, which
 * file_wait_hand_on() does not take to see that nothing is pending.
 *
 * EXACT: keys of wake-ups have all there is to report, and wake-ups come with interrupts off.
 * Wake-ups of sockets, pipes and eventfds name what has become true. Other files may not do that,
 * or may need a ->poll() to arm the next wake-up. NESTING: the file is a queue or an epoll file.
 * EXTRA: there may be an amount to report, or a device queue to note. EMPTY, of SOCKET: the watch
 * is for KEVENT_SOCKET_EMPTY; TCP wakes up with this key for it. POLL has EPOLLMSG there.
 *
 * LAST_DATA, LAST_ROOM: of the watches of the file this one was the last to get data, or room, in
 * the place of others; a watch that leaves passes it to a neighbour. SOCK: the head is that of a
 * &struct socket_wq. PENDING: conditions that this watch got in the place of others, shifted.
 */
#define EV_POLL_EXACT		((__force __poll_t)BIT(15))
#define EV_POLL_NESTING		((__force __poll_t)BIT(12))
#define EV_POLL_EXTRA		((__force __poll_t)BIT(11))
#define EV_POLL_EMPTY		EPOLLMSG

#define EV_POLL_LAST_DATA	BIT(31)
#define EV_POLL_LAST_ROOM	BIT(30)
#define EV_POLL_SOCK		BIT(29)
#define EV_POLL_PENDING_SHIFT	8
#define EV_POLL_PENDING		((__force u32)EV_POLL_EVENTS << EV_POLL_PENDING_SHIFT)

/* With none of these a watch just leaves its wait queue. */
#define EV_POLL_TIES	(EV_POLL_LAST_DATA | EV_POLL_LAST_ROOM |	\
			 EV_POLL_SOCK | EV_POLL_PENDING)

static_assert(!((__force u32)EV_POLL_EVENTS &
		(__force u32)(EV_POLL_EXACT | EV_POLL_NESTING | EV_POLL_EXTRA)));

/* In kevent_poll.wait.private: the pointer is to a &struct kevent_poll_more. */
#define EV_POLL_MORE	1UL

/* The first of further wait queues, from kevent_poll.wait.private; NULL: there is none. */
static inline struct kevent_poll_more *ev_poll_untag(void *private)
{
	return (unsigned long)private & EV_POLL_MORE ? private - EV_POLL_MORE :
						       NULL;
}

static inline struct kevent_poll_more *ev_poll_more(const struct kevent_poll *kp)
{
	/* Pairs with ev_poll_tag(). */
	return ev_poll_untag(smp_load_acquire(&kp->wait.private));
}

/* Where the head of kp->wait is remembered; NULL there when it is gone. */
static inline void **ev_poll_head(struct kevent_poll *kp)
{
	struct kevent_poll_more *more = ev_poll_more(kp);

	return more ? &more->head : &kp->wait.private;
}

/* Is the watch of one of the types that have a &struct kevent_poll? */
static inline bool kevent_is_poll(const struct kevent *ke)
{
	return ke->type == KEVENT_SOCKET || ke->type == KEVENT_PIPE ||
	       ke->type == KEVENT_POLL;
}

static inline bool kevent_awaits_empty(const struct kevent *ke)
{
	return IS_ENABLED(CONFIG_NET) && ke->type == KEVENT_SOCKET &&
	       (__force __poll_t)READ_ONCE(ke->keys) & EV_POLL_EMPTY;
}

#define to_poll(watch)	container_of(watch, struct kevent_poll, kf.ke)

/* Conditions that data and room mean for a watch */
static inline u32 ev_poll_key_events(const struct kevent *ke, __poll_t key)
{
	u32 events = 0;

	if (ke->type == KEVENT_POLL)
		return (__force u32)key;
	if (key & (EPOLLIN | EPOLLRDNORM))
		events |= KEVENT_SOCKET_RECV | KEVENT_SOCKET_ACCEPT;
	if (key & (EPOLLOUT | EPOLLWRNORM))
		events |= KEVENT_SOCKET_SEND;
	return events;
}

/* Does a key have all there is to report? */
static inline bool ev_poll_key_suffices(__poll_t keys, __poll_t key)
{
	return keys & EV_POLL_EXACT && key && !(key & EV_POLL_ALWAYS);
}

u32 ev_poll_events(struct kevent *ke, __poll_t mask);
int ev_poll_peek(struct kevent *ke);
u32 ev_poll_sock_amount(struct sock *sk, u32 ready);
u32 ev_poll_amount(struct kevent *ke, u32 ready);
void ev_poll_note_socket(struct kevent *ke, struct file *file);
bool kevent_sock_knows_empty(const struct socket *sock);
void kevent_wake_empty(struct kevent *ke, struct socket *sock, __poll_t key);
void ev_poll_fire(struct kevent *ke, __poll_t key);
bool ev_poll_offer(struct kevent *ke, __poll_t wanted, __poll_t key);

/* A socket that becomes ready has a device queue to poll. */
static inline void ev_poll_note_device(struct kevent *ke, struct file *file)
{
	if (kevent_busy_on(&ke->queue->busy))
		ev_poll_note_socket(ke, file);
}

#endif /* _KEVENT_FILE_REPORT_H */
