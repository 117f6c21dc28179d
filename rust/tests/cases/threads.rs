// SPDX-License-Identifier: LGPL-2.1 OR MIT
use super::*;
use kevent::{Ready, Watch};
use std::io::Write;
use std::os::unix::io::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

const END: u64 = u64::MAX;

/// Messages until one says that there are no more.
fn consume(queue: &Queue) -> io::Result<Vec<u64>> {
    let mut seen = Vec::new();
    loop {
        match next_what(queue)? {
            What::Message { data: END, .. } => return Ok(seen),
            What::Message { data, .. } => seen.push(data),
            what => panic!("{:?}", what),
        }
    }
}

pub fn each_event_goes_to_one_of_many_threads() -> Outcome {
    const EVENTS: u64 = 20_000;
    let queue = Queue::new(32)?;
    queue.add(&Watch::messages(1, 0))?;
    let all: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| consume(&queue))).collect();
        for data in 0..EVENTS {
            queue.send(1, 0, data)?;
        }
        for _ in &threads {
            queue.send(1, 0, END)?;
        }
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<io::Result<_>>()
    })?;
    for seen in &all {
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    }
    let mut sorted = all.concat();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..EVENTS));
    Ok(())
}

pub fn another_thread_ends_a_wait() -> Outcome {
    let queue = Queue::new(8)?;
    queue.add(&Watch::user(1, 0))?;
    for _ in 0..1000 {
        thread::scope(|scope| {
            let waiter = scope.spawn(|| next(&queue));
            queue.mark(1, 0)?;
            waiter.join().unwrap()
        })?;
    }
    Ok(())
}

/// The wake-up stores the entry: no call takes place between the write and the look.
/// That is so for each slot, also in pages that nobody has touched.
pub fn a_hit_is_seen_without_a_call() -> Outcome {
    const WRITES: usize = 200;
    let queue = Queue::new(256)?;
    let (socket, mut peer) = UnixStream::pair()?;
    queue.add(&Watch::socket(&socket, Ready::RECV).edge().token(5))?;
    for _ in 0..WRITES {
        peer.write_all(b"x")?;
        let event = queue.ring()?.next().ok_or("the ring is empty")?;
        assert_eq!(event.token(), 5);
    }
    let path = format!("/proc/self/fdinfo/{}", queue.as_raw_fd());
    let text = std::fs::read_to_string(path)?;
    assert!(text.contains(&format!("kevent-hits:\t{}\n", WRITES)), "{}", text);
    Ok(())
}
