// SPDX-License-Identifier: GPL-2.0
//! The streams of libkevent/src/stream, operation by operation: the ready bits and the sleep
//! of a pair of processes, the ring that begins again, the change to memory, and back.
//!
//! What the kernel does with a byte through the socket is a read-modify-write of one word,
//! with acquire and release: its lock orders as much.

use loom::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// What the sides do right; all of it is what the code does.
#[derive(Clone, Copy)]
pub struct Rules {
    sender_releases_head: bool,
    receiver_acquires_head: bool,
    sender_sets_the_bit_last: bool,
    sender_releases_the_bit: bool,
    receiver_acquires_the_bits: bool,
    receiver_clears_first: bool,
    sender_fences_before_asleep: bool,
    receiver_fences_after_asleep: bool,
    receiver_looks_again: bool,
    sender_looks_whether_it_is_empty: bool,
    receiver_loads_base_last: bool,
    sender_joins_before_bells: bool,
    sender_releases_joined: bool,
    receiver_acquires_joined: bool,
    receiver_loads_joined_last: bool,
    leaver_fences: bool,
    leaver_waits_for_the_other: bool,
    leaver_publishes_first: bool,
    other_reads_in_bulk_first: bool,
    other_loads_head_last: bool,
    offer_is_withdrawn_by_cas: bool,
    offer_is_accepted_by_cas: bool,
    closer_says_gone_first: bool,
    sender_loads_gone_last: bool,
}

const RULES: Rules = Rules {
    sender_releases_head: true,
    receiver_acquires_head: true,
    sender_sets_the_bit_last: true,
    sender_releases_the_bit: true,
    receiver_acquires_the_bits: true,
    receiver_clears_first: true,
    sender_fences_before_asleep: true,
    receiver_fences_after_asleep: true,
    receiver_looks_again: true,
    sender_looks_whether_it_is_empty: true,
    receiver_loads_base_last: true,
    sender_joins_before_bells: true,
    sender_releases_joined: true,
    receiver_acquires_joined: true,
    receiver_loads_joined_last: true,
    leaver_fences: true,
    leaver_waits_for_the_other: true,
    leaver_publishes_first: true,
    other_reads_in_bulk_first: true,
    other_loads_head_last: true,
    offer_is_withdrawn_by_cas: true,
    offer_is_accepted_by_cas: true,
    closer_says_gone_first: true,
    sender_loads_gone_last: true,
};

fn release_if(rule: bool) -> Ordering {
    if rule {
        Ordering::Release
    } else {
        Ordering::Relaxed
    }
}

fn acquire_if(rule: bool) -> Ordering {
    if rule {
        Ordering::Acquire
    } else {
        Ordering::Relaxed
    }
}

/// The shared memory, the socket, and the bell of the receiver.
struct Shared {
    ring: [AtomicU64; 2],
    head: AtomicU64,
    base: AtomicU64,
    taken: AtomicU64,
    bits: AtomicU64,
    asleep: AtomicU64,
    gone: AtomicU64,
    raw: AtomicU64,
    joined: AtomicU64,
    leaving: [AtomicU64; 2],
    phase: AtomicU64,
    sock: AtomicU64,
    bell: AtomicBool,
}

impl Shared {
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        Arc::new(Shared {
            ring: [word(), word()],
            head: word(),
            base: word(),
            taken: word(),
            bits: word(),
            asleep: word(),
            gone: word(),
            raw: word(),
            joined: word(),
            leaving: [word(), word()],
            phase: word(),
            sock: word(),
            bell: AtomicBool::new(false),
        })
    }
}

/// write_memory() and kevent_stream_notify(): the byte at position @pos is @pos + 1.
fn write(rules: Rules, s: &Shared, pos: u64, base: u64) {
    s.ring[((pos - base) % 2) as usize].store(pos + 1, Ordering::Relaxed);
    if !rules.sender_sets_the_bit_last {
        s.bits.fetch_or(1, Ordering::Release);
    }
    s.head
        .store(pos + 1, release_if(rules.sender_releases_head));
    if rules.sender_sets_the_bit_last {
        s.bits
            .fetch_or(1, release_if(rules.sender_releases_the_bit));
    }
    if rules.sender_fences_before_asleep {
        fence(Ordering::SeqCst);
    }
    if s.asleep.load(Ordering::Acquire) != 0 {
        s.bell.swap(true, Ordering::AcqRel);
    }
}

/// kevent_streams_arm(): true when it may sleep.
fn arm(rules: Rules, s: &Shared) -> bool {
    s.asleep.store(1, Ordering::Release);
    if rules.receiver_fences_after_asleep {
        fence(Ordering::SeqCst);
    }
    if rules.receiver_looks_again && s.bits.load(Ordering::Acquire) != 0 {
        s.asleep.store(0, Ordering::Release);
        return false;
    }
    true
}

