// SPDX-License-Identifier: GPL-2.0
//! A thread that comes to serve against a close(), under the C11 memory model:
//! kevent_crew_note() of call/workers.c, and kevent_fop_flush() of file.c.
//!
//! The thread stores its table of descriptors, and then looks whether its descriptor is open.
//! close() empties the slot of the descriptor, and then reads the table: if it is its own, or
//! there are several, it has all threads look again. One of the two must see the other, or the
//! thread sleeps in a queue that it can no longer get at.

use loom::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;

const NONE: usize = 0;
const SEVERAL: usize = usize::MAX;

/// What a side does right; all of it is what the code does.
#[derive(Clone, Copy)]
pub struct Rules {
    server_full_barrier: bool,
    close_full_barrier: bool,
    server_says_several: bool,
}

const RULES: Rules = Rules {
    server_full_barrier: true,
    close_full_barrier: true,
    server_says_several: true,
};

struct Crew {
    table: AtomicUsize,
    /// Of the descriptor that is closed
    open: AtomicBool,
}

impl Crew {
    fn new() -> Arc<Self> {
        Arc::new(Crew {
            table: AtomicUsize::new(NONE),
            open: AtomicBool::new(true),
        })
    }

    fn note(&self, own: usize, rules: Rules) {
        let found = self
            .table
            .compare_exchange(NONE, own, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_else(|table| table);
        if found != NONE && found != own && rules.server_says_several {
            self.table.store(SEVERAL, Ordering::Relaxed);
        }
        if rules.server_full_barrier {
            fence(Ordering::SeqCst);
        }
    }

    /// Whether the thread sleeps.
    fn serve(&self, own: usize, rules: Rules) -> bool {
        self.note(own, rules);
        self.open.load(Ordering::Relaxed)
    }

    /// Whether all threads look again.
    fn close(&self, own: usize, rules: Rules) -> bool {
        self.open.store(false, Ordering::Relaxed);
        if rules.close_full_barrier {
            fence(Ordering::SeqCst);
        }
        let table = self.table.load(Ordering::Relaxed);
        table == own || table == SEVERAL
    }
}

/// A thread comes while its process closes the descriptor.
fn no_sleep_after_close(rules: Rules) {
    let crew = Crew::new();
    let other = crew.clone();
    let server = thread::spawn(move || other.serve(1, rules));
    let looked = crew.close(1, rules);
    assert!(looked || !server.join().unwrap(), "sleeps for ever");
}

/// The same, while a thread of another table comes.
fn no_sleep_beside_another(rules: Rules) {
    let crew = Crew::new();
    let (one, two) = (crew.clone(), crew.clone());
    let server = thread::spawn(move || one.serve(1, rules));
    let stranger = thread::spawn(move || two.note(2, rules));
    let looked = crew.close(1, rules);
    stranger.join().unwrap();
    assert!(looked || !server.join().unwrap(), "sleeps for ever");
}

type Case = (&'static str, fn(Rules), Rules, Option<&'static str>);

pub fn cases() -> Vec<Case> {
    const SLEEPS: Option<&str> = Some("sleeps for ever");
    let without = |change: fn(&mut Rules)| {
        let mut rules = RULES;
        change(&mut rules);
        rules
    };
    vec![
        ("server and close", no_sleep_after_close, RULES, None),
        ("servers of two tables and close", no_sleep_beside_another, RULES, None),
        (
            "server without its full barrier",
            no_sleep_after_close,
            without(|r| r.server_full_barrier = false),
            SLEEPS,
        ),
        (
            "close without its full barrier",
            no_sleep_after_close,
            without(|r| r.close_full_barrier = false),
            SLEEPS,
        ),
        (
            "server that does not say that there are several tables",
            no_sleep_beside_another,
            without(|r| r.server_says_several = false),
            SLEEPS,
        ),
    ]
}
