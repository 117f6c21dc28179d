// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Building of chains. Until its end is built, an entry's result has the names it
 * jumps to and the name of its own place: 16 bits each, one more than the name.
 */
#include <errno.h>
#include <string.h>

#include "libkevent.h"

struct names {
	__u16	place;
	__u16	on[3];
};

#define PLAIN_JUMP	0xffff	/* to the next entry */

static void fail(struct kevent_chain *c, int error)
{
	if (!c->error)
		c->error = error;
}

static struct names names_of(const struct kevent_call *call)
{
	struct names n;

	memcpy(&n, &call->result, sizeof(n));
	return n;
}

static void set_names(struct kevent_call *call, struct names n)
{
	memcpy(&call->result, &n, sizeof(n));
}

void kevent_chain_init(struct kevent_chain *c, struct kevent_call *calls,
		       __u32 max)
{
	*c = (struct kevent_chain){ .calls = calls, .max = max };
	if (!calls || !max)
		fail(c, -EINVAL);
}

struct kevent_call *kevent_chain_add(struct kevent_chain *c, __u32 nr, __u64 a,
				     __u64 b, __u64 d, __u64 e, __u64 f, __u64 g)
{
	const struct names n = {
		.place = (__u16)c->label, .on = { 0, PLAIN_JUMP, PLAIN_JUMP },
	};
	struct kevent_call *call = &c->calls[c->nr];

	if (c->nr == c->max || c->nr == KEVENT_CALL_MAX)
		fail(c, -ENOSPC);
	if (c->error)
		return NULL;
	*call = (struct kevent_call){
		.nr = nr, .args = { a, b, d, e, f, g },
	};
	set_names(call, n);
	c->label = 0;
	c->nr++;
	return call;
}

void kevent_chain_pass(struct kevent_chain *c, const struct kevent_call *from,
		       unsigned int arg)
{
	struct kevent_call *to = c->nr ? &c->calls[c->nr - 1] : NULL;

	if (c->error)
		return;
	if (arg >= 6 || from < c->calls || from >= to ||
	    to->nr == KEVENT_CALL_BOUND) {
		fail(c, -EINVAL);
		return;
	}
	to->flags |= (__u8)KEVENT_CALL_BACK(arg);
	to->args[arg] = (__u64)(to - from);
}

int kevent_bind(int fd, __u32 slot, const struct kevent_call *call)
{
	struct ukevent uk;
	int err;

	if (slot >= KEVENT_BOUND_MAX)
		return -EINVAL;
	kevent_set_bound(&uk, slot, call);
	err = kevent_ctl_one(fd, KEVENT_CTL_ADD, &uk);
	return err ? err : (int)slot;
}

struct kevent_call *kevent_chain_bound(struct kevent_chain *c, int slot,
				       const struct kevent_call *call)
{
	const __u64 *a = call->args;

	if (slot < 0)
		return kevent_chain_add(c, call->nr, a[0], a[1], a[2], a[3],
					a[4], a[5]);
	return kevent_chain_call(c, KEVENT_CALL_BOUND, slot, call);
}

void kevent_chain_jump(struct kevent_chain *c, unsigned int on,
		       unsigned int name)
{
	struct names n;
	int i;

	if (!c->nr || !on || on & ~KEVENT_ON_ANY || name >= KEVENT_CHAIN_NAMES)
		fail(c, -EINVAL);
	if (c->error)
		return;
	n = names_of(&c->calls[c->nr - 1]);
	for (i = 0; i < 3; i++) {
		if (on & 1U << i)
			n.on[i] = (__u16)(name + 1);
	}
	set_names(&c->calls[c->nr - 1], n);
}

void kevent_chain_label(struct kevent_chain *c, unsigned int name)
{
	if (name >= KEVENT_CHAIN_NAMES)
		fail(c, -EINVAL);
	else if (c->label)
		fail(c, -EEXIST);
	else
		c->label = name + 1;
}

/* How many entries forward a name is from entry @at */
static __u8 distance(struct kevent_chain *c, __u32 at, __u16 name)
{
	__u32 i;

	if (!name || name == PLAIN_JUMP)
		return !!name;
	for (i = at + 1; i < c->nr; i++) {
		if (names_of(&c->calls[i]).place == name)
			break;
	}
	if (i == c->nr && c->label != name)
		fail(c, -ENOENT);
	else if (i - at > 255)
		fail(c, -ERANGE);
	return (__u8)(i - at);
}

int kevent_chain_end(struct kevent_chain *c)
{
	struct kevent_call *call;
	struct names n;
	__u32 i;

	for (i = 0; i < c->nr && !c->error; i++) {
		call = &c->calls[i];
		n = names_of(call);
		call->on_error = distance(c, i, n.on[0]);
		call->on_zero = distance(c, i, n.on[1]);
		call->on_value = distance(c, i, n.on[2]);
		call->result = 0;
	}
	return c->error;
}
