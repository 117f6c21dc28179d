// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! The binary interface, as in `linux/ukevent.h`.
//!
//! For programs that make requests which the safe types do not offer, and for
//! tests. The names are those of the C header without the prefix `KEVENT_`.
#![allow(missing_docs)] // linux/ukevent.h documents each of them

/// `struct kevent_id` and `struct ukevent`: a request, and an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Entry {
    /// What is watched: two words, or one number with the low word first in
    /// memory on a little-endian machine.
    pub id: [u32; 2],
    pub kind: u32,
    pub event: u32,
    pub req_flags: u32,
    pub ret_flags: u32,
    pub ret_data: [u32; 2],
    /// The `user` words as one number: the token.
    pub user: u64,
}

/// 64-bit words in an [`Entry`].
pub const ENTRY_WORDS: usize = 5;

impl Entry {
    /// The id as one number.
    #[must_use]
    pub fn id_u64(&self) -> u64 {
        let [a, b] = self.id.map(u32::to_ne_bytes);
        u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
    }

    /// Sets the id to one number.
    pub fn set_id_u64(&mut self, id: u64) {
        let b = id.to_ne_bytes();
        self.id = [
            u32::from_ne_bytes([b[0], b[1], b[2], b[3]]),
            u32::from_ne_bytes([b[4], b[5], b[6], b[7]]),
        ];
    }

    /// `ret_data` as one number: the low word comes first on every machine.
    #[must_use]
    pub fn data_u64(&self) -> u64 {
        u64::from(self.ret_data[1]) << 32 | u64::from(self.ret_data[0])
    }

    /// Sets `ret_data` to one number.
    pub fn set_data_u64(&mut self, data: u64) {
        self.ret_data = [data as u32, (data >> 32) as u32];
    }
}

/// The header of `struct kevent_ring`; the slots follow it.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct RingHeader {
    pub kidx: core::sync::atomic::AtomicU64,
    pub flags: core::sync::atomic::AtomicU32,
    pub pad0: [u32; 13],
    pub uidx: core::sync::atomic::AtomicU64,
    pub pad1: [u32; 14],
}

/// `struct kevent_change`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct Change {
    pub uk: Entry,
    pub cmd: u32,
    pub result: i32,
}

/// `struct kevent_wait_arg`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct WaitArg {
    pub size: u32,
    pub clockid: i32,
    pub min_nr: u32,
    pub sigsetsize: u32,
    pub sigmask: u64,
    pub min_wait_ns: u64,
    pub changes: u64,
    pub nr_changes: u32,
    pub max_running: u32,
}

/// `struct kevent_call`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct Call {
    pub nr: u32,
    pub on_error: u8,
    pub on_zero: u8,
    pub on_value: u8,
    pub flags: u8,
    pub result: i64,
    pub args: [u64; 6],
}

/// `struct kevent_dev_init`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct DevInit {
    pub ring: u64,
    pub ring_size: u32,
    pub flags: u32,
}

/// `struct kevent_dev_ctl`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct DevCtl {
    pub cmd: u32,
    pub num: u32,
    pub arg: u64,
}

/// `struct kevent_dev_get`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct DevGet {
    pub min_nr: u32,
    pub max_nr: u32,
    pub timeout: u64,
    pub buf: u64,
    pub flags: u32,
    pub reserved: u32,
}

/// `struct kevent_dev_wait`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct DevWait {
    pub num: u32,
    pub old_kidx: u32,
    pub timeout: u64,
    pub flags: u32,
    pub reserved: u32,
    pub arg: u64,
}

/// `struct kevent_dev_commit`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct DevCommit {
    pub uidx: u64,
}

/// `struct __kernel_timespec`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Timespec {
    pub sec: i64,
    pub nsec: i64,
}

/// The device of the module.
pub const DEVICE: &str = "/dev/kevent";

pub const SYS_INIT: usize = 480;
pub const SYS_CTL: usize = 481;
pub const SYS_GET_EVENTS: usize = 482;
pub const SYS_WAIT: usize = 483;
pub const SYS_COMMIT: usize = 484;
pub const SYS_CALL: usize = 485;

