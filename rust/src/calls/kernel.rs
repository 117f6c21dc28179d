// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Whether the kernel has kevent.
//!
//! The numbers of the calls are those of other calls in a kernel without kevent. So none
//! is made before /proc has shown the sysctl of kevent, and a new descriptor is a queue
//! only if /proc says so.

use crate::abi;
use std::fs::read_link;
use std::os::unix::io::RawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

pub const ENOSYS: i32 = 38;

const SYSCTL: &str = "/proc/sys/kernel/kevent_disabled";
const DESCRIPTORS: &str = "/proc/thread-self/fd";

/// What is known: nothing; the sysctl is there; a queue was seen, so /proc may go; what
/// answered is not kevent.
const UNKNOWN: u8 = 0;
const SEEN: u8 = 1;
const PROVED: u8 = 2;
const OTHER: u8 = 3;

static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// May calls of kevent be made? What /proc does not show it may show later. The sysctl may be
/// that of the module, which comes with its device.
pub fn has_kevent() -> bool {
    let may_prove = || Path::new(DESCRIPTORS).exists();
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let of_calls = || !Path::new(abi::DEVICE).exists();
            let seen = Path::new(SYSCTL).exists() && of_calls() && may_prove();
            if seen {
                KNOWN.fetch_max(SEEN, Ordering::Relaxed);
            }
            seen
        }
        SEEN => may_prove(),
        known => known != OTHER,
    }
}

/// Has the call returned a queue? Else it may be anybody's descriptor, which stays as it
/// is. If it is another file, nothing is asked any more; a link that cannot be read says
/// nothing of later ones.
pub fn is_queue(fd: RawFd) -> bool {
    let found = match read_link(format!("{DESCRIPTORS}/{fd}")) {
        Ok(name) => name == Path::new("anon_inode:[kevent]"),
        Err(_) => return KNOWN.load(Ordering::Relaxed) == PROVED,
    };
    KNOWN.fetch_max(if found { PROVED } else { OTHER }, Ordering::Relaxed);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::io::AsRawFd;

    #[test]
    fn a_descriptor_of_another_kind_ends_it() {
        let there = Path::new(SYSCTL).exists() && !Path::new(abi::DEVICE).exists();
        assert_eq!(has_kevent(), there);
        assert!(!is_queue(-1));
        assert_eq!(has_kevent(), there);
        let file = File::open("/dev/null").unwrap();
        assert!(!is_queue(file.as_raw_fd()));
        assert!(file.metadata().is_ok());
        assert!(!has_kevent());
    }
}
