// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Chains that run beside the caller: what would block is for a serving thread
 */
#include <errno.h>

#include "libkevent.h"
#include "api/queue.h"
#include "call.h"

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
	return kevent_call_explain(fd, ret);
}
