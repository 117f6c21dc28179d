/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Chains: what other files of the library need
 */
#ifndef LIBKEVENT_CALL_PRIVATE_H
#define LIBKEVENT_CALL_PRIVATE_H

#include "libkevent.h"
#include "run.h"

#pragma GCC visibility push(hidden)

/* The meaning of an error of the kernel for chains beside the caller in the queue @fd */
int kevent_call_explain(int fd, int ret);

/* kevent_chain_finish() for the event of a watch */
int kevent_finish_watched(const struct kevent_chain *c);

/* The result of the entry that ended the chain of an event */
static inline __s64 kevent_call_result(const struct ukevent *ev)
{
	return (__s64)((__u64)ev->ret_data[1] << 32 | ev->ret_data[0]);
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_CALL_PRIVATE_H */
