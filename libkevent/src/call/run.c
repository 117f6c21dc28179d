// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The calls of a chain as ordinary ones
 */
#include <errno.h>
#include <string.h>

#include "run.h"

/* The calls that kernel/kevent/call/chain.c allows */
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

/* The call behind a bound one, which is no bound one itself */
static const struct kevent_call *unfold(const struct kevent_call *call)
{
	const struct kevent_call *bound;

	if (call->nr != KEVENT_CALL_BOUND)
		return call;
	bound = (const struct kevent_call *)(uintptr_t)call->args[1];
	return bound && bound->nr < KEVENT_CALL_BOUND ? bound : NULL;
}

/*
 * Makes arguments of the results that the entry @i takes. Returns 0, or the error that is
 * its result; *@refused: there is no such entry.
 */
static long take(struct kevent_call *call, const struct kevent_call *chain,
		 __u32 i, bool *refused)
{
	unsigned int n;

	*refused = call->flags >> 6 || !kevent_call_allowed(call->nr);
	for (n = 0; n < 6 && !*refused; n++) {
		if (!(call->flags & KEVENT_CALL_BACK(n)))
			continue;
		*refused = !call->args[n] || call->args[n] > i;
		if (*refused)
			break;
		call->args[n] = (__u64)chain[i - call->args[n]].result;
		if ((__s64)call->args[n] < 0)
			return (long)call->args[n];
	}
	return *refused ? -EINVAL : 0;
}

/* Makes the call of the entry @i. Sets *@refused if it does not. */
static long make(struct kevent_call *entry, const struct kevent_call *chain,
		 __u32 i, bool *refused)
{
	long ret = entry->flags ? take(entry, chain, i, refused) : 0;
	const struct kevent_call *call;
	const __u64 *a;

	if (ret)
		return ret;
	call = unfold(entry);
	*refused = !call || !kevent_call_allowed(call->nr);
	if (*refused)
		return call ? -ENOSYS : -EINVAL;
	a = call->args;
	return kevent_call6((long)call->nr, (long)a[0], (long)a[1], (long)a[2],
			    (long)a[3], (long)a[4], (long)a[5]);
}

__u32 kevent_call_behind(struct kevent_call *chain, __u32 i, __u32 nr,
			 const struct kevent_call *call, long ret)
{
	__u32 step = ret < 0 ? call->on_error :
		     ret ? call->on_value : call->on_zero;
	const __u32 next = i + step;

	if (!step || step >= nr - i)
		return nr;
	while (++i < next)
		chain[i].result = -ECANCELED;
	return next;
}

/* The chain from entry @i on. As in the kernel, an entry is read once. */
int kevent_call_rest(struct kevent_call *chain, __u32 i, __u32 nr)
{
	struct kevent_call call;
	bool refused;
	__u32 next;
	long ret;

	for (;;) {
		memcpy(&call, &chain[i], sizeof(call));
		ret = make(&call, chain, i, &refused);
		chain[i].result = ret;
		if (refused)
			return (int)(i | KEVENT_CALL_REFUSED);
		next = kevent_call_behind(chain, i, nr, &call, ret);
		if (next == nr)
			return (int)i;
		i = next;
	}
}
