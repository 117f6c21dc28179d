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
#include <linux/uaccess.h>

/* Stores that fail in a row although the memory could be faulted in */
#define KRING_FAULT_TRIES	64

/* Entries that are faulted in at a time */
#define KRING_BATCH		16U

/**
 * struct kring - where entries go: a ring, or the buffer of a caller
 * @user:	header of the ring, NULL for a buffer
 * @slots:	its slots
 * @size:	number of slots; a power of two when @user is set
 * @flags:	what kevent_ring.ring_flags holds
 * @away:	kring_push() found the memory away, and no store by a call has found
 *		it since
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
	bool				away;
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
	/* Unsigned: what is behind @ring->uidx is far beyond @ring->kidx. */
	if (uidx - ring->uidx > ring->kidx - ring->uidx)
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

/*
 * Is it a ring, or a buffer? The answer needs no lock: a ring may be moved to another
 * address, and stays a ring.
 */
static inline bool kring_is_ring(const struct kring *ring)
{
	return READ_ONCE(ring->user);
}

/* The same ring is at @user in another address space. */
static inline void kring_move(struct kring *ring,
			      struct kevent_ring __user *user)
{
	/* Pairs with kring_is_ring(). */
	WRITE_ONCE(ring->user, user);
	ring->slots = user->event;
}

int kring_check(struct kring *ring, struct kevent_ring __user *user, u32 size);
int kring_check_rights(const struct kring *ring);
int kring_check_copy(const struct kring *ring, struct kevent_ring __user *user);
int kring_init(struct kring *ring, struct kevent_ring __user *user, u32 size);
int kring_sync(struct kring *ring);
int kring_set_flags(struct kring *ring, u32 flags);
int kring_commit(struct kring *ring, u64 uidx);
int kring_fault_in(const struct kring *ring);

/*
 * Store one entry at the next position, inside a user access window, and publish it if @ring
 * is a ring and not a buffer. Returns false on a fault. In line, as its callers are, so that an
 * entry that is made there needs no memory: an event takes 50 instructions less.
 */
static __always_inline bool kring_put(struct kring *ring, const struct ukevent *uk,
				      bool is_ring)
{
	u64 kidx = ring->kidx;
	struct ukevent __user *to = &ring->slots[is_ring ? kidx & (ring->size - 1) : kidx];

	unsafe_put_user(uk->id.raw_u64, &to->id.raw_u64, efault);
	unsafe_put_user(uk->type, &to->type, efault);
	unsafe_put_user(uk->event, &to->event, efault);
	unsafe_put_user(uk->req_flags, &to->req_flags, efault);
	unsafe_put_user(uk->ret_flags, &to->ret_flags, efault);
	unsafe_put_user(uk->ret_data[0], &to->ret_data[0], efault);
	unsafe_put_user(uk->ret_data[1], &to->ret_data[1], efault);
	unsafe_put_user(uk->ptr, &to->ptr, efault);
	if (is_ring) {
		/* Publish: pairs with the acquire of ring_kidx by a consumer. */
		smp_wmb();
		unsafe_put_user(kidx + 1, &ring->user->ring_kidx, efault);
	}
	WRITE_ONCE(ring->kidx, kidx + 1);
	return true;

efault:
	return false;
}

/*
 * Store one entry in a ring or buffer that has room, by a consumer that calls. Returns false if
 * the memory is not at hand. In line, see kring_put().
 */
static __always_inline bool kring_store(struct kring *ring,
					const struct ukevent *uk)
{
	struct ukevent __user *to = &ring->slots[kring_slot(ring, ring->kidx)];
	bool done = false;

	pagefault_disable();
	/* kring_check() has seen that the header of a ring is user memory as well. */
	if (user_write_access_begin(to, sizeof(*to))) {
		done = kring_put(ring, uk, ring->user);
		user_write_access_end();
	}
	pagefault_enable();
	if (done)
		ring->away = false;
	return done;
}

/*
 * Store one entry in a ring, in one user access window. @last is the position after the previous
 * entry of its kind, or 0, and @said what that says in ukevent.ret_data[0]. The caller has executed
 * a full barrier since it observed the event, see kring_sync().
 *
 * While the previous entry is unread, a new one that adds no bit to it is dropped. One that adds
 * bits is stored with the old bits, too. So each unread entry of a kind has more bits than the one
 * before, and their number is limited. How far consumers are is looked up only if that matters:
 * they are known to have read the previous entry, and to have left room.
 *
 * Any context in which the ring's address space is in use. In line, see kring_put(). Returns true
 * when the ring says it, in a new entry, which @last and @said then describe, or in an unread one,
 * and false when there is no room or no memory at hand.
 */
static __always_inline bool kring_push(struct kring *ring, struct ukevent *uk,
				       u64 *last, u16 *said)
{
	bool done = false;
	u64 uidx;

	pagefault_disable();
	/* kring_check() has seen that the slots are user memory as well. */
	if (!user_access_begin(ring->user, sizeof(*ring->user)))
		goto out;
	if (unlikely(kring_is_unread(ring, *last) || !kring_free_slots(ring))) {
		unsafe_get_user(uidx, &ring->user->ring_uidx, end);
		WRITE_ONCE(ring->uidx, kring_valid_uidx(ring, uidx));
		if (kring_is_unread(ring, *last)) {
			done = !(uk->ret_data[0] & ~*said);
			uk->ret_data[0] |= *said;
		}
		if (done || !kring_free_slots(ring))
			goto end;
	}
	done = kring_put(ring, uk, true);
	if (done) {
		*last = ring->kidx;
		*said = uk->ret_data[0];
	}
end:
	user_access_end();
out:
	pagefault_enable();
	if (unlikely(!done))
		ring->away = kring_free_slots(ring);
	return done;
}

#endif /* _KEVENT_RING_H */
