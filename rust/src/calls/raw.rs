// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Without libkevent: system calls, or ioctls of the module.
//!
//! A kernel with the calls takes no module, so all queues of a process are of one kind.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::io::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::{flags_of, kernel};
use crate::abi::{self, DevCtl, DevGet, DevInit, DevWait, Entry, Timespec, WaitArg};
use crate::ring::RingMemory;
use crate::sys::{checked, number};

/// The descriptor of a queue.
pub type Descriptor = OwnedFd;

const ENOENT: i32 = 2;
const ENXIO: i32 = 6;
const EAGAIN: i32 = 11;
const ENODEV: i32 = 19;
const ENOTDIR: i32 = 20;
const SEEK_SET: usize = 0;
const SEEK_CUR: usize = 1;

/// The device, or -1. It stays open, so that a program which gives up its rights or its
/// view of /dev can still make queues.
static DEVICE: AtomicI32 = AtomicI32::new(-1);
/// The module has made a queue.
static BY_MODULE: AtomicBool = AtomicBool::new(false);

fn by_module() -> bool {
    BY_MODULE.load(Ordering::Relaxed)
}

/// An ioctl whose argument is a structure that is there.
///
/// # Safety
///
/// As for `checked()`, for what the structure points to.
unsafe fn ioctl<T>(fd: RawFd, request: u32, arg: &mut T) -> io::Result<usize> {
    let args = [fd as usize, request as usize, arg as *mut T as usize, 0, 0, 0];
    // SAFETY: as the caller says.
    unsafe { checked(number::IOCTL, args) }
}

/// Is the number still that of the device? The program may have closed it.
fn is_device(fd: RawFd) -> bool {
    let mut types = 0u64;
    // SAFETY: the device writes 64 bits, and other files do not know the ioctl.
    fd >= 0 && unsafe { ioctl(fd, abi::IOC_TYPES, &mut types) }.is_ok()
}

fn missing(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(ENOENT | ENXIO | ENODEV | ENOTDIR) => crate::error(kernel::ENOSYS),
        _ => error,
    }
}

fn open_device() -> io::Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).open(abi::DEVICE);
    let file = OwnedFd::from(file.map_err(missing)?);
    if !is_device(file.as_raw_fd()) {
        return Err(crate::error(kernel::ENOSYS));
    }
    // The number of a duplicate is none of the standard descriptors.
    if file.as_raw_fd() <= 2 {
        file.try_clone()
    } else {
        Ok(file)
    }
}

fn device() -> io::Result<RawFd> {
    let old = DEVICE.load(Ordering::Acquire);
    if is_device(old) {
        return Ok(old);
    }
    let new = open_device()?;
    let fd = new.as_raw_fd();
    match DEVICE.compare_exchange(old, fd, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(new.into_raw_fd()),
        Err(other) => Ok(other),
    }
}

