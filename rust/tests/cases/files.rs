// SPDX-License-Identifier: LGPL-2.1 OR MIT
use super::*;
use kevent::{Changes, Poll, Ready, Watch};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::io::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Epoll does not say how much there is.
fn amount(queue: &Queue, amount: u32) -> u32 {
    match queue.backend() {
        "epoll" => 0,
        _ => amount,
    }
}

pub fn a_socket_reports_bytes_to_read() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut peer = TcpStream::connect(listener.local_addr()?)?;
    let (socket, _) = listener.accept()?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::socket(&socket, Ready::RECV).token(3))?;
    nothing(&queue);
    peer.write_all(&[0; 77])?;
    let event = next(&queue)?;
    let fd = socket.as_raw_fd();
    let amount = amount(&queue, 77);
    assert_eq!(event.what(), What::Socket { fd, ready: Ready::RECV, amount });
    assert_eq!(event.token(), 3);
    Ok(())
}

pub fn a_listener_reports_connections() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let queue = Queue::new(8)?;
    let address = listener.local_addr()?;
    let _clients = [TcpStream::connect(address)?, TcpStream::connect(address)?];
    queue.add(&Watch::socket(&listener, Ready::ACCEPT))?;
    let fd = listener.as_raw_fd();
    let amount = amount(&queue, 2);
    assert_eq!(next_what(&queue)?, What::Socket { fd, ready: Ready::ACCEPT, amount });
    Ok(())
}

pub fn a_socket_reports_room_and_hang_up() -> Outcome {
    let (socket, peer) = UnixStream::pair()?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::socket(&socket, Ready::SEND).edge())?;
    let fd = socket.as_raw_fd();
    assert_eq!(next_what(&queue)?, What::Socket { fd, ready: Ready::SEND, amount: 0 });
    drop(peer);
    match next_what(&queue)? {
        What::Socket { ready, .. } if ready.contains(Ready::HUP) => Ok(()),
        what => Err(format!("{:?}", what).into()),
    }
}

/// A socket, and its peer, which has sent a byte.
fn readable() -> io::Result<(UnixStream, UnixStream)> {
    let (socket, mut peer) = UnixStream::pair()?;
    peer.write_all(b"x")?;
    socket.set_nonblocking(true)?;
    Ok((socket, peer))
}

pub fn level_repeats_and_edge_does_not() -> Outcome {
    let (mut socket, mut peer) = readable()?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::socket(&socket, Ready::RECV))?;
    next(&queue)?;
    next(&queue)?;
    queue.modify(&Watch::socket(&socket, Ready::RECV).edge())?;
    next(&queue)?;
    nothing(&queue);
    peer.write_all(b"x")?;
    next(&queue)?;
    nothing(&queue);
    assert_eq!(socket.read(&mut [0; 9])?, 2);
    Ok(())
}

pub fn oneshot_reports_once() -> Outcome {
    let (socket, _peer) = readable()?;
    let queue = Queue::new(8)?;
    let watch = Watch::socket(&socket, Ready::RECV).oneshot();
    queue.add(&watch)?;
    next(&queue)?;
    nothing(&queue);
    assert_eq!(errno(queue.remove(&watch)), Some(2));
    Ok(())
}

pub fn dispatch_reports_again_after_modify() -> Outcome {
    let (socket, _peer) = readable()?;
    let queue = Queue::new(8)?;
    let watch = Watch::socket(&socket, Ready::RECV).dispatch();
    queue.add(&watch)?;
    next(&queue)?;
    nothing(&queue);
    queue.modify(&watch.token(8))?;
    assert_eq!(next(&queue)?.token(), 8);
    nothing(&queue);
    Ok(())
}

pub fn disabled_reports_nothing_until_modify() -> Outcome {
    let (socket, _peer) = readable()?;
    let queue = Queue::new(8)?;
    let watch = Watch::socket(&socket, Ready::RECV);
    queue.add(&watch.disabled())?;
    nothing(&queue);
    queue.modify(&watch)?;
    next(&queue)?;
    Ok(())
}

pub fn last_check_drops_what_is_no_longer_true() -> Outcome {
    let (mut socket, mut peer) = readable()?;
    let queue = Queue::new(8)?;
    assert_eq!(socket.read(&mut [0; 9])?, 1);
    queue.add(&Watch::socket(&socket, Ready::RECV).last_check())?;
    peer.write_all(b"x")?;
    assert_eq!(socket.read(&mut [0; 9])?, 1);
    nothing(&queue);
    Ok(())
}

pub fn ready_at_add_is_handed_back_if_asked_for() -> Outcome {
    let (socket, mut peer) = readable()?;
    let queue = Queue::new(8)?;
    let watch = Watch::socket(&socket, Ready::RECV).edge().token(4);
    let event = queue.add_now(&watch)?.ok_or("no event")?;
    assert_eq!(event.token(), 4);
    assert!(matches!(event.what(), What::Socket { ready: Ready::RECV, .. }));
    nothing(&queue);
    peer.write_all(b"x")?;
    next(&queue)?;
    let (idle, _peer) = UnixStream::pair()?;
    assert_eq!(queue.add_now(&Watch::socket(&idle, Ready::RECV))?, None);
    Ok(())
}

