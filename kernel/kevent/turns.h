/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the poll source share: watches in the wait queues of their
 * files, and who of them is told
 */
#ifndef _KEVENT_TURNS_H
#define _KEVENT_TURNS_H

#include <linux/poll.h>
#include <linux/wait.h>

#include "kevent.h"

struct pipe_inode_info;
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
 * lock of the head. Of the watches of a file this one was told of data last, or
 * of room; the head is that of a &struct socket_wq; and conditions this watch was
 * told while others were not, shifted.
 */
#define EV_POLL_LAST_DATA	BIT(31)
#define EV_POLL_LAST_ROOM	BIT(30)
#define EV_POLL_SOCK		BIT(29)
#define EV_POLL_OWED_SHIFT	8
#define EV_POLL_OWED		((__force u32)EV_POLL_EVENTS << EV_POLL_OWED_SHIFT)

/* With none of these a watch leaves without further ado. */
#define EV_POLL_TIES	(EV_POLL_LAST_DATA | EV_POLL_LAST_ROOM |	\
			 EV_POLL_SOCK | EV_POLL_OWED)

/* Conditions reported whether asked for or not */
#define EV_POLL_ALWAYS	(EPOLLERR | EPOLLHUP)

#define EV_POLL_EVENTS							\
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP |		\
	 EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND |	\
	 EPOLLMSG | EPOLLRDHUP)

static inline struct kevent_poll_more *ev_poll_more(const struct kevent_poll *kp)
{
	/* Pairs with ev_poll_tag(). */
	unsigned long private = (unsigned long)smp_load_acquire(&kp->wait.private);

	if (!(private & EV_POLL_MORE))
		return NULL;
	return (struct kevent_poll_more *)(private & ~EV_POLL_MORE);
}

/* Where the head of kp->wait is remembered; NULL there when it is gone. */
static inline void **ev_poll_head(struct kevent_poll *kp)
{
	struct kevent_poll_more *more = ev_poll_more(kp);

	return more ? &more->head : &kp->wait.private;
}

/* ev_poll.c */
int ev_poll_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
		 void *key);
int ev_poll_wake_more(wait_queue_entry_t *wait, unsigned int mode, int sync,
		      void *key);
void ev_poll_fire(struct kevent *ke, __poll_t key);
bool ev_poll_offer(struct kevent *ke, __poll_t wanted, __poll_t key);

/* ev_peek.c */
int ev_peek_sock(const struct socket *sock);
int ev_peek_pipe(const struct pipe_inode_info *pipe, fmode_t mode);

/* turns.c */
int kevent_turns_join(struct kevent_poll *kp, struct wait_queue_head *head,
		      struct socket *sock);
int kevent_turns_join_more(struct kevent_poll_more *more,
			   struct wait_queue_head *head);
void kevent_turns_wake(struct kevent_poll *kp, struct wait_queue_head *head,
		       __poll_t key);
void kevent_turns_leave(struct kevent_poll *kp, struct wait_queue_head *head);
void kevent_turns_hand_on(struct kevent_poll *kp);

#endif /* _KEVENT_TURNS_H */
