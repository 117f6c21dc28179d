// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! The tests by source, and what they have in common.

mod files;
mod queue;
mod sources;
#[cfg(feature = "libkevent")]
mod streams;
mod threads;

use kevent::{Event, Queue, What};
use std::io;
use std::time::Duration;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;
pub type Test = fn() -> Outcome;

/// Long enough for a busy machine, and less than the time of a test.
pub const SOON: Option<Duration> = Some(Duration::from_secs(30));
pub const NOW: Option<Duration> = Some(Duration::ZERO);

macro_rules! all {
    ($($(#[$only:meta])? $module:ident: $($name:ident)*;)*) => {
        pub const ALL: &[&[(&str, Test)]] = &[$(
            $(#[$only])?
            &[$((concat!(stringify!($module), ".", stringify!($name)), $module::$name),)*],
        )*];
    };
}

all! {
    queue:
        a_bad_number_of_slots_is_einval
        the_descriptor_is_closed_at_exec_unless_asked_otherwise
        what_is_refused_is_eperm
        types_that_the_program_needs_are_there
        a_watch_is_added_once
        a_watch_that_is_not_there_is_enoent
        changes_have_results
        a_timeout_ends_a_wait
        a_wake_request_ends_a_wait
        an_end_of_waits_stays
        a_dropped_queue_leaves_no_descriptor
        the_queue_is_readable_while_it_has_events
        a_full_ring_loses_nothing
        a_ring_that_is_never_empty_lets_level_watches_in
        the_ring_iterator_takes_what_is_there
        the_ring_iterator_ends_at_a_level_watch
        a_child_does_not_take_events_of_the_ring
        a_child_takes_events_past_the_ring
        a_queue_that_outlives_the_ring_does_no_harm
        a_batch_is_no_larger_than_the_buffer;
    files:
        a_socket_reports_bytes_to_read
        a_listener_reports_connections
        a_socket_reports_room_and_hang_up
        level_repeats_and_edge_does_not
        oneshot_reports_once
        dispatch_reports_again_after_modify
        disabled_reports_nothing_until_modify
        last_check_drops_what_is_no_longer_true
        ready_at_add_is_handed_back_if_asked_for
        ready_at_add_is_queued_by_default
        a_pipe_reports_both_ends
        poll_takes_any_file
        queues_do_not_watch_each_other
        a_closed_descriptor_takes_its_watch_along
        a_watch_goes_with_its_descriptor_and_not_the_file
        a_directory_reports_changes
        a_removed_file_is_reported;
    sources:
        a_timer_expires_once
        a_timer_expires_again_and_counts
        a_timer_has_an_absolute_time
        a_bad_time_is_einval
        a_signal_is_observed
        a_signal_is_consumed
        an_exit_has_a_status
        a_pidfd_reports_the_exit
        a_futex_is_woken_and_armed_again
        a_futex_watch_is_a_waiter
        a_futex_with_another_value_is_reported
        marks_merge
        messages_do_not;
    #[cfg(feature = "libkevent")]
    streams:
        bytes_go_through_memory
        a_peer_without_streams_reads_its_bytes
        a_wait_ends_with_bytes
        a_wait_ends_with_its_time
        another_loop_is_woken
        an_end_comes_behind_all_bytes
        a_stream_goes_back_to_its_socket_and_forth
        a_stream_keeps_its_set
        a_child_has_no_streams
        a_refused_socket_is_closed;
    threads:
        each_event_goes_to_one_of_many_threads
        another_thread_ends_a_wait
        a_hit_is_seen_without_a_call;
}

/// What a host lacks: a part of its name, a test, and a row of kevent_fallback(7), or
/// why. All other tests run on each host.
#[rustfmt::skip]
const EXCEPT: &[(&str, &str, &str)] = &[
    ("epoll", "queue.a_child_takes_events_past_the_ring", "process"),
    ("epoll", "files.a_watch_goes_with_its_descriptor_and_not_the_file", "close"),
    ("epoll", "sources.a_signal_is_observed", "signal"),
    ("epoll", "sources.a_futex_watch_is_a_waiter", "thread"),
    ("epoll", "threads.a_hit_is_seen_without_a_call", "stored"),
    ("module", "sources.a_signal_is_observed", "signal"),
    ("module", "sources.a_futex_watch_is_a_waiter", "thread"),
    ("raw", "queue.types_that_the_program_needs_are_there", "no choice without libkevent"),
    ("raw module", "sources.a_signal_is_consumed", "no SIGNAL without libkevent"),
    ("raw module", "sources.a_futex_is_woken_and_armed_again", "no FUTEX without libkevent"),
    ("raw module", "sources.a_futex_with_another_value_is_reported", "no FUTEX without libkevent"),
];

/// Why a test is left out on this host.
pub fn exception(host: &str, test: &str) -> Option<&'static str> {
    let is_it = |part: &&(&str, &str, &str)| host.contains(part.0) && test == part.1;
    EXCEPT.iter().find(is_it).map(|part| part.2)
}

extern "C" {
    pub fn fork() -> i32;
    pub fn _exit(status: i32) -> !;
    pub fn kill(pid: i32, signal: i32) -> i32;
    pub fn signal(number: i32, handler: usize) -> usize;
    pub fn sigqueue(pid: i32, signal: i32, value: usize) -> i32;
    pub fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    pub fn poll(fds: *mut PollFd, number: u64, timeout: i32) -> i32;
    pub fn syscall(number: i64, ...) -> i64;
}

#[repr(C)]
pub struct PollFd {
    pub fd: i32,
    pub events: i16,
    pub revents: i16,
}

/// The tests start themselves as a child that ends with a status.
pub fn child(arguments: &[String]) {
    if let [word, status] = arguments {
        if word == "--exit" {
            std::process::exit(status.parse().unwrap());
        }
    }
}

/// The event that must come.
pub fn next(queue: &Queue) -> io::Result<Event> {
    queue.next(SOON)?.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "no event"))
}

pub fn next_what(queue: &Queue) -> io::Result<What> {
    next(queue).map(|event| event.what())
}

/// There must be no event.
pub fn nothing(queue: &Queue) {
    assert_eq!(queue.next(NOW).unwrap(), None);
}

pub fn errno(result: io::Result<()>) -> Option<i32> {
    result.unwrap_err().raw_os_error()
}

/// Runs `f` in a child, whose status is what it returns.
pub fn in_child(f: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls what allocates no memory and takes no lock, and ends.
    match unsafe { fork() } {
        0 => {
            let status = f();
            // SAFETY: ends the process.
            unsafe { _exit(status) }
        }
        pid => {
            assert!(pid > 0);
            let mut status = 0;
            // SAFETY: writes the status.
            assert_eq!(unsafe { waitpid(pid, &mut status, 0) }, pid);
            status >> 8
        }
    }
}
