// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * kevent_call(), and chains by ordinary calls where the kernel runs none
 */
#include <errno.h>
#include <stdbool.h>

#include "libkevent.h"
#include "api/device.h"
#include "api/init.h"
#include "fallback/fallback.h"
#include "call.h"

/* A chain for @fd, if that is a queue, or -1 */
static int rest_in(int fd, struct kevent_call *chain, __u32 nr)
{
	int err = fd < 0 ? 0 : kevent_ctl(fd, KEVENT_CTL_ADD, 0, NULL);

	return err ? err : kevent_call_rest(chain, 0, nr);
}

static int check(int fd, const struct kevent_call *chain, __u32 nr, __u32 flags,
		 __u64 cookie)
{
	if (!nr || nr > KEVENT_CALL_MAX)
		return -EINVAL;
	if (!flags && (fd < -1 || cookie))
		return -EINVAL;
	if ((uintptr_t)chain % sizeof(__u64))
		return -EINVAL;
	return chain ? 0 : -EFAULT;
}

/*
 * All that the call does not say of its arguments. -ENOSYS: no such kernel, or a filter.
 * -EPERM: the sysctl, or a filter, which may have other errors, too. -EOPNOTSUPP: an
 * architecture without chains.
 */
static bool missing(int ret)
{
	return ret < 0 && ret != -EINVAL && ret != -EFAULT && ret != -EBADF &&
	       ret != -EINTR && ret != -ENOMEM;
}

/* Is an ordinary call made where the kernel has not made one? */
static bool made_here(const struct kevent_call *call)
{
	/* The kernel may know fewer calls than the library. Handlers have run after EINTR. */
	return call->result == -EOPNOTSUPP || call->result == -ENOSYS ||
	       call->result == -EINTR ||
	       (call->result == -EXDEV && call->nr == KEVENT_CALL_BOUND);
}

/*
 * The rest of a chain when the kernel has returned @ret, and has not made all calls. Out of line:
 * mostly it has.
 */
__attribute__((noinline))
static int rest(int fd, struct kevent_call *chain, __u32 nr, __u64 cookie, int ret)
{
	int err = check(fd, chain, nr, 0, cookie);
	__u32 at;

	if (err)
		return err;
	/* A kernel without bound calls knows no queue here. */
	if (missing(ret) || (ret == -EINVAL && fd >= 0))
		return rest_in(fd, chain, nr);
	if (ret < 0)
		return ret;
	at = (__u32)ret & ~KEVENT_CALL_REFUSED;
	return made_here(&chain[at]) ? kevent_call_rest(chain, at, nr) : ret;
}

/* The kernel checks the arguments. */
__attribute__((noinline))
static int run(int fd, struct kevent_call *chain, __u32 nr, __u64 cookie)
{
	int ret = kevent_call_chain(fd, chain, nr, 0, cookie);

	return ret >= 0 && !((__u32)ret & KEVENT_CALL_REFUSED) ?
	       ret : rest(fd, chain, nr, cookie, ret);
}

/* Beside the caller */

/* Errors of the entry: the caller may have a chain less, or another queue. */
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
 * to others does not know the flag. Elsewhere the number is that of a queue again, which it
 * was not when the call was made.
 */
int kevent_call_explain(int fd, int ret)
{
	int err;

	if (ret != -EINVAL && ret != -ENOSYS)
		return ret;
	err = kevent_ctl(fd, KEVENT_CTL_ADD, 0, NULL);
	if (err)
		return err;
	return kevent_kernel_there() ? -ENOSYS : ret;
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

static int submit(int fd, struct kevent_call *chain, __u32 nr, __u64 cookie)
{
	int ret = check(fd, chain, nr, KEVENT_CALL_ASYNC, cookie);
	__u32 at;

	if (ret)
		return ret;
	if (!kevent_all_calls() && kevent_fb_has(fd))
		return hand_over(fd, chain, nr, 0, cookie);
	ret = kevent_kernel_there() ?
	      kevent_call_chain(fd, chain, nr, KEVENT_CALL_ASYNC, cookie) : -ENOSYS;
	if (ret == -EOPNOTSUPP || (ret == -ENOSYS && kevent_device_has(fd)))
		return hand_over(fd, chain, nr, 0, cookie);
	if (ret < 0)
		return kevent_call_explain(fd, ret);
	at = (__u32)ret & ~KEVENT_CALL_REFUSED;
	if (!((__u32)ret & KEVENT_CALL_REFUSED) || !refused_here(&chain[at]))
		return ret;
	return hand_over(fd, chain, nr, at, cookie);
}

__attribute__((noinline))
static int decide(int fd, struct kevent_call *chain, __u32 nr, __u32 flags,
		  __u64 cookie)
{
	int err;

	if (flags & ~KEVENT_CALL_ASYNC)
		return -EINVAL;
	if (flags)
		return submit(fd, chain, nr, cookie);
	/* Alone, a call is quicker without a chain. */
	if (nr == 1 && fd < 0 && (!chain || chain->nr < KEVENT_CALL_BOUND)) {
		err = check(fd, chain, nr, 0, cookie);
		return err ? err : kevent_call_rest(chain, 0, 1);
	}
	if (kevent_hosts(0) == KEVENT_HOST_EPOLL || kevent_fb_has(fd) ||
	    !kevent_kernel_there())
		return rest(fd, chain, nr, cookie, -ENOSYS);
	return run(fd, chain, nr, cookie);
}

int kevent_call(int fd, struct kevent_call *chain, __u32 nr, __u32 flags,
		__u64 cookie)
{
	/* Most chains: what follows is not to cost them anything. */
	if (!flags && nr > 1 && kevent_all_calls())
		return run(fd, chain, nr, cookie);
	return decide(fd, chain, nr, flags, cookie);
}
