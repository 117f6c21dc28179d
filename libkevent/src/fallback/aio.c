// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * AIO: chains that serving threads run, by ordinary calls
 *
 * The threads are those of the program in kevent_wait() with KEVENT_FLAGS_SERVE. They
 * sleep until a chain comes, and take the chains of a queue in turn. A thread that
 * blocks in a call of its chain counts as running: no hook says that it does.
 */
#include <stdint.h>
#include <limits.h>
#include <linux/time_types.h>

#include "call/run.h"
#include "deadline.h"
#include "driven.h"
#include "fallback.h"
#include "ops.h"
#include "sys.h"

/* So often a thread that sleeps looks whether the queue was closed, in ns. */
__s64 kevent_fb_serve_look = 500000000;

/**
 * struct fb_aio - a chain
 * @w:		its watch, which ends with the event
 * @link:	in fb_serving.chains while it waits
 * @calls:	the chain, of @nr entries
 * @from:	entry to begin with
 * @end:	what kevent_call() would return
 * @result:	of that entry
 */
struct fb_aio {
	struct fb_watch		w;
	struct fb_list		link;
	struct kevent_call	*calls;
	__u32			nr;
	__u32			from;
	__u32			end;
	__s64			result;
};

/**
 * struct fb_server - a call that serves
 * @q:		the queue
 * @fd:		its descriptor
 * @queues:	of a shadow: fb_queue.call when the call began
 * @ran:	chains that the call has run
 * @asleep:	it is one of fb_serving.asleep
 * @until:	when to return
 */
struct fb_server {
	struct fb_queue		*q;
	int			fd;
	__u32			queues;
	int			ran;
	bool			asleep;
	struct fb_deadline	until;
};

#define to_aio(watch)	fb_container(watch, struct fb_aio, w)

/* Wake-ups */

/* May one more chain be run? */
static bool fb_serve_may(const struct fb_serving *s)
{
	return !fb_list_empty(&s->chains) && s->running < s->limit;
}

/* Wake a thread for a chain; it wakes the next one. */
static void fb_serve_next(struct fb_serving *s)
{
	if (s->asleep && fb_serve_may(s))
		fb_bump(&s->wakeups, 1);
}

/* Requests */

/* Flags that mean something for a thing that happens once, and cannot be feigned */
#define FB_AIO_REQ \
	(KEVENT_REQ_ONESHOT | KEVENT_REQ_ET | KEVENT_REQ_WAKEUP_ALL)

static int fb_aio_check(const struct ukevent *uk)
{
	if (uk->event != KEVENT_AIO_DONE || uk->id.raw_u64 % sizeof(__u64) ||
	    uk->req_flags & ~FB_AIO_REQ)
		return -EINVAL;
	if (!uk->ret_data[0] || uk->ret_data[0] > KEVENT_CALL_MAX)
		return -EINVAL;
	return uk->ret_data[1] < uk->ret_data[0] ? 0 : -EINVAL;
}

static int fb_aio_attach(struct fb_queue *q, struct fb_watch *w,
			 const struct ukevent *uk)
{
	struct fb_aio *a = to_aio(w);

	a->calls = (struct kevent_call *)(uintptr_t)uk->id.raw_u64;
	a->nr = uk->ret_data[0];
	a->from = uk->ret_data[1];
	w->stage = FB_WAITS;
	fb_list_add_tail(&a->link, &q->serving.chains);
	fb_serve_next(&q->serving);
	return 0;
}

static void fb_aio_detach(struct fb_queue *q, struct fb_watch *w)
{
	if (w->stage == FB_WAITS)
		fb_list_del(&to_aio(w)->link);
}

static void fb_aio_end(struct fb_queue *q, struct fb_aio *a, __u32 end,
		       __s64 result)
{
	a->w.stage = FB_IDLE;
	a->end = end;
	a->result = result;
	fb_occurred(q, &a->w, KEVENT_AIO_DONE);
}

static int fb_aio_remove(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_aio *a = to_aio(w);

	if (w->stage != FB_WAITS)
		return -EALREADY;
	fb_list_del(&a->link);
	fb_aio_end(q, a, a->from | KEVENT_CALL_REFUSED, -ECANCELED);
	return 0;
}

static void fb_aio_fill(struct fb_queue *q, struct fb_watch *w,
			struct ukevent *uk)
{
	const struct fb_aio *a = to_aio(w);

	uk->id.raw_u64 = a->end;
	uk->ret_data[0] = (__u32)a->result;
	uk->ret_data[1] = (__u32)((__u64)a->result >> 32);
}

const struct fb_ops fb_aio_ops = {
	.size		= sizeof(struct fb_aio),
	.driven		= true,
	.once		= true,
	.fixed		= true,
	.by_user	= true,
	.check		= fb_aio_check,
	.attach		= fb_aio_attach,
	.detach		= fb_aio_detach,
	.remove		= fb_aio_remove,
	.fill		= fb_aio_fill,
};

/* Serving threads */

/* A thread that was asleep is awake until it finds nothing to do. */
static void fb_server_asleep(struct fb_server *c, bool asleep)
{
	struct fb_serving *s = &c->q->serving;

	if (asleep != c->asleep)
		s->asleep += asleep ? 1 : -1U;
	c->asleep = asleep;
}

