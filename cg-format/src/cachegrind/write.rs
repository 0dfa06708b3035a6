//! Writes cachegrind profiles.
//!
//! The output depends on the profile alone, not on the order of insertion when it is sorted, nor on addresses or hash
//! seeds. What is written can always be read back: a line break inside a name, which the format cannot hold, is written
//! as `\n`, a carriage return at its end as `\r`.

use std::io::{self, Write};

use super::profile::{FileEntry, FunctionEntry, Profile};
use super::rows::Rows;
use crate::text::out::Lines;

/// Why a profile was not written.
pub type WriteError = io::Error;

/// Writes a profile the way a run of the tool does: files, functions and lines in ascending order of their bytes and
/// numbers, all counts of every row, also those of rows that are all zero.
///
/// As in the reference's files, the `events:` line of a run with the cache simulation and without the branch simulation
/// ends with a blank.
///
/// # Errors
/// Whatever `out` answers.
///
/// # Example
/// ```
/// let mut profile = cg_format::cachegrind::Profile::new(["Ir"]);
/// profile.header.cmd = b"true".to_vec();
/// profile.add(b"b.c", b"g", 2, &[1]).unwrap();
/// profile.add(b"a.c", b"f", 9, &[5]).unwrap();
/// let mut out = Vec::new();
/// cg_format::cachegrind::write(&mut out, &profile).unwrap();
/// assert_eq!(out, b"cmd: true\nevents: Ir\nfl=a.c\nfn=f\n9 5\nfl=b.c\nfn=g\n2 1\nsummary: 6\n");
/// ```
pub fn write(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, profile.header.events.last().is_some_and(|last| last == crate::events::DLMW.name))?;
    writer.sorted(profile)?;
    writer.summary(profile.total())
}

/// Writes what stands before the rows of a profile, as [`write`] does.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_header(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, profile.header.events.last().is_some_and(|last| last == crate::events::DLMW.name))?;
    writer.lines.finish()
}

/// Writes the rows of a profile, as [`write`] does, and a summary that says `total` instead of their sum: the rows stand behind
/// others.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_rows(out: &mut dyn Write, profile: &Profile, total: &[i128]) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.sorted(profile)?;
    writer.summary(total)
}

/// Writes a profile in the order in which its files, functions and lines first came.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_stored(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, false)?;
    for file in profile.files() {
        writer.file(file, file.functions(), false, |_, _| ())?;
    }
    writer.summary(profile.total())
}

/// Writes a profile whose rows are whole functions, in ascending order, the file's name before each of them.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_functions(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, false)?;
    let mut files: Vec<FileEntry<'_>> = profile.files().collect();
    files.sort_by_key(|file| file.name());
    for file in files {
        writer.file(file, sorted_functions(file), true, |_, _| ())?;
    }
    writer.summary(profile.total())
}

fn sorted_functions(file: FileEntry<'_>) -> Vec<FunctionEntry<'_>> {
    let mut functions: Vec<FunctionEntry<'_>> = file.functions().collect();
    functions.sort_by_key(|function| function.name());
    functions
}

/// A profile on its way out.
struct Writer<'o> {
    lines: Lines<'o>,
}

impl<'o> Writer<'o> {
    fn new(out: &'o mut dyn Write) -> Self {
        Self { lines: Lines::new(out) }
    }

    fn header(&mut self, profile: &Profile, trailing_blank: bool) -> io::Result<()> {
        for desc in &profile.header.desc {
            self.lines.line(b"desc: ", desc)?;
        }
        self.lines.line(b"cmd: ", &profile.header.cmd)?;
        let mut events = profile.header.events.join(" ");
        if trailing_blank {
            events.push(' ');
        }
        self.lines.line(b"events: ", events.as_bytes())
    }

    /// Writes a file's functions; `arrange` puts the numbers of a function's rows, given in the stored order, in order.
    fn file<'f>(
        &mut self,
        file: FileEntry<'_>,
        functions: impl IntoIterator<Item = FunctionEntry<'f>>,
        repeat_name: bool,
        arrange: impl Fn(Rows<'_>, &mut [usize]),
    ) -> io::Result<()> {
        let mut named = false;
        let mut order = Vec::new();
        for function in functions.into_iter().filter(|function| !function.rows().is_empty()) {
            if repeat_name || !named {
                self.lines.line(b"fl=", file.name())?;
                named = true;
            }
            self.lines.line(b"fn=", function.name())?;
            let rows = function.rows();
            order.clear();
            order.extend(0..rows.len());
            arrange(rows, &mut order);
            for row in &order {
                if let Some((line, counts)) = rows.narrow(*row) {
                    self.lines.decimal(line);
                    for count in counts {
                        self.lines.byte(b' ').signed(*count);
                    }
                } else {
                    self.lines.decimal(rows.line(*row));
                    for column in 0..rows.width() {
                        self.lines.byte(b' ').wide(rows.count(*row, column));
                    }
                }
                self.lines.end()?;
            }
        }
        Ok(())
    }

    /// All rows, in ascending order.
    fn sorted(&mut self, profile: &Profile) -> io::Result<()> {
        let mut files: Vec<FileEntry<'_>> = profile.files().collect();
        files.sort_by_key(|file| file.name());
        for file in files {
            let functions = sorted_functions(file);
            self.file(file, functions, false, |rows, order| order.sort_by_key(|row| rows.line(*row)))?;
        }
        Ok(())
    }

    fn summary(mut self, total: &[i128]) -> io::Result<()> {
        self.lines.bytes(b"summary:");
        for count in total {
            self.lines.byte(b' ').wide(*count);
        }
        self.lines.end()?;
        self.lines.finish()
    }
}
