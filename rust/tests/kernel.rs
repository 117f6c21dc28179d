// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Tests of queues, on whatever makes them here: the kernel, its module, or epoll.
//!
//! Prints KTAP. The tests run one after the other, because signals and children are
//! those of the process. A test that does not end in time has failed. What a host lacks is
//! skipped there, see cases/mod.rs; without libkevent and kevent everything is.

mod cases;

use kevent::Queue;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{env, panic, process, thread};

const TIME: Duration = Duration::from_secs(60);

/// Runs a test in a thread of its own; the error says what went wrong.
fn run(test: cases::Test) -> Result<(), String> {
    let (done, result) = channel();
    let thread = thread::spawn(move || {
        let outcome = panic::catch_unwind(test);
        // The receiver waits unless the time is over
        let _ = done.send(match outcome {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("panicked".into()),
        });
    });
    match result.recv_timeout(TIME) {
        Ok(outcome) => {
            let _ = thread.join();
            outcome
        }
        Err(_) => Err("no end in time".into()),
    }
}

/// The name of what makes queues. The crate without libkevent has less of the module.
fn host() -> Result<String, String> {
    let queue = Queue::new(2).map_err(|error| format!("no kevent: {}", error))?;
    let raw = if cfg!(feature = "libkevent") { "" } else { "raw " };
    Ok(format!("{}{}", raw, queue.backend()))
}

/// Why a test does not run.
fn skip(host: &Result<String, String>, name: &str) -> Option<String> {
    match host {
        Ok(host) => cases::exception(host, name)
            .map(|why| format!("an exception of {}: {}", host, why)),
        Err(why) => Some(why.clone()),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    cases::child(&arguments);
    let wanted: Vec<&String> =
        arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let tests: Vec<_> = cases::ALL
        .iter()
        .copied()
        .flatten()
        .filter(|(name, _)| {
            wanted.is_empty() || wanted.iter().any(|word| name.contains(*word))
        })
        .collect();
    let host = host();
    let (mut passed, mut failed) = (0, 0);
    println!("# on {}", host.as_deref().unwrap_or("nothing"));
    println!("1..{}", tests.len());
    for (number, (name, test)) in (1..).zip(&tests) {
        println!("# run {}", name);
        if let Some(why) = skip(&host, name) {
            println!("ok {} {} # SKIP {}", number, name, why);
            continue;
        }
        match run(*test) {
            Ok(()) => {
                passed += 1;
                println!("ok {} {}", number, name);
            }
            Err(why) => {
                failed += 1;
                println!("# {}", why);
                println!("not ok {} {}", number, name);
            }
        }
    }
    let skipped = tests.len() - passed - failed;
    println!("# {} passed, {} failed, {} skipped", passed, failed, skipped);
    process::exit(i32::from(failed > 0));
}
