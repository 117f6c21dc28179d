// SPDX-License-Identifier: GPL-2.0
//! The ring of include/uapi/linux/ukevent.h under the C11 memory model; lanes.rs has
//! the lanes of libkevent, streams.rs its streams, modify.rs has MODIFY and wake-ups in the kernel,
//! crew.rs threads that come to serve, and a close.
//!
//! loom runs each scenario in all interleavings, and has relaxed loads return
//! every value that the model allows. The kernel's side is kring_push(), the
//! program's side kevent_ring_pop(), operation by operation. Each barrier is
//! then left out in turn: if that breaks nothing, it would not be needed, or
//! the scenarios would not test it.
//!
//! loom does not model loads that see later stores of another thread. So the
//! release of ring_uidx by a consumer, which keeps its copy in front, can be
//! left out here without harm, and is not in the table.

mod crew;
mod lanes;
mod modify;
mod streams;

use loom::sync::atomic::{fence, AtomicU64, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize as Count, Ordering::Relaxed as R};

const SIZE: u64 = 2;

/// What a side does right; all of it is what the code does.
#[derive(Clone, Copy)]
struct Rules {
    kernel_full_barrier: bool,
    kernel_write_barrier: bool,
    kernel_looks_for_room: bool,
    consumer_acquires_kidx: bool,
    consumer_swaps_uidx: bool,
    consumer_full_barrier: bool,
    consumer_commits_first: bool,
}

const RULES: Rules = Rules {
    kernel_full_barrier: true,
    kernel_write_barrier: true,
    kernel_looks_for_room: true,
    consumer_acquires_kidx: true,
    consumer_swaps_uidx: true,
    consumer_full_barrier: true,
    consumer_commits_first: true,
};

/// User memory, and the watched object: how often it has changed.
struct Shared {
    kidx: AtomicU64,
    uidx: AtomicU64,
    slots: [[AtomicU64; 2]; SIZE as usize],
    object: AtomicU64,
    taken: [AtomicUsize; 4],
}

impl Shared {
    fn new() -> Arc<Self> {
        let slot = || [AtomicU64::new(0), AtomicU64::new(0)];
        let count = || AtomicUsize::new(0);
        Arc::new(Shared {
            kidx: AtomicU64::new(0),
            uidx: AtomicU64::new(0),
            slots: [slot(), slot()],
            object: AtomicU64::new(0),
            taken: [count(), count(), count(), count()],
        })
    }

    fn slot(&self, at: u64) -> &[AtomicU64; 2] {
        &self.slots[(at % SIZE) as usize]
    }
}

/// The kernel's private side: struct kring, and kevent.stored of a watch.
struct Kernel {
    rules: Rules,
    kidx: u64,
    stored: u64,
}

impl Kernel {
    fn new(rules: Rules) -> Self {
        Kernel {
            rules,
            kidx: 0,
            stored: 0,
        }
    }

    /// kevent_hit() and kring_push(): false when the event has to be queued.
    fn push(&mut self, s: &Shared, mergeable: bool) -> bool {
        if self.rules.kernel_full_barrier {
            fence(Ordering::SeqCst);
        }
        let uidx = s.uidx.load(Ordering::Relaxed);
        if mergeable && self.stored > uidx {
            return true;
        }
        if self.rules.kernel_looks_for_room && self.kidx - uidx == SIZE {
            return false;
        }
        for word in s.slot(self.kidx) {
            word.store(self.kidx + 1, Ordering::Relaxed);
        }
        if self.rules.kernel_write_barrier {
            fence(Ordering::Release);
        }
        self.kidx += 1;
        s.kidx.store(self.kidx, Ordering::Relaxed);
        self.stored = self.kidx;
        true
    }
}

/// kevent_ring_pop() of one entry, without its loop, and a look at the object.
/// What it returns is owned: the position and the entry.
fn pop(s: &Shared, rules: Rules, seen: &mut u64) -> Option<(u64, [u64; 2])> {
    let acquire = if rules.consumer_acquires_kidx {
        Ordering::Acquire
    } else {
        Ordering::Relaxed
    };
    let uidx = s.uidx.load(Ordering::Acquire);
    if s.kidx.load(acquire) == uidx {
        return None;
    }
    let copy = s
        .slot(uidx)
        .each_ref()
        .map(|word| word.load(Ordering::Relaxed));
    if !rules.consumer_commits_first {
        *seen = s.object.load(Ordering::Relaxed);
    }
    if rules.consumer_swaps_uidx {
        s.uidx
            .compare_exchange(uidx, uidx + 1, Ordering::Release, Ordering::Acquire)
            .ok()?;
    } else {
        s.uidx.store(uidx + 1, Ordering::Release);
    }
    if rules.consumer_full_barrier {
        fence(Ordering::SeqCst);
    }
    if rules.consumer_commits_first {
        *seen = s.object.load(Ordering::Relaxed);
    }
    Some((uidx, copy))
}

