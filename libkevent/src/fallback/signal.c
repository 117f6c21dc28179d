// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * SIGNAL with KEVENT_SIGNAL_NOMASK, by a signalfd
 *
 * A signalfd gets signals that are blocked, so ADD blocks the signal in its thread.
 * The program has to block it in all others.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "ops.h"
#include "sys.h"

#define FB_NR_SIGNALS	64U
#define FB_SIGRTMIN	32U
#define FB_MAX_KEPT	65536U

/* A real-time signal that waits to be delivered */
struct fb_kept {
	struct fb_kept	*next;
	__u32		code;
	__u32		value;
	__u32		pid;
};

/**
 * struct fb_signal - a watch of a signal
 * @w:		the watch
 * @oldest:	signals not yet delivered: of a standard signal the first one
 * @last:	the youngest of them
 * @spare:	memory for a standard signal
 * @nr:		how many
 * @marked:	a mark, which has the number alone
 * @blocked:	the signal was blocked for the watch, in @thread
 */
struct fb_signal {
	struct fb_watch	w;
	struct fb_kept	*oldest;
	struct fb_kept	*last;
	struct fb_kept	spare;
	__u32		nr;
	bool		marked;
	bool		blocked;
	pthread_t	thread;
};

/**
 * struct fb_signals - the signals of a queue
 * @fd:		a signalfd
 * @mask:	the signals it has, bit by bit
 */
struct fb_signals {
	int	fd;
	__u64	mask;
};

static struct fb_signal *to_signal(struct fb_watch *w)
{
	return fb_container(w, struct fb_signal, w);
}

static __u32 fb_signal_nr(const struct fb_watch *w)
{
	return (__u32)w->key;
}

/* The signalfd */

static int fb_signals_get(struct fb_queue *q)
{
	static const __u64 none;
	struct fb_signals *signals = q->signals;
	int err;

	if (signals)
		return 0;
	signals = calloc(1, sizeof(*signals));
	if (!signals)
		return -ENOMEM;
	err = fb_own(&signals->fd, fb_sys(SYS_signalfd4, -1, &none, sizeof(none),
					  SFD_CLOEXEC | SFD_NONBLOCK),
		     "[signalfd]");
	if (!err)
		err = fb_epoll_add(q, signals->fd, EPOLLIN, FB_TOKEN_SIGNALS);
	if (!err) {
		q->signals = signals;
		return 0;
	}
	fb_close_fd(&signals->fd);
	free(signals);
	return err;
}

int fb_signals_register(struct fb_queue *q)
{
	return q->signals ? fb_epoll_add(q, q->signals->fd, EPOLLIN,
					 FB_TOKEN_SIGNALS) : 0;
}

void fb_signals_check(struct fb_queue *q, int epoll)
{
	if (q->signals)
		fb_own_check(&q->signals->fd, epoll);
}

void fb_signals_free(struct fb_queue *q)
{
	if (q->signals)
		fb_close_fd(&q->signals->fd);
	free(q->signals);
	q->signals = NULL;
}

static int fb_signals_set(struct fb_queue *q, __u64 mask)
{
	int ret = (int)fb_sys(SYS_signalfd4, q->signals->fd, &mask,
			      sizeof(mask), 0);

	if (ret < 0)
		return ret;
	q->signals->mask = mask;
	return 0;
}

static __u64 fb_signal_bit(const struct fb_watch *w)
{
	return 1ULL << (fb_signal_nr(w) - 1);
}

/* Take the signal from now on. */
static int fb_signal_listen(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);
	__u64 bit = fb_signal_bit(w), old = 0;
	long ret;

	ret = fb_sys(SYS_rt_sigprocmask, SIG_BLOCK, &bit, &old, sizeof(bit));
	if (ret < 0)
		return (int)ret;
	if (!(old & bit)) {
		s->blocked = true;
		s->thread = pthread_self();
	}
	return fb_signals_set(q, q->signals->mask | bit);
}

/* It has its normal effect again, in the thread it was blocked in if that is here. */
static void fb_signal_ignore(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);
	__u64 bit = fb_signal_bit(w);

	if (q->signals->mask & bit)
		fb_signals_set(q, q->signals->mask & ~bit);
	if (!s->blocked || !pthread_equal(s->thread, pthread_self()))
		return;
	s->blocked = false;
	fb_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, NULL, sizeof(bit));
}

/* Signals not yet delivered */

static void fb_signal_drop_oldest(struct fb_signal *s)
{
	struct fb_kept *kept = s->oldest;

	s->nr--;
	s->oldest = kept->next;
	if (!s->oldest)
		s->last = NULL;
	if (kept != &s->spare)
		free(kept);
}

