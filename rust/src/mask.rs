// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Sets of conditions, one type for each source.

use crate::abi;

macro_rules! mask {
    ($(#[$meta:meta])* $name:ident { $($(#[$bit_meta:meta])* $bit:ident = $value:expr;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u32);

        impl $name {
            $($(#[$bit_meta])* pub const $bit: $name = $name($value);)*

            /// The empty set.
            pub const NONE: $name = $name(0);

            /// A set of these bits of `linux/ukevent.h`; the kernel refuses those
            /// that it does not know.
            #[must_use]
            pub const fn from_bits(bits: u32) -> $name {
                $name(bits)
            }

            /// The bits, as in `linux/ukevent.h`.
            #[must_use]
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// Are all conditions of `other` in this set?
            #[must_use]
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// Is any condition of `other` in this set?
            #[must_use]
            pub const fn intersects(self, other: $name) -> bool {
                self.0 & other.0 != 0
            }

            /// Is the set empty?
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: $name) {
                self.0 |= other.0;
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut left = self.0;
                let mut list = f.debug_list();
                $(if left & $value != 0 {
                    list.entry(&format_args!(stringify!($bit)));
                    left &= !$value;
                })*
                if left != 0 {
                    list.entry(&format_args!("{:#x}", left));
                }
                list.finish()
            }
        }
    };
}

mask! {
    /// Conditions of a socket or a pipe.
    ///
    /// ```
    /// use kevent::Ready;
    ///
    /// let both = Ready::RECV | Ready::SEND;
    /// assert!(both.contains(Ready::SEND) && !both.contains(Ready::HUP));
    /// assert_eq!(format!("{:?}", both), "[RECV, SEND]");
    /// ```
    Ready {
        /// There is something to read, or end of file.
        RECV = abi::SOCKET_RECV;
        /// A connection waits to be accepted; for sockets only.
        ACCEPT = abi::SOCKET_ACCEPT;
        /// There is room to write.
        SEND = abi::SOCKET_SEND;
        /// All that was written has arrived; for TCP and AF_UNIX sockets.
        EMPTY = abi::SOCKET_EMPTY;
        /// An error; reported without being asked for.
        ERR = abi::POLL_POLLERR;
        /// Both directions have ended; reported without being asked for.
        HUP = abi::POLL_POLLHUP;
        /// The peer has shut down its side; reported with other conditions.
        RDHUP = abi::POLL_POLLRDHUP;
    }
}

mask! {
    /// Conditions of poll(2).
    Poll {
        /// There is something to read, or end of file.
        IN = abi::POLL_POLLIN;
        /// Something exceptional, as urgent data.
        PRI = abi::POLL_POLLPRI;
        /// There is room to write.
        OUT = abi::POLL_POLLOUT;
        /// An error; reported without being asked for.
        ERR = abi::POLL_POLLERR;
        /// Both directions have ended; reported without being asked for.
        HUP = abi::POLL_POLLHUP;
        /// As [`Poll::IN`].
        RDNORM = abi::POLL_POLLRDNORM;
        /// Priority data to read.
        RDBAND = abi::POLL_POLLRDBAND;
        /// As [`Poll::OUT`].
        WRNORM = abi::POLL_POLLWRNORM;
        /// Priority data can be written.
        WRBAND = abi::POLL_POLLWRBAND;
        /// `POLLMSG`, which Linux does not use.
        MSG = abi::POLL_POLLMSG;
        /// The peer has shut down its side.
        RDHUP = abi::POLL_POLLRDHUP;
    }
}

mask! {
    /// Changes of a file or directory.
    Changes {
        /// An entry of the directory was created.
        CREATE = abi::INODE_CREATE;
        /// An entry of the directory was removed; of a file: its last name is gone.
        REMOVE = abi::INODE_REMOVE;
        /// The file was written to or truncated.
        MODIFY = abi::INODE_MODIFY;
        /// Mode, owner, times or number of links changed.
        ATTRIB = abi::INODE_ATTRIB;
        /// The file, or an entry of the directory, was renamed.
        RENAME = abi::INODE_RENAME;
    }
}
