/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The serving threads of a queue, and the chains that wait for them
 */
#ifndef _KEVENT_WORKERS_H
#define _KEVENT_WORKERS_H

#include <linux/errno.h>
#include <linux/list.h>
#include <linux/types.h>

#include "../core/types.h"
#include "chain.h"

struct kevent_deadline;
struct kevent_queue;

/**
 * struct kevent_job - a chain that was left to serving threads: a watch of type AIO
 * @kk:		the watch, found by its user value. While a thread runs the chain, which
 *		has the queue's file, nobody removes the watch
 * @link:	in &kevent_crew.jobs; empty when a thread has begun with it, or it is
 *		cancelled. Under &kevent_crew.lock
 * @run:	the chain, and where to begin; how it has ended. Under
 *		&kevent_queue.ready_lock
 */
struct kevent_job {
	struct kevent_keyed	kk;
	struct list_head	link;
	struct kevent_run	run;
};

/* With CONFIG_KEVENT_AIO */
int kevent_crew_claim(struct kevent_queue *q);
bool kevent_crew_is_mine(const struct kevent_queue *q);
void kevent_crew_enqueue(struct kevent_queue *q, struct kevent_job *job);
bool kevent_crew_dequeue(struct kevent_queue *q, struct kevent_job *job);
int kevent_crew_cancel(struct kevent *ke);
void kevent_crew_look(struct kevent_queue *q);
void kevent_crew_end(struct kevent_queue *q);

#ifdef CONFIG_KEVENT_AIO
int kevent_serve(int fd, u32 limit, struct kevent_deadline *until);
#else
static inline int kevent_serve(int fd, u32 limit,
			       struct kevent_deadline *until)
{
	return -EINVAL;
}
#endif

#endif /* _KEVENT_WORKERS_H */
