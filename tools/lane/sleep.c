// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the threads, and sleeping
 *
 * One of the threads that sleep watches the queue. Each has an eventfd, by which it is woken:
 * the stream that it waits for has something, or nobody watches the queue.
 *
 * A thread may not come back from a sleep: it is cancelled, or a handler leaves by
 * siglongjmp(). So before a handler runs, the sleep ends for the other threads, and what the
 * thread holds is put. Afterwards it is taken back if a descriptor has it still: the kernel
 * looks descriptors up again, too, when it goes on with a call after a handler.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "lane.h"

#define NO_DESCRIPTOR	INT_MAX	/* is reported at once */
#define UNWOKEN		10000000	/* ns that a thread sleeps whom nobody can wake */

struct thread {
	LIST_ENTRY(thread)	sleepers;
	struct hold		*holds;
	struct pollfd		*fds;	/* it sleeps */
	int			wake;	/* its eventfd, or -1 */
	bool			woken;
};

static __thread struct thread me __attribute__((tls_model("initial-exec"))) = { .wake = -1 };
static LIST_HEAD(, thread) sleepers = LIST_HEAD_INITIALIZER(sleepers);
static const struct thread *watcher;
static pthread_key_t at_end;

bool lane_has_sleepers(void)
{
	return !LIST_EMPTY(&sleepers);
}

static void wake(struct thread *t)
{
	const __u64 one = 1;

	if (t->wake >= 0 && !t->woken)
		t->woken = real()->write(t->wake, &one, sizeof(one)) > 0;
}

/* A thread that holds a connection last waits for nothing else. */
void lane_wake(const struct conn *c)
{
	const struct object *o;
	struct thread *t;

	LIST_FOREACH(t, &sleepers, sleepers) {
		o = t->holds ? t->holds->o : NULL;
		if (!c || !o || o->kind != CONN || o == &c->o)
			wake(t);
	}
}

void lane_wake_all(void)
{
	lane_wake(NULL);
}

/* Before this thread leaves the lock: one that is woken already will watch. */
void lane_have_watcher(void)
{
	struct thread *t;

	if (watcher)
		return;
	LIST_FOREACH(t, &sleepers, sleepers)
		if (t->woken)
			return;
	LIST_FOREACH(t, &sleepers, sleepers) {
		wake(t);
		if (t->woken)
			return;
	}
}

/* --- what a thread holds ------------------------------------------------- */

void lane_hold(struct hold *h, struct object *o)
{
	*h = (struct hold){ .outer = me.holds, .o = o, .serial = o->serial };
	o->refs++;
	me.holds = h;
}

void lane_release(struct hold *h)
{
	me.holds = h->outer;
	if (h->o)
		lane_put(h->o);
}

static void stop_sleeping(void)
{
	LIST_REMOVE(&me, sleepers);
	me.fds = NULL;
	if (watcher == &me)
		watcher = NULL;
}

static void put_all(void)
{
	struct hold *h;

	stop_sleeping();
	for (h = me.holds; h; h = h->outer) {
		if (!h->o)
			continue;
		if (h->o->kind == CONN)
			lane_end_turn((struct conn *)h->o);
		lane_put(h->o);
	}
	me.holds = NULL;
}

static int take_back(struct hold *holds)
{
	struct hold *h;
	int ret = 0;

	for (h = holds; h; h = h->outer) {
		if (h->o && lane_number_of(h->o, 0) >= 0 && h->o->serial == h->serial) {
			h->o->refs++;
			continue;
		}
		h->o = NULL;
		ret = -EBADF;
	}
	me.holds = holds;
	return ret;
}

/* --- a handler, or the end of the thread --------------------------------- */

/* Before a handler runs; what it returns is for lane_after_handler(). */
struct pollfd *lane_before_handler(void)
{
	struct pollfd *fds = me.fds;

	if (!fds)
		return NULL;
	lane_lock();
	put_all();
	lane_unlock();
	return fds;
}

