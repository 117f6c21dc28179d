// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * A queue with a ring
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

#include "libkevent.h"
#include "fallback/driven.h"
#include "fallback/fallback.h"
#include "process.h"
#include "queue.h"
#include "raw_syscall.h"

#define NSEC_PER_SEC	1000000000L

static const struct timespec no_time;

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

/*
 * The kernel stores an entry in a page that was never used only after a fault: the first lap
 * would cost twice. All pages of the ring are the program's, and stay as they are. A kernel
 * that can't do this stores no entries without a call.
 */
static void queue_touch(struct kevent_ring *ring, __u32 size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)ring & -page;
	uintptr_t end = (uintptr_t)ring + KEVENT_RING_BYTES(size);

	(void)kevent_syscall(SYS_madvise, start, end - start, MADV_POPULATE_WRITE, 0, 0, 0);
}

int kevent_queue_init(struct kevent_queue *q, struct kevent_ring *ring,
		      __u32 size, __u32 flags)
{
	int fd = ring ? kevent_init(ring, size, flags) : -EINVAL;

	q->fd = fd < 0 ? -1 : fd;
	q->size = size;
	q->ring = ring;
	q->entered = 0;
	q->process = fd < 0 ? 0 : kevent_process_mark();
	if (fd < 0)
		return fd;
	queue_touch(ring, size);
	return 0;
}

int kevent_queue_attach(struct kevent_queue *q)
{
	int ret = kevent_attach(q->fd, q->ring, q->size);

	if (!ret)
		q->process = kevent_process_mark();
	return ret;
}

void kevent_queue_close(struct kevent_queue *q)
{
	int fd = q->fd;

	q->fd = -1;
	/* Zeros are a queue that was never opened: no queue of this kind is without a ring. */
	if (fd < 0 || (!fd && !q->ring))
		return;
	kevent_fb_close(fd);
	kevent_driven_close(fd);
	kevent_close_fd(fd);
}

