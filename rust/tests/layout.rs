// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! The binary interface against the header of C and what its compiler says of it.
//!
//! libkevent/test/layout.c states sizes and offsets, and the build of libkevent checks
//! them against the header. Here those numbers are the expected ones.

use kevent::abi::{self, Call, Change, Entry, RingHeader, WaitArg};
use kevent::abi::{DevCommit, DevCtl, DevGet, DevInit, DevWait};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::{align_of, size_of, MaybeUninit};

const HEADER: &str = include_str!("../../include/uapi/linux/ukevent.h");
const LAYOUT: &str = include_str!("../../libkevent/test/layout.c");
const CALLS: &str = include_str!("../../libkevent/src/api/raw_syscall.h");
const README: &str = include_str!("../README.md");
const EXAMPLE: &str = include_str!("../examples/readme.rs");
/// Of parts of a union, and of memory that the type in Rust leaves out.
const ELSEWHERE: &[&str] = &["ukevent.ptr", "kevent_ring.event"];

macro_rules! offsets {
    ($($c:literal = $type:ident { $($member:ident: $field:ident),* },)*) => {
        [$($(({
            let value = MaybeUninit::<$type>::uninit();
            let base = value.as_ptr();
            // SAFETY: computes an address inside of the value, and reads nothing.
            let member = unsafe { std::ptr::addr_of!((*base).$field) };
            (concat!($c, ".", stringify!($member)), member as usize - base as usize)
        }),)*)*]
    };
}

fn offsets() -> BTreeMap<&'static str, usize> {
    offsets! {
        "ukevent" = Entry {
            id: id, type: kind, event: event, req_flags: req_flags, ret_flags: ret_flags,
            ret_data: ret_data, user: user
        },
        "kevent_ring" = RingHeader {
            ring_kidx: kidx, ring_flags: flags, __pad0: pad0, ring_uidx: uidx, __pad1: pad1
        },
        "kevent_change" = Change { uk: uk, cmd: cmd, result: result },
        "kevent_wait_arg" = WaitArg {
            size: size, clockid: clockid, min_nr: min_nr, sigsetsize: sigsetsize,
            sigmask: sigmask, min_wait_ns: min_wait_ns, changes: changes,
            nr_changes: nr_changes, max_running: max_running
        },
        "kevent_call" = Call {
            nr: nr, on_error: on_error, on_zero: on_zero, on_value: on_value, flags: flags,
            result: result, args: args
        },
        "kevent_dev_init" = DevInit { ring: ring, ring_size: ring_size, flags: flags },
        "kevent_dev_ctl" = DevCtl { cmd: cmd, num: num, arg: arg },
        "kevent_dev_get" = DevGet {
            min_nr: min_nr, max_nr: max_nr, timeout: timeout, buf: buf, flags: flags,
            reserved: reserved
        },
        "kevent_dev_wait" = DevWait {
            num: num, old_kidx: old_kidx, timeout: timeout, flags: flags,
            reserved: reserved, arg: arg
        },
        "kevent_dev_commit" = DevCommit { uidx: uidx },
    }
    .into()
}

/// The words in parentheses after each line that begins with `name`.
fn statements(name: &str) -> Vec<Vec<&'static str>> {
    let begin = format!("{}(", name);
    let lines = LAYOUT.lines().filter_map(|line| line.strip_prefix(begin.as_str()));
    lines
        .filter_map(|line| line.strip_suffix(");"))
        .map(|line| line.trim_start_matches("struct ").split(", ").collect())
        .collect()
}

#[test]
fn offsets_are_those_of_c() {
    let stated: BTreeMap<String, usize> = statements("OFFSET")
        .into_iter()
        .map(|words| (format!("{}.{}", words[0], words[1]), words[2].parse().unwrap()))
        .filter(|(name, _)| !ELSEWHERE.contains(&name.as_str()))
        .collect();
    let ours: BTreeMap<String, usize> =
        offsets().into_iter().map(|(name, offset)| (name.to_string(), offset)).collect();
    assert!(stated.len() > 20);
    assert_eq!(ours, stated);
}

