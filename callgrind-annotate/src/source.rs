//! Source files: which are shown, where they are, and which of their lines.
//!
//! They are looked for as they are named, then in the folders of `--include`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use cg_cli::source_map::{self, Mapping};
use cg_cli::source_text;

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
    mappings: &[Mapping],
) -> anyhow::Result<Sources<'a>> {
    static NO_LINES: BTreeMap<u32, SourceLine> = BTreeMap::new();
    let written = fs::metadata(&model.input).and_then(|meta| meta.modified()).ok();
    let open = |name: &[u8], wanted| {
        let found = folders.iter().map(Some).rev().chain([None]).rev().find_map(|folder| {
            let path = source_map::place(mappings, name);
            let path = folder.map_or_else(|| path.clone(), |folder| folder.join(&path));
            source_text::read(&path).ok().map(|found| (found, folder))
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