pub fn ready_at_add_is_queued_by_default() -> Outcome {
    let (socket, _peer) = readable()?;
    let queue = Queue::new(8)?;
    // A flag of another call does not stay
    queue.add(
        &Watch::socket(&socket, Ready::RECV).with(kevent::abi::REQ_HAND_BACK).edge(),
    )?;
    next(&queue)?;
    Ok(())
}

fn pipe() -> (File, File) {
    let mut fds = [0_i32; 2];
    // SAFETY: pipe2() writes two descriptors, which are nobody else's.
    let (reader, writer) = unsafe {
        assert_eq!(syscall(PIPE2, fds.as_mut_ptr(), 0o2004000), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    };
    (reader.into(), writer.into())
}

#[cfg(target_arch = "x86_64")]
const PIPE2: i64 = 293;
#[cfg(target_arch = "aarch64")]
const PIPE2: i64 = 59;

pub fn a_pipe_reports_both_ends() -> Outcome {
    let (reader, mut writer) = pipe();
    let queue = Queue::new(8)?;
    queue.add(&Watch::pipe(&reader, Ready::RECV).edge())?;
    queue.add(&Watch::pipe(&writer, Ready::SEND).edge())?;
    let fd = writer.as_raw_fd();
    assert_eq!(next_what(&queue)?, What::Pipe { fd, ready: Ready::SEND });
    writer.write_all(b"x")?;
    let fd = reader.as_raw_fd();
    assert_eq!(next_what(&queue)?, What::Pipe { fd, ready: Ready::RECV });
    Ok(())
}

pub fn poll_takes_any_file() -> Outcome {
    let (reader, mut writer) = pipe();
    let queue = Queue::new(8)?;
    queue.add(&Watch::poll(&reader, Poll::IN).edge())?;
    nothing(&queue);
    writer.write_all(b"x")?;
    let fd = reader.as_raw_fd();
    assert_eq!(next_what(&queue)?, What::Poll { fd, ready: Poll::IN });
    Ok(())
}

pub fn queues_do_not_watch_each_other() -> Outcome {
    let (queue, other) = (Queue::new(8)?, Queue::new(2)?);
    queue.add(&Watch::poll(&other, Poll::IN))?;
    assert_eq!(errno(other.add(&Watch::poll(&queue, Poll::IN))), Some(40));
    Ok(())
}

pub fn a_closed_descriptor_takes_its_watch_along() -> Outcome {
    let (socket, peer) = readable()?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::socket(&socket, Ready::RECV).token(1))?;
    let number = socket.as_raw_fd();
    drop((socket, peer));
    nothing(&queue);
    let (socket, _peer) = readable()?;
    assert_eq!(socket.as_raw_fd(), number);
    queue.add(&Watch::socket(&socket, Ready::RECV).token(2))?;
    assert_eq!(next(&queue)?.token(), 2);
    Ok(())
}

pub fn a_watch_goes_with_its_descriptor_and_not_the_file() -> Outcome {
    let (socket, _peer) = readable()?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::socket(&socket, Ready::RECV))?;
    let _other = socket.try_clone()?;
    drop(socket);
    nothing(&queue);
    Ok(())
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> io::Result<Folder> {
        let name = format!("kevent-rust-{}-{}", std::process::id(), name);
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn a_directory_reports_changes() -> Outcome {
    let folder = Folder::new("directory")?;
    let directory = File::open(&folder.0)?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::inode(&directory, Changes::CREATE | Changes::REMOVE))?;
    let fd = directory.as_raw_fd();
    let file = folder.0.join("file");
    fs::write(&file, "x")?;
    assert_eq!(next_what(&queue)?, What::Inode { fd, changes: Changes::CREATE });
    fs::remove_file(&file)?;
    assert_eq!(next_what(&queue)?, What::Inode { fd, changes: Changes::REMOVE });
    assert_eq!(errno(queue.modify(&Watch::inode(&directory, Changes::NONE))), Some(22));
    Ok(())
}

pub fn a_removed_file_is_reported() -> Outcome {
    let folder = Folder::new("file")?;
    let path = folder.0.join("file");
    fs::write(&path, "x")?;
    let file = File::open(&path)?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::inode(&file, Changes::REMOVE | Changes::MODIFY))?;
    fs::write(&path, "longer")?;
    let fd = file.as_raw_fd();
    assert_eq!(next_what(&queue)?, What::Inode { fd, changes: Changes::MODIFY });
    fs::remove_file(&path)?;
    assert_eq!(next_what(&queue)?, What::Inode { fd, changes: Changes::REMOVE });
    Ok(())
}
