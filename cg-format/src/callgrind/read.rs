//! Reads callgrind profiles, in one pass and without keeping the text.
//!
//! Input comes in pieces of whole lines. A line is parsed where it lies and its content handed to a [`Sink`] at once;
//! only names are kept. A line that means nothing here is an error that names it, except for header lines with unknown
//! keys, which later versions and other programs may add. Profiles of the cachegrind format are read as well: they are
//! profiles without calls.

use std::io::Read;

use super::chains::{self, Reading};
use super::error::{ReadError, ReadErrorKind};
use super::model::{Call, EventType, Header, Jump, JumpKind, PartHeader, Place, Position, Positions};
use super::names::{FileId, Function, FunctionId, Names, ObjectId};
use super::numbers::{careful, number, position, whole_position};
use crate::cachegrind;
use crate::count::TooLarge;
use crate::events::MOST_EVENTS;
use crate::text::digits::{DIGITS, digits};
use crate::text::lines::{LineSource, PAD};
use crate::text::{first_line, is_blank, shown, without_cr, words};

/// Takes what is read, in the order of the file.
///
/// Costs are as written: zeros at the end may be missing. Numbers of names mean something once the reader has returned
/// its [`Names`].
pub trait Sink {
    /// A part begins.
    fn part(&mut self, header: &PartHeader);

    /// Self cost.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum does not fit; reading ends then.
    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge>;

    /// A call and its inclusive cost.
    ///
    /// # Errors
    /// As [`Sink::row`].
    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge>;

    /// A jump.
    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump);

    /// What follows, until this is called again, belongs to this function, which was inlined into the one that is named with it.
    /// Called only where that changes. At the beginning of a part nothing is inlined.
    fn inlined(&mut self, _function: Option<FunctionId>) {}

    /// A line that begins with `#` and means nothing to this format, as those that tell of processes ([`crate::tree`]); it comes before the
    /// part that follows it.
    fn comment(&mut self, _line: &[u8]) {}

    /// A chain of calls with its self costs: how many callers it has, of which the last one is the chain before it that has one
    /// less; the function; how often that was called there. Whoever does not want chains need not take them.
    ///
    /// # Errors
    /// As [`Sink::row`].
    fn chain(&mut self, _depth: usize, _function: FunctionId, _calls: u64, _costs: &[i64]) -> Result<(), TooLarge> {
        Ok(())
    }
}

/// What was read beside rows, calls and jumps.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What stands at the beginning of the file.
    pub header: Header,
    /// The parts, in their order.
    pub parts: Vec<PartEnd>,
    /// The names that the numbers stand for.
    pub names: Names,
    /// How often a name was meant by a number that has none, as where the part that gives it was cut off. A function is
    /// then called by its number, a file or an object `???`.
    pub unnamed: u64,
}

/// What a file or object is called whose name is not known.
const UNKNOWN: &[u8] = b"???";

/// A part that was read.
#[derive(Clone, Debug, Default)]
pub struct PartEnd {
    /// What stands at its beginning.
    pub header: Box<PartHeader>,
    /// The `summary:` line, if there is one; it may have fewer values than there are events.
    pub summary: Option<Vec<i128>>,
    /// The `totals:` line, likewise.
    pub totals: Option<Vec<i128>>,
}

/// Reads a profile; `name` is what errors call the input.
///
/// # Errors
/// [`ReadError`] names the first line at fault.
pub fn read(input: impl Read, name: &str, sink: &mut impl Sink) -> Result<Outcome, ReadError> {
    let mut parser = Parser::default();
    let fault = |line, kind| ReadError { name: name.to_owned(), line, kind };
    let mut source = LineSource::new(input);
    loop {
        let piece = source.next_piece().map_err(|error| error.after(name, parser.line))?;
        if piece.text().is_empty() {
            break;
        }
        parser.piece(piece.padded, sink).map_err(|kind| fault(Some(parser.line), kind))?;
    }
    let end = Some(parser.line + 1);
    parser.begin(sink);
    if parser.outcome.parts.is_empty() {
        let kind = if parser.line == 0 { ReadErrorKind::Empty } else { ReadErrorKind::NoEvents };
        return Err(fault(end, kind));
    }
    if !matches!(parser.next, Next::Row) {
        return Err(fault(end, ReadErrorKind::NoSource));
    }
    Ok(parser.outcome)
}