/// take_ready() and a read: how far it has read.
fn take(rules: Rules, s: &Shared, pos: u64) -> u64 {
    if s.bits.load(Ordering::Relaxed) == 0 {
        return pos;
    }
    let early = s.head.load(Ordering::Acquire);
    s.bits.swap(0, acquire_if(rules.receiver_acquires_the_bits));
    if rules.receiver_clears_first {
        s.head.load(Ordering::Acquire)
    } else {
        early
    }
}

/// read_memory(): checks the bytes, and says how far it has read.
fn read(rules: Rules, s: &Shared, pos: u64) -> u64 {
    let early = s.base.load(Ordering::Acquire);
    let head = s.head.load(acquire_if(rules.receiver_acquires_head));
    let base = if rules.receiver_loads_base_last {
        s.base.load(Ordering::Acquire)
    } else {
        early
    };
    for at in pos..head {
        let cell = &s.ring[(at.wrapping_sub(base) % 2) as usize];
        assert!(cell.load(Ordering::Relaxed) == at + 1, "wrong bytes");
    }
    s.taken.store(head, Ordering::Release);
    head
}

/// One byte meets a receiver that falls asleep.
fn no_lost_wake_up(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || write(rules, &theirs, 0, 0));
    let asleep = arm(rules, &s);
    sender.join().unwrap();
    assert!(!asleep || s.bell.load(Ordering::Relaxed), "lost wake-up");
}

/// kevent_stream_notify() for a stream that the receiver has closed: for which sleep it has rung.
fn notify_closed(rules: Rules, s: &Shared) -> u64 {
    let early = s.gone.load(Ordering::Acquire);
    s.bits.fetch_or(2, Ordering::Release);
    fence(Ordering::SeqCst);
    let asleep = s.asleep.load(Ordering::Acquire);
    let gone = if rules.sender_loads_gone_last {
        s.gone.load(Ordering::Acquire)
    } else {
        early
    };
    if gone == 0 {
        asleep
    } else {
        0
    }
}

/// A receiver closes a stream, and falls asleep. A bell there would wake nobody, as a child has
/// the socket: the sender has something for it, and then a byte of another stream.
fn no_bell_to_a_closed_stream(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        let rung = notify_closed(rules, &theirs);
        theirs.bits.fetch_or(1, Ordering::Release);
        fence(Ordering::SeqCst);
        let asleep = theirs.asleep.load(Ordering::Acquire);
        if asleep != 0 && asleep != rung {
            theirs.bell.swap(true, Ordering::AcqRel);
        }
    });
    if rules.closer_says_gone_first {
        s.gone.store(1, Ordering::Release);
    }
    let asleep = arm(rules, &s);
    if !rules.closer_says_gone_first {
        s.gone.store(1, Ordering::Release);
    }
    sender.join().unwrap();
    assert!(!asleep || s.bell.load(Ordering::Relaxed), "lost wake-up");
}

/// Two bytes meet a receiver that clears the bits: none is left without a bit.
fn no_lost_stream(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        write(rules, &theirs, 0, 0);
        write(rules, &theirs, 1, 0);
    });
    let mut pos = take(rules, &s, 0);
    pos = take(rules, &s, pos);
    sender.join().unwrap();
    assert!(
        s.bits.load(Ordering::Relaxed) != 0 || pos == 2,
        "lost stream"
    );
}

/// Two bytes, the second at the start of the ring again if the first was read.
fn no_wrong_bytes(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        write(rules, &theirs, 0, 0);
        let empty = theirs.taken.load(Ordering::Acquire) == 1;
        let again = empty || !rules.sender_looks_whether_it_is_empty;
        if again {
            theirs.base.store(1, Ordering::Release);
        }
        write(rules, &theirs, 1, u64::from(again));
    });
    let pos = read(rules, &s, 0);
    read(rules, &s, pos);
    sender.join().unwrap();
}

/// A byte through the socket, the change to memory, and a bell.
fn no_bell_among_the_bytes(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        theirs.sock.fetch_add(1, Ordering::AcqRel);
        if !rules.sender_joins_before_bells {
            theirs.sock.fetch_add(1, Ordering::AcqRel);
        }
        theirs.raw.store(1, Ordering::Relaxed);
        theirs
            .joined
            .store(1, release_if(rules.sender_releases_joined));
        if rules.sender_joins_before_bells {
            theirs.sock.fetch_add(1, Ordering::AcqRel);
        }
    });
    let order = acquire_if(rules.receiver_acquires_joined);
    let early = s.joined.load(order);
    let got = s.sock.load(Ordering::Acquire);
    let joined = if rules.receiver_loads_joined_last {
        s.joined.load(order)
    } else {
        early
    };
    let bytes = if joined == 1 {
        got.min(s.raw.load(Ordering::Relaxed))
    } else {
        got
    };
    assert!(bytes == got.min(1), "a bell among the bytes");
    sender.join().unwrap();
}

