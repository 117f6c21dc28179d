// SPDX-License-Identifier: GPL-2.0
//! The lanes of libkevent/src/lane/lane.c, operation by operation: one sender, one
//! receiver, and the bell between them.
//!
//! The release of "taken" by the receiver, and its acquire by the sender, keep the
//! receiver's copy in front of the next message in the same slot. loom does not model
//! loads that see later stores, so their absence can't be shown.

use loom::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const SLOTS: u64 = 2;

/// What the sides do right; all of it is what the code does.
#[derive(Clone, Copy)]
pub struct Rules {
    sender_releases_seq: bool,
    receiver_acquires_seq: bool,
    sender_looks_for_room: bool,
    sender_fences_before_asleep: bool,
    receiver_fences_after_asleep: bool,
    receiver_looks_again: bool,
    sender_fences_after_room: bool,
    receiver_fences_before_room: bool,
    sender_looks_again: bool,
    sender_looks_for_the_end: bool,
    end_fences_before_room: bool,
    sleeps_have_numbers: bool,
    end_says_how_many: bool,
    receiver_loads_closed_last: bool,
}

const RULES: Rules = Rules {
    sender_releases_seq: true,
    receiver_acquires_seq: true,
    sender_looks_for_room: true,
    sender_fences_before_asleep: true,
    receiver_fences_after_asleep: true,
    receiver_looks_again: true,
    sender_fences_after_room: true,
    receiver_fences_before_room: true,
    sender_looks_again: true,
    sender_looks_for_the_end: true,
    end_fences_before_room: true,
    sleeps_have_numbers: true,
    end_says_how_many: true,
    receiver_loads_closed_last: true,
};

struct Slot {
    seq: AtomicU64,
    data: [AtomicU64; 2],
}

/// The shared memory, and the two bells.
struct Shared {
    slots: [Slot; SLOTS as usize],
    taken: AtomicU64,
    asleep: AtomicU64,
    room: AtomicU64,
    closed: AtomicU64,
    gone: AtomicBool,
    bell: AtomicBool,
    room_bell: AtomicBool,
}

impl Shared {
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        let slot = || Slot {
            seq: word(),
            data: [word(), word()],
        };
        Arc::new(Shared {
            slots: [slot(), slot()],
            taken: word(),
            asleep: word(),
            room: word(),
            closed: word(),
            gone: AtomicBool::new(false),
            bell: AtomicBool::new(false),
            room_bell: AtomicBool::new(false),
        })
    }

    fn slot(&self, pos: u64) -> &Slot {
        &self.slots[(pos % SLOTS) as usize]
    }
}

/// struct kevent_lane_out
struct Sender {
    rules: Rules,
    pos: u64,
    room: u64,
    rung: u64,
}

impl Sender {
    fn new(rules: Rules) -> Self {
        Sender {
            rules,
            pos: 0,
            room: 0,
            rung: 0,
        }
    }

    fn has_room(&self, s: &Shared) -> bool {
        self.pos - s.taken.load(Ordering::Acquire) < SLOTS
    }

    /// await_room(): true when there is room after all, or the peer has ended.
    fn await_room(&mut self, s: &Shared) -> bool {
        self.room += 1;
        s.room.store(self.room, Ordering::Release);
        if self.rules.sender_fences_after_room {
            fence(Ordering::SeqCst);
        }
        if self.rules.sender_looks_for_the_end && s.closed.load(Ordering::Acquire) != 0 {
            return true;
        }
        if self.rules.sender_looks_again && self.has_room(s) {
            s.room.store(0, Ordering::Release);
            return true;
        }
        false
    }

    /// kevent_lane_send(): false for -EAGAIN.
    fn send(&mut self, s: &Shared) -> bool {
        if self.rules.sender_looks_for_room && !self.has_room(s) && !self.await_room(s) {
            return false;
        }
        let slot = s.slot(self.pos);
        for word in &slot.data {
            word.store(self.pos + 1, Ordering::Relaxed);
        }
        self.pos += 1;
        let order = if self.rules.sender_releases_seq {
            Ordering::Release
        } else {
            Ordering::Relaxed
        };
        slot.seq.store(self.pos, order);
        self.wake_sleeper(s);
        true
    }

