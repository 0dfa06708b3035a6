//! The wheel: `pip install` puts the programs into a virtual environment.
//!
//! It is written here, since maturin's way for programs (`bindings = "bin"`) takes those of one crate, and grind's are of several.
//! Programs are its scripts; manual pages, completions and headers are its data, which pip puts below the environment. Wheels
//! know no links, so that `libexec/grind/valgrind` is a copy. The tag says the oldest glibc that every program runs on. `grind` is taken on
//! PyPI, so the distribution has another name.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{Source, VERSION, copy, elf};
use crate::install::{From, items};

/// The name of the distribution, as file names have it.
const NAME: &str = "grind_profiler";

/// A file of the wheel.
struct Member {
    name: String,
    bytes: Vec<u8>,
    mode: u32,
}

pub(super) fn make(source: Source<'_>) -> Result<PathBuf> {
    let Source { root, built, out } = source;
    let mut members = Vec::new();
    // A static program runs wherever the kernel has what it asks for; 2.17 is the oldest that pip has a name for.
    let mut needed = 17;
    let mut all_static = true;
    let scratch = out.join("wheel");
    for item in items(root, built)? {
        let from = match &item.from {
            From::File(from) => from.clone(),
            From::Link(leads) => built.join(Path::new(leads).file_name().context("a name")?),
        };
        let to = scratch.join(&item.to);
        copy(&from, &to, 0o755)?;
        let bytes = std::fs::read(&to)?;
        if elf::is_elf(&bytes) {
            let glibc = elf::glibc(&bytes).with_context(|| from.display().to_string())?;
            needed = needed.max(glibc.unwrap_or(0));
            all_static &= glibc.is_none();
        }
        let place = match item.to.strip_prefix("bin/") {
            Some(program) => format!("scripts/{program}"),
            None => format!("data/{}", item.to),
        };
        let mode = if item.mode == 0 { 0o755 } else { item.mode };
        members.push(Member { name: format!("{NAME}-{VERSION}.data/{place}"), bytes, mode });
    }
    std::fs::remove_dir_all(&scratch)?;
    let mut platforms = vec![format!("manylinux_2_{needed}_x86_64")];
    if all_static {
        platforms.push("musllinux_1_1_x86_64".to_owned());
    }
    let info = format!("{NAME}-{VERSION}.dist-info");
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    let mut file =
        |name: &str, bytes: Vec<u8>| members.push(Member { name: format!("{info}/{name}"), bytes, mode: 0o644 });
    file("METADATA", metadata(&readme).into_bytes());
    let mut text = "Wheel-Version: 1.0\nGenerator: cargo-xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in &platforms {
        let _ = writeln!(text, "Tag: py3-none-{platform}");
    }
    file("WHEEL", text.into_bytes());
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        file(&format!("licenses/{licence}"), std::fs::read(root.join(licence))?);
    }
    let record = record(&members, &info);
    members.push(Member { name: format!("{info}/RECORD"), bytes: record.into_bytes(), mode: 0o644 });
    let package = out.join(format!("{NAME}-{VERSION}-py3-none-{}.whl", platforms.join(".")));
    write(&package, &members).with_context(|| format!("cannot write {}", package.display()))?;
    Ok(package)
}

fn metadata(readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {VERSION}\n\
         Summary: Exact, reproducible instruction profiles of x86-64 Linux programs\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n\
         Keywords: profiler,cachegrind,callgrind,valgrind\nClassifier: Operating System :: POSIX :: Linux\n\
         Classifier: Topic :: Software Development\nDescription-Content-Type: text/markdown\n\n{readme}",
        NAME.replace('_', "-")
    )
}

/// What pip checks, and takes away when it uninstalls: each file with its digest and length.
fn record(members: &[Member], info: &str) -> String {
    let mut text = String::new();
    for member in members {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&member.bytes));
        let _ = writeln!(text, "{},sha256={digest},{}", member.name, member.bytes.len());
    }
    let _ = writeln!(text, "{info}/RECORD,,");
    text
}

fn write(path: &Path, members: &[Member]) -> Result<()> {
    let mut zip = ZipWriter::new(BufWriter::new(File::create(path)?));
    for member in members {
        // Without a time, which is 1980 then, the oldest that a zip file knows.
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file(&member.name, options.unix_permissions(member.mode))?;
        zip.write_all(&member.bytes)?;
    }
    zip.finish()?.flush()?;
    Ok(())
}
