// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! What a queue reports.

use std::io;
use std::os::unix::io::RawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::abi::{self, Entry};
use crate::mask::{Changes, Poll, Ready};

/// An event: something that happened, and the token of its watch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event {
    entry: Entry,
}

/// What happened, by the source of the event.
///
/// A descriptor is the number that was watched. The program may have closed it since,
/// and opened another file under the same number: see [`Handles`](crate::Handles).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A socket is ready.
    Socket {
        /// The descriptor.
        fd: RawFd,
        /// The conditions that hold.
        ready: Ready,
        /// Bytes to read or connections to accept; 0 if the kernel does not say.
        amount: u32,
    },
    /// A pipe or FIFO is ready.
    Pipe {
        /// The descriptor.
        fd: RawFd,
        /// The conditions that hold.
        ready: Ready,
    },
    /// A file is ready.
    Poll {
        /// The descriptor.
        fd: RawFd,
        /// The conditions that hold.
        ready: Poll,
    },
    /// A file or directory has changed.
    Inode {
        /// The descriptor.
        fd: RawFd,
        /// What has changed since the last event.
        changes: Changes,
    },
    /// A timer has expired; the token says which one.
    Timer {
        /// How often since the last event.
        expirations: u64,
    },
    /// A timer of timer_create(2) has expired.
    PosixTimer {
        /// The timer, as the system call has returned it.
        id: i32,
        /// Expirations since the last event, less one.
        overrun: u64,
    },
    /// A signal came.
    Signal {
        /// The signal.
        number: i32,
        /// The process id of the sender, 0 when the kernel sent it.
        sender: u32,
        /// `si_code` of sigaction(2).
        code: i32,
        /// The number that was sent with the signal.
        value: i32,
        /// Did the event take the place of the delivery?
        consumed: bool,
    },
    /// A process has exited.
    Exit {
        /// Its process id.
        pid: u32,
        /// How it ended, if this process may know.
        status: Option<ExitStatus>,
    },
    /// A futex was woken, or its word has another value than expected.
    Futex {
        /// The address of the word.
        address: usize,
    },
    /// The program has marked a watch of [`Watch::user`](crate::Watch::user).
    Marks {
        /// The name of the watch.
        id: u64,
        /// The bits of all marks since the last event.
        bits: u32,
        /// The number of these marks.
        marks: u32,
    },
    /// The program has marked a watch of [`Watch::messages`](crate::Watch::messages).
    Message {
        /// The name of the watch.
        id: u64,
        /// The bits of this mark.
        bits: u32,
        /// What [`Queue::send`](crate::Queue::send) was given.
        data: u64,
    },
    /// The source cannot deliver any more: see [`Event::error`].
    Broken {
        /// The type, as in [`abi`]: [`abi::SOCKET`] and its like.
        kind: u32,
        /// The errno.
        errno: i32,
    },
    /// An event of a type that this crate does not know.
    Other {
        /// The type.
        kind: u32,
    },
}

impl Event {
    pub(crate) fn new(entry: Entry) -> Event {
        Event { entry }
    }

