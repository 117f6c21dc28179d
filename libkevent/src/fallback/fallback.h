/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The fallback, as the rest of the library sees it
 *
 * Where the kernel has no kevent, queues are made of epoll and its like.
 */
#ifndef LIBKEVENT_FALLBACK_H
#define LIBKEVENT_FALLBACK_H

#include <limits.h>
#include <stdbool.h>
#include "libkevent.h"
#include "api/kernel.h"

#pragma GCC visibility push(hidden)

/* No return value of a call: the descriptor is not one of the fallback's */
#define KEVENT_FB_PASS	INT_MIN

/* So often a serving thread looks by itself, in ns. Tests of wake-ups raise it. */
extern __s64 kevent_fb_serve_look;

static inline bool kevent_fb_on(void)
{
	return __builtin_expect(kevent_ways_now() & KEVENT_WAY_FALLBACK, 0);
}

/* As the system calls. The others return KEVENT_FB_PASS, too. */
int kevent_fb_init(struct kevent_ring *ring, __u32 ring_size, __u32 flags);
int kevent_fb_ctl(int fd, __u32 cmd, __u32 num, struct ukevent *arg);
int kevent_fb_get_events(int fd, __u32 min_nr, __u32 max_nr,
			 const struct timespec *timeout, struct ukevent *buf,
			 __u32 flags);
int kevent_fb_wait(int fd, __u32 num, __u32 old_kidx,
		   const struct timespec *timeout, __u32 flags,
		   const struct kevent_wait_arg *arg);
int kevent_fb_commit(int fd, __u64 uidx);

/* The descriptor is about to be closed: free what belongs to it. */
void kevent_fb_close(int fd);

/* The descriptor @file is about to be closed: remove its watches. */
void kevent_fb_unwatch(int fd, int file);

/* A new descriptor of somebody else: what had the number before is closed. */
void kevent_fb_lost(int fd);

/* Is the descriptor a queue of the fallback? */
bool kevent_fb_has(int fd);

/* Was it one when it was last used? That takes no system call. */
bool kevent_fb_names(int fd);

/*
 * Has the last collection found all there was? Then an empty ring is no reason to
 * look again at once. Says so once.
 */
bool kevent_fb_idle(int fd);

/* A number that fdinfo would have; -1: no such key, or queue. Tests have it, the library not. */
long long kevent_fb_info(int fd, const char *key);

#pragma GCC visibility pop

#endif /* LIBKEVENT_FALLBACK_H */
