//! Source files: which are shown, where they are, and which of their lines.
//!
//! Only regular files are read: a profile may name anything, a device or a pipe too. They are looked for as they are
//! named, then in the folders of `--include`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};

use crate::model::{Model, SourceLine, UNKNOWN};

/// A source file to print.
pub(crate) struct Source<'a> {
    /// Its name in the profile.
    pub(crate) name: Vec<u8>,
    /// How it is called in the report: with the folder where it was found.
    pub(crate) title: Vec<u8>,
    pub(crate) text: Vec<u8>,
    /// Whether it is younger than the profile.
    pub(crate) newer: bool,
    /// Whether it was asked for by name.
    pub(crate) wanted: bool,
    pub(crate) lines: &'a BTreeMap<u32, SourceLine>,
}

/// What can be shown and what cannot.
pub(crate) struct Sources<'a> {
    pub(crate) found: Vec<Source<'a>>,
    pub(crate) missing: Vec<Vec<u8>>,
}

/// Finds the files asked for, in that order, and then those of the entries shown, by name.
pub(crate) fn find<'a>(
    model: &'a Model,
    shown: &[usize],
    auto: bool,
    wanted: &[Vec<u8>],
    folders: &[PathBuf],
) -> anyhow::Result<Sources<'a>> {
    static NO_LINES: BTreeMap<u32, SourceLine> = BTreeMap::new();
    let written = fs::metadata(&model.input).and_then(|meta| meta.modified()).ok();
    let open = |name: &[u8], wanted| {
        let found = folders.iter().map(Some).rev().chain([None]).rev().find_map(|folder| {
            let path = Path::new(OsStr::from_bytes(name));
            let path = folder.map_or_else(|| path.to_owned(), |folder| folder.join(path));
            read_source(&path).ok().map(|found| (found, folder))
        });
        found.map(|((text, time), folder)| {
            let title = match folder {
                Some(folder) => [folder.as_os_str().as_bytes(), b"/ + ", name].concat(),
                None => name.to_vec(),
            };
            let newer = written.is_some_and(|written| time > written);
            Source {
                name: name.to_vec(),
                title,
                text,
                newer,
                wanted,
                lines: model.sources.get(name).unwrap_or(&NO_LINES),
            }
        })
    };
    let mut sources = Sources { found: Vec::new(), missing: Vec::new() };
    for name in wanted {
        match open(name, true) {
            Some(source) => sources.found.push(source),
            None => bail!("{}: no such source file here or in the folders of --include", String::from_utf8_lossy(name)),
        }
    }
    if auto {
        let files: BTreeSet<&[u8]> = shown.iter().filter_map(|at| model.entries[*at].file.as_deref()).collect();
        for name in files {
            if name == UNKNOWN || name.is_empty() || wanted.iter().any(|wanted| wanted == name) {
                continue;
            }
            match open(name, false) {
                Some(source) => sources.found.push(source),
                None => sources.missing.push(name.to_vec()),
            }
        }
    }
    Ok(sources)
}

/// Refuses folders that are not there.
pub(crate) fn check_folders(folders: &[PathBuf]) -> anyhow::Result<()> {
    for folder in folders {
        let meta = fs::metadata(folder).with_context(|| format!("--include {}", folder.display()))?;
        if !meta.is_dir() {
            bail!("--include {}: this is no folder", folder.display());
        }
    }
    Ok(())
}

fn read_source(path: &Path) -> io::Result<(Vec<u8>, SystemTime)> {
    // Looked at before it is opened: opening a pipe would wait.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut file = File::open(path)?;
    let time = file.metadata()?.modified()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((text, time))
}

/// The lines of a text, from 1, without their ends.
pub(crate) fn text_lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = (!text.is_empty()).then(|| body.split(|byte| *byte == b'\n')).into_iter().flatten();
    (1..).zip(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Ranges of lines to print: every line with counts and `context` lines around it, joined where they overlap.
pub(crate) fn ranges(lines: &BTreeMap<u32, SourceLine>, context: u64) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for line in lines.keys().filter(|line| **line > 0).map(|line| u64::from(*line)) {
        let (low, high) = (line.saturating_sub(context).max(1), line.saturating_add(context));
        match ranges.last_mut() {
            Some((_, last)) if low <= *last => *last = high,
            _ => ranges.push((low, high)),
        }
    }
    ranges
}
