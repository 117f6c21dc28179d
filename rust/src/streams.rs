// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Bytes of Unix sockets through memory: kevent_stream(3).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::os::raw::c_int;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::abi::{Entry, Timespec};
use crate::calls::LibraryQueue;
use crate::handles::Handles;
use crate::ring::RingMemory;

/// Of the ring, and events of one call
const SIZE: u32 = 64;
const OFFER: u32 = 0x1;
const LOOKS_LEARNED: u32 = u32::MAX;
const SENDS_AND_RECEIVES: c_int = 0x3;
const EAGAIN: isize = 11;
const MAX_BUFFERS: usize = 1024;

/// `struct kevent_streams`.
#[repr(C)]
struct RawSet([u8; 0]);

/// `struct kevent_stream`.
#[repr(C)]
struct RawStream([u8; 0]);

extern "C" {
    fn kevent_queue_init(
        queue: *mut LibraryQueue,
        ring: usize,
        slots: u32,
        flags: u32,
    ) -> c_int;
    fn kevent_queue_close(queue: &mut LibraryQueue);
    fn kevent_streams_new(
        set: *mut Option<NonNull<RawSet>>,
        queue: *mut LibraryQueue,
        looks: u32,
    ) -> c_int;
    fn kevent_streams_free(set: NonNull<RawSet>);
    fn kevent_streams_next(set: NonNull<RawSet>) -> Option<NonNull<RawStream>>;
    fn kevent_streams_look(set: NonNull<RawSet>, timeout: Option<&Timespec>) -> c_int;
    fn kevent_streams_arm(set: NonNull<RawSet>) -> c_int;
    fn kevent_streams_get(
        set: NonNull<RawSet>,
        events: *mut Entry,
        max: u32,
        timeout: Option<&Timespec>,
    ) -> c_int;
    fn kevent_stream_open(
        set: NonNull<RawSet>,
        socket: c_int,
        flags: u32,
        user: u64,
        stream: *mut Option<NonNull<RawStream>>,
    ) -> c_int;
    fn kevent_stream_close(stream: NonNull<RawStream>);
    fn kevent_stream_read(stream: NonNull<RawStream>, to: *mut u8, size: usize) -> isize;
    fn kevent_stream_peek(stream: NonNull<RawStream>, to: *mut u8, size: usize) -> isize;
    fn kevent_stream_write(
        stream: NonNull<RawStream>,
        from: *const u8,
        size: usize,
    ) -> isize;
    fn kevent_stream_writev(
        stream: NonNull<RawStream>,
        from: *const IoSlice<'_>,
        nr: u32,
    ) -> isize;
    fn kevent_stream_shutdown(stream: NonNull<RawStream>) -> c_int;
    fn kevent_stream_event(stream: NonNull<RawStream>, event: &Entry) -> c_int;
    fn kevent_stream_leave(stream: NonNull<RawStream>) -> c_int;
    fn kevent_stream_join(stream: NonNull<RawStream>, sent: u64, received: u64) -> c_int;
    fn kevent_stream_fd(stream: NonNull<RawStream>) -> c_int;
    fn kevent_stream_user(stream: NonNull<RawStream>) -> u64;
    fn kevent_stream_memory(stream: NonNull<RawStream>) -> c_int;
}

fn said(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| crate::error(-result as i32))
}

fn timespec(left: Duration) -> Timespec {
    Timespec {
        sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        nsec: i64::from(left.subsec_nanos()),
    }
}

/// A queue whose address the library keeps. It is no Box, because the compiler may assume that
/// nobody else has the address of what is in one.
struct KeptQueue(NonNull<LibraryQueue>);

impl KeptQueue {
    fn fd(&self) -> RawFd {
        // SAFETY: the queue is there, and nobody changes it meanwhile.
        unsafe { self.0.as_ref() }.fd()
    }
}

