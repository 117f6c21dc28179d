// SPDX-License-Identifier: LGPL-2.1 OR MIT
/*
 * The ring, or a buffer, as the place where entries are stored
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "count.h"
#include "ring.h"
#include "sys.h"

/* Needed for C libraries that are older than the kernel */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

/* The store of a wake-up must not fault: have all pages there. */
static int fb_ring_populate(struct kevent_ring *ring, __u32 size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)ring & ~(page - 1);
	uintptr_t to = (uintptr_t)ring + KEVENT_RING_BYTES(size);

	if (to < from)
		return -EFAULT;
	if (!fb_call(madvise((void *)from, to - from, MADV_POPULATE_WRITE)))
		return 0;
	/* A kernel before 5.14 does not know it: the first store finds out. */
	from = (uintptr_t)&page & ~(page - 1);
	return fb_call(madvise((void *)from, page, MADV_POPULATE_WRITE)) ?
	       0 : -EFAULT;
}

int fb_ring_check(struct kevent_ring *ring, __u32 size)
{
	if (size < KEVENT_RING_MIN || size > KEVENT_RING_MAX ||
	    size & (size - 1) || (uintptr_t)ring % 8)
		return -EINVAL;
	return fb_ring_populate(ring, size);
}

/* No event is stored without a call, so the flag says: call. */
void fb_ring_clear(struct kevent_ring *ring)
{
	memset(ring, 0, offsetof(struct kevent_ring, event));
	ring->ring_flags = KEVENT_RING_MORE;
}

/* The position of consumers; one that they cannot have means that all is taken. */
static __u64 fb_valid_uidx(const struct fb_ring *ring, __u64 uidx, __u64 kidx)
{
	return kidx - uidx <= ring->size ? uidx : kidx;
}

__u32 fb_unread(const struct fb_ring *ring)
{
	__u64 uidx = __atomic_load_n(&ring->mem->ring_uidx, __ATOMIC_ACQUIRE);
	__u64 kidx = __atomic_load_n(&ring->kidx, __ATOMIC_ACQUIRE);

	return (__u32)(kidx - fb_valid_uidx(ring, uidx, kidx));
}

/*
 * Before this the caller has learned of an event, by a system call. The full
 * barrier between that and the load pairs with that of consumers: see "commit
 * before process" in linux/ukevent.h.
 */
void fb_dest_ring(struct fb_ring *ring, struct fb_dest *d, __u32 max)
{
	__u32 room;

	fb_full_barrier();
	d->slots = ring->mem->event;
	d->mask = ring->size - 1;
	d->kidx = ring->kidx;
	d->uidx = d->kidx - fb_unread(ring);
	d->ring = true;
	d->again = false;
	room = ring->size - (__u32)(d->kidx - d->uidx);
	d->room = room < max ? room : max;
}

void fb_dest_buffer(struct fb_dest *d, struct ukevent *buf, __u32 max)
{
	d->slots = buf;
	d->mask = ~0ULL;
	d->kidx = 0;
	d->uidx = 0;
	d->ring = false;
	d->again = false;
	d->room = max;
}

void fb_dest_publish(struct fb_ring *ring, const struct fb_dest *d)
{
	if (!d->ring || d->kidx == ring->kidx)
		return;
	__atomic_store_n(&ring->mem->ring_kidx, d->kidx, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->kidx, d->kidx, __ATOMIC_RELEASE);
}

int fb_ring_commit(struct fb_ring *ring, __u64 uidx)
{
	__u64 seen = __atomic_load_n(&ring->mem->ring_uidx, __ATOMIC_ACQUIRE);
	__u64 now;

	for (;;) {
		now = fb_valid_uidx(ring, seen, ring->kidx);
		if (uidx > ring->kidx)
			return -EINVAL;
		if (uidx <= now)
			return 0;
		if (__atomic_compare_exchange_n(&ring->mem->ring_uidx, &seen,
						uidx, 0, __ATOMIC_SEQ_CST,
						__ATOMIC_ACQUIRE))
			return (int)(uidx - now);
	}
}