type Step<T> = Result<T, ReadErrorKind>;

/// What the next line of costs is.
#[derive(Clone, Copy)]
enum Next {
    /// Self cost.
    Row,
    /// The inclusive cost of this call.
    Call(Call),
    /// The source of this jump.
    Jump(Jump),
}

/// Strings that have a number in the file.
struct Numbered<T> {
    /// The numbers of most files are dense: each is at most twice as large as there are of them, and a few. Others go to
    /// the map, so that memory does not grow with the numbers.
    dense: Vec<Option<T>>,
    /// How many were put into `dense`.
    count: usize,
    sparse: std::collections::HashMap<u64, T>,
}

/// So many numbers may be left out besides.
const GAP: usize = 64;

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), count: 0, sparse: std::collections::HashMap::new() }
    }
}

impl<T: Copy> Numbered<T> {
    fn get(&self, number: u64) -> Option<T> {
        let dense = usize::try_from(number).ok().and_then(|at| self.dense.get(at)).copied().flatten();
        // As a rule there is none in the map.
        if dense.is_none() && !self.sparse.is_empty() { self.sparse.get(&number).copied() } else { dense }
    }

    fn set(&mut self, number: u64, value: T) {
        let most = 2 * self.count + GAP;
        let Some(at) = usize::try_from(number).ok().filter(|at| *at < most) else {
            self.sparse.insert(number, value);
            return;
        };
        if self.dense.len() <= at {
            self.dense.resize(at + 1, None);
        }
        self.count += usize::from(self.dense[at].replace(value).is_none());
        self.sparse.remove(&number);
    }
}

/// A callee in the making.
#[derive(Clone, Copy, Default)]
struct Callee {
    object: Option<ObjectId>,
    file: Option<FileId>,
    name: Option<u32>,
    /// Object and file that were named after the function: its own, or those of the next one.
    late: (Option<ObjectId>, Option<FileId>),
}

struct Parser {
    /// The line that is being read, from 1.
    line: u64,
    outcome: Outcome,
    /// The header of the part to come.
    pending: PartHeader,
    /// Whether the sink knows of the last part: of one that says nothing it is never told.
    begun: bool,
    objects: Numbered<ObjectId>,
    files: Numbered<FileId>,
    texts: Numbered<u32>,
    object: Option<ObjectId>,
    file: Option<FileId>,
    function: Option<FunctionId>,
    /// The inlined function that was named, and the one that the sink was told of.
    inlined: Option<FunctionId>,
    told_inlined: Option<FunctionId>,
    callee: Callee,
    jump_file: Option<FileId>,
    jump_name: Option<u32>,
    next: Next,
    /// What the columns of a position are; the length of a row's position.
    columns: Vec<Column>,
    last: Place,
    last_bb: u64,
    width: usize,
    scratch: Vec<i64>,
    /// If those of this part have begun.
    chains: Option<Reading>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Instr,
    Block,
    Line,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            line: 0,
            outcome: Outcome::default(),
            pending: PartHeader::default(),
            begun: true,
            objects: Numbered::default(),
            files: Numbered::default(),
            texts: Numbered::default(),
            object: None,
            file: None,
            function: None,
            inlined: None,
            told_inlined: None,
            callee: Callee::default(),
            jump_file: None,
            jump_name: None,
            next: Next::Row,
            columns: vec![Column::Line],
            last: Place::default(),
            last_bb: 0,
            width: 0,
            scratch: Vec::new(),
            chains: None,
        }
    }
}

impl Parser {
    /// Takes whole lines and [`PAD`] bytes behind them.
    fn piece(&mut self, mut rest: &[u8], sink: &mut impl Sink) -> Step<()> {
        while rest.len() > PAD {
            self.line += 1;
            let used = match rest[0] {
                b'0'..=b'9' | b'+' | b'-' | b'*' => self.costs(rest, sink)?,
                _ => {
                    let whole = first_line(rest);
                    self.other(without_cr(whole), sink)?;
                    whole.len() + 1
                }
            };
            rest = &rest[used..];
        }
        Ok(())
    }