    fn wake_sleeper(&mut self, s: &Shared) {
        if self.rules.sender_fences_before_asleep {
            fence(Ordering::SeqCst);
        }
        let asleep = s.asleep.load(Ordering::Acquire);
        if asleep != 0 && asleep != self.rung {
            s.bell.swap(true, Ordering::AcqRel);
            self.rung = asleep;
        }
    }
}

/// struct kevent_lane_in
struct Receiver {
    rules: Rules,
    pos: u64,
    sleep: u64,
    rung: u64,
}

impl Receiver {
    fn new(rules: Rules) -> Self {
        Receiver {
            rules,
            pos: 0,
            sleep: 0,
            rung: 0,
        }
    }

    fn has_message(&self, s: &Shared) -> bool {
        let order = if self.rules.receiver_acquires_seq {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        };
        s.slot(self.pos).seq.load(order) == self.pos + 1
    }

    /// kevent_lane_recv(), which looks for waits for room after each message.
    fn recv(&mut self, s: &Shared) -> bool {
        if !self.has_message(s) {
            return false;
        }
        let copy = s
            .slot(self.pos)
            .data
            .each_ref()
            .map(|word| word.load(Ordering::Relaxed));
        assert!(copy == [self.pos + 1; 2], "half a message");
        self.pos += 1;
        s.taken.store(self.pos, Ordering::Release);
        self.peer_wants_room(s);
        true
    }

    fn peer_wants_room(&mut self, s: &Shared) {
        if self.rules.receiver_fences_before_room {
            fence(Ordering::SeqCst);
        }
        let room = s.room.load(Ordering::Acquire);
        if room != 0 && room != self.rung {
            s.room_bell.swap(true, Ordering::AcqRel);
            self.rung = room;
        }
    }

    /// say_closed(): the socket need not end, as others may have copies of it.
    fn close(&self, s: &Shared) {
        s.closed.store(1, Ordering::Release);
        if self.rules.end_fences_before_room {
            fence(Ordering::SeqCst);
        }
        if s.room.load(Ordering::Acquire) != 0 {
            s.room_bell.swap(true, Ordering::AcqRel);
        }
    }

    /// kevent_lane_arm(): true when it may sleep.
    fn arm(&mut self, s: &Shared) -> bool {
        self.sleep += 1;
        let number = if self.rules.sleeps_have_numbers {
            self.sleep
        } else {
            1
        };
        s.asleep.store(number, Ordering::Release);
        if self.rules.receiver_fences_after_asleep {
            fence(Ordering::SeqCst);
        }
        if self.rules.receiver_looks_again && self.has_message(s) {
            s.asleep.store(0, Ordering::Release);
            return false;
        }
        true
    }
}

/// One message meets a receiver that falls asleep: it is seen, or the bell rings.
fn no_lost_wake_up(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || Sender::new(rules).send(&theirs));
    let asleep = Receiver::new(rules).arm(&s);
    sender.join().unwrap();
    assert!(!asleep || s.bell.load(Ordering::Relaxed), "lost wake-up");
}

/// Two messages and two sleeps: the second sleep is rung for, too.
fn no_lost_second_wake_up(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        let mut sender = Sender::new(rules);
        sender.send(&theirs) && sender.send(&theirs)
    });
    let mut receiver = Receiver::new(rules);
    let mut asleep = false;
    for _ in 0..2 {
        asleep = receiver.arm(&s);
        if asleep && !s.bell.swap(false, Ordering::AcqRel) {
            break;
        }
        s.asleep.store(0, Ordering::Release);
        asleep = false;
        receiver.recv(&s);
    }
    sender.join().unwrap();
    let unread = receiver.has_message(&s);
    assert!(
        !asleep || !unread || s.bell.load(Ordering::Relaxed),
        "lost wake-up"
    );
}

/// Two lanes to one set, and the bell of its queue
struct Set {
    seq: [AtomicU64; 2],
    asleep: [AtomicU64; 2],
    bell: AtomicBool,
}

/// kevent_lanes_arm(): true when it may sleep.
fn arm_set(rules: Rules, s: &Set, taken: &[u64; 2], sleep: u64) -> bool {
    let number = if rules.sleeps_have_numbers { sleep } else { 1 };
    for asleep in &s.asleep {
        asleep.store(number, Ordering::Release);
    }
    if rules.receiver_fences_after_asleep {
        fence(Ordering::SeqCst);
    }
    !rules.receiver_looks_again
        || (0..2).all(|lane| s.seq[lane].load(Ordering::Acquire) == taken[lane])
}

