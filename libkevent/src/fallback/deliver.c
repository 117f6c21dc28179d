// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * From watches that are ready to entries
 */
#include <errno.h>

#include "ops.h"

/* The lists */

/* The next call polls it. Epoll does that itself if it repeats the watch. */
static void fb_recheck_later(struct fb_queue *q, struct fb_watch *w)
{
	if (!(w->state & FB_REPEATED))
		fb_move(q, w, FB_RECHECK);
	else if (q->edges)
		fb_move(q, w, FB_SHOWN);
	else
		fb_dequeue(q, w);
}

void fb_report(struct fb_queue *q, struct fb_watch *w, __u32 mask)
{
	w->ready |= mask;
	if (w->state & FB_DISARMED) {
		w->state |= FB_FIRED;
		return;
	}
	fb_enqueue(q, w);
	if (w->req_flags & KEVENT_REQ_WAKEUP_ALL)
		fb_kick_all(q);
}

/* Entries */

void fb_fill(struct fb_queue *q, struct fb_watch *w, struct ukevent *uk)
{
	const struct fb_ops *ops = fb_ops_of(w);

	uk->id.raw_u64 = w->id;
	uk->type = w->type;
	uk->event = w->event;
	uk->req_flags = w->req_flags;
	uk->ret_flags = KEVENT_RET_DONE;
	uk->ret_data[0] = w->ready;
	uk->ret_data[1] = 0;
	uk->ptr = w->user;
	if (ops->fill)
		ops->fill(q, w, uk);
	if (w->state & FB_BROKEN) {
		uk->ret_flags |= KEVENT_RET_BROKEN;
		uk->ret_data[1] = (__u32)(ops->error ? ops->error : -EIDRM);
	}
}

static __u32 fb_count(struct fb_watch *w)
{
	const struct fb_ops *ops = fb_ops_of(w);

	return ops->count ? ops->count(w) : 0;
}

/* Does an unread entry say as much? */
static inline bool fb_repeats(const struct fb_watch *w, const struct fb_dest *d)
{
	return d->ring && fb_ops_of(w)->fd && w->stored > d->uidx &&
	       !(w->state & FB_BROKEN) && !(w->ready & ~w->reported);
}

void fb_delivered(struct fb_queue *q, struct fb_watch *w)
{
	const struct fb_ops *ops = fb_ops_of(w);

	fb_dequeue(q, w);
	w->ready = 0;
	if (ops->delivered)
		ops->delivered(q, w);
	w->state &= ~FB_BROKEN;
	if (w->req_flags & KEVENT_REQ_ONESHOT) {
		fb_kill(q, w);
		return;
	}
	if (w->req_flags & KEVENT_REQ_DISPATCH) {
		w->state |= FB_DISARMED;
		if (fb_count(w))
			w->state |= FB_FIRED;
	} else if (fb_is_level(w)) {
		fb_recheck_later(q, w);
	} else if (fb_count(w)) {
		fb_enqueue(q, w);
	}
}

static __u32 fb_share(struct fb_watch *w, __u32 room)
{
	__u32 nr = fb_count(w);

	if (nr < 2 || w->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH))
		return 1;
	return nr < room ? nr : room;
}

/* There is room. */
static void fb_deliver_one(struct fb_queue *q, struct fb_watch *w,
			   struct fb_dest *d)
{
	__u32 nr = fb_share(w, d->room);
	struct ukevent uk;

	q->delivered += nr;
	for (;;) {
		fb_fill(q, w, &uk);
		fb_store(d, &uk);
		if (!--nr)
			break;
		fb_ops_of(w)->delivered(q, w);
	}
	if (d->ring) {
		w->stored = d->kidx;
		w->reported = w->ready;
	}
	fb_delivered(q, w);
}

/* Store nothing: an unread entry, or one of this call, has the same conditions. */
static void fb_drop(struct fb_queue *q, struct fb_watch *w, struct fb_dest *d)
{
	fb_dequeue(q, w);
	w->ready = 0;
	if (w->state & FB_REPEATED)
		d->again = true;
	if (fb_is_level(w) && !(w->state & FB_DISARMED))
		fb_recheck_later(q, w);
}

/*
 * A watch of a file was not found. If the call's number of the queue was closed while it
 * slept, that says nothing: a call by another one is to look.
 */
static bool fb_is_gone(struct fb_queue *q, struct fb_watch *w)
{
	if (fb_ops_of(w)->file && fb_queue_check(q, q->fd))
		return false;
	fb_kill(q, w);
	return true;
}

/* Is it ready, and not left to epoll? */
static bool fb_repoll(struct fb_queue *q, struct fb_watch *w)
{
	if (!fb_ops_of(w)->repoll(q, w, fb_has_sleepers(q)))
		return w->list == FB_READY;
	if (fb_is_gone(q, w))
		return false;
	/* If the queue's number means an epoll of the program by now, it has a registration. */
	fb_ops_of(w)->detach(q, w);
	w->state &= ~FB_REPEATED;
	fb_recheck_later(q, w);
	return false;
}

