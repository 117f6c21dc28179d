// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! A queue and its ring.

use std::io;
use std::mem::size_of;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::abi::{self, Entry, Timespec, WaitArg};
use crate::calls;
use crate::event::Event;
use crate::process::Process;
use crate::ring::RingMemory;
use crate::sys;
use crate::watch::Watch;

const NSEC_PER_SEC: i64 = 1_000_000_000;
/// `KEVENT_INIT_ALL_TYPES` of libkevent.h.
#[cfg(feature = "libkevent")]
const INIT_ALL_TYPES: u32 = 0x2000;

/// A queue of events with a ring in memory of this process.
///
/// Threads share it by reference: any number of them may change watches and take
/// events at once, and each event goes to one of them. The queue is closed when it is
/// dropped.
///
/// After fork() the child cannot take events from the ring, because its copy of the
/// ring has those that the parent will take: each call that would do so is an error
/// with `EXDEV`. [`Queue::get_past_ring`] works, but on epoll.
///
/// ```
/// use kevent::{Event, Queue, Ready, Watch, What};
/// use std::io::Write;
/// use std::os::unix::net::UnixStream;
///
/// # fn main() -> std::io::Result<()> {
/// # if kevent::supported().is_err() { return Ok(()); }
/// let queue = Queue::new(64)?;
/// let (socket, mut peer) = UnixStream::pair()?;
/// socket.set_nonblocking(true)?;
/// queue.add(&Watch::socket(&socket, Ready::RECV).token(1))?;
/// peer.write_all(b"x")?;
/// let mut events: Vec<Event> = Vec::with_capacity(16);
/// queue.get(&mut events, None)?;
/// assert_eq!(events[0].token(), 1);
/// assert!(matches!(events[0].what(), What::Socket { ready: Ready::RECV, .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Queue {
    // Closed before the ring's memory goes away: fields are dropped in this order
    fd: calls::Descriptor,
    ring: RingMemory,
    process: Process,
    /// How far the ring was read at the last call. Threads may lose one another's
    /// store: a call comes later or sooner then
    entered: AtomicU64,
}

/// How to open a queue.
///
/// ```
/// use kevent::{abi, Options};
///
/// # fn main() -> std::io::Result<()> {
/// # if kevent::supported().is_err() { return Ok(()); }
/// let queue = Options::new(64).refuse(abi::SIGNAL).refuse_later().open()?;
/// let error = queue.add(&kevent::Watch::signal(10)).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Options {
    slots: u32,
    flags: u32,
}

impl Options {
    /// A ring with this number of slots, a power of two from 2 to 2^20. A ring of
    /// twice the number of watches is rarely full, and loses nothing when it is.
    pub fn new(slots: u32) -> Options {
        Options { slots, flags: 0 }
    }

    fn with(mut self, flags: u32) -> Options {
        self.flags |= flags;
        self
    }

    /// Keeps the descriptor open in programs that this process executes.
    pub fn keep_at_exec(self) -> Options {
        self.with(abi::INIT_NOCLOEXEC)
    }

    /// Wakes the thread that sleeps longest, and not the one that slept last.
    pub fn fair(self) -> Options {
        self.with(abi::INIT_FAIR)
    }

    /// Refuses all requests of a type with `EPERM`: [`abi::SIGNAL`] and its like.
    ///
    /// # Panics
    ///
    /// When it is no type of [`abi`].
    pub fn refuse(self, kind: u32) -> Options {
        assert!(kind <= abi::FUTEX, "no type {}", kind);
        self.with(0x10000 << kind)
    }

    /// Refuses all types but these. Where the kernel or its module lacks one of them, the queue
    /// is one of epoll.
    ///
    /// # Errors
    ///
    /// [`Options::open`] fails with `EOPNOTSUPP` when epoll lacks one, too.
    ///
    /// # Panics
    ///
    /// When one is no type of [`abi`].
    #[cfg(feature = "libkevent")]
    pub fn only(self, kinds: &[u32]) -> Options {
        assert!(kinds.iter().all(|&kind| kind <= abi::FUTEX), "no types {:?}", kinds);
        let others = (0..=abi::FUTEX).filter(|kind| !kinds.contains(kind));
        others.fold(self.refuse_later().with(INIT_ALL_TYPES), Options::refuse)
    }

    /// Refuses the types that later kernels may have.
    pub fn refuse_later(self) -> Options {
        self.with(abi::INIT_REFUSE_LATER)
    }

