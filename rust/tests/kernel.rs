// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Tests that need a kernel with kevent. Without one they are skipped.
//!
//! Prints KTAP. The tests run one after the other, because signals and children are
//! those of the process. A test that does not end in time has failed. One that ends with what
//! the module says of the types that it lacks is skipped there.

mod cases;

use kevent::abi::DEVICE;
use std::error::Error;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{env, io, panic, process, thread};

const TIME: Duration = Duration::from_secs(60);

enum Failure {
    Absent,
    Wrong(String),
}

/// ENOSYS for a type.
fn failure(error: Box<dyn Error>) -> Failure {
    let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    if Path::new(DEVICE).exists() && number == Some(38) {
        return Failure::Absent;
    }
    Failure::Wrong(error.to_string())
}

/// Runs a test in a thread of its own; the error says what went wrong.
fn run(test: cases::Test) -> Result<(), Failure> {
    let (done, result) = channel();
    let thread = thread::spawn(move || {
        let outcome = panic::catch_unwind(test);
        // The receiver waits unless the time is over
        let _ = done.send(match outcome {
            Ok(result) => result.map_err(failure),
            Err(_) => Err(Failure::Wrong("panicked".into())),
        });
    });
    match result.recv_timeout(TIME) {
        Ok(outcome) => {
            let _ = thread.join();
            outcome
        }
        Err(_) => Err(Failure::Wrong("no end in time".into())),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    cases::child(&arguments);
    let wanted: Vec<&String> =
        arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let tests: Vec<_> = cases::ALL
        .iter()
        .filter(|(name, _)| {
            wanted.is_empty() || wanted.iter().any(|word| name.contains(*word))
        })
        .collect();
    let skip = kevent::supported().err();
    let (mut passed, mut failed) = (0, 0);
    println!("1..{}", tests.len());
    for (number, (name, test)) in (1..).zip(&tests) {
        println!("# run {}", name);
        if let Some(error) = &skip {
            println!("ok {} {} # SKIP no kevent: {}", number, name, error);
            continue;
        }
        match run(*test) {
            Ok(()) => {
                passed += 1;
                println!("ok {} {}", number, name);
            }
            Err(Failure::Absent) => {
                println!("ok {} {} # SKIP absent from the module", number, name);
            }
            Err(Failure::Wrong(why)) => {
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
