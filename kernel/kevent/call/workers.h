/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The serving threads of a queue, with CONFIG_KEVENT_AIO
 */
#ifndef _KEVENT_WORKERS_H
#define _KEVENT_WORKERS_H

#include <linux/types.h>

struct kevent_deadline;
struct kevent_queue;
struct kevent_run;

int kevent_aio_submit(struct kevent_queue *q, const struct kevent_run *run,
		      u64 cookie);
void kevent_crew_end(struct kevent_queue *q);
int kevent_serve(int fd, u32 limit, struct kevent_deadline *until);

#endif /* _KEVENT_WORKERS_H */
