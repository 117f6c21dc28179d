// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * TIMER: a timerfd per clock, which expires with the first timer of a heap
 */
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <sys/timerfd.h>

#include "deadline.h"
#include "ops.h"
#include "sys.h"

#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET	(1 << 1)
#endif

#define FB_TIMER_CLOCKS	(KEVENT_TIMER_REALTIME | KEVENT_TIMER_BOOTTIME | \
			 KEVENT_TIMER_TAI)
#define FB_TIMER_ALL	(KEVENT_TIMER_FIRED | KEVENT_TIMER_ABSTIME | \
			 KEVENT_TIMER_INTERVAL | \
			 KEVENT_TIMER_CANCEL_ON_SET | FB_TIMER_CLOCKS)

static const clockid_t fb_clock_ids[FB_NR_CLOCKS] = {
	CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI,
	CLOCK_REALTIME,
};

/**
 * struct fb_timer - a timer
 * @w:		the watch
 * @clock:	its clock
 * @expires:	next expiry, or if it has expired, the first not yet counted
 * @interval:	time between expiries, 0: once
 * @ticks:	expirations not yet delivered; while there are some the timer does not run
 * @index:	in the heap, from 1; 0: it is stopped
 * @on_set:	on the list of those to be cancelled
 */
struct fb_timer {
	struct fb_watch		w;
	struct fb_clock		*clock;
	__s64			expires;
	__s64			interval;
	__u64			ticks;
	__u32			index;
	struct fb_list		on_set;
};

#define to_timer(watch)	fb_container(watch, struct fb_timer, w)

/* The heap */

static void fb_heap_put(struct fb_clock *clock, __u32 index, struct fb_timer *t)
{
	clock->heap[index] = t;
	t->index = index;
}

static void fb_heap_up(struct fb_clock *clock, __u32 index, struct fb_timer *t)
{
	while (index > 1 && clock->heap[index / 2]->expires > t->expires) {
		fb_heap_put(clock, index, clock->heap[index / 2]);
		index /= 2;
	}
	fb_heap_put(clock, index, t);
}

static void fb_heap_down(struct fb_clock *clock, __u32 index,
			 struct fb_timer *t)
{
	__u32 child;

	while ((child = 2 * index) <= clock->len) {
		if (child < clock->len && clock->heap[child + 1]->expires <
					  clock->heap[child]->expires)
			child++;
		if (clock->heap[child]->expires >= t->expires)
			break;
		fb_heap_put(clock, index, clock->heap[child]);
		index = child;
	}
	fb_heap_put(clock, index, t);
}

static void fb_heap_remove(struct fb_clock *clock, struct fb_timer *t)
{
	struct fb_timer *last = clock->heap[clock->len--];
	__u32 index = t->index;

	t->index = 0;
	if (last == t)
		return;
	fb_heap_down(clock, index, last);
	fb_heap_up(clock, last->index, last);
}