impl Drop for KeptQueue {
    fn drop(&mut self) {
        // SAFETY: it was a Box, and the set that has its address was freed before.
        unsafe { kevent_queue_close(&mut Box::from_raw(self.0.as_ptr())) }
    }
}

/// A set with its queue. The functions of a set are for one thread at a time: the `Rc` around
/// it keeps it and its streams in the thread that made it.
struct Set {
    raw: NonNull<RawSet>,
    queue: KeptQueue,
    _ring: RingMemory,
    streams: RefCell<Handles<Open>>,
    round: Cell<u64>,
}

/// A stream of a set, and the last round of [`Set::take`] that it came in.
struct Open {
    raw: NonNull<RawStream>,
    token: u64,
    round: u64,
}

impl Drop for Set {
    fn drop(&mut self) {
        // SAFETY: nobody has a stream of the set any more, each has a reference to it.
        unsafe { kevent_streams_free(self.raw) }
    }
}

impl Set {
    /// Adds the tokens of streams with something to do.
    fn take(&self, ready: &mut Vec<u64>) {
        // SAFETY: the set is open.
        self.take_of(|| unsafe { kevent_streams_next(self.raw) }, ready);
    }

    /// Ends with a stream that comes again, because one comes for ever if its peer writes all
    /// the time. The others come in the next round.
    fn take_of(
        &self,
        mut next: impl FnMut() -> Option<NonNull<RawStream>>,
        ready: &mut Vec<u64>,
    ) {
        let round = self.round.get() + 1;
        self.round.set(round);
        let mut streams = self.streams.borrow_mut();
        while let Some(stream) = next() {
            // SAFETY: the library has just returned a stream that is open.
            let number = unsafe { kevent_stream_user(stream) };
            match streams.get_mut(number) {
                Some(open) if open.round < round => {
                    open.round = round;
                    ready.push(open.token);
                }
                _ => break,
            }
        }
    }

    fn see(&self, event: &Entry) {
        let stream = self.streams.borrow().get(event.user).map(|open| open.raw);
        if let Some(stream) = stream {
            // SAFETY: the stream is open, and the event is one of the set's queue.
            unsafe { kevent_stream_event(stream, event) };
        }
    }
}

/// A set of [`Stream`]s, with a queue of its own. One thread uses a set and its streams; a
/// server with several threads has a set for each.
///
/// After fork() the child has no use of a set: its calls fail with `EXDEV`.
///
/// ```
/// use kevent::Streams;
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
///
/// # fn main() -> std::io::Result<()> {
/// let (client, server) = UnixStream::pair()?;
/// let (left, right) = (Streams::new()?, Streams::new()?);
/// let mut client = left.offer(client, 1)?;
/// let mut server = right.open(server, 2)?;
/// client.write_all(b"ping")?;
/// let mut ready = Vec::new();
/// right.wait(&mut ready, None)?;
/// assert_eq!(ready, [2]);
/// let mut buffer = [0; 16];
/// let nr = server.read(&mut buffer)?;
/// assert_eq!(&buffer[..nr], b"ping");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Streams {
    set: Rc<Set>,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = self.set.streams.borrow().len();
        f.debug_struct("Streams").field("streams", &streams).finish()
    }
}

impl Streams {
    /// A set that polls for a while before it sleeps, for as long as that has paid lately.
    ///
    /// # Errors
    ///
    /// Those of a queue: [`Options::open`](crate::Options::open).
    pub fn new() -> io::Result<Streams> {
        Streams::with(LOOKS_LEARNED)
    }

    /// A set that sleeps at once.
    ///
    /// # Errors
    ///
    /// As of [`Streams::new`].
    pub fn without_polling() -> io::Result<Streams> {
        Streams::with(0)
    }

