// SPDX-License-Identifier: LGPL-2.1 OR MIT
use super::*;
use kevent::{Clock, Timer, Watch};
use std::os::unix::io::{FromRawFd, OwnedFd};
use std::process::{id, Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

const MS: Duration = Duration::from_millis(1);
const SIGUSR1: i32 = 10;
const SIGRTMIN: i32 = 34;

fn expirations(what: What) -> u64 {
    match what {
        What::Timer { expirations } => expirations,
        what => panic!("{:?}", what),
    }
}

pub fn a_timer_expires_once() -> Outcome {
    let queue = Queue::new(8)?;
    let begin = Instant::now();
    queue.add(&Watch::timer(Timer::after(5 * MS), 1))?;
    assert_eq!(expirations(next_what(&queue)?), 1);
    assert!(begin.elapsed() >= 5 * MS);
    assert_eq!(queue.next(Some(20 * MS))?, None);
    Ok(())
}

pub fn a_timer_expires_again_and_counts() -> Outcome {
    let queue = Queue::new(8)?;
    let begin = Instant::now();
    queue.add(&Watch::timer(Timer::after(3 * MS).then_every(MS), 6))?;
    let mut sum = 0;
    while sum < 10 {
        let event = next(&queue)?;
        assert_eq!(event.token(), 6);
        sum += expirations(event.what());
    }
    assert!(begin.elapsed() >= 12 * MS);
    queue.remove(&Watch::timer(Timer::after(MS), 6))?;
    Ok(())
}

pub fn a_timer_has_an_absolute_time() -> Outcome {
    let queue = Queue::new(8)?;
    queue.add(&Watch::timer(Timer::at(SystemTime::UNIX_EPOCH), 1))?;
    assert_eq!(next(&queue)?.token(), 1);
    let at = SystemTime::now() + 5 * MS;
    queue.add(&Watch::timer(Timer::at(at).cancel_on_set(), 2))?;
    assert_eq!(next(&queue)?.token(), 2);
    assert!(SystemTime::now() >= at);
    for clock in [Clock::Monotonic, Clock::Boottime, Clock::Realtime, Clock::Tai] {
        let past = Timer::at_clock(clock, Duration::from_nanos(1));
        queue.add(&Watch::timer(past, 3).oneshot())?;
        assert_eq!(next(&queue)?.token(), 3);
        queue.add(&Watch::timer(Timer::after(MS).on(clock), 4).oneshot())?;
        assert_eq!(next(&queue)?.token(), 4);
    }
    Ok(())
}

pub fn a_bad_time_is_einval() -> Outcome {
    let queue = Queue::new(8)?;
    let largest = Duration::from_nanos(i64::MAX as u64);
    queue.add(&Watch::timer(Timer::after(largest), 1))?;
    let more = largest + Duration::from_nanos(1);
    for time in [more, Duration::MAX] {
        assert_eq!(errno(queue.add(&Watch::timer(Timer::after(time), 2))), Some(22));
        assert_eq!(errno(queue.add(&Watch::timer(Timer::every(time), 2))), Some(22));
    }
    let relative = Timer::after(MS).cancel_on_set();
    assert_eq!(errno(queue.add(&Watch::timer(relative, 2))), Some(22));
    Ok(())
}

pub fn a_signal_is_observed() -> Outcome {
    const SIG_IGN: usize = 1;
    let queue = Queue::new(8)?;
    let me = id();
    queue.add(&Watch::signal(SIGUSR1).token(1))?;
    // SAFETY: no handler of Rust is involved.
    unsafe {
        signal(SIGUSR1, SIG_IGN);
        assert_eq!(kill(me as i32, SIGUSR1), 0);
    }
    let expected =
        What::Signal { number: SIGUSR1, sender: me, code: 0, value: 0, consumed: false };
    assert_eq!(next_what(&queue)?, expected);
    Ok(())
}

/// The process would end if the signal were delivered.
pub fn a_signal_is_consumed() -> Outcome {
    let queue = Queue::new(8)?;
    let me = id();
    queue.add(&Watch::consumed_signal(SIGRTMIN))?;
    // SAFETY: the signal is not delivered.
    unsafe { assert_eq!(sigqueue(me as i32, SIGRTMIN, 0x1234), 0) };
    let expected = What::Signal {
        number: SIGRTMIN,
        sender: me,
        code: -1,
        value: 0x1234,
        consumed: true,
    };
    assert_eq!(next_what(&queue)?, expected);
    Ok(())
}

fn exit_with(status: &str) -> io::Result<Child> {
    Command::new("/proc/self/exe").args(["--exit", status]).spawn()
}

fn exit_of(what: What, child: &Child) -> Option<i32> {
    match what {
        What::Exit { pid, status } if pid == child.id() => status?.code(),
        what => panic!("{:?}", what),
    }
}

pub fn an_exit_has_a_status() -> Outcome {
    let queue = Queue::new(8)?;
    let mut child = exit_with("3")?;
    queue.add(&Watch::process(child.id()).token(2))?;
    assert_eq!(exit_of(next_what(&queue)?, &child), Some(3));
    child.wait()?;
    assert_eq!(errno(queue.add(&Watch::process(child.id()))), Some(3));
    Ok(())
}

pub fn a_pidfd_reports_the_exit() -> Outcome {
    const PIDFD_OPEN: i64 = 434;
    let queue = Queue::new(8)?;
    let mut child = exit_with("4")?;
    // SAFETY: opens a descriptor, which is nobody else's.
    let pidfd = unsafe {
        let fd = syscall(PIDFD_OPEN, child.id(), 0);
        assert!(fd >= 0);
        OwnedFd::from_raw_fd(fd as i32)
    };
    queue.add(&Watch::pidfd(&pidfd))?;
    assert_eq!(exit_of(next_what(&queue)?, &child), Some(4));
    child.wait()?;
    Ok(())
}

#[cfg(target_arch = "x86_64")]
const FUTEX: i64 = 202;
#[cfg(target_arch = "aarch64")]
const FUTEX: i64 = 98;

/// FUTEX_WAKE of one waiter; returns how many were woken.
fn wake(word: &AtomicU32, private: i64) -> i64 {
    // SAFETY: accesses no memory but as an address.
    unsafe { syscall(FUTEX, word as *const AtomicU32, 1 | private, 1_i64) }
}

pub fn a_futex_is_woken_and_armed_again() -> Outcome {
    let word = AtomicU32::new(5);
    let address = &word as *const AtomicU32 as usize;
    let queue = Queue::new(8)?;
    queue.add(&Watch::futex(&word, 5))?;
    nothing(&queue);
    for value in 5..8 {
        word.store(value + 1, Ordering::Release);
        wake(&word, 128);
        assert_eq!(next_what(&queue)?, What::Futex { address });
        nothing(&queue);
        queue.modify(&Watch::futex(&word, value + 1))?;
        nothing(&queue);
    }
    queue.remove(&Watch::futex(&word, 8))?;
    queue.add(&Watch::shared_futex(&word, 8))?;
    word.store(9, Ordering::Release);
    wake(&word, 0);
    next(&queue)?;
    Ok(())
}

pub fn a_futex_watch_is_a_waiter() -> Outcome {
    let word = AtomicU32::new(5);
    let queue = Queue::new(8)?;
    queue.add(&Watch::futex(&word, 5))?;
    assert_eq!(wake(&word, 0), 0);
    for _ in 0..3 {
        assert_eq!(wake(&word, 128), 1);
        next(&queue)?;
        assert_eq!(wake(&word, 128), 0);
        queue.modify(&Watch::futex(&word, 5))?;
    }
    queue.remove(&Watch::futex(&word, 5))?;
    queue.add(&Watch::shared_futex(&word, 5))?;
    assert_eq!(wake(&word, 0), 1);
    next(&queue)?;
    Ok(())
}

pub fn a_futex_with_another_value_is_reported() -> Outcome {
    let word = AtomicU32::new(5);
    let queue = Queue::new(8)?;
    assert!(queue.add_now(&Watch::futex(&word, 4))?.is_some());
    queue.modify(&Watch::futex(&word, 5))?;
    nothing(&queue);
    word.store(6, Ordering::Release);
    queue.modify(&Watch::futex(&word, 5))?;
    next(&queue)?;
    Ok(())
}

pub fn marks_merge() -> Outcome {
    let queue = Queue::new(8)?;
    queue.add(&Watch::user(9, 7).token(1))?;
    queue.mark(9, 1)?;
    queue.mark(9, 4)?;
    assert_eq!(next_what(&queue)?, What::Marks { id: 9, bits: 5, marks: 2 });
    nothing(&queue);
    assert_eq!(errno(queue.mark(9, 8)), Some(22));
    queue.add(&Watch::user(10, 1).ready())?;
    assert_eq!(next_what(&queue)?, What::Marks { id: 10, bits: 1, marks: 1 });
    Ok(())
}

pub fn messages_do_not() -> Outcome {
    let queue = Queue::new(8)?;
    queue.add(&Watch::messages(9, 0))?;
    for data in [u64::MAX, 0, 1 << 40] {
        queue.send(9, 2, data)?;
    }
    for data in [u64::MAX, 0, 1 << 40] {
        assert_eq!(next_what(&queue)?, What::Message { id: 9, bits: 2, data });
    }
    nothing(&queue);
    Ok(())
}
