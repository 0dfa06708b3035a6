//! Source files that become part of the report: the most expensive first, as long as there is room.
//!
//! A profile may name any file, and its report may go to others: only regular files of text are taken, and only those
//! that rows name.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cg_cli::source_text;
use cg_format::callgrind::{FileId, Names};
use cg_model::UNKNOWN;

use crate::load::Side;
use crate::pack::Pack;

/// What became of a source file that rows name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its text is in the report.
    Embedded,
    /// Likewise, but it was changed after the profile was written.
    Newer,
    /// It was not found.
    Missing,
    /// It is no text.
    Binary,
    /// There was no room for it.
    TooLarge,
}

impl State {
    /// How the page calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Embedded => "ok",
            Self::Newer => "newer",
            Self::Missing => "missing",
            Self::Binary => "binary",
            Self::TooLarge => "large",
        }
    }
}

/// A source file that rows name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: FileId,
    pub(crate) state: State,
    /// Where it was found.
    pub(crate) path: Option<PathBuf>,
}

/// Packs the texts of files as `src.NUMBER`; gives what became of each.
pub(crate) fn pack(
    pack: &mut Pack,
    names: &Names,
    side: &Side,
    event: usize,
    folders: &[PathBuf],
    limit: u64,
) -> io::Result<Vec<Source>> {
    let mut costs: HashMap<FileId, i64> = HashMap::new();
    for row in &side.detail.rows {
        let cost = costs.entry(row.at().file).or_default();
        *cost = cost.saturating_add(side.detail.row_cost(row, event));
    }
    let mut files: Vec<(FileId, i64)> = costs.into_iter().collect();
    files.sort_by_key(|(file, cost)| (std::cmp::Reverse(*cost), names.file_name(*file)));
    let written = side.inputs.iter().filter_map(|(name, ..)| std::fs::metadata(name).ok()?.modified().ok()).min();
    let mut room = limit;
    let mut states = Vec::new();
    for (file, _) in files {
        let name = names.file_name(file);
        if name == UNKNOWN || name.is_empty() {
            continue;
        }
        let (state, path) = one(pack, name, file, folders, written, &mut room)?;
        states.push(Source { file, state, path });
    }
    Ok(states)
}

/// The text of a file that is no row's, if it can be read.
pub(crate) fn read(name: &[u8], folders: &[PathBuf]) -> Option<Vec<u8>> {
    candidates(name, folders).find_map(|path| Some(source_text::read(&path).ok()?.0))
}

/// Where a file may be.
fn candidates(name: &[u8], folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let path = Path::new(OsStr::from_bytes(name));
    std::iter::once(path.to_owned()).chain(folders.iter().map(move |folder| folder.join(path)))
}

fn one(
    pack: &mut Pack,
    name: &[u8],
    file: FileId,
    folders: &[PathBuf],
    written: Option<SystemTime>,
    room: &mut u64,
) -> io::Result<(State, Option<PathBuf>)> {
    let mut state = State::Missing;
    for candidate in candidates(name, folders) {
        let Ok(meta) = std::fs::metadata(&candidate) else { continue };
        if meta.is_file() && meta.len() > *room {
            state = State::TooLarge;
            continue;
        }
        let Ok((text, time)) = source_text::read(&candidate) else { continue };
        if text.contains(&0) {
            state = State::Binary;
            continue;
        }
        // The file may have grown since.
        if text.len() as u64 > *room {
            return Ok((State::TooLarge, None));
        }
        *room -= text.len() as u64;
        pack.text(format!("src.{}", file.index()), String::from_utf8_lossy(&text).into_owned().into_bytes())?;
        let newer = written.is_some_and(|written| time > written);
        return Ok((if newer { State::Newer } else { State::Embedded }, Some(candidate)));
    }
    Ok((state, None))
}
