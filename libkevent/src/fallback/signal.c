// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * SIGNAL with KEVENT_SIGNAL_NOMASK
 *
 * Signals that have come are in the inbox of each watch, from where a call of its queue
 * takes them: see signals.c.
 */
#include <signal.h>
#include <stdlib.h>

#include "ops.h"
#include "signals.h"
#include "sys.h"

#define FB_MAX_KEPT	65536U

/* A signal that waits */
struct fb_kept {
	struct fb_kept		*next;
	struct fb_siginfo	si;
};

/**
 * struct fb_fifo - signals that wait
 * @oldest:	of a standard signal the only one, in @spare
 * @last:	the youngest of them
 * @spare:	memory for a standard signal
 * @nr:		how many
 */
struct fb_fifo {
	struct fb_kept	*oldest;
	struct fb_kept	*last;
	struct fb_kept	spare;
	__u32		nr;
};

/**
 * struct fb_signal - a watch of a signal
 * @w:		the watch
 * @listener:	under the lock of the hub, as @inbox
 * @inbox:	signals that no call of the queue has seen
 * @kept:	signals that are not yet delivered
 * @marked:	a mark, which has the number alone
 */
struct fb_signal {
	struct fb_watch		w;
	struct fb_listener	listener;
	struct fb_fifo		inbox;
	struct fb_fifo		kept;
	bool			marked;
};

static struct fb_signal *to_signal(struct fb_watch *w)
{
	return fb_container(w, struct fb_signal, w);
}

static __u32 fb_signal_nr(const struct fb_watch *w)
{
	return (__u32)w->key;
}

/* Signals that wait */

static struct fb_kept *fb_fifo_take(struct fb_fifo *fifo)
{
	struct fb_kept *kept = fifo->oldest;

	fifo->nr--;
	fifo->oldest = kept->next;
	if (!fifo->oldest)
		fifo->last = NULL;
	return kept;
}

static void fb_fifo_drop(struct fb_fifo *fifo)
{
	struct fb_kept *kept = fb_fifo_take(fifo);

	if (kept != &fifo->spare)
		free(kept);
}

static void fb_fifo_put(struct fb_fifo *fifo, struct fb_kept *kept)
{
	kept->next = NULL;
	if (fifo->last)
		fifo->last->next = kept;
	else
		fifo->oldest = kept;
	fifo->last = kept;
	fifo->nr++;
}

/* Standard signals merge, and so do others when there is no memory. */
static void fb_fifo_add(struct fb_fifo *fifo, const struct fb_siginfo *si)
{
	struct fb_kept *kept = NULL;

	if (si->signal >= FB_SIGRTMIN && fifo->nr < FB_MAX_KEPT)
		kept = malloc(sizeof(*kept));
	if (!kept && fifo->oldest)
		return;
	if (!kept)
		kept = &fifo->spare;
	kept->si = *si;
	fb_fifo_put(fifo, kept);
}

static void fb_fifo_move(struct fb_fifo *to, struct fb_fifo *from)
{
	struct fb_kept *kept = fb_fifo_take(from);

	if (kept == &from->spare)
		fb_fifo_add(to, &kept->si);
	else if (to->nr < FB_MAX_KEPT)
		fb_fifo_put(to, kept);
	else
		free(kept);
}

static void fb_signal_arrived(struct fb_listener *l, const struct fb_siginfo *si)
{
	struct fb_signal *s = fb_container(l, struct fb_signal, listener);

	fb_fifo_add(&s->inbox, si);
	l->queue->signals |= 1ULL << (si->signal - 1);
}

/* Queues */

static int fb_signals_get(struct fb_queue *q)
{
	struct fb_hub *hub;
	int err;

	if (q->hub)
		return 0;
	hub = fb_hub_get();
	err = hub ? fb_hub_join(hub, q) : -ENOMEM;
	if (!err)
		q->hub = hub;
	return err;
}

static int fb_signals_register(struct fb_queue *q)
{
	return q->hub ? fb_hub_register(q->hub, q) : 0;
}

static void fb_signals_let_go(struct fb_queue *q)
{
	if (q->hub)
		fb_hub_leave_parent();
}

static void fb_signals_free(struct fb_queue *q)
{
	if (q->hub)
		fb_hub_quit(q->hub);
	q->hub = NULL;
	q->signals = 0;
}

/* Signals in the inbox of a watch become its events. */
static void fb_signal_empty_inbox(struct fb_queue *q, struct fb_signal *s)
{
	{
		FB_HOLD_HUB(q->hub);
		while (s->inbox.nr)
			fb_fifo_move(&s->kept, &s->inbox);
	}
	if (s->kept.nr)
		fb_report(q, &s->w, KEVENT_SIGNAL_DELIVERY);
}