/// A message through each lane: the sender rings once for a sleep, by either lane.
fn send_through_both(rules: Rules, s: &Set) {
    let mut rung = 0;
    for lane in 0..2 {
        s.seq[lane].store(1, Ordering::Release);
        if rules.sender_fences_before_asleep {
            fence(Ordering::SeqCst);
        }
        let asleep = s.asleep[lane].load(Ordering::Acquire);
        if asleep != 0 && asleep != rung {
            s.bell.swap(true, Ordering::AcqRel);
            rung = asleep;
        }
    }
}

/// Two sleeps of a set: the message of a lane whose bell was not rung is seen, too.
fn no_lost_wake_up_of_a_set(rules: Rules) {
    let word = || AtomicU64::new(0);
    let s = Arc::new(Set {
        seq: [word(), word()],
        asleep: [word(), word()],
        bell: AtomicBool::new(false),
    });
    let theirs = s.clone();
    let sender = thread::spawn(move || send_through_both(rules, &theirs));
    let mut taken = [0; 2];
    let mut asleep = false;
    for sleep in 1..3 {
        asleep = arm_set(rules, &s, &taken, sleep);
        if asleep && !s.bell.swap(false, Ordering::AcqRel) {
            break;
        }
        asleep = false;
        for (lane, taken) in taken.iter_mut().enumerate() {
            s.asleep[lane].store(0, Ordering::Release);
            *taken = s.seq[lane].load(Ordering::Acquire);
        }
    }
    sender.join().unwrap();
    let unread = (0..2).any(|lane| s.seq[lane].load(Ordering::Acquire) != taken[lane]);
    assert!(
        !asleep || !unread || s.bell.load(Ordering::Relaxed),
        "lost wake-up"
    );
}

/// Three messages through two slots: each is whole.
fn no_half_message(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        let mut sender = Sender::new(rules);
        for _ in 0..3 {
            sender.send(&theirs);
        }
    });
    let mut receiver = Receiver::new(rules);
    for _ in 0..3 {
        receiver.recv(&s);
    }
    sender.join().unwrap();
}

/// A full lane: the sender finds room, or is rung for when there is some.
fn no_lost_room(rules: Rules) {
    let s = Shared::new();
    let mut sender = Sender::new(rules);
    for _ in 0..SLOTS {
        assert!(sender.send(&s));
    }
    let theirs = s.clone();
    let receiver = thread::spawn(move || Receiver::new(rules).recv(&theirs));
    let sent = sender.send(&s);
    receiver.join().unwrap();
    assert!(sent || s.room_bell.load(Ordering::Relaxed), "lost room");
}

/// A full lane that the receiver closes: the sender sees that, or is rung for.
fn no_wait_for_nobody(rules: Rules) {
    let s = Shared::new();
    let mut sender = Sender::new(rules);
    for _ in 0..SLOTS {
        assert!(sender.send(&s));
    }
    let theirs = s.clone();
    let receiver = thread::spawn(move || Receiver::new(rules).close(&theirs));
    let done = sender.await_room(&s);
    receiver.join().unwrap();
    assert!(
        done || s.room_bell.load(Ordering::Relaxed),
        "wait for nobody"
    );
}

/// A message, then the end: the receiver never takes the end for the message.
fn no_early_end(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        let mut sender = Sender::new(rules);
        sender.send(&theirs);
        theirs.closed.store(sender.pos + 1, Ordering::Release);
    });
    let mut receiver = Receiver::new(rules);
    if !receiver.recv(&s) {
        let closed = s.closed.load(Ordering::Acquire);
        let ended = if rules.end_says_how_many {
            closed == receiver.pos + 1
        } else {
            closed != 0
        };
        assert!(!ended, "early end");
    }
    sender.join().unwrap();
}

/// The peer closes the lane, and a thread sees the socket end: that is no sudden end.
fn no_sudden_end(rules: Rules) {
    let s = Shared::new();
    let theirs = s.clone();
    let sender = thread::spawn(move || {
        theirs.closed.store(1, Ordering::Release);
        theirs.gone.store(true, Ordering::Release);
    });
    let early = s.closed.load(Ordering::Acquire);
    let gone = s.gone.load(Ordering::Acquire);
    let closed = if rules.receiver_loads_closed_last {
        s.closed.load(Ordering::Acquire)
    } else {
        early
    };
    assert!(!gone || closed != 0, "sudden end");
    sender.join().unwrap();
}

