//! Reads cachegrind profiles, in one pass and without keeping the text.
//!
//! Input comes in pieces of whole lines; a row is parsed where it lies and added at once, so memory grows with the
//! distinct (file, function, line) keys and not with the input, and pipes and decompressors are read like files. Files
//! are not mapped: a mapping ends the program when the file shrinks under it, and copying a piece costs a tenth of
//! parsing it.

use std::fmt;
use std::io::Read;

use super::columns::{Columns, ROWS, digits_before};
use super::profile::{Header, Profile, UNSPECIFIED};
use crate::count::{LIMIT, ParseCountError, parse};
use crate::events::MOST_EVENTS;
use crate::text::digits::{DIGITS, digits, number};
use crate::text::ends::{Ends, Marks};
use crate::text::lines::{LineSource, PAD, Piece};
use crate::text::{InputError, first_line, is_blank, shown, without_cr, words};

/// How much of the lines is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// A row for each line of a function.
    #[default]
    Lines,
    /// One row for each function, as line 0: all that a report without annotation needs.
    Functions,
}

/// What is asked of the `summary:` line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryRule {
    /// It must be there and equal the sums.
    #[default]
    Required,
    /// It may be missing or wrong.
    Ignored,
}

/// How to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// How much of the lines is kept.
    pub detail: Detail,
    /// What is asked of the `summary:` line.
    pub summary: SummaryRule,
}

/// What was found beside the counts.
#[derive(Clone, Debug)]
pub struct ReadOutcome {
    /// What stands before the counts.
    pub header: Header,
    /// What the `summary:` line was like; always [`Summary::Right`] where it is required.
    pub summary: Summary,
}

/// What a `summary:` line is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// It equals the sums.
    Right,
    /// It does not.
    Wrong,
    /// There is none: the profile may be cut short.
    Missing,
}

/// Why a profile could not be read: `NAME:LINE: cause`.
pub type ReadError = crate::ReadError<ReadErrorKind>;

/// What is wrong with an input.
#[derive(Debug)]
pub enum ReadErrorKind {
    /// There are no lines to read.
    Input(InputError),
    /// The line after the `desc:` lines is no `cmd:` line.
    NoCommand,
    /// The first line is of no profile at all.
    NoProfile,
    /// There is nothing at all.
    Empty,
    /// It is a profile of callgrind.
    CallGraph,
    /// The line after the `cmd:` line is no `events:` line.
    NoEvents,
    /// An event's name is not UTF-8 or comes twice.
    BadEvent(String),
    /// More events than any tool has: 256. Each row has a count for each, so a small file could fill the memory.
    TooManyEvents,
    /// The line is of no known kind; the text is its beginning.
    Malformed(String),
    /// A count is no number, or there are more counts than events.
    BadCounts,
    /// The line number does not fit in 64 bits.
    BadLineNumber,
    /// A count or a sum is beyond [`crate::count::LIMIT`].
    TooLarge,
    /// Counts or an `fn=` line before any `fl=` line.
    NoFile,
    /// The input ends without a `summary:` line.
    NoSummary,
    /// The `summary:` line is not the sum of the counts.
    SummaryDiffers {
        /// What the line says.
        summary: Vec<i128>,
        /// What the counts sum up to.
        computed: Vec<i128>,
    },
    /// The events, given here, are not those of the inputs before.
    EventsDiffer(Vec<String>),
}

