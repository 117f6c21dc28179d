// SPDX-License-Identifier: GPL-2.0
/*
 * User marks: watches that KEVENT_CTL_READY makes ready
 */

#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../core/source.h"

/* Events a watch keeps at most with KEVENT_REQ_KEEP_EACH */
#define KEVENT_USER_MAX_KEPT	65536U

/**
 * struct kevent_user_merged - marks that are one event together
 * @nr:		how many marks, at most U32_MAX; 0: there is no such event
 * @bits:	conditions marked
 */
struct kevent_user_merged {
	u32			nr;
	u32			bits;
};

/**
 * struct kevent_user_mark - a mark that is an event of its own
 * @next:	the next younger one
 * @data:	what the caller gave along
 * @bits:	conditions marked
 * @after:	marks made later, after MODIFY took KEVENT_REQ_KEEP_EACH away
 */
struct kevent_user_mark {
	struct kevent_user_mark	*next;
	u64			data;
	u32			bits;
	struct kevent_user_merged after;
};

/**
 * struct kevent_user - a watch that user space marks ready
 * @kk:		the watch, found by its id
 * @merged:	the oldest event, unless it has no marks; under ready_lock, like all
 *		the rest
 * @oldest:	marks that are events. All that have the queue can make the list long;
 *		its owner is charged for each; KEVENT_USER_MAX_KEPT limits it
 * @last:	the youngest of them, NULL when there is none
 * @nr:		events to come
 * @keep_each:	each mark is an event of its own
 */
struct kevent_user {
	struct kevent_keyed	kk;
	struct kevent_user_merged merged;
	struct kevent_user_mark	*oldest;
	struct kevent_user_mark	*last;
	u32			nr;
	bool			keep_each;
};

#define to_user(watch)	container_of(watch, struct kevent_user, kk.ke)

static void ev_user_drop_oldest(struct kevent_user *ku)
{
	struct kevent_user_mark *m = ku->oldest;

	ku->nr--;
	if (ku->merged.nr) {
		ku->merged = (struct kevent_user_merged) {};
		return;
	}
	ku->merged = m->after;
	ku->oldest = m->next;
	if (!ku->oldest)
		ku->last = NULL;
	kevent_uncharge(ku->kk.ke.queue->owner, sizeof(*m));
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
	memset_after(to_user(ke), 0, kk);
	ev_user_modified(ke, uk);
	return kevent_key_link(to_kevent_keyed(ke));
}

static void ev_user_destroy(struct kevent *ke)
{
	struct kevent_user *ku = to_user(ke);

	while (ku->nr) {
		ev_user_drop_oldest(ku);
		cond_resched();
	}
}

static u32 ev_user_amount(struct kevent *ke, u32 ready)
{
	return to_user(ke)->nr;
}

/* An entry says in which mode its marks were made. */
static void ev_user_fill(struct kevent *ke, struct ukevent *uk)
{
	struct kevent_user *ku = to_user(ke);
	const struct kevent_user_mark *m = ku->oldest;
	bool each = ku->keep_each;

	uk->id.raw_u64 = ku->kk.id;
	if (ku->merged.nr) {
		each = false;
		uk->ret_data[0] = ku->merged.bits;
		uk->ret_data[1] = ku->merged.nr;
	} else if (m) {
		each = true;
		uk->event = m->bits;
		uk->ret_data[0] = lower_32_bits(m->data);
		uk->ret_data[1] = upper_32_bits(m->data);
	}
	if (each)
		uk->req_flags |= KEVENT_REQ_KEEP_EACH;
}

static void ev_user_delivered(struct kevent *ke)
{
	ev_user_drop_oldest(to_user(ke));
}

static int ev_user_keep(struct kevent_user *ku, u32 bits, u64 data,
			void **room)
{
	struct kevent_user_mark *m = *room;

	if (ku->nr >= KEVENT_USER_MAX_KEPT)
		return -EAGAIN;
	if (!m)
		return -ENOBUFS;
	if (!kevent_charge(ku->kk.ke.queue->owner, sizeof(*m)))
		return -ENOSPC;
	*room = NULL;
	*m = (struct kevent_user_mark) { .data = data, .bits = bits };
	if (ku->last)
		ku->last->next = m;
	else
		ku->oldest = m;
	ku->last = m;
	ku->nr++;
	return 0;
}

/* A watch without event bits takes any, a request without means all. */
static int ev_user_command(struct kevent *ke, u32 cmd, const struct ukevent *uk,
			   void **room)
{
	struct kevent_user *ku = to_user(ke);
	struct kevent_user_merged *to = ku->last ? &ku->last->after : &ku->merged;
	u32 mask = uk->event ?: ke->event;
	int err;

	if (cmd != KEVENT_CTL_READY)
		return 0;
	if (ke->event) {
		mask &= ke->event;
		if (!mask)
			return -EINVAL;
	}
	if (ku->keep_each) {
		err = ev_user_keep(ku, mask, (u64)uk->ret_data[1] << 32 |
				   uk->ret_data[0], room);
		if (err)
			return err;
	} else {
		ku->nr += !to->nr;
		to->nr += to->nr < U32_MAX;
		to->bits |= mask;
	}
	ke->ready |= mask;
	return KEVENT_COMMAND_DONE;
}

static_assert(sizeof(struct kevent_user_mark) <= KEVENT_MARK_BYTES);

const struct kevent_source_ops kevent_user_ops = {
	.name		= "user",
	.flags		= KEVENT_REQ_KEEP_EACH,
	.size		= sizeof(struct kevent_user),
	.check		= ev_user_check,
	.attach		= ev_user_attach,
	.destroy	= ev_user_destroy,
	.command	= ev_user_command,
	.modified	= ev_user_modified,
	.amount		= ev_user_amount,
	.fill		= ev_user_fill,
	.delivered	= ev_user_delivered,
};
