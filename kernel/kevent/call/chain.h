/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains of system calls
 */
#ifndef _KEVENT_CHAIN_H
#define _KEVENT_CHAIN_H

#include <linux/types.h>
#include <linux/ukevent.h>

struct kevent_deadline;
struct kevent_queue;

/**
 * struct kevent_run - a chain, and how far it has come
 * @chain:	its entries, in user memory
 * @queue:	whose bound calls the chain may make; NULL: none. The caller of
 *		kevent_run_chain() has its file
 * @nr:		how many there are
 * @at:		the entry whose turn it is, or that ended the chain
 * @refused:	that call was not made
 * @result:	its result
 */
struct kevent_run {
	struct kevent_call __user *chain;
	struct kevent_queue	*queue;
	u32			nr;
	u32			at;
	bool			refused;
	s64			result;
};

int kevent_run_chain(struct kevent_run *run, bool nowait);
void kevent_run_settle(void);

/* workers.c and fixed.c, with CONFIG_KEVENT_AIO */
int kevent_aio_submit(struct kevent_queue *q, const struct kevent_run *run,
		      u64 cookie);
void kevent_crew_end(struct kevent_queue *q);
int kevent_serve(int fd, u32 limit, struct kevent_deadline *until);
void kevent_bound_drop(struct kevent_queue *q);

#endif /* _KEVENT_CHAIN_H */