/// leave_out(): whether the last bell is sent at once.
fn leave(rules: Rules, s: &Shared, me: usize) -> bool {
    s.leaving[me].store(1, Ordering::Release);
    if rules.leaver_fences {
        fence(Ordering::SeqCst);
    }
    s.leaving[1 - me].load(Ordering::Acquire) == 1
}

/// Both sides leave: the last bell of one wakes the other.
fn no_wait_for_each_other(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let other = thread::spawn(move || leave(rules, &theirs, 1));
    let mine = leave(rules, &s, 0);
    let others = other.join().unwrap();
    assert!(mine || others, "both wait");
}

/// What the socket has, in this order, while one side leaves.
const SOME_BELL: u64 = 1;
const LAST_BELL: u64 = 2;
const BYTE: u64 = 4;

/// leave_out(), after either side has ended the turn. One byte went through memory while this side
/// did not know that; the one behind it goes through the socket.
fn end_turn(rules: Rules, s: &Shared) {
    s.phase.swap(1, Ordering::SeqCst);
    if rules.leaver_publishes_first {
        s.head.store(1, Ordering::Release);
    }
    s.sock.fetch_or(SOME_BELL, Ordering::AcqRel);
    s.leaving[0].store(1, Ordering::Release);
    fence(Ordering::SeqCst);
    if !rules.leaver_waits_for_the_other || s.leaving[1].load(Ordering::Acquire) == 1 {
        s.sock.fetch_or(LAST_BELL, Ordering::AcqRel);
        s.sock.fetch_or(BYTE, Ordering::AcqRel);
    }
    if !rules.leaver_publishes_first {
        s.head.store(1, Ordering::Release);
    }
}

/// read_bells() in a turn that goes on, as far as this side knows
fn read_in_bulk(s: &Shared) {
    let got = s.sock.swap(0, Ordering::AcqRel);
    assert!(got & BYTE == 0, "a byte among the bells");
}

/// read_bells() in a turn that ends: whether the last one has come
fn read_one_by_one(s: &Shared) -> bool {
    for bell in [SOME_BELL, LAST_BELL] {
        if s.sock.load(Ordering::Acquire) & bell != 0 {
            s.sock.fetch_and(!bell, Ordering::AcqRel);
            if bell == LAST_BELL {
                return true;
            }
        }
    }
    false
}