fn init_by_module(ring: usize, slots: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut arg = DevInit { ring: ring as u64, ring_size: slots, flags };
    // SAFETY: as for init().
    let fd = unsafe { ioctl(device()?, abi::IOC_INIT, &mut arg)? } as RawFd;
    BY_MODULE.store(true, Ordering::Relaxed);
    // SAFETY: the call has just opened it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn init_by_call(ring: usize, slots: u32, flags: u32) -> io::Result<OwnedFd> {
    if by_module() || !kernel::has_kevent() {
        return Err(crate::error(kernel::ENOSYS));
    }
    let args = [ring, slots as usize, flags as usize, 0, 0, 0];
    // SAFETY: as for init().
    let fd = unsafe { checked(abi::SYS_INIT, args)? } as RawFd;
    if !kernel::is_queue(fd) {
        return Err(crate::error(kernel::ENOSYS));
    }
    // SAFETY: the call has just opened it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// kevent_init(). The memory at `ring` must be a ring that stays reserved for good: the
/// kernel writes to it, now and later, which RingMemory allows; or there is none.
pub fn init(ring: usize, slots: u32, flags: u32) -> io::Result<OwnedFd> {
    let is_missing = |error: &io::Error| error.raw_os_error() == Some(kernel::ENOSYS);
    match init_by_call(ring, slots, flags) {
        Err(error) if is_missing(&error) => init_by_module(ring, slots, flags),
        other => other,
    }
}

/// kevent_ctl().
///
/// # Safety
///
/// There are `num` entries at `arg`, which the kernel reads and writes.
pub unsafe fn ctl(fd: RawFd, cmd: u32, num: u32, arg: usize) -> io::Result<usize> {
    if by_module() {
        let mut arg = DevCtl { cmd, num, arg: arg as u64 };
        // SAFETY: as the caller says.
        return unsafe { ioctl(fd, abi::IOC_CTL, &mut arg) };
    }
    let args = [fd as usize, cmd as usize, num as usize, arg, 0, 0];
    // SAFETY: as the caller says.
    unsafe { checked(abi::SYS_CTL, args) }
}

/// A point of time as the kernel's argument: the time must stay where it is.
fn address_of(time: Option<&Timespec>) -> usize {
    time.map_or(0, |time| time as *const Timespec as usize)
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
    let (timeout, flags) = (address_of(until), flags_of(until));
    if by_module() {
        let max_nr = u32::try_from(max).unwrap_or(u32::MAX);
        let mut arg = DevGet { min_nr: 1, max_nr, flags, ..DevGet::default() };
        arg.timeout = timeout as u64;
        arg.buf = buffer as u64;
        // SAFETY: as the caller says.
        return unsafe { ioctl(fd, abi::IOC_GET_EVENTS, &mut arg) };
    }
    let args = [fd as usize, 1, max, timeout, buffer, flags as usize];
    // SAFETY: as the caller says.
    unsafe { checked(abi::SYS_GET_EVENTS, args) }
}

/// Other files have no position, or one that is 0: so a queue without events says EAGAIN.
fn sought(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Ok(0) => Err(crate::error(crate::EINVAL)),
        Err(error) if error.raw_os_error() == Some(EAGAIN) => Ok(0),
        other => other,
    }
}

/// The cheapest wait of the module: without an argument, and without end or not at all.
fn seek(
    fd: RawFd,
    slots: u32,
    seen: u32,
    until: Option<&Timespec>,
) -> Option<io::Result<usize>> {
    let whence = match until {
        None => SEEK_CUR,
        Some(Timespec { sec: 0, nsec: 0 }) => SEEK_SET,
        _ => return None,
    };
    // Negative, so another file that has got the number stays where it is.
    let position = 1 << 63 | (slots as usize) << 32 | seen as usize;
    // SAFETY: the kernel writes to the ring, which its owner allows.
    let result =
        unsafe { checked(number::LSEEK, [fd as usize, position, whence, 0, 0, 0]) };
    Some(sought(result))
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
    let timeout = address_of(until);
    let more = arg.map_or(0, |arg| arg as *const WaitArg as usize);
    if by_module() {
        let sought = if arg.is_none() { seek(fd, slots, seen, until) } else { None };
        return sought.unwrap_or_else(|| {
            let mut arg =
                DevWait { num: slots, old_kidx: seen, flags, ..DevWait::default() };
            arg.timeout = timeout as u64;
            arg.arg = more as u64;
            // SAFETY: as the caller says.
            unsafe { ioctl(fd, abi::IOC_WAIT, &mut arg) }
        });
    }
    let args =
        [fd as usize, slots as usize, seen as usize, timeout, flags as usize, more];
    // SAFETY: as the caller says.
    unsafe { checked(abi::SYS_WAIT, args) }
}

/// An entry that is not in the ring yet, without waiting. Claims to be one event behind, so
/// the call does not wait.
pub fn fetch(fd: RawFd, ring: &RingMemory) -> Option<Entry> {
    let (seen, now) = (ring.kidx().wrapping_sub(1), Timespec::default());
    // SAFETY: the kernel writes to the ring.
    unsafe { wait(fd, ring.slots(), seen as u32, Some(&now), None) }.ok()?;
    ring.pop_one()
}

/// What the queue is made of.
pub fn backend(_: RawFd) -> &'static str {
    if by_module() {
        "module"
    } else {
        "kevent"
    }
}