    /// A line of a position and costs; returns its length.
    fn costs(&mut self, text: &[u8], sink: &mut impl Sink) -> Step<usize> {
        if self.width == 0 {
            return Err(ReadErrorKind::NoEvents);
        }
        let bad = || ReadErrorKind::BadNumber(shown(without_cr(first_line(text))));
        let mut at = 0;
        let mut place = self.last;
        let mut bb = self.last_bb;
        for column in &self.columns {
            let (last, high) = match column {
                Column::Instr => (place.addr, u64::MAX),
                Column::Block => (bb, u64::MAX),
                Column::Line => (u64::from(place.line), u64::from(u32::MAX)),
            };
            let (value, length) = position(&text[at..], last).ok_or_else(bad)?;
            let Some(value) = value.filter(|value| *value <= high) else { return Err(ReadErrorKind::BadPosition) };
            match column {
                Column::Instr => place.addr = value,
                Column::Block => bb = value,
                Column::Line => place.line = value as u32,
            }
            at += length;
            while is_blank(text[at]) {
                at += 1;
            }
        }
        self.scratch.clear();
        while text[at] != b'\n' {
            let (mut value, mut length) = digits(&text[at..]);
            if length == 0 || length > DIGITS || text[at + length] > b' ' {
                (value, length) = careful(&text[at..]).ok_or_else(bad)??;
            }
            if self.scratch.len() == self.width {
                return Err(ReadErrorKind::TooManyCosts);
            }
            // The reference's counters can pass below 0: what it then writes stands for a negative number.
            self.scratch.push(value as i64);
            at += length;
            while is_blank(text[at]) {
                at += 1;
            }
        }
        self.last = place;
        self.last_bb = bb;
        let (Some(function), Some(file)) = (self.function, self.file) else { return Err(ReadErrorKind::NoFunction) };
        let position = Position { place, file };
        self.tell_inlined(sink);
        let done = match std::mem::replace(&mut self.next, Next::Row) {
            Next::Row => sink.row(function, position, &self.scratch),
            Next::Call(call) => sink.call(function, position, &call, &self.scratch),
            Next::Jump(jump) => {
                sink.jump(function, position, &jump);
                Ok(())
            }
        };
        done.map_err(|TooLarge| ReadErrorKind::TooLarge)?;
        Ok(at + 1)
    }

    /// A line that is no row.
    fn other(&mut self, line: &[u8], sink: &mut impl Sink) -> Step<()> {
        if line.is_empty() {
            return Ok(());
        }
        if line[0] == b'#' {
            return self.comment(line, sink);
        }
        // Blanks around the sign are allowed, though nobody writes them.
        let end = line.iter().position(|byte| matches!(byte, b'=' | b':'));
        let Some(end) = end else { return Err(ReadErrorKind::Malformed(shown(line))) };
        let key = trimmed(&line[..end]);
        let value = &line[end + 1..];
        if line[end] == b':' {
            return self.header_line(key, value, line, sink);
        }
        if !matches!(self.next, Next::Row) {
            return Err(ReadErrorKind::NoSource);
        }
        self.begin(sink);
        let value = trimmed(value);
        match key {
            b"fn" => {
                let name = self.text_of(value);
                let names = &mut self.outcome.names;
                let file = *self.file.get_or_insert_with(|| names.file(UNKNOWN));
                let object = *self.object.get_or_insert_with(|| names.object(b""));
                self.function = Some(names.function_of(Function { name, file, object }));
                // Relative positions go on from the last one whatever the function; nobody counts on more than that.
                self.callee = Callee::default();
                (self.jump_file, self.jump_name) = (None, None);
                self.inlined = None;
            }
            b"fl" => {
                self.file = Some(self.file_of(value));
                self.unspecified();
            }
            b"fi" | b"fe" => self.file = Some(self.file_of(value)),
            b"ob" => self.object = Some(self.object_of(value)),
            b"cfn" => {
                let name = self.text_of(value);
                if self.callee.name.is_some() {
                    // The reference names callees whose calls it then leaves out.
                    let (object, file) = self.callee.late;
                    self.callee = Callee { object, file, ..Callee::default() };
                }
                self.callee.name = Some(name);
            }
            b"cfi" | b"cfl" => {
                let file = Some(self.file_of(value));
                *(if self.callee.name.is_some() { &mut self.callee.late.1 } else { &mut self.callee.file }) = file;
            }
            b"cob" => {
                let object = Some(self.object_of(value));
                *(if self.callee.name.is_some() { &mut self.callee.late.0 } else { &mut self.callee.object }) = object;
            }
            b"calls" | b"rcalls" => self.calls(value)?,
            b"jfi" | b"jfl" => self.jump_file = Some(self.file_of(value)),
            b"jfn" => self.jump_name = Some(self.text_of(value)),
            b"jump" | b"jcnd" => self.jump(value, key == b"jcnd")?,
            b"cfni" => {
                let name = self.text_of(value);
                let names = &mut self.outcome.names;
                let unknown = names.text(UNKNOWN);
                let file = *self.file.get_or_insert_with(|| names.file(UNKNOWN));
                let object = *self.object.get_or_insert_with(|| names.object(b""));
                let function = (name != unknown).then(|| names.function_of(Function { name, file, object }));
                self.inlined = function;
            }
            // A frame function of old files; it changes nothing.
            b"frfn" => {}
            _ => return Err(ReadErrorKind::Malformed(shown(line))),
        }
        Ok(())
    }

