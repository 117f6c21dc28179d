// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! The consumer half of the ring: "ring ordering" of linux/ukevent.h.

use std::io;
use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU64, Ordering};

use crate::abi::{Entry, RingHeader, ENTRY_WORDS, RING_MAX, RING_MIN, RING_MORE};
use crate::sys;

type Slot = [AtomicU64; ENTRY_WORDS];

/// Memory of a ring, aligned to a page. Kernel and consumers access it by atomic
/// operations only.
///
/// The addresses are never used for anything else, also after the drop: a queue
/// lives on in other processes, or by a duplicate of its descriptor, and the kernel
/// may store an entry as long as it lives. It finds no memory there then, and keeps
/// the event.
#[derive(Debug)]
pub struct RingMemory {
    header: NonNull<RingHeader>,
    slots: u32,
}

// SAFETY: the memory is the kernel's or the process's, of no thread, and all accesses
// to it are atomic.
unsafe impl Send for RingMemory {}
// SAFETY: likewise.
unsafe impl Sync for RingMemory {}

impl RingMemory {
    /// Memory for a ring; EINVAL for a number of slots that the kernel refuses.
    pub fn new(slots: u32) -> io::Result<RingMemory> {
        if !slots.is_power_of_two() || !(RING_MIN..=RING_MAX).contains(&slots) {
            return Err(crate::error(crate::EINVAL));
        }
        let memory = sys::allocate(bytes(slots))?.cast::<RingHeader>();
        let header = NonNull::new(memory).ok_or_else(|| crate::error(crate::EINVAL))?;
        Ok(RingMemory { header, slots })
    }

    pub fn address(&self) -> usize {
        self.header.as_ptr() as usize
    }

    pub fn slots(&self) -> u32 {
        self.slots
    }

    pub fn header(&self) -> &RingHeader {
        // SAFETY: mapped while self lives, aligned, and zero or what the kernel
        // wrote, all of which is a valid header. What is not atomic never changes.
        unsafe { self.header.as_ref() }
    }

    fn slot(&self, position: u64) -> &Slot {
        let index = (position & u64::from(self.slots - 1)) as usize;
        // SAFETY: the memory has `slots` slots after the header, index is below
        // that, and each bit pattern is a valid slot.
        unsafe { &*self.header.as_ptr().add(1).cast::<Slot>().add(index) }
    }

    /// Copies a slot. Once another consumer has taken it, the kernel may write it,
    /// and the copy is void: take() finds out.
    fn copy(&self, position: u64) -> Entry {
        let mut words = [0_u64; ENTRY_WORDS];
        for (to, from) in words.iter_mut().zip(self.slot(position)) {
            *to = from.load(Ordering::Relaxed);
        }
        // SAFETY: both have the same size, and every bit pattern is an entry.
        unsafe { std::mem::transmute::<[u64; ENTRY_WORDS], Entry>(words) }
    }

    pub fn kidx(&self) -> u64 {
        self.header().kidx.load(Ordering::Acquire)
    }

    pub fn uidx(&self) -> u64 {
        self.header().uidx.load(Ordering::Acquire)
    }

    pub fn has_more(&self) -> bool {
        self.header().flags.load(Ordering::Relaxed) & RING_MORE != 0
    }

    /// Number of unread entries.
    ///
    /// The position of the consumers is loaded first: the one that stored it had
    /// seen a position of the kernel at least as large.
    #[cfg(test)]
    pub fn unread(&self) -> u32 {
        let uidx = self.uidx();
        self.kidx().wrapping_sub(uidx).min(u64::from(self.slots)) as u32
    }

    /// Takes the oldest `nr` entries that begin at `uidx`, unless another consumer
    /// was faster: then the error is the position it has left.
    fn take(&self, uidx: u64, nr: u64) -> Result<(), u64> {
        self.header()
            .uidx
            .compare_exchange(uidx, uidx + nr, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)?;
        // Commit before process. Also where the compare-and-swap is a full barrier:
        // the compiler must not move the program's reads before it either.
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Appends up to `max` entries to what `store` keeps; returns how many.
    ///
    /// `store(n, entry)` is called for entries 0, 1, ... again from 0 if another
    /// consumer was faster. The entries are the caller's when it returns.
    pub fn pop(&self, max: u32, mut store: impl FnMut(u32, Entry)) -> u32 {
        let mut uidx = self.uidx();
        loop {
            let nr = self.kidx().wrapping_sub(uidx).min(u64::from(max.min(self.slots)));
            if nr == 0 {
                return 0;
            }
            for i in 0..nr {
                store(i as u32, self.copy(uidx + i));
            }
            match self.take(uidx, nr) {
                Ok(()) => return nr as u32,
                Err(position) => uidx = position,
            }
        }
    }

    /// Takes one entry.
    pub fn pop_one(&self) -> Option<Entry> {
        let mut taken = None;
        let nr = self.pop(1, |_, entry| taken = Some(entry));
        taken.filter(|_| nr == 1)
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: of allocate(), and the last reference is gone. The kernel copes
        // with memory that is away.
        unsafe { sys::retire(self.header.as_ptr().cast(), bytes(self.slots)) };
    }
}

fn bytes(slots: u32) -> usize {
    let bytes = size_of::<RingHeader>() + slots as usize * size_of::<Entry>();
    (bytes + 4095) & !4095
}

#[cfg(test)]
mod tests {
    //! The kernel's half is simulated.
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    /// Stores an entry as the kernel does; false if the ring is full.
    fn produce(ring: &RingMemory, token: u64) -> bool {
        let kidx = ring.header().kidx.load(Ordering::Relaxed);
        if kidx - ring.uidx() == u64::from(ring.slots()) {
            return false;
        }
        let words = [token, !token, token, !token, token];
        for (slot, word) in ring.slot(kidx).iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        ring.header().kidx.store(kidx + 1, Ordering::Release);
        true
    }

