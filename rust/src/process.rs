// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Which process a queue was opened in.
//!
//! After fork() the child has a copy of the ring, with the entries that the parent
//! has not taken yet. A page that fork() empties tells the two apart.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::sys;

const PAGE: usize = 4096;

static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Maps the page; it stays for the life of the process.
fn map_word() -> io::Result<&'static AtomicU32> {
    let page = sys::allocate(PAGE)?;
    // SAFETY: the page was just allocated.
    let wiped = unsafe { sys::wipe_on_fork(page, PAGE) };
    let new = page.cast::<AtomicU32>();
    let chosen = match wiped {
        Ok(()) => WORD
            .compare_exchange(
                std::ptr::null_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .map_or_else(|other| other, |_| new),
        Err(_) => std::ptr::null_mut(),
    };
    if chosen != new {
        // SAFETY: the page is ours, and no reference to it exists.
        unsafe { sys::retire(page, PAGE) };
    }
    wiped?;
    // SAFETY: zeroed memory that is never unmapped, and aligned to a page. It is
    // accessed as an atomic only.
    Ok(unsafe { &*chosen })
}

fn word() -> Option<&'static AtomicU32> {
    // SAFETY: null, or what map_word() says.
    unsafe { WORD.load(Ordering::Acquire).as_ref() }
}

/// A process id alone may be that of an ancestor which has ended.
fn new_mark() -> u32 {
    let now = sys::monotonic();
    (sys::getpid() ^ now.nsec as u32 ^ (now.sec as u32) << 16) | 1
}

/// The process in which a value was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This process.
    pub fn current() -> io::Result<Process> {
        let word = match word() {
            Some(word) => word,
            None => map_word()?,
        };
        let made =
            word.compare_exchange(0, new_mark(), Ordering::AcqRel, Ordering::Acquire);
        made.map_or_else(
            |mark| Ok(Process(mark)),
            |_| Ok(Process(word.load(Ordering::Acquire))),
        )
    }

    /// Is it this process, and not a child of it?
    pub fn is_current(self) -> bool {
        word().map_or(false, |word| word.load(Ordering::Relaxed) == self.0)
    }
}
