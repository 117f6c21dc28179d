// SPDX-License-Identifier: GPL-2.0
//! What users of mio may rely on when they change what is registered.
//!
//! Each socket gets its data from this process, so a queue has the event in its ring
//! before the call that follows.

use mio::net::{TcpStream, UnixStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::io::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

fn tokens(poll: &mut Poll, timeout: Duration) -> Vec<Token> {
    let mut events = Events::with_capacity(8);
    poll.poll(&mut events, Some(timeout)).unwrap();
    events.iter().map(|event| event.token()).collect()
}

/// A socket that is registered and has data, and its peer.
fn with_data(poll: &Poll, token: usize) -> (UnixStream, UnixStream) {
    let (mut socket, mut peer) = UnixStream::pair().unwrap();
    poll.registry()
        .register(&mut socket, Token(token), Interest::READABLE)
        .unwrap();
    peer.write_all(b"x").unwrap();
    (socket, peer)
}

#[test]
fn a_source_that_is_deregistered_has_no_event() {
    let mut poll = Poll::new().unwrap();
    let (mut gone, _peer) = with_data(&poll, 7);
    let (_socket, _peer) = with_data(&poll, 8);
    poll.registry().deregister(&mut gone).unwrap();
    assert_eq!(tokens(&mut poll, Duration::ZERO), [Token(8)]);
}

#[test]
fn a_wait_goes_on_after_an_event_of_a_source_that_is_gone() {
    let mut poll = Poll::new().unwrap();
    let (mut gone, _peer) = with_data(&poll, 7);
    poll.registry().deregister(&mut gone).unwrap();
    let begin = Instant::now();
    assert_eq!(tokens(&mut poll, Duration::from_millis(50)), []);
    assert!(begin.elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_source_that_is_reregistered_has_its_new_token_only() {
    let mut poll = Poll::new().unwrap();
    let (mut socket, _peer) = with_data(&poll, 1);
    poll.registry()
        .reregister(&mut socket, Token(2), Interest::READABLE)
        .unwrap();
    assert_eq!(tokens(&mut poll, Duration::ZERO), [Token(2)]);
}

#[test]
fn a_file_that_is_reregistered_has_its_new_token_only() {
    let mut poll = Poll::new().unwrap();
    let registry = poll.registry().try_clone().unwrap();
    let (mut sender, mut receiver) = mio::unix::pipe::new().unwrap();
    let number = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
    assert!(number >= 0);
    let mut counter = unsafe { File::from_raw_fd(number) };
    let error = registry
        .reregister(&mut SourceFd(&number), Token(1), Interest::READABLE)
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    registry.register(&mut receiver, Token(1), Interest::READABLE).unwrap();
    registry
        .register(&mut SourceFd(&number), Token(2), Interest::PRIORITY)
        .unwrap();
    registry.reregister(&mut receiver, Token(3), Interest::READABLE).unwrap();
    registry
        .reregister(&mut SourceFd(&number), Token(4), Interest::READABLE)
        .unwrap();
    sender.write_all(b"x").unwrap();
    assert_eq!(tokens(&mut poll, Duration::from_secs(20)), [Token(3)]);
    counter.write_all(&1u64.to_ne_bytes()).unwrap();
    assert_eq!(tokens(&mut poll, Duration::from_secs(20)), [Token(4)]);
}

#[test]
fn a_new_file_has_no_event_of_the_one_that_had_its_number() {
    let mut poll = Poll::new().unwrap();
    let (old, _peer) = with_data(&poll, 1);
    let (other, _peer_of_other) = UnixStream::pair().unwrap();
    let number = unsafe { libc::dup2(other.as_raw_fd(), old.as_raw_fd()) };
    assert_eq!(number, old.as_raw_fd());
    poll.registry()
        .register(&mut SourceFd(&number), Token(1), Interest::READABLE)
        .unwrap();
    assert_eq!(tokens(&mut poll, Duration::ZERO), []);
}

#[test]
fn a_socket_gets_and_loses_its_interest_in_priority_data() {
    let mut poll = Poll::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut socket = TcpStream::from_std(socket);
    let registry = poll.registry().try_clone().unwrap();
    let error = registry
        .reregister(&mut socket, Token(1), Interest::PRIORITY)
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    registry.register(&mut socket, Token(1), Interest::READABLE).unwrap();
    registry.reregister(&mut socket, Token(2), Interest::PRIORITY).unwrap();
    let sent = unsafe { libc::send(peer.as_raw_fd(), b"x".as_ptr().cast(), 1, libc::MSG_OOB) };
    assert_eq!(sent, 1);
    assert_eq!(tokens(&mut poll, Duration::from_secs(20)), [Token(2)]);
    registry.reregister(&mut socket, Token(3), Interest::READABLE).unwrap();
    tokens(&mut poll, Duration::ZERO);
    peer.write_all(b"y").unwrap();
    assert_eq!(tokens(&mut poll, Duration::from_secs(20)), [Token(3)]);
    registry.deregister(&mut socket).unwrap();
    assert!(registry.deregister(&mut socket).is_err());
}

#[test]
fn a_socket_is_registered_once_whatever_its_interests() {
    const BOTH: Interest = Interest::READABLE.add(Interest::PRIORITY);
    let mut poll = Poll::new().unwrap();
    let registry = poll.registry().try_clone().unwrap();
    for (first, second) in [(BOTH, Interest::READABLE), (Interest::READABLE, BOTH)] {
        let (mut socket, mut peer) = UnixStream::pair().unwrap();
        registry.register(&mut SourceFd(&socket.as_raw_fd()), Token(1), first).unwrap();
        let error = registry
            .register(&mut SourceFd(&socket.as_raw_fd()), Token(2), second)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        peer.write_all(b"x").unwrap();
        assert_eq!(tokens(&mut poll, Duration::from_secs(20)), [Token(1)]);
        registry.deregister(&mut SourceFd(&socket.as_raw_fd())).unwrap();
        // A watch that was left would have EEXIST
        registry.register(&mut socket, Token(3), Interest::READABLE).unwrap();
        assert_eq!(tokens(&mut poll, Duration::from_secs(20)), [Token(3)]);
        registry.deregister(&mut socket).unwrap();
    }
}
