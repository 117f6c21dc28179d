// SPDX-License-Identifier: GPL-2.0
/*
 * kevent, level and edge triggered (et), through its ring
 *
 * Both modes read the ring first and make a call when it is empty; that call checks
 * level watches again. In mode levelcall each wait is a call, as in event loops that
 * have changes to make anyway. In mode copy the queue is level triggered and has no
 * ring: each wait is a call that copies events to a buffer, as epoll_wait() does.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libkevent.h>

#include "bench.h"

#define CTL_MAX		256	/* entries of one kevent_ctl() */
#define SLOTS_MIN	64
#define COPY_MAX	256	/* events of one kevent_get_events() */

/**
 * struct bench_queue - a queue
 * @q: the queue; without a ring in mode copy
 * @flags: request flags of each watch
 * @call: call each time
 */
struct bench_queue {
	struct kevent_queue	q;
	__u32			flags;
	bool			call;
};

/* An entry is stored again once it is consumed, so twice the ready ones fit */
static __u32 ring_slots(unsigned int ready)
{
	__u32 slots = SLOTS_MIN;

	while (slots < KEVENT_RING_MAX && slots < 2 * ready)
		slots *= 2;
	return slots;
}

static int init_with_ring(struct kevent_queue *q, __u32 slots)
{
	void *ring;

	if (posix_memalign(&ring, 64, KEVENT_RING_BYTES(slots)))
		bench_die("out of memory for a ring of %u slots", slots);
	/* A wake-up can store only in memory that is present. */
	memset(ring, 0, KEVENT_RING_BYTES(slots));
	return kevent_queue_init(q, ring, slots, 0);
}

static int init_without_ring(struct kevent_queue *q)
{
	*q = (struct kevent_queue){ .fd = kevent_init(NULL, 0, 0) };
	return q->fd < 0 ? q->fd : 0;
}

static struct bench_queue *queue_open(const char *mode, unsigned int watches,
				      unsigned int ready)
{
	struct bench_queue *q = bench_alloc(1, sizeof(*q));
	int error;

	(void)watches;
	if (!strcmp(mode, "copy"))
		error = init_without_ring(&q->q);
	else
		error = init_with_ring(&q->q, ring_slots(ready));
	if (error)
		bench_die("kevent_init: %s", strerror(-error));
	q->flags = 0;
	if (!strcmp(mode, "et"))
		q->flags |= KEVENT_REQ_ET;
	q->call = !strcmp(mode, "levelcall");
	return q;
}

static void queue_close(struct bench_queue *q)
{
	kevent_queue_close(&q->q);
	free(q->q.ring);
	free(q);
}

static void entry(const struct bench_queue *q, const struct bench_watch *w,
		  struct ukevent *ev)
{
	__u32 mask = 0;

	if (w->kind == BENCH_FILE) {
		kevent_set_poll(ev, w->fd, (__u32)w->events, q->flags,
				w->cookie);
		return;
	}
	if (w->events & POLLIN)
		mask |= KEVENT_SOCKET_RECV;
	if (w->events & POLLOUT)
		mask |= KEVENT_SOCKET_SEND;
	kevent_set_socket(ev, w->fd, mask, q->flags, w->cookie);
	if (w->kind == BENCH_PIPE)
		ev->type = KEVENT_PIPE;
}

/* An entry comes back only if it failed */
static void control(struct bench_queue *q, __u32 cmd,
		    const struct bench_watch *w, unsigned int nr)
{
	struct ukevent ev[CTL_MAX];
	unsigned int i, now;
	int ret;

	for (; nr; nr -= now, w += now) {
		now = nr < CTL_MAX ? nr : CTL_MAX;
		for (i = 0; i < now; i++)
			entry(q, &w[i], &ev[i]);
		ret = kevent_ctl(q->q.fd, cmd, now, ev);
		if (ret > 0)
			ret = kevent_error(&ev[0]);
		if (ret)
			bench_die("kevent_ctl %u: %s", cmd, strerror(-ret));
	}
}

static void queue_add(struct bench_queue *q, const struct bench_watch *w,
		      unsigned int nr)
{
	control(q, KEVENT_CTL_ADD, w, nr);
}

static void queue_modify(struct bench_queue *q, const struct bench_watch *w,
			 unsigned int nr)
{
	control(q, KEVENT_CTL_MODIFY, w, nr);
}

static void queue_remove(struct bench_queue *q, const struct bench_watch *w,
			 unsigned int nr)
{
	control(q, KEVENT_CTL_REMOVE, w, nr);
}

/*
 * Uses only the cookie of an entry, and whether it is broken. Sets @pos to the position
 * at which the ring was empty, if it was.
 */
