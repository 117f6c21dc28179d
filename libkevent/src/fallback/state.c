// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * State of a watch in its queue: its list, its number, and its end
 */
#include <errno.h>
#include <stdlib.h>

#include "api/process.h"
#include "ops.h"

/* Lists */

static void fb_use_edge(struct fb_queue *q, struct fb_watch *w)
{
	if (q->edges && w->state & FB_REPEATED)
		fb_ops_of(w)->use_edge(q, w);
}

void fb_dequeue(struct fb_queue *q, struct fb_watch *w)
{
	if (w->list == FB_NOWHERE)
		return;
	fb_list_del(&w->link);
	q->lists[w->list].nr--;
	w->list = FB_NOWHERE;
}

void fb_move(struct fb_queue *q, struct fb_watch *w, enum fb_list_nr list)
{
	fb_dequeue(q, w);
	fb_list_add_tail(&w->link, &q->lists[list].head);
	q->lists[list].nr++;
	w->list = (__u16)list;
}

void fb_enqueue(struct fb_queue *q, struct fb_watch *w)
{
	if (w->list == FB_READY)
		return;
	fb_move(q, w, FB_READY);
	fb_use_edge(q, w);
}

/*
 * Two calls share the queue, or an entry is unread while a call waits: epoll would
 * repeat level events to threads that must not get them. From now on they are edges
 * for epoll while a call sleeps, and each call polls what was delivered before.
 */
void fb_use_edges(struct fb_queue *q)
{
	struct fb_watch *w, *next;
	__u32 i;

	if (q->edges)
		return;
	__atomic_store_n(&q->edges, true, __ATOMIC_RELAXED);
	fb_for_each_watch(&q->index, i, w, next)
		fb_use_edge(q, w);
}

/* Numbers */

/*
 * The watch is not freed here, as a caller may use it. The next request that names it, or the
 * end of the queue, frees it.
 */
void fb_number_changed(struct fb_queue *q, int fd, const struct fb_watch *of)
{
	struct fb_watch *w;
	__u32 type;

	for (type = 0; type < FB_NR_TYPES; type++) {
		if (!fb_sources[type] || !fb_sources[type]->file)
			continue;
		w = fb_find(&q->index, type, (__u32)fd);
		if (w && (!of || (w != of && !((w->state ^ of->state) & FB_SECOND)))) {
			fb_dequeue(q, w);
			w->token = 0;
		}
	}
}

/*
 * To epoll a number and its file are a key. While a watch had the number, what it asks of
 * epoll would be done to the descriptor of the library. The lock is that of fb_epoll_has():
 * a call with the number of a new instance finds the queue as soon as it has a kick.
 */
int fb_register_own(struct fb_queue *q, int fd, __u32 events, __u64 token)
{
	int err;

	{
		FB_HOLD(kevent_process_probe(fd));
		err = fb_epoll_ctl(q->fd, EPOLL_CTL_ADD, fd, events, token);
	}
	if (!err)
		fb_number_changed(q, fd, NULL);
	return err;
}

static int fb_register_nr(struct fb_queue *q, enum fb_own_nr nr)
{
	return fb_register_own(q, q->own[nr], nr == FB_OWN_SECOND || nr == FB_OWN_INOTIFY ?
			       EPOLLIN : EPOLLIN | EPOLLET, nr);
}

int fb_own_watched(struct fb_queue *q, enum fb_own_nr nr, long fd)
{
	static const char *const kinds[] = { "[eventfd]", "[eventpoll]", "inotify", "[timerfd]" };
	int err = fb_own(q, &q->own[nr], fd, kinds[nr < FB_OWN_CLOCK ? nr : FB_OWN_CLOCK]);

	if (!err)
		err = fb_register_nr(q, nr);
	if (err)
		fb_close_fd(&q->own[nr]);
	return err;
}

int fb_register_all_own(struct fb_queue *q)
{
	enum fb_own_nr nr;
	int err = 0;

	for (nr = 0; !err && nr < FB_NR_OWN; nr++)
		if (q->own[nr] >= 0 && nr != FB_OWN_SECOND)
			err = fb_register_nr(q, nr);
	return err;
}

/* Life */

void fb_kill(struct fb_queue *q, struct fb_watch *w)
{
	fb_dequeue(q, w);
	fb_watch_unlink(&q->index, w);
	if (fb_ops_of(w)->detach)
		fb_ops_of(w)->detach(q, w);
	free(w);
}

void fb_kill_others(struct fb_queue *q)
{
	struct fb_watch *w, *next;
	__u32 i;

	fb_for_each_watch(&q->index, i, w, next)
		if (fb_ops_of(w)->current && fb_ops_of(w)->current(q, w))
			fb_kill(q, w);
}

void fb_kill_all(struct fb_queue *q)
{
	struct fb_watch *w, *next;
	__u32 i;

	fb_for_each_watch(&q->index, i, w, next)
		fb_kill(q, w);
}
