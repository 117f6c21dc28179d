// SPDX-License-Identifier: LGPL-2.1 OR MIT
use super::*;
use kevent::{abi, Change, Options, Ready, Timer, Watch};
use std::io::Write;
use std::os::unix::io::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

pub fn a_bad_number_of_slots_is_einval() -> Outcome {
    for slots in [0, 1, 3, (1 << 20) + 1, 1 << 21] {
        assert_eq!(errno(Queue::new(slots).map(drop)), Some(22));
    }
    Queue::new(2)?;
    Queue::new(1 << 20)?;
    Ok(())
}

/// The flags of a descriptor in fdinfo, of which O_CLOEXEC is one.
fn closes_at_exec(queue: &Queue) -> bool {
    let path = format!("/proc/self/fdinfo/{}", queue.as_raw_fd());
    let text = std::fs::read_to_string(path).unwrap();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    u32::from_str_radix(flags.trim(), 8).unwrap() & 0o2000000 != 0
}

pub fn the_descriptor_is_closed_at_exec_unless_asked_otherwise() -> Outcome {
    assert!(closes_at_exec(&Queue::new(2)?));
    assert!(!closes_at_exec(&Options::new(2).keep_at_exec().open()?));
    Ok(())
}

pub fn what_is_refused_is_eperm() -> Outcome {
    let queue =
        Options::new(2).refuse(abi::TIMER).refuse_changes().refuse_marks().open()?;
    let timer = Watch::timer(Timer::every(Duration::from_secs(1)), 1);
    assert_eq!(errno(queue.add(&timer)), Some(1));
    queue.add(&Watch::user(1, 0))?;
    assert_eq!(errno(queue.remove(&Watch::user(1, 0))), Some(1));
    assert_eq!(errno(queue.mark(1, 0)), Some(1));
    assert_eq!(errno(queue.wake()), Some(1));
    assert_eq!(errno(queue.wake_all()), Some(1));
    Ok(())
}

/// On the module it is one of epoll.
pub fn types_that_the_program_needs_are_there() -> Outcome {
    #[cfg(feature = "libkevent")]
    {
        let word = std::sync::atomic::AtomicU32::new(5);
        let queue = Options::new(8).only(&[abi::FUTEX]).open()?;
        assert!(queue.add_now(&Watch::futex(&word, 4))?.is_some());
        assert_eq!(errno(queue.add(&Watch::user(1, 0))), Some(1));
    }
    Ok(())
}

pub fn a_watch_is_added_once() -> Outcome {
    let queue = Queue::new(8)?;
    let (socket, _peer) = UnixStream::pair()?;
    let watch = Watch::socket(&socket, Ready::RECV);
    queue.add(&watch)?;
    assert_eq!(errno(queue.add(&watch.token(5))), Some(17));
    queue.remove(&watch)?;
    queue.add(&watch)?;
    Ok(())
}

pub fn a_watch_that_is_not_there_is_enoent() -> Outcome {
    let queue = Queue::new(8)?;
    let watch = Watch::user(10, 0);
    assert_eq!(errno(queue.modify(&watch)), Some(2));
    assert_eq!(errno(queue.remove(&watch)), Some(2));
    assert_eq!(errno(queue.mark_ready(&watch)), Some(2));
    Ok(())
}

pub fn changes_have_results() -> Outcome {
    let queue = Queue::new(8)?;
    let (a, b) = (Watch::user(1, 0), Watch::user(2, 0));
    let mut changes = [
        Change::add(&a),
        Change::modify(&b),
        Change::add(&a),
        Change::add(&b),
        Change::remove(&a),
    ];
    queue.apply(&mut changes)?;
    let results: Vec<Option<i32>> =
        changes.iter().map(|change| change.result().err()?.raw_os_error()).collect();
    assert_eq!(results, [None, Some(2), Some(17), None, None]);
    queue.mark(2, 0)?;
    assert_eq!(errno(queue.mark(1, 0)), Some(2));
    assert_eq!(errno(queue.apply(&mut vec![Change::add(&a); 4097])), Some(22));
    Ok(())
}

