// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Requests of kevent_ctl() for a watch
 */
#include <fcntl.h>
#include <stdlib.h>

#include "ops.h"
#include "sys.h"

#define FB_REQ_ALL	0xffU	/* request flags that all sources know */
/* States that a request sets anew */
#define FB_SET		(FB_DISARMED | FB_FIRED | FB_BROKEN)

static void fb_set(struct fb_watch *w, const struct ukevent *uk)
{
	w->user = uk->ptr;
	w->event = uk->event;
	w->req_flags = uk->req_flags;
	if (fb_ops_of(w)->once)
		w->req_flags |= KEVENT_REQ_ONESHOT;
	w->state &= ~FB_SET;
	if (uk->req_flags & KEVENT_REQ_DISABLED)
		w->state |= FB_DISARMED;
}

/* The reverse, with what was reported in between */
static void fb_set_back(struct fb_queue *q, struct fb_watch *w,
			const struct fb_watch *old)
{
	bool came = w->state & FB_FIRED || w->list == FB_READY;

	w->user = old->user;
	w->event = old->event;
	w->req_flags = old->req_flags;
	w->state &= ~(FB_DISARMED | FB_FIRED);
	w->state |= old->state & FB_SET;
	if (w->state & FB_DISARMED)
		fb_dequeue(q, w);
	if (came)
		fb_report(q, w, 0);
}

static bool fb_bad_id(const struct fb_ops *ops, const struct ukevent *uk)
{
	return ops->fd && uk->id.raw[1];
}

bool fb_has_type(__u32 type)
{
	static __u32 there;
	const struct fb_ops *ops = fb_sources[type];

	if (!ops || !ops->there || __atomic_load_n(&there, __ATOMIC_RELAXED) & 1U << type)
		return ops;
	if (!ops->there())
		return false;
	__atomic_or_fetch(&there, 1U << type, __ATOMIC_RELAXED);
	return true;
}

int fb_check_request(const struct ukevent *uk)
{
	const struct fb_ops *ops = fb_sources[uk->type];

	if (uk->req_flags & ~(FB_REQ_ALL | ops->flags) || fb_bad_id(ops, uk) ||
	    (ops->events && uk->event & ~ops->events))
		return -EINVAL;
	return ops->check ? ops->check(uk) : 0;
}

int fb_fd_error(const struct ukevent *uk, int err)
{
	if (!fb_sources[uk->type]->fd)
		return err;
	return fb_call(fcntl((int)uk->id.raw[0], F_GETFD)) < 0 ? -EBADF : err;
}

/* If the source can't watch the object of the request, that is the error, and else @err. */
static int fb_object_error(const struct fb_ops *ops, const struct ukevent *uk,
			   int err)
{
	int object = ops->object ? ops->object(uk) : 0;

	return object ? object : err;
}

static __u64 fb_key(const struct ukevent *uk)
{
	const struct fb_ops *ops = fb_sources[uk->type];

	if (ops->by_user)
		return uk->ptr;
	return ops->key ? ops->key(uk) : uk->id.raw_u64;
}

struct fb_watch *fb_find_request(struct fb_queue *q, const struct ukevent *uk)
{
	return fb_find(&q->index, uk->type, fb_key(uk));
}

/*
 * The same, if it is about the same object: the number of a closed descriptor may come
 * back as that of another file.
 */
static struct fb_watch *fb_find_current(struct fb_queue *q, const struct ukevent *uk)
{
	struct fb_watch *w = fb_find_request(q, uk);

	if (!w || !fb_ops_of(w)->current || !fb_ops_of(w)->current(q, w))
		return w;
	fb_kill(q, w);
	return NULL;
}

/* Requests */

/*
 * ADD or MODIFY marks a watch. Returns whether there is something to report: a mark of
 * USER is an event without any bits, too; epoll says what a mark has found of a file.
 */
static bool fb_add_mark(struct fb_queue *q, struct fb_watch *w,
			const struct ukevent *uk, __u32 *mask)
{
	const struct fb_ops *ops = fb_ops_of(w);

	if (!ops->mark) {
		*mask |= w->event & ops->marks;
		return *mask;
	}
	if (ops->mark(q, w, uk))
		return *mask;
	*mask |= w->ready;
	return *mask || !(ops->file || ops->silent);
}

/* Conditions hold. Returns 1 when they are handed back in @uk. */
static int fb_attached(struct fb_queue *q, struct fb_watch *w, __u32 mask,
		       struct ukevent *uk)
{
	bool report;

