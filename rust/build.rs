// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Links libkevent-ffi, if pkg-config finds it, or compiles the library into the crate.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

type Outcome<T> = Result<T, Box<dyn Error>>;

const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-pthread",
    "-D_GNU_SOURCE",
    "-D_FILE_OFFSET_BITS=64",
    "-D_TIME_BITS=64",
];

fn is_for_this_machine() -> bool {
    env::var_os("HOST") == env::var_os("TARGET")
}

/// A variable of the environment, which the build depends on from now on.
fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={}", name);
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The words for the linker of a library that is at least as new as the crate.
fn installed() -> Option<String> {
    let program = variable("PKG_CONFIG");
    for name in ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        variable(name);
    }
    // Without a word about it, it speaks of this machine.
    let program =
        program.or_else(|| is_for_this_machine().then(|| "pkg-config".to_string()))?;
    let wanted = format!("libkevent-ffi >= {}", env!("CARGO_PKG_VERSION"));
    let done = Command::new(program).args(["--libs", &wanted]).output().ok()?;
    String::from_utf8(done.stdout).ok().filter(|_| done.status.success())
}

fn link(words: &str) {
    for word in words.split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", folder);
        } else if let Some(name) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", name);
        }
    }
}

fn compiler() -> Outcome<String> {
    let target = env::var("TARGET")?;
    let name = format!("CC_{}", target.replace('-', "_"));
    if let Some(program) = variable(&name).or_else(|| variable("CC")) {
        return Ok(program);
    }
    if is_for_this_machine() {
        return Ok("cc".into());
    }
    Err(format!("set {} to a C compiler for {}", name, target).into())
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let paths: Result<Vec<PathBuf>, _> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths?;
    paths.sort();
    Ok(paths)
}

fn with_suffix(folder: &Path, suffix: &str) -> Outcome<Vec<PathBuf>> {
    let mut paths = entries(folder)?;
    paths.retain(|path| path.extension().map_or(false, |found| found == suffix));
    Ok(paths)
}

fn run(command: &mut Command) -> Outcome<()> {
    let done = match command.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(format!("{}: {}", command.get_program().to_string_lossy(), done).into())
}

fn compile() -> Outcome<()> {
    println!("cargo:rerun-if-changed=libkevent");
    let top = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("libkevent");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("libkevent");
    let (compiler, flags) = (compiler()?, variable("CFLAGS").unwrap_or_default());
    let _ = fs::remove_dir_all(&out);
    let mut objects = vec![];
    for folder in entries(&top.join("src"))?.into_iter().filter(|path| path.is_dir()) {
        // Sources of two folders may have the same name.
        let here = out.join(folder.file_name().unwrap_or_default());
        fs::create_dir_all(&here)?;
        let includes = ["include", "src", "uapi"].map(|name| top.join(name));
        run(Command::new(&compiler)
            .args(FLAGS)
            .args(flags.split_whitespace())
            .args(includes.iter().flat_map(|path| ["-I".as_ref(), path.as_os_str()]))
            .arg("-c")
            .args(with_suffix(&folder, "c")?)
            .current_dir(&here))?;
        objects.extend(with_suffix(&here, "o")?);
    }
    let archive = variable("AR").unwrap_or_else(|| "ar".into());
    run(Command::new(archive).arg("crs").arg(out.join("libkevent.a")).args(objects))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=kevent");
    Ok(())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // docs.rs links nothing, and has no compiler for each machine.
    let wanted = env::var_os("CARGO_FEATURE_LIBKEVENT").is_some();
    if !wanted || env::var_os("DOCS_RS").is_some() {
        return;
    }
    if let Some(words) = installed() {
        return link(&words);
    }
    if let Err(error) = compile() {
        eprintln!("kevent: {}; or do without the feature libkevent", error);
        exit(1);
    }
}
