// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * Types that the module lacks: their sources are here, and their watches are the module's
 *
 * The module hands a request for such a type back. The library makes it, with a number for the
 * watch, arms the watch by the source that serves queues of the fallback as well, and posts what
 * happens. So the modes, the ring and the sleepers are the module's.
 *
 * While something is under way for a watch, the shadow of its queue has the library's record of
 * it. The shadow is found by the number of a descriptor, which may mean another queue since. So all
 * that rests on it is asked of the module: it knows the number of a watch, and whether its event is
 * delivered.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/device.h"
#include "api/process.h"
#include "driven.h"
#include "fallback.h"
#include "ops.h"
#include "sys.h"

/* No source has this condition: is the watch there? */
#define QUERY		0x40000000U
/* Watches whose event may be delivered since, looked at by each request */
#define LOOKS		2

/*
 * All that were ever made, one for each number that was a queue. They are added under
 * kevent_process_lock(), and none is taken off.
 */
static struct fb_queue *shadows;
/* The latest number of a watch. Atomic */
static __u32 numbers;

/* Watches */

/*
 * Post conditions of a watch, or take back what is not delivered. Returns that, 0, or -errno:
 * the watch is not there any more.
 */
static int drive(int fd, struct fb_queue *q, struct fb_watch *w, __u32 event)
{
	struct ukevent uk;

	w->ready = event;
	fb_fill(q, w, &uk);
	uk.event = event;
	uk.ret_flags = w->call;
	if (w->type == KEVENT_AIO)
		uk.ptr = w->key;
	return kevent_ioctl(fd, KEVENT_IOC_DRIVE, &uk);
}

/* The module has what there is to know. */
static void drop(struct fb_queue *q, struct fb_watch *w)
{
	if (w->stage == FB_RUNS)
		return;
	if (fb_ops_of(w)->delivered)
		fb_ops_of(w)->delivered(q, w);
	fb_kill(q, w);
}

/* Nothing is under way: what comes next, MODIFY says. */
static void drop_idle(struct fb_queue *q, struct fb_watch *w)
{
	if (w->stage == FB_IDLE)
		fb_kill(q, w);
}

void fb_occurred(struct fb_queue *q, struct fb_watch *w, __u32 mask)
{
	if (!q->shadow) {
		/* No call has said that the queue is open. */
		fb_own_check(&q->own[FB_OWN_KICK], q->fd);
		fb_report(q, w, mask);
		fb_kick(q);
	} else if (drive(q->fd, q, w, mask)) {
		fb_kill(q, w);
	} else if (w->stage == FB_OWES) {
		fb_enqueue(q, w);
	} else {
		if (w->stage == FB_WAITS)
			fb_ops_of(w)->delivered(q, w);
		drop_idle(q, w);
	}
}

void fb_take_back(struct fb_queue *q, struct fb_watch *w)
{
	if (q->shadow)
		drive(q->fd, q, w, 0);
	w->ready = 0;
	w->state &= ~FB_FIRED;
	fb_dequeue(q, w);
}

bool fb_is_there(struct fb_queue *q, struct fb_watch *w)
{
	return !q->shadow || !drive(q->fd, q, w, QUERY);
}

/* One-shot watches end with their delivery, which nobody tells of. */
static void look_at_some(struct fb_queue *q)
{
	struct fb_watch *w;
	int i;

	for (i = 0; i < LOOKS && q->lists[FB_READY].nr; i++) {
		w = fb_first(q, FB_READY);
		fb_dequeue(q, w);
		if (drive(q->fd, q, w, QUERY) == -ENOENT)
			drop(q, w);
		else
			fb_enqueue(q, w);
	}
}