    /// The token of the watch.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.entry.user
    }

    /// The same event with another token, for a program with a table of its own.
    #[must_use]
    pub fn with_token(mut self, token: u64) -> Event {
        self.entry.user = token;
        self
    }

    /// The entry as the kernel stored it.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Why the source cannot deliver any more, if it cannot.
    #[must_use]
    pub fn error(&self) -> Option<io::Error> {
        match self.what() {
            What::Broken { errno, .. } => Some(io::Error::from_raw_os_error(errno)),
            _ => None,
        }
    }

    /// What happened.
    #[must_use]
    pub fn what(&self) -> What {
        let entry = &self.entry;
        let (fd, bits) = (entry.id[0] as RawFd, entry.ret_data[0]);
        if entry.ret_flags & abi::RET_BROKEN != 0 {
            let errno = (entry.ret_data[1] as i32).wrapping_neg();
            return What::Broken { kind: entry.kind, errno };
        }
        match entry.kind {
            abi::SOCKET => {
                let amount = entry.ret_data[1];
                What::Socket { fd, ready: Ready::from_bits(bits), amount }
            }
            abi::PIPE => What::Pipe { fd, ready: Ready::from_bits(bits) },
            abi::POLL => What::Poll { fd, ready: Poll::from_bits(bits) },
            abi::INODE => What::Inode { fd, changes: Changes::from_bits(bits) },
            abi::TIMER => What::Timer { expirations: entry.data_u64() },
            abi::POSIX_TIMER => {
                What::PosixTimer { id: entry.id[0] as i32, overrun: entry.data_u64() }
            }
            abi::SIGNAL => self.signal(),
            abi::PROC => self.exit(),
            abi::FUTEX => What::Futex { address: entry.id_u64() as usize },
            abi::USER => self.user(),
            kind => What::Other { kind },
        }
    }

    fn signal(&self) -> What {
        let id = self.entry.id_u64();
        What::Signal {
            number: id as u32 as i32,
            sender: (id >> 32) as u32 & 0x7fff_ffff,
            code: self.entry.ret_data[0] as i32,
            value: self.entry.ret_data[1] as i32,
            consumed: id & abi::SIGNAL_NOMASK != 0,
        }
    }

    fn exit(&self) -> What {
        let [status, known] = self.entry.ret_data;
        let status = ExitStatus::from_raw(status as i32);
        let status = Some(status).filter(|_| known & abi::PROC_STATUS != 0);
        What::Exit { pid: self.entry.id[0], status }
    }

    fn user(&self) -> What {
        let (entry, id) = (&self.entry, self.entry.id_u64());
        if entry.req_flags & abi::REQ_KEEP_EACH != 0 {
            return What::Message { id, bits: entry.event, data: entry.data_u64() };
        }
        What::Marks { id, bits: entry.ret_data[0], marks: entry.ret_data[1] }
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("token", &self.token())
            .field("what", &self.what())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, change: impl FnOnce(&mut Entry)) -> Event {
        let mut entry = Entry { kind, id: [5, 0], user: 9, ..Entry::default() };
        change(&mut entry);
        Event::new(entry)
    }

    #[test]
    fn a_socket_has_conditions_and_an_amount() {
        let what = event(abi::SOCKET, |e| e.ret_data = [0x2001, 77]).what();
        let ready = Ready::RECV | Ready::RDHUP;
        assert_eq!(what, What::Socket { fd: 5, ready, amount: 77 });
    }

    #[test]
    fn files_have_conditions() {
        let e = event(abi::PIPE, |e| e.ret_data = [0x14, 0]);
        assert_eq!(e.what(), What::Pipe { fd: 5, ready: Ready::SEND | Ready::HUP });
        let e = event(abi::POLL, |e| e.ret_data = [0x11, 0]);
        assert_eq!(e.what(), What::Poll { fd: 5, ready: Poll::IN | Poll::HUP });
        let e = event(abi::INODE, |e| e.ret_data = [6, 0]);
        let changes = Changes::REMOVE | Changes::MODIFY;
        assert_eq!(e.what(), What::Inode { fd: 5, changes });
    }

    #[test]
    fn the_low_word_of_a_number_comes_first() {
        let e = event(abi::TIMER, |e| e.ret_data = [2, 1]);
        assert_eq!(e.what(), What::Timer { expirations: (1 << 32) + 2 });
        let e = event(abi::POSIX_TIMER, |e| e.ret_data = [2, 1]);
        assert_eq!(e.what(), What::PosixTimer { id: 5, overrun: (1 << 32) + 2 });
    }

    #[test]
    fn a_signal_has_a_sender_and_says_who_consumed_it() {
        let e = event(abi::SIGNAL, |e| {
            e.set_id_u64(1 << 63 | 1234 << 32 | 15);
            e.ret_data = [-1_i32 as u32, -2_i32 as u32];
        });
        let expected = What::Signal {
            number: 15,
            sender: 1234,
            code: -1,
            value: -2,
            consumed: true,
        };
        assert_eq!(e.what(), expected);
    }

    #[test]
    fn an_exit_status_may_be_unknown() {
        let e = event(abi::PROC, |e| e.ret_data = [3 << 8, 1]);
        let status = match e.what() {
            What::Exit { pid: 5, status: Some(status) } => status,
            other => panic!("{:?}", other),
        };
        assert_eq!(status.code(), Some(3));
        let e = event(abi::PROC, |e| e.ret_data = [0, 0]);
        assert_eq!(e.what(), What::Exit { pid: 5, status: None });
    }

    #[test]
    fn marks_merge_and_messages_do_not() {
        let e = event(abi::USER, |e| e.ret_data = [3, 2]);
        assert_eq!(e.what(), What::Marks { id: 5, bits: 3, marks: 2 });
        let e = event(abi::USER, |e| {
            e.req_flags = abi::REQ_KEEP_EACH;
            e.event = 4;
            e.ret_data = [3, 2];
        });
        assert_eq!(e.what(), What::Message { id: 5, bits: 4, data: (2 << 32) + 3 });
    }

    #[test]
    fn a_broken_source_has_an_errno() {
        let e = event(abi::TIMER, |e| {
            e.ret_flags = abi::RET_BROKEN;
            e.ret_data = [0, -125_i32 as u32];
        });
        assert_eq!(e.what(), What::Broken { kind: abi::TIMER, errno: 125 });
        assert_eq!(e.error().and_then(|error| error.raw_os_error()), Some(125));
    }

    #[test]
    fn an_unknown_type_is_no_error_and_has_a_token() {
        assert_eq!(event(77, |_| ()).what(), What::Other { kind: 77 });
        assert_eq!(event(77, |_| ()).token(), 9);
        assert_eq!(event(77, |_| ()).with_token(8).token(), 8);
    }
}
