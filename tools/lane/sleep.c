// SPDX-License-Identifier: GPL-2.0
/*
 * kevent-lane: the threads, and sleeping
 *
 * One of the threads that sleep watches the hub. Each has an eventfd, by which it is woken: the
 * stream that it waits for has something, or nobody watches the hub. One that sleeps in the
 * hub itself has that of the hub.
 *
 * A thread may not come back from a sleep: it is cancelled, or a handler leaves by
 * siglongjmp(). So before a handler runs, the sleep ends for the other threads, and what the
 * thread holds is put. Afterwards it is taken back if a descriptor has it still: the kernel
 * looks descriptors up again, too, when it goes on with a call after a handler.
 */
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "lane.h"

#define NO_DESCRIPTOR	INT_MAX	/* is reported at once */
#define CROWD		4096
#define AWAKE		64	/* in one section of the lock: then it sleeps for AWAKE_SPAN */
#define AWAKE_SPAN	100000	/* ns */
#define UNWOKEN		10000000	/* ns that a thread sleeps whom nobody can wake */

/* What a handler changes, so that the kernel does not sleep if it reads it afterwards */
struct sleep {
	struct pollfd		*fds;
	struct timespec		*span;
	struct epoll_event	*ev;	/* that the kernel has taken from the hub, up to a 0 */
};

struct thread {
	LIST_ENTRY(thread)	sleepers;
	struct hold		*holds;
	struct sleep		*sleep;	/* it sleeps */
	int			wake;	/* its eventfd, or -1 */
	bool			in_hub;
	bool			woken;
};

static __thread struct thread me __attribute__((tls_model("initial-exec"))) = { .wake = -1 };
static LIST_HEAD(, thread) sleepers = LIST_HEAD_INITIALIZER(sleepers);
static struct thread *watcher;
static pthread_key_t at_end;

/*
 * Sleeps beside those of other threads, less those of a thread that was alone. Threads that wait
 * at the same time wake each other, which costs more than memory saves.
 */
static unsigned int crowd;

bool lane_is_crowded(void)
{
	return crowd == CROWD;
}

static void see_crowd(void)
{
	if (lane_is_crowded())
		return;
	if (lane_has_sleepers())
		crowd++;
	else if (crowd)
		crowd--;
}

bool lane_has_sleepers(void)
{
	return !LIST_EMPTY(&sleepers);
}

static void wake(struct thread *t)
{
	const __u64 one = 1;
	int fd = t->in_hub ? lane_hub_wake_fd() : t->wake;

	if (fd >= 0 && !t->woken)
		t->woken = lane_call(SYS_write, fd, &one, sizeof(one)) > 0;
}

/* It alone may take what has woken it: the kernel would let it sleep on. */
bool lane_another_sleeps_in_hub(void)
{
	return watcher && watcher->in_hub && watcher != &me;
}

