// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * SIGNAL with KEVENT_SIGNAL_NOMASK
 *
 * The hub gives signals that have come to each watch, and notes in the queue which watches
 * have some that no call has seen: see signals.c.
 */
#include <signal.h>
#include <stdlib.h>

#include "ops.h"
#include "signals.h"
#include "sys.h"

#define to_signal(watch)	fb_container(watch, struct fb_signal, w)

static __u32 fb_signal_nr(const struct fb_watch *w)
{
	return (__u32)w->key;
}

/* Signals that wait */

static struct fb_kept *fb_signal_oldest(const struct fb_signal *s)
{
	return fb_container(s->kept.next, struct fb_kept, link);
}

static void fb_signal_drop_oldest(struct fb_signal *s)
{
	struct fb_kept *kept = fb_signal_oldest(s);

	fb_list_del(&kept->link);
	__atomic_store_n(&s->nr, s->nr - 1, __ATOMIC_RELAXED);
	if (kept != &s->spare)
		free(kept);
}

static __u32 fb_signal_count(struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	return __atomic_load_n(&s->nr, __ATOMIC_RELAXED) + s->marked;
}

/* Signals that watches have got become their events. */
static void fb_signals_read(struct fb_queue *q, __u32 token)
{
	struct fb_watch *w;
	__u64 pending;
	__u32 nr;

	/* A call may have the event of a registration that was taken back. */
	if (!q->hub)
		return;
	{
		FB_HOLD_HUB(q->hub);
		fb_hub_collect(q->hub, q);
		pending = q->signals;
		q->signals = 0;
	}
	for (nr = 1; pending; pending >>= 1, nr++) {
		w = pending & 1 ? fb_find(&q->index, KEVENT_SIGNAL, nr) : NULL;
		if (w && fb_signal_count(w))
			fb_report(q, w, KEVENT_SIGNAL_DELIVERY);
	}
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
	int err = q->hub ? 0 : fb_hub_join(q);

	if (err)
		return err;
	fb_list_init(&s->kept);
	fb_list_init(&s->link);
	s->q = q;
	return w->state & FB_DISARMED ? 0 : fb_hub_listen(s);
}

/* Signals that have come so far are dropped with the watch. */
static void fb_signal_detach(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	if (!s->q)
		return;
	fb_signals_read(q, 0);
	fb_hub_ignore(s);
	while (s->nr)
		fb_signal_drop_oldest(s);
}

/* Signals that came so far are for the watch as it was; disarmed, it keeps them. */
static int fb_signal_modify(struct fb_queue *q, struct fb_watch *w,
			    const struct ukevent *uk,
			    const struct fb_watch *old)
{
	fb_signals_read(q, 0);
	if (!(w->state & FB_DISARMED))
		return fb_hub_listen(to_signal(w));
	fb_hub_ignore(to_signal(w));
	return 0;
}

static void fb_signal_fill(struct fb_queue *q, struct fb_watch *w,
			   struct ukevent *uk)
{
	struct fb_signal *s = to_signal(w);
	const struct fb_siginfo *si;

	uk->id.raw_u64 = fb_signal_nr(w);
	uk->ret_data[0] = 0;
	FB_HOLD_HUB(q->hub);
	if (!s->nr)
		return;
	si = &fb_signal_oldest(s)->si;
	uk->id.raw_u64 |= (__u64)(si->pid & 0x7fffffffU) << 32;
	if (!si->observed)
		uk->id.raw_u64 |= KEVENT_SIGNAL_NOMASK;
	uk->ret_data[0] = si->code;
	uk->ret_data[1] = si->value;
}

static void fb_signal_delivered(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	FB_HOLD_HUB(q->hub);
	if (s->nr)
		fb_signal_drop_oldest(s);
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
	.readable	= fb_signals_read,
	.register_all	= fb_hub_register,
	.free_all	= fb_hub_quit,
	.let_go		= fb_hub_leave_parent,
};
