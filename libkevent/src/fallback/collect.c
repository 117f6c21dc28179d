// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Collect events of epoll, and report them to the watches
 *
 * Epoll knows a file by a descriptor. If that is closed while the file is open by
 * another one, in a child for instance, epoll goes on to report the file, and
 * nobody can take it out. Level events would keep every call from sleeping. So the
 * queue gets a new instance in the place of the old one, with what is left.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "count.h"
#include "ops.h"
#include "sys.h"

/* So often an event of nobody comes again before that is done */
#define FB_STRAYS	3U
/* So many others come before another one is counted */
#define FB_STRAYS_OTHER	64U
/* Each failure doubles the first number, up to so often */
#define FB_STRAYS_FAILED	16U

/* A new instance */

/* Is there not enough of what a registration takes? That says nothing of its file. */
static bool fb_is_shortage(int err)
{
	return err == -ENOSPC || err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/* Until all have gone from the old instance, each takes twice as much: 0 or -errno */
static int fb_rebuild_watches(struct fb_queue *q)
{
	struct fb_watch *w, *next;
	int err;
	__u32 i;

	fb_for_each_watch(&q->index, i, w, next) {
		if (!w->token || !fb_ops_of(w)->register_one)
			continue;
		err = fb_ops_of(w)->register_one(q, w);
		if (fb_is_shortage(err))
			return err;
		if (err)
			fb_kill(q, w);
	}
	return 0;
}

static int fb_rebuild_rest(struct fb_queue *q)
{
	int err = fb_register_all_own(q);
	__u32 i;

	for (i = 0; !err && i < FB_NR_TYPES; i++)
		if (fb_sources[i] && fb_sources[i]->register_all)
			err = fb_sources[i]->register_all(q);
	return err;
}

static void fb_rebuild_in_place(struct fb_queue *q, int old)
{
	int flags = fb_call(fcntl(old, F_GETFD)), second;

	if (flags < 0 || fb_rebuild_rest(q))
		return;
	/* The new instance has another one. */
	fb_own_move(&second, &q->own[FB_OWN_SECOND]);
	/* The program may have closed the old one, and have another file there. */
	if (fb_rebuild_watches(q) || fb_queue_check(q, old)) {
		fb_close_fd(&q->own[FB_OWN_SECOND]);
		fb_own_move(&q->own[FB_OWN_SECOND], &second);
		q->stray.failed += q->stray.failed < FB_STRAYS_FAILED;
		return;
	}
	q->stray.failed = 0;
	fb_close_fd(&second);
	/*
	 * Sleeping calls are in the old instance, and a write reaches both instances. A write
	 * wakes only one call of the old one. So the kick is level there: a call that has it
	 * wakes the next one, and leaves.
	 */
	fb_epoll_ctl(old, EPOLL_CTL_MOD, q->own[FB_OWN_KICK], EPOLLIN, FB_OWN_KICK);
	fb_sys(SYS_dup3, q->fd, old, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	q->kick.pending = false;
	q->kick.counted = false;
	fb_kick_all(q);
	fb_kick(q);
}

/* Is it one that epoll repeats, and not of a watch that just went? */
static bool fb_stray_repeats(struct fb_queue *q, __u64 token)
{
	if (token == q->stray.token)
		return ++q->stray.nr >= FB_STRAYS << q->stray.failed;
	if (q->stray.token && ++q->stray.others < FB_STRAYS_OTHER)
		return false;
	q->stray.token = token;
	q->stray.nr = 0;
	q->stray.others = 0;
	return false;
}

/* The queue is locked, and its descriptor was just used. */
static __attribute__((noinline)) void fb_stray(struct fb_queue *q, __u64 token)
{
	int old = q->fd, new;

	if (!fb_stray_repeats(q, token) || __atomic_load_n(&q->names, __ATOMIC_RELAXED) > 1 ||
	    fb_queue_check(q, old))
		return;
	q->stray.token = 0;
	/* A watch that is not in the old instance must not get into the new one. */
	fb_kill_others(q);
	new = (int)fb_sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (new < 0)
		return;
	__atomic_store_n(&q->fd, new, __ATOMIC_RELAXED);
	fb_rebuild_in_place(q, old);
	/* Before the number is free for another file */
	__atomic_store_n(&q->fd, old, __ATOMIC_RELAXED);
	fb_close_local(new);
}

/* Collections */

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