static inline __attribute__((always_inline)) unsigned int
pop(struct bench_queue *q, uint64_t *cookies, unsigned int max, __u64 *pos)
{
	const volatile struct ukevent *ev;
	unsigned int nr, i;
	__u32 flags = 0;
	__u64 got;

	do {
		got = kevent_ring_peek(q->q.ring, pos);
		nr = got < max ? (unsigned int)got : max;
		for (i = 0; i < nr; i++) {
			ev = kevent_ring_entry(q->q.ring, q->q.size, *pos + i);
			cookies[i] = ev->ptr;
			flags |= ev->ret_flags;
		}
	} while (nr && !kevent_ring_take(q->q.ring, *pos, nr));
	if (nr && flags & KEVENT_RET_BROKEN)
		bench_die("kevent: a watch is broken");
	return nr;
}

static struct timespec timespec_of(int ms)
{
	return (struct timespec){
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000,
	};
}

/* A position after @kidx ends the wait. Returns false after the timeout. */
static bool fill(struct bench_queue *q, __u32 kidx, int timeout)
{
	struct timespec ts;
	int ret;

	if (timeout >= 0)
		ts = timespec_of(timeout);
	ret = kevent_wait(q->q.fd, q->q.size, kidx, timeout < 0 ? NULL : &ts,
			  0, NULL);
	if (ret < 0 && ret != -EINTR)
		bench_die("kevent_wait: %s", strerror(-ret));
	return ret != 0;
}

/* The ring was empty at @pos: that is the ring_kidx kevent_wait() needs. */
static __attribute__((noinline)) unsigned int
fill_and_pop(struct bench_queue *q, uint64_t *cookies, unsigned int max,
	     int timeout, __u64 pos)
{
	unsigned int nr;

	do {
		if (!fill(q, (__u32)pos, timeout))
			return 0;
		nr = pop(q, cookies, max, &pos);
	} while (!nr);
	return nr;
}

/*
 * A call makes the kernel check the watches reported before, as it must each
 * time
 */
static __attribute__((noinline)) unsigned int
call_and_pop(struct bench_queue *q, uint64_t *cookies, unsigned int max,
	     int timeout)
{
	unsigned int nr;
	__u32 uidx;
	__u64 pos;

	do {
		uidx = (__u32)__atomic_load_n(&q->q.ring->ring_uidx,
					      __ATOMIC_ACQUIRE);
		if (!fill(q, uidx, timeout))
			return 0;
		nr = pop(q, cookies, max, &pos);
	} while (!nr);
	return nr;
}

static __attribute__((noinline)) unsigned int
get_events(struct bench_queue *q, uint64_t *cookies, unsigned int max,
	   int timeout)
{
	struct timespec ts = timespec_of(timeout);
	struct ukevent ev[COPY_MAX];
	__u32 flags = 0;
	int i, nr;

	nr = kevent_get_events(q->q.fd, 1, max < COPY_MAX ? max : COPY_MAX,
			       timeout < 0 ? NULL : &ts, ev, 0);
	if (nr < 0 && nr != -EINTR)
		bench_die("kevent_get_events: %s", strerror(-nr));
	for (i = 0; i < nr; i++) {
		cookies[i] = ev[i].ptr;
		flags |= ev[i].ret_flags;
	}
	if (flags & KEVENT_RET_BROKEN)
		bench_die("kevent: a watch is broken");
	return nr < 0 ? 0 : (unsigned int)nr;
}

/* A call is for when the ring is empty. */
static __attribute__((noinline)) unsigned int
pop_or_call(struct bench_queue *q, uint64_t *cookies, unsigned int max,
	    int timeout)
{
	unsigned int nr;
	__u64 pos;

	nr = pop(q, cookies, max, &pos);
	return nr ? nr : fill_and_pop(q, cookies, max, timeout, pos);
}

static unsigned int queue_wait(struct bench_queue *q, uint64_t *cookies,
			       unsigned int max, int timeout)
{
	if (!q->q.ring)
		return get_events(q, cookies, max, timeout);
	if (q->call)
		return call_and_pop(q, cookies, max, timeout);
	return pop_or_call(q, cookies, max, timeout);
}

static void *queue_native(struct bench_queue *q)
{
	return &q->q;
}

int bench_kevent_probe(const char *mode)
{
	/* KEVENT_BACKEND=epoll measures the fallback; nothing else does. */
	__u32 flags = getenv("KEVENT_BACKEND") ? 0 : KEVENT_INIT_NO_FALLBACK;
	int fd = kevent_init(NULL, 0, flags);

	(void)mode;
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static const char *const modes[] = { "level", "levelcall", "copy", "et", NULL };

const struct bench_backend backend_kevent = {
	.name	= "kevent",
	.modes	= modes,
	.closes	= true,
	.probe	= bench_kevent_probe,
	.open	= queue_open,
	.close	= queue_close,
	.add	= queue_add,
	.modify	= queue_modify,
	.remove	= queue_remove,
	.wait	= queue_wait,
	.native	= queue_native,
};