	if (mask && fb_hands_back(w)) {
		w->ready = mask;
		fb_fill(q, w, uk);
		w->reported = mask;
		q->delivered++;
		fb_delivered(q, w);
		return 1;
	}
	report = mask;
	if (w->req_flags & KEVENT_REQ_READY)
		report = fb_add_mark(q, w, uk, &mask);
	if (report)
		fb_report(q, w, mask);
	return 0;
}

struct fb_watch *fb_watch_new(struct fb_queue *q, const struct ukevent *uk, int *ret)
{
	const struct fb_ops *ops = fb_sources[uk->type];
	struct fb_watch *w = calloc(1, ops->size);

	*ret = -ENOMEM;
	if (!w)
		return NULL;
	w->type = uk->type;
	w->key = fb_key(uk);
	w->id = uk->id.raw_u64;
	fb_set(w, uk);
	fb_watch_link(&q->index, w);
	*ret = ops->attach ? ops->attach(q, w, uk) : 0;
	if (*ret >= 0)
		return w;
	fb_kill(q, w);
	return NULL;
}

int fb_add(struct fb_queue *q, struct ukevent *uk)
{
	struct fb_watch *w;
	int ret;

	ret = fb_check_request(uk);
	if (ret)
		return ret;
	if (fb_find_current(q, uk))
		return -EEXIST;
	w = fb_watch_new(q, uk, &ret);
	return w ? fb_attached(q, w, (__u32)ret, uk) : ret;
}

/* The watch was changed; @mask of its conditions hold, as far as that is known. */
static void fb_modified(struct fb_queue *q, struct fb_watch *w, __u32 mask,
			const struct ukevent *uk, bool fired)
{
	const struct fb_ops *ops = fb_ops_of(w);
	bool report = mask || (ops->count && ops->count(w)) ||
		      (fired && (w->ready || w->state & FB_BROKEN));

	if (uk->req_flags & KEVENT_REQ_READY)
		report |= fb_add_mark(q, w, uk, &mask);
	if (w->state & FB_DISARMED)
		fb_dequeue(q, w);
	if (report)
		fb_report(q, w, mask);
}

int fb_modify(struct fb_queue *q, const struct ukevent *uk)
{
	const struct fb_ops *ops = fb_sources[uk->type];
	struct fb_watch *w, old;
	int ret;

	ret = fb_check_request(uk);
	if (ret)
		return ret;
	/* To epoll the file and the descriptor are one key: it says if they are others. */
	w = ops->file ? fb_find_request(q, uk) : fb_find_current(q, uk);
	if (!w)
		return fb_object_error(ops, uk, -ENOENT);
	if (ops->fixed)
		return -EPERM;
	old = *w;
	fb_set(w, uk);
	ret = ops->modify ? ops->modify(q, w, uk, &old) : 0;
	if (ret < 0) {
		if (ops->file)
			fb_kill(q, w);
		else
			fb_set_back(q, w, &old);
		return fb_object_error(ops, uk, ret);
	}
	w->stored = 0;
	w->call = 0;
	fb_modified(q, w, (__u32)ret, uk, old.state & FB_FIRED || old.list == FB_READY);
	return 0;
}

int fb_remove(struct fb_queue *q, const struct ukevent *uk)
{
	const struct fb_ops *ops = fb_sources[uk->type];
	struct fb_watch *w;

	if (fb_bad_id(ops, uk))
		return -EINVAL;
	w = ops->remove ? fb_find_request(q, uk) : fb_find_current(q, uk);
	if (!w)
		return -ENOENT;
	if (ops->remove)
		return ops->remove(q, w);
	fb_kill(q, w);
	return 0;
}

int fb_mark(struct fb_queue *q, const struct ukevent *uk)
{
	const struct fb_ops *ops = fb_sources[uk->type];
	struct fb_watch *w;
	__u32 mask = 0;
	int err;

	if (fb_bad_id(ops, uk))
		return -EINVAL;
	w = fb_find_current(q, uk);
	if (!w)
		return -ENOENT;
	if (ops->fixed)
		return -EPERM;
	if (ops->mark) {
		err = ops->mark(q, w, uk);
	} else {
		mask = w->event & ops->marks & (uk->event ? uk->event : ~0U);
		err = mask ? 0 : -EINVAL;
	}
	if (err || ops->file || ops->silent)
		return err;
	fb_report(q, w, mask);
	fb_kick(q);
	return 0;
}