/* The first chain of a queue that is open; the lock is held. */
static struct fb_aio *fb_aio_first(struct fb_queue *q)
{
	struct fb_serving *s = &q->serving;
	struct fb_aio *a;

	while (fb_serve_may(s)) {
		a = fb_container(s->chains.next, struct fb_aio, link);
		if (fb_is_there(q, &a->w))
			return a;
		fb_kill(q, &a->w);
	}
	return NULL;
}

/* A chain to run, or NULL: then whoever adds one wakes a thread. */
static struct fb_aio *fb_server_take(struct fb_server *c)
{
	struct fb_serving *s = &c->q->serving;
	struct fb_aio *a;

	FB_HOLD_QUEUE(c->q, c->fd);
	a = fb_aio_first(c->q);
	if (a) {
		fb_list_del(&a->link);
		a->w.stage = FB_RUNS;
		s->running++;
	}
	fb_server_asleep(c, !a);
	if (a)
		fb_serve_next(s);
	return a;
}

/* Was the queue of a shadow closed since? */
static bool fb_server_is_late(const struct fb_server *c)
{
	return c->q->shadow &&
	       __atomic_load_n(&c->q->call, __ATOMIC_SEQ_CST) != c->queues;
}

static void fb_server_run(struct fb_server *c, struct fb_aio *a)
{
	__u32 end = (__u32)kevent_call_rest(a->calls, a->from, a->nr);
	__s64 result = a->calls[end & ~KEVENT_CALL_REFUSED].result;

	if (c->ran < INT_MAX)
		c->ran++;
	/* The number may have been closed meanwhile. */
	FB_HOLD_QUEUE(c->q, -1);
	if (!fb_server_is_late(c))
		c->q->serving.running--;
	fb_aio_end(c->q, a, end, result);
}

/* A number that has come back as that of another file is closed, too. */
static bool fb_server_closed(struct fb_server *c)
{
	if (c->q->shadow)
		return fb_queue_check(c->q, c->fd) || fb_server_is_late(c);
	if (!fb_is_live(c->q))
		return true;
	if (!fb_queue_check(c->q, c->fd))
		return false;
	fb_forget(c->fd, c->q);
	return true;
}

/* As futex(2), for some time: nobody tells of a descriptor that is closed. */
static long fb_server_nap(struct fb_server *c, __u32 seen)
{
	struct __kernel_old_timespec nap;
	__s64 left;

	fb_deadline_bring_forward(&c->until, (__u64)kevent_fb_serve_look);
	left = fb_deadline_left(&c->until);
	fb_deadline_put_off(&c->until);
	nap.tv_sec = (long)(left / FB_NSEC_PER_SEC);
	nap.tv_nsec = (long)(left % FB_NSEC_PER_SEC);
	return left ? fb_sleep_at(&c->q->serving.wakeups, seen, &nap) : 0;
}

/* 0 at the end of the time, or -errno */
static int fb_server_loop(struct fb_server *c)
{
	struct fb_aio *a;
	__u32 seen;

	for (;;) {
		/* Before the checks that a wake-up would make out of date */
		seen = __atomic_load_n(&c->q->serving.wakeups, __ATOMIC_SEQ_CST);
		if (fb_server_closed(c))
			return -EBADF;
		a = fb_server_take(c);
		if (a) {
			fb_server_run(c, a);
			continue;
		}
		if (!fb_deadline_left(&c->until))
			return 0;
		if (fb_server_nap(c, seen) == -EINTR)
			return -EINTR;
	}
}

int fb_serve(struct fb_queue *q, int fd, __u32 limit,
	     const struct timespec *timeout, __u32 flags)
{
	struct fb_server c = {
		.q = q,
		.fd = fd,
		.queues = __atomic_load_n(&q->call, __ATOMIC_SEQ_CST),
	};
	int ret;

	if (!limit || flags & ~(KEVENT_FLAGS_ABSTIME | KEVENT_FLAGS_SERVE))
		return -EINVAL;
	ret = fb_deadline_init(&c.until, CLOCK_MONOTONIC,
			       flags & KEVENT_FLAGS_ABSTIME, timeout);
	if (ret)
		return ret;
	/* The time begins now. */
	fb_deadline_left(&c.until);
	/* The latest call says for all how many may run. */
	fb_queue_lock(q, fd);
	q->serving.limit = limit;
	fb_queue_unlock(q);
	ret = fb_server_loop(&c);
	/* A chain that the caller was woken for, or leaves, is for another thread. */
	fb_queue_lock(q, -1);
	fb_server_asleep(&c, false);
	fb_serve_next(&q->serving);
	fb_queue_unlock(q);
	return c.ran ? c.ran : ret;
}

int kevent_driven_serve(int fd, __u32 limit, const struct timespec *timeout, __u32 flags)
{
	struct fb_queue *q = fb_shadow(fd);
	int err = q ? fb_queue_check(q, fd) : -ENOMEM;

	return err ? err : fb_serve(q, fd, limit, timeout, flags);
}