static void fb_signals_read(struct fb_queue *q)
{
	struct fb_watch *w;
	__u64 pending;
	__u32 nr;

	{
		FB_HOLD_HUB(q->hub);
		fb_hub_collect(q->hub, q);
		pending = q->signals;
		q->signals = 0;
	}
	for (nr = 1; pending; pending >>= 1, nr++) {
		w = pending & 1 ? fb_find(&q->index, KEVENT_SIGNAL, nr) : NULL;
		if (w)
			fb_signal_empty_inbox(q, to_signal(w));
	}
}

static void fb_signals_readable(struct fb_queue *q, __u32 nr)
{
	/* A call may have the event of a registration that was taken back. */
	if (q->hub)
		fb_signals_read(q);
}

/* Take the signal from now on. */
static int fb_signal_listen(struct fb_queue *q, struct fb_watch *w)
{
	FB_HOLD_HUB(q->hub);
	return fb_hub_listen(q->hub, &to_signal(w)->listener, fb_signal_nr(w),
			     w->req_flags & (KEVENT_REQ_ONESHOT |
					     KEVENT_REQ_DISPATCH));
}

/* It has its normal effect again. */
static void fb_signal_ignore(struct fb_queue *q, struct fb_watch *w)
{
	FB_HOLD_HUB(q->hub);
	fb_hub_ignore(q->hub, &to_signal(w)->listener, fb_signal_nr(w));
}

/* Requests */

static __u64 fb_signal_key(const struct ukevent *uk)
{
	return uk->id.raw_u64 & ~KEVENT_SIGNAL_NOMASK;
}

static int fb_signal_check(const struct ukevent *uk)
{
	__u64 nr = fb_signal_key(uk);
	bool consume = uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK;

	if (!nr || nr > FB_NR_SIGNALS || nr == SIGKILL || nr == SIGSTOP ||
	    uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	if (consume && (nr == SIGTTIN || nr == SIGTTOU))
		return -EINVAL;
	return consume ? 0 : -EOPNOTSUPP;
}

static int fb_signal_attach(struct fb_queue *q, struct fb_watch *w,
			    const struct ukevent *uk)
{
	struct fb_signal *s = to_signal(w);
	int err = fb_signals_get(q);

	if (err)
		return err;
	fb_list_init(&s->listener.link);
	s->listener.queue = q;
	s->listener.arrived = fb_signal_arrived;
	return w->state & FB_DISARMED ? 0 : fb_signal_listen(q, w);
}

/* Signals that have come so far are dropped with the watch. */
static void fb_signal_detach(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	if (!s->listener.queue)
		return;
	fb_signals_read(q);
	fb_signal_ignore(q, w);
	while (s->inbox.nr)
		fb_fifo_drop(&s->inbox);
	while (s->kept.nr)
		fb_fifo_drop(&s->kept);
}

/* Signals that came so far are for the watch as it was; disarmed, it keeps them. */
static int fb_signal_modify(struct fb_queue *q, struct fb_watch *w,
			    const struct ukevent *uk,
			    const struct fb_watch *old)
{
	fb_signals_read(q);
	if (!(w->state & FB_DISARMED))
		return fb_signal_listen(q, w);
	fb_signal_ignore(q, w);
	return 0;
}

static __u32 fb_signal_count(struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	return s->kept.nr + s->marked;
}

static void fb_signal_fill(struct fb_queue *q, struct fb_watch *w,
			   struct ukevent *uk)
{
	struct fb_signal *s = to_signal(w);
	const struct fb_kept *kept = s->kept.oldest;

	uk->id.raw_u64 = fb_signal_nr(w);
	uk->ret_data[0] = 0;
	if (!kept)
		return;
	uk->id.raw_u64 |= (__u64)(kept->si.pid & 0x7fffffffU) << 32;
	if (!kept->si.observed)
		uk->id.raw_u64 |= KEVENT_SIGNAL_NOMASK;
	uk->ret_data[0] = kept->si.code;
	uk->ret_data[1] = kept->si.value;
}

static void fb_signal_delivered(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	if (s->kept.nr)
		fb_fifo_drop(&s->kept);
	else
		s->marked = false;
}

static int fb_signal_mark(struct fb_queue *q, struct fb_watch *w,
			  const struct ukevent *uk)
{
	if (uk->event && uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	to_signal(w)->marked = true;
	w->ready |= KEVENT_SIGNAL_DELIVERY;
	return 0;
}

const struct fb_ops fb_signal_ops = {
	.size		= sizeof(struct fb_signal),
	.check		= fb_signal_check,
	.key		= fb_signal_key,
	.attach		= fb_signal_attach,
	.detach		= fb_signal_detach,
	.modify		= fb_signal_modify,
	.count		= fb_signal_count,
	.fill		= fb_signal_fill,
	.delivered	= fb_signal_delivered,
	.mark		= fb_signal_mark,
	.readable	= fb_signals_readable,
	.register_all	= fb_signals_register,
	.free_all	= fb_signals_free,
	.let_go		= fb_signals_let_go,
};
