// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Streams: what of their behaviour is the crate's. The library has tests of its own.

use super::{errno, in_child, poll, Outcome, PollFd, NOW, SOON};
use kevent::{Stream, Streams};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::io::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

/// Two sides of one stream, in one thread: the tokens are 1 and 2.
fn pair() -> io::Result<((Streams, Stream), (Streams, Stream))> {
    let (left, right) = (Streams::new()?, Streams::without_polling()?);
    let (one, other) = UnixStream::pair()?;
    let (one, other) = (left.offer(one, 1)?, right.open(other, 2)?);
    Ok(((left, one), (right, other)))
}

fn read(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 100];
    let nr = stream.read(&mut buffer)?;
    Ok(buffer[..nr].to_vec())
}

fn nothing(stream: &mut Stream) {
    assert_eq!(read(stream).unwrap_err().kind(), ErrorKind::WouldBlock);
}

fn must_come(streams: &Streams, token: u64) -> io::Result<()> {
    let mut ready = Vec::new();
    while !ready.contains(&token) {
        streams.wait(&mut ready, SOON)?;
    }
    Ok(())
}

/// One byte there and one back: each side knows then that the other one has the memory.
fn settle(one: &mut Stream, other: &mut Stream) -> Outcome {
    for _ in 0..2 {
        one.write_all(b"x")?;
        assert_eq!(read(other)?, b"x");
        other.write_all(b"y")?;
        assert_eq!(read(one)?, b"y");
    }
    nothing(one);
    nothing(other);
    assert!(one.is_in_memory() && other.is_in_memory());
    Ok(())
}

pub fn bytes_go_through_memory() -> Outcome {
    let ((_left, mut one), (_right, mut other)) = pair()?;
    assert!(!one.is_in_memory());
    settle(&mut one, &mut other)?;
    let parts = [IoSlice::new(b"to"), IoSlice::new(b""), IoSlice::new(b"gether")];
    assert_eq!(one.write_vectored(&parts)?, 8);
    let mut buffer = [0; 4];
    assert_eq!(other.peek(&mut buffer)?, 4);
    assert_eq!(&buffer, b"toge");
    assert_eq!(read(&mut other)?, b"together");
    Ok(())
}

pub fn a_peer_without_streams_reads_its_bytes() -> Outcome {
    let streams = Streams::new()?;
    let (one, mut other) = UnixStream::pair()?;
    let mut one = streams.offer(one, 1)?;
    one.write_all(b"bytes")?;
    let mut buffer = [0; 5];
    other.read_exact(&mut buffer)?;
    assert_eq!(&buffer, b"bytes");
    other.write_all(b"more")?;
    must_come(&streams, 1)?;
    assert_eq!(read(&mut one)?, b"more");
    assert!(!one.is_in_memory());
    Ok(())
}

pub fn a_wait_ends_with_bytes() -> Outcome {
    let (one, other) = UnixStream::pair()?;
    let peer = thread::spawn(move || -> io::Result<()> {
        let streams = Streams::new()?;
        let mut stream = streams.open(other, 7)?;
        let mut nr = 0;
        while nr < 1000 {
            must_come(&streams, 7)?;
            while let Ok(bytes) = read(&mut stream) {
                stream.write_all(&bytes)?;
                nr += bytes.len();
            }
        }
        Ok(())
    });
    let streams = Streams::new()?;
    let mut stream = streams.offer(one, 1)?;
    for i in 0..1000 {
        stream.write_all(&[i as u8])?;
        let byte = loop {
            must_come(&streams, 1)?;
            match read(&mut stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                bytes => break bytes?,
            }
        };
        assert_eq!(byte, [i as u8]);
    }
    peer.join().unwrap()?;
    Ok(())
}