    fn with(looks: u32) -> io::Result<Streams> {
        let ring = RingMemory::new(SIZE)?;
        let mut queue = Box::<LibraryQueue>::default();
        // SAFETY: the ring has that many slots, and its addresses stay reserved.
        said(unsafe { kevent_queue_init(&mut *queue, ring.address(), SIZE, 0) } as isize)?;
        let queue = KeptQueue(NonNull::from(Box::leak(queue)));
        let mut raw = None;
        // SAFETY: the queue stays in its place until the set is freed.
        let made = unsafe { kevent_streams_new(&mut raw, queue.0.as_ptr(), looks) };
        match raw.filter(|_| made == 0) {
            Some(raw) => {
                let (streams, round) = (RefCell::default(), Cell::new(0));
                let set = Set { raw, queue, _ring: ring, streams, round };
                Ok(Streams { set: Rc::new(set) })
            }
            None => Err(crate::error(-made)),
        }
    }

    fn add(&self, socket: UnixStream, flags: u32, token: u64) -> io::Result<Stream> {
        let set = self.set.clone();
        let open = Open { raw: NonNull::dangling(), token, round: 0 };
        let number = set.streams.borrow_mut().insert(open);
        let mut raw = None;
        // SAFETY: the set is open, and the socket is ours.
        let made = unsafe {
            kevent_stream_open(set.raw, socket.as_raw_fd(), flags, number, &mut raw)
        };
        match raw.filter(|_| made == 0) {
            Some(raw) => {
                let _ = socket.into_raw_fd();
                set.streams.borrow_mut().get_mut(number).expect("just inserted").raw =
                    raw;
                Ok(Stream { raw, number, set })
            }
            None => {
                set.streams.borrow_mut().remove(number);
                Err(crate::error(-made))
            }
        }
    }

    /// Makes a stream of a socket of the side that has accepted it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the socket is no stream socket, `EXDEV`, `ENOMEM`, and those of
    /// [`Queue::add`](crate::Queue::add). The socket is closed then.
    pub fn open(&self, socket: UnixStream, token: u64) -> io::Result<Stream> {
        self.add(socket, 0, token)
    }

    /// The same for the side that has connected: its first bytes carry the memory.
    ///
    /// # Errors
    ///
    /// As of [`Streams::open`].
    pub fn offer(&self, socket: UnixStream, token: u64) -> io::Result<Stream> {
        self.add(socket, OFFER, token)
    }

    /// Waits until streams have something to do, and adds their tokens to `ready`: bytes, room
    /// after [`io::ErrorKind::WouldBlock`], or an end. Read each until `WouldBlock`, and write
    /// what had no room. Nothing is added after the timeout, or if what has come is for none.
    ///
    /// # Errors
    ///
    /// `EXDEV`, and those of [`Queue::get`](crate::Queue::get).
    pub fn wait(
        &self,
        ready: &mut Vec<u64>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let before = ready.len();
        // After u64::MAX seconds is never.
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.set.take(ready);
        if ready.len() > before {
            return Ok(());
        }
        let left =
            until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let mut events = [Entry::default(); SIZE as usize];
        // SAFETY: there is room for so many events.
        let nr = said(unsafe {
            kevent_streams_get(self.set.raw, events.as_mut_ptr(), SIZE, left.as_ref())
        } as isize)?;
        events[..nr].iter().for_each(|event| self.set.see(event));
        self.set.take(ready);
        Ok(())
    }

    /// For another event loop that watches the descriptor of the set, before its wait: polls
    /// as [`Streams::wait`] does, and says to the peers that this side will sleep. False: do
    /// not, streams have something to do. After its wait the loop calls [`Streams::wait`] with
    /// a timeout of zero.
    ///
    /// # Errors
    ///
    /// `EXDEV`.
    pub fn arm(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let left = timeout.map(timespec);
        // SAFETY: the set is open.
        let found =
            said(unsafe { kevent_streams_look(self.set.raw, left.as_ref()) } as isize)?;
        if found > 0 {
            return Ok(false);
        }
        // SAFETY: likewise.
        Ok(said(unsafe { kevent_streams_arm(self.set.raw) } as isize)? == 0)
    }
}