    /// A comment, which may say something of chains.
    fn comment(&mut self, line: &[u8], sink: &mut impl Sink) -> Step<()> {
        if line.starts_with(chains::BEGIN) && self.width > 0 {
            self.begin(sink);
            self.chains = Some(Reading::default());
            return Ok(());
        }
        let Some(mut reading) = self.chains.take() else {
            sink.comment(line);
            return Ok(());
        };
        let key = line.iter().position(|byte| *byte == b'=').map_or(0, |end| end + 1);
        let (key, value) = line.split_at(key);
        match key {
            b"#ob=" => reading.object = Some(self.object_of(trimmed(value))),
            b"#fl=" => reading.file = Some(self.file_of(trimmed(value))),
            b"#fn=" => {
                let name = self.text_of(trimmed(value));
                let names = &mut self.outcome.names;
                let file = *reading.file.get_or_insert_with(|| names.file(UNKNOWN));
                let object = *reading.object.get_or_insert_with(|| names.object(b""));
                reading.functions.push(names.function_of(Function { name, file, object }));
            }
            b"#c=" => {
                let bad = || ReadErrorKind::Malformed(shown(line));
                let (depth, function, calls) = reading.chain(value, &mut self.scratch).ok_or_else(bad)?;
                if self.scratch.len() > self.width {
                    return Err(ReadErrorKind::TooManyCosts);
                }
                sink.chain(depth, function, calls, &self.scratch).map_err(|TooLarge| ReadErrorKind::TooLarge)?;
            }
            _ => sink.comment(line),
        }
        self.chains = Some(reading);
        Ok(())
    }

    fn text_of(&mut self, value: &[u8]) -> u32 {
        let Outcome { names, unnamed, .. } = &mut self.outcome;
        resolve(&mut self.texts, value, value, unnamed, |name| names.text(name))
    }

    fn file_of(&mut self, value: &[u8]) -> FileId {
        let Outcome { names, unnamed, .. } = &mut self.outcome;
        resolve(&mut self.files, value, UNKNOWN, unnamed, |name| names.file(name))
    }

    fn object_of(&mut self, value: &[u8]) -> ObjectId {
        let Outcome { names, unnamed, .. } = &mut self.outcome;
        resolve(&mut self.objects, value, UNKNOWN, unnamed, |name| names.object(name))
    }

    /// Cachegrind's format lets costs follow a file directly: they belong to nobody in particular.
    fn unspecified(&mut self) {
        if self.outcome.header.creator.is_empty() && self.function.is_none() {
            let (names, Some(file)) = (&mut self.outcome.names, self.file) else { return };
            let object = *self.object.get_or_insert_with(|| names.object(b""));
            self.function = Some(names.function(cachegrind::UNSPECIFIED, file, object));
        }
    }

    /// Tells the sink which inlined function the costs that come next are of. A line that names one may stand anywhere, even
    /// before there is a part.
    fn tell_inlined(&mut self, sink: &mut dyn Sink) {
        if self.told_inlined != self.inlined {
            self.told_inlined = self.inlined;
            sink.inlined(self.inlined);
        }
    }

    fn calls(&mut self, value: &[u8]) -> Step<()> {
        let Callee { object, file, name, late } = std::mem::take(&mut self.callee);
        let name = name.ok_or(ReadErrorKind::NoCallee)?;
        let here = self.function.ok_or(ReadErrorKind::NoFunction)?;
        let file = late.1.or(file).or(self.file).ok_or(ReadErrorKind::NoFunction)?;
        let object = late.0.or(object).unwrap_or_else(|| self.outcome.names.get(here).object);
        let callee = self.outcome.names.function_of(Function { name, file, object });
        let mut words = words(value);
        let count = words.next().and_then(number).ok_or_else(|| ReadErrorKind::BadNumber(shown(value)))??;
        let target = self.target(words)?;
        self.next = Next::Call(Call { callee, target, count });
        Ok(())
    }

