// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Queues of the fallback: their descriptors, their lock, kicks
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "fallback.h"
#include "ops.h"
#include "process.h"
#include "sys.h"

#define FB_HASH_MIN	16U

static int fb_queue_tables(struct fb_queue *q)
{
	q->nr_hash = FB_HASH_MIN;
	q->hash = calloc(q->nr_hash, sizeof(*q->hash));
	q->nr_slots = FB_HASH_MIN;
	q->slots = calloc(q->nr_slots, sizeof(*q->slots));
	q->free_slot = 0;
	if (!q->hash || !q->slots)
		return -ENOMEM;
	for (__u32 i = 0; i < q->nr_slots; i++)
		q->slots[i].next = i + 1;
	return 0;
}

static void fb_queue_clear(struct fb_queue *q)
{
	q->edges = false;
	q->work = false;
	q->idle = false;
	q->kicked = false;
	__atomic_store_n(&q->wakes, 0, __ATOMIC_RELAXED);
	q->herd = 0;
	q->kidx = 0;
	q->nr_ready = 0;
	q->nr_level = 0;
	q->nr_watches = 0;
	q->stray = 0;
	q->strays_other = 0;
	q->delivered = 0;
	q->second = -1;
	q->kick = -1;
	fb_list_init(&q->ready);
	fb_list_init(&q->level);
	fb_list_init(&q->serving.chains);
}

int fb_queue_setup(struct fb_queue *q, int fd, struct kevent_ring *ring,
		   __u32 size, __u32 flags)
{
	int err;

	fb_queue_clear(q);
	__atomic_store_n(&q->fd, fd, __ATOMIC_RELAXED);
	q->ring = ring;
	q->size = size;
	q->refuses = flags & KEVENT_INIT_REFUSE_ALL;
	q->process = kevent_process_mark();
	err = fb_queue_tables(q);
	if (err)
		return err;
	q->kick = (int)fb_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->kick < 0)
		return q->kick;
	err = fb_epoll_add(q, q->kick, EPOLLIN | EPOLLET, FB_TOKEN_KICK);
	if (!err && ring)
		fb_ring_clear(ring);
	return err;
}

/*
 * Nobody else uses the queue. In a child the descriptors are copies. The number of its
 * epoll may be that of another file by now, maybe of an epoll of the program, so nothing
 * is taken from there: epoll forgets all when it is closed.
 */
void fb_queue_teardown(struct fb_queue *q)
{
	fb_queue_lock(q, -1);
	__atomic_store_n(&q->fd, -1, __ATOMIC_RELAXED);
	/* The thread that waits for futex words goes on until it is stopped. */
	if (q->hash && q->slots)
		fb_kill_all(q);
	fb_queue_unlock(q);
	fb_futexes_free(q);
	fb_timers_free(q);
	fb_signals_free(q);
	fb_inodes_free(q);
	fb_close_fd(q->second);
	fb_close_fd(q->kick);
	free(q->hash);
	free(q->slots);
	q->hash = NULL;
	q->slots = NULL;
}

int fb_queue_check(struct fb_queue *q, int fd)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLET,
		.data.u64 = FB_TOKEN_KICK,
	};

	return fb_call(epoll_ctl(fd, EPOLL_CTL_MOD, q->kick, &event));
}

void fb_queue_lock(struct fb_queue *q, int fd)
{
	pthread_mutex_lock(&q->lock);
	/* The one that was used last: others may be closed. */
	if (fd >= 0)
		__atomic_store_n(&q->fd, fd, __ATOMIC_RELAXED);
}

/* Calls that do not take the lock look at this. */
static void fb_queue_note_work(struct fb_queue *q)
{
	bool work = q->nr_ready || q->nr_level || q->wakes || q->herd ||
		    q->kicked;

	__atomic_store_n(&q->work, work, __ATOMIC_RELEASE);
}

void fb_queue_unlock(struct fb_queue *q)
{
	fb_queue_note_work(q);
	pthread_mutex_unlock(&q->lock);
}

/* Nobody needs the kick any more: the descriptor is not readable because of it. */
static void fb_unkick(struct fb_queue *q)
{
	__u64 nr;

	fb_sys(SYS_read, q->kick, &nr, sizeof(nr));
	q->kicked = false;
}

void fb_leave(struct fb_queue *q)
{
	if (q->nr_ready || q->wakes || q->herd)
		fb_kick(q);
	else if (q->kicked &&
		 !__atomic_load_n(&q->sleepers, __ATOMIC_SEQ_CST))
		fb_unkick(q);
}

void fb_kick(struct fb_queue *q)
{
	static const __u64 one = 1;

	if (q->kicked)
		return;
	q->kicked = true;
	/* Before a sleeper finds the kick. */
	fb_queue_note_work(q);
	fb_sys(SYS_write, q->kick, &one, sizeof(one));
}

void fb_kick_all(struct fb_queue *q)
{
	__u32 sleepers = __atomic_load_n(&q->sleepers, __ATOMIC_SEQ_CST);

	/*
	 * Also for a call that has found nothing and is about to sleep. One that begins
	 * with the new round finds work: the level watches. Pairs with fb_wait_init().
	 */
	__atomic_store_n(&q->work, true, __ATOMIC_RELAXED);
	__atomic_store_n(&q->round, q->round + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&q->herd, sleepers, __ATOMIC_RELAXED);
	if (sleepers)
		fb_kick(q);
}