impl AsFd for Streams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the set.
        unsafe { BorrowedFd::borrow_raw(self.set.queue.fd()) }
    }
}

impl AsRawFd for Streams {
    fn as_raw_fd(&self) -> RawFd {
        self.set.queue.fd()
    }
}

/// A stream of [`Streams::open`]. No method waits: without bytes or room the error is
/// [`io::ErrorKind::WouldBlock`]. The peer reads all, and then the end, when it is dropped.
pub struct Stream {
    raw: NonNull<RawStream>,
    number: u64,
    set: Rc<Set>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("fd", &self.as_raw_fd()).finish()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.set.streams.borrow_mut().remove(self.number);
        // SAFETY: nobody else has it.
        unsafe { kevent_stream_close(self.raw) }
    }
}

impl Stream {
    /// Reads bytes that stay.
    ///
    /// # Errors
    ///
    /// As of [`Read::read`].
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer has so many bytes.
        said(unsafe { kevent_stream_peek(self.raw, buffer.as_mut_ptr(), buffer.len()) })
    }

    /// Ends the direction of this side.
    ///
    /// # Errors
    ///
    /// `EPROTO` if the peer has broken the stream, `EXDEV`.
    pub fn shutdown(&self) -> io::Result<()> {
        // SAFETY: the stream is open.
        said(unsafe { kevent_stream_shutdown(self.raw) } as isize).map(drop)
    }

    /// Goes back to the socket, which the program may use then. False: not yet; read, and call
    /// again when [`Streams::wait`] has the stream.
    ///
    /// # Errors
    ///
    /// As of [`Stream::shutdown`], and `EPIPE` if the peer has gone before it has left the memory.
    pub fn leave(&self) -> io::Result<bool> {
        // SAFETY: the stream is open.
        match unsafe { kevent_stream_leave(self.raw) } as isize {
            result if result == -EAGAIN => Ok(false),
            result => said(result).map(|_| true),
        }
    }

    /// Uses memory again, after so many bytes that the program has passed itself.
    ///
    /// # Errors
    ///
    /// `EPIPE` after [`Stream::shutdown`]; `EAGAIN` if the stream was not left yet; and as there.
    pub fn join(&self, sent: u64, received: u64) -> io::Result<()> {
        // SAFETY: the stream is open.
        said(unsafe { kevent_stream_join(self.raw, sent, received) } as isize).map(drop)
    }

    /// Do both directions go through memory?
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        // SAFETY: the stream is open.
        unsafe { kevent_stream_memory(self.raw) == SENDS_AND_RECEIVES }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer has so many bytes.
        said(unsafe { kevent_stream_read(self.raw, buffer.as_mut_ptr(), buffer.len()) })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: there are so many bytes.
        said(unsafe { kevent_stream_write(self.raw, bytes.as_ptr(), bytes.len()) })
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let nr = buffers.len().min(MAX_BUFFERS);
        // SAFETY: an IoSlice is laid out as a struct iovec, and there are so many.
        said(unsafe { kevent_stream_writev(self.raw, buffers.as_ptr(), nr as u32) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as the stream.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: the stream is open.
        unsafe { kevent_stream_fd(self.raw) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_goes_on_writing_does_not_hold_a_wait() -> io::Result<()> {
        let set = Streams::new()?;
        let (one, other) = UnixStream::pair()?;
        let streams = [set.open(one, 7)?, set.open(other, 7)?];
        for _ in 0..2 {
            let (mut calls, mut ready) = (0, vec![]);
            let next = || {
                calls += 1;
                assert!(calls < 10);
                Some(streams[usize::from(calls > 1)].raw)
            };
            set.set.take_of(next, &mut ready);
            assert_eq!(ready, [7, 7]);
        }
        Ok(())
    }
}