pub fn a_timeout_ends_a_wait() -> Outcome {
    let queue = Queue::new(8)?;
    let time = Duration::from_millis(20);
    let begin = Instant::now();
    assert_eq!(queue.next(Some(time))?, None);
    assert!(begin.elapsed() >= time);
    let mut events = vec![];
    let begin = Instant::now();
    assert_eq!(queue.get_past_ring(&mut events, Some(time))?, 0);
    assert!(begin.elapsed() >= time);
    assert_eq!(queue.next(NOW)?, None);
    Ok(())
}

pub fn a_wake_request_ends_a_wait() -> Outcome {
    let queue = Queue::new(8)?;
    queue.wake()?;
    assert_eq!(queue.next(None)?, None);
    Ok(())
}

pub fn an_end_of_waits_stays() -> Outcome {
    let queue = Queue::new(8)?;
    queue.add(&Watch::user(1, 1))?;
    queue.mark(1, 1)?;
    queue.wake_all()?;
    assert!(queue.next(None)?.is_some());
    assert_eq!(queue.next(None)?, None);
    assert_eq!(queue.next(None)?, None);
    Ok(())
}

fn descriptors() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

pub fn a_dropped_queue_leaves_no_descriptor() -> Outcome {
    // Has what all queues share; a new one would close what others have left
    let _other = Queue::new(8)?;
    let before = descriptors()?;
    let queue = Queue::new(8)?;
    queue.add(&Watch::timer(Timer::after(Duration::ZERO), 1))?;
    next(&queue)?;
    drop(queue);
    assert_eq!(descriptors()?, before);
    Ok(())
}

fn is_readable(queue: &Queue) -> bool {
    let mut fd = PollFd { fd: queue.as_fd().as_raw_fd(), events: 1, revents: 0 };
    // SAFETY: reads and writes one struct pollfd.
    unsafe { poll(&mut fd, 1, 0) == 1 }
}

pub fn the_queue_is_readable_while_it_has_events() -> Outcome {
    let queue = Queue::new(8)?;
    queue.add(&Watch::user(1, 0))?;
    assert!(!is_readable(&queue));
    queue.mark(1, 0)?;
    assert!(is_readable(&queue));
    next(&queue)?;
    assert!(!is_readable(&queue));
    Ok(())
}

pub fn a_full_ring_loses_nothing() -> Outcome {
    let queue = Queue::new(4)?;
    queue.add(&Watch::messages(1, 0))?;
    for data in 0..1000 {
        queue.send(1, 0, data)?;
    }
    let mut events = Vec::with_capacity(3);
    let mut expected = 0;
    while queue.get(&mut events, NOW)? > 0 {
        for event in &events {
            assert_eq!(event.what(), What::Message { id: 1, bits: 0, data: expected });
            expected += 1;
        }
    }
    assert_eq!(expected, 1000);
    Ok(())
}

pub fn a_ring_that_is_never_empty_lets_level_watches_in() -> Outcome {
    let queue = Queue::new(8)?;
    let (socket, mut peer) = UnixStream::pair()?;
    peer.write_all(b"x")?;
    queue.add(&Watch::socket(&socket, Ready::RECV).token(1))?;
    assert_eq!(next(&queue)?.token(), 1);
    // From here on edge entries of a pipe fill the ring without a call
    let (other, mut busy) = UnixStream::pair()?;
    queue.add(&Watch::socket(&other, Ready::RECV).edge().token(2))?;
    let mut seen = 0;
    busy.write_all(b"x")?;
    for _ in 0..100 {
        let event = next(&queue)?;
        busy.write_all(b"x")?;
        seen += u32::from(event.token() == 1);
    }
    assert!(seen >= 2, "{} events of the level watch", seen);
    Ok(())
}

pub fn the_ring_iterator_takes_what_is_there() -> Outcome {
    let queue = Queue::new(4)?;
    queue.add(&Watch::messages(1, 0))?;
    for data in 0..20 {
        queue.send(1, 0, data)?;
    }
    let first = next(&queue)?;
    let all: Vec<What> =
        std::iter::once(first).chain(queue.ring()?).map(|event| event.what()).collect();
    let expected: Vec<What> =
        (0..20).map(|data| What::Message { id: 1, bits: 0, data }).collect();
    assert_eq!(all, expected);
    assert_eq!(queue.ring()?.next(), None);
    Ok(())
}

