// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * FUTEX, by a thread in futex_waitv()
 *
 * Each queue that has such a watch has one. It waits for all words that are armed, and
 * for a word of its own, by which it learns that there are others. A wake-up that comes while it does not wait is lost unless the
 * word has changed: the next call says so, and does not say which word that is.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/process.h"
#include "ops.h"
#include "sys.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv		(KEVENT_NR_BASE + 449)
#endif

#define FB_WAITV_MAX		128U	/* words of one futex_waitv() */
#define FB_WAITV_U32		2U

/* As struct futex_waitv, which older headers lack */
struct fb_waitv {
	__u64	val;
	__u64	uaddr;
	__u32	flags;
	__u32	reserved;
};

/**
 * struct fb_futex - a watch of a futex word
 * @w:		the watch
 * @link:	in fb_futexes.armed while it waits; each time with a new token
 * @expected:	what the word is expected to have
 */
struct fb_futex {
	struct fb_watch	w;
	struct fb_list	link;
	__u32		expected;
};

/* A copy of the words that the thread waits for. From 1 on they have the tokens of watches. */
struct fb_waiting {
	struct fb_waitv	v[FB_WAITV_MAX];
	__u64		token[FB_WAITV_MAX];
	__u32		nr;
};

#define to_futex(watch)	fb_container(watch, struct fb_futex, w)

static __u32 *fb_futex_word(const struct fb_watch *w)
{
	return (__u32 *)(uintptr_t)w->key;
}

static int fb_futex_op(const struct fb_watch *w, int op)
{
	return w->event & KEVENT_FUTEX_PRIVATE ? op | FUTEX_PRIVATE_FLAG : op;
}

/*
 * Conditions of the word now, or -errno; it is not touched. To wait for no time would be to sleep
 * for the slack of a timer. A requeue of nobody only compares.
 */
static int fb_futex_poll(const struct fb_futex *f)
{
	long ret = fb_sys(SYS_futex, fb_futex_word(&f->w),
			  fb_futex_op(&f->w, FUTEX_CMP_REQUEUE), 0, 0,
			  fb_futex_word(&f->w), f->expected);

	if (ret == -EAGAIN)
		return (int)KEVENT_FUTEX_WAKE;
	return ret == -EFAULT ? -EFAULT : 0;
}

/* Somebody else's turn */
static void fb_word_pass_on(__u64 word, int op)
{
	fb_sys(SYS_futex, (uintptr_t)word, op, 1, NULL, NULL, 0);
}

static void fb_futex_pass_on(struct fb_futex *f)
{
	if (f->w.stage == FB_OWES)
		fb_word_pass_on(f->w.key, fb_futex_op(&f->w, FUTEX_WAKE));
	f->w.stage = FB_IDLE;
}

/* The thread */

static void fb_futexes_copy(struct fb_futexes *futexes, struct fb_waiting *to)
{
	struct fb_futex *f;

	to->v[0] = (struct fb_waitv){
		.val = futexes->word,
		.uaddr = (uintptr_t)&futexes->word,
		.flags = FB_WAITV_U32 | FUTEX_PRIVATE_FLAG,
	};
	to->nr = 1;
	fb_list_each(f, &futexes->armed, struct fb_futex, link) {
		to->token[to->nr] = f->w.token;
		to->v[to->nr++] = (struct fb_waitv){
			.val = f->expected,
			.uaddr = f->w.key,
			.flags = FB_WAITV_U32 |
				 (__u32)fb_futex_op(&f->w, 0),
		};
	}
}

static void fb_futex_disarm(struct fb_queue *q, struct fb_futex *f)
{
	if (f->w.stage != FB_WAITS)
		return;
	f->w.stage = FB_IDLE;
	fb_list_del(&f->link);
	q->futexes.nr--;
}

static void fb_futex_fire(struct fb_queue *q, struct fb_futex *f, bool woken)
{
	fb_futex_disarm(q, f);
	f->w.stage = woken ? FB_OWES : FB_IDLE;
	fb_occurred(q, &f->w, KEVENT_FUTEX_WAKE);
}

/* The watch that word @i of the wait was for, or NULL */
static struct fb_futex *fb_waited_for(struct fb_queue *q, const struct fb_waiting *of, __u32 i)
{
	struct fb_watch *w = fb_find(&q->index, KEVENT_FUTEX, of->v[i].uaddr);

	return w && w->stage == FB_WAITS && w->token == of->token[i] ? to_futex(w) : NULL;
}

/*
 * One was woken; if its watch has gone, it is somebody else's turn. If others have changed since,
 * the next wait says so.
 */
static void fb_futexes_woken(struct fb_queue *q, const struct fb_waiting *of, __u32 i)
{
	struct fb_futex *f = fb_waited_for(q, of, i);

	if (f)
		fb_futex_fire(q, f, true);
	else
		fb_word_pass_on(of->v[i].uaddr,
				FUTEX_WAKE | (int)(of->v[i].flags & FUTEX_PRIVATE_FLAG));
}

/* Some have changed, or are not there. */
static void fb_futexes_poll(struct fb_queue *q, const struct fb_waiting *of)
{
	struct fb_futex *f;
	__u32 i;

	for (i = 1; i < of->nr; i++) {
		f = fb_waited_for(q, of, i);
		if (f && fb_futex_poll(f))
			fb_futex_fire(q, f, false);
	}
}

