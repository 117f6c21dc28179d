/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wait queues of watched files: callbacks, and who of several watches of a file
 * a wake-up is for
 */
#ifndef _KEVENT_FILE_WAIT_H
#define _KEVENT_FILE_WAIT_H

#include <linux/wait.h>

struct kevent_poll;
struct kevent_poll_more;
struct socket;

int ev_poll_wake(wait_queue_entry_t *wait, unsigned int mode, int sync,
		 void *key);
int ev_poll_wake_more(wait_queue_entry_t *wait, unsigned int mode, int sync,
		      void *key);
int kevent_turns_join(struct kevent_poll *kp, struct wait_queue_head *head,
		      struct socket *sock);
int kevent_turns_join_more(struct kevent_poll_more *more,
			   struct wait_queue_head *head);
void kevent_turns_leave(wait_queue_entry_t *wait, void **slot);
void kevent_turns_hand_on(struct kevent_poll *kp);

#endif /* _KEVENT_FILE_WAIT_H */
