// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Chains that run beside the caller: what would block is for a serving thread
 */
#include <errno.h>
#include <stdbool.h>

#include "libkevent.h"
#include "fallback/fallback.h"
#include "call.h"
#include "queue.h"

/* What is an error of the entry: the caller may have a chain less, or another queue. */
static bool of_the_entry(int err)
{
	return err == -EEXIST || err == -ENOSPC || err == -ENOMEM ||
	       err == -EXDEV;
}

/* Leave the chain from entry @at on to a serving thread; those before it were made. */
static int hand_over(int fd, struct kevent_call *chain, __u32 nr, __u32 at,
		     __u64 cookie)
{
	struct ukevent uk;
	int err;

	kevent_set_aio(&uk, chain, nr, at, 0, cookie);
	err = kevent_ctl_one(fd, KEVENT_CTL_ADD, &uk);
	if (!err)
		return (int)KEVENT_CALL_SUBMITTED;
	if (!at && !of_the_entry(err))
		return err;
	chain[at].result = err;
	return (int)(at | KEVENT_CALL_REFUSED);
}

/*
 * The arguments are good, or the descriptor is no queue. A kernel that leaves no chains
 * to others does not know the flag, and one without kevent does not know descriptors.
 */
static int explained(int fd, int ret)
{
	int err;

	if (ret != -EINVAL && ret != -ENOSYS)
		return ret;
	err = kevent_ctl(fd, KEVENT_CTL_ADD, 0, NULL);
	return err ? err : -ENOSYS;
}

/*
 * Would somebody else, or an ordinary call, do what the kernel has refused to do here?
 * Handlers have run after -EINTR.
 */
static bool refused_here(const struct kevent_call *call)
{
	return call->result == -EOPNOTSUPP || call->result == -EINTR ||
	       (call->result == -ENOSYS && (call->nr == KEVENT_CALL_BOUND ||
					    kevent_call_allowed(call->nr)));
}

int kevent_call_async(int fd, struct kevent_call *chain, __u32 nr, __u64 cookie)
{
	__u32 at;
	int ret;

	if (kevent_fb_has(fd))
		return hand_over(fd, chain, nr, 0, cookie);
	ret = kevent_call_kernel(fd, chain, nr, KEVENT_CALL_ASYNC, cookie);
	if (ret == -EOPNOTSUPP)
		return hand_over(fd, chain, nr, 0, cookie);
	if (ret < 0)
		return explained(fd, ret);
	at = (__u32)ret & ~KEVENT_CALL_REFUSED;
	if (!((__u32)ret & KEVENT_CALL_REFUSED) || !refused_here(&chain[at]))
		return ret;
	return hand_over(fd, chain, nr, at, cookie);
}

int kevent_chain_submit(int fd, const struct kevent_chain *c, __u64 cookie)
{
	return kevent_call(fd, c->calls, c->nr, KEVENT_CALL_ASYNC, cookie);
}

static int finish_submitted(const struct kevent_chain *c, const struct ukevent *ev)
{
	__u32 at = (__u32)ev->id.raw_u64 & ~KEVENT_CALL_REFUSED;
	__s64 result = kevent_call_result(ev);

	if (at >= c->nr)
		return -EINVAL;
	if (!(ev->id.raw_u64 & KEVENT_CALL_REFUSED))
		return (int)at;
	if (result == -ECANCELED)
		return -ECANCELED;
	if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EXDEV)
		return kevent_call_rest(c->calls, at, c->nr);
	return (int)(at | KEVENT_CALL_REFUSED);
}

int kevent_chain_finish(const struct kevent_chain *c, const struct ukevent *ev)
{
	if (ev->type != KEVENT_POLL && ev->type != KEVENT_AIO)
		return -EINVAL;
	if (kevent_error(ev))
		return kevent_error(ev);
	return ev->type == KEVENT_POLL ? kevent_finish_watched(c) :
					 finish_submitted(c, ev);
}

int kevent_chain_cancel(int fd, __u64 cookie)
{
	struct ukevent uk;

	kevent_set_aio(&uk, NULL, 0, 0, 0, cookie);
	return kevent_ctl_one(fd, KEVENT_CTL_REMOVE, &uk);
}

int kevent_chain_serve(int fd, __u32 limit, const struct timespec *timeout)
{
	int ret;

	if (!limit || (timeout && !kevent_timespec_valid(timeout)))
		return -EINVAL;
	ret = kevent_wait(fd, limit, 0, timeout, KEVENT_FLAGS_SERVE, NULL);
	return explained(fd, ret);
}
