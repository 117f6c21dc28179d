// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The lock of a queue, and the wake-ups of those who sleep in its calls
 */
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
	const struct fb_sleepers *s = &q->sleepers;
	bool work = q->lists[FB_READY].nr || q->lists[FB_RECHECK].nr ||
		    s->wakes || s->herd || s->left || q->kick.pending;

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
	return fb_epoll_ctl(fd, EPOLL_CTL_MOD, q->own[FB_OWN_KICK], EPOLLIN | EPOLLET, FB_OWN_KICK);
}

/*
 * That takes less than a write, which is for the first time, and for when the descriptor
 * is closed: another one may have sleepers.
 */
void fb_kick(struct fb_queue *q)
{
	static const __u64 one = 1;

	if (q->kick.pending)
		return;
	q->kick.pending = true;
	/* Before a sleeper finds the kick. */
	fb_queue_note_work(q);
	if (q->kick.counted && !fb_kick_by(q, q->fd))
		return;
	fb_sys(SYS_write, q->own[FB_OWN_KICK], &one, sizeof(one));
	q->kick.counted = true;
}

/* Not twice: a call may have the first kick, and not the lock yet. */
int fb_kick_first(struct fb_queue *q, int fd)
{
	int err;

	if (!q->kick.counted || q->kick.pending)
		return fb_queue_check(q, fd);
	err = fb_kick_by(q, fd);
	q->kick.pending = !err;
	return err;
}

/* Nobody needs the kick any more: the descriptor is not readable because of it. */
static void fb_unkick(struct fb_queue *q)
{
	__u64 nr;

	fb_sys(SYS_read, q->own[FB_OWN_KICK], &nr, sizeof(nr));
	q->kick.pending = false;
	q->kick.counted = false;
}

void fb_kick_if_needed(struct fb_queue *q)
{
	if (q->lists[FB_READY].nr || q->sleepers.wakes || q->sleepers.herd || q->sleepers.left)
		fb_kick(q);
	else if (q->kick.pending && !fb_has_sleepers(q))
		fb_unkick(q);
}

void fb_kick_all(struct fb_queue *q)
{
	__u32 sleepers = __atomic_load_n(&q->sleepers.nr, __ATOMIC_SEQ_CST);

	/*
	 * Also for a call that has found nothing and is about to sleep. One that begins
	 * with the new round finds work: the level watches. Pairs with fb_wait_enter().
	 */
	__atomic_store_n(&q->work, true, __ATOMIC_RELAXED);
	__atomic_store_n(&q->sleepers.round, q->sleepers.round + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&q->sleepers.herd, sleepers, __ATOMIC_RELAXED);
	/* They look at the ring, and say anew what they wait for. */
	q->sleepers.left = 0;
	q->sleepers.soonest = ~0ULL;
	q->sleepers.several = ~0ULL;
	if (sleepers)
		fb_kick(q);
}