pub fn a_wait_ends_with_its_time() -> Outcome {
    let ((left, mut one), (_right, mut other)) = pair()?;
    settle(&mut one, &mut other)?;
    let span = Duration::from_millis(20);
    // What the bytes of settle() have left in the queue ends a wait, too.
    for _ in 0..10 {
        let (mut ready, start) = (Vec::new(), Instant::now());
        left.wait(&mut ready, Some(span))?;
        if start.elapsed() >= span {
            assert!(ready.is_empty());
            return Ok(());
        }
        nothing(&mut one);
    }
    Err("no wait lasts".into())
}

pub fn another_loop_is_woken() -> Outcome {
    let ((left, mut one), (_right, mut other)) = pair()?;
    settle(&mut one, &mut other)?;
    let mut ready = Vec::new();
    while !left.arm(NOW)? {
        left.wait(&mut ready, NOW)?;
    }
    ready.clear();
    other.write_all(b"ring")?;
    let mut fd = PollFd { fd: left.as_raw_fd(), events: 1, revents: 0 };
    // SAFETY: one descriptor.
    assert_eq!(unsafe { poll(&mut fd, 1, 30_000) }, 1);
    left.wait(&mut ready, NOW)?;
    assert_eq!(ready, [1]);
    assert_eq!(read(&mut one)?, b"ring");
    other.write_all(b"again")?;
    assert!(!left.arm(None)?);
    Ok(())
}

pub fn an_end_comes_behind_all_bytes() -> Outcome {
    let ((_left, mut one), (right, mut other)) = pair()?;
    settle(&mut one, &mut other)?;
    one.write_all(b"last")?;
    one.shutdown()?;
    must_come(&right, 2)?;
    assert_eq!(read(&mut other)?, b"last");
    assert_eq!(read(&mut other)?, b"");
    other.write_all(b"answer")?;
    drop(other);
    assert_eq!(read(&mut one)?, b"answer");
    assert_eq!(read(&mut one)?, b"");
    assert_eq!(one.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    Ok(())
}

pub fn a_stream_goes_back_to_its_socket_and_forth() -> Outcome {
    let ((left, mut one), (right, mut other)) = pair()?;
    settle(&mut one, &mut other)?;
    let (mut ready, mut steps) = (Vec::new(), 0);
    while !one.leave()? {
        // Both hear of it by their queues.
        right.wait(&mut ready, NOW)?;
        nothing(&mut other);
        left.wait(&mut ready, NOW)?;
        nothing(&mut one);
        steps += 1;
        assert!(steps < 10);
    }
    assert!(steps > 0 && !one.is_in_memory());
    // SAFETY: the socket of the stream is open, and is not closed here.
    let mut socket = unsafe { UnixStream::from_raw_fd(one.as_raw_fd()) };
    let sent = socket.write_all(b"past it");
    let _ = socket.into_raw_fd();
    sent?;
    assert_eq!(read(&mut other)?, b"past it");
    one.join(7, 0)?;
    settle(&mut one, &mut other)
}

pub fn a_stream_keeps_its_set() -> Outcome {
    let ((left, mut one), (right, mut other)) = pair()?;
    drop((left, right));
    settle(&mut one, &mut other)
}

pub fn a_child_has_no_streams() -> Outcome {
    let ((left, mut one), (_right, mut other)) = pair()?;
    settle(&mut one, &mut other)?;
    let status = in_child(|| {
        let refused = |result: io::Result<()>| errno(result) == Some(18);
        i32::from(
            !(refused(one.peek(&mut [0]).map(drop))
                && refused(one.shutdown())
                && refused(one.leave().map(drop))
                && refused(left.arm(None).map(drop))),
        )
    });
    assert_eq!(status, 0);
    settle(&mut one, &mut other)
}

pub fn a_refused_socket_is_closed() -> Outcome {
    let streams = Streams::new()?;
    let (datagrams, peer) = UnixDatagram::pair()?;
    // SAFETY: the descriptor is open, and of nobody else.
    let socket = unsafe { UnixStream::from_raw_fd(datagrams.into_raw_fd()) };
    assert_eq!(errno(streams.open(socket, 1).map(drop)), Some(22));
    assert_eq!(errno(peer.send(b"x").map(drop)), Some(111));
    Ok(())
}