macro_rules! constants {
    ($($(#[$meta:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$meta])* pub const $name: $type = $value;)*

        /// Each constant by its name in C without `KEVENT_`, to compare with it.
        pub const ALL: &[(&str, u64)] = &[$((stringify!($name), $name as u64)),*];
    };
}

constants! {
    CALL_BOUND: u32 = 0x8000_0000;
    CALL_REFUSED: u32 = 0x10000;
    CALL_MAX: u32 = 1024;
    CALL_ASYNC: u32 = 0x1;
    CALL_SUBMITTED: u32 = 0x20000;

    RING_MIN: u32 = 2;
    RING_MAX: u32 = 1 << 20;
    RING_MORE: u32 = 0x1;
    RING_BROKEN: u32 = 0x2;

    INIT_NOCLOEXEC: u32 = 0x1;
    INIT_FAIR: u32 = 0x2;
    INIT_REFUSE_LATER: u32 = 0x1000_0000;
    INIT_REFUSE_CHANGE: u32 = 0x2000_0000;
    INIT_REFUSE_READY: u32 = 0x4000_0000;
    INIT_REFUSE_ATTACH: u32 = 0x8000_0000;
    INIT_REFUSE_ALL: u32 = 0xffff_0000;

    CTL_ADD: u32 = 0;
    CTL_REMOVE: u32 = 1;
    CTL_MODIFY: u32 = 2;
    CTL_READY: u32 = 3;
    CTL_ATTACH: u32 = 4;
    CTL_WAKE_ALL: u32 = 5;
    CTL_MAX: u32 = 4096;

    FLAGS_ABSTIME: u32 = 0x1;
    FLAGS_ARG: u32 = 0x2;
    FLAGS_SERVE: u32 = 0x4;

    SOCKET: u32 = 0;
    INODE: u32 = 1;
    TIMER: u32 = 2;
    POLL: u32 = 3;
    NAIO: u32 = 4;
    AIO: u32 = 5;
    PIPE: u32 = 6;
    SIGNAL: u32 = 7;
    POSIX_TIMER: u32 = 8;
    USER: u32 = 9;
    PROC: u32 = 10;
    FUTEX: u32 = 11;
    BOUND: u32 = 12;
    BOUND_MAX: u32 = 0x4000;

    SOCKET_RECV: u32 = 0x1;
    SOCKET_ACCEPT: u32 = 0x2;
    SOCKET_SEND: u32 = 0x4;
    SOCKET_EMPTY: u32 = 0x20;

    POLL_POLLIN: u32 = 0x0001;
    POLL_POLLPRI: u32 = 0x0002;
    POLL_POLLOUT: u32 = 0x0004;
    POLL_POLLERR: u32 = 0x0008;
    POLL_POLLHUP: u32 = 0x0010;
    POLL_POLLRDNORM: u32 = 0x0040;
    POLL_POLLRDBAND: u32 = 0x0080;
    POLL_POLLWRNORM: u32 = 0x0100;
    POLL_POLLWRBAND: u32 = 0x0200;
    POLL_POLLMSG: u32 = 0x0400;
    POLL_POLLRDHUP: u32 = 0x2000;

    INODE_CREATE: u32 = 0x1;
    INODE_REMOVE: u32 = 0x2;
    INODE_MODIFY: u32 = 0x4;
    INODE_ATTRIB: u32 = 0x8;
    INODE_RENAME: u32 = 0x10;

    TIMER_FIRED: u32 = 0x1;
    TIMER_ABSTIME: u32 = 0x2;
    TIMER_INTERVAL: u32 = 0x4;
    TIMER_CANCEL_ON_SET: u32 = 0x8;
    TIMER_REALTIME: u32 = 0x10;
    TIMER_BOOTTIME: u32 = 0x20;
    TIMER_TAI: u32 = 0x40;

    AIO_DONE: u32 = 0x1;

    POSIX_TIMER_FIRED: u32 = 0x1;

    SIGNAL_DELIVERY: u32 = 0x1;
    SIGNAL_NOMASK: u64 = 0x8000_0000_0000_0000;
    SIGNAL_POSTED: u64 = 0x4000_0000_0000_0000;

    PROC_EXIT: u32 = 0x1;
    PROC_PIDFD: u32 = 0x2;
    PROC_STATUS: u32 = 0x1;

    FUTEX_WAKE: u32 = 0x1;
    FUTEX_PRIVATE: u32 = 0x2;

    REQ_ONESHOT: u32 = 0x01;
    REQ_WAKEUP_ALL: u32 = 0x02;
    REQ_ET: u32 = 0x04;
    REQ_LAST_CHECK: u32 = 0x08;
    REQ_HAND_BACK: u32 = 0x10;
    REQ_READY: u32 = 0x20;
    REQ_DISPATCH: u32 = 0x40;
    REQ_DISABLED: u32 = 0x80;
    REQ_KEEP_EACH: u32 = 0x100;
    REQ_STAY_AWAKE: u32 = 0x200;
    REQ_HANDOFF: u32 = 0x400;
    REQ_DRIVEN: u32 = 0x800;

    RET_BROKEN: u32 = 0x1;
    RET_DONE: u32 = 0x2;
    RET_COPY_FAILED: u32 = 0x4;
    RET_DRIVE: u32 = 0x8;

    // ioctl() of a queue
    IOC_SET_DELAY: u32 = 0x4004_8a10;
    IOC_GET_DELAY: u32 = 0x8004_8a11;
    DELAY_MAX: u32 = 1_000_000_000;

    // ioctl() of the device of the module, and of its queues
    IOC_TYPES: u32 = 0x8008_be00;
    IOC_INIT: u32 = 0x4010_be01;
    IOC_POST: u32 = 0x4028_be02;
    IOC_CTL: u32 = 0x4010_be10;
    IOC_GET_EVENTS: u32 = 0x4020_be11;
    IOC_WAIT: u32 = 0x4020_be12;
    IOC_COMMIT: u32 = 0x4008_be13;
    IOC_DRIVE: u32 = 0x4028_be14;
}
