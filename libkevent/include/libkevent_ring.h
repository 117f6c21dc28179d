/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * libkevent: the consumer half of the ring
 *
 * Implements "ring ordering" of linux/ukevent.h for any number of consumers.
 * Included by libkevent.h; needs no library.
 */
#ifndef LIBKEVENT_RING_H
#define LIBKEVENT_RING_H

#include <stdalign.h>
#include <stddef.h>
#include <linux/ukevent.h>
#include "libkevent_inline.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * KEVENT_RING_BYTES() - bytes of memory a ring takes
 * @size: number of slots
 */
#define KEVENT_RING_BYTES(size) \
	(offsetof(struct kevent_ring, event) + (size) * sizeof(struct ukevent))

/**
 * KEVENT_RING_STORAGE() - a type that holds a ring, in its member ring
 * @size: number of slots, a constant
 *
 * For rings that are not allocated: ``static KEVENT_RING_STORAGE(64) mem;``
 * defines one, ``&mem.ring`` is its address.
 */
#define KEVENT_RING_STORAGE(size)				\
	union {							\
		struct kevent_ring ring				\
			__attribute__((__aligned__(64)));	\
		unsigned char bytes[KEVENT_RING_BYTES(size)];	\
	}

/* A word of an entry, whatever the types of the fields in it. */
typedef __u64 __attribute__((may_alias)) kevent_ring_word;

/*
 * Once another consumer has popped the slot, the kernel may write it. Loads of
 * whole words keep that race defined; the caller's copy is void then.
 */
static inline void __kevent_ring_copy(struct ukevent *to,
				      const struct ukevent *from)
{
	const kevent_ring_word *src = (const kevent_ring_word *)from;
	kevent_ring_word *dst = (kevent_ring_word *)to;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*dst); i++)
		dst[i] = __atomic_load_n(&src[i], __ATOMIC_RELAXED);
}

/*
 * Full barrier of "commit before process" in linux/ukevent.h. The
 * compare-and-swap in kevent_ring_pop() is one by itself on x86.
 */
static inline void __kevent_ring_commit_barrier(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/**
 * kevent_ring_count() - number of unread entries
 * @ring: a ring
 * @size: its number of slots
 *
 * Other consumers and the kernel change the answer at any time.
 *
 * Return: 0 to @size.
 */
KEVENT_INLINE __u32 kevent_ring_count(const struct kevent_ring *ring,
				      __u32 size)
{
	__u64 uidx = __atomic_load_n(&ring->ring_uidx, __ATOMIC_ACQUIRE);
	__u64 kidx = __atomic_load_n(&ring->ring_kidx, __ATOMIC_ACQUIRE);

	return kidx - uidx < size ? (__u32)(kidx - uidx) : size;
}

/**
 * kevent_ring_pop() - take up to @max entries
 * @ring: a ring
 * @size: its number of slots
 * @ev: where the entries go
 * @max: room in @ev
 *
 * Never enters the kernel and never waits. The caller owns the entries; no
 * other consumer gets them. Their slots are free before the caller acts on
 * the events, as the kernel expects. Safe in signal handlers.
 *
 * ring_uidx is loaded before ring_kidx: the consumer that stored that ring_uidx
 * had seen a ring_kidx at least as large, so their difference is never negative.
 *
 * Return: the number of entries taken, 0 when there is none.
 */
KEVENT_INLINE __u32 kevent_ring_pop(struct kevent_ring *ring, __u32 size,
				    struct ukevent *ev, __u32 max)
{
	__u64 uidx = __atomic_load_n(&ring->ring_uidx, __ATOMIC_ACQUIRE);
	__u64 kidx;
	__u32 nr, i;

	do {
		kidx = __atomic_load_n(&ring->ring_kidx, __ATOMIC_ACQUIRE);
		nr = kidx - uidx < max ? (__u32)(kidx - uidx) : max;
		if (!nr)
			return 0;
		for (i = 0; i < nr; i++)
			__kevent_ring_copy(&ev[i], &ring->event[(uidx + i) &
								(size - 1)]);
	} while (!__atomic_compare_exchange_n(&ring->ring_uidx, &uidx,
					      uidx + nr, 0, __ATOMIC_RELEASE,
					      __ATOMIC_ACQUIRE));
	__kevent_ring_commit_barrier();
	return nr;
}

/**
 * kevent_ring_peek() - look for unread entries without taking them
 * @ring: a ring
 * @pos: set to the position of the oldest one
 *
 * For consumers that want parts of entries only: read what is wanted from
 * kevent_ring_entry(), then call kevent_ring_take(). Until that has succeeded
 * another consumer may take the entries, and what was read is void.
 *
 * Return: the number of unread entries.
 */
KEVENT_INLINE __u64 kevent_ring_peek(const struct kevent_ring *ring, __u64 *pos)
{
	*pos = __atomic_load_n(&ring->ring_uidx, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&ring->ring_kidx, __ATOMIC_ACQUIRE) - *pos;
}

/**
 * kevent_ring_entry() - the entry at a position
 * @ring: a ring
 * @size: its number of slots
 * @pos: of an unread entry
 *
 * Return: the entry, in the ring: read each member once, before
 * kevent_ring_take().
 */
KEVENT_INLINE const volatile struct ukevent *
kevent_ring_entry(const struct kevent_ring *ring, __u32 size, __u64 pos)
{
	return &ring->event[pos & (size - 1)];
}

/**
 * kevent_ring_take() - take entries that were looked at
 * @ring: a ring
 * @pos: what kevent_ring_peek() set
 * @nr: how many entries; no more than it returned
 *
 * Return: 1 when they are the caller's, as if by kevent_ring_pop(). 0 when
 * another consumer was faster.
 */
KEVENT_INLINE int kevent_ring_take(struct kevent_ring *ring, __u64 pos,
				   __u64 nr)
{
	if (!__atomic_compare_exchange_n(&ring->ring_uidx, &pos, pos + nr, 0,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return 0;
	__kevent_ring_commit_barrier();
	return 1;
}

/**
 * kevent_ring_next() - take one entry, for use as the condition of a loop
 * @ring: a ring
 * @size: its number of slots
 * @ev: where the entry goes
 *
 * Return: 1, or 0 when there is none.
 */
KEVENT_INLINE int kevent_ring_next(struct kevent_ring *ring, __u32 size,
				   struct ukevent *ev)
{
	return (int)kevent_ring_pop(ring, size, ev, 1);
}

#ifdef __cplusplus
}
#endif

#endif /* LIBKEVENT_RING_H */