/* This thread has taken an edge that the other one does not see any more. */
void lane_wake_in_hub(void)
{
	if (lane_another_sleeps_in_hub())
		wake(watcher);
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

/* One that is woken already looks at all that there is to do. */
void lane_wake_one(void)
{
	struct thread *t;

	LIST_FOREACH(t, &sleepers, sleepers)
		if (t->woken)
			return;
	LIST_FOREACH(t, &sleepers, sleepers) {
		wake(t);
		if (t->woken)
			return;
	}
}

/* Before this thread leaves the lock: who is woken will watch. */
void lane_have_watcher(void)
{
	if (!watcher)
		lane_wake_one();
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
	__u64 nr;

	LIST_REMOVE(&me, sleepers);
	me.sleep = NULL;
	/* What has woken it in the hub stays there: a handler may sleep again, elsewhere. */
	if (me.woken && !me.in_hub)
		lane_call(SYS_read, me.wake, &nr, sizeof(nr));
	me.woken = false;
	me.in_hub = false;
	if (watcher == &me)
		watcher = NULL;
}

static void put_all(void)
{
	struct hold *h;

	/* No edge comes again, and the thread may not go on. */
	if (me.sleep->ev)
		lane_take_these(me.sleep->ev, LANE_EVENTS);
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
struct sleep *lane_before_handler(void)
{
	struct sleep *s = me.sleep;

	if (!s)
		return NULL;
	lane_lock();
	put_all();
	lane_unlock();
	return s;
}

/* The sleep is over, also if the kernel has not read it yet. */
void lane_after_handler(struct sleep *s)
{
	if (s && s->fds)
		s->fds[0].fd = NO_DESCRIPTOR;
	else if (s)
		memset(s->span, 0, sizeof(*s->span));
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
	lane_call(SYS_close, me.wake);
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
	crowd = 0;
	watcher = NULL;
	me.sleep = NULL;
	me.wake = -1;
	me.in_hub = false;
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

/* Before a call on the socket, whose own limit would begin now. NOT_OURS: make it. */
int lane_await_socket(int fd, int events, int64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = (short)events };
	struct timespec span;
	int nr = real()->ppoll(&p, 1, span_until(deadline, &span), NULL);

	return nr < 0 ? -errno : nr ? NOT_OURS : -EAGAIN;
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
	lane_call(SYS_close, fd);
}

static void begin_sleep(struct sleep *s)
{
	see_crowd();
	me.sleep = s;
	LIST_INSERT_HEAD(&sleepers, &me, sleepers);
	lane_stats.sleeps++;
	lane_interrupted = 0;
	lane_unlock_only();
}

static int end_sleep(struct hold *holds, int ret)
{
	if (me.sleep)
		stop_sleeping();
	else
		ret = take_back(holds) ? -EBADF : -EINTR;
	lane_dispatch();
	/* The process was stopped, and goes on. */
	return ret == -EINTR && !lane_interrupted ? 0 : ret;
}

/* A cancellation point */
static int sleep_in_poll(struct pollfd *fds, nfds_t nr, const struct timespec *span,
			 const sigset_t *mask)
{
	int ret;

	pthread_cleanup_push(cancelled, NULL);
	ret = real()->ppoll(fds, nr, span, mask) < 0 ? -errno : 0;
	pthread_cleanup_pop(0);
	return ret;
}

/*
 * False: there is something to do. A peer may say so for ever: each so often the thread sleeps all
 * the same, for a short time, in which handlers run and other threads get the lock.
 */
static bool may_sleep(int64_t *deadline)
{
	int64_t soon;
	struct timespec span;

	if (lane_may_sleep(!lane_has_sleepers(), span_until(*deadline, &span)))
		return true;
	lane_take_events();
	lane_dispatch();
	if (++lane_awake < AWAKE)
		return false;
	soon = lane_deadline(AWAKE_SPAN);
	if (*deadline < 0 || *deadline > soon)
		*deadline = soon;
	return true;
}

/* --- sleeping in the hub ------------------------------------------------- */

static bool lacks_pwait2;

/* A cancellation point */
static int sleep_in_epoll(struct epoll_event *ev, const struct timespec *span,
			  const sigset_t *mask)
{
	int ret;

	pthread_cleanup_push(cancelled, NULL);
	ret = real()->epoll_pwait2(lane_hub_fd(), ev, LANE_EVENTS, span, mask);
	if (ret < 0)
		ret = -errno;
	pthread_cleanup_pop(0);
	return ret;
}

/* The kernel is to read the span itself, which glibc copies where times are of 32 bits. */
bool lane_can_sleep_in_hub(void)
{
	return !watcher && lane_hub_fd() >= 0 && !lacks_pwait2 && real()->epoll_pwait2 &&
	       sizeof(long) == 8;
}

/* As lane_sleep(), for what the hub has only: one call, which takes the events, too */
int lane_sleep_in_hub(int64_t deadline, const sigset_t *mask)
{
	struct epoll_event ev[LANE_EVENTS] = { { .events = 0 } };
	struct hold *holds = me.holds;
	struct timespec span;
	struct sleep s = { .span = &span, .ev = ev };
	int nr;

	if (!may_sleep(&deadline))
		return 0;
	if (!span_until(deadline, &span))
		span = (struct timespec){ .tv_sec = INT_MAX };
	watcher = &me;
	me.in_hub = true;
	begin_sleep(&s);
	nr = sleep_in_epoll(ev, &span, mask);
	lane_lock();
	lacks_pwait2 = nr == -ENOSYS;
	if (lacks_pwait2)
		lane_take_events();
	lane_take_these(ev, nr);
	return end_sleep(holds, nr < 0 && nr != -ENOSYS ? nr : 0);
}

/* --- sleeping beside other files ------------------------------------------ */

/*
 * Sleeps until there may be something to do, or one of @fds from the third on is ready:
 * the first two are used here. What was ready before is to be looked at before, in the same
 * section of the lock. Return: 0, -EINTR, -EBADF (what the thread holds is gone), or
 * another error.
 */
int lane_sleep(struct pollfd *fds, nfds_t nr, int64_t deadline, const sigset_t *mask)
{
	struct hold *holds = me.holds;
	struct sleep s = { .fds = fds };
	struct timespec span, *left;
	int ret;

	if (nr == LANE_OWN && lane_can_sleep_in_hub())
		return lane_sleep_in_hub(deadline, mask);
	if (!may_sleep(&deadline))
		return 0;
	make_wake();
	left = span_until(deadline, &span);
	if (me.wake < 0 && !__libc_single_threaded && (!left || deadline - now_ns() > UNWOKEN))
		left = span_until(now_ns() + UNWOKEN, &span);
	/* One whom nobody can wake watches, too. */
	fds[0] = (struct pollfd){ .fd = watcher && me.wake >= 0 ? -1 : lane_hub_fd(),
				  .events = POLLIN };
	if (!watcher && fds[0].fd >= 0)
		watcher = &me;
	fds[1] = (struct pollfd){ .fd = me.wake, .events = POLLIN };
	begin_sleep(&s);
	ret = sleep_in_poll(fds, nr, left, mask);
	lane_lock();
	if (fds[0].revents)
		lane_take_events();
	return end_sleep(holds, ret);
}
