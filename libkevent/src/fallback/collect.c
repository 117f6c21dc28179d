// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Collect events of epoll, and report them to the watches
 */
#include <limits.h>
#include <string.h>

#include "count.h"
#include "ops.h"
#include "sys.h"

/* The second instance is never waited for. There may be no room for what it has. */
static void fb_collect_second(struct fb_queue *q, struct fb_dest *d, __u32 call)
{
	struct epoll_event events[FB_BATCH];
	int max = d->room && d->room < FB_BATCH ? (int)d->room : FB_BATCH;
	int nr;

	nr = (int)fb_sys(SYS_epoll_pwait, q->own[FB_OWN_SECOND], events, max, 0, NULL, 8);
	if (nr > 0)
		fb_collected(q, events, nr, d, call);
}

static void fb_collect_other(struct fb_queue *q, __u64 token)
{
	__u32 type = token == FB_OWN_INOTIFY ? KEVENT_INODE :
		     token == FB_OWN_SIGNAL ? KEVENT_SIGNAL : KEVENT_TIMER;

	if (token == FB_OWN_KICK) {
		q->kick.pending = false;
		/* It may have come to a call that is none of the herd. */
		if (q->sleepers.herd)
			fb_kick(q);
	} else if (token != FB_OWN_SECOND && token <= FB_OWN_SIGNAL) {
		fb_sources[type]->readable(q, (__u32)token);
	}
}

/*
 * Epoll says of the watches of unread entries that they are ready, too, and begins with the
 * same level watches each time. All come equally often if that one is the first which
 * follows the watch of the newest entry.
 */
static __attribute__((noinline)) void fb_collect_in_turn(const struct fb_queue *q,
							 struct epoll_event *events,
							 size_t nr)
{
	struct epoll_event first[FB_BATCH];
	const struct fb_watch *w;
	__u64 newest = 0;
	size_t i, from = 0;

	for (i = 0; i < nr; i++) {
		w = fb_by_token(&q->index, events[i].data.u64);
		if (w && w->stored > newest) {
			newest = w->stored;
			from = i + 1;
		}
	}
	memcpy(first, events, from * sizeof(*events));
	memmove(events, events + from, (nr - from) * sizeof(*events));
	memcpy(events + nr - from, first, from * sizeof(*events));
}

/*
 * The queue is locked. The caller has room for as many entries as epoll was asked for. So
 * each watch of the first instance finds room, and the second instance has the rest: at
 * least the place of its own token. If the second instance came first, a level watch behind
 * it could find no room each time.
 */
void fb_collected(struct fb_queue *q, struct epoll_event *events, int nr,
		  struct fb_dest *d, __u32 call)
{
	struct fb_watch *w;
	bool second = false;
	int i;

	if (d->kidx != d->uidx)
		fb_collect_in_turn(q, events, (size_t)nr);
	for (i = 0; i < nr; i++) {
		if (events[i].data.u64 <= UINT_MAX) {
			second |= events[i].data.u64 == FB_OWN_SECOND;
			fb_collect_other(q, events[i].data.u64);
			continue;
		}
		w = fb_by_token(&q->index, events[i].data.u64);
		/*
		 * ADD, which stores nothing, has a watch at hand: that must not go, as it may
		 * when the queue gets a new instance.
		 */
		if (w && fb_ops_of(w)->file)
			fb_take(q, w, events[i].events, d, call);
		else if (w)
			fb_ops_of(w)->found(q, w);
		else if (d->slots)
			fb_stray(q, events[i].data.u64);
	}
	if (second)
		fb_collect_second(q, d, call);
}

/* Take what epoll has, for kevent_ctl(); nothing is stored but on the ready list. */
int fb_collect(struct fb_queue *q, int fd, struct fb_dest *d)
{
	struct epoll_event events[FB_BATCH];
	int nr;

	nr = (int)fb_sys(SYS_epoll_pwait, fd, events, FB_BATCH, 0, NULL, 8);
	if (nr > 0)
		fb_collected(q, events, nr, d,
			     fb_count_add(&q->call, 1));
	return nr;
}
