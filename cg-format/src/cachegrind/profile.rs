//! A cachegrind profile in memory.
//!
//! Files, functions and lines keep the order in which they first came, because merging prints them so. Every count
//! that is added is also added to the total, so the total always equals the sum of the rows.

use std::borrow::Cow;
use std::fmt;

use super::names::{Index, Name, Names, ROOM};
use super::rows::{Rows, Span, Store};
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

/// A profile: header, counts by file, function and line, and their total.
///
/// Names, functions and rows each lie in one vector, since there may be millions of them.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What stands before the counts. Its events were fixed when the profile was made.
    pub header: Header,
    names: Names,
    files: Vec<File>,
    finder: Finder,
    functions: Vec<Function>,
    rows: Store,
    total: Vec<i128>,
    /// The file and the function that rows are being added to; a file may be at hand before any function of it.
    aimed: (usize, usize),
}

/// No such number.
const NONE: usize = usize::MAX;

#[derive(Clone, Debug)]
struct File {
    name: Name,
    /// Its functions are chained in the order in which they first came.
    first: usize,
    last: usize,
    finder: Finder,
}

#[derive(Clone, Debug)]
struct Function {
    name: Name,
    /// The next function of the same file.
    next: usize,
    rows: Span,
}

/// How the next name is found in a list that keeps the order in which names came.
///
/// Profiles are sorted and much alike, so it is nearly always the one after the last that was found, or it comes after
/// all others in the alphabet; then nothing is searched. An index is built only when both guesses fail.
#[derive(Clone, Debug)]
struct Finder {
    /// The number that is guessed to come next; [`NONE`] is the first.
    guess: usize,
    /// All names came in ascending order.
    sorted: bool,
    // Boxed since there are many of these, nearly all without an index.
    index: Option<Box<Index>>,
}

impl Default for Finder {
    fn default() -> Self {
        Self { guess: NONE, sorted: true, index: None }
    }
}

/// So many names are looked at from the guess on before an index is asked: a few may be left out here and there.
const WALK: usize = 3;

/// A file and its functions.
#[derive(Clone, Copy, Debug)]
pub struct FileEntry<'a> {
    profile: &'a Profile,
    number: usize,
}

/// A function of a file and its rows.
#[derive(Clone, Copy, Debug)]
pub struct FunctionEntry<'a> {
    profile: &'a Profile,
    number: usize,
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

impl<'a> FileEntry<'a> {
    /// The name, as bytes.
    #[must_use]
    pub fn name(self) -> &'a [u8] {
        self.profile.names.get(self.profile.files[self.number].name)
    }

    /// The functions, in the order in which they first came. One may have no rows.
    pub fn functions(self) -> impl Iterator<Item = FunctionEntry<'a>> + Clone {
        let profile = self.profile;
        let known = |number: usize| (number != NONE).then_some(number);
        let first = known(profile.files[self.number].first);
        std::iter::successors(first, move |number| known(profile.functions[*number].next))
            .map(move |number| FunctionEntry { profile, number })
    }
}

