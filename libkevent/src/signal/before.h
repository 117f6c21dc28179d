/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The action that a program has set for a signal, where a handler of the library stands in its
 * place
 */
#ifndef LIBKEVENT_FB_BEFORE_H
#define LIBKEVENT_FB_BEFORE_H

#include <signal.h>
#include <stdbool.h>
#include <linux/types.h>

#pragma GCC visibility push(hidden)

/**
 * struct fb_action - what a program has set
 * @copies:	handlers read one while the other is written
 * @at:		atomic: the one to read
 * @spent:	atomic: it had SA_RESETHAND, and has run
 */
struct fb_action {
	struct sigaction	copies[2];
	__u32			at;
	bool			spent;
};

/**
 * struct fb_before - what was there before our handler; changed under the lock of the hub
 * @first:	when it was set for the first time
 * @last:	what the program has set in its place since then
 * @over:	atomic: there is a @last. It may hand signals on to us, as what it has found,
 *		so @first stays
 * @placed:	our handler was set, and we have not taken it away
 */
struct fb_before {
	struct fb_action	first;
	struct fb_action	last;
	bool			over;
	bool			placed;
};

typedef void fb_handler(int signal, siginfo_t *info, void *context);

bool fb_has_handler(const struct sigaction *action, fb_handler *ours);
/* Set our handler, where @now is: 0 or -errno */
int fb_before_replace(struct fb_before *before, int signal,
		      const struct sigaction *now, fb_handler *ours);
/* Take it away, unless the program has set another one since. */
void fb_before_restore(struct fb_before *before, int signal, fb_handler *ours);
/* In our handler: what would be without it */
void fb_as_before(struct fb_before *before, int signal, siginfo_t *info,
		  void *context);

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_BEFORE_H */
