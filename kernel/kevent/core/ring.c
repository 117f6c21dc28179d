// SPDX-License-Identifier: GPL-2.0
/*
 * The ring in user memory: stores with page faults disabled
 *
 * kevent_entry() of entry.h makes an entry, and kring_put() of ring.h stores it.
 *
 * The thread that runs makes a store to user memory, with its protection keys in force,
 * and the processor decides. The kernel does not change these keys when it is entered, so
 * that is true of wake-ups too: the thread that is interrupted, also by a softirq, lends
 * only its own rights. A kernel thread that has taken over the address space has the keys
 * of a new program. So where a thread must not write, a store faults and the event is
 * queued.
 *
 * Still, a thread could lend its rights without knowing: a wake-up in it stores where
 * another thread said the ring is. So kevent_init() and ATTACH, which say where the ring is,
 * must prove that the caller can write there. kring_check_rights() walks the mappings of the
 * whole ring, for VM_WRITE and arch_vma_access_permitted(), without touching a page. Each of
 * the two calls also stores to the header once. kring_check_copy() stores the position that it
 * has just read and compared. Only the kernel writes that word, under ready_lock, so this
 * changes nothing.
 *
 * kring_fault_in() makes the processor fault, too, by a futex operation that adds zero to
 * a word: atomic, so no store of another thread is lost, and available on every
 * architecture that has futexes. It fails as copy_to_user() would.
 * fault_in_safe_writeable() uses get_user_pages(), which does not grow stacks any more,
 * and warns. fault_in_writeable() stores zeroes, which would overwrite stores of other
 * threads. A call tries 64 times, so memory that can be faulted in but not written, which
 * arm64's permission overlays allow, ends in EFAULT and not in a loop.
 */

#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/uaccess.h>

#include <asm/futex.h>

#include "ring.h"

/* Take over a ring as it is, at position 0. Returns 0, -EINVAL or -EFAULT. */
int kring_check(struct kring *ring, struct kevent_ring __user *user, u32 size)
{
	if (size < KEVENT_RING_MIN || size > KEVENT_RING_MAX ||
	    !is_power_of_2(size))
		return -EINVAL;
	if (!IS_ALIGNED((unsigned long)user, __alignof__(struct kevent_ring)))
		return -EINVAL;
	if (!access_ok(user, kring_bytes(size)))
		return -EFAULT;
	*ring = (struct kring) {
		.user	= user,
		.slots	= user->event,
		.size	= size,
	};
	return 0;
}

/*
 * May the caller write all of a ring? Goes by mappings and the caller's protection keys, so
 * that no page has to be there. As many mappings as a ring has pages, 10241, are looked at
 * under the mmap lock. Returns 0, -EFAULT, or -EINTR on a fatal signal.
 */
