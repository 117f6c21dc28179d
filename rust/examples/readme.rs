// SPDX-License-Identifier: LGPL-2.1 OR MIT
use kevent::{Queue, Ready, Timer, Watch, What};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn main() -> std::io::Result<()> {
    let queue = Queue::new(64)?;
    let mut sockets = vec![];
    for (token, word) in ["one", "two"].into_iter().enumerate() {
        let (socket, mut peer) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        queue.add(&Watch::socket(&socket, Ready::RECV).edge().token(token as u64))?;
        peer.write_all(word.as_bytes())?;
        sockets.push((socket, peer));
    }
    queue.add(&Watch::timer(Timer::after(Duration::from_millis(50)), 100))?;

    let mut events = Vec::with_capacity(16);
    loop {
        queue.get(&mut events, None)?;
        for event in &events {
            if let What::Timer { expirations } = event.what() {
                println!("timer: {}", expirations);
                return Ok(());
            }
            let mut buffer = [0; 16];
            let nr = sockets[event.token() as usize].0.read(&mut buffer)?;
            println!("{}: {}", event.token(), String::from_utf8_lossy(&buffer[..nr]));
        }
    }
}