    fn set_positions(ring: &RingMemory, position: u64) {
        ring.header().kidx.store(position, Ordering::Relaxed);
        ring.header().uidx.store(position, Ordering::Relaxed);
    }

    /// The token of an entry whose words all are of one produce().
    fn whole(entry: &Entry) -> u64 {
        let token = entry.user;
        assert_eq!(entry.id_u64(), token);
        // SAFETY: an entry has this size, and every bit pattern is valid.
        let words: [u64; ENTRY_WORDS] = unsafe { std::mem::transmute(*entry) };
        assert_eq!(words, [token, !token, token, !token, token]);
        token
    }

    #[test]
    fn memory_is_aligned_to_a_cache_line() {
        assert_eq!(RingMemory::new(64).unwrap().address() % 64, 0);
    }

    #[test]
    fn sizes_that_the_kernel_refuses_are_einval() {
        for slots in [0, 1, 3, 100, RING_MAX + 1, RING_MAX * 2, u32::MAX] {
            let error = RingMemory::new(slots).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(22), "{}", slots);
        }
        assert!(RingMemory::new(RING_MIN).is_ok());
    }

    #[test]
    fn entries_come_out_in_order_and_once() {
        let ring = RingMemory::new(4).unwrap();
        assert!(ring.pop_one().is_none());
        for turn in 0..10 {
            let tokens: Vec<u64> = (0..3).map(|i| turn * 3 + i).collect();
            assert!(tokens.iter().all(|&token| produce(&ring, token)));
            let taken: Vec<u64> = std::iter::from_fn(|| ring.pop_one())
                .map(|entry| whole(&entry))
                .collect();
            assert_eq!(taken, tokens);
        }
    }

    #[test]
    fn a_full_ring_is_not_an_empty_one() {
        let ring = RingMemory::new(4).unwrap();
        assert_eq!((0..9).filter(|&token| produce(&ring, token)).count(), 4);
        assert_eq!(ring.unread(), 4);
        let mut taken = Vec::new();
        assert_eq!(ring.pop(100, |_, entry| taken.push(entry.user)), 4);
        assert_eq!(taken, [0, 1, 2, 3]);
        assert_eq!(ring.unread(), 0);
    }

    #[test]
    fn positions_are_counts_and_not_indexes() {
        let ring = RingMemory::new(8).unwrap();
        set_positions(&ring, (1 << 32) - 3);
        for token in 0..1000 {
            assert!(produce(&ring, token));
            assert_eq!(ring.pop_one().map(|entry| entry.user), Some(token));
        }
        assert_eq!(ring.uidx(), (1 << 32) - 3 + 1000);
    }

    #[test]
    fn a_limit_leaves_the_rest() {
        let ring = RingMemory::new(8).unwrap();
        (0..5).for_each(|token| assert!(produce(&ring, token)));
        assert_eq!(ring.pop(2, |_, _| ()), 2);
        assert_eq!(ring.unread(), 3);
        assert_eq!(ring.pop(0, |_, _| ()), 0);
        assert_eq!(ring.pop_one().map(|entry| entry.user), Some(2));
    }

    #[test]
    fn each_entry_goes_to_one_of_many_consumers() {
        const EVENTS: u64 = 20_000;
        let ring = RingMemory::new(16).unwrap();
        let end = AtomicBool::new(false);
        let consume = |batch: u32| {
            let mut seen: Vec<u64> = Vec::new();
            loop {
                let last = end.load(Ordering::Acquire);
                let mut entries = [Entry::default(); 8];
                let nr = ring.pop(batch, |i, entry| entries[i as usize] = entry);
                seen.extend(entries[..nr as usize].iter().map(whole));
                if nr > 0 {
                    continue;
                }
                thread::yield_now();
                if last {
                    return seen;
                }
            }
        };
        let all = thread::scope(|scope| {
            let threads = [1, 3, 8].map(|batch| scope.spawn(move || consume(batch)));
            for token in 0..EVENTS {
                while !produce(&ring, token) {
                    thread::yield_now();
                }
            }
            end.store(true, Ordering::Release);
            threads.map(|thread| thread.join().unwrap())
        });
        for seen in &all {
            assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
        }
        let mut sorted = all.concat();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..EVENTS));
    }

    #[test]
    fn retired_addresses_are_not_used_again() {
        let ring = RingMemory::new(1024).unwrap();
        let range = ring.address()..ring.address() + bytes(1024);
        drop(ring);
        for _ in 0..50 {
            let other = RingMemory::new(1024).unwrap();
            assert!(!range.contains(&other.address()));
            let last = other.address() + bytes(1024) - 1;
            assert!(!range.contains(&last));
        }
    }
}