    fn jump(&mut self, value: &[u8], conditional: bool) -> Step<()> {
        let bad = || ReadErrorKind::BadNumber(shown(value));
        let here = self.function.ok_or(ReadErrorKind::NoFunction)?;
        let file = self.jump_file.take().or(self.file).ok_or(ReadErrorKind::NoFunction)?;
        let function = self.jump_name.take().map(|name| {
            let object = self.outcome.names.get(here).object;
            self.outcome.names.function_of(Function { name, file, object })
        });
        let mut words = words(value);
        let first = words.next().ok_or_else(bad)?;
        let kind = if conditional {
            // `taken/executed`; the words of the format's description, two numbers, are understood too.
            let (taken, executed) = match first.iter().position(|byte| *byte == b'/') {
                Some(slash) => (&first[..slash], &first[slash + 1..]),
                None => (words.next().ok_or_else(bad)?, first),
            };
            let taken = number(taken).ok_or_else(bad)??;
            JumpKind::Conditional { taken, executed: number(executed).ok_or_else(bad)?? }
        } else {
            JumpKind::Always { count: number(first).ok_or_else(bad)?? }
        };
        let place = self.target(words)?;
        self.next = Next::Jump(Jump { target: Position { place, file }, function, kind });
        Ok(())
    }

    /// A place relative to the last one, which it does not become. Missing columns are 0; more of them are ignored,
    /// since other programs write such.
    fn target<'t>(&self, mut words: impl Iterator<Item = &'t [u8]>) -> Step<Place> {
        let mut target = Place::default();
        for column in &self.columns {
            let Some(word) = words.next() else { break };
            let (last, high) = match column {
                Column::Instr => (self.last.addr, u64::MAX),
                Column::Block => (self.last_bb, u64::MAX),
                Column::Line => (u64::from(self.last.line), u64::from(u32::MAX)),
            };
            let value = whole_position(word, last).ok_or_else(|| ReadErrorKind::BadNumber(shown(word)))?;
            let Some(value) = value.filter(|value| *value <= high) else { return Err(ReadErrorKind::BadPosition) };
            match column {
                Column::Instr => target.addr = value,
                Column::Block => {}
                Column::Line => target.line = value as u32,
            }
        }
        Ok(target)
    }

    fn header_line(&mut self, key: &[u8], value: &[u8], line: &[u8], sink: &mut impl Sink) -> Step<()> {
        if !key.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) || key.is_empty() {
            return Err(ReadErrorKind::Malformed(shown(line)));
        }
        let text = value.strip_prefix(b" ").unwrap_or(value);
        let trimmed = trimmed(value);
        let header = &mut self.outcome.header;
        let first = self.outcome.parts.is_empty();
        let bad = || ReadErrorKind::BadNumber(shown(line));
        match key {
            b"version" if trimmed != b"1" => return Err(ReadErrorKind::Version(shown(trimmed))),
            // They may stand behind the events; what a later part says again changes nothing.
            b"creator" if header.creator.is_empty() => header.creator = trimmed.to_vec(),
            b"pid" if header.pid.is_none() => header.pid = Some(number(trimmed).ok_or_else(bad)??),
            b"cmd" if header.cmd.is_empty() => header.cmd = text.to_vec(),
            b"part" => self.pending.number = Some(number(trimmed).ok_or_else(bad)??),
            b"thread" => self.pending.thread = Some(number(trimmed).ok_or_else(bad)??),
            b"desc" => {
                let of_part = [&b"Timerange:"[..], b"Trigger:"].iter().any(|key| text.starts_with(key));
                if first && !of_part && self.pending.desc.is_empty() {
                    header.desc.push(text.to_vec());
                } else {
                    self.pending.desc.push(text.to_vec());
                }
            }
            b"positions" => self.positions(trimmed)?,
            b"event" => {
                let colon = trimmed.iter().position(|byte| *byte == b':').unwrap_or(trimmed.len());
                let (name, meaning) = (&trimmed[..colon], trimmed.get(colon + 1..).unwrap_or_default());
                let [name, meaning] = [name, meaning].map(|part| self::trimmed(part).to_vec());
                self.pending.types.push(EventType { name, meaning });
            }
            b"events" => self.events(trimmed, sink)?,
            b"summary" | b"totals" => {
                self.begin(sink);
                self.chains = None;
                let width = self.width;
                let part = self.outcome.parts.last_mut().ok_or(ReadErrorKind::NoEvents)?;
                let sums: Option<Vec<i128>> = words(trimmed).map(|word| crate::count::parse(word).ok()).collect();
                let sums = sums.ok_or_else(bad)?;
                if sums.len() > width {
                    return Err(ReadErrorKind::TooManyCosts);
                }
                *(if key == b"summary" { &mut part.summary } else { &mut part.totals }) = Some(sums);
            }
            _ => {}
        }
        Ok(())
    }

    fn positions(&mut self, value: &[u8]) -> Step<()> {
        let mut columns = Vec::new();
        for word in words(value) {
            let column = match word {
                b"instr" | b"addr" => Column::Instr,
                b"bb" => Column::Block,
                b"line" => Column::Line,
                _ => return Err(ReadErrorKind::BadPositions(shown(word))),
            };
            if columns.contains(&column) {
                return Err(ReadErrorKind::BadPositions(shown(value)));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            return Err(ReadErrorKind::BadPositions(String::new()));
        }
        let has = |column| columns.contains(&column);
        self.pending.positions = Positions { instr: has(Column::Instr), line: has(Column::Line) };
        self.columns = columns;
        Ok(())
    }

    /// Tells the sink of the last part, if it has not been.
    fn begin(&mut self, sink: &mut impl Sink) {
        if !self.begun {
            self.begun = true;
            sink.part(&self.outcome.parts[self.outcome.parts.len() - 1].header);
        }
    }

    fn events(&mut self, value: &[u8], sink: &mut impl Sink) -> Step<()> {
        let mut events: Vec<String> = Vec::new();
        for name in words(value) {
            let bad = || ReadErrorKind::BadEvent(shown(name));
            let name = std::str::from_utf8(name).map_err(|_| bad())?;
            if events.iter().any(|other| other == name) {
                return Err(bad());
            }
            if events.len() == MOST_EVENTS {
                return Err(ReadErrorKind::TooManyEvents);
            }
            events.push(name.to_owned());
        }
        if events.is_empty() {
            return Err(ReadErrorKind::NoEvents);
        }
        events.shrink_to_fit();
        self.width = events.len();
        let positions = self.pending.positions;
        let header = PartHeader { events, ..std::mem::take(&mut self.pending) };
        self.pending.positions = positions;
        (self.last, self.last_bb) = (Place::default(), 0);
        // Names are said again in each part.
        (self.object, self.file, self.function, self.callee) = (None, None, None, Callee::default());
        (self.inlined, self.told_inlined) = (None, None);
        self.chains = None;
        // A part without a number, costs and sums is none: another list of events takes its place.
        let nothing = |part: &PartEnd| part.header.number.is_none() && part.header.desc.is_empty();
        if !self.begun && self.outcome.parts.last().is_some_and(nothing) {
            self.outcome.parts.pop();
            self.begun = true;
        }
        self.begin(sink);
        self.outcome.parts.push(PartEnd { header: Box::new(header), summary: None, totals: None });
        self.begun = false;
        Ok(())
    }
}

/// What `(7) name`, `(7)` or `name` stands for; a number without a name, which is counted, for `unknown`.
fn resolve<T: Copy>(
    known: &mut Numbered<T>,
    value: &[u8],
    unknown: &[u8],
    unnamed: &mut u64,
    intern: impl FnOnce(&[u8]) -> T,
) -> T {
    if value.first() == Some(&b'(')
        && let Some(close) = value.iter().position(|byte| *byte == b')')
        && close > 1
        && let Some(Ok(id)) = number(&value[1..close])
    {
        let name = trimmed(&value[close + 1..]);
        if name.is_empty() {
            return known.get(id).unwrap_or_else(|| {
                *unnamed += 1;
                intern(unknown)
            });
        }
        let name = intern(name);
        known.set(id, name);
        return name;
    }
    intern(value)
}

fn trimmed(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|byte| !is_blank(*byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    &text[start..end]
}
