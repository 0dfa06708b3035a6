//! The file of a run's data objects (`mem.out`): JSON lines, one object a line, behind a line that says what the run was, and before
//! those of the streams, of stack distances and of lines that threads share, if they were asked for.
//!
//! Every data miss of the run is a miss of exactly one object, so the objects' misses sum to the totals of the first line; and of one
//! stream, but for those that the first line counts. The reader asks for that: a file that was cut off, or put together from
//! two, is an error and no report. Text is UTF-8; bytes of names that are not are replaced (U+FFFD). Rows are written in a stable
//! order: by kind, file, line, name; streams by object, file, line, instruction. A reader ignores keys that it does not know.

pub mod fold;
pub mod members;
pub mod missed_by;
pub mod notation;
pub mod parts;
pub mod reuse;
pub mod sharing;
pub mod streams;

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::cachegrind::Profile;
use crate::count::TooLarge;
pub use members::{Member, Members};
use missed_by::MissedBy;
use reuse::{Reuse, ReuseHead};
use sharing::{Shared, SharingHead};
use streams::Stream;

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// How the description of a run begins that says what an inclusive last level would have taken out of first levels, and whether counts
/// are exact in spite of it.
pub const INCLUDED: &str = "Included:";

/// What a line of the description of a run says of counts that are near, and not exact.
#[must_use]
pub fn near(description: &str) -> Option<&str> {
    description.strip_prefix(INCLUDED).map(str::trim).filter(|text| text.ends_with("not exact"))
}

/// What stands for a name that is not known.
pub const UNKNOWN: &str = "???";

/// What kind of memory an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Blocks that an allocator has handed out, by the place of the call.
    Heap,
    /// A variable of the program or a library, by its symbol.
    Variable,
    /// What is not a variable in a file that is mapped as a program or a library, by its section.
    Section,
    /// Stacks, by the function that accessed them.
    Stack,
    /// All other memory, together: thread-local data, other mappings, what allocators keep for themselves.
    Unknown,
}

impl Kind {
    /// The word for it, as the format has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Variable => "variable",
            Self::Section => "section",
            Self::Stack => "stack",
            Self::Unknown => "unknown",
        }
    }
}

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The version of the format.
    pub version: u32,
    /// The program and its arguments.
    pub command: String,
    /// The process.
    pub pid: i32,
    /// What the run was, as the profile has it: the simulated caches, and whether it is incomplete.
    pub desc: Vec<String>,
    /// What is counted of each object.
    pub events: Vec<String>,
    /// The sums over all objects, by event.
    pub totals: Vec<u64>,
    /// The calls that took back a block that none of the allocators had handed out.
    #[serde(default)]
    pub unknown_frees: u64,
    /// How many objects follow.
    pub objects: usize,
    /// What is said of the streams behind them, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsHead>,
    /// What is said of the stack distances behind those, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<ReuseHead>,
    /// What is said of shared lines behind those, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingHead>,
    /// How many rows of functions that miss objects follow behind those, if calls were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_by: Option<usize>,
    /// The number of the part of a profile that it belongs to, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// It is the last one of those.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// The bytes of a line, if it was measured how lines are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u64>,
}

/// What the first line says of streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamsHead {
    /// How many follow.
    pub count: usize,
    /// Bytes of a line of the first-level cache.
    pub line: u64,
    /// Misses that are in none, since there were too many of them.
    pub others: u64,
}

impl Head {
    /// Which of the events are misses of the first level.
    pub fn first_level(&self) -> impl Iterator<Item = usize> + '_ {
        let named = |(n, event): (usize, &String)| matches!(event.as_str(), "D1mr" | "D1mw").then_some(n);
        self.events.iter().enumerate().filter_map(named)
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// What kind of memory it is.
    pub kind: Kind,
    /// Its name: of a variable, a section or a file; of blocks `heap@FILE:LINE` or `heap@MODULE+OFFSET`; of a stack the function.
    pub name: String,
    /// The source file of the call that allocates, or of the function whose stack it is; else the file that has the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line of the call that allocates.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u64,
    /// The function that allocates.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Bytes of a variable; of blocks the bytes that were asked for, all together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Blocks that were handed out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocks: u64,
    /// The most bytes of them that were there at a time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peak_bytes: u64,
    /// Of blocks, who has called the function that allocates, the nearest first, as far as that tells them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// What of blocks and variables that are not too large was missed: eight bytes at each offset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// The same by the members of the structure that it is, or that its elements and blocks are, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Members>,
    /// By event.
    pub counts: Vec<u64>,
}

