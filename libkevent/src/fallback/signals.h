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

/**
 * struct fb_listener - who wants a signal; under the lock of the hub
 * @link:	on a list of the hub
 * @queue:	of the listener
 * @arrived:	a signal has come that it wants
 * @listens:	it wants the next one
 * @once:	but none after that
 */
struct fb_listener {
	struct fb_list	link;
	struct fb_queue	*queue;
	void (*arrived)(struct fb_listener *l, const struct fb_siginfo *si);
	bool		listens;
	bool		once;
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

/* The lock is held from here on. */

/* Hand out what has come; @q need not be notified. */
void fb_hub_collect(struct fb_hub *hub, struct fb_queue *q);
/* From the next signal on: 0 or -errno. Earlier signals are handed out before. */
int fb_hub_listen(struct fb_hub *hub, struct fb_listener *l, __u32 signal,
		  bool once);
void fb_hub_ignore(struct fb_hub *hub, struct fb_listener *l, __u32 signal);

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_SIGNALS_H */
