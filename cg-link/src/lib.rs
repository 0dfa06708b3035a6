//! How programs are linked whose start counts: where that can be done, as static executables at a fixed address. For build
//! scripts.
//!
//! `cg_annotate` runs for a few milliseconds, so what happens before `main` counts: relocations (most of them in tables of
//! regular expressions that are never used), and the loader with its libraries. Cargo has no setting for that which a package can carry to whoever installs it, so the linker is told here.
//! Invariant: where anything that is needed is missing, or a program is built for another machine, it is linked as usual.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a Rust program on Linux is linked with, and the archive that has the same.
const LIBRARIES: [(&str, &str); 7] = [
    ("libc.so", "libc.a"),
    ("libgcc_s.so", "libgcc_eh.a"),
    ("libm.so", "libm.a"),
    ("libdl.so", "libdl.a"),
    ("librt.so", "librt.a"),
    ("libpthread.so", "libpthread.a"),
    ("libutil.so", "libutil.a"),
];

/// To be called by the build script of a package, for all its programs.
pub fn statically() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str, value: &str| std::env::var(key).is_ok_and(|v| v == value);
    if !target("CARGO_CFG_TARGET_OS", "linux") || !target("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    // Stack and heap still lie at random addresses.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if std::env::var("HOST") == std::env::var("TARGET")
        && let Some(folder) = std::env::var_os("OUT_DIR").map(PathBuf::from)
        && LIBRARIES.iter().all(|(shared, archive)| stand_in(&folder, shared, archive))
    {
        println!("cargo::rustc-link-arg-bins=-static");
        println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
    }
}

/// A linker script by the name of a shared library that leads to an archive: rustc asks for the shared ones by name.
fn stand_in(folder: &Path, shared: &str, archive: &str) -> bool {
    let found = library(archive);
    found.is_some_and(|path| std::fs::write(folder.join(shared), format!("INPUT(\"{}\")\n", path.display())).is_ok())
}

/// Where the linker finds a library. A compiler that does not know the file prints its bare name.
fn library(name: &str) -> Option<PathBuf> {
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(linker).arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}
