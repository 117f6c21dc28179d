/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains of system calls
 */
#ifndef _KEVENT_CHAIN_H
#define _KEVENT_CHAIN_H

#include <linux/types.h>
#include <linux/ukevent.h>

struct kevent_queue;

/**
 * struct kevent_run - a chain, and how far it has come
 * @chain:	its steps, in user memory
 * @queue:	whose bound calls the chain may make; NULL: none. The caller of
 *		kevent_run_chain() has its file
 * @nr:		how many there are
 * @at:		the step whose turn it is, or that ended the chain
 * @observed:	no call is to be made: somebody had to see those of who submitted it
 * @refused:	that call was not made
 * @result:	its result
 */
struct kevent_run {
	struct kevent_call __user *chain;
	struct kevent_queue	*queue;
	u32			nr;
	u32			at;
	bool			observed;
	bool			refused;
	s64			result;
};

int kevent_run_chain(struct kevent_run *run, bool nowait);
void kevent_run_settle(void);
bool kevent_call_observed(void);

#endif /* _KEVENT_CHAIN_H */
