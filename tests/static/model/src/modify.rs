// SPDX-License-Identifier: GPL-2.0
//! MODIFY against a wake-up, under the C11 memory model: kevent_modify_locked() of
//! kernel/kevent, and the callbacks of wait queues in sources/file_wait.c.
//!
//! A wake-up stores data and reads what the watch wants, without ready_lock. MODIFY
//! stores what the watch wants, under ready_lock, and then it, or the next consumer that
//! takes the lock, looks for data. One of the two must see the other.

use loom::sync::atomic::{fence, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// What a side does right; all of it is what the code does.
#[derive(Clone, Copy)]
pub struct Rules {
    wake_up_full_barrier: bool,
    modify_full_barrier: bool,
}

const RULES: Rules = Rules {
    wake_up_full_barrier: true,
    modify_full_barrier: true,
};

/// What ready_lock protects.
#[derive(Default)]
struct State {
    owed: bool,
    reported: bool,
}

/// The file, and its watch.
struct Watch {
    data: AtomicUsize,
    wanted: AtomicUsize,
    state: Mutex<State>,
}

impl Watch {
    fn new() -> Arc<Self> {
        Arc::new(Watch {
            data: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            state: Mutex::new(State::default()),
        })
    }

    fn has_data(&self) -> bool {
        self.data.load(Ordering::Relaxed) != 0
    }

    fn wake_up(&self, rules: Rules) {
        self.data.store(1, Ordering::Relaxed);
        if rules.wake_up_full_barrier {
            fence(Ordering::SeqCst);
        }
        if self.wanted.load(Ordering::Relaxed) != 0 {
            self.state.lock().unwrap().reported = true;
        }
    }

    fn modify(&self, rules: Rules, look: bool) {
        let mut state = self.state.lock().unwrap();
        self.wanted.store(1, Ordering::Relaxed);
        if rules.modify_full_barrier {
            fence(Ordering::SeqCst);
        }
        if !look {
            state.owed = true;
        } else if self.has_data() {
            state.reported = true;
        }
    }

    /// A look that MODIFY has left to the next collection.
    fn collect(&self) {
        let mut state = self.state.lock().unwrap();
        if state.owed {
            state.owed = false;
            state.reported |= self.has_data();
        }
    }
}

/// MODIFY looks itself.
fn no_silent_modify(rules: Rules) {
    let watch = Watch::new();
    let other = watch.clone();
    let waker = thread::spawn(move || other.wake_up(rules));
    watch.modify(rules, true);
    waker.join().unwrap();
    assert!(watch.state.lock().unwrap().reported, "silent");
}

/// MODIFY leaves the look to a consumer.
fn no_silent_collection(rules: Rules) {
    let watch = Watch::new();
    let (one, two) = (watch.clone(), watch.clone());
    let waker = thread::spawn(move || one.wake_up(rules));
    let consumer = thread::spawn(move || two.collect());
    watch.modify(rules, false);
    waker.join().unwrap();
    consumer.join().unwrap();
    let state = watch.state.lock().unwrap();
    assert!(state.reported || state.owed, "silent");
}

type Case = (&'static str, fn(Rules), Rules, Option<&'static str>);

pub fn cases() -> Vec<Case> {
    const SILENT: Option<&str> = Some("silent");
    let without = |change: fn(&mut Rules)| {
        let mut rules = RULES;
        change(&mut rules);
        rules
    };
    vec![
        ("MODIFY that looks", no_silent_modify, RULES, None),
        ("MODIFY that leaves the look", no_silent_collection, RULES, None),
        (
            "wake-up without its full barrier",
            no_silent_modify,
            without(|r| r.wake_up_full_barrier = false),
            SILENT,
        ),
        (
            "MODIFY that looks, without its full barrier",
            no_silent_modify,
            without(|r| r.modify_full_barrier = false),
            SILENT,
        ),
        (
            "MODIFY that leaves the look, without its full barrier",
            no_silent_collection,
            without(|r| r.modify_full_barrier = false),
            SILENT,
        ),
    ]
}
