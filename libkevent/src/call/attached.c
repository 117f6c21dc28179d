// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Chains that run when a file is ready: the queue watches the file, and who takes its
 * event runs the chain
 */
#include <errno.h>
#include <stdint.h>

#include "libkevent.h"
#include "call.h"

static int check(const struct kevent_chain *c, __u32 req_flags)
{
	if (!c->nr || c->nr > KEVENT_CALL_MAX || c->error ||
	    (uintptr_t)c->calls % sizeof(__u64))
		return -EINVAL;
	/* ADD would hand back an event that nobody runs the chain for. */
	return req_flags & KEVENT_REQ_HAND_BACK ? -EINVAL : 0;
}

int kevent_chain_watch(int queue, const struct kevent_chain *c, int fd,
		       __u32 event, __u32 req_flags, __u64 cookie)
{
	int err = check(c, req_flags);
	struct ukevent uk;

	if (err)
		return err;
	kevent_set_poll(&uk, fd, event, req_flags | KEVENT_REQ_LAST_CHECK,
			cookie);
	return kevent_ctl_one(queue, KEVENT_CTL_ADD, &uk);
}

/* In the kernel if it likes; nobody has the bound calls. */
static int run(const struct kevent_chain *c)
{
	int ret = kevent_chain_run(c);
	__u32 at = (__u32)ret & ~KEVENT_CALL_REFUSED;

	if (ret < 0 || !((__u32)ret & KEVENT_CALL_REFUSED) ||
	    c->calls[at].nr != KEVENT_CALL_BOUND)
		return ret;
	return kevent_call_rest(c->calls, at, c->nr);
}

/* -EAGAIN of the first call ends the chain, wherever it would jump. */
int kevent_finish_watched(const struct kevent_chain *c)
{
	struct kevent_call *first = c->calls;
	__u8 on_error;
	__u32 next;
	int ret;

	if (!c->nr || c->error)
		return -EINVAL;
	on_error = first->on_error;
	first->on_error = 0;
	ret = run(c);
	first->on_error = on_error;
	if (ret || first->result >= 0)
		return ret;
	if (first->result == -EAGAIN)
		return -EAGAIN;
	next = kevent_call_behind(first, 0, c->nr, first, (long)first->result);
	return next < c->nr ? kevent_call_rest(first, next, c->nr) : 0;
}
