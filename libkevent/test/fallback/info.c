// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Values of the fields that the kernel shows in fdinfo, for tests
 */
#include <string.h>

#include "api/process.h"
#include "fallback/fallback.h"
#include "fallback/ops.h"

static __u32 fb_info_watches(struct fb_queue *q)
{
	fb_kill_others(q);
	return q->index.nr;
}

/* Watches that epoll reports are ready, too: move them to the ready list. */
static __u32 fb_info_ready(struct fb_queue *q)
{
	__u32 rounds = fb_info_watches(q) / FB_BATCH + 1;
	struct fb_dest none;

	fb_dest_buffer(&none, NULL, 0);
	while (rounds-- && fb_collect(q, q->fd, &none) > 0)
		;
	if (q->lists[FB_READY].nr)
		fb_kick(q);
	return q->lists[FB_READY].nr;
}

static long long fb_info(struct fb_queue *q, const char *key)
{
	if (!strcmp(key, "kevent-watches"))
		return fb_info_watches(q);
	if (!strcmp(key, "kevent-ready"))
		return fb_info_ready(q);
	if (!strcmp(key, "kevent-waiting"))
		return __atomic_load_n(&q->sleepers.nr, __ATOMIC_RELAXED);
	if (!strcmp(key, "kevent-servers-asleep"))
		return q->serving.asleep;
	if (!strcmp(key, "kevent-delivered"))
		return (long long)q->delivered;
	if (!strcmp(key, "kevent-held"))
		return 0;
	if (!strcmp(key, "kevent-ring-size"))
		return q->ring.size;
	if (!strcmp(key, "kevent-ring-kidx"))
		return (long long)q->ring.kidx;
	if (!strcmp(key, "kevent-ring-uidx"))
		return q->ring.mem ? (long long)(q->ring.kidx - fb_unread(&q->ring)) : 0;
	return -1;
}

long long kevent_fb_info(int fd, const char *key)
{
	struct fb_queue *q FB_PUT = fb_get(fd);

	if (!q || !kevent_process_is(q->process))
		return -1;
	FB_HOLD_QUEUE(q, fd);
	return fb_info(q, key);
}