impl fmt::Display for ReadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::NoCommand => f.write_str("missing a `command:` line"),
            Self::Empty => f.write_str(
                "missing a `command:` line: it is empty, as a profile is whose program was killed or goes on, or whose disk \
                 was full",
            ),
            Self::NoProfile => f.write_str(
                "missing a `command:` line: this is no profile, which would begin with `desc:` or `cmd:`",
            ),
            Self::CallGraph => f.write_str(
                "missing a `command:` line: this is a profile with a call graph, which callgrind_annotate reads",
            ),
            Self::NoEvents => f.write_str("missing an `events:` line"),
            Self::BadEvent(name) => write!(f, "event `{name}` is listed twice or is not UTF-8"),
            Self::TooManyEvents => f.write_str("more than 256 events: this is no profile"),
            Self::Malformed(text) => write!(f, "malformed line: {text}"),
            Self::BadCounts => f.write_str("malformed or too many event counts"),
            Self::BadLineNumber => f.write_str("the line number is larger than 64 bits hold"),
            Self::TooLarge => f.write_str("a count is larger than 10^36"),
            Self::NoFile => f.write_str("counts or a function before the first `fl=` line"),
            Self::NoSummary => f.write_str("missing `summary:` line, aborting"),
            Self::SummaryDiffers { summary, computed } => write!(
                f,
                "`summary:` line doesn't match computed total\n- summary:  {summary:?}\n- computed: {computed:?}"
            ),
            Self::EventsDiffer(events) => {
                write!(f, "events in data files don't match: this one counts `{}`", events.join(" "))
            }
        }
    }
}

impl std::error::Error for ReadErrorKind {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(error) => error.source(),
            _ => None,
        }
    }
}

impl From<InputError> for ReadErrorKind {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

/// Reads a profile; `name` is what errors call the input.
///
/// # Errors
/// [`ReadError`] names the first line at fault.
pub fn read(input: impl Read, name: &str, options: &ReadOptions) -> Result<Profile, ReadError> {
    let mut profile = None;
    read_more(&mut profile, input, name, options)?;
    Ok(profile.expect("a profile was read"))
}

/// Reads a profile and adds its counts to `profile`, or makes one if there is none yet. What else was read is
/// returned; the header of `profile` is the first one's.
///
/// # Errors
/// [`ReadError`]; `profile` then holds part of the counts.
pub fn read_more(
    profile: &mut Option<Profile>,
    input: impl Read,
    name: &str,
    options: &ReadOptions,
) -> Result<ReadOutcome, ReadError> {
    let mut parser = Parser::new(options.detail);
    let fault = |line, kind| ReadError { name: name.to_owned(), line, kind };
    let mut source = LineSource::new(input);
    let mut marks = Marks::default();
    loop {
        let piece = source.next_piece().map_err(|error| error.after(name, parser.line))?;
        if piece.text().is_empty() {
            break;
        }
        parser.piece(&piece, &mut marks, profile).map_err(|kind| match kind {
            ReadErrorKind::EventsDiffer(_) => fault(None, kind),
            kind => fault(Some(parser.line), kind),
        })?;
    }
    // The end of the input counts as one more line: that is where something is missing.
    let end = Some(parser.line + 1);
    if parser.stage != Stage::Body {
        let kind = match parser.stage {
            Stage::Events => ReadErrorKind::NoEvents,
            _ if parser.line == 0 => ReadErrorKind::Empty,
            _ => ReadErrorKind::NoCommand,
        };
        return Err(fault(end, kind));
    }
    if let Some(profile) = profile {
        parser.settle(profile).map_err(|kind| fault(end, kind))?;
        if parser.total.iter().any(|total| total.abs() > LIMIT) {
            return Err(fault(end, ReadErrorKind::TooLarge));
        }
        profile.add_to_total(&parser.total).map_err(|_| fault(end, ReadErrorKind::TooLarge))?;
    }
    let summary = match &parser.summary {
        None => Summary::Missing,
        Some((_, summary)) if *summary != parser.total => Summary::Wrong,
        Some(_) => Summary::Right,
    };
    if options.summary == SummaryRule::Required && summary != Summary::Right {
        let Some((line, summary)) = parser.summary else { return Err(fault(end, ReadErrorKind::NoSummary)) };
        return Err(fault(Some(line), ReadErrorKind::SummaryDiffers { summary, computed: parser.total }));
    }
    Ok(ReadOutcome { header: parser.header, summary })
}

/// So many rows of counts below 10^15 stay below 2^63.
const MOST_RECENT: u32 = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Command,
    Events,
    Body,
}

