//! A file of results gets to where it was asked for, or, if that cannot be, to where it is not lost.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::reason::reason;

/// What became of a profile.
#[derive(Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is where it was to be.
    AsAsked,
    /// It could not be written there, for this reason, and is here instead.
    Elsewhere(String, PathBuf),
    /// It could not be written anywhere; the first reason.
    Nowhere(String),
}

/// Writes to `path` what `fill` does, or, if that fails, to a new file in `spare`; or in `/tmp`, if `spare` is what `TMPDIR` says and that
/// fails, too. `name` is its name where `path` has none.
pub fn save_text(path: &Path, name: &str, spare: &Path, fill: impl Fn(&mut dyn Write) -> io::Result<()>) -> Saved {
    let Err(error) = cg_format::atomic::write_file(path, 0o600, &fill) else { return Saved::AsAsked };
    let reason = reason(&error.cause);
    let name = path.file_name().map_or_else(|| name.into(), |n| n.to_string_lossy().into_owned());
    let save_in = |folder: &Path| {
        let file = tempfile::Builder::new().prefix(&format!("{name}.")).rand_bytes(6).tempfile_in(folder)?;
        let mut out = BufWriter::new(file.as_file());
        fill(&mut out)?;
        out.flush()?;
        drop(out);
        file.keep().map(|(_, path)| path).map_err(|e| e.error)
    };
    let last = Path::new("/tmp");
    let others = spare != last && spare == std::env::temp_dir();
    match save_in(spare).or_else(|e| if others { save_in(last) } else { Err(e) }) {
        Ok(path) => Saved::Elsewhere(reason, path),
        Err(_) => Saved::Nowhere(reason),
    }
}
