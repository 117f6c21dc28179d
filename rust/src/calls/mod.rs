// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! The calls of kevent: by libkevent, which has a way on each host, or by the crate itself.

#[cfg(feature = "libkevent")]
mod library;
#[cfg(feature = "libkevent")]
pub use library::*;

#[cfg(not(feature = "libkevent"))]
mod kernel;
#[cfg(not(feature = "libkevent"))]
mod raw;
#[cfg(not(feature = "libkevent"))]
pub use raw::*;

use crate::abi::{self, Timespec};

fn flags_of(until: Option<&Timespec>) -> u32 {
    u32::from(until.is_some()) * abi::FLAGS_ABSTIME
}
