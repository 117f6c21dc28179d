// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * USER: marks that the program makes itself
 */
#include <stdlib.h>

#include "ops.h"
#include "sys.h"

#define FB_USER_MAX_KEPT	65536U

/* Marks that became one event */
struct fb_user_merged {
	__u32	bits;
	__u32	nr;
};

/**
 * struct fb_user_mark - a mark that is an event of its own
 * @next:	the next one
 * @data:	what the caller gave along
 * @bits:	conditions marked
 * @after:	marks made later, after MODIFY took KEVENT_REQ_KEEP_EACH away
 */
struct fb_user_mark {
	struct fb_user_mark	*next;
	__u64			data;
	__u32			bits;
	struct fb_user_merged	after;
};

/**
 * struct fb_user - a watch that the program marks
 * @w:		the watch
 * @merged:	the oldest event, unless it has no marks
 * @oldest:	marks that are events, up to %FB_USER_MAX_KEPT
 * @last:	the youngest of them
 * @nr:		events to come
 */
struct fb_user {
	struct fb_watch		w;
	struct fb_user_merged	merged;
	struct fb_user_mark	*oldest;
	struct fb_user_mark	*last;
	__u32			nr;
};

#define to_user(watch)	fb_container(watch, struct fb_user, w)

static int fb_user_check(const struct ukevent *uk)
{
	/* A mark of ADD or MODIFY brings no data. */
	if (uk->req_flags & KEVENT_REQ_KEEP_EACH &&
	    uk->req_flags & KEVENT_REQ_READY)
		return -EINVAL;
	return 0;
}

static void fb_user_drop_oldest(struct fb_user *user)
{
	struct fb_user_mark *mark = user->oldest;

	user->nr--;
	if (user->merged.nr) {
		user->merged = (struct fb_user_merged){ 0, 0 };
		return;
	}
	user->merged = mark->after;
	user->oldest = mark->next;
	if (!user->oldest)
		user->last = NULL;
	free(mark);
}

static void fb_user_detach(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_user *user = to_user(w);

	while (user->nr)
		fb_user_drop_oldest(user);
}

static __u32 fb_user_count(struct fb_watch *w)
{
	return to_user(w)->nr;
}

/* An entry says in which mode its marks were made. */
static void fb_user_fill(struct fb_queue *q, struct fb_watch *w,
			 struct ukevent *uk)
{
	const struct fb_user *user = to_user(w);
	const struct fb_user_mark *mark = user->oldest;

	if (user->merged.nr) {
		uk->req_flags &= ~KEVENT_REQ_KEEP_EACH;
		uk->ret_data[0] = user->merged.bits;
		uk->ret_data[1] = user->merged.nr;
	} else if (mark) {
		uk->req_flags |= KEVENT_REQ_KEEP_EACH;
		uk->event = mark->bits;
		uk->ret_data[0] = (__u32)mark->data;
		uk->ret_data[1] = (__u32)(mark->data >> 32);
	}
}

static void fb_user_delivered(struct fb_queue *q, struct fb_watch *w)
{
	fb_user_drop_oldest(to_user(w));
}

static int fb_user_keep(struct fb_user *user, __u32 bits, __u64 data)
{
	struct fb_user_mark *mark;

	if (user->nr >= FB_USER_MAX_KEPT)
		return -EAGAIN;
	mark = calloc(1, sizeof(*mark));
	if (!mark)
		return -ENOMEM;
	mark->data = data;
	mark->bits = bits;
	if (user->last)
		user->last->next = mark;
	else
		user->oldest = mark;
	user->last = mark;
	user->nr++;
	return 0;
}

static void fb_user_merge(struct fb_user *user, __u32 bits)
{
	struct fb_user_merged *to = user->last ? &user->last->after :
						 &user->merged;

	if (!to->nr)
		user->nr++;
	if (to->nr < ~0U)
		to->nr++;
	to->bits |= bits;
}

/* A watch without event bits takes any, a request without means all. */
static int fb_user_mark(struct fb_queue *q, struct fb_watch *w,
			const struct ukevent *uk)
{
	__u32 mask = uk->event ? uk->event : w->event;
	int err = 0;

	if (w->event) {
		mask &= w->event;
		if (!mask)
			return -EINVAL;
	}
	if (w->req_flags & KEVENT_REQ_KEEP_EACH)
		err = fb_user_keep(to_user(w), mask, fb_sum(uk));
	else
		fb_user_merge(to_user(w), mask);
	if (!err)
		w->ready |= mask;
	return err;
}

const struct fb_ops fb_user_ops = {
	.size		= sizeof(struct fb_user),
	.flags		= KEVENT_REQ_KEEP_EACH,
	.check		= fb_user_check,
	.detach		= fb_user_detach,
	.count		= fb_user_count,
	.fill		= fb_user_fill,
	.delivered	= fb_user_delivered,
	.mark		= fb_user_mark,
};
