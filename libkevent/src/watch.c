// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Chains that run when a file is ready
 */
#include <errno.h>
#include <stdbool.h>

#include "libkevent.h"
#include "call.h"

static int check(const struct kevent_chain *c, __u32 req_flags)
{
	if (!c->nr || c->nr > KEVENT_CALL_MAX || c->error ||
	    (uintptr_t)c->calls % sizeof(__u64))
		return -EINVAL;
	/* The kernel refuses it for a chain, not for a file. */
	return req_flags & KEVENT_REQ_HAND_BACK ? -EINVAL : 0;
}

int kevent_chain_watch(int queue, const struct kevent_chain *c, int fd,
		       __u32 event, __u32 req_flags, __u64 cookie)
{
	int err = check(c, req_flags);
	struct ukevent uk;

	if (err)
		return err;
	kevent_set_chain(&uk, fd, event, c->calls, c->nr, req_flags, cookie);
	err = kevent_ctl_one(queue, KEVENT_CTL_ADD, &uk);
	/* A kernel that does not know the type, or was built without chains */
	if (err != -EINVAL && err != -ENOSYS)
		return err ? err : (int)KEVENT_CHAIN;
	kevent_set_poll(&uk, fd, event, req_flags | KEVENT_REQ_LAST_CHECK,
			cookie);
	err = kevent_ctl_one(queue, KEVENT_CTL_ADD, &uk);
	return err ? err : (int)KEVENT_POLL;
}

/* The chain from entry @at on, in the kernel if it likes; nobody has the bound calls. */
static int run_from(const struct kevent_chain *c, __u32 at)
{
	int ret = kevent_call(-1, &c->calls[at], c->nr - at, 0, 0);

	if (ret < 0)
		return ret;
	at += (__u32)ret & ~KEVENT_CALL_REFUSED;
	if (!((__u32)ret & KEVENT_CALL_REFUSED))
		return (int)at;
	if (c->calls[at].nr == KEVENT_CALL_BOUND)
		return kevent_call_rest(c->calls, at, c->nr);
	return (int)(at | KEVENT_CALL_REFUSED);
}

static int go_on(const struct kevent_chain *c, __u32 at, bool ordinary)
{
	return ordinary ? kevent_call_rest(c->calls, at, c->nr) : run_from(c, at);
}

/* As in the kernel, -EAGAIN of the first call ends the chain, wherever it would jump. */
static int go_from_the_first(const struct kevent_chain *c, bool ordinary)
{
	struct kevent_call *first = c->calls;
	__u8 on_error = first->on_error;
	int ret;

	first->on_error = 0;
	ret = go_on(c, 0, ordinary);
	first->on_error = on_error;
	if (ret || first->result >= 0)
		return ret;
	if (first->result == -EAGAIN)
		return -EAGAIN;
	return on_error && on_error < c->nr ? go_on(c, on_error, ordinary) : 0;
}

static int finish(const struct kevent_chain *c, __u32 at, bool ordinary)
{
	return at ? go_on(c, at, ordinary) : go_from_the_first(c, ordinary);
}

/* The kernel refused to make a call: is it for the caller? Handlers have run. */
static bool ours(__s64 why)
{
	return why == -EOPNOTSUPP || why == -ENOSYS || why == -EXDEV ||
	       why == -EPERM || why == -EINTR;
}

int kevent_finish_watched(const struct kevent_chain *c, const struct ukevent *ev)
{
	__u32 at = ev->id.raw[1] & ~KEVENT_CALL_REFUSED;
	__s64 result = kevent_call_result(ev);

	if (ev->type == KEVENT_POLL)
		return finish(c, 0, false);
	if (at >= c->nr)
		return -EINVAL;
	if (!(ev->id.raw[1] & KEVENT_CALL_REFUSED))
		return (int)at;
	if (ours(result))
		return finish(c, at, result != -EINTR);
	return (int)(at | KEVENT_CALL_REFUSED);
}
