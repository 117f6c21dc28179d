// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * From descriptors to queues
 *
 * A program closes a queue by close(), which the library does not see, and the
 * number comes back as something else. So a number in the table is a guess: calls
 * find out from epoll whether it is right, and forget it if it is not. A new queue
 * with the number of an old one proves that the old one is closed.
 *
 * Readers take no lock. Memory of a queue is never given back to the C library, so
 * a reader that comes late increments a count that nobody uses, sees that the table
 * has changed, and goes away again.
 *
 * A queue ends where its last reference is given back.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/device.h"
#include "api/process.h"
#include "count.h"
#include "fallback.h"
#include "ops.h"
#include "sys.h"

/* All queues ever made: the most there were at a time. Under the lock. */
static struct fb_queue *fb_queues;
/* Where to look next for a number that was closed. Under the lock. */
static int fb_suspect;

/*
 * States of a queue, in the low bits of fb_queue.users, and a user above them. The lock of
 * the table is held to leave FREE and LIVE.
 */
enum { FB_FREE, FB_LIVE, FB_DYING, FB_DEAD, FB_USER };

/* Users come and go meanwhile. */
static void fb_set_state(struct fb_queue *q, __u32 state)
{
	__u32 users = __atomic_load_n(&q->users, __ATOMIC_SEQ_CST);

	while (!__atomic_compare_exchange_n(&q->users, &users,
					    users - users % FB_USER + state, 0,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static __u32 fb_state(struct fb_queue *q)
{
	return __atomic_load_n(&q->users, __ATOMIC_SEQ_CST) % FB_USER;
}

bool fb_is_live(struct fb_queue *q)
{
	return fb_state(q) == FB_LIVE;
}

/* True: the caller has made it dead. It is what it was, so nobody came or went. */
static bool fb_make_dead(struct fb_queue *q, __u32 dying)
{
	return __atomic_compare_exchange_n(&q->users, &dying,
					   dying - FB_DYING + FB_DEAD, 0,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Nobody else uses the queue. The number of its epoll may be that of another file by
 * now, maybe of an epoll of the program, so nothing is taken from there: epoll forgets
 * all when it is closed. If it were a part of fb_put(), each call would save more registers.
 */
static __attribute__((noinline)) void fb_queue_teardown(struct fb_queue *q)
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
static void fb_queue_let_go(struct fb_queue *q)
{
	int epoll = fb_queue_check(q, q->fd) ? -1 : q->fd;
	__u32 i;

	for (i = 0; i < FB_NR_TYPES; i++)
		if (fb_sources[i] && fb_sources[i]->let_go)
			fb_sources[i]->let_go(q);
	fb_own_let_go(q, epoll);
}

void fb_put(struct fb_queue *q)
{
	if (fb_count_add(&q->users, -(__u32)FB_USER) != FB_DYING ||
	    !fb_make_dead(q, FB_DYING))
		return;
	fb_queue_teardown(q);
	fb_set_state(q, FB_FREE);
}

static inline struct fb_queue *fb_get_named(int fd)
{
	struct fb_number *n = fb_number(fd);
	struct fb_queue *q;

	if (!n)
		return NULL;
	for (;;) {
		q = __atomic_load_n(&n->named, __ATOMIC_SEQ_CST);
		if (!q)
			return NULL;
		fb_count_add(&q->users, FB_USER);
		if (__atomic_load_n(&n->named, __ATOMIC_SEQ_CST) == q)
			return q;
		fb_put(q);
	}
}

/*
 * Take a name from a queue; the lock is held. Returns the queue, referenced, if that
 * was its last one: fb_end() it without the lock.
 */
static struct fb_queue *fb_clear(struct fb_number *n)
{
	struct fb_queue *q = n->named;

	__atomic_store_n(&n->named, NULL, __ATOMIC_SEQ_CST);
	if (__atomic_sub_fetch(&q->names, 1, __ATOMIC_RELAXED))
		return NULL;
	fb_count_add(&q->users, FB_USER);
	fb_set_state(q, FB_DYING);
	fb_bump(&q->serving.wakeups, INT_MAX);
	return q;
}

/*
 * fb_clear() has returned the queue, if any: it has no name any more, and the caller has a
 * reference. In a child, references may be those of threads that only the parent has, so it does
 * not wait for the last one: calls look at nothing of such a queue that goes away.
 */
static void fb_end(struct fb_queue *q)
{
	__u32 users;

	if (!q)
		return;
	while (!kevent_process_is(q->process)) {
		users = __atomic_load_n(&q->users, __ATOMIC_SEQ_CST);
		if (users % FB_USER != FB_DYING)
			break;
		if (fb_make_dead(q, users))
			fb_queue_let_go(q);
	}
	fb_put(q);
}

/* The number is new, so what had it before is closed. The lock is held; as fb_clear() */
static struct fb_queue *fb_vacate(struct fb_number *n)
{
	fb_own_lost(n);
	return n && n->named ? fb_clear(n) : NULL;
}

void fb_forget(int fd, struct fb_queue *q)
{
	struct fb_queue *last = NULL;
	struct fb_number *n;

	{
		FB_HOLD(kevent_process_lock());
		n = fb_number(fd);
		if (!q)
			last = fb_vacate(n);
		else if (n && n->named == q)
			last = fb_clear(n);
	}
	fb_end(last);
}

int fb_publish(int fd, struct fb_queue *q)
{
	struct fb_queue *last = NULL;
	struct fb_number *n;

	pthread_mutex_lock(kevent_process_lock());
	n = fb_number_make(fd);
	/* Another thread may have found the queue by this number. */
	if (n && n->named != q) {
		last = fb_vacate(n);
		__atomic_add_fetch(&q->names, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&n->named, q, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(kevent_process_lock());
	fb_end(last);
	if (!n)
		return fd < (int)FB_NUMBERS ? -ENOMEM : -EMFILE;
	__atomic_or_fetch(&kevent_ways, KEVENT_WAY_FALLBACK, __ATOMIC_ACQ_REL);
	return 0;
}

void kevent_fb_lost(int fd)
{
	if (kevent_fb_on())
		fb_forget(fd, NULL);
}

/* The caller, who made it, has found that it is of no use. */
void fb_abandon(struct fb_queue *q)
{
	fb_set_state(q, FB_DYING);
	fb_put(q);
}

/*
 * The lock is held. Queues of the parent process are not used again: its threads may
 * have counted themselves as users.
 */
static struct fb_queue *fb_queue_new(void)
{
	struct fb_queue *q;

	for (q = fb_queues; q; q = q->next)
		if (fb_state(q) == FB_FREE &&
		    kevent_process_is(q->process))
			return q;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->fd = -1;
	memset(q->own, -1, sizeof(q->own));
	q->process = kevent_process_mark();
	pthread_mutex_init(&q->lock, NULL);
	q->next = fb_queues;
	fb_queues = q;
	return q;
}

/* The next number from @fd on that means a queue, or -1 */
static int fb_next_name(int fd)
{
	struct fb_number *n;

	while (fd < (int)FB_NUMBERS) {
		n = fb_number(fd);
		if (n && __atomic_load_n(&n->named, __ATOMIC_RELAXED))
			return fd;
		fd += n ? 1 : (int)FB_CHUNK - fd % (int)FB_CHUNK;
	}
	return -1;
}

/* Forget a number that was closed while nobody looked: all of them in turn. */
static void fb_sweep(void)
{
	struct fb_queue *q FB_PUT = NULL;
	int fd;

	pthread_mutex_lock(kevent_process_lock());
	fd = fb_next_name(fb_suspect);
	if (fd < 0)
		fd = fb_next_name(0);
	fb_suspect = fd + 1;
	pthread_mutex_unlock(kevent_process_lock());
	q = fb_get_named(fd);
	if (q && kevent_process_is(q->process) && fb_queue_check(q, fd))
		fb_forget(fd, q);
}

struct fb_queue *fb_queue_alloc(void)
{
	struct fb_queue *q;

	fb_sweep();
	fb_sweep();
	FB_HOLD(kevent_process_lock());
	q = fb_queue_new();
	if (q) {
		fb_count_add(&q->users, FB_USER);
		fb_set_state(q, FB_LIVE);
	}
	return q;
}

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

bool fb_ref(struct fb_queue *q)
{
	fb_count_add(&q->users, FB_USER);
	if (q->shadow || fb_is_live(q))
		return true;
	fb_put(q);
	return false;
}

/* Another descriptor of the epoll instance of a queue, by dup() for example */
static struct fb_queue *fb_alias(int fd)
{
	struct fb_queue *q;

	/* Queues are never taken off the list. */
	pthread_mutex_lock(kevent_process_lock());
	q = fb_queues;
	pthread_mutex_unlock(kevent_process_lock());
	for (; q; q = q->next) {
		if (!fb_ref(q))
			continue;
		if (kevent_process_is(q->process) &&
		    !fb_queue_check(q, fd) && !fb_publish(fd, q))
			return q;
		fb_put(q);
	}
	return NULL;
}

struct fb_queue *fb_get(int fd)
{
	struct fb_queue *q = fb_get_named(fd);

	if (q || !kevent_fb_on() || fb_call(fcntl(fd, F_GETFD)) < 0 || kevent_kernel_has(fd) ||
	    kevent_device_has(fd))
		return q;
	return fb_alias(fd);
}

int fb_not_this(int fd, struct fb_queue *q)
{
	fb_forget(fd, q);
	return KEVENT_FB_PASS;
}

int fb_queue_abroad(struct fb_queue *q, int fd)
{
	return fb_queue_check(q, fd) ? fb_not_this(fd, q) : -EXDEV;
}

bool kevent_fb_names(int fd)
{
	struct fb_queue *q FB_PUT = fb_get_named(fd);

	return q;
}

bool kevent_fb_has(int fd)
{
	struct fb_queue *q FB_PUT = fb_get(fd);

	return q && !fb_queue_check(q, fd);
}

void kevent_fb_close(int fd)
{
	struct fb_queue *q FB_PUT = fb_get_named(fd);

	if (q)
		fb_forget(fd, q);
}