/* A start must not fail: room for one more timer than there is */
static int fb_heap_reserve(struct fb_clock *clock, __u32 timers)
{
	struct fb_timer **heap;
	__u32 room = clock->room ? clock->room : 16;

	while (room <= timers)
		room *= 2;
	if (room == clock->room)
		return 0;
	heap = realloc(clock->heap, room * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	clock->heap = heap;
	clock->room = room;
	return 0;
}

/* The timerfd */

static int fb_clock_fd(const struct fb_queue *q, const struct fb_clock *clock)
{
	return q->own[FB_OWN_CLOCK + clock->nr];
}

/* There is no timerfd of CLOCK_TAI: it is as far off CLOCK_REALTIME as it is now. */
static __s64 fb_clock_time(const struct fb_clock *clock, __s64 at)
{
	__s64 off;

	if (clock->nr != FB_TAI || at == FB_TIME_MAX)
		return at;
	off = fb_clock_now(CLOCK_TAI) - fb_clock_now(CLOCK_REALTIME);
	/* Whole seconds; the two were read one after the other. */
	off = (off + FB_NSEC_PER_SEC / 2) / FB_NSEC_PER_SEC * FB_NSEC_PER_SEC;
	return at - off;
}

static void fb_clock_program(const struct fb_queue *q, struct fb_clock *clock, __s64 at)
{
	__s64 when = fb_clock_time(clock, at);
	struct itimerspec its = { .it_interval = { 0, 0 } };
	int flags = TFD_TIMER_ABSTIME;

	clock->at = at;
	if (clock->nr == FB_CANCELLED)
		flags |= TFD_TIMER_CANCEL_ON_SET;
	if (when < 1 || clock->was_set)
		when = 1;
	its.it_value.tv_sec = (time_t)(when / FB_NSEC_PER_SEC);
	its.it_value.tv_nsec = (long)(when % FB_NSEC_PER_SEC);
	if (fb_call(timerfd_settime(fb_clock_fd(q, clock), flags, &its, NULL)) == -ECANCELED &&
	    !clock->was_set) {
		/* The kernel says so only once: have somebody look now. */
		clock->was_set = true;
		fb_clock_program(q, clock, at);
	}
}

static int fb_clock_open(struct fb_queue *q, enum fb_clock_nr nr)
{
	struct fb_clock *clock = &q->timers.clocks[nr];
	clockid_t id = nr == FB_TAI ? CLOCK_REALTIME : fb_clock_ids[nr];
	int err;

	if (q->own[FB_OWN_CLOCK + (__u32)nr] >= 0)
		return 0;
	clock->nr = (int)nr;
	clock->at = FB_TIME_MAX;
	err = fb_own_watched(q, FB_OWN_CLOCK + (__u32)nr,
			     fb_call(timerfd_create(id, TFD_CLOEXEC | TFD_NONBLOCK)));
	if (!err && nr == FB_CANCELLED)
		fb_clock_program(q, clock, FB_TIME_MAX);
	return err;
}

static void fb_timers_free(struct fb_queue *q)
{
	int i;

	for (i = 0; i < FB_NR_CLOCKS; i++)
		free(q->timers.clocks[i].heap);
	q->timers = (struct fb_timers){ .on_set.next = NULL };
}

/* Timers */

static void fb_timer_start(const struct fb_queue *q, struct fb_timer *t)
{
	struct fb_clock *clock = t->clock;

	fb_heap_up(clock, ++clock->len, t);
	if (t->index == 1 && t->expires < clock->at)
		fb_clock_program(q, clock, t->expires);
}

static void fb_timer_stop(struct fb_timer *t)
{
	if (t->index)
		fb_heap_remove(t->clock, t);
}

/* The clock was set: all of them at once. */
static void fb_timers_cancel(struct fb_queue *q)
{
	struct fb_timer *t;

	fb_list_each(t, &q->timers.on_set, struct fb_timer, on_set) {
		fb_timer_stop(t);
		fb_report(q, &t->w, KEVENT_TIMER_FIRED);
		t->w.state |= FB_BROKEN;
	}
}

/* Only of FB_CANCELLED: was the clock set since the timerfd was programmed? */
static void fb_clock_poll(struct fb_queue *q, struct fb_clock *clock)
{
	__u64 nr;

	if (clock->nr != FB_CANCELLED || fb_clock_fd(q, clock) < 0)
		return;
	if (fb_sys(SYS_read, fb_clock_fd(q, clock), &nr, sizeof(nr)) == -ECANCELED ||
	    clock->was_set) {
		fb_timers_cancel(q);
		/* Calls that sleep until a time of the clock compute their timeouts anew. */
		fb_kick_all(q);
	}
	clock->was_set = false;
}

static void fb_clock_expire(struct fb_queue *q, struct fb_clock *clock)
{
	__s64 now = fb_clock_now(fb_clock_ids[clock->nr]);
	struct fb_timer *t;

	while (clock->len && clock->heap[1]->expires <= now) {
		t = clock->heap[1];
		fb_timer_stop(t);
		t->ticks++;
		t->expires = fb_time_add(t->expires, (__u64)t->interval);
		fb_report(q, &t->w, KEVENT_TIMER_FIRED);
	}
}

static void fb_timer_expired(struct fb_queue *q, __u32 nr)
{
	struct fb_clock *clock = &q->timers.clocks[nr - FB_OWN_CLOCK];

	fb_clock_poll(q, clock);
	fb_clock_expire(q, clock);
	clock->at = FB_TIME_MAX;
	if (clock->len)
		fb_clock_program(q, clock, clock->heap[1]->expires);
}

bool fb_hear_steps(struct fb_queue *q)
{
	return q->own[FB_OWN_CLOCK + (__u32)FB_CANCELLED] < 0 && !fb_clock_open(q, FB_CANCELLED);
}

/* Requests */

/* A relative time does not follow a clock that can be set. */
static enum fb_clock_nr fb_timer_clock(__u32 event)
{
	bool absolute = event & KEVENT_TIMER_ABSTIME;

	switch (event & FB_TIMER_CLOCKS) {
	case KEVENT_TIMER_REALTIME:
		if (event & KEVENT_TIMER_CANCEL_ON_SET)
			return FB_CANCELLED;
		return absolute ? FB_REALTIME : FB_MONOTONIC;
	case KEVENT_TIMER_BOOTTIME:
		return FB_BOOTTIME;
	case KEVENT_TIMER_TAI:
		return absolute ? FB_TAI : FB_MONOTONIC;
	default:
		return FB_MONOTONIC;
	}
}

static int fb_timer_check(const struct ukevent *uk)
{
	__u32 clock = uk->event & FB_TIMER_CLOCKS;

	if (!(uk->event & KEVENT_TIMER_FIRED) || clock & (clock - 1))
		return -EINVAL;
	if (uk->event & KEVENT_TIMER_CANCEL_ON_SET &&
	    (clock != KEVENT_TIMER_REALTIME ||
	     !(uk->event & KEVENT_TIMER_ABSTIME)))
		return -EINVAL;
	if (uk->id.raw_u64 > (__u64)FB_TIME_MAX)
		return -EINVAL;
	if (uk->event & KEVENT_TIMER_INTERVAL)
		return fb_sum(uk) > (__u64)FB_TIME_MAX ? -EINVAL : 0;
	return uk->event & KEVENT_TIMER_ABSTIME || uk->id.raw_u64 ? 0 : -EINVAL;
}

static __s64 fb_timer_interval(const struct ukevent *uk)
{
	if (uk->event & KEVENT_TIMER_INTERVAL)
		return (__s64)fb_sum(uk);
	if (uk->event & KEVENT_TIMER_ABSTIME ||
	    uk->req_flags & KEVENT_REQ_ONESHOT)
		return 0;
	return (__s64)uk->id.raw_u64;
}

/* Its memory is there. */
static void fb_timer_set(const struct fb_queue *q, struct fb_timer *t, struct fb_clock *clock,
			 const struct ukevent *uk)
{
	t->clock = clock;
	t->w.id = uk->id.raw_u64;
	t->interval = fb_timer_interval(uk);
	t->ticks = 0;
	if (uk->req_flags & KEVENT_REQ_DISABLED)
		return;
	t->expires = (__s64)uk->id.raw_u64;
	if (!(uk->event & KEVENT_TIMER_ABSTIME))
		t->expires = fb_time_add(fb_clock_now(fb_clock_ids[clock->nr]),
					 (__u64)t->expires);
	fb_timer_start(q, t);
}

static int fb_timer_modify(struct fb_queue *q, struct fb_watch *w,
			   const struct ukevent *uk, const struct fb_watch *old)
{
	struct fb_timer *t = to_timer(w);
	enum fb_clock_nr nr = fb_timer_clock(uk->event);
	struct fb_clock *clock = &q->timers.clocks[nr];
	int err = fb_clock_open(q, nr);

	if (!err)
		err = fb_heap_reserve(clock, q->index.nr + 1);
	if (err)
		return err;
	/* A step that came before is none of this timer's. */
	fb_clock_poll(q, clock);
	fb_timer_stop(t);
	fb_dequeue(q, w);
	w->ready = 0;
	w->state &= ~FB_BROKEN;
	fb_timer_set(q, t, clock, uk);
	fb_list_del(&t->on_set);
	fb_list_init(&t->on_set);
	if (w->event & KEVENT_TIMER_CANCEL_ON_SET && !(w->state & FB_DISARMED))
		fb_list_add_tail(&t->on_set, &q->timers.on_set);
	return 0;
}

static int fb_timer_attach(struct fb_queue *q, struct fb_watch *w,
			   const struct ukevent *uk)
{
	fb_list_init(&to_timer(w)->on_set);
	return fb_timer_modify(q, w, uk, NULL);
}

static void fb_timer_detach(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_timer *t = to_timer(w);

	fb_timer_stop(t);
	fb_list_del(&t->on_set);
}

/* Count the intervals that have ended since the timer expired. */
static void fb_timer_count(struct fb_timer *t)
{
	__s64 delta = fb_clock_now(fb_clock_ids[t->clock->nr]) - t->expires;
	__s64 nr;

	if (delta < 0)
		return;
	nr = delta / t->interval;
	t->expires += nr * t->interval;
	t->expires = fb_time_add(t->expires, (__u64)t->interval);
	t->ticks += (__u64)nr + 1;
}

static void fb_timer_fill(struct fb_queue *q, struct fb_watch *w,
			  struct ukevent *uk)
{
	struct fb_timer *t = to_timer(w);

	/*
	 * None passes of one that was cancelled. Where that may be to come, the others are
	 * reported one by one.
	 */
	if (t->ticks && t->interval && t->clock->nr != FB_CANCELLED &&
	    !(w->state & FB_BROKEN))
		fb_timer_count(t);
	uk->ret_data[0] = (__u32)t->ticks;
	uk->ret_data[1] = (__u32)(t->ticks >> 32);
}

static void fb_timer_delivered(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_timer *t = to_timer(w);
	bool expired = t->ticks;

	t->ticks = 0;
	if (expired && t->interval && !(w->state & FB_BROKEN) &&
	    !(w->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH)))
		fb_timer_start(q, t);
}

const struct fb_ops fb_timer_ops = {
	.size		= sizeof(struct fb_timer),
	.by_user	= true,
	.events		= FB_TIMER_ALL,
	.marks		= KEVENT_TIMER_FIRED,
	.error		= -ECANCELED,
	.check		= fb_timer_check,
	.attach		= fb_timer_attach,
	.detach		= fb_timer_detach,
	.modify		= fb_timer_modify,
	.fill		= fb_timer_fill,
	.delivered	= fb_timer_delivered,
	.readable	= fb_timer_expired,
	.free_all	= fb_timers_free,
};