int kevent_close(int fd, int file)
{
	if (kevent_fb_on())
		kevent_fb_unwatch(fd, file);
	return kevent_syscall(SYS_close, file, 0, 0, 0, 0, 0);
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

static __u32 queue_uidx(const struct kevent_queue *q)
{
	return (__u32)__atomic_load_n(&q->ring->ring_uidx, __ATOMIC_RELAXED);
}

/* Threads may lose one another's store here: a call comes later or sooner then. */
static void queue_enters(struct kevent_queue *q)
{
	__atomic_store_n(&q->entered, queue_uidx(q), __ATOMIC_RELAXED);
}

/* Were as many events taken since the last call as the ring has slots? */
static bool queue_must_call(const struct kevent_queue *q)
{
	return queue_uidx(q) - __atomic_load_n(&q->entered, __ATOMIC_RELAXED) >=
	       q->size;
}

/*
 * Have waiting events moved into the ring. Claims to be one event behind, so
 * the call returns before it would wait: a wake request is for those who do.
 */
static int queue_refill(struct kevent_queue *q)
{
	queue_enters(q);
	return kevent_wait(q->fd, q->size, queue_kidx(q) - 1, &no_time, 0,
			   NULL);
}

int kevent_queue_pop(struct kevent_queue *q, struct ukevent *ev, __u32 max)
{
	__u32 nr;
	int ret;

	if (!kevent_process_is(q->process))
		return -EXDEV;
	nr = kevent_ring_pop(q->ring, q->size, ev, max);
	if (nr || !max || !queue_has_more(q) || kevent_fb_idle(q->fd))
		return (int)nr;
	ret = queue_refill(q);
	if (ret < 0)
		return ret;
	return (int)kevent_ring_pop(q->ring, q->size, ev, max);
}

bool kevent_timespec_valid(const struct timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 &&
	       ts->tv_nsec < NSEC_PER_SEC;
}

int kevent_queue_wait(struct kevent_queue *q, const struct timespec *timeout)
{
	__u32 kidx, nr;
	int ret;

	if (timeout && !kevent_timespec_valid(timeout))
		return -EINVAL;
	if (!kevent_process_is(q->process))
		return -EXDEV;
	/*
	 * Before the ring is found empty at that position or later, so the
	 * kernel never sleeps on an entry nobody has looked at.
	 */
	kidx = queue_kidx(q);
	nr = kevent_ring_count(q->ring, q->size);
	if (nr)
		return (int)nr;
	ret = kevent_wait(q->fd, q->size, kidx, timeout, 0, NULL);
	if (ret <= 0)
		return ret;
	nr = kevent_ring_count(q->ring, q->size);
	/* Others were faster: the caller may have been signalled meanwhile. */
	return nr ? (int)nr : ret;
}

/* The end of a wait of @timeout that begins now, as a point of CLOCK_MONOTONIC */
static struct timespec deadline_of(const struct timespec *timeout)
{
	const time_t most = (time_t)((__u64)-1 >> 1);
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += timeout->tv_nsec;
	if (at.tv_nsec >= NSEC_PER_SEC) {
		at.tv_nsec -= NSEC_PER_SEC;
		at.tv_sec++;
	}
	at.tv_sec = timeout->tv_sec > most - at.tv_sec ?
		most : at.tv_sec + timeout->tv_sec;
	return at;
}

/*
 * The ring was empty at @kidx: wait until @deadline, which @flags explain, for what nobody
 * else takes. @first is for the first call of the kernel.
 */
static inline int queue_sleep(struct kevent_queue *q, struct ukevent *ev,
			      __u32 max, __u32 kidx,
			      const struct timespec *deadline, __u32 flags,
			      const struct kevent_wait_arg *first)
{
	__u32 nr;
	int ret;

	for (;;) {
		queue_enters(q);
		ret = kevent_wait(q->fd, q->size, kidx, deadline,
				  first ? flags | KEVENT_FLAGS_ARG : flags,
				  first);
		if (ret <= 0)
			return ret;
		first = NULL;
		kidx = queue_kidx(q);
		nr = kevent_ring_pop(q->ring, q->size, ev, max);
		if (nr)
			return (int)nr;
	}
}

static inline __attribute__((always_inline)) int
queue_get(struct kevent_queue *q, struct ukevent *ev, __u32 max,
	  const struct timespec *timeout, const struct kevent_wait_arg *first)
{
	struct timespec deadline;
	__u32 kidx, nr;

	if (!max || (timeout && !kevent_timespec_valid(timeout)))
		return -EINVAL;
	if (!kevent_process_is(q->process))
		return -EXDEV;
	/* As in kevent_queue_wait(): before the ring is found empty. */
	kidx = queue_kidx(q);
	nr = kevent_ring_pop(q->ring, q->size, ev, max);
	if (nr) {
		/* An error there comes back when the ring is empty. */
		if (queue_must_call(q))
			queue_refill(q);
		return (int)nr;
	}
	if (!timeout || (!timeout->tv_sec && !timeout->tv_nsec))
		return queue_sleep(q, ev, max, kidx, timeout, 0, first);
	deadline = deadline_of(timeout);
	return queue_sleep(q, ev, max, kidx, &deadline, KEVENT_FLAGS_ABSTIME, first);
}

int kevent_queue_get(struct kevent_queue *q, struct ukevent *ev, __u32 max,
		     const struct timespec *timeout)
{
	return queue_get(q, ev, max, timeout, NULL);
}

int kevent_queue_ring_and_get(struct kevent_queue *q, struct ukevent *ev,
			      __u32 max, const struct timespec *timeout,
			      int bell, bool *rung)
{
	struct kevent_change change = {
		.uk.req_flags = KEVENT_REQ_HANDOFF,
		.cmd = KEVENT_CTL_READY,
		.result = bell,
	};
	const struct kevent_wait_arg arg = {
		.size = sizeof(arg),
		.clockid = CLOCK_MONOTONIC,
		.changes = (__u64)(unsigned long)&change,
		.nr_changes = 1,
	};
	int ret = queue_get(q, ev, max, timeout, &arg);

	*rung = change.uk.ret_flags == KEVENT_RET_DONE;
	return ret;
}