/* The thread blocks all signals but the ones that the C library has for itself. */
int fb_start_thread(pthread_t *thread, void *(*function)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, function, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* Shadows */

/* kevent_process_lock() is held. */
static struct fb_queue *shadow_new(int fd)
{
	struct fb_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	if (fb_queue_clear(q)) {
		fb_index_free(&q->index);
		free(q);
		return NULL;
	}
	q->fd = fd;
	memset(q->own, -1, sizeof(q->own));
	q->shadow = true;
	q->process = kevent_process_mark();
	pthread_mutex_init(&q->lock, NULL);
	q->next = shadows;
	__atomic_store_n(&shadows, q, __ATOMIC_RELEASE);
	return q;
}

/* The next one of this process behind @q, or NULL */
static struct fb_queue *next_shadow(struct fb_queue *q)
{
	q = q ? q->next : __atomic_load_n(&shadows, __ATOMIC_ACQUIRE);
	while (q && !kevent_process_is(q->process))
		q = q->next;
	return q;
}

static struct fb_queue *find_shadow(int fd)
{
	struct fb_queue *q = next_shadow(NULL);

	while (q && q->fd != fd)
		q = next_shadow(q);
	return q;
}

/* Threads may come at once, and get the same one. */
struct fb_queue *fb_shadow(int fd)
{
	struct fb_queue *q = find_shadow(fd);

	if (q)
		return q;
	FB_HOLD(kevent_process_lock());
	q = find_shadow(fd);
	return q ? q : shadow_new(fd);
}

/* Does the shadow have the watch that the request to @fd means? */
static bool has_watch(struct fb_queue *q, int fd, const struct ukevent *uk)
{
	struct fb_watch *w;

	FB_HOLD_QUEUE(q, -1);
	w = fb_find_request(q, uk);
	return w && !drive(fd, q, w, QUERY);
}

/* The watch may have come by another descriptor of the queue. */
static struct fb_queue *shadow_for(int fd, __u32 cmd, const struct ukevent *uk)
{
	struct fb_queue *own = fb_shadow(fd), *q;

	if (!own || cmd == KEVENT_CTL_ADD || has_watch(own, fd, uk))
		return own;
	for (q = next_shadow(NULL); q; q = next_shadow(q))
		if (q != own && has_watch(q, fd, uk))
			return q;
	return own;
}

/* Requests */

/* Have the module make it: 0, 1 when an event is handed back, or -errno */
static int ask(int fd, __u32 cmd, struct ukevent *uk)
{
	struct kevent_dev_ctl a = { .cmd = cmd, .num = 1, .arg = (uintptr_t)uk };
	int ret;

	uk->req_flags |= KEVENT_REQ_DRIVEN;
	ret = kevent_ioctl(fd, KEVENT_IOC_CTL, &a);
	if (ret < 0)
		return ret;
	if (kevent_error(uk))
		return kevent_error(uk);
	return cmd == KEVENT_CTL_ADD ? ret : 0;
}

/* The same with a number */
static struct fb_watch *arm(struct fb_queue *q, const struct ukevent *uk, int *ret)
{
	struct fb_watch *w = NULL;

	*ret = fb_check_request(uk);
	if (!*ret)
		w = fb_watch_new(q, uk, ret);
	if (w)
		w->call = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
	return w;
}

void fb_end_watch(struct fb_queue *q, struct fb_watch *w)
{
	struct ukevent uk;

	if (q->shadow && fb_is_there(q, w)) {
		fb_fill(q, w, &uk);
		ask(q->fd, KEVENT_CTL_REMOVE, &uk);
	}
	fb_kill(q, w);
}

static int add(struct fb_queue *q, int fd, struct ukevent *uk)
{
	struct fb_watch *old = fb_find_request(q, uk), *w;
	struct ukevent k = *uk;
	int ret;

	w = arm(q, uk, &ret);
	if (!w)
		return ret;
	k.ret_flags = w->call;
	k.req_flags = w->req_flags;
	k.ret_data[0] = (__u32)ret;
	ret = ask(fd, KEVENT_CTL_ADD, &k);
	if (ret < 0) {
		fb_kill(q, w);
		return ret;
	}
	if (ret)
		*uk = k;
	/* ADD was accepted, so the module had no watch with this key any more. */
	if (old)
		drop(q, old);
	drop_idle(q, w);
	return ret;
}

/* An event that was for the watch alone stays, and it need not wait for another one. */
static void keep_owed(struct fb_queue *q, struct fb_watch *old, struct fb_watch *w)
{
	__u32 mask = fb_ops_of(w)->marks;

	old->call = w->call;
	fb_kill(q, w);
	fb_dequeue(q, old);
	fb_occurred(q, old, mask);
}

/* It goes on as it is. */
static int modify_timer(int fd, const struct ukevent *uk, const struct fb_watch *w)
{
	struct ukevent k = *uk;
	int err = fb_check_request(uk);

	if (err)
		return err;
	k.ret_flags = w ? w->call : 0;
	return ask(fd, KEVENT_CTL_MODIFY, &k);
}

static int modify(struct fb_queue *q, int fd, struct ukevent *uk)
{
	struct fb_watch *old = fb_find_request(q, uk), *w;
	struct ukevent k = *uk;
	int ret, err, back;

	if (fb_sources[uk->type]->fixed)
		return -EPERM;
	if (uk->type == KEVENT_POSIX_TIMER)
		return modify_timer(fd, uk, old);
	w = arm(q, uk, &ret);
	if (!w)
		return ret;
	k.ret_flags = w->call;
	err = ask(fd, KEVENT_CTL_MODIFY, &k);
	if (err) {
		fb_kill(q, w);
		return err;
	}
	back = drive(fd, q, w, 0);
	if (old && back > 0 && old->stage == FB_OWES) {
		if (!(w->state & FB_DISARMED)) {
			keep_owed(q, old, w);
			return 0;
		}
		/* Its end gives it away. */
		fb_kill(q, old);
		back = 0;
	} else if (old) {
		drop(q, old);
	}
	if (back > 0 || ret)
		drive(fd, q, w, back > 0 ? (__u32)back | (__u32)ret : (__u32)ret);
	drop_idle(q, w);
	return 0;
}

static int remove_watch(struct fb_queue *q, int fd, struct ukevent *uk)
{
	struct fb_watch *w = fb_find_request(q, uk);
	struct ukevent k = *uk;
	int ret, back = 0;

	if (w && fb_ops_of(w)->remove)
		return fb_ops_of(w)->remove(q, w);
	if (w)
		back = drive(fd, q, w, 0);
	ret = ask(fd, KEVENT_CTL_REMOVE, &k);
	if (ret && ret != -ENOENT) {
		if (back > 0)
			drive(fd, q, w, (__u32)back);
		return ret;
	}
	if (w && back > 0)
		fb_kill(q, w);
	else if (w)
		drop(q, w);
	return ret;
}

static int make(struct fb_queue *q, int fd, __u32 cmd, struct ukevent *uk)
{
	struct ukevent k = *uk;
	struct fb_watch *w;

	look_at_some(q);
	switch (cmd) {
	case KEVENT_CTL_ADD:
		return add(q, fd, uk);
	case KEVENT_CTL_MODIFY:
		return modify(q, fd, uk);
	case KEVENT_CTL_REMOVE:
		return remove_watch(q, fd, uk);
	default:
		/* A mark of a POSIX timer has no effect: expirations are reported anyway. */
		w = fb_find_request(q, uk);
		if (uk->type == KEVENT_POSIX_TIMER)
			return w && !drive(fd, q, w, QUERY) ? 0 : -ENOENT;
		return fb_sources[uk->type]->fixed ? -EPERM : ask(fd, cmd, &k);
	}
}

bool kevent_driven_lacks(__u32 type)
{
	return !fb_has_type(type) || !fb_sources[type]->driven;
}

int kevent_driven_make(int fd, __u32 cmd, struct ukevent *uk)
{
	struct fb_queue *q;
	int ret = -ENOSYS;

	if (!kevent_driven_lacks(uk->type)) {
		q = shadow_for(fd, cmd, uk);
		ret = -ENOMEM;
		if (q) {
			FB_HOLD_QUEUE(q, -1);
			ret = make(q, fd, cmd, uk);
		}
	}
	if (ret <= 0)
		fb_set_result(uk, ret);
	return ret;
}

/* If the event was not delivered, fb_kill() gives it to other waiters. */
static void end_watch(struct fb_queue *q, struct fb_watch *w)
{
	if (w->stage == FB_RUNS || (w->stage == FB_OWES && !drive(q->fd, q, w, 0)))
		drop(q, w);
	else
		fb_kill(q, w);
}

static void end_watches(struct fb_queue *q)
{
	struct fb_watch *w, *next;
	__u32 i;

	fb_for_each_watch(&q->index, i, w, next)
		end_watch(q, w);
}

void kevent_driven_close(int fd)
{
	struct fb_queue *q = find_shadow(fd);

	if (!q)
		return;
	fb_queue_lock(q, -1);
	end_watches(q);
	/* By this a serving thread finds that its queue was closed, and does not count its chain. */
	__atomic_add_fetch(&q->call, 1, __ATOMIC_SEQ_CST);
	q->serving.running = 0;
	fb_queue_unlock(q);
	fb_bump(&q->serving.wakeups, INT_MAX);
}
