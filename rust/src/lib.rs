// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Event notification of Linux kevent.
//!
//! A [`Queue`] collects events: sockets, pipes and other files that become ready,
//! timers, signals, exits of processes, changes of files, futex wake-ups, and marks
//! that the program sets itself. They are in a ring in memory of the process, which
//! [`Queue::get`] reads without a system call.
//!
//! Each [`Watch`] has a token, by which the program knows what an [`Event`] is about;
//! [`Event::what`] says what happened.
//!
//! ```
//! use kevent::{Queue, Timer, Watch, What};
//! use std::time::Duration;
//!
//! # fn main() -> std::io::Result<()> {
//! # if kevent::supported().is_err() { return Ok(()); }
//! let queue = Queue::new(64)?;
//! queue.add(&Watch::timer(Timer::every(Duration::from_millis(1)), 1))?;
//! queue.add(&Watch::timer(Timer::after(Duration::from_millis(20)), 2))?;
//! let mut ticks = 0;
//! while let Some(event) = queue.next(None)? {
//!     match (event.token(), event.what()) {
//!         (1, What::Timer { expirations }) => ticks += expirations,
//!         _ => break,
//!     }
//! }
//! assert!(ticks >= 19);
//! # Ok(())
//! # }
//! ```
//!
//! An event may be stale: its bytes may have been read already. Make descriptors
//! nonblocking, or use [`Watch::last_check`]. An event in the ring outlives its watch:
//! [`Handles`] are tokens that never mean something else.
//!
//! What makes a queue is the kernel, if it has kevent, or its module, or else epoll and its
//! like, which libkevent knows how to use: see [`Queue::backend`]. kevent_fallback(7) says what
//! the latter two lack. Without the feature `libkevent` the crate makes the calls of the kernel
//! and of the module itself, and there is no epoll. It depends on no other crate, and is for
//! x86-64 and 64-bit ARM.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_debug_implementations, rust_2018_idioms)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("kevent is for Linux, and this crate for 64-bit programs");

pub mod abi;
mod calls;
mod event;
mod handles;
mod mask;
mod process;
mod queue;
mod ring;
#[cfg(feature = "libkevent")]
mod streams;
mod sys;
mod watch;

pub use event::{Event, What};
pub use handles::Handles;
pub use mask::{Changes, Poll, Ready};
pub use queue::{supported, Change, Options, Queue, Ring};
#[cfg(feature = "libkevent")]
pub use streams::{Stream, Streams};
pub use watch::{Clock, Timer, Watch};

const EXDEV: i32 = 18;
const EINVAL: i32 = 22;

fn error(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
