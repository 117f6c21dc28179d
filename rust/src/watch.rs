// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! What a queue watches.

use std::marker::PhantomData;
use std::os::unix::io::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU32;
use std::time::{Duration, SystemTime};

use crate::abi::{self, Entry};
use crate::mask::{Changes, Poll, Ready};

/// A request: what to watch, how, and the token its events carry.
///
/// The same value names the watch in [`Queue::add`], [`Queue::modify`] and
/// [`Queue::remove`]. It borrows the descriptor, or the futex word, so both are
/// there when the kernel looks. The watch itself borrows nothing: the kernel drops it
/// when the descriptor is closed.
///
/// ```
/// use kevent::{Ready, Watch};
/// use std::os::unix::net::UnixStream;
///
/// # fn main() -> std::io::Result<()> {
/// let (socket, _peer) = UnixStream::pair()?;
/// let watch = Watch::socket(&socket, Ready::RECV).edge().token(7);
/// # let _ = watch;
/// # Ok(())
/// # }
/// ```
///
/// A watch does not outlive what it borrows:
///
/// ```compile_fail,E0597
/// use kevent::{Ready, Watch};
/// use std::os::unix::net::UnixStream;
///
/// let watch = {
///     let (socket, _peer) = UnixStream::pair().unwrap();
///     Watch::socket(&socket, Ready::RECV)
/// };
/// let _ = watch.token(1);
/// ```
///
/// [`Queue::add`]: crate::Queue::add
/// [`Queue::modify`]: crate::Queue::modify
/// [`Queue::remove`]: crate::Queue::remove
#[derive(Clone, Copy, Debug)]
#[must_use = "a watch does nothing until Queue::add()"]
pub struct Watch<'a> {
    pub(crate) entry: Entry,
    borrows: PhantomData<&'a ()>,
}

impl<'a> Watch<'a> {
    fn new(kind: u32, id: u64, event: u32) -> Watch<'a> {
        let mut entry = Entry { kind, event, ..Entry::default() };
        entry.set_id_u64(id);
        Watch { entry, borrows: PhantomData }
    }

    fn of_fd(kind: u32, fd: &'a impl AsFd, event: u32) -> Watch<'a> {
        let mut watch = Watch::new(kind, 0, event);
        watch.entry.id[0] = fd.as_fd().as_raw_fd() as u32;
        watch
    }

    /// A socket.
    pub fn socket(fd: &'a impl AsFd, interest: Ready) -> Watch<'a> {
        Watch::of_fd(abi::SOCKET, fd, interest.bits())
    }

    /// An end of a pipe or FIFO: [`Ready::RECV`] or [`Ready::SEND`].
    pub fn pipe(fd: &'a impl AsFd, interest: Ready) -> Watch<'a> {
        Watch::of_fd(abi::PIPE, fd, interest.bits())
    }

    /// Any file, by the conditions of poll(2).
    pub fn poll(fd: &'a impl AsFd, interest: Poll) -> Watch<'a> {
        Watch::of_fd(abi::POLL, fd, interest.bits())
    }

    /// Changes of a regular file or directory that is open for reading.
    pub fn inode(fd: &'a impl AsFd, interest: Changes) -> Watch<'a> {
        Watch::of_fd(abi::INODE, fd, interest.bits())
    }

    /// The exit of the process that a pidfd refers to.
    pub fn pidfd(fd: &'a impl AsFd) -> Watch<'a> {
        Watch::of_fd(abi::PROC, fd, abi::PROC_EXIT | abi::PROC_PIDFD)
    }

    /// A futex word that this process alone uses (`FUTEX_PRIVATE_FLAG`). There is
    /// nothing to report while the word is `expected`.
    ///
    /// The event disarms the watch. [`Queue::modify`](crate::Queue::modify), with the
    /// value that is expected now, arms it again. The module has none of it: `ENOSYS`. On epoll
    /// a wake-up that leaves the word as it is may be lost.
    pub fn futex(word: &'a AtomicU32, expected: u32) -> Watch<'a> {
        let mut watch = Watch::shared_futex(word, expected);
        watch.entry.event |= abi::FUTEX_PRIVATE;
        watch
    }

    /// A futex word in memory that other processes share.
    pub fn shared_futex(word: &'a AtomicU32, expected: u32) -> Watch<'a> {
        let address = word as *const AtomicU32 as usize;
        let mut watch = Watch::new(abi::FUTEX, address as u64, abi::FUTEX_WAKE);
        watch.entry.ret_data[0] = expected;
        watch
    }
}

impl Watch<'static> {
    /// A timer. Its token names it within the queue.
    pub fn timer(timer: Timer, token: u64) -> Watch<'static> {
        let mut watch = Watch::new(abi::TIMER, timer.first, timer.event);
        watch.entry.set_data_u64(timer.interval);
        watch.token(token)
    }

    /// A signal to this process, which is delivered as well. Only the kernel has that:
    /// `EOPNOTSUPP` on the module and on epoll.
    pub fn signal(number: i32) -> Watch<'static> {
        Watch::new(abi::SIGNAL, u64::from(number as u32), abi::SIGNAL_DELIVERY)
    }

    /// A signal to this process: the event takes the place of the delivery.
    pub fn consumed_signal(number: i32) -> Watch<'static> {
        let id = u64::from(number as u32) | abi::SIGNAL_NOMASK;
        Watch::new(abi::SIGNAL, id, abi::SIGNAL_DELIVERY)
    }

    /// The exit of a process.
    pub fn process(pid: u32) -> Watch<'static> {
        let mut watch = Watch::new(abi::PROC, 0, abi::PROC_EXIT);
        watch.entry.id[0] = pid;
        watch
    }

    /// Marks of the program itself, with [`Queue::mark`](crate::Queue::mark). `bits`
    /// are those that may be marked, 0 for any. Marks that are not delivered merge.
    pub fn user(id: u64, bits: u32) -> Watch<'static> {
        Watch::new(abi::USER, id, bits)
    }

    /// As [`Watch::user`], but each mark is an event of its own, with 64 bits of
    /// data: see [`Queue::send`](crate::Queue::send).
    pub fn messages(id: u64, bits: u32) -> Watch<'static> {
        Watch::user(id, bits).with(abi::REQ_KEEP_EACH)
    }
}