struct Parser {
    detail: Detail,
    stage: Stage,
    /// The line that is being read, from 1.
    line: u64,
    header: Header,
    /// Counts of the row at hand; as wide as there are events.
    scratch: Vec<i64>,
    total: Vec<i128>,
    /// Sums of rows that are not in `total` yet, and how many rows those are. If lines are not kept, the profile does not
    /// have them yet either, and all are of the function at hand.
    recent: Vec<i64>,
    recent_rows: u32,
    /// The digits of the row at hand, and sums of rows that are not in `recent` yet if lines are not kept.
    columns: Columns,
    summary: Option<(u64, Vec<i128>)>,
}

type Step<T> = Result<T, ReadErrorKind>;

impl Parser {
    fn new(detail: Detail) -> Self {
        Self {
            detail,
            stage: Stage::Command,
            line: 0,
            header: Header::default(),
            scratch: Vec::new(),
            total: Vec::new(),
            recent: Vec::new(),
            recent_rows: 0,
            columns: Columns::new(0),
            summary: None,
        }
    }

    /// Takes whole lines.
    fn piece(&mut self, piece: &Piece<'_>, marks: &mut Marks, profile: &mut Option<Profile>) -> Step<()> {
        let mut rest = piece.padded;
        while self.stage != Stage::Body && rest.len() > PAD {
            let line = first_line(rest);
            rest = &rest[line.len() + 1..];
            self.line += 1;
            self.header_line(without_cr(line), profile)?;
        }
        let Some(profile) = profile else { return Ok(()) };
        let (text, end) = (rest, rest.len() - PAD);
        marks.make(text);
        let mut at = 0;
        while at < end {
            if self.detail == Detail::Functions && profile.has_aim() {
                at = self.plain_rows(text, at, end, marks, profile)?;
                if at >= end {
                    break;
                }
            }
            self.line += 1;
            if !text[at].is_ascii_digit() {
                at += self.other(&text[at..], profile)?;
                continue;
            }
            let mut ends = marks.from(at);
            // Rows come together: as long as they do, the ends found are of use.
            loop {
                if self.recent_rows == MOST_RECENT {
                    self.settle(profile)?;
                }
                let mut next = None;
                if self.scratch.len() == 1 {
                    next = self.single_row(text, at, &mut ends, profile);
                    if next.is_none() {
                        ends = marks.from(at);
                    }
                }
                let Some(next) = next.or_else(|| self.row(text, at, &mut ends, profile)) else {
                    at += self.careful_row(&text[at..], profile)?;
                    break;
                };
                at = next;
                if at >= end || !text[at].is_ascii_digit() {
                    break;
                }
                self.line += 1;
            }
        }
        Ok(())
    }

    /// Plain rows of which only sums matter.
    #[inline]
    fn plain_rows(
        &mut self,
        text: &[u8],
        mut at: usize,
        end: usize,
        marks: &Marks,
        profile: &mut Profile,
    ) -> Step<usize> {
        loop {
            let (next, rows) = self.columns.add_plain_rows(text, at, end, marks);
            at = next;
            self.line += u64::from(rows);
            self.recent_rows += rows;
            if !self.columns.is_full() {
                return Ok(at);
            }
            self.columns.settle(&mut self.recent);
            if self.recent_rows >= MOST_RECENT - ROWS {
                self.settle(profile)?;
            }
        }
    }