/// One side ends the turn, and the other one takes its bells and bytes.
fn no_byte_is_lost_on_the_way_back(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let leaver = thread::spawn(move || end_turn(rules, &theirs));
    let ends = s.phase.load(Ordering::SeqCst) == 1;
    if ends || !rules.other_reads_in_bulk_first {
        s.leaving[1].store(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }
    if !ends {
        read_in_bulk(&s);
    }
    if s.phase.load(Ordering::SeqCst) == 1 {
        s.leaving[1].store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        let early = s.head.load(Ordering::Acquire);
        if read_one_by_one(&s) {
            let head = if rules.other_loads_head_last {
                s.head.load(Ordering::Acquire)
            } else {
                early
            };
            assert!(head == 1, "bytes left in memory");
        }
    }
    leaver.join().unwrap();
}

/// From 0, an offer, to 1 or 2: whether it has worked.
fn change_phase(by_cas: bool, s: &Shared, to: u64) -> bool {
    if by_cas {
        return s
            .phase
            .compare_exchange(0, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
    }
    let free = s.phase.load(Ordering::SeqCst) == 0;
    if free {
        s.phase.store(to, Ordering::SeqCst);
    }
    free
}

/// An offer is withdrawn while it is accepted: one of the two is so.
fn no_half_agreement(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let other = thread::spawn(move || change_phase(rules.offer_is_accepted_by_cas, &theirs, 1));
    let withdrawn = change_phase(rules.offer_is_withdrawn_by_cas, &s, 2);
    let accepted = other.join().unwrap();
    assert!(withdrawn != accepted, "half an agreement");
}

type Case = (&'static str, fn(Rules), Rules, Option<&'static str>);

pub fn cases() -> Vec<Case> {
    const WAKE: Option<&str> = Some("lost wake-up");
    const LOST: Option<&str> = Some("lost stream");
    const WRONG: Option<&str> = Some("wrong bytes");
    const BELL: Option<&str> = Some("a bell among the bytes");
    const HALF: Option<&str> = Some("half an agreement");
    let without = |change: fn(&mut Rules)| {
        let mut rules = RULES;
        change(&mut rules);
        rules
    };
    vec![
        ("stream, a sleep", no_lost_wake_up, RULES, None),
        (
            "stream, a sleep after a close",
            no_bell_to_a_closed_stream,
            RULES,
            None,
        ),
        ("stream, ready bits", no_lost_stream, RULES, None),
        (
            "stream, a ring that begins again",
            no_wrong_bytes,
            RULES,
            None,
        ),
        ("stream, to memory", no_bell_among_the_bytes, RULES, None),
        ("stream, to the socket", no_wait_for_each_other, RULES, None),
        (
            "stream, bytes on the way back",
            no_byte_is_lost_on_the_way_back,
            RULES,
            None,
        ),
        ("stream, an offer", no_half_agreement, RULES, None),
        (
            "stream: sender without its full barrier before it reads asleep",
            no_lost_wake_up,
            without(|r| r.sender_fences_before_asleep = false),
            WAKE,
        ),
        (
            "stream: receiver without its full barrier after it stored asleep",
            no_lost_wake_up,
            without(|r| r.receiver_fences_after_asleep = false),
            WAKE,
        ),
        (
            "stream: receiver that does not look again before it sleeps",
            no_lost_wake_up,
            without(|r| r.receiver_looks_again = false),
            WAKE,
        ),
        (
            "stream: closer that says gone after asleep",
            no_bell_to_a_closed_stream,
            without(|r| r.closer_says_gone_first = false),
            WAKE,
        ),
        (
            "stream: sender that loads gone before asleep",
            no_bell_to_a_closed_stream,
            without(|r| r.sender_loads_gone_last = false),
            WAKE,
        ),
        (
            "stream: sender that sets the bit before head",
            no_lost_stream,
            without(|r| r.sender_sets_the_bit_last = false),
            LOST,
        ),
        (
            "stream: sender that does not release the bit",
            no_lost_stream,
            without(|r| {
                r.sender_releases_the_bit = false;
                r.sender_fences_before_asleep = false;
            }),
            LOST,
        ),
        (
            "stream: receiver that does not acquire the bits",
            no_lost_stream,
            without(|r| r.receiver_acquires_the_bits = false),
            LOST,
        ),
        (
            "stream: receiver that loads head before it clears the bits",
            no_lost_stream,
            without(|r| r.receiver_clears_first = false),
            LOST,
        ),
        (
            "stream: sender that does not release head",
            no_wrong_bytes,
            without(|r| r.sender_releases_head = false),
            WRONG,
        ),
        (
            "stream: receiver that does not acquire head",
            no_wrong_bytes,
            without(|r| r.receiver_acquires_head = false),
            WRONG,
        ),
        (
            "stream: sender that begins again before all is read",
            no_wrong_bytes,
            without(|r| r.sender_looks_whether_it_is_empty = false),
            WRONG,
        ),
        (
            "stream: receiver that loads base before head",
            no_wrong_bytes,
            without(|r| r.receiver_loads_base_last = false),
            WRONG,
        ),
        (
            "stream: sender that rings before it has joined",
            no_bell_among_the_bytes,
            without(|r| r.sender_joins_before_bells = false),
            BELL,
        ),
        (
            "stream: sender that does not release joined",
            no_bell_among_the_bytes,
            without(|r| r.sender_releases_joined = false),
            BELL,
        ),
        (
            "stream: receiver that does not acquire joined",
            no_bell_among_the_bytes,
            without(|r| r.receiver_acquires_joined = false),
            BELL,
        ),
        (
            "stream: receiver that loads joined before it reads the socket",
            no_bell_among_the_bytes,
            without(|r| r.receiver_loads_joined_last = false),
            BELL,
        ),
        (
            "stream: side that leaves without its full barrier",
            no_wait_for_each_other,
            without(|r| r.leaver_fences = false),
            Some("both wait"),
        ),
        (
            "stream: side that sends its last bell before the other one has left",
            no_byte_is_lost_on_the_way_back,
            without(|r| r.leaver_waits_for_the_other = false),
            Some("a byte among the bells"),
        ),
        (
            "stream: side that says that it leaves, and then reads bells in bulk",
            no_byte_is_lost_on_the_way_back,
            without(|r| r.other_reads_in_bulk_first = false),
            Some("a byte among the bells"),
        ),
        (
            "stream: side that sends its last bell before it stores head",
            no_byte_is_lost_on_the_way_back,
            without(|r| r.leaver_publishes_first = false),
            Some("bytes left in memory"),
        ),
        (
            "stream: side that loads head before it reads the last bell",
            no_byte_is_lost_on_the_way_back,
            without(|r| r.other_loads_head_last = false),
            Some("bytes left in memory"),
        ),
        (
            "stream: offer that is withdrawn by a store",
            no_half_agreement,
            without(|r| r.offer_is_withdrawn_by_cas = false),
            HALF,
        ),
        (
            "stream: offer that is accepted by a store",
            no_half_agreement,
            without(|r| r.offer_is_accepted_by_cas = false),
            HALF,
        ),
    ]
}
