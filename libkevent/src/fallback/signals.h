/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * Signals of the process, which all its queues share
 */
#ifndef LIBKEVENT_FB_SIGNALS_H
#define LIBKEVENT_FB_SIGNALS_H

#include "signal/siginfo.h"
#include "queue.h"

#pragma GCC visibility push(hidden)

#define FB_NR_SIGNALS	64U
#define FB_SIGRTMIN	32U

/* A signal that is to be delivered, or to be sent again */
struct fb_kept {
	struct fb_list		link;
	struct fb_siginfo	si;
};

/**
 * struct fb_signal - a watch of a signal; what follows @marked is under the lock of the hub
 * @w:		the watch
 * @q:		its queue
 * @marked:	a mark, which has the number alone
 * @link:	on a list of the hub
 * @listens:	it wants the next signal
 * @once:	but none after that
 * @kept:	signals that have come, the oldest first; of a standard signal one
 * @spare:	memory for that one
 * @nr:		how many. Read without the lock: only calls of the queue take any
 */
struct fb_signal {
	struct fb_watch		w;
	struct fb_queue		*q;
	bool			marked;
	struct fb_list		link;
	bool			listens;
	bool			once;
	struct fb_list		kept;
	struct fb_kept		spare;
	__u32			nr;
};

struct fb_hub;

pthread_mutex_t *fb_hub_mutex(struct fb_hub *hub);
#define FB_HOLD_HUB(hub)	FB_HOLD(fb_hub_mutex(hub))
/* The queue, which has none, gets the hub of this process: 0 or -errno */
int fb_hub_join(struct fb_queue *q);
/* If the queue has the hub: as methods of &struct fb_ops */
int fb_hub_register(struct fb_queue *q);
void fb_hub_quit(struct fb_queue *q);
void fb_hub_leave_parent(struct fb_queue *q);

/*
 * Take the signal, from the next one on, until ONESHOT or DISPATCH ends that: 0 or -errno.
 * Earlier signals are handed out before.
 */
int fb_hub_listen(struct fb_signal *s);
/* It has its normal effect again. */
void fb_hub_ignore(struct fb_signal *s);
/* Hand out what has come; @q need not be notified. The lock is held. */
void fb_hub_collect(struct fb_hub *hub, struct fb_queue *q);

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_SIGNALS_H */