    /// Refuses to modify and remove watches.
    pub fn refuse_changes(self) -> Options {
        self.with(abi::INIT_REFUSE_CHANGE)
    }

    /// Refuses marks, [`Queue::wake`] and [`Queue::wake_all`]: each event comes from its source.
    pub fn refuse_marks(self) -> Options {
        self.with(abi::INIT_REFUSE_READY)
    }

    /// Opens the queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a bad number of slots; `EMFILE`, `ENFILE` and `ENOMEM`. Without epoll, which
    /// the feature `libkevent` has: `ENOSYS` when the kernel has no kevent, nor a module;
    /// `EPERM` when the sysctl kernel.kevent_disabled or a filter forbids it; `EACCES` when the
    /// device of the module may not be opened.
    pub fn open(self) -> io::Result<Queue> {
        let ring = RingMemory::new(self.slots)?;
        let process = Process::current()?;
        let fd = calls::init(ring.address(), self.slots, self.flags)?;
        Ok(Queue { fd, ring, process, entered: AtomicU64::new(0) })
    }
}

/// Finds out whether there are queues here, as [`Options::open`] would make one: looks for the
/// sysctl kernel.kevent_disabled and for /dev/kevent, the device of the module. A program that
/// hides /proc or /dev from itself, or gives up its right to open the device, calls this
/// before.
///
/// # Errors
///
/// As of [`Options::open`].
pub fn supported() -> io::Result<()> {
    calls::init(0, 0, 0).map(drop)
}

/// The end of a wait that begins now.
fn deadline(timeout: Duration) -> Timespec {
    let now = sys::monotonic();
    let mut sec = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    let mut nsec = now.nsec + i64::from(timeout.subsec_nanos());
    if nsec >= NSEC_PER_SEC {
        nsec -= NSEC_PER_SEC;
        sec = sec.saturating_add(1);
    }
    Timespec { sec: sec.saturating_add(now.sec), nsec }
}

impl Queue {
    /// Opens a queue with this number of slots, see [`Options`].
    ///
    /// # Errors
    ///
    /// As of [`Options::open`].
    pub fn new(slots: u32) -> io::Result<Queue> {
        Options::new(slots).open()
    }

    /// Makes a request; returns the entry and what the kernel returned.
    fn control(&self, command: u32, watch: &Watch<'_>) -> io::Result<(Entry, usize)> {
        let mut entry = watch.entry;
        entry.ret_flags = 0;
        let address = &mut entry as *mut Entry as usize;
        // SAFETY: the kernel reads and writes one entry, which is there. It keeps no
        // pointer but the address of a futex word, of which it never writes.
        let nr = unsafe { calls::ctl(self.raw(), command, 1, address)? };
        match Event::new(entry).error() {
            Some(error) => Err(error),
            None => Ok((entry, nr)),
        }
    }

    fn raw(&self) -> RawFd {
        self.fd.as_fd().as_raw_fd()
    }