/// Each call reports such a watch; the iterator ends where one has found no more.
pub fn the_ring_iterator_ends_at_a_level_watch() -> Outcome {
    let queue = Queue::new(8)?;
    let (socket, mut peer) = UnixStream::pair()?;
    peer.write_all(b"x")?;
    queue.add(&Watch::socket(&socket, Ready::RECV))?;
    next(&queue)?;
    assert!(queue.ring()?.take(20).count() < 20);
    next(&queue)?;
    Ok(())
}

fn queue_with_an_entry() -> io::Result<Queue> {
    let queue = Queue::new(8)?;
    queue.add(&Watch::messages(1, 0))?;
    queue.send(1, 0, 1)?;
    queue.send(1, 0, 2)?;
    next(&queue)?;
    Ok(queue)
}

pub fn a_child_does_not_take_events_of_the_ring() -> Outcome {
    let queue = queue_with_an_entry()?;
    let mut iterator = queue.ring()?;
    let mut events = Vec::with_capacity(4);
    let is_exdev = |result: io::Result<()>| {
        result.map_or_else(|e| e.raw_os_error() == Some(18), |_| false)
    };
    let status = in_child(|| {
        let refused = is_exdev(queue.next(NOW).map(drop))
            && is_exdev(queue.get(&mut events, NOW).map(drop))
            && is_exdev(queue.ring().map(drop))
            && is_exdev(queue.apply(&mut []))
            && iterator.next().is_none();
        i32::from(refused)
    });
    assert_eq!(status, 1);
    assert_eq!(next_what(&queue)?, What::Message { id: 1, bits: 0, data: 2 });
    Ok(())
}

pub fn a_child_takes_events_past_the_ring() -> Outcome {
    let queue = queue_with_an_entry()?;
    queue.send(1, 0, 3)?;
    let status = in_child(|| {
        let mut events = Vec::with_capacity(1);
        match queue.get_past_ring(&mut events, NOW) {
            Ok(1) => match events[0].what() {
                What::Message { data, .. } => data as i32,
                _ => 102,
            },
            _ => 101,
        }
    });
    // Message 2 is in the ring
    assert_eq!(status, 3);
    assert_eq!(next_what(&queue)?, What::Message { id: 1, bits: 0, data: 2 });
    nothing(&queue);
    Ok(())
}

/// A duplicate keeps the queue. Its ring is gone: memory that is allocated later must
/// not be what the kernel stores to.
pub fn a_queue_that_outlives_the_ring_does_no_harm() -> Outcome {
    let queue = Queue::new(1024)?;
    let (socket, mut peer) = UnixStream::pair()?;
    queue.add(&Watch::socket(&socket, Ready::RECV).edge())?;
    let duplicate = queue.as_fd().try_clone_to_owned()?;
    let in_library = queue.backend() == "epoll";
    drop(queue);
    let memory: Vec<Vec<u8>> = (0..200).map(|_| vec![0x5a; 48 << 10]).collect();
    for _ in 0..100 {
        peer.write_all(b"x")?;
    }
    assert!(memory.iter().flatten().all(|&byte| byte == 0x5a));
    let path = format!("/proc/self/fdinfo/{}", duplicate.as_raw_fd());
    let text = std::fs::read_to_string(path)?;
    assert!(in_library || text.contains("kevent-ready:\t1\n"), "{}", text);
    Ok(())
}

pub fn a_batch_is_no_larger_than_the_buffer() -> Outcome {
    let queue = Queue::new(16)?;
    queue.add(&Watch::messages(1, 0))?;
    (0..10).try_for_each(|data| queue.send(1, 0, data))?;
    let mut events = Vec::with_capacity(4);
    let room = events.capacity();
    assert_eq!(queue.get(&mut events, NOW)?, room);
    assert_eq!(queue.get(&mut Vec::new(), NOW)?, 1);
    let mut rest = Vec::with_capacity(100);
    assert_eq!(queue.get(&mut rest, NOW)?, 9 - room);
    assert_eq!(queue.get(&mut rest, NOW)?, 0);
    assert!(rest.is_empty());
    Ok(())
}
