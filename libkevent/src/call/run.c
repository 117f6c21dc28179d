// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The calls of a chain as ordinary ones
 */
#include <errno.h>
#include <string.h>

#include "run.h"

/* What kernel/kevent/call/chain.c allows */
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