    fn header_line(&mut self, line: &[u8], profile: &mut Option<Profile>) -> Step<()> {
        if self.stage == Stage::Command {
            if let Some(text) = value(line, b"desc:") {
                self.header.desc.push(text.to_vec());
            } else {
                let text = value(line, b"cmd:").ok_or_else(|| {
                    // With one of these do profiles of callgrind begin, whoever wrote them.
                    let keys = [&b"# callgrind format"[..], b"version:", b"creator:", b"pid:", b"part:", b"positions:"];
                    let ours = [&b"desc:"[..], b"cmd:", b"events:", b"fl=", b"fn=", b"summary:"];
                    let begins = |keys: &[&[u8]]| keys.iter().any(|key| line.starts_with(key));
                    match () {
                        () if begins(&keys) => ReadErrorKind::CallGraph,
                        () if self.line > 1 || begins(&ours) => ReadErrorKind::NoCommand,
                        () => ReadErrorKind::NoProfile,
                    }
                })?;
                self.header.cmd = text.to_vec();
                self.stage = Stage::Events;
            }
            return Ok(());
        }
        let text = value(line, b"events:").ok_or(ReadErrorKind::NoEvents)?;
        for name in words(text) {
            let bad = || ReadErrorKind::BadEvent(shown(name));
            let name = std::str::from_utf8(name).map_err(|_| bad())?;
            if self.header.events.iter().any(|other| other == name) {
                return Err(bad());
            }
            if self.header.events.len() == MOST_EVENTS {
                return Err(ReadErrorKind::TooManyEvents);
            }
            self.header.events.push(name.to_owned());
        }
        if self.header.events.is_empty() {
            return Err(ReadErrorKind::NoEvents);
        }
        self.scratch = vec![0; self.header.events.len()];
        self.recent = vec![0; self.header.events.len()];
        self.total = vec![0; self.header.events.len()];
        self.columns = Columns::new(self.header.events.len());
        self.stage = Stage::Body;
        match profile {
            Some(profile) if profile.header.events != self.header.events => {
                return Err(ReadErrorKind::EventsDiffer(self.header.events.clone()));
            }
            // What the input before ended with is none of this one's.
            Some(profile) => profile.lose_aim(),
            None => *profile = Some(Profile::with_header(self.header.clone())),
        }
        Ok(())
    }

    /// A row of counts; gives the place after its line, or nothing if anything about it is unusual, nothing being done
    /// then.
    #[inline]
    fn row(&mut self, text: &[u8], at: usize, ends: &mut Ends<'_>, profile: &mut Profile) -> Option<usize> {
        let mut end = ends.next();
        let line = at..end;
        if line.len() > DIGITS || !profile.has_aim() {
            return None;
        }
        let (mut filled, mut negative) = (0, false);
        for digits in self.columns.row() {
            if text[end] != b' ' {
                break;
            }
            let mut start = end + 1;
            end = ends.next();
            if end == start {
                match text[end] {
                    b'-' => {
                        start += 1;
                        end = ends.next();
                        if end == start {
                            return None;
                        }
                        *digits = digits_before(text, end, end - start)?.negated();
                        negative = true;
                        filled += 1;
                        continue;
                    }
                    // A blank at the end of the line.
                    b'\n' => break,
                    _ => return None,
                }
            }
            *digits = digits_before(text, end, end - start)?;
            filled += 1;
        }
        if text[end] == b' ' {
            let blank = end;
            end = ends.next();
            if end > blank + 1 {
                return None;
            }
        }
        if text[end] != b'\n' {
            return None;
        }
        if self.detail == Detail::Functions && !negative {
            if self.columns.add(filled) {
                self.columns.settle(&mut self.recent);
            }
        } else {
            self.columns.numbers(filled, negative, &mut self.scratch);
            if self.detail == Detail::Lines {
                profile.add_narrow(number(text, line.start, line.end), &self.scratch).ok()?;
            }
            for (total, count) in self.recent.iter_mut().zip(&self.scratch) {
                // Cannot overflow: see `MOST_RECENT`.
                *total += *count;
            }
        }
        self.recent_rows += 1;
        Some(end + 1)
    }

    /// As [`Parser::row`], for a single event and a row that has its count: nothing is to be gained side by side.
    #[inline]
    fn single_row(&mut self, text: &[u8], at: usize, ends: &mut Ends<'_>, profile: &mut Profile) -> Option<usize> {
        let end = ends.next();
        if text[end] != b' ' || end - at > DIGITS || !profile.has_aim() {
            return None;
        }
        let start = end + 1;
        let last = ends.next();
        if text[last] != b'\n' || last == start {
            return None;
        }
        let count = digits_before(text, last, last - start)?.size();
        if self.detail == Detail::Lines {
            profile.add_narrow(number(text, at, end), &[count]).ok()?;
        }
        // Cannot overflow: see `MOST_RECENT`.
        *self.recent.first_mut()? += count;
        self.recent_rows += 1;
        Some(last + 1)
    }

