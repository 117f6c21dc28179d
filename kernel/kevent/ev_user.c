// SPDX-License-Identifier: GPL-2.0
/*
 * User marks: watches that KEVENT_CTL_READY makes ready
 */

#include <linux/init.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wordpart.h>

#include "kevent.h"

/* Events a watch keeps at most with KEVENT_REQ_KEEP_EACH */
#define KEVENT_USER_MAX_KEPT	65536U

/**
 * struct kevent_user_mark - one event to come
 * @next:	the next younger one
 * @data:	what the caller gave along; of merged marks their number
 * @bits:	conditions marked
 */
struct kevent_user_mark {
	struct kevent_user_mark	*next;
	u64			data;
	u32			bits;
};

/**
 * struct kevent_user - a watch that user space marks ready
 * @kk:		the watch, found by its id
 * @oldest:	events to come; under ready_lock, like all the rest
 * @end:	where the next one is linked
 * @nr:		how many there are
 * @keep_each:	each mark is an event of its own
 * @merged:	the event of all marks that are not; in the list while its
 *		number of marks is not 0
 */
struct kevent_user {
	struct kevent_keyed	kk;
	struct kevent_user_mark	*oldest;
	struct kevent_user_mark	**end;
	u32			nr;
	bool			keep_each;
	struct kevent_user_mark	merged;
};

struct kmem_cache *kevent_user_cache;

static struct kevent_user *to_user(struct kevent *ke)
{
	return container_of(ke, struct kevent_user, kk.ke);
}

static void ev_user_append(struct kevent_user *ku, struct kevent_user_mark *m)
{
	m->next = NULL;
	*ku->end = m;
	ku->end = &m->next;
	ku->nr++;
}

static void ev_user_drop_oldest(struct kevent_user *ku)
{
	struct kevent_user_mark *m = ku->oldest;

	ku->oldest = m->next;
	if (!ku->oldest)
		ku->end = &ku->oldest;
	ku->nr--;
	if (m == &ku->merged)
		*m = (struct kevent_user_mark) {};
	else
		kfree(m);
}

static int ev_user_check(const struct ukevent *uk, struct file *file)
{
	/* A mark of ADD or MODIFY brings no data. */
	if (uk->req_flags & KEVENT_REQ_KEEP_EACH &&
	    uk->req_flags & KEVENT_REQ_READY)
		return -EINVAL;
	return 0;
}

static void ev_user_modified(struct kevent *ke, const struct ukevent *uk)
{
	to_user(ke)->keep_each = uk->req_flags & KEVENT_REQ_KEEP_EACH;
}

static int ev_user_attach(struct kevent *ke, const struct ukevent *uk,
			  struct file *file)
{
	struct kevent_user *ku = to_user(ke);

	ku->end = &ku->oldest;
	ev_user_modified(ke, uk);
	RB_CLEAR_NODE(&ku->kk.node);
	ku->kk.id = uk->id.raw_u64;
	return kevent_key_insert(&ku->kk);
}

static void ev_user_detach(struct kevent *ke)
{
	kevent_key_erase(&to_user(ke)->kk);
}

static void ev_user_destroy(struct kevent *ke)
{
	struct kevent_user *ku = to_user(ke);

	while (ku->nr) {
		ev_user_drop_oldest(ku);
		cond_resched();
	}
}

static struct kevent *ev_user_find(struct kevent_queue *q,
				   const struct ukevent *uk, struct file *file)
{
	return kevent_key_find(q, uk->type, uk->id.raw_u64);
}

static u32 ev_user_count(struct kevent *ke)
{
	return to_user(ke)->nr;
}

static void ev_user_fill(struct kevent *ke, struct ukevent *uk, u32 nth)
{
	struct kevent_user *ku = to_user(ke);
	struct kevent_user_mark *m = ku->oldest;

	uk->id.raw_u64 = ku->kk.id;
	if (ku->keep_each)
		uk->req_flags |= KEVENT_REQ_KEEP_EACH;
	while (m && nth--)
		m = m->next;
	if (m == &ku->merged) {
		uk->ret_data[0] = m->bits;
		uk->ret_data[1] = min_t(u64, m->data, U32_MAX);
	} else if (m) {
		uk->event = m->bits;
		uk->ret_data[0] = lower_32_bits(m->data);
		uk->ret_data[1] = upper_32_bits(m->data);
	}
}

static void ev_user_delivered(struct kevent *ke)
{
	ev_user_drop_oldest(to_user(ke));
}

static void *ev_user_room(void)
{
	/* A full memory cgroup is an error of the entry, not a reason to kill. */
	return kmalloc(sizeof(struct kevent_user_mark),
		       GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL);
}

static int ev_user_keep(struct kevent_user *ku, u32 bits, u64 data,
			void **room)
{
	struct kevent_user_mark *m = *room;

	if (ku->nr >= KEVENT_USER_MAX_KEPT)
		return -EAGAIN;
	if (!m)
		return -ENOBUFS;
	*room = NULL;
	m->bits = bits;
	m->data = data;
	ev_user_append(ku, m);
	return 0;
}

static void ev_user_merge(struct kevent_user *ku, u32 bits)
{
	if (!ku->merged.data++)
		ev_user_append(ku, &ku->merged);
	ku->merged.bits |= bits;
}

/* A watch without event bits takes any, a request without means all. */
static int ev_user_mark(struct kevent *ke, const struct ukevent *uk,
			void **room)
{
	struct kevent_user *ku = to_user(ke);
	u32 mask = uk->event ?: ke->event;
	int err = 0;

	if (ke->event) {
		mask &= ke->event;
		if (!mask)
			return -EINVAL;
	}
	if (ku->keep_each)
		err = ev_user_keep(ku, mask, (u64)uk->ret_data[1] << 32 |
				   uk->ret_data[0], room);
	else
		ev_user_merge(ku, mask);
	if (!err)
		ke->ready |= mask;
	return err;
}

const struct kevent_source_ops kevent_user_ops = {
	.name		= "user",
	.flags		= KEVENT_REQ_KEEP_EACH,
	.cache		= &kevent_user_cache,
	.check		= ev_user_check,
	.attach		= ev_user_attach,
	.detach		= ev_user_detach,
	.destroy	= ev_user_destroy,
	.modified	= ev_user_modified,
	.find		= ev_user_find,
	.count		= ev_user_count,
	.fill		= ev_user_fill,
	.delivered	= ev_user_delivered,
	.room		= ev_user_room,
	.mark		= ev_user_mark,
};

static int __init ev_user_init(void)
{
	BUILD_BUG_ON(offsetof(struct kevent_user, kk.ke));
	kevent_user_cache = KMEM_CACHE(kevent_user, SLAB_PANIC | SLAB_ACCOUNT);
	return 0;
}
core_initcall(ev_user_init);