/* The sleep is over, also if the kernel has not read @fds yet. */
void lane_after_handler(struct pollfd *fds)
{
	if (fds)
		fds[0].fd = NO_DESCRIPTOR;
}

static void cancelled(void *unused)
{
	(void)unused;
	lane_before_handler();
}

static void end_thread(void *unused)
{
	cancelled(unused);
	lane_lock();
	lane_table_set(me.wake, NULL);
	real()->close(me.wake);
	me.wake = -1;
	lane_unlock();
}

__attribute__((constructor)) static void watch_ends(void)
{
	pthread_key_create(&at_end, end_thread);
}

/* In a child there is this thread only. */
void lane_threads_forget(void)
{
	LIST_INIT(&sleepers);
	watcher = NULL;
	me.fds = NULL;
	me.wake = -1;
	me.woken = false;
}

/* --- time ---------------------------------------------------------------- */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t lane_deadline(int64_t span)
{
	return span < 0 ? FOREVER : span ? now_ns() + span : 0;
}

bool lane_is_over(int64_t deadline)
{
	return deadline >= 0 && (!deadline || now_ns() >= deadline);
}

/* How long to sleep. NULL: without an end */
static struct timespec *span_until(int64_t deadline, struct timespec *span)
{
	int64_t left = deadline > 0 ? deadline - now_ns() : 0;

	if (deadline < 0)
		return NULL;
	if (left < 0)
		left = 0;
	span->tv_sec = left / 1000000000;
	span->tv_nsec = left % 1000000000;
	return span;
}

/* --- sleeping ------------------------------------------------------------ */

/* Without a descriptor for it, the thread looks again in a while. */
static void make_wake(void)
{
	int fd;

	if (me.wake >= 0 || __libc_single_threaded)
		return;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return;
	if (!pthread_setspecific(at_end, &me))
		me.wake = lane_private_copy(fd, NULL);
	real()->close(fd);
}

/* A cancellation point */
static int sleep_in_kernel(struct pollfd *fds, nfds_t nr, const struct timespec *span,
			   const sigset_t *mask)
{
	int ret;

	pthread_cleanup_push(cancelled, NULL);
	ret = real()->ppoll(fds, nr, span, mask) < 0 ? -errno : 0;
	pthread_cleanup_pop(0);
	return ret;
}

static int wake_up(struct hold *holds, int ret)
{
	__u64 nr;

	if (me.fds)
		stop_sleeping();
	else
		ret = take_back(holds) ? -EBADF : -EINTR;
	if (me.woken && real()->read(me.wake, &nr, sizeof(nr)) > 0)
		me.woken = false;
	lane_take_events();
	lane_dispatch();
	return ret;
}

/*
 * Sleeps until there may be something to do, or one of @fds from the third on is ready:
 * the first two are used here. What was ready before is to be looked at before, in the same
 * section of the lock. Return: 0, -EINTR, -EBADF (what the thread holds is gone), or
 * another error.
 */
int lane_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask)
{
	struct hold *holds = me.holds;
	struct timespec span, *left = span_until(deadline, &span);
	int ret, queue = lane_queue_to_watch(!lane_has_sleepers(), left);

	if (queue < -1) {
		lane_take_events();
		lane_dispatch();
		return 0;
	}
	make_wake();
	if (me.wake < 0 && !__libc_single_threaded && (!left || deadline - now_ns() > UNWOKEN))
		left = span_until(now_ns() + UNWOKEN, &span);
	/* One whom nobody can wake watches, too. */
	fds[0] = (struct pollfd){ .fd = watcher && me.wake >= 0 ? -1 : queue, .events = POLLIN };
	if (!watcher && queue >= 0)
		watcher = &me;
	fds[1] = (struct pollfd){ .fd = me.wake, .events = POLLIN };
	me.fds = fds;
	LIST_INSERT_HEAD(&sleepers, &me, sleepers);
	lane_stats.sleeps++;
	lane_interrupted = 0;
	lane_unlock_only();
	ret = sleep_in_kernel(fds, nr, left, mask);
	lane_lock();
	return wake_up(holds, ret);
}
