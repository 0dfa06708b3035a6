//! A cachegrind profile in memory.
//!
//! Files, functions and lines keep the order in which they first came, because merging prints them so. Every count
//! that is added is also added to the total, so the total always equals the sum of the rows.

use std::collections::HashMap;
use std::fmt;

use super::rows::Rows;
use crate::count::{TooLarge, sum};

/// The function that counts belong to between an `fl=` line and the first `fn=` line.
pub const UNSPECIFIED: &[u8] = b"<unspecified>";

/// What stands before the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Free text about the run, one line each, such as `I1 cache:         32768 B, 64 B, 8-way associative`.
    pub desc: Vec<Vec<u8>>,
    /// The program and its arguments, separated by single blanks.
    pub cmd: Vec<u8>,
    /// Names of the events, in the order of the counts.
    pub events: Vec<String>,
}

/// A file and its functions.
#[derive(Clone, Debug)]
pub struct FileEntry {
    name: Box<[u8]>,
    functions: Vec<FunctionEntry>,
    finder: Finder,
}

/// A function of a file and its rows.
#[derive(Clone, Debug)]
pub struct FunctionEntry {
    name: Box<[u8]>,
    pub(super) rows: Rows,
}

/// A profile: header, counts by file, function and line, and their total.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What stands before the counts. Its events were fixed when the profile was made.
    pub header: Header,
    files: Vec<FileEntry>,
    finder: Finder,
    total: Vec<i128>,
}

/// Why two profiles cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// The profiles count different events, or the same ones in another order.
    EventsDiffer,
    /// A sum of counts is beyond [`crate::count::LIMIT`].
    TooLarge,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventsDiffer => f.write_str("events in data files don't match"),
            Self::TooLarge => TooLarge.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {}

impl From<TooLarge> for MergeError {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl FileEntry {
    /// The name, as bytes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The functions, in the order in which they first came. One may have no rows.
    #[must_use]
    pub fn functions(&self) -> &[FunctionEntry] {
        &self.functions
    }
}

impl FunctionEntry {
    /// The name, as bytes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The lines and their counts.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }
}

impl Profile {
    /// An empty profile that counts `events`.
    pub fn new<S: Into<String>>(events: impl IntoIterator<Item = S>) -> Self {
        let events: Vec<String> = events.into_iter().map(Into::into).collect();
        Self::with_header(Header { events, ..Header::default() })
    }

    /// An empty profile with this header.
    #[must_use]
    pub fn with_header(header: Header) -> Self {
        let total = vec![0; header.events.len()];
        Self { header, files: Vec::new(), finder: Finder::default(), total }
    }

    /// Adds counts, one for each event, to a line of a function; rows may come in any order and more than once.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum passes [`crate::count::LIMIT`]; the profile is then of no further use.
    ///
    /// # Panics
    /// When the number of counts is not the number of events.
    pub fn add(&mut self, file: &[u8], function: &[u8], line: u64, counts: &[i128]) -> Result<(), TooLarge> {
        assert_eq!(counts.len(), self.total.len(), "one count for each event");
        let place = self.place(file, function);
        let narrow: Result<Vec<i64>, _> = counts.iter().map(|count| i64::try_from(*count)).collect();
        let rows = self.rows_mut(place);
        match narrow {
            Ok(narrow) => rows.add_narrow(line, &narrow)?,
            Err(_) => rows.add_wide(line, counts)?,
        }
        self.add_to_total(counts)
    }

    /// The files, in the order in which they first came.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// The sum of all rows, one value for each event.
    #[must_use]
    pub fn total(&self) -> &[i128] {
        &self.total
    }

    /// Changes the sign of every count.
    pub fn negate(&mut self) {
        for function in self.files.iter_mut().flat_map(|file| &mut file.functions) {
            function.rows.counts_mut().negate();
        }
        self.total.iter_mut().for_each(|count| *count = -*count);
    }

    /// Adds all rows of `other`. What is new comes after what was there, in the order of `other`.
    ///
    /// # Errors
    /// [`MergeError`]; after [`MergeError::TooLarge`] the profile is of no further use.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge_renamed(other, |name| name.to_vec(), |name| name.to_vec())
    }

