// SPDX-License-Identifier: GPL-2.0
/*
 * kevent, edge triggered, without the library: what linux/ukevent.h asks of a program that has
 * the ring to itself, so that nobody else moves ring_uidx
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/ukevent.h>

#include "bench.h"

#define CALL_INIT	480	/* system calls of a kernel with kevent */
#define CALL_CTL	481
#define CALL_WAIT	483

struct bench_queue {
	struct kevent_ring	*ring;
	__u64			uidx;		/* of the oldest unread entry */
	__u32			mask;		/* of positions */
	int			fd;
	bool			module;
};

/* Returns a descriptor, or -1 and sets errno. */
static int make_queue(struct bench_queue *q, __u32 size)
{
	struct kevent_dev_init init = { .ring = (uintptr_t)q->ring, .ring_size = size };
	int dev = open(KEVENT_DEVICE, O_RDWR | O_CLOEXEC);

	q->module = dev >= 0;
	if (!q->module)
		return (int)syscall(CALL_INIT, q->ring, size, 0);
	q->fd = ioctl(dev, KEVENT_IOC_INIT, &init);
	close(dev);
	return q->fd;
}

static struct bench_queue *raw_open(const char *mode, unsigned int watches, unsigned int ready)
{
	struct bench_queue *q = bench_alloc(1, sizeof(*q));
	__u32 size = 64;
	size_t bytes;

	(void)mode;
	(void)watches;
	/* An entry is stored again once it is consumed, so twice the ready ones fit. */
	while (size < 2 * ready)
		size *= 2;
	bytes = sizeof(*q->ring) + size * sizeof(struct ukevent);
	if (posix_memalign((void **)&q->ring, 64, bytes))
		bench_die("out of memory for a ring of %u slots", size);
	/* A wake-up can store only in memory that is present. */
	memset(q->ring, 0, bytes);
	q->mask = size - 1;
	q->fd = make_queue(q, size);
	if (q->fd < 0)
		bench_die("raw: no queue: %s", strerror(errno));
	return q;
}

static void raw_close(struct bench_queue *q)
{
	close(q->fd);
	free(q->ring);
	free(q);
}

static void raw_add(struct bench_queue *q, const struct bench_watch *w, unsigned int nr)
{
	struct ukevent *ev = bench_alloc(nr, sizeof(*ev));
	struct kevent_dev_ctl ctl = { .cmd = KEVENT_CTL_ADD, .num = nr, .arg = (uintptr_t)ev };
	unsigned int i;

	for (i = 0; i < nr; i++)
		ev[i] = (struct ukevent){
			.id.raw = { (__u32)w[i].fd },
			.type = w[i].kind == BENCH_PIPE ? KEVENT_PIPE : KEVENT_SOCKET,
			.event = KEVENT_SOCKET_RECV,
			.req_flags = KEVENT_REQ_ET,
			.ptr = w[i].cookie,
		};
	if (q->module ? ioctl(q->fd, KEVENT_IOC_CTL, &ctl) : syscall(CALL_CTL, q->fd, ctl.cmd, nr, ev))
		bench_die("raw: a watch was not added");
	free(ev);
}

/* There are entries in front of @kidx, which was loaded before them: acquire. */
static inline unsigned int take(struct bench_queue *q, __u64 kidx, uint64_t *cookies,
				unsigned int max)
{
	__u64 at = q->uidx, nr = kidx - at < max ? kidx - at : max, end = at + nr;
	__u32 flags = 0;

	do {
		*cookies++ = q->ring->event[at & q->mask].ptr;
		flags |= q->ring->event[at & q->mask].ret_flags;
	} while (++at != end);
	q->uidx = end;
	/* Entries are read before, and files after: the full barrier of the header. */
	__atomic_exchange_n(&q->ring->ring_uidx, end, __ATOMIC_SEQ_CST);
	if (flags & KEVENT_RET_BROKEN)
		bench_die("raw: a watch is broken");
	return (unsigned int)nr;
}

/* The ring was empty. Waits without a limit, or not at all. */
static __attribute__((noinline)) unsigned int
fill_and_take(struct bench_queue *q, uint64_t *cookies, unsigned int max, int timeout)
{
	static const __s64 at_once[2];
	__u32 size = q->mask + 1, at = (__u32)q->uidx;
	__u64 kidx;
	long ret;

	do {
		ret = q->module ? lseek(q->fd, KEVENT_SEEK(size, at), timeout ? SEEK_CUR : SEEK_SET) :
		      syscall(CALL_WAIT, q->fd, size, at, timeout ? NULL : at_once, 0, NULL);
		if (ret < 0 && errno == EAGAIN)
			return 0;
		if (ret < 0 && errno != EINTR)
			bench_die("raw: a wait: %s", strerror(errno));
		kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);
	} while (ret && kidx == q->uidx);
	return kidx == q->uidx ? 0 : take(q, kidx, cookies, max);
}

static unsigned int raw_wait(struct bench_queue *q, uint64_t *cookies, unsigned int max,
			     int timeout)
{
	__u64 kidx = __atomic_load_n(&q->ring->ring_kidx, __ATOMIC_ACQUIRE);

	return kidx != q->uidx ? take(q, kidx, cookies, max) :
				 fill_and_take(q, cookies, max, timeout);
}

const struct bench_backend backend_raw = {
	.name	= "raw",
	.modes	= BENCH_WORDS("et"),
	.only	= "notify",
	.probe	= bench_kevent_probe,
	.open	= raw_open,
	.close	= raw_close,
	.add	= raw_add,
	.wait	= raw_wait,
};