static void fb_deliver_new(struct fb_queue *q, struct fb_watch *w,
			   struct fb_dest *d)
{
	if (fb_repeats(w, d))
		fb_drop(q, w, d);
	else
		fb_deliver_one(q, w, d);
}

/*
 * Conditions of files may have passed since they were found, so those that did not
 * fit are polled again. Others wait here; nothing is said of a descriptor that was closed
 * meanwhile.
 */
void fb_deliver(struct fb_queue *q, struct fb_dest *d)
{
	struct fb_watch *w;

	while (d->room && q->lists[FB_READY].nr) {
		w = fb_first(q, FB_READY);
		if (fb_is_checked(w) && !(w->state & FB_ALWAYS)) {
			fb_dequeue(q, w);
			w->ready = 0;
			if (!fb_repoll(q, w))
				continue;
		} else if (fb_ops_of(w)->current && fb_ops_of(w)->current(q, w)) {
			if (fb_is_gone(q, w))
				continue;
			return;
		}
		fb_deliver_new(q, w, d);
	}
}

/* The call has it, or has no room and cannot leave it to epoll, which comes after that. */
static bool fb_recheck_waits(const struct fb_watch *w, const struct fb_dest *d,
			     __u32 call)
{
	return (!d->ring && w->call == call) ||
	       (!d->room && w->state & (FB_ALWAYS | FB_TAKES));
}

/*
 * Poll the level watches that were delivered before. If epoll does so, there is room
 * for what it says; if not, those that find none wait for another call.
 */
void fb_recheck(struct fb_queue *q, struct fb_dest *d, __u32 call)
{
	struct fb_list *next = q->lists[FB_RECHECK].head.next;
	struct fb_watch *w;
	__u32 nr = q->lists[FB_RECHECK].nr;

	while (nr-- && (d->room || !fb_has_sleepers(q))) {
		w = fb_container(next, struct fb_watch, link);
		next = next->next;
		/* It stays before those that are delivered, for the next call. */
		if (fb_recheck_waits(w, d, call))
			continue;
		fb_dequeue(q, w);
		if (!fb_repoll(q, w) || !d->room)
			continue;
		w->call = call;
		fb_deliver_new(q, w, d);
	}
}

/* Files that epoll refuses, or that it empties, are polled for those who ask only. */
void fb_show(struct fb_queue *q)
{
	struct fb_watch *w;
	__u32 nr = q->lists[FB_RECHECK].nr;

	while (nr--) {
		w = fb_first(q, FB_RECHECK);
		if (w->state & (FB_ALWAYS | FB_TAKES)) {
			fb_move(q, w, FB_RECHECK);
			continue;
		}
		fb_move(q, w, FB_SHOWN);
		fb_repoll(q, w);
	}
}

void fb_hide(struct fb_queue *q)
{
	struct fb_watch *w;

	while (q->lists[FB_SHOWN].nr) {
		w = fb_first(q, FB_SHOWN);
		fb_dequeue(q, w);
		fb_repoll(q, w);
	}
}

/* One that stays armed, and that nobody polls or wakes others for afterwards */
static bool fb_is_plain(const struct fb_watch *w)
{
	return !(w->state & ~(FB_REPEATED | FB_SECOND)) && w->list <= FB_SHOWN &&
	       !(w->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH |
				 KEVENT_REQ_WAKEUP_ALL)) &&
	       (w->req_flags & KEVENT_REQ_ET || w->state & FB_REPEATED);
}

/* The same as fb_deliver_one(), for a plain watch of a file. There is room. */
static void fb_deliver_plain(struct fb_queue *q, struct fb_watch *w,
			     struct fb_dest *d)
{
	struct ukevent uk = {
		.id.raw_u64 = w->id,
		.type = w->type,
		.event = w->event,
		.req_flags = w->req_flags,
		.ret_flags = KEVENT_RET_DONE,
		.ret_data = { w->ready },
		.ptr = w->user,
	};

	fb_store(d, &uk);
	if (d->ring) {
		w->stored = d->kidx;
		w->reported = w->ready;
	}
	w->ready = 0;
	q->delivered++;
}

/*
 * Epoll reports a file. A call reports a level watch once: what came since is in
 * the entry, as the caller does not have it yet.
 */
void fb_take(struct fb_queue *q, struct fb_watch *w, __u32 mask,
	     struct fb_dest *d, __u32 call)
{
	mask = fb_file_events(w, mask);
	if (!mask)
		return;
	if (w->state & FB_DISARMED) {
		if (w->state & FB_TAKES)
			fb_report(q, w, mask);
		return;
	}
	w->ready |= mask;
	if (fb_repeats(w, d) ||
	    (!d->ring && fb_is_level(w) && w->call == call)) {
		fb_drop(q, w, d);
		return;
	}
	w->call = call;
	if (d->room && fb_is_plain(w)) {
		fb_deliver_plain(q, w, d);
		return;
	}
	if (w->req_flags & KEVENT_REQ_WAKEUP_ALL)
		fb_kick_all(q);
	if (d->room) {
		fb_deliver_one(q, w, d);
		return;
	}
	if (w->state & FB_REPEATED)
		d->again = true;
	fb_enqueue(q, w);
}