int kring_check_rights(const struct kring *ring)
{
	struct mm_struct *mm = current->mm;
	unsigned long at, end;
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	at = untagged_addr_remote(mm, (unsigned long)ring->user);
	end = at + kring_bytes(ring->size);
	vma_iter_init(&vmi, mm, at);
	for_each_vma_range(vmi, vma, end) {
		if (vma->vm_start > at || !(vma->vm_flags & VM_WRITE) ||
		    !arch_vma_access_permitted(vma, true, false, false))
			break;
		at = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return at >= end ? 0 : -EFAULT;
}

/* Take over a new ring, whose header is written. Returns as the two above. May fault. */
int kring_init(struct kring *ring, struct kevent_ring __user *user, u32 size)
{
	int err = kring_check(ring, user, size);

	/* A stack grows down to the header, so that comes first. */
	if (!err && clear_user(user, sizeof(*user)))
		err = -EFAULT;
	return err ?: kring_check_rights(ring);
}

/*
 * Does memory look like the ring's? Compares the position, which only the kernel writes, and
 * stores the same value again: the caller must be able to write it. Returns 0, -EINVAL or
 * -EFAULT.
 */
int kring_check_copy(const struct kring *ring, struct kevent_ring __user *user)
{
	u64 kidx;
	int err;

	pagefault_disable();
	err = __get_user(kidx, &user->ring_kidx);
	if (!err && kidx != ring->kidx)
		err = -EINVAL;
	if (!err)
		err = __put_user(kidx, &user->ring_kidx);
	pagefault_enable();
	return err;
}

/*
 * Learn how far consumers are. A caller that concludes from @ring->uidx that an entry is unread
 * must have executed a full barrier after it observed the event in question; see
 * kevent_repeats(). Returns 0 or -EFAULT.
 */
int kring_sync(struct kring *ring)
{
	u64 uidx;
	int err;

	pagefault_disable();
	err = __get_user(uidx, &ring->user->ring_uidx);
	pagefault_enable();
	if (!err)
		WRITE_ONCE(ring->uidx, kring_valid_uidx(ring, uidx));
	return err;
}

/* Change kevent_ring.ring_flags. Returns 0, or -EFAULT with the old value kept. */
int kring_set_flags(struct kring *ring, u32 flags)
{
	int err;

	if (!ring->user || flags == ring->flags)
		return 0;
	pagefault_disable();
	err = __put_user(flags, &ring->user->ring_flags);
	pagefault_enable();
	if (!err)
		WRITE_ONCE(ring->flags, flags);
	return err;
}

/*
 * Consumers advance ring_uidx by compare-and-swap, so the kernel does too
 * where it can reach user memory that way; elsewhere a program must not mix
 * kevent_commit() with own stores to ring_uidx.
 */
static int kring_swap_uidx(const struct kring *ring, u64 old, u64 new)
{
	u64 __user *to = &ring->user->ring_uidx;
	int err = 0;

	if (!user_access_begin(to, sizeof(*to)))
		return -EFAULT;
#ifdef unsafe_try_cmpxchg_user
	if (!unsafe_try_cmpxchg_user(to, &old, new, efault))
		err = -EAGAIN;
#else
	unsafe_put_user(new, to, efault);
#endif
	user_access_end();
	return err;

efault:
	user_access_end();
	return -EFAULT;
}

/*
 * Advance kevent_ring.ring_uidx. Returns slots freed, 0 when consumers are there already, -EINVAL
 * beyond the newest entry, -EFAULT, or -EAGAIN when a consumer interfered.
 */
int kring_commit(struct kring *ring, u64 uidx)
{
	u64 seen;
	int err;

	pagefault_disable();
	err = __get_user(seen, &ring->user->ring_uidx);
	if (err)
		goto out;
	WRITE_ONCE(ring->uidx, kring_valid_uidx(ring, seen));
	if (uidx > ring->kidx)
		err = -EINVAL;
	else if (uidx > ring->uidx)
		err = kring_swap_uidx(ring, seen, uidx);
	if (!err && uidx > ring->uidx) {
		err = uidx - ring->uidx;
		WRITE_ONCE(ring->uidx, uidx);
	}
out:
	pagefault_enable();
	return err;
}

/* Have the page of a byte there for writing, as if the caller wrote to it. */
static bool kring_touch(const void __user *at)
{
	u32 __user *word = (u32 __user *)((unsigned long)at & ~3ul);
	int old;

	might_fault();
	return arch_futex_atomic_op_inuser(FUTEX_OP_ADD, 0, &old,
					   word) != -EFAULT;
}

/*
 * Make the next store possible. @ring is a copy taken under the owner's lock. Sleeps, without end
 * when a user-space pager does not answer: call without any lock. Returns 0, -EFAULT, or -EINTR on
 * a fatal signal.
 */
int kring_fault_in(const struct kring *ring)
{
	u32 first = kring_slot(ring, ring->kidx);
	u32 nr = min(ring->size - first, KRING_BATCH);
	const struct ukevent __user *slot = &ring->slots[first];
	bool ok = true;

	if (ring->user)
		ok = kring_touch(&ring->user->ring_kidx) &&
		     kring_touch(&ring->user->ring_uidx);
	ok = ok && kring_touch(slot) && kring_touch((char __user *)(slot + 1) - 1);
	/* One slot that can be written is progress. */
	if (ok && nr > 1)
		kring_touch((char __user *)(slot + nr) - 1);
	if (fatal_signal_pending(current))
		return -EINTR;
	return ok ? 0 : -EFAULT;
}
