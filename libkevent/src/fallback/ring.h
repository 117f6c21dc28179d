/* SPDX-License-Identifier: LGPL-2.1 OR MIT */
/*
 * The ring, or a buffer, as the place where entries are stored
 */
#ifndef LIBKEVENT_FB_RING_H
#define LIBKEVENT_FB_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "libkevent.h"

#pragma GCC visibility push(hidden)

/**
 * struct fb_ring - the ring of a queue
 * @mem:	it, or NULL
 * @size:	its slots
 * @kidx:	position after the newest entry
 */
struct fb_ring {
	struct kevent_ring	*mem;
	__u32			size;
	__u64			kidx;
};

/**
 * struct fb_dest - where entries go
 * @slots: the ring, or a buffer; NULL: nothing is stored
 * @mask: of positions, so that they are indexes
 * @kidx: position of the next entry
 * @uidx: position of the oldest unread entry; of a buffer 0
 * @room: entries that may be stored
 * @ring: it is the ring
 * @again: epoll repeats what the call has; it cannot sleep like that
 */
struct fb_dest {
	struct ukevent	*slots;
	__u64		mask;
	__u64		kidx;
	__u64		uidx;
	__u32		room;
	bool		ring;
	bool		again;
};

int fb_ring_check(struct kevent_ring *mem, __u32 size);
void fb_ring_clear(struct kevent_ring *mem);
/* Entries of the ring that nobody has taken */
__u32 fb_unread(const struct fb_ring *ring);
int fb_ring_commit(struct fb_ring *ring, __u64 uidx);
void fb_dest_ring(struct fb_ring *ring, struct fb_dest *d, __u32 max);
void fb_dest_buffer(struct fb_dest *d, struct ukevent *buf, __u32 max);
void fb_dest_publish(struct fb_ring *ring, const struct fb_dest *d);

/* Consumers that are late read the slot while it changes: see libkevent_ring.h. */
static inline void fb_store(struct fb_dest *d, const struct ukevent *uk)
{
	const kevent_ring_word *from = (const kevent_ring_word *)uk;
	kevent_ring_word *to;
	size_t i;

	to = (kevent_ring_word *)&d->slots[d->kidx++ & d->mask];
	for (i = 0; i < sizeof(*uk) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	d->room--;
}

#pragma GCC visibility pop

#endif /* LIBKEVENT_FB_RING_H */
