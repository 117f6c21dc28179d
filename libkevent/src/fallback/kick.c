// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The lock of a queue, and the wake-ups of those who sleep in its calls
 */
#include <linux/futex.h>

#include "queue.h"
#include "sys.h"

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
	bool work = q->nr_ready || q->nr_recheck || q->wakes || q->herd ||
		    q->left || q->kicked;

	__atomic_store_n(&q->work, work, __ATOMIC_RELEASE);
}

void fb_queue_unlock(struct fb_queue *q)
{
	fb_queue_note_work(q);
	pthread_mutex_unlock(&q->lock);
}

/* Epoll looks at an eventfd anew, and reports it if it has a count. */
static int fb_kick_by(struct fb_queue *q, int fd)
{
	return fb_epoll_ctl(fd, EPOLL_CTL_MOD, q->kick, EPOLLIN | EPOLLET,
			    FB_TOKEN_KICK);
}

/*
 * That takes less than a write, which is for the first time, and for when the descriptor
 * is closed: another one may have sleepers.
 */
void fb_kick(struct fb_queue *q)
{
	static const __u64 one = 1;

	if (q->kicked)
		return;
	q->kicked = true;
	/* Before a sleeper finds the kick. */
	fb_queue_note_work(q);
	if (q->counted && !fb_kick_by(q, q->fd))
		return;
	fb_sys(SYS_write, q->kick, &one, sizeof(one));
	q->counted = true;
}

/* Not twice: a call may have the first kick, and not the lock yet. */
int fb_kick_first(struct fb_queue *q, int fd)
{
	int err;

	if (!q->counted || q->kicked)
		return fb_queue_check(q, fd);
	err = fb_kick_by(q, fd);
	q->kicked = !err;
	return err;
}

/* Nobody needs the kick any more: the descriptor is not readable because of it. */
static void fb_unkick(struct fb_queue *q)
{
	__u64 nr;

	fb_sys(SYS_read, q->kick, &nr, sizeof(nr));
	q->kicked = false;
	q->counted = false;
}

void fb_kick_if_needed(struct fb_queue *q)
{
	if (q->nr_ready || q->wakes || q->herd || q->left)
		fb_kick(q);
	else if (q->kicked && !fb_has_sleepers(q))
		fb_unkick(q);
}

void fb_kick_all(struct fb_queue *q)
{
	__u32 sleepers = __atomic_load_n(&q->sleepers, __ATOMIC_SEQ_CST);

	/*
	 * Also for a call that has found nothing and is about to sleep. One that begins
	 * with the new round finds work: the level watches. Pairs with fb_wait_enter().
	 */
	__atomic_store_n(&q->work, true, __ATOMIC_RELAXED);
	__atomic_store_n(&q->round, q->round + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&q->herd, sleepers, __ATOMIC_RELAXED);
	/* They look at the ring, and say anew what they wait for. */
	q->left = 0;
	q->soonest = ~0ULL;
	q->several = ~0ULL;
	if (sleepers)
		fb_kick(q);
}

void fb_wake_servers(struct fb_serving *s, int nr)
{
	__atomic_add_fetch(&s->wakeups, 1, __ATOMIC_SEQ_CST);
	fb_sys(SYS_futex, &s->wakeups, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, nr, NULL,
	       NULL, 0);
}