#[test]
fn sizes_are_those_of_c() {
    let stated: BTreeMap<&str, usize> = statements("SIZE")
        .into_iter()
        .map(|words| (words[0], words[1].parse().unwrap()))
        .collect();
    let ours = BTreeMap::from([
        ("kevent_id", size_of::<[u32; 2]>()),
        ("ukevent", size_of::<Entry>()),
        ("kevent_ring", size_of::<RingHeader>()),
        ("kevent_change", size_of::<Change>()),
        ("kevent_wait_arg", size_of::<WaitArg>()),
        ("kevent_call", size_of::<Call>()),
        ("kevent_dev_init", size_of::<DevInit>()),
        ("kevent_dev_ctl", size_of::<DevCtl>()),
        ("kevent_dev_get", size_of::<DevGet>()),
        ("kevent_dev_wait", size_of::<DevWait>()),
        ("kevent_dev_commit", size_of::<DevCommit>()),
    ]);
    assert_eq!(ours, stated);
    assert_eq!(size_of::<Entry>(), 8 * abi::ENTRY_WORDS);
    assert_eq!([align_of::<Entry>(), align_of::<RingHeader>()], [8, 8]);
    assert_eq!([align_of::<Change>(), align_of::<WaitArg>()], [8, 8]);
}

/// The value of a number of C, or of a shift of two.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches('(').trim_end_matches(')');
    if let Some((left, right)) = text.split_once("<<") {
        return Some(number(left.trim())? << number(right.trim())?);
    }
    let text = text.trim_end_matches(['U', 'L']);
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The bytes of a type of C.
fn size(kind: &str) -> Option<u64> {
    match kind {
        "__u32" => Some(4),
        "__u64" => Some(8),
        _ => {
            let name = kind.strip_prefix("struct ")?;
            let stated = statements("SIZE");
            stated.iter().find(|words| words[0] == name)?[1].parse().ok()
        }
    }
}

/// The value of `_IOW(type, nr, size)` or `_IOR()`.
fn ioctl(text: &str) -> Option<u64> {
    let (rest, kind_of_data) = text.strip_suffix(')')?.rsplit_once(", ")?;
    let bytes = size(kind_of_data)?;
    let (direction, rest) = rest.split_once('(')?;
    let direction = match direction {
        "_IOW" => 1,
        "_IOR" => 2,
        _ => return None,
    };
    let (kind, nr) = rest.split_once(", ")?;
    Some(direction << 30 | bytes << 16 | number(kind)? << 8 | number(nr)?)
}

/// Names and values of the constants in the header; functions have no value.
fn constants() -> BTreeMap<&'static str, u64> {
    let lines = HEADER.lines().filter_map(|line| line.strip_prefix("#define KEVENT_"));
    lines
        .filter(|line| !line.split_whitespace().next().unwrap().contains('('))
        .filter(|line| !line.contains('"'))
        .map(|line| {
            let line = line.split("/*").next().unwrap().trim();
            let (name, value) = line.split_once(char::is_whitespace).unwrap();
            let value = number(value.trim()).or_else(|| ioctl(value.trim()));
            (name, value.unwrap_or_else(|| panic!("what is the value of {}?", line)))
        })
        .collect()
}

#[test]
fn constants_are_those_of_c() {
    let ours: BTreeMap<&str, u64> = abi::ALL.iter().copied().collect();
    assert_eq!(ours.len(), abi::ALL.len());
    assert_eq!(ours, constants());
}

/// A structure that is new in C has to be added here.
#[test]
fn structures_are_those_of_c() {
    let names: BTreeSet<&str> = HEADER
        .lines()
        .map(|line| line.split("/*").next().unwrap().trim_end())
        .filter_map(|line| line.strip_prefix("struct ")?.strip_suffix(" {"))
        .collect();
    let stated: BTreeSet<&str> =
        statements("SIZE").into_iter().map(|words| words[0]).collect();
    assert_eq!(stated, names);
}

#[test]
fn system_calls_are_those_of_c() {
    let stated: Vec<usize> = CALLS
        .lines()
        .filter_map(|line| line.strip_prefix("#define __NR_kevent_")?.split("+ ").nth(1))
        .map(|digits| digits.trim_end_matches(')').parse().unwrap())
        .collect();
    let ours = [
        abi::SYS_INIT,
        abi::SYS_CTL,
        abi::SYS_GET_EVENTS,
        abi::SYS_WAIT,
        abi::SYS_COMMIT,
        abi::SYS_CALL,
    ];
    assert_eq!(ours, stated[..]);
}

#[test]
fn the_program_of_the_readme_is_the_example() {
    let (_licence, program) = EXAMPLE.split_once('\n').unwrap();
    assert!(README.contains(program));
    assert!(program.lines().count() <= 31, "{} lines", program.lines().count());
}