/// Eight bytes of an object, or of each of its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Where they begin.
    pub offset: u64,
    /// The first of the events of objects.
    pub counts: Vec<u64>,
}

/// Where a function has called another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Caller {
    /// The function; `MODULE+OFFSET` if that has no name.
    pub function: String,
    /// Its source file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line of the call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u64,
}

/// What tells rows apart: kind, file, line, name, function, and the function's callers.
pub type Key<'a> = (Kind, &'a str, u64, &'a str, &'a str, &'a [Caller]);

impl Object {
    /// What tells it from other objects.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        (self.kind, &self.file, self.line, &self.name, &self.function, &self.callers)
    }

    /// Adds what was missed of another one.
    fn add_fields(&mut self, fields: Vec<Field>) {
        for field in fields {
            match self.fields.binary_search_by_key(&field.offset, |known| known.offset) {
                Ok(n) => add(&mut self.fields[n].counts, &field.counts),
                Err(n) => self.fields.insert(n, field),
            }
        }
    }

    /// Whether nothing was missed of it.
    fn is_untouched(&self) -> bool {
        self.counts.iter().all(|n| *n == 0)
    }

    /// What is wrong with its fields, or members: they must be in order, and have no more than the object.
    fn problem(&self) -> Option<&'static str> {
        let sums = |all: &mut dyn Iterator<Item = &Vec<u64>>| {
            let mut sums = vec![0; self.counts.len()];
            for counts in all {
                if counts.len() > sums.len() {
                    return Err("there are more counts than events");
                }
                add(&mut sums, counts);
            }
            Ok(sums.iter().zip(&self.counts).all(|(sum, n)| sum <= n))
        };
        let order = self.fields.windows(2).all(|pair| pair[0].offset < pair[1].offset);
        match sums(&mut self.fields.iter().map(|field| &field.counts)) {
            Ok(true) if order => {}
            Err(problem) => return Some(problem),
            _ => return Some("its fields are in no order, or have more misses than the object"),
        }
        let Some(members) = &self.members else { return None };
        let order = members.missed.windows(2).all(|pair| pair[0].key() < pair[1].key());
        match sums(&mut members.missed.iter().map(|member| &member.counts)) {
            Ok(true) if order => None,
            Err(problem) => Some(problem),
            _ => Some("its members are in no order, or have more misses than the object"),
        }
    }

    /// Its name as a function of a profile: with its callers behind it, as those of functions are written.
    #[must_use]
    pub fn as_function(&self) -> String {
        let mut name = match self.kind {
            Kind::Stack => format!("[stack] {}", self.name),
            _ => self.name.clone(),
        };
        if !self.callers.is_empty() {
            for function in std::iter::once(&self.function).chain(self.callers.iter().map(|c| &c.function)) {
                name.push('\'');
                name.push_str(function);
            }
        }
        name
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mem {
    /// What the run was.
    pub head: Head,
    /// Its objects.
    pub objects: Vec<Object>,
    /// Their streams, in the order of the objects.
    pub streams: Vec<Stream>,
    /// Stack distances, by file, line and function.
    pub reuse: Vec<Reuse>,
    /// Lines that threads share.
    pub sharing: Vec<Shared>,
    /// Functions that miss objects, in the order of those.
    pub missed_by: Vec<MissedBy>,
}

/// Why a file is none of data objects.
#[derive(Debug)]
pub enum Error {
    /// It cannot be read.
    Io(io::Error),
    /// A line is not what it should be.
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The objects' counts are not the totals.
    Incomplete {
        /// The event.
        event: String,
        /// What the objects' counts sum to.
        sum: u64,
        /// The total of the first line.
        total: u64,
    },
    /// The streams' misses are not the objects'.
    Streams {
        /// What the streams' misses sum to.
        sum: u64,
        /// The misses of the first level.
        total: u64,
    },
    /// The accesses of all stack distances are not those that the first line tells of.
    Distances {
        /// What they sum to.
        sum: u64,
        /// The accesses of the first line.
        total: u64,
    },
    /// The misses of all functions at an object are not the object's.
    MissedBy {
        /// The object's name.
        object: String,
        /// What the functions' misses sum to.
        sum: u64,
        /// The misses of the object.
        total: u64,
    },
    /// What is counted of all shared lines is not what the first line tells of.
    Sharing {
        /// What is counted of them.
        what: &'static str,
        /// What they sum to.
        sum: u64,
        /// What the first line has.
        total: u64,
    },
}

impl Error {
    /// What to say behind the error where the file, called `name`, is probably another one. `of_objects`: what reads the profile of
    /// the objects, which lies beside it.
    #[must_use]
    pub fn hint<'a>(&self, name: &str, of_objects: &'a str) -> &'a str {
        match self {
            Self::Line { number: 1, .. } if name.ends_with(".data") => of_objects,
            Self::Line { number: 1, .. } => " (this is none of `grind --objects=yes`, which are called mem.out.PID)",
            _ => "",
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Line { number, problem } => write!(f, "line {number}: {problem}"),
            Self::Incomplete { event, sum, total } => {
                write!(f, "incomplete: {event} of all objects is {sum}, but the file's total is {total}")
            }
            Self::Streams { sum, total } => {
                write!(f, "incomplete: all streams have {sum} misses, but the file's total is {total}")
            }
            Self::Distances { sum, total } => {
                write!(f, "incomplete: all distances are of {sum} accesses, but the file's total is {total}")
            }
            Self::MissedBy { object, sum, total } => {
                write!(f, "incomplete: all functions have {sum} misses of {object}, which has {total}")
            }
            Self::Sharing { what, sum, total } => {
                write!(f, "incomplete: all shared lines have {sum} {what}, but the file's total is {total}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Mem {
    /// Puts rows in order, makes those one that nothing tells apart, and sets the totals. Streams, which must be in the order of
    /// their instructions, keep that within a line of the source.
    pub fn finish(&mut self) {
        let mut rows: Vec<(usize, Object)> = self.objects.drain(..).enumerate().collect();
        rows.sort_by(|(_, a), (_, b)| a.key().cmp(&b.key()));
        let mut to = vec![0; rows.len()];
        for (from, next) in rows {
            let first = match self.objects.last_mut() {
                Some(first) if next.key() == first.key() => first,
                _ => {
                    to[from] = self.objects.len();
                    self.objects.push(next);
                    continue;
                }
            };
            first.bytes = match first.kind {
                Kind::Heap => first.bytes.saturating_add(next.bytes),
                _ => first.bytes.max(next.bytes),
            };
            first.blocks = first.blocks.saturating_add(next.blocks);
            first.peak_bytes = first.peak_bytes.saturating_add(next.peak_bytes);
            first.add_members(next.members.clone(), (first.is_untouched(), next.is_untouched()));
            add(&mut first.counts, &next.counts);
            first.add_fields(next.fields);
            to[from] = self.objects.len() - 1;
        }
        for stream in &mut self.streams {
            stream.object = to.get(stream.object).copied().unwrap_or(stream.object);
        }
        self.streams.sort_by(|a, b| (a.object, &a.file, a.line).cmp(&(b.object, &b.file, b.line)));
        for object in self.reuse.iter_mut().filter_map(|row| row.object.as_mut()) {
            *object = to.get(*object).copied().unwrap_or(*object);
        }
        self.finish_distances();
        for used in self.sharing.iter_mut().flat_map(|row| &mut row.uses) {
            used.object = used.object.map(|n| to.get(n).copied().unwrap_or(n));
        }
        if let Some(head) = &mut self.head.sharing {
            sharing::finish(head, &mut self.sharing);
        }
        self.missed_by.iter_mut().for_each(|by| by.object = to.get(by.object).copied().unwrap_or(by.object));
        missed_by::finish(&mut self.head, &mut self.missed_by);
        self.head.objects = self.objects.len();
        if let Some(head) = &mut self.head.streams {
            head.count = self.streams.len();
        }
        let mut totals = vec![0; self.head.events.len()];
        self.objects.iter().for_each(|object| add(&mut totals, &object.counts));
        self.head.totals = totals;
    }

    /// The same for the rows of distances.
    fn finish_distances(&mut self) {
        reuse::finish(&mut self.reuse);
        if let Some(head) = &mut self.head.reuse {
            head.count = self.reuse.len();
            head.accesses = self.reuse.iter().fold(0, |sum, row| sum.saturating_add(row.accesses()));
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &self.head)?;
        out.write_all(b"\n")?;
        for object in &self.objects {
            serde_json::to_writer(&mut *out, object)?;
            out.write_all(b"\n")?;
        }
        for stream in &self.streams {
            serde_json::to_writer(&mut *out, stream)?;
            out.write_all(b"\n")?;
        }
        for row in &self.reuse {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")?;
        }
        for row in &self.sharing {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")?;
        }
        for row in &self.missed_by {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it is none of this format, or not whole.
    pub fn read(from: &mut dyn BufRead) -> Result<Self, Error> {
        let mut lines = Lines { from, number: 0, text: Vec::new() };
        let head: Head = lines.next()?.ok_or_else(|| lines.wrong("the file is empty"))?;
        if head.version == 0 || head.version > VERSION {
            return Err(lines.wrong(format!("version {} is not known, only up to {VERSION}", head.version)));
        }
        if head.events.is_empty() && (head.objects > 0 || head.reuse.is_none() && head.sharing.is_none())
            || head.totals.len() != head.events.len()
        {
            return Err(lines.wrong("there must be a total for each event"));
        }
        let mut objects = Vec::new();
        let mut sums = vec![0u64; head.events.len()];
        while objects.len() < head.objects {
            let Some(object) = lines.next::<Object>()? else { break };
            if object.counts.len() != head.events.len() {
                return Err(lines.wrong("there must be a count for each event"));
            }
            if let Some(problem) = object.problem() {
                return Err(lines.wrong(problem));
            }
            for (sum, count) in sums.iter_mut().zip(&object.counts) {
                *sum = sum.checked_add(*count).ok_or_else(|| lines.wrong("counts are too large"))?;
            }
            objects.push(object);
        }
        for ((event, total), sum) in head.events.iter().zip(&head.totals).zip(sums) {
            if *total != sum {
                return Err(Error::Incomplete { event: event.clone(), sum, total: *total });
            }
        }
        let streams = match &head.streams {
            Some(of) => lines.streams(of, &head, &objects)?,
            None => Vec::new(),
        };
        let reuse = head.reuse.as_ref().map(|of| lines.distances(of, objects.len())).transpose()?.unwrap_or_default();
        let sharing = head.sharing.as_ref().map(|of| lines.sharing(of, objects.len())).transpose()?.unwrap_or_default();
        let missed_by = head.missed_by.map(|count| lines.missed_by(count, &objects)).transpose()?.unwrap_or_default();
        if lines.next::<serde::de::IgnoredAny>()?.is_some() {
            return Err(lines.wrong("the first line does not speak of this one"));
        }
        if objects.len() < head.objects {
            return Err(lines.wrong(format!("of {} objects there are {}", head.objects, objects.len())));
        }
        Ok(Self { head, objects, streams, reuse, sharing, missed_by })
    }

    /// The objects as a profile, in which they are functions: each at the file and the line of what has allocated it.
    ///
    /// # Errors
    /// When a count is larger than a profile can hold.
    pub fn profile(&self) -> Result<Profile, TooLarge> {
        let mut profile = Profile::new(self.head.events.iter().map(String::as_str));
        profile.header.desc = self.head.desc.iter().map(|d| d.clone().into_bytes()).collect();
        profile.header.cmd = self.head.command.clone().into_bytes();
        for object in self.objects.iter().filter(|object| object.counts.iter().any(|n| *n != 0)) {
            let counts: Vec<i128> = object.counts.iter().map(|n| i128::from(*n)).collect();
            let file = if object.file.is_empty() { UNKNOWN } else { &object.file };
            profile.add(file.as_bytes(), object.as_function().as_bytes(), object.line, &counts)?;
        }
        Ok(profile)
    }
}

fn add(to: &mut [u64], counts: &[u64]) {
    to.iter_mut().zip(counts).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
}

struct Lines<'a> {
    from: &'a mut dyn BufRead,
    number: usize,
    text: Vec<u8>,
}

impl Lines<'_> {
    /// All streams; `objects` are all objects.
    fn streams(&mut self, of: &StreamsHead, head: &Head, objects: &[Object]) -> Result<Vec<Stream>, Error> {
        let mut streams = Vec::new();
        let mut sum = of.others;
        while streams.len() < of.count {
            let Some(stream) = self.next::<Stream>()? else { break };
            if let Some(problem) = stream.problem(objects.len()) {
                return Err(self.wrong(problem));
            }
            sum = sum.checked_add(stream.misses).ok_or_else(|| self.wrong("counts are too large"))?;
            streams.push(stream);
        }
        let total = head.first_level().try_fold(0, |sum: u64, n| sum.checked_add(head.totals[n]));
        let total = total.ok_or_else(|| self.wrong("counts are too large"))?;
        if of.line == 0 {
            return Err(self.wrong("a line has no bytes"));
        }
        if streams.len() < of.count || sum != total {
            return Err(Error::Streams { sum, total });
        }
        Ok(streams)
    }

    /// All rows of distances, in a file of so many objects.
    fn distances(&mut self, of: &ReuseHead, objects: usize) -> Result<Vec<Reuse>, Error> {
        if !of.line.is_power_of_two() || !of.sample.is_power_of_two() {
            return Err(self.wrong("a line has no bytes, or there is no sample of them"));
        }
        let mut rows: Vec<Reuse> = Vec::new();
        let mut sum: u64 = 0;
        while rows.len() < of.count {
            let Some(row) = self.next::<Reuse>()? else { break };
            if let Some(problem) = row.problem(of.hits.is_some(), objects) {
                return Err(self.wrong(problem));
            }
            sum = sum.checked_add(row.accesses()).ok_or_else(|| self.wrong("counts are too large"))?;
            rows.push(row);
        }
        if rows.len() < of.count || sum != of.accesses {
            return Err(Error::Distances { sum, total: of.accesses });
        }
        Ok(rows)
    }

    /// All rows of shared lines, in a file of so many objects.
    fn sharing(&mut self, of: &SharingHead, objects: usize) -> Result<Vec<Shared>, Error> {
        if !of.line.is_power_of_two() || of.line > sharing::LONGEST {
            return Err(self.wrong("bytes of such a line are not told apart"));
        }
        let total = of.reads.checked_add(of.writes).ok_or_else(|| self.wrong("counts are too large"))?;
        let mut rows: Vec<Shared> = Vec::new();
        let (mut reads, mut writes) = (0u64, 0u64);
        while rows.len() < of.count {
            let Some(row) = self.next::<Shared>()? else { break };
            if let Some(problem) = row.problem(of, objects) {
                return Err(self.wrong(problem));
            }
            (reads, writes) = (reads.saturating_add(row.reads()), writes.saturating_add(row.writes()));
            rows.push(row);
        }
        if rows.len() < of.count || reads != of.reads || writes != of.writes {
            return Err(Error::Sharing { what: "accesses", sum: reads.saturating_add(writes), total });
        }
        sharing::complete(of, &rows)?;
        Ok(rows)
    }

    /// So many rows of functions that miss `objects`.
    fn missed_by(&mut self, count: usize, objects: &[Object]) -> Result<Vec<MissedBy>, Error> {
        let mut rows: Vec<MissedBy> = Vec::new();
        while rows.len() < count {
            let Some(row) = self.next::<MissedBy>()? else { break };
            if let Some(problem) = row.problem(objects) {
                return Err(self.wrong(problem));
            }
            rows.push(row);
        }
        match missed_by::differs(&rows, objects) {
            Some((object, sum, total)) => Err(Error::MissedBy { object: objects[object].name.clone(), sum, total }),
            None => Ok(rows),
        }
    }

    fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::Line { number: self.number.max(1), problem: problem.into() }
    }

    fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, Error> {
        self.text.clear();
        io::Read::take(&mut *self.from, LONGEST).read_until(b'\n', &mut self.text)?;
        if self.text.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.text.len() as u64 == LONGEST {
            return Err(self.wrong("the line is too long"));
        }
        serde_json::from_slice(&self.text).map(Some).map_err(|error| self.wrong(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
