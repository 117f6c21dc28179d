// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Queues of the fallback: how they begin and end
 */
#include "ops.h"
#include "sys.h"

int fb_queue_clear(struct fb_queue *q)
{
	__u32 i;

	q->edges = false;
	q->work = false;
	q->idle = false;
	q->gave_way = false;
	q->kick.pending = false;
	q->kick.counted = false;
	q->sleepers = (struct fb_sleepers){ .nr = 0 };
	q->stray = (struct fb_stray){ .token = 0 };
	q->delivered = 0;
	for (i = 0; i < FB_NR_LISTS; i++) {
		fb_list_init(&q->lists[i].head);
		q->lists[i].nr = 0;
	}
	fb_list_init(&q->serving.chains);
	fb_list_init(&q->timers.on_set);
	return fb_index_init(&q->index);
}

/*
 * Nobody else uses the queue. The number of its epoll may be that of another file by
 * now, maybe of an epoll of the program, so nothing is taken from there: epoll forgets
 * all when it is closed.
 */
void fb_queue_teardown(struct fb_queue *q)
{
	__u32 i;
	int epoll;

	fb_queue_lock(q, -1);
	/* The program may have closed what is not its own, and have other files there. */
	epoll = fb_queue_check(q, q->fd) ? -1 : q->fd;
	for (i = 0; i < FB_NR_OWN; i++)
		fb_own_check(&q->own[i], epoll);
	__atomic_store_n(&q->fd, -1, __ATOMIC_RELAXED);
	/* The thread that waits for futex words goes on until it is stopped. */
	fb_kill_all(q);
	fb_queue_unlock(q);
	for (i = 0; i < FB_NR_TYPES; i++)
		if (fb_sources[i] && fb_sources[i]->free_all)
			fb_sources[i]->free_all(q);
	for (i = 0; i < FB_NR_OWN; i++)
		fb_close_fd(&q->own[i]);
	fb_index_free(&q->index);
}

/*
 * In a child: the files behind the descriptors are those of the parent, too, so the child
 * closes them, and changes nothing. Threads of the parent went on while fork() copied its
 * memory, page by page: what they changed is half done here, and stays as it is.
 */
void fb_queue_let_go(struct fb_queue *q)
{
	int epoll = fb_queue_check(q, q->fd) ? -1 : q->fd;
	__u32 i;

	for (i = 0; i < FB_NR_TYPES; i++)
		if (fb_sources[i] && fb_sources[i]->let_go)
			fb_sources[i]->let_go(q);
	fb_own_let_go(q, epoll);
}