    /// As [`Profile::merge`], with files and functions renamed on the way. Functions called [`UNSPECIFIED`] keep that name.
    ///
    /// # Errors
    /// As [`Profile::merge`].
    pub fn merge_renamed(
        &mut self,
        other: &Self,
        mut file_name: impl FnMut(&[u8]) -> Vec<u8>,
        mut function_name: impl FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<(), MergeError> {
        if self.header.events != other.header.events {
            return Err(MergeError::EventsDiffer);
        }
        for file in &other.files {
            let at = self.file(&file_name(&file.name));
            for function in &file.functions {
                let place = if *function.name == *UNSPECIFIED {
                    (at, self.function(at, UNSPECIFIED))
                } else {
                    (at, self.function(at, &function_name(&function.name)))
                };
                self.rows_mut(place).add_rows(&function.rows)?;
            }
        }
        self.add_to_total(&other.total)?;
        Ok(())
    }

    /// The index of the file called `name`, made if it is not there.
    pub(super) fn file(&mut self, name: &[u8]) -> usize {
        if let Some(at) = self.finder.find(&self.files, name) {
            return at;
        }
        let entry = FileEntry { name: name.into(), functions: Vec::new(), finder: Finder::default() };
        self.finder.push(&mut self.files, entry)
    }

    /// The index of function `name` of file `at`, made if it is not there; its lines are expected from the start.
    pub(super) fn function(&mut self, at: usize, name: &[u8]) -> usize {
        let width = self.total.len();
        let file = &mut self.files[at];
        let found = file.finder.find(&file.functions, name).unwrap_or_else(|| {
            let entry = FunctionEntry { name: name.into(), rows: Rows::new(width) };
            file.finder.push(&mut file.functions, entry)
        });
        file.functions[found].rows.rewind();
        found
    }

    #[inline]
    pub(super) fn rows_mut(&mut self, (file, function): (usize, usize)) -> &mut Rows {
        &mut self.files[file].functions[function].rows
    }

    pub(super) fn add_to_total(&mut self, counts: &[i128]) -> Result<(), TooLarge> {
        for (value, count) in self.total.iter_mut().zip(counts) {
            *value = sum(*value, *count)?;
        }
        Ok(())
    }

    fn place(&mut self, file: &[u8], function: &[u8]) -> (usize, usize) {
        // Rows of one function come together: keep its line cursor instead of starting over.
        if let Some(at) = self.finder.cursor.checked_sub(1)
            && *self.files[at].name == *file
            && let Some(last) = self.files[at].finder.cursor.checked_sub(1)
            && *self.files[at].functions[last].name == *function
        {
            return (at, last);
        }
        let at = self.file(file);
        (at, self.function(at, function))
    }
}

/// Finds entries by name in a list that keeps the order in which they came.
///
/// Profiles are sorted and much alike, so the entry is nearly always the one after the last that was found, or it comes
/// after all others in the alphabet; then nothing is searched. A hash index is built only for a list that came unsorted.
#[derive(Clone, Debug, Default)]
struct Finder {
    /// The entry that is guessed to come next.
    cursor: usize,
    // Boxed since there are millions of these, nearly all without an index: 8 bytes instead of 48.
    #[allow(clippy::box_collection)]
    index: Option<Box<HashMap<Box<[u8]>, usize>>>,
}

trait Named {
    fn name(&self) -> &[u8];
}

impl Named for FileEntry {
    fn name(&self) -> &[u8] {
        &self.name
    }
}

impl Named for FunctionEntry {
    fn name(&self) -> &[u8] {
        &self.name
    }
}

/// How many entries at the start of a list are out of the alphabet: [`UNSPECIFIED`] comes before everything.
fn unsorted<T: Named>(entries: &[T]) -> usize {
    usize::from(entries.first().is_some_and(|first| first.name() == UNSPECIFIED))
}

impl Finder {
    fn find<T: Named>(&mut self, entries: &[T], name: &[u8]) -> Option<usize> {
        let guess = self.cursor;
        let found = if entries.get(guess).is_some_and(|entry| entry.name() == name) {
            Some(guess)
        } else if entries.first().is_some_and(|entry| entry.name() == name) {
            Some(0)
        } else if let Some(index) = &self.index {
            index.get(name).copied()
        } else if entries.last().is_none_or(|last| last.name() < name) {
            None
        } else {
            let skip = unsorted(entries);
            entries[skip..].binary_search_by(|entry| entry.name().cmp(name)).ok().map(|at| at + skip)
        };
        if let Some(at) = found {
            self.cursor = at + 1;
        }
        found
    }

    /// Appends an entry that is not there yet.
    fn push<T: Named>(&mut self, entries: &mut Vec<T>, entry: T) -> usize {
        let at = entries.len();
        if let Some(index) = &mut self.index {
            index.insert(entry.name().into(), at);
        } else if entries[unsorted(entries)..].last().is_some_and(|last| last.name() > entry.name()) {
            let all = entries.iter().chain([&entry]).map(|entry| entry.name().into());
            self.index = Some(Box::new(all.zip(0..).collect()));
        }
        entries.push(entry);
        self.cursor = at + 1;
        at
    }
}