    /// What makes the queue: `"kevent"` for the kernel, `"module"` for its module, or
    /// `"epoll"` for libkevent. `KEVENT_BACKEND` in the environment, `kernel`, `module` or
    /// `epoll`, chooses for all queues of a program.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        calls::backend(self.raw())
    }

    /// Adds a watch. What is ready already is queued like any other event.
    ///
    /// # Errors
    ///
    /// `EEXIST` when the queue has this watch, and those of kevent_ctl(2) and of the manual
    /// page of the type.
    pub fn add(&self, watch: &Watch<'_>) -> io::Result<()> {
        let mut watch = *watch;
        watch.entry.req_flags &= !abi::REQ_HAND_BACK;
        self.control(abi::CTL_ADD, &watch).map(drop)
    }

    /// Adds a watch. If it is ready at once, its event is returned and not queued.
    ///
    /// # Errors
    ///
    /// As of [`Queue::add`].
    pub fn add_now(&self, watch: &Watch<'_>) -> io::Result<Option<Event>> {
        let watch = watch.with(abi::REQ_HAND_BACK);
        let (entry, nr) = self.control(abi::CTL_ADD, &watch)?;
        Ok(Some(Event::new(entry)).filter(|_| nr == 1))
    }

    /// Gives a watch a new interest, token and mode, and arms it.
    ///
    /// # Errors
    ///
    /// `ENOENT` when the queue has no such watch, and those of its source.
    pub fn modify(&self, watch: &Watch<'_>) -> io::Result<()> {
        let mut watch = *watch;
        watch.entry.req_flags &= !abi::REQ_HAND_BACK;
        self.control(abi::CTL_MODIFY, &watch).map(drop)
    }

    /// Removes a watch. Events of it that are in the ring stay there: see
    /// [`Handles`](crate::Handles).
    ///
    /// # Errors
    ///
    /// `ENOENT` when the queue has no such watch.
    pub fn remove(&self, watch: &Watch<'_>) -> io::Result<()> {
        self.control(abi::CTL_REMOVE, watch).map(drop)
    }

    /// Makes a watch ready. One of a file is looked at.
    ///
    /// # Errors
    ///
    /// `ENOENT` when the queue has no such watch, and those of its source.
    pub fn mark_ready(&self, watch: &Watch<'_>) -> io::Result<()> {
        self.control(abi::CTL_READY, watch).map(drop)
    }

    /// Marks a watch of [`Watch::user`] with these bits, 0 for all that it has.
    ///
    /// # Errors
    ///
    /// `ENOENT` when the queue has no such watch, `EINVAL` when it has none of the bits.
    pub fn mark(&self, id: u64, bits: u32) -> io::Result<()> {
        self.mark_ready(&Watch::user(id, bits))
    }

    /// Sends 64 bits of data to the queue, by a watch of [`Watch::messages`].
    ///
    /// # Errors
    ///
    /// As of [`Queue::mark`]; `EAGAIN` when 65536 messages wait; `ENOMEM`; `ENOSPC`.
    pub fn send(&self, id: u64, bits: u32, data: u64) -> io::Result<()> {
        let mut watch = Watch::user(id, bits);
        watch.entry.set_data_u64(data);
        self.mark_ready(&watch)
    }

    /// Makes one thread return from its wait without an event: the one that waits
    /// longest, or the next one that would wait.
    ///
    /// # Errors
    ///
    /// `EPERM` when the queue refuses marks.
    pub fn wake(&self) -> io::Result<()> {
        // SAFETY: without entries the kernel accesses no memory.
        unsafe { calls::ctl(self.raw(), abi::CTL_READY, 0, 0) }.map(drop)
    }

    /// Has each wait of the queue return where it would sleep, from now on: ends a pool
    /// of threads. Those that wait return without an event, and so does each later wait,
    /// in all processes that have the queue. Events that are there come first.
    ///
    /// # Errors
    ///
    /// `EPERM` when the queue refuses marks; `EINVAL` when the kernel does not know it.
    pub fn wake_all(&self) -> io::Result<()> {
        // SAFETY: without entries the kernel accesses no memory.
        unsafe { calls::ctl(self.raw(), abi::CTL_WAKE_ALL, 0, 0) }.map(drop)
    }

    /// Makes changes in order, each on its own, by one system call. Each has its
    /// result afterwards.
    ///
    /// # Errors
    ///
    /// Those of the call; then no change has been made. `EINVAL` for more than 4096.
    pub fn apply(&self, changes: &mut [Change<'_>]) -> io::Result<()> {
        self.check_process()?;
        let mut raw: Vec<abi::Change> = changes.iter().map(|change| change.raw).collect();
        let arg = WaitArg {
            size: size_of::<WaitArg>() as u32,
            clockid: 1,
            changes: raw.as_mut_ptr() as u64,
            nr_changes: u32::try_from(raw.len())
                .map_err(|_| crate::error(crate::EINVAL))?,
            ..WaitArg::default()
        };
        // Claims to be one event behind, so the call does not wait
        let behind = self.ring.kidx().wrapping_sub(1);
        let done = self.enter(behind, Some(&Timespec::default()), Some(&arg));
        for (change, raw) in changes.iter_mut().zip(raw) {
            change.raw = raw;
        }
        done.map(drop)
    }

    /// kevent_wait() up to a point of time.
    fn enter(
        &self,
        seen: u64,
        until: Option<&Timespec>,
        arg: Option<&WaitArg>,
    ) -> io::Result<usize> {
        self.entered.store(self.ring.uidx(), Ordering::Relaxed);
        // SAFETY: the kernel reads the time and the argument, and writes the changes
        // that the argument points to, in a vector of apply(); and the ring.
        unsafe { calls::wait(self.raw(), self.ring.slots(), seen as u32, until, arg) }
    }

    fn check_process(&self) -> io::Result<()> {
        if self.process.is_current() {
            return Ok(());
        }
        Err(crate::error(crate::EXDEV))
    }

    /// Were as many events taken since the last call as the ring has slots?
    fn owes_a_call(&self) -> bool {
        let taken = self.ring.uidx().wrapping_sub(self.entered.load(Ordering::Relaxed));
        taken >= u64::from(self.ring.slots())
    }

    /// Has waiting events moved into the ring, without waiting.
    fn refill(&self) -> io::Result<usize> {
        self.enter(self.ring.kidx().wrapping_sub(1), Some(&Timespec::default()), None)
    }

    /// An entry that is not in the ring yet, without waiting.
    fn fetch(&self) -> Option<Entry> {
        self.entered.store(self.ring.uidx(), Ordering::Relaxed);
        calls::fetch(self.raw(), &self.ring)
    }

    /// Waits until `take` finds something in the ring.
    fn sleep(
        &self,
        until: Option<&Timespec>,
        take: &mut dyn FnMut() -> u32,
    ) -> io::Result<u32> {
        loop {
            // Before the ring is found empty at that position or later, so the
            // kernel never sleeps on an entry nobody has looked at
            let seen = self.ring.kidx();
            let nr = take();
            if nr > 0 || self.enter(seen, until, None)? == 0 {
                return Ok(nr);
            }
        }
    }

    /// The logic of get(), whatever becomes of the entries.
    fn get_by(
        &self,
        timeout: Option<Duration>,
        take: &mut dyn FnMut() -> u32,
    ) -> io::Result<u32> {
        self.check_process()?;
        let nr = take();
        if nr > 0 {
            if self.owes_a_call() {
                // An error here comes back when the ring is empty
                let _ = self.refill();
            }
            return Ok(nr);
        }
        let until = timeout.map(|timeout| match timeout {
            Duration::ZERO => Timespec::default(),
            timeout => deadline(timeout),
        });
        self.sleep(until.as_ref(), take)
    }

    /// Waits for events and takes them: the call for a program's loop.
    ///
    /// Replaces what is in `events`, up to its capacity, or one event if it has none.
    /// Takes what the ring holds without a system call. If the ring is empty, it has
    /// the kernel look at watches and waits; without a timeout, until there is
    /// something. Returns the number of events: 0 after the timeout, [`Queue::wake`] or
    /// [`Queue::wake_all`].
    ///
    /// # Errors
    ///
    /// `EINTR` when a signal handler ran; `EXDEV` in a child of the process that opened
    /// the queue; `EFAULT` when the ring was unmapped.
    pub fn get(
        &self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        events.clear();
        let max = u32::try_from(events.capacity().max(1)).unwrap_or(u32::MAX);
        let taken = self.get_by(timeout, &mut || {
            let nr = self.ring.pop(max, |at, entry| {
                events.truncate(at as usize);
                events.push(Event::new(entry));
            });
            events.truncate(nr as usize);
            nr
        });
        taken.map(|nr| nr as usize)
    }

    /// Waits for one event and takes it; none after the timeout, [`Queue::wake`] or
    /// [`Queue::wake_all`].
    ///
    /// # Errors
    ///
    /// As of [`Queue::get`].
    pub fn next(&self, timeout: Option<Duration>) -> io::Result<Option<Event>> {
        let mut taken = None;
        self.get_by(timeout, &mut || {
            taken = self.ring.pop_one();
            u32::from(taken.is_some())
        })?;
        Ok(taken.map(Event::new))
    }

    /// Takes events without a wait, one at a time: see [`Ring`].
    ///
    /// # Errors
    ///
    /// `EXDEV` in a child of the process that opened the queue.
    pub fn ring(&self) -> io::Result<Ring<'_>> {
        self.check_process()?;
        Ok(Ring { queue: self })
    }

    /// Takes events out of the kernel, past the ring: those in the ring are not
    /// returned. Works in a child, too, and in other processes that have the descriptor, but on
    /// epoll.
    ///
    /// Replaces what is in `events`, up to its capacity, or one event if it has none.
    ///
    /// # Errors
    ///
    /// `EINTR` when a signal handler ran.
    pub fn get_past_ring(
        &self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        events.clear();
        // The kernel refuses buffers of 2 GiB
        let max = events.capacity().clamp(1, 1 << 20);
        let mut buffer = vec![Entry::default(); max];
        let until = timeout.map(deadline);
        let address = buffer.as_mut_ptr() as usize;
        // SAFETY: the kernel reads the time and writes up to max entries, for which
        // there is room.
        let nr = unsafe { calls::get_events(self.raw(), max, until.as_ref(), address)? };
        events.extend(buffer.into_iter().take(nr).map(Event::new));
        Ok(nr)
    }
}

