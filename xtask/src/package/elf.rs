//! On which systems a built program runs: whether it needs a loader, and which version of the C library. Wrong bytes are an error.

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection};

/// Libraries that every Linux distribution has (those that PEP 600 lets a wheel use).
const EVERYWHERE: &[&str] =
    &["libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];

/// Whether these are the bytes of an ELF file.
pub(super) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The version 2.N of glibc that a program needs; nothing for a static one.
///
/// # Errors
/// If it is no x86-64 ELF file, or needs a library that a distribution may lack.
pub(super) fn glibc(bytes: &[u8]) -> Result<Option<u32>> {
    let file = object::File::parse(bytes).context("no ELF file")?;
    ensure!(file.architecture() == object::Architecture::X86_64, "not for x86-64");
    if file.section_by_name(".interp").is_none() {
        return Ok(None);
    }
    let names = file.section_by_name(".dynstr").context("no .dynstr")?.data().context(".dynstr")?;
    let mut newest = 0;
    for name in names.split(|b| *b == 0).filter_map(|n| std::str::from_utf8(n).ok()) {
        if name.contains(".so") {
            ensure!(EVERYWHERE.contains(&name), "it needs {name}, which not every distribution has");
        }
        let version = name.strip_prefix("GLIBC_2.").and_then(|v| v.split('.').next()?.parse().ok());
        newest = newest.max(version.unwrap_or(0));
    }
    ensure!(newest > 0, "it names no version of glibc");
    Ok(Some(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_names_its_glibc() {
        // This test itself is linked as cargo does it.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needed = glibc(&own).unwrap().unwrap();
        assert!((17..100).contains(&needed), "2.{needed}");
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(glibc(b"#!/bin/sh\n").is_err() && !is_elf(b"#!/bin/sh\n"));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(glibc(&own[..100]).is_err());
    }
}
