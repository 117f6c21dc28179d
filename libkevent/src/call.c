// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * kevent_call(), and chains by ordinary calls where the kernel runs none
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libkevent.h"
#include "fallback/fallback.h"
#include "call.h"

/* What kernel/kevent/call.c allows */
bool kevent_call_allowed(__u32 nr)
{
	switch (nr) {
#define ALLOW(name) case __NR_##name:
#include "call_list.h"
#undef ALLOW
		return true;
	default:
		return false;
	}
}

static long copy(const __u64 *args)
{
	__u64 bytes;

	if (!args[2] || args[2] > sizeof(bytes))
		return -EINVAL;
	memcpy(&bytes, (void *)(uintptr_t)args[1], (size_t)args[2]);
	memcpy((void *)(uintptr_t)args[0], &bytes, (size_t)args[2]);
	return (long)args[2];
}

/* The call behind a bound one, which is no bound one itself */
static const struct kevent_call *unfold(const struct kevent_call *call)
{
	const struct kevent_call *bound;

	if (call->nr != KEVENT_CALL_BOUND)
		return call;
	bound = (const struct kevent_call *)(uintptr_t)call->args[1];
	return bound && bound->nr < KEVENT_CALL_COPY ? bound : NULL;
}

/* Sets *@refused if the call is not made. */
static long make(const struct kevent_call *entry, bool *refused)
{
	const struct kevent_call *call = unfold(entry);
	const __u64 *a;

	*refused = entry->flags || !call;
	if (*refused)
		return -EINVAL;
	a = call->args;
	if (call->nr == KEVENT_CALL_COPY)
		return copy(a);
	*refused = !kevent_call_allowed(call->nr);
	if (*refused)
		return -ENOSYS;
	return kevent_call6((long)call->nr, (long)a[0], (long)a[1], (long)a[2],
			    (long)a[3], (long)a[4], (long)a[5]);
}

static __u32 jump(const struct kevent_call *call, long ret)
{
	if (ret < 0)
		return call->on_error;
	return ret ? call->on_value : call->on_zero;
}

/* The chain from entry @i on. As in the kernel, an entry is read once. */
int kevent_call_rest(struct kevent_call *chain, __u32 i, __u32 nr)
{
	struct kevent_call call;
	bool refused;
	__u32 step;
	long ret;

	for (;;) {
		memcpy(&call, &chain[i], sizeof(call));
		ret = make(&call, &refused);
		chain[i].result = ret;
		if (refused)
			return (int)(i | KEVENT_CALL_REFUSED);
		step = jump(&call, ret);
		if (!step || step >= nr - i)
			return (int)i;
		i += step;
	}
}

/* The rest of a chain for @fd, if that is a queue, or -1 */
static int rest_in(int fd, struct kevent_call *chain, __u32 at, __u32 nr)
{
	int err = fd < 0 ? 0 : kevent_ctl(fd, KEVENT_CTL_ADD, 0, NULL);

	return err ? err : kevent_call_rest(chain, at, nr);
}

static int check(int fd, const struct kevent_call *chain, __u32 nr, __u32 flags,
		 __u64 cookie)
{
	if (flags & ~KEVENT_CALL_ASYNC || !nr || nr > KEVENT_CALL_MAX)
		return -EINVAL;
	if (!flags && (fd < -1 || cookie))
		return -EINVAL;
	return (uintptr_t)chain % sizeof(__u64) ? -EINVAL : 0;
}

/*
 * -ENOSYS: no such kernel, or a filter. -EPERM: the sysctl, or a filter.
 * -EOPNOTSUPP: an architecture without chains.
 */
static bool missing(int ret)
{
	return ret == -ENOSYS || ret == -EPERM || ret == -EOPNOTSUPP;
}

/* Is an ordinary call made where the kernel has not made one? */
static bool made_here(const struct kevent_call *call)
{
	/* The kernel may know fewer calls than the library. */
	return call->result == -EOPNOTSUPP || call->result == -ENOSYS ||
	       (call->result == -EXDEV && call->nr == KEVENT_CALL_BOUND);
}

static int run(int fd, struct kevent_call *chain, __u32 nr)
{
	__u32 at = 0;
	int ret;

	/* Alone, a call is quicker without a chain. */
	if (nr == 1 && chain->nr < KEVENT_CALL_COPY && fd < 0)
		return kevent_call_rest(chain, 0, nr);
	if (kevent_fb_choose(0) == KEVENT_FB_ALWAYS || kevent_fb_has(fd))
		return rest_in(fd, chain, 0, nr);
	for (;;) {
		ret = kevent_call_kernel(fd, &chain[at], nr - at, 0, 0);
		/* A kernel without bound calls knows no queue here. */
		if (missing(ret) || (ret == -EINVAL && fd >= 0))
			return rest_in(fd, chain, at, nr);
		if (ret < 0)
			return ret;
		at += (__u32)ret & ~KEVENT_CALL_REFUSED;
		if (!((__u32)ret & KEVENT_CALL_REFUSED))
			return (int)at;
		if (made_here(&chain[at]))
			return kevent_call_rest(chain, at, nr);
		/* Handlers have run: go on where a signal came. */
		if (chain[at].result != -EINTR)
			return (int)(at | KEVENT_CALL_REFUSED);
	}
}

int kevent_call(int fd, struct kevent_call *chain, __u32 nr, __u32 flags,
		__u64 cookie)
{
	int ret = check(fd, chain, nr, flags, cookie);

	if (ret)
		return ret;
	return flags ? kevent_call_async(fd, chain, nr, cookie) :
		       run(fd, chain, nr);
}