impl AsFd for Queue {
    /// The descriptor, which poll(2) and epoll report as readable while there are
    /// events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.raw()
    }
}

/// A change for [`Queue::apply`].
///
/// ```
/// use kevent::{Change, Queue, Timer, Watch};
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// # if kevent::supported().is_err() { return Ok(()); }
/// let queue = Queue::new(8)?;
/// let timer = Watch::timer(Timer::every(Duration::from_secs(1)), 1);
/// let mut changes = [Change::add(&timer), Change::add(&timer), Change::remove(&timer)];
/// queue.apply(&mut changes)?;
/// assert!(changes[0].result().is_ok() && changes[2].result().is_ok());
/// let error = changes[1].result().unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    raw: abi::Change,
    borrows: std::marker::PhantomData<&'a ()>,
}

impl<'a> Change<'a> {
    fn new(cmd: u32, watch: &Watch<'a>) -> Change<'a> {
        let mut uk = watch.entry;
        uk.req_flags &= !abi::REQ_HAND_BACK;
        let raw = abi::Change { uk, cmd, result: 0 };
        Change { raw, borrows: std::marker::PhantomData }
    }

    /// Adds a watch, as [`Queue::add`].
    #[must_use]
    pub fn add(watch: &Watch<'a>) -> Change<'a> {
        Change::new(abi::CTL_ADD, watch)
    }

    /// Modifies a watch, as [`Queue::modify`].
    #[must_use]
    pub fn modify(watch: &Watch<'a>) -> Change<'a> {
        Change::new(abi::CTL_MODIFY, watch)
    }

    /// Removes a watch, as [`Queue::remove`].
    #[must_use]
    pub fn remove(watch: &Watch<'a>) -> Change<'a> {
        Change::new(abi::CTL_REMOVE, watch)
    }

    /// What became of the change.
    ///
    /// # Errors
    ///
    /// As of the function of [`Queue`] that makes this change.
    pub fn result(&self) -> io::Result<()> {
        match self.raw.result {
            result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
            _ => Ok(()),
        }
    }
}

/// Events of the ring, without a system call unless the ring says that there are more. It always
/// does on epoll, whose events are stored in calls.
///
/// An event is taken before it is returned, with the barrier that "commit before
/// process" in `linux/ukevent.h` asks for. Threads may iterate at once; each event goes
/// to one. In a child of fork() there are none.
///
/// A watch that is not [`edge`](Watch::edge) is looked at again by [`Queue::get`] and
/// [`Queue::next`] only, and an event that another process or an interrupt has made may come
/// by these only.
///
/// ```
/// use kevent::{Queue, Watch, What};
///
/// # fn main() -> std::io::Result<()> {
/// # if kevent::supported().is_err() { return Ok(()); }
/// let queue = Queue::new(64)?;
/// queue.add(&Watch::messages(5, 0))?;
/// for number in 0..3 {
///     queue.send(5, 0, number)?;
/// }
/// queue.next(None)?;
/// let rest: Vec<What> = queue.ring()?.map(|event| event.what()).collect();
/// assert!(matches!(rest[1], What::Message { id: 5, data: 2, .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    queue: &'a Queue,
}

impl Iterator for Ring<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.queue.check_process().ok()?;
        let ring = &self.queue.ring;
        let mut entry = ring.pop_one();
        if entry.is_none() && ring.has_more() {
            entry = self.queue.fetch();
        }
        entry.map(Event::new)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_does_not_overflow() {
        let before = sys::monotonic();
        let soon = deadline(Duration::new(1, 999_999_999));
        assert!((0..NSEC_PER_SEC).contains(&soon.nsec));
        assert!(soon.sec > before.sec);
        assert_eq!(deadline(Duration::MAX).sec, i64::MAX);
    }

    #[test]
    fn a_queue_can_be_shared_and_sent() {
        fn check<T: Send + Sync>() {}
        check::<Queue>();
        check::<Ring<'static>>();
        check::<Event>();
        check::<Watch<'static>>();
    }

    #[test]
    fn refusals_are_the_upper_half() {
        let all = (0..=abi::FUTEX).fold(Options::new(2), Options::refuse);
        let all = all.refuse_later().refuse_changes().refuse_marks();
        assert_eq!(all.flags | abi::INIT_REFUSE_ATTACH, abi::INIT_REFUSE_ALL);
        assert_eq!(Options::new(2).keep_at_exec().fair().flags, 3);
    }
}