    /// Moves the sums of the latest rows to where they belong.
    fn settle(&mut self, profile: &mut Profile) -> Step<()> {
        self.columns.settle(&mut self.recent);
        if self.detail == Detail::Functions && self.recent_rows > 0 {
            profile.add_to_only_row(&self.recent).map_err(|_| ReadErrorKind::TooLarge)?;
        }
        for (total, recent) in self.total.iter_mut().zip(&mut self.recent) {
            // Cannot overflow: 10^15 a row, and careful rows leave half of the range, room for 10^22 such rows.
            *total += i128::from(std::mem::take(recent));
        }
        self.recent_rows = 0;
        Ok(())
    }

    /// A row that has tabs, a `+`, large numbers or a fault; returns the length of its line.
    #[cold]
    fn careful_row(&mut self, text: &[u8], profile: &mut Profile) -> Step<usize> {
        let line = first_line(text);
        let mut words = words(line);
        let number = words.next().unwrap_or_default();
        let number = match digits(number) {
            (_, length) if length < number.len() => return Err(ReadErrorKind::BadCounts),
            (number, ..=DIGITS) => number,
            _ => std::str::from_utf8(number)
                .ok()
                .and_then(|number| number.parse().ok())
                .ok_or(ReadErrorKind::BadLineNumber)?,
        };
        let counts = self.counts(words)?;
        if !profile.has_aim() {
            return Err(ReadErrorKind::NoFile);
        }
        self.settle(profile)?;
        match self.detail {
            Detail::Lines => profile.add_to_line(number, &counts),
            Detail::Functions => profile.add_wide_to_only_row(&counts),
        }
        .map_err(|_| ReadErrorKind::TooLarge)?;
        for (total, count) in self.total.iter_mut().zip(&counts) {
            // The limit counts at the end; until then there is room for what other rows take away again.
            let sum = total.checked_add(*count).filter(|sum| sum.abs() < i128::MAX / 2);
            *total = sum.ok_or(ReadErrorKind::TooLarge)?;
        }
        Ok(line.len() + 1)
    }

    /// Before another function is aimed at.
    fn leave_function(&mut self, profile: &mut Profile) -> Step<()> {
        if self.detail == Detail::Functions { self.settle(profile) } else { Ok(()) }
    }

    fn counts<'a>(&self, words: impl Iterator<Item = &'a [u8]>) -> Step<Vec<i128>> {
        let mut counts = Vec::with_capacity(self.total.len());
        for word in words {
            if counts.len() == self.total.len() {
                return Err(ReadErrorKind::BadCounts);
            }
            counts.push(parse(word).map_err(|error| match error {
                ParseCountError::NotANumber => ReadErrorKind::BadCounts,
                ParseCountError::TooLarge => ReadErrorKind::TooLarge,
            })?);
        }
        counts.resize(self.total.len(), 0);
        Ok(counts)
    }

    /// A line that is no row; returns its length.
    fn other(&mut self, text: &[u8], profile: &mut Profile) -> Step<usize> {
        let whole = first_line(text);
        let line = without_cr(whole);
        if let Some(name) = line.strip_prefix(b"fn=") {
            if !profile.has_aim() {
                return Err(ReadErrorKind::NoFile);
            }
            self.leave_function(profile)?;
            profile.aim_at_function(name);
        } else if let Some(name) = line.strip_prefix(b"fl=") {
            self.leave_function(profile)?;
            profile.aim_at_file(name);
            // It is there from here on, with or without rows, as in the reference's reports.
            profile.aim_at_function(UNSPECIFIED);
        } else if let Some(text) = value(line, b"summary:") {
            self.summary = Some((self.line, self.counts(words(text))?));
        } else if !line.is_empty() && line[0] != b'#' {
            return Err(ReadErrorKind::Malformed(shown(line)));
        }
        Ok(whole.len() + 1)
    }
}

/// What follows `key` and at least one blank or the end of the line.
fn value<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(key)?;
    if rest.first().is_some_and(|byte| !is_blank(*byte)) {
        return None;
    }
    let start = rest.iter().position(|byte| !is_blank(*byte)).unwrap_or(rest.len());
    Some(&rest[start..])
}
