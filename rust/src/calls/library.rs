// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! The functions of libkevent(3). They return a negative errno, and leave errno alone.

use std::ffi::CStr;
use std::io;
use std::mem::ManuallyDrop;
use std::os::raw::{c_char, c_int};
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::flags_of;
use crate::abi::{self, Entry, RingHeader, Timespec, WaitArg};
use crate::ring::RingMemory;

/// `struct kevent_queue`.
#[derive(Default)]
#[repr(C)]
pub struct LibraryQueue {
    fd: c_int,
    size: u32,
    ring: usize,
    process: u32,
    entered: u32,
}

impl LibraryQueue {
    pub fn fd(&self) -> RawFd {
        self.fd
    }
}

extern "C" {
    fn kevent_init(ring: usize, slots: u32, flags: u32) -> c_int;
    fn kevent_ctl(fd: c_int, cmd: u32, num: u32, arg: usize) -> c_int;
    fn kevent_get_events(
        fd: c_int,
        min: u32,
        max: u32,
        timeout: Option<&Timespec>,
        buffer: usize,
        flags: u32,
    ) -> c_int;
    fn kevent_wait(
        fd: c_int,
        num: u32,
        seen: u32,
        timeout: Option<&Timespec>,
        flags: u32,
        arg: Option<&WaitArg>,
    ) -> c_int;
    fn kevent_queue_pop(queue: &mut LibraryQueue, entry: &mut Entry, max: u32) -> c_int;
    fn kevent_queue_close(queue: &mut LibraryQueue);
    fn kevent_backend(fd: c_int) -> *const c_char;
}

fn said(result: c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| crate::error(-result))
}

/// The descriptor of a queue, and its ring. The library has more than that of a queue of epoll.
#[derive(Debug)]
pub struct Descriptor {
    fd: ManuallyDrop<OwnedFd>,
    ring: usize,
    slots: u32,
}

/// A queue for functions that take more than its descriptor. Process 0 is any: ours are
/// checked before.
fn queue(fd: RawFd, ring: usize, size: u32) -> LibraryQueue {
    LibraryQueue { fd, size, ring, process: 0, entered: 0 }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: closes the descriptor, which nobody uses any more.
        unsafe {
            kevent_queue_close(&mut queue(self.fd.as_raw_fd(), self.ring, self.slots))
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// kevent_init(). The memory at `ring` must be a ring that stays reserved for good: the
/// kernel writes to it, now and later, which RingMemory allows; or there is none.
pub fn init(ring: usize, slots: u32, flags: u32) -> io::Result<Descriptor> {
    // SAFETY: as the caller says.
    let fd = said(unsafe { kevent_init(ring, slots, flags) })? as RawFd;
    // SAFETY: the call has just opened it.
    let fd = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(fd) });
    // To close number 0 without a ring is to close nothing
    Ok(Descriptor { fd, ring: ring.max(std::mem::align_of::<RingHeader>()), slots })
}

/// kevent_ctl().
///
/// # Safety
///
/// There are `num` entries at `arg`, which are read and written.
pub unsafe fn ctl(fd: RawFd, cmd: u32, num: u32, arg: usize) -> io::Result<usize> {
    // SAFETY: as the caller says.
    said(unsafe { kevent_ctl(fd, cmd, num, arg) })
}

/// kevent_get_events() up to a point of time.
///
/// # Safety
///
/// There is room for `max` entries at `buffer`.
pub unsafe fn get_events(
    fd: RawFd,
    max: usize,
    until: Option<&Timespec>,
    buffer: usize,
) -> io::Result<usize> {
    let max = u32::try_from(max).unwrap_or(u32::MAX);
    // SAFETY: as the caller says.
    said(unsafe { kevent_get_events(fd, 1, max, until, buffer, flags_of(until)) })
}

/// kevent_wait() up to a point of time.
///
/// # Safety
///
/// What the argument points to is there, and may be written to.
pub unsafe fn wait(
    fd: RawFd,
    slots: u32,
    seen: u32,
    until: Option<&Timespec>,
    arg: Option<&WaitArg>,
) -> io::Result<usize> {
    let flags = flags_of(until) | (u32::from(arg.is_some()) * abi::FLAGS_ARG);
    // SAFETY: as the caller says.
    said(unsafe { kevent_wait(fd, slots, seen, until, flags, arg) })
}

/// An entry that is not in the ring yet, without waiting. A queue of epoll always says that
/// there may be more: only the library knows when it has just looked.
pub fn fetch(fd: RawFd, ring: &RingMemory) -> Option<Entry> {
    let mut queue = queue(fd, ring.address(), ring.slots());
    let mut entry = Entry::default();
    // SAFETY: the ring is that of the queue, and there is room for the entry.
    let nr = unsafe { kevent_queue_pop(&mut queue, &mut entry, 1) };
    Some(entry).filter(|_| nr == 1)
}

/// What the queue is made of.
pub fn backend(fd: RawFd) -> &'static str {
    // SAFETY: NULL, or a text that stays for good.
    unsafe {
        let text = kevent_backend(fd);
        if text.is_null() {
            return "";
        }
        CStr::from_ptr(text).to_str().unwrap_or("")
    }
}
