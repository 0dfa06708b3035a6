//! How the program is linked.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str, value: &str| std::env::var(key).is_ok_and(|v| v == value);
    if target("CARGO_CFG_TARGET_OS", "linux") && target("CARGO_CFG_TARGET_ENV", "gnu") {
        // At a fixed address nothing is left to be relocated when the program starts: 14,000 pointers on 70 pages, most of
        // them in tables of regular expressions that are never used. That is a quarter of its start, and a twentieth of what
        // a profile of 1 MB takes. Stack, heap and libraries still lie at random addresses.
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // A library less to be found and mapped: 0.06 of the 0.8 ms that the program takes for an empty profile. Whoever
        // builds for another machine, or has no such file, gets the shared one.
        if std::env::var("HOST") == std::env::var("TARGET") && has_static_unwinder() {
            println!("cargo::rustc-link-lib=static:+whole-archive,-bundle=gcc_eh");
        }
    }
}

/// Whether the linker finds `libgcc_eh.a`. A compiler that does not know the file prints its bare name.
fn has_static_unwinder() -> bool {
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute())
}
