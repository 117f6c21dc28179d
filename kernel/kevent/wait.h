/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Consumers that wait
 */
#ifndef _KEVENT_WAIT_H
#define _KEVENT_WAIT_H

#include <linux/types.h>

struct kevent_deadline;
struct kevent_news;
struct kevent_queue;

/* What kevent_sleep() returns to have the level watches looked at */
#define KEVENT_SLEPT_LOOK	2

u32 kevent_stored(struct kevent_queue *q, u32 old_kidx);
bool kevent_has_news(struct kevent_queue *q, const struct kevent_news *news);
int kevent_sleep(struct kevent_queue *q, const struct kevent_news *news,
		 const struct kevent_deadline *until);

#endif /* _KEVENT_WAIT_H */