impl<'a> Watch<'a> {
    /// The number that each event of the watch carries, 0 unless set. It names a
    /// timer within its queue. See [`Handles`](crate::Handles) for safe names of
    /// objects.
    pub fn token(mut self, token: u64) -> Watch<'a> {
        self.entry.user = token;
        self
    }

    /// One report for each activity, instead of one at each call while the condition
    /// holds. Read until `WouldBlock`.
    pub fn edge(self) -> Watch<'a> {
        self.with(abi::REQ_ET)
    }

    /// Removes the watch with its first event.
    pub fn oneshot(self) -> Watch<'a> {
        self.with(abi::REQ_ONESHOT)
    }

    /// Disarms the watch with each event, until it is modified.
    pub fn dispatch(self) -> Watch<'a> {
        self.with(abi::REQ_DISPATCH)
    }

    /// Reports nothing until the watch is modified.
    pub fn disabled(self) -> Watch<'a> {
        self.with(abi::REQ_DISABLED)
    }

    /// Has the kernel look at the file before each delivery, so no event is stale.
    /// For blocking descriptors.
    pub fn last_check(self) -> Watch<'a> {
        self.with(abi::REQ_LAST_CHECK)
    }

    /// Wakes all threads that wait, not one.
    pub fn wake_all(self) -> Watch<'a> {
        self.with(abi::REQ_WAKEUP_ALL)
    }

    /// Has the watch marked as it is added or modified.
    pub fn ready(self) -> Watch<'a> {
        self.with(abi::REQ_READY)
    }

    /// Keeps the system from being suspended until an event is processed. Needs
    /// CAP_BLOCK_SUSPEND, and is not there on epoll.
    pub fn stay_awake(self) -> Watch<'a> {
        self.with(abi::REQ_STAY_AWAKE)
    }

    /// Sets request flags, `REQ_` in [`abi`].
    pub fn with(mut self, req_flags: u32) -> Watch<'a> {
        self.entry.req_flags |= req_flags;
        self
    }
}

/// The clock of a [`Timer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Runs while the system does; the default.
    Monotonic,
    /// Also runs while the system is suspended.
    Boottime,
    /// The time of day.
    Realtime,
    /// The time of day without leap seconds.
    Tai,
}

/// When a timer expires.
///
/// ```
/// use kevent::{Timer, Watch};
/// use std::time::Duration;
///
/// let tick = Watch::timer(Timer::every(Duration::from_millis(10)), 1);
/// let limit = Watch::timer(Timer::after(Duration::from_secs(5)), 2);
/// # let _ = (tick, limit);
/// ```
///
/// A time of 2^63 nanoseconds or more is an error of [`Queue::add`], `EINVAL`.
///
/// [`Queue::add`]: crate::Queue::add
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Timer {
    first: u64,
    interval: u64,
    event: u32,
}

/// The kernel refuses the largest number.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Timer {
    /// Expires once, after `first`; see [`Timer::then_every`].
    pub fn after(first: Duration) -> Timer {
        let event = abi::TIMER_FIRED | abi::TIMER_INTERVAL;
        Timer { first: nanoseconds(first), interval: 0, event }
    }

    /// Expires every `period`, for the first time after one of them.
    pub fn every(period: Duration) -> Timer {
        Timer::after(period).then_every(period)
    }

    /// Expires once, when the time of day is `time`, or at once if it is past.
    pub fn at(time: SystemTime) -> Timer {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        Timer::at_clock(Clock::Realtime, since.unwrap_or_default())
    }

    /// Expires once, when `clock` shows `time`, or at once if it is past.
    pub fn at_clock(clock: Clock, time: Duration) -> Timer {
        let mut timer = Timer::after(time).on(clock);
        timer.event |= abi::TIMER_ABSTIME;
        timer
    }

    /// Expires again each time `interval` has passed; zero: not again.
    pub fn then_every(mut self, interval: Duration) -> Timer {
        self.interval = nanoseconds(interval);
        self
    }

    /// Counts by this clock.
    pub fn on(mut self, clock: Clock) -> Timer {
        self.event &= !(abi::TIMER_REALTIME | abi::TIMER_BOOTTIME | abi::TIMER_TAI);
        self.event |= match clock {
            Clock::Monotonic => 0,
            Clock::Boottime => abi::TIMER_BOOTTIME,
            Clock::Realtime => abi::TIMER_REALTIME,
            Clock::Tai => abi::TIMER_TAI,
        };
        self
    }

    /// Reports an error, `ECANCELED`, when the clock is set. For [`Timer::at`].
    pub fn cancel_on_set(mut self) -> Timer {
        self.event |= abi::TIMER_CANCEL_ON_SET;
        self
    }
}