/* A filter came after the thread: nothing can be waited for but the word of its own. */
static void fb_futexes_refused(struct fb_queue *q, const struct fb_waiting *of)
{
	struct fb_futex *f;

	fb_queue_lock(q, -1);
	while (!fb_list_empty(&q->futexes.armed)) {
		f = fb_container(q->futexes.armed.next, struct fb_futex, link);
		f->w.state |= FB_BROKEN;
		fb_futex_fire(q, f, false);
	}
	fb_queue_unlock(q);
	fb_sleep_at(&q->futexes.word, (__u32)of->v[0].val, NULL);
}

/* Which word was woken, or what the call says itself */
static long fb_futexes_wait(struct fb_queue *q, const struct fb_waiting *of)
{
	long ret = fb_sys(SYS_futex_waitv, of->v, of->nr, 0, NULL, 0);

	if (ret >= 0 || ret == -EAGAIN || ret == -EINTR || ret == -EFAULT)
		return ret;
	fb_futexes_refused(q, of);
	return -EAGAIN;
}

static void *fb_futex_thread(void *arg)
{
	struct fb_queue *q = arg;
	struct fb_futexes *futexes = &q->futexes;
	struct fb_waiting waiting;
	long woken;

	fb_queue_lock(q, -1);
	while (!futexes->stop) {
		fb_futexes_copy(futexes, &waiting);
		fb_queue_unlock(q);
		woken = fb_futexes_wait(q, &waiting);
		fb_queue_lock(q, -1);
		if (woken > 0)
			fb_futexes_woken(q, &waiting, (__u32)woken);
		else if (woken < 0)
			fb_futexes_poll(q, &waiting);
	}
	fb_queue_unlock(q);
	return NULL;
}

/* Kernels before 5.16 do not have it, and filters may refuse it by any error but this. */
static bool fb_futex_there(void)
{
	return fb_sys(SYS_futex_waitv, NULL, 0, 0, NULL, 0) == -EINVAL;
}

static int fb_futexes_get(struct fb_queue *q)
{
	if (q->futexes.nr)
		return 0;
	fb_list_init(&q->futexes.armed);
	q->futexes.stop = false;
	if (fb_start_thread(&q->futexes.thread, fb_futex_thread, q))
		return -ENOMEM;
	q->futexes.nr = 1;
	return 0;
}

static void fb_futexes_stop(struct fb_queue *q)
{
	int state;

	fb_queue_lock(q, -1);
	q->futexes.stop = true;
	fb_bump(&q->futexes.word, 1);
	fb_queue_unlock(q);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(q->futexes.thread, NULL);
	pthread_setcancelstate(state, NULL);
}

/* A child does not have the thread. */
static void fb_futexes_free(struct fb_queue *q)
{
	if (q->futexes.nr && kevent_process_is(q->process))
		fb_futexes_stop(q);
	q->futexes.nr = 0;
}

/* Requests */

static int fb_futex_check(const struct ukevent *uk)
{
	return !(uk->event & KEVENT_FUTEX_WAKE) || uk->ret_data[1] ||
	       uk->id.raw_u64 % sizeof(__u32) ? -EINVAL : 0;
}

static int fb_futex_arm(struct fb_queue *q, struct fb_futex *f,
			const struct ukevent *uk)
{
	struct fb_futexes *futexes = &q->futexes;
	int ret;

	f->expected = uk->ret_data[0];
	ret = fb_futex_poll(f);
	if (ret)
		return ret;
	if (futexes->nr == FB_WAITV_MAX)
		return -ENOSPC;
	fb_token_get(&q->index, &f->w);
	futexes->nr++;
	fb_list_add_tail(&f->link, &futexes->armed);
	f->w.stage = FB_WAITS;
	fb_bump(&futexes->word, 1);
	return 0;
}

static int fb_futex_attach(struct fb_queue *q, struct fb_watch *w,
			   const struct ukevent *uk)
{
	int err = fb_futexes_get(q);

	if (err || w->state & FB_DISARMED)
		return err;
	return fb_futex_arm(q, to_futex(w), uk);
}

static void fb_futex_detach(struct fb_queue *q, struct fb_watch *w)
{
	fb_futex_disarm(q, to_futex(w));
	fb_futex_pass_on(to_futex(w));
}

/* An event that is not delivered yet stays, and needs no futex. */
static int fb_futex_modify(struct fb_queue *q, struct fb_watch *w,
			   const struct ukevent *uk, const struct fb_watch *old)
{
	struct fb_futex *f = to_futex(w);

	fb_futex_disarm(q, f);
	if (w->state & FB_DISARMED) {
		if (w->stage == FB_OWES)
			w->ready = 0;
		fb_futex_pass_on(f);
		return 0;
	}
	return w->stage == FB_OWES ? 0 : fb_futex_arm(q, f, uk);
}

static void fb_futex_delivered(struct fb_queue *q, struct fb_watch *w)
{
	if (w->stage == FB_OWES)
		w->stage = FB_IDLE;
}

const struct fb_ops fb_futex_ops = {
	.size		= sizeof(struct fb_futex),
	.driven		= true,
	.events		= KEVENT_FUTEX_WAKE | KEVENT_FUTEX_PRIVATE,
	.marks		= KEVENT_FUTEX_WAKE,
	.there		= fb_futex_there,
	.check		= fb_futex_check,
	.attach		= fb_futex_attach,
	.detach		= fb_futex_detach,
	.modify		= fb_futex_modify,
	.delivered	= fb_futex_delivered,
	.free_all	= fb_futexes_free,
};