/// Takes what it can get, at most @tries entries; returns what it saw last.
fn consume(s: Arc<Shared>, rules: Rules, tries: u32) -> impl FnOnce() -> u64 {
    move || {
        let mut seen = 0;
        for _ in 0..tries {
            if let Some((at, copy)) = pop(&s, rules, &mut seen) {
                assert!(copy == [at + 1; 2], "torn or stale entry");
                s.taken[at as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
        seen
    }
}

/// A watch that changes twice, one consumer: the last change is seen, or an
/// entry is left that reports it.
fn no_lost_event(rules: Rules) {
    let s = Shared::new();
    let consumer = thread::spawn(consume(s.clone(), rules, 2));
    let mut kernel = Kernel::new(rules);
    for change in 1..=2 {
        s.object.store(change, Ordering::Relaxed);
        assert!(
            kernel.push(&s, true),
            "no room for the conditions of a watch"
        );
    }
    let seen = consumer.join().unwrap();
    let unread = kernel.kidx - s.uidx.load(Ordering::Relaxed);
    assert!(unread > 0 || seen == 2, "lost event");
}

/// Three events of as many watches go through two slots: each entry is whole.
fn no_torn_entry(rules: Rules) {
    let s = Shared::new();
    let consumer = thread::spawn(consume(s.clone(), rules, 3));
    let mut kernel = Kernel::new(rules);
    for _ in 0..3 {
        kernel.push(&s, false);
    }
    consumer.join().unwrap();
}

/// Two consumers and two events: each event goes to one of them.
fn no_shared_entry(rules: Rules) {
    let s = Shared::new();
    let consumers = [(); 2].map(|_| thread::spawn(consume(s.clone(), rules, 1)));
    let mut kernel = Kernel::new(rules);
    for _ in 0..2 {
        kernel.push(&s, false);
    }
    for consumer in consumers {
        consumer.join().unwrap();
    }
    let uidx = s.uidx.load(Ordering::Relaxed);
    for (at, taken) in s.taken.iter().enumerate() {
        let want = usize::from((at as u64) < uidx);
        assert!(
            taken.load(Ordering::Relaxed) == want,
            "entry not taken once"
        );
    }
}

/// Runs all executions, or up to the first that is wrong: (what, how many).
fn explore<T: Copy + Send + Sync + 'static>(
    scenario: fn(T),
    rules: T,
) -> (Option<String>, usize) {
    static RUNS: Count = Count::new(0);
    RUNS.store(0, R);
    let result = catch_unwind(AssertUnwindSafe(|| {
        loom::model(move || {
            RUNS.fetch_add(1, R);
            scenario(rules)
        })
    }));
    let what = result.err().map(|panic| match panic.downcast::<&str>() {
        Ok(text) => text.to_string(),
        Err(panic) => panic.downcast::<String>().map_or("panic".into(), |t| *t),
    });
    (what, RUNS.load(R))
}

type Case = (&'static str, fn(Rules), Rules, Option<&'static str>);

fn cases() -> Vec<Case> {
    const LOST: Option<&str> = Some("lost event");
    const TORN: Option<&str> = Some("torn or stale entry");
    const TWICE: Option<&str> = Some("entry not taken once");
    let without = |change: fn(&mut Rules)| {
        let mut rules = RULES;
        change(&mut rules);
        rules
    };
    vec![
        ("one watch", no_lost_event, RULES, None),
        ("two slots", no_torn_entry, RULES, None),
        ("two consumers", no_shared_entry, RULES, None),
        (
            "kernel without its full barrier",
            no_lost_event,
            without(|r| r.kernel_full_barrier = false),
            LOST,
        ),
        (
            "consumer without its full barrier",
            no_lost_event,
            without(|r| r.consumer_full_barrier = false),
            LOST,
        ),
        (
            "consumer that looks before it commits",
            no_lost_event,
            without(|r| r.consumer_commits_first = false),
            LOST,
        ),
        (
            "kernel without its write barrier",
            no_torn_entry,
            without(|r| r.kernel_write_barrier = false),
            TORN,
        ),
        (
            "consumer that does not acquire ring_kidx",
            no_torn_entry,
            without(|r| r.consumer_acquires_kidx = false),
            TORN,
        ),
        (
            "kernel that does not look for room",
            no_torn_entry,
            without(|r| r.kernel_looks_for_room = false),
            TORN,
        ),
        (
            "consumers that store without compare-and-swap",
            no_shared_entry,
            without(|r| r.consumer_swaps_uidx = false),
            TWICE,
        ),
    ]
}

/// Runs the cases and prints a line for each; how many came out wrong.
fn run<T: Copy + Send + Sync + 'static>(
    cases: Vec<(&'static str, fn(T), T, Option<&'static str>)>,
) -> usize {
    let mut failed = 0;
    for (name, scenario, rules, want) in cases {
        let (got, runs) = explore(scenario, rules);
        let good = got.as_deref() == want;
        failed += usize::from(!good);
        println!(
            "{} {name}: {}, {runs} executions",
            if good { "ok    " } else { "not ok" },
            got.as_deref().unwrap_or("nothing wrong"),
        );
    }
    failed
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let failed = run(cases())
        + run(lanes::cases())
        + run(modify::cases())
        + run(crew::cases())
        + run(streams::cases());
    std::process::exit((failed > 0) as i32);
}
