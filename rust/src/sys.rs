// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! System calls, without a C library on the machines that have `asm!` here.

use std::io;

#[cfg(target_arch = "x86_64")]
pub mod number {
    #[cfg(not(feature = "libkevent"))]
    pub const LSEEK: usize = 8;
    pub const MMAP: usize = 9;
    #[cfg(not(feature = "libkevent"))]
    pub const IOCTL: usize = 16;
    pub const MADVISE: usize = 28;
    pub const GETPID: usize = 39;
    pub const CLOCK_GETTIME: usize = 228;
}

#[cfg(target_arch = "aarch64")]
pub mod number {
    #[cfg(not(feature = "libkevent"))]
    pub const IOCTL: usize = 29;
    #[cfg(not(feature = "libkevent"))]
    pub const LSEEK: usize = 62;
    pub const MMAP: usize = 222;
    pub const MADVISE: usize = 233;
    pub const GETPID: usize = 172;
    pub const CLOCK_GETTIME: usize = 113;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("kevent: add the system calls of this machine to sys.rs");

const CLOCK_MONOTONIC: usize = 1;
const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
const MAP_PRIVATE: usize = 0x02;
const MAP_FIXED: usize = 0x10;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MAP_POPULATE: usize = 0x8000;
const MADV_WIPEONFORK: usize = 18;

/// Makes a system call.
///
/// # Safety
///
/// The call must not break any rule of Rust about memory: what `args` point to
/// has to be valid for what the call does with it.
#[cfg(target_arch = "x86_64")]
unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let ret: isize;
    // SAFETY: as the caller says. The kernel preserves all registers but these.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => ret,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    ret
}

/// Makes a system call; the safety rules are those of the other machine.
#[cfg(target_arch = "aarch64")]
unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let ret: isize;
    // SAFETY: as the caller says. The kernel preserves all registers but x0.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => ret,
            in("x1") args[1], in("x2") args[2], in("x3") args[3],
            in("x4") args[4], in("x5") args[5],
            options(nostack)
        );
    }
    ret
}

/// Makes a system call whose result is an errno if it is negative.
///
/// # Safety
///
/// As for `call()`.
pub unsafe fn checked(number: usize, args: [usize; 6]) -> io::Result<usize> {
    // SAFETY: as the caller says.
    let ret = unsafe { call(number, args) };
    if (-4095..0).contains(&ret) {
        return Err(io::Error::from_raw_os_error(-ret as i32));
    }
    Ok(ret as usize)
}

fn map(at: usize, bytes: usize, protection: usize, flags: usize) -> io::Result<*mut u8> {
    let flags = flags | MAP_PRIVATE | MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED the memory is new. With it, retire() below says
    // that nobody uses what was there.
    unsafe { checked(number::MMAP, [at, bytes, protection, flags, usize::MAX, 0]) }
        .map(|address| address as *mut u8)
}

/// Maps zeroed memory that is there already.
pub fn allocate(bytes: usize) -> io::Result<*mut u8> {
    map(0, bytes, PROT_READ | PROT_WRITE, MAP_POPULATE)
}

/// Returns memory to the system but keeps its addresses from being used again.
///
/// # Safety
///
/// `memory` is of `allocate()`, and nobody accesses it any more.
pub unsafe fn retire(memory: *mut u8, bytes: usize) {
    // PROT_NONE. If it fails the memory stays, which is safe, too.
    let _ = map(memory as usize, bytes, 0, MAP_FIXED | MAP_NORESERVE);
}

/// Has the kernel clear the memory in a child of fork().
///
/// # Safety
///
/// `memory` is of `allocate()`.
pub unsafe fn wipe_on_fork(memory: *mut u8, bytes: usize) -> io::Result<()> {
    let args = [memory as usize, bytes, MADV_WIPEONFORK, 0, 0, 0];
    // SAFETY: the call leaves the memory of this process as it is.
    unsafe { checked(number::MADVISE, args) }.map(drop)
}

pub fn getpid() -> u32 {
    // SAFETY: the call accesses no memory.
    unsafe { call(number::GETPID, [0; 6]) as u32 }
}

/// The time of CLOCK_MONOTONIC, in seconds and nanoseconds.
pub fn monotonic() -> crate::abi::Timespec {
    let mut now = crate::abi::Timespec::default();
    let args = [CLOCK_MONOTONIC, &mut now as *mut _ as usize, 0, 0, 0, 0];
    // SAFETY: the call writes a timespec, which is there. It cannot fail.
    let _ = unsafe { call(number::CLOCK_GETTIME, args) };
    now
}