/* Standard signals merge, and so do others when there is no memory. */
static void fb_signal_keep(struct fb_signal *s,
			   const struct signalfd_siginfo *info)
{
	struct fb_kept *kept = NULL;

	if (fb_signal_nr(&s->w) >= FB_SIGRTMIN && s->nr < FB_MAX_KEPT)
		kept = malloc(sizeof(*kept));
	if (!kept && s->oldest)
		return;
	if (!kept)
		kept = &s->spare;
	kept->next = NULL;
	kept->code = (__u32)info->ssi_code;
	kept->value = (__u32)info->ssi_int;
	kept->pid = info->ssi_pid;
	if (s->last)
		s->last->next = kept;
	else
		s->oldest = kept;
	s->last = kept;
	s->nr++;
}

static void fb_signal_arrived(struct fb_queue *q,
			      const struct signalfd_siginfo *info)
{
	struct fb_watch *w = fb_find(q, KEVENT_SIGNAL, info->ssi_signo);

	if (!w)
		return;
	fb_signal_keep(to_signal(w), info);
	/* Those that follow are not for this watch. */
	if (w->req_flags & (KEVENT_REQ_ONESHOT | KEVENT_REQ_DISPATCH))
		fb_signal_ignore(q, w);
	fb_report(q, w, KEVENT_SIGNAL_DELIVERY);
}

/* One at a time: the first may be the last that is wanted. */
void fb_signals_read(struct fb_queue *q)
{
	struct signalfd_siginfo info;

	while (fb_sys(SYS_read, q->signals->fd, &info, sizeof(info)) ==
	       sizeof(info))
		fb_signal_arrived(q, &info);
}

/* Requests */

static int fb_signal_check(const struct ukevent *uk)
{
	__u64 nr = uk->id.raw_u64 & ~KEVENT_SIGNAL_NOMASK;
	bool consume = uk->id.raw_u64 & KEVENT_SIGNAL_NOMASK;

	if (!nr || nr > FB_NR_SIGNALS || nr == SIGKILL || nr == SIGSTOP ||
	    uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	if (consume && (nr == SIGTTIN || nr == SIGTTOU))
		return -EINVAL;
	return consume ? 0 : -EOPNOTSUPP;
}

static int fb_signal_key(const struct ukevent *uk, __u64 *key)
{
	*key = uk->id.raw_u64 & ~KEVENT_SIGNAL_NOMASK;
	return 0;
}

static int fb_signal_attach(struct fb_queue *q, struct fb_watch *w,
			    const struct ukevent *uk)
{
	int err = fb_signals_get(q);

	(void)uk;
	if (err || w->state & FB_DISARMED)
		return err;
	return fb_signal_listen(q, w);
}

static void fb_signal_detach(struct fb_queue *q, struct fb_watch *w)
{
	if (!q->signals)
		return;
	/* Those that came so far are dropped with the watch. */
	fb_signals_read(q);
	fb_signal_ignore(q, w);
}

static void fb_signal_release(struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	while (s->nr)
		fb_signal_drop_oldest(s);
}

static int fb_signal_modify(struct fb_queue *q, struct fb_watch *w,
			    const struct ukevent *uk,
			    const struct fb_watch *old)
{
	(void)uk;
	(void)old;
	if (w->state & FB_DISARMED) {
		/* Those that came so far wait for the next MODIFY. */
		fb_signals_read(q);
		fb_signal_ignore(q, w);
		return 0;
	}
	return fb_signal_listen(q, w);
}

static __u32 fb_signal_count(struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	return s->nr + s->marked;
}

static void fb_signal_fill(struct fb_queue *q, struct fb_watch *w,
			   struct ukevent *uk, __u32 nth)
{
	struct fb_signal *s = to_signal(w);
	const struct fb_kept *kept = s->oldest;

	(void)q;
	while (kept && nth--)
		kept = kept->next;
	uk->id.raw_u64 = fb_signal_nr(w);
	uk->ret_data[0] = 0;
	if (!kept)
		return;
	uk->id.raw_u64 |= (__u64)(kept->pid & 0x7fffffffU) << 32 |
			  KEVENT_SIGNAL_NOMASK;
	uk->ret_data[0] = kept->code;
	uk->ret_data[1] = kept->value;
}

static void fb_signal_delivered(struct fb_queue *q, struct fb_watch *w)
{
	struct fb_signal *s = to_signal(w);

	(void)q;
	if (s->nr)
		fb_signal_drop_oldest(s);
	else
		s->marked = false;
}

static int fb_signal_mark(struct fb_queue *q, struct fb_watch *w,
			  const struct ukevent *uk)
{
	(void)q;
	if (uk->event && uk->event != KEVENT_SIGNAL_DELIVERY)
		return -EINVAL;
	to_signal(w)->marked = true;
	w->ready |= KEVENT_SIGNAL_DELIVERY;
	return 0;
}

const struct fb_ops fb_signal_ops = {
	.name		= "signal",
	.size		= sizeof(struct fb_signal),
	.check		= fb_signal_check,
	.key		= fb_signal_key,
	.attach		= fb_signal_attach,
	.detach		= fb_signal_detach,
	.release	= fb_signal_release,
	.modify		= fb_signal_modify,
	.count		= fb_signal_count,
	.fill		= fb_signal_fill,
	.delivered	= fb_signal_delivered,
	.mark		= fb_signal_mark,
};
