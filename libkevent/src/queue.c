// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A queue with a ring
 */
#include <errno.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "libkevent.h"

#define NSEC_PER_SEC	1000000000L

/* Seconds that never pass; adding them to a time of day can't overflow. */
#define FOREVER_SEC	0x4000000000000000LL

static const struct timespec no_time;

int kevent_queue_init(struct kevent_queue *q, struct kevent_ring *ring,
		      __u32 size, __u32 flags)
{
	int fd = ring ? kevent_init(ring, size, flags) : -EINVAL;

	q->fd = fd < 0 ? -1 : fd;
	q->size = size;
	q->ring = ring;
	return fd < 0 ? fd : 0;
}

void kevent_queue_close(struct kevent_queue *q)
{
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
}

static __u32 queue_kidx(const struct kevent_queue *q)
{
	return (__u32)__atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
}

static bool queue_has_more(const struct kevent_queue *q)
{
	return __atomic_load_n(&q->ring->ring_flags, __ATOMIC_RELAXED) &
	       KEVENT_RING_MORE;
}

/*
 * Have waiting events moved into the ring. Claims to be one event behind, so
 * the call returns before it would wait: a wake request is for those who do.
 */
static int queue_refill(struct kevent_queue *q)
{
	return kevent_wait(q->fd, q->size, queue_kidx(q) - 1, &no_time, 0,
			   NULL);
}

int kevent_queue_pop(struct kevent_queue *q, struct ukevent *ev, __u32 max)
{
	__u32 nr = kevent_ring_pop(q->ring, q->size, ev, max);
	int ret;

	if (nr || !max || !queue_has_more(q))
		return (int)nr;
	ret = queue_refill(q);
	if (ret < 0)
		return ret;
	return (int)kevent_ring_pop(q->ring, q->size, ev, max);
}

static bool timespec_valid(const struct timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 &&
	       ts->tv_nsec < NSEC_PER_SEC;
}

/* The time @timeout ends, in @deadline; NULL when that is never */
static const struct timespec *deadline_of(const struct timespec *timeout,
					  struct timespec *deadline)
{
	if (timeout->tv_sec >= FOREVER_SEC)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, deadline);
	deadline->tv_sec += timeout->tv_sec;
	deadline->tv_nsec += timeout->tv_nsec;
	if (deadline->tv_nsec >= NSEC_PER_SEC) {
		deadline->tv_nsec -= NSEC_PER_SEC;
		deadline->tv_sec++;
	}
	return deadline;
}

/*
 * Sleep until the ring holds something. The position given to the kernel is
 * loaded before the ring is found empty at it or later, so the kernel never
 * sleeps on an entry nobody has looked at.
 */
static int queue_sleep(struct kevent_queue *q, const struct timespec *timeout,
		       __u32 flags)
{
	__u32 kidx, nr;
	int ret;

	for (;;) {
		kidx = queue_kidx(q);
		nr = kevent_ring_count(q->ring, q->size);
		if (nr)
			return (int)nr;
		ret = kevent_wait(q->fd, q->size, kidx, timeout, flags, NULL);
		if (ret <= 0)
			return ret;
	}
}

static int queue_poll(struct kevent_queue *q)
{
	int ret;

	ret = kevent_wait(q->fd, q->size, queue_kidx(q), &no_time, 0, NULL);
	if (ret < 0)
		return ret;
	return (int)kevent_ring_count(q->ring, q->size);
}

int kevent_queue_wait(struct kevent_queue *q, const struct timespec *timeout)
{
	struct timespec deadline;
	__u32 nr;

	if (timeout && !timespec_valid(timeout))
		return -EINVAL;
	nr = kevent_ring_count(q->ring, q->size);
	if (nr)
		return (int)nr;
	if (!timeout)
		return queue_sleep(q, NULL, 0);
	if (!timeout->tv_sec && !timeout->tv_nsec)
		return queue_poll(q);
	return queue_sleep(q, deadline_of(timeout, &deadline),
			   KEVENT_FLAGS_ABSTIME);
}