impl<'a> FunctionEntry<'a> {
    /// The name, as bytes.
    #[must_use]
    pub fn name(self) -> &'a [u8] {
        self.profile.names.get(self.profile.functions[self.number].name)
    }

    /// The lines and their counts.
    #[must_use]
    pub fn rows(self) -> Rows<'a> {
        self.profile.rows.rows(&self.profile.functions[self.number].rows)
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
        let width = header.events.len();
        Self {
            header,
            names: Names::default(),
            files: Vec::new(),
            finder: Finder::default(),
            functions: Vec::with_capacity(ROOM / size_of::<Function>()),
            rows: Store::new(width),
            total: vec![0; width],
            aimed: (NONE, NONE),
        }
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
        // Rows of one function come together.
        let (at, of) = self.aimed;
        if at == NONE || self.names.get(self.files[at].name) != file {
            self.aim_at_file(file);
            self.aim_at_function(function);
        } else if of == NONE || self.names.get(self.functions[of].name) != function {
            self.aim_at_function(function);
        }
        self.add_to_line(line, counts)?;
        self.add_to_total(counts)
    }

    /// The files, in the order in which they first came. One may have no functions.
    pub fn files(&self) -> impl ExactSizeIterator<Item = FileEntry<'_>> + Clone {
        (0..self.files.len()).map(|number| FileEntry { profile: self, number })
    }

    /// The sum of all rows, one value for each event.
    #[must_use]
    pub fn total(&self) -> &[i128] {
        &self.total
    }

    /// Changes the sign of every count.
    pub fn negate(&mut self) {
        self.rows.negate();
        self.total.iter_mut().for_each(|count| *count = -*count);
    }

    /// Adds all rows of `other`. What is new comes after what was there, in the order of `other`.
    ///
    /// # Errors
    /// [`MergeError`]; after [`MergeError::TooLarge`] the profile is of no further use.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge_by(other, Cow::Borrowed, Cow::Borrowed)
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
        self.merge_by(
            other,
            |name| Cow::Owned(file_name(name)),
            |name| if name == UNSPECIFIED { Cow::Borrowed(name) } else { Cow::Owned(function_name(name)) },
        )
    }

    fn merge_by<'o>(
        &mut self,
        other: &'o Self,
        mut file_name: impl FnMut(&'o [u8]) -> Cow<'o, [u8]>,
        mut function_name: impl FnMut(&'o [u8]) -> Cow<'o, [u8]>,
    ) -> Result<(), MergeError> {
        if self.header.events != other.header.events {
            return Err(MergeError::EventsDiffer);
        }
        for file in other.files() {
            self.aim_at_file(&file_name(file.name()));
            for function in file.functions() {
                self.aim_at_function(&function_name(function.name()));
                self.rows.add_rows(&mut self.functions[self.aimed.1].rows, function.rows())?;
            }
        }
        self.add_to_total(&other.total)?;
        Ok(())
    }

    /// Whether [`Profile::aim_at_file`] was called: there is somewhere to add rows.
    pub(super) fn has_aim(&self) -> bool {
        self.aimed.0 != NONE
    }

    /// Forgets where rows were added to.
    pub(super) fn lose_aim(&mut self) {
        self.aimed = (NONE, NONE);
    }

    /// From here on functions and rows are added to this file, which is made if it is not there.
    pub(super) fn aim_at_file(&mut self, name: &[u8]) {
        let number = self.find_file(name).unwrap_or_else(|| {
            let number = self.files.len();
            if let Some(last) = self.files.last() {
                self.finder.sorted &= self.names.get(last.name) < name;
            }
            if let Some(index) = &mut self.finder.index {
                index.insert(name, number);
            }
            let name = self.names.push(name);
            self.files.push(File { name, first: NONE, last: NONE, finder: Finder::default() });
            number
        });
        self.aimed = (number, NONE);
    }

    /// From here on rows are added to this function of the file at hand; its lines are expected from the start.
    pub(super) fn aim_at_function(&mut self, name: &[u8]) {
        let file = self.aimed.0;
        let number = self.find_function(file, name).unwrap_or_else(|| self.add_function(file, name));
        self.aimed.1 = number;
        self.rows.aim(&self.functions[number].rows);
    }

    /// Adds counts to a line of the function at hand, but not to the total.
    #[inline]
    pub(super) fn add_narrow(&mut self, line: u64, counts: &[i64]) -> Result<(), TooLarge> {
        if self.aimed.1 == NONE {
            self.aim_at_function(UNSPECIFIED);
        }
        self.rows.add_narrow(&mut self.functions[self.aimed.1].rows, line, counts)
    }

    /// Adds counts to line 0 of the function at hand, where no other line is kept, but not to the total.
    pub(super) fn add_to_only_row(&mut self, counts: &[i64]) -> Result<(), TooLarge> {
        self.expect_first_line();
        self.add_narrow(0, counts)
    }

    /// As [`Profile::add_to_only_row`], for counts of any size.
    pub(super) fn add_wide_to_only_row(&mut self, counts: &[i128]) -> Result<(), TooLarge> {
        self.expect_first_line();
        self.add_to_line(0, counts)
    }

    fn expect_first_line(&mut self) {
        if let Some(function) = self.functions.get(self.aimed.1) {
            self.rows.aim(&function.rows);
        }
    }

    /// As [`Profile::add_narrow`], for counts of any size.
    pub(super) fn add_to_line(&mut self, line: u64, counts: &[i128]) -> Result<(), TooLarge> {
        let narrow: Result<Vec<i64>, _> = counts.iter().map(|count| i64::try_from(*count)).collect();
        if let Ok(narrow) = narrow {
            return self.add_narrow(line, &narrow);
        }
        if self.aimed.1 == NONE {
            self.aim_at_function(UNSPECIFIED);
        }
        self.rows.add_wide(&mut self.functions[self.aimed.1].rows, line, counts)
    }

    pub(super) fn add_to_total(&mut self, counts: &[i128]) -> Result<(), TooLarge> {
        for (value, count) in self.total.iter_mut().zip(counts) {
            *value = sum(*value, *count)?;
        }
        Ok(())
    }

    fn find_file(&mut self, name: &[u8]) -> Option<usize> {
        let (names, files) = (&self.names, &self.files);
        let name_of = |number: usize| names.get(files[number].name);
        let finder = &mut self.finder;
        let guess = if finder.guess < files.len() { finder.guess } else { 0 };
        let mut found = (guess < files.len() && name_of(guess) == name).then_some(guess);
        if found.is_none() {
            if files.last().is_none_or(|last| finder.sorted && names.get(last.name) < name) {
                return None;
            }
            found = (guess + 1..files.len()).take(WALK).find(|number| name_of(*number) == name);
        }
        if found.is_none() {
            let index = finder.index.get_or_insert_with(|| {
                let mut index = Box::<Index>::default();
                (0..files.len()).for_each(|number| index.insert(name_of(number), number));
                index
            });
            found = index.find(name, name_of);
        }
        if let Some(number) = found {
            finder.guess = number + 1;
        }
        found
    }

    fn find_function(&mut self, file: usize, name: &[u8]) -> Option<usize> {
        let (names, functions) = (&self.names, &self.functions);
        let File { first, last, finder, .. } = &mut self.files[file];
        let name_of = |number: usize| names.get(functions[number].name);
        if *last == NONE {
            return None;
        }
        let guess = if finder.guess == NONE { *first } else { finder.guess };
        let mut found = (name_of(guess) == name).then_some(guess);
        let chain = |from| {
            let known = |number: usize| (number != NONE).then_some(number);
            std::iter::successors(known(from), move |number| known(functions[*number].next))
        };
        if found.is_none() {
            if finder.sorted && name_of(*last) < name {
                return None;
            }
            // Reading a file begins with its first function, wherever the last reading ended.
            let begin = (name_of(*first) == name).then_some(*first);
            found = begin.or_else(|| chain(functions[guess].next).take(WALK).find(|number| name_of(*number) == name));
        }
        if found.is_none() {
            let index = finder.index.get_or_insert_with(|| {
                let mut index = Box::<Index>::default();
                chain(*first).for_each(|number| index.insert(name_of(number), number));
                index
            });
            found = index.find(name, name_of);
        }
        if let Some(number) = found {
            finder.guess = functions[number].next;
        }
        found
    }

    /// Makes a function that its file does not have.
    fn add_function(&mut self, file: usize, name: &[u8]) -> usize {
        let number = self.functions.len();
        let File { first, last, finder, .. } = &mut self.files[file];
        if *last == NONE {
            *first = number;
        } else {
            finder.sorted &= self.names.get(self.functions[*last].name) < name;
            self.functions[*last].next = number;
        }
        *last = number;
        if let Some(index) = &mut finder.index {
            index.insert(name, number);
        }
        let name = self.names.push(name);
        self.functions.push(Function { name, next: NONE, rows: self.rows.span() });
        number
    }
}
