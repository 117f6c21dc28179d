/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring in user memory, seen from the kernel
 *
 * The contract with consumers is written down in
 * include/uapi/linux/ukevent.h, "ring ordering". This side knows neither
 * queues nor sources.
 */
#ifndef _KEVENT_RING_H
#define _KEVENT_RING_H

#include <linux/ukevent.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Stores that fail in a row although the memory could be faulted in */
#define KRING_FAULT_TRIES	64

/* Entries one user access window writes at most */
#define KRING_BATCH		16U

/**
 * struct kring - where entries go: a ring, or the buffer of a caller
 * @user:	header of the ring, NULL for a buffer
 * @slots:	its slots
 * @size:	number of slots; a power of two when @user is set
 * @flags:	what kevent_ring.ring_flags holds
 * @kidx:	entries ever stored; user memory holds a copy
 * @uidx:	last valid value seen in kevent_ring.ring_uidx: never decreases,
 *		never passes @kidx. Stays 0 for a buffer
 *
 * Nothing but @uidx comes from user memory, and kring_valid_uidx() decides
 * what is taken. The owner serialises all access with a spinlock: functions
 * never fault a page in, except kring_fault_in(), which is called unlocked.
 */
struct kring {
	struct kevent_ring __user	*user;
	struct ukevent __user		*slots;
	u32				size;
	u32				flags;
	u64				kidx;
	u64				uidx;
};

static inline size_t kring_bytes(u32 size)
{
	return sizeof(struct kevent_ring) + size * sizeof(struct ukevent);
}

static inline u32 kring_slot(const struct kring *ring, u64 pos)
{
	return ring->user ? pos & (ring->size - 1) : pos;
}

/* A consumer may write anything: accept progress, ignore the rest. */
static inline u64 kring_valid_uidx(const struct kring *ring, u64 uidx)
{
	if (uidx < ring->uidx || uidx > ring->kidx)
		return ring->uidx;
	return uidx;
}

static inline u32 kring_free_slots(const struct kring *ring)
{
	return ring->size - (u32)(ring->kidx - ring->uidx);
}

/* Is the entry stored when kidx became @end still unread? 0: never stored. */
static inline bool kring_is_unread(const struct kring *ring, u64 end)
{
	return end > ring->uidx;
}

/* The same ring is at @user in another address space. */
static inline void kring_move(struct kring *ring,
			      struct kevent_ring __user *user)
{
	ring->user = user;
	ring->slots = user->event;
}

int kring_check(struct kring *ring, struct kevent_ring __user *user, u32 size);
int kring_check_copy(const struct kring *ring, struct kevent_ring __user *user);
int kring_init(struct kring *ring, struct kevent_ring __user *user, u32 size);
void kring_init_buffer(struct kring *ring, struct ukevent __user *buf,
		       u32 size);
int kring_sync(struct kring *ring);
u32 kring_store(struct kring *ring, const struct ukevent *uk, u32 nr);
int kring_push(struct kring *ring, struct ukevent *uk, u64 last, u32 said);
int kring_set_flags(struct kring *ring, u32 flags);
int kring_commit(struct kring *ring, u64 uidx);
int kring_fault_in(const struct kring *ring);

#endif /* _KEVENT_RING_H */
