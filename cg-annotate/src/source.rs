//! Source files beside their counts: which can be shown, and what each line of them costs.
//!
//! A file is shown only if all files that its counts came from can be read and are the same.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::SystemTime;

use cg_cli::source_map::place;
use cg_cli::source_text;

use crate::counts::add;
use crate::model::{Model, Outer, Sums, UNKNOWN};

/// A file above the threshold, with what there is to print.
pub(crate) struct Source {
    pub(crate) name: Vec<u8>,
    /// The files whose counts it carries; without renaming just itself.
    pub(crate) originals: Vec<Vec<u8>>,
    /// Counts by line; line 0 is "unknown".
    pub(crate) lines: BTreeMap<u64, Sums>,
    pub(crate) text: Text,
    /// Profiles that are older than all the originals.
    pub(crate) outdated: Vec<String>,
}

/// The text of a source file, or why there is none.
pub(crate) enum Text {
    Known(Vec<u8>),
    Unreadable,
    NotIdentical,
    /// What it was before and what it is, where the two sides of a difference are looked at apart.
    Changed([Vec<u8>; 2]),
}

/// Where the counts of the profile went, in the order of the report.
pub(crate) struct Coverage {
    /// Sums, as in [`LABELS`].
    pub(crate) sums: [Sums; 6],
}

/// What the sums of [`Coverage`] are. The blanks, also the one at the end, are those of the reference.
pub(crate) const LABELS: [&str; 6] = [
    "  annotated: files known & above threshold & readable, line numbers known",
    "  annotated: files known & above threshold & readable, line numbers unknown",
    "unannotated: files known & above threshold & two or more non-identical",
    "unannotated: files known & above threshold & unreadable ",
    "unannotated: files known & below threshold",
    "unannotated: files unknown",
];

/// The files to be annotated, by name, and the sums of all others.
pub(crate) fn plan<'a>(model: &'a Model, files: &[Outer<'a>]) -> anyhow::Result<(Vec<&'a [u8]>, Coverage)> {
    let mut shown: Vec<&[u8]> = files.iter().map(|file| file.name).filter(|name| *name != UNKNOWN).collect();
    shown.sort_unstable();
    let mut coverage = Coverage { sums: std::array::from_fn(|_| model.zeros()) };
    for file in model.profile.files() {
        let sum = if file.name() == UNKNOWN {
            &mut coverage.sums[5]
        } else if shown.binary_search(&file.name()).is_err() {
            &mut coverage.sums[4]
        } else {
            continue;
        };
        for function in file.functions() {
            function.rows().add_to(sum)?;
        }
    }
    Ok((shown, coverage))
}

impl Coverage {
    /// Books the counts of a file that was annotated, or could not be.
    pub(crate) fn add(&mut self, source: &Source) -> anyhow::Result<()> {
        for (line, counts) in &source.lines {
            let kind = match source.text {
                Text::Known(_) if *line > 0 => 0,
                Text::Known(_) => 1,
                Text::NotIdentical => 2,
                Text::Changed(_) if *line > 0 => 0,
                Text::Changed(_) => 1,
                Text::Unreadable => 3,
            };
            add(&mut self.sums[kind], counts)?;
        }
        Ok(())
    }
}

impl Source {
    /// Looks at the files behind `name`.
    pub(crate) fn open(model: &Model, name: &[u8]) -> anyhow::Result<Self> {
        let originals = model.originals_of(name);
        let lines = model.lines(name)?;
        let read: io::Result<Vec<(Vec<u8>, SystemTime)>> =
            originals.iter().map(|name| source_text::read(&place(&model.source_map, name))).collect();
        let (text, oldest) = match read {
            Err(_) => (Text::Unreadable, None),
            Ok(texts) if texts.windows(2).any(|pair| pair[0].0 != pair[1].0) => {
                (changed(model, name, &originals, texts).map_or(Text::NotIdentical, Text::Changed), None)
            }
            Ok(texts) => {
                let oldest = texts.iter().map(|(_, time)| *time).min();
                (texts.into_iter().next().map_or(Text::Unreadable, |(text, _)| Text::Known(text)), oldest)
            }
        };
        let mut outdated = Vec::new();
        if let Some(oldest) = oldest {
            for (input, _) in &model.inputs {
                // Standard input has no time, and a name may have gone since it was read.
                if fs::metadata(input).and_then(|meta| meta.modified()).is_ok_and(|time| oldest > time) {
                    outdated.push(input.clone());
                }
            }
        }
        Ok(Self { name: name.to_vec(), originals, lines, text, outdated })
    }
}

/// The texts of `originals` as those of the two sides, if each side has one of them.
fn changed(
    model: &Model,
    name: &[u8],
    originals: &[Vec<u8>],
    texts: Vec<(Vec<u8>, SystemTime)>,
) -> Option<[Vec<u8>; 2]> {
    let pair = model.pair.as_ref().filter(|pair| pair.sources)?;
    let mut texts: Vec<Vec<u8>> = texts.into_iter().map(|(text, _)| text).collect();
    let mut of = |side: usize| {
        let names = pair.originals[side].get(name)?;
        let only = names.first().filter(|_| names.len() == 1)?;
        Some(std::mem::take(&mut texts[originals.iter().position(|original| original == only)?]))
    };
    // Two names of different contents, and one for each side: they are not the same one.
    Some([of(0)?, of(1)?])
}
