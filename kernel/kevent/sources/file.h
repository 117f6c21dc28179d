/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watches of files that can be polled
 */
#ifndef _KEVENT_FILE_H
#define _KEVENT_FILE_H

#include <linux/bits.h>
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

#define EV_POLL_MORE	1UL

/*
 * Bits of kevent_poll.wait.flags, which the core leaves alone. Written under the
 * lock of the head. LAST_DATA, LAST_ROOM: of the watches of the file this one was
 * the last to get data, or room, in the place of others. SOCK: the head is that of
 * a &struct socket_wq. PENDING: conditions that this watch got in the place of others,
 * shifted.
 */
#define EV_POLL_LAST_DATA	BIT(31)
#define EV_POLL_LAST_ROOM	BIT(30)
#define EV_POLL_SOCK		BIT(29)
#define EV_POLL_PENDING_SHIFT	8
#define EV_POLL_PENDING		((__force u32)EV_POLL_EVENTS << EV_POLL_PENDING_SHIFT)

/* With none of these a watch just leaves its wait queue. */
#define EV_POLL_TIES	(EV_POLL_LAST_DATA | EV_POLL_LAST_ROOM |	\
			 EV_POLL_SOCK | EV_POLL_PENDING)

/* Conditions reported whether asked for or not */
#define EV_POLL_ALWAYS	(EPOLLERR | EPOLLHUP)

#define EV_POLL_EVENTS							\
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP |		\
	 EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND |	\
	 EPOLLMSG | EPOLLRDHUP)

/* What kevent_poll.wait.private says of further wait queues: the first one, or NULL */
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

/*
 * In kevent.keys: the keys of wake-ups have all there is to report, and the
 * wake-ups come with interrupts off. The keys of sockets, pipes and eventfds name
 * what has become true. Other files may not do that, or may need a ->poll() to arm
 * the next wake-up.
 */
#define EV_POLL_EXACT	((__force __poll_t)BIT(15))

/* In kevent.keys: there may be an amount to report, or a device queue to note */
#define EV_POLL_EXTRA	((__force __poll_t)BIT(11))

/* In kevent.keys, for good: the file is a queue or an epoll file */
#define EV_POLL_NESTING	((__force __poll_t)BIT(12))

/* In keys of SOCKET watches: KEVENT_SOCKET_EMPTY. In wake-ups: of TCP, for them */
#define EV_POLL_EMPTY	EPOLLMSG

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

static inline struct kevent_poll *to_poll(struct kevent *ke)
{
	return container_of(ke, struct kevent_poll, kf.ke);
}

/* What data and room mean to a watch */
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

/* file_report.c: what a wake-up says to one watch */
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

/* file_wait.c: wait queues, and which of several watches of a file a wake-up is for */
int ev_poll_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
		 void *key);
int ev_poll_wake_more(wait_queue_entry_t *wait, unsigned int mode, int sync,
		      void *key);
int file_wait_join(struct kevent_poll *kp, struct wait_queue_head *head,
		   struct socket *sock);
int file_wait_join_more(struct kevent_poll_more *more,
			struct wait_queue_head *head);
void file_wait_leave(wait_queue_entry_t *wait, void **slot);
int file_wait_hand_on(struct kevent *ke, const struct ukevent *uk);

/* file_nest.c, with CONFIG_EPOLL: queues and epoll files */
int kevent_nest_link(struct kevent_poll *kp, struct file *file);
void kevent_nest_unlink(struct kevent *ke);

#endif /* _KEVENT_FILE_H */