type Case = (&'static str, fn(Rules), Rules, Option<&'static str>);

pub fn cases() -> Vec<Case> {
    const WAKE: Option<&str> = Some("lost wake-up");
    const ROOM: Option<&str> = Some("lost room");
    const HALF: Option<&str> = Some("half a message");
    const NOBODY: Option<&str> = Some("wait for nobody");
    let without = |change: fn(&mut Rules)| {
        let mut rules = RULES;
        change(&mut rules);
        rules
    };
    vec![
        ("lane, one sleep", no_lost_wake_up, RULES, None),
        ("lane, two sleeps", no_lost_second_wake_up, RULES, None),
        ("lanes, two sleeps", no_lost_wake_up_of_a_set, RULES, None),
        ("lane, two slots", no_half_message, RULES, None),
        ("lane, no room", no_lost_room, RULES, None),
        ("lane, end", no_early_end, RULES, None),
        ("lane, end and no room", no_wait_for_nobody, RULES, None),
        ("lane, end and socket", no_sudden_end, RULES, None),
        (
            "sender without its full barrier before it reads asleep",
            no_lost_wake_up,
            without(|r| r.sender_fences_before_asleep = false),
            WAKE,
        ),
        (
            "receiver without its full barrier after it stored asleep",
            no_lost_wake_up,
            without(|r| r.receiver_fences_after_asleep = false),
            WAKE,
        ),
        (
            "receiver that does not look again before it sleeps",
            no_lost_wake_up,
            without(|r| r.receiver_looks_again = false),
            WAKE,
        ),
        (
            "sleeps without numbers",
            no_lost_second_wake_up,
            without(|r| r.sleeps_have_numbers = false),
            WAKE,
        ),
        (
            "sleeps of a set without numbers",
            no_lost_wake_up_of_a_set,
            without(|r| r.sleeps_have_numbers = false),
            WAKE,
        ),
        (
            "set without its full barrier after it stored asleep",
            no_lost_wake_up_of_a_set,
            without(|r| r.receiver_fences_after_asleep = false),
            WAKE,
        ),
        (
            "sender without its full barrier before it reads asleep of a set",
            no_lost_wake_up_of_a_set,
            without(|r| r.sender_fences_before_asleep = false),
            WAKE,
        ),
        (
            "set that does not look again before it sleeps",
            no_lost_wake_up_of_a_set,
            without(|r| r.receiver_looks_again = false),
            WAKE,
        ),
        (
            "sender that does not release the number of a message",
            no_half_message,
            without(|r| r.sender_releases_seq = false),
            HALF,
        ),
        (
            "receiver that does not acquire the number of a message",
            no_half_message,
            without(|r| r.receiver_acquires_seq = false),
            HALF,
        ),
        (
            "sender that does not look for room",
            no_half_message,
            without(|r| r.sender_looks_for_room = false),
            HALF,
        ),
        (
            "sender without its full barrier after it stored room",
            no_lost_room,
            without(|r| r.sender_fences_after_room = false),
            ROOM,
        ),
        (
            "receiver without its full barrier before it reads room",
            no_lost_room,
            without(|r| r.receiver_fences_before_room = false),
            ROOM,
        ),
        (
            "sender that does not look again before it waits for room",
            no_lost_room,
            without(|r| r.sender_looks_again = false),
            ROOM,
        ),
        (
            "sender that does not look for the end before it waits for room",
            no_wait_for_nobody,
            without(|r| r.sender_looks_for_the_end = false),
            NOBODY,
        ),
        (
            "sender without its full barrier before it looks for the end",
            no_wait_for_nobody,
            without(|r| r.sender_fences_after_room = false),
            NOBODY,
        ),
        (
            "end without its full barrier before it reads room",
            no_wait_for_nobody,
            without(|r| r.end_fences_before_room = false),
            NOBODY,
        ),
        (
            "end that does not say how many messages there were",
            no_early_end,
            without(|r| r.end_says_how_many = false),
            Some("early end"),
        ),
        (
            "receiver that loads closed before it knows of the end",
            no_sudden_end,
            without(|r| r.receiver_loads_closed_last = false),
            Some("sudden end"),
        ),
    ]
}
