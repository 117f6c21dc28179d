/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wait queues of watched files
 */
#ifndef _KEVENT_FILE_WAIT_H
#define _KEVENT_FILE_WAIT_H

#include "file_report.h"

struct socket;
struct ukevent;

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

#endif /* _KEVENT_FILE_WAIT_H */
