// SPDX-License-Identifier: GPL-2.0
/*
 * User marks: watches that KEVENT_CTL_READY makes ready
 */

#include <linux/init.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "kevent.h"

/**
 * struct kevent_user - a watch that user space marks ready
 * @kk:		the watch, found by its id
 * @marks:	marks since the last delivery, saturating; under ready_lock
 */
struct kevent_user {
	struct kevent_keyed	kk;
	u32			marks;
};

struct kmem_cache *kevent_user_cache;

static struct kevent_user *to_user(struct kevent *ke)
{
	return container_of(ke, struct kevent_user, kk.ke);
}

static int ev_user_check(const struct ukevent *uk, struct file *file)
{
	return 0;
}

static int ev_user_attach(struct kevent *ke, const struct ukevent *uk,
			  struct file *file)
{
	struct kevent_user *ku = to_user(ke);

	RB_CLEAR_NODE(&ku->kk.node);
	ku->kk.id = uk->id.raw_u64;
	return kevent_key_insert(&ku->kk);
}

static void ev_user_detach(struct kevent *ke)
{
	kevent_key_erase(&to_user(ke)->kk);
}

static struct kevent *ev_user_find(struct kevent_queue *q,
				   const struct ukevent *uk, struct file *file)
{
	return kevent_key_find(q, uk->type, uk->id.raw_u64);
}

static void ev_user_fill(struct kevent *ke, struct ukevent *uk, u32 nth)
{
	struct kevent_user *ku = to_user(ke);

	uk->id.raw_u64 = ku->kk.id;
	uk->ret_data[1] = ku->marks;
}

static void ev_user_delivered(struct kevent *ke)
{
	to_user(ke)->marks = 0;
}

/* A watch without event bits takes any, a request without means all. */
static int ev_user_mark(struct kevent *ke, const struct ukevent *uk)
{
	struct kevent_user *ku = to_user(ke);
	u32 mask = uk->event ?: ke->event;

	if (ke->event) {
		mask &= ke->event;
		if (!mask)
			return -EINVAL;
	}
	ke->ready |= mask;
	if (ku->marks != U32_MAX)
		ku->marks++;
	return 0;
}

const struct kevent_source_ops kevent_user_ops = {
	.name		= "user",
	.cache		= &kevent_user_cache,
	.check		= ev_user_check,
	.attach		= ev_user_attach,
	.detach		= ev_user_detach,
	.find		= ev_user_find,
	.fill		= ev_user_fill,
	.delivered	= ev_user_delivered,
	.mark		= ev_user_mark,
};

static int __init ev_user_init(void)
{
	BUILD_BUG_ON(offsetof(struct kevent_user, kk.ke));
	kevent_user_cache = KMEM_CACHE(kevent_user, SLAB_PANIC | SLAB_ACCOUNT);
	return 0;
}
core_initcall(ev_user_init);
