//! Writes callgrind profiles, part by part.
//!
//! The output depends on names and positions, never on the order of insertion, on addresses of memory or on hash seeds:
//! functions are sorted by object, file and name, and what happened in one by address. Where addresses are not known
//! the order of insertion within a function is kept. Sums are made here, so `summary:` and `totals:` cannot disagree
//! with the rows. What is written can be read back: line breaks in names become `\n`.
//!
//! Every part defines the names that it uses again, with the numbers they had: a reader may look at one part alone.

use std::io::{self, Write};

use super::chains::{self, Chains};
use super::model::{Body, Call, Entry, Header, Jump, JumpKind, Part, Place, Positions, Site};
use super::names::{FileId, FunctionId, Names};
use crate::text::out::Lines;

/// How a profile is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Write names once and then by number.
    pub compress_strings: bool,
    /// Write positions relative to the one before.
    pub compress_positions: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { compress_strings: true, compress_positions: true }
    }
}

/// Writes the parts of one file, or of several files that share the numbers of names.
#[derive(Clone, Debug)]
pub struct Writer {
    options: WriteOptions,
    objects: Numbers,
    files: Numbers,
    functions: Numbers,
}

/// Numbers given to names of one kind.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// By name's index: its number, 0 for none yet, and the part that defined it last.
    of: Vec<(u32, u32)>,
    last: u32,
    part: u32,
}

impl Numbers {
    /// The number of a name, and whether this part has not defined it yet.
    fn of(&mut self, index: usize) -> (u32, bool) {
        if self.of.len() <= index {
            self.of.resize(index + 1, (0, 0));
        }
        let entry = &mut self.of[index];
        if entry.0 == 0 {
            self.last += 1;
            entry.0 = self.last;
        }
        (entry.0, std::mem::replace(&mut entry.1, self.part) != self.part)
    }
}

impl Writer {
    /// A writer that has not numbered any names yet.
    #[must_use]
    pub fn new(options: WriteOptions) -> Self {
        Self { options, objects: Numbers::default(), files: Numbers::default(), functions: Numbers::default() }
    }

    /// Writes what stands at the beginning of a file; a file of several parts has it once.
    ///
    /// # Errors
    /// Whatever `out` answers; so do the methods below.
    pub fn header(&mut self, out: &mut dyn Write, header: &Header) -> io::Result<()> {
        let mut text = Lines::new(out);
        text.line(b"# callgrind format\nversion: 1", b"")?;
        if !header.creator.is_empty() {
            text.line(b"creator: ", &header.creator)?;
        }
        if let Some(pid) = header.pid {
            text.bytes(b"pid: ").decimal(pid).end()?;
        }
        text.line(b"cmd: ", &header.cmd)?;
        text.finish()
    }

    /// Writes a part. `desc` are the lines of [`Header::desc`], which stand within the first part only.
    ///
    /// # Errors
    /// As [`Writer::header`]; nothing is written of a part whose costs cannot be added up in 127 bits.
    pub fn part(&mut self, out: &mut dyn Write, names: &Names, part: &Part, desc: &[Vec<u8>]) -> io::Result<()> {
        for numbers in [&mut self.objects, &mut self.files, &mut self.functions] {
            numbers.part += 1;
        }
        let total = part.total();
        let mut text = Lines::new(out);
        let header = &part.header;
        if let Some(number) = header.number {
            text.bytes(b"part: ").decimal(number).end()?;
        }
        if let Some(thread) = header.thread {
            text.bytes(b"thread: ").decimal(thread).end()?;
        }
        text.end()?;
        if !desc.is_empty() {
            text.end()?;
            for line in desc {
                text.line(b"desc: ", line)?;
            }
            text.end()?;
        }
        for line in &header.desc {
            text.line(b"desc: ", line)?;
        }
        let Positions { instr, line } = header.positions;
        // Something must be told of where; so does the reference.
        let positions = Positions { instr, line: line || !instr };
        text.bytes(b"\npositions:").bytes(if instr { b" instr" } else { b"" });
        text.bytes(if positions.line { b" line" } else { b"" }).end()?;
        for kind in &header.types {
            text.bytes(b"event: ").name(&kind.name).bytes(b" : ").name(&kind.meaning).end()?;
        }
        text.bytes(b"events: ").bytes(header.events.join(" ").as_bytes()).end()?;
        text.bytes(b"summary:").sums(&total).end()?;
        text.bytes(b"\n").end()?;
        let mut functions: Vec<&Body> = part.bodies().iter().collect();
        functions.sort_by(|a, b| names.order(a.function).cmp(&names.order(b.function)));
        let mut body = BodyWriter {
            writer: self,
            names,
            text,
            positions,
            width: header.events.len(),
            object: None,
            file: None,
            inlined: None,
            last: Place::default(),
        };
        for function in functions {
            body.function(function)?;
        }
        body.chains(part.chains())?;
        let mut text = body.text;
        text.bytes(b"totals:").sums(&total).end()?;
        text.finish()
    }

    /// Writes a whole profile to one file.
    ///
    /// # Errors
    /// As [`Writer::header`].
    pub fn profile(&mut self, out: &mut dyn Write, profile: &super::Profile) -> io::Result<()> {
        self.header(out, &profile.header)?;
        for (i, part) in profile.parts.iter().enumerate() {
            if i > 0 {
                out.write_all(b"\n")?;
            }
            self.part(out, &profile.names, part, if i == 0 { &profile.header.desc } else { &[] })?;
        }
        Ok(())
    }
}

/// Self cost of neighbouring instructions that will be one row.
struct Pending<'a> {
    place: Place,
    file: FileId,
    inlined: Option<FunctionId>,
    costs: std::borrow::Cow<'a, [i64]>,
}

struct BodyWriter<'a, 'o> {
    writer: &'a mut Writer,
    names: &'a Names,
    text: Lines<'o>,
    positions: Positions,
    width: usize,
    /// The object and the file that a reader knows to be the current ones.
    object: Option<super::ObjectId>,
    file: Option<FileId>,
    /// The name of the inlined function that a reader knows to be the current one.
    inlined: Option<FunctionId>,
    /// The position that a reader knows as the last one.
    last: Place,
}

impl<'a> BodyWriter<'a, '_> {
    fn function(&mut self, body: &'a Body) -> io::Result<()> {
        if body.entries.is_empty() {
            return Ok(());
        }
        let function = self.names.get(body.function);
        if self.object != Some(function.object) {
            self.object = Some(function.object);
            if !self.names.object_name(function.object).is_empty() {
                self.object_line(b"ob=", function.object)?;
            }
        }
        if self.file != Some(function.file) {
            self.file_line(b"fl=", function.file)?;
            self.file = Some(function.file);
        }
        self.function_line(b"fn=", body.function)?;
        self.inlined = None;
        self.last = Place::default();
        let mut entries: Vec<&Entry> = body.entries.iter().collect();
        // Stable: without addresses the order of insertion is all there is.
        entries.sort_by_cached_key(|entry| self.key(entry));
        let mut pending: Option<Pending<'a>> = None;
        for entry in entries {
            if let Site::Row { costs } = entry.site {
                let costs = body.costs(costs);
                match &mut pending {
                    Some(row) if self.same_row(row, entry) => {
                        for (sum, cost) in row.costs.to_mut().iter_mut().zip(costs) {
                            *sum = sum.checked_add(*cost).ok_or_else(too_large)?;
                        }
                    }
                    row => {
                        if let Some(row) = row.take() {
                            self.row(&row, function.file)?;
                        }
                        *row = Some(Pending {
                            place: entry.at.place,
                            file: entry.at.file,
                            inlined: entry.inlined,
                            costs: costs.into(),
                        });
                    }
                }
                continue;
            }
            if let Some(row) = pending.take() {
                self.row(&row, function.file)?;
            }
            match &entry.site {
                Site::Call { call, costs } => {
                    let costs = body.costs(*costs);
                    if call.count > 0 || costs.iter().any(|cost| *cost != 0) {
                        self.source(entry.at.file, function.file, entry.inlined)?;
                        self.call(call, function.object)?;
                        self.place(entry.at.place);
                        self.costs(costs);
                        self.text.end()?;
                    }
                }
                Site::Jump(jump) => {
                    self.source(entry.at.file, function.file, entry.inlined)?;
                    self.jump(jump, body.function)?;
                    self.place(entry.at.place);
                    self.text.end()?;
                }
                Site::Row { .. } => unreachable!("handled above"),
            }
        }
        if let Some(row) = pending {
            self.row(&row, function.file)?;
        }
        self.source(function.file, function.file, None)?;
        self.text.end()
    }

    fn chains(&mut self, chains: &Chains) -> io::Result<()> {
        let all = chains.all();
        if all.is_empty() {
            return Ok(());
        }
        let order = chains.in_order(self.names);
        let (functions, places) = chains.functions(&order);
        self.text.bytes(chains::BEGIN).bytes(b" ").decimal(all.len() as u64).end()?;
        let (mut object, mut file) = (None, None);
        for function in functions {
            let known = self.names.get(function);
            if object.replace(known.object) != Some(known.object) {
                self.object_line(b"#ob=", known.object)?;
            }
            if file.replace(known.file) != Some(known.file) {
                self.file_line(b"#fl=", known.file)?;
            }
            self.function_line(b"#fn=", function)?;
        }
        for (n, depth) in order {
            let chain = all[n as usize];
            self.text.bytes(b"#c=").decimal(depth as u64).bytes(b" ").decimal(places[&chain.function] as u64);
            self.text.bytes(b" ").decimal(chain.calls);
            let costs = chains.costs(n);
            let used = costs.iter().rposition(|cost| *cost != 0).map_or(0, |last| last + 1);
            for cost in &costs[..used] {
                self.text.bytes(b" ").signed(*cost);
            }
            self.text.end()?;
        }
        Ok(())
    }

    /// What entries of a function are ordered by. Where no address is known they keep their order.
    fn key(&self, entry: &Entry) -> Key<'a> {
        let addr = entry.at.place.addr;
        if addr == 0 {
            return Key::default();
        }
        let here = self.names.file_name(entry.at.file);
        match &entry.site {
            Site::Row { .. } => Key { addr, kind: 1, target: entry.at.place, file: here, ..Key::default() },
            Site::Call { call, .. } => Key {
                addr,
                kind: 2,
                target: call.target,
                file: here,
                function: Some(self.names.order(call.callee)),
                count: call.count,
            },
            Site::Jump(jump) => Key {
                addr,
                kind: 3,
                target: jump.target.place,
                file: self.names.file_name(jump.target.file),
                function: jump.function.map(|function| self.names.order(function)),
                count: match jump.kind {
                    JumpKind::Always { count } => count,
                    JumpKind::Conditional { executed, .. } => executed,
                },
            },
        }
    }

    fn same_row(&self, row: &Pending<'_>, entry: &Entry) -> bool {
        let at = entry.at;
        row.file == at.file
            && row.place.line == at.place.line
            && row.inlined == entry.inlined
            && (!self.positions.instr || row.place.addr == at.place.addr)
    }

    fn row(&mut self, row: &Pending<'_>, home: FileId) -> io::Result<()> {
        if row.costs.iter().all(|cost| *cost == 0) {
            return Ok(());
        }
        self.source(row.file, home, row.inlined)?;
        self.place(row.place);
        self.costs(&row.costs);
        self.text.end()
    }

    /// Says that the lines that follow are of `file`, and of a function that was inlined, or of none.
    fn source(&mut self, file: FileId, home: FileId, inlined: Option<FunctionId>) -> io::Result<()> {
        if self.file != Some(file) {
            self.file = Some(file);
            self.file_line(if file == home { b"fe=" } else { b"fi=" }, file)?;
        }
        if self.inlined != inlined {
            self.inlined = inlined;
            // Readers that leave such lines out must not miss a number: names are written as they are.
            let name = inlined.map(|function| self.names.function_name(function)).filter(|name| !looks_numbered(name));
            self.text.line(b"cfni=", name.unwrap_or(b"???"))?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call, object: super::ObjectId) -> io::Result<()> {
        let callee = self.names.get(call.callee);
        // One without a name, too: where nothing is said, it is the caller's.
        if callee.object != object {
            self.object_line(b"cob=", callee.object)?;
        }
        if self.file != Some(callee.file) {
            self.file_line(b"cfi=", callee.file)?;
        }
        self.function_line(b"cfn=", call.callee)?;
        self.text.bytes(b"calls=").decimal(call.count).bytes(b" ");
        self.target(call.target);
        self.text.end()
    }

    fn jump(&mut self, jump: &Jump, home: FunctionId) -> io::Result<()> {
        if self.file != Some(jump.target.file) {
            self.file_line(b"jfi=", jump.target.file)?;
        }
        if let Some(function) = jump.function.filter(|function| *function != home) {
            self.function_line(b"jfn=", function)?;
        }
        match jump.kind {
            JumpKind::Always { count } => self.text.bytes(b"jump=").decimal(count),
            JumpKind::Conditional { taken, executed } => {
                self.text.bytes(b"jcnd=").decimal(taken).bytes(b"/").decimal(executed)
            }
        };
        self.text.bytes(b" ");
        self.target(jump.target.place);
        self.text.end()
    }

    /// Writes the place of a row and takes it for the last one.
    fn place(&mut self, place: Place) {
        self.target(place);
        self.last = place;
    }

    /// Writes a place without taking it for the last one.
    fn target(&mut self, place: Place) {
        let compress = self.writer.options.compress_positions;
        if self.positions.instr {
            if !compress || !self.text.relative(self.last.addr, place.addr) {
                self.text.hexadecimal(place.addr);
            }
            self.text.bytes(b" ");
        }
        if self.positions.line {
            let (last, line) = (u64::from(self.last.line), u64::from(place.line));
            if !compress || !self.text.relative(last, line) {
                self.text.decimal(line);
            }
            self.text.bytes(b" ");
        }
    }

    fn costs(&mut self, costs: &[i64]) {
        debug_assert_eq!(costs.len(), self.width);
        let used = costs.iter().rposition(|cost| *cost != 0).map_or(1, |last| last + 1);
        for (i, cost) in costs[..used.min(costs.len())].iter().enumerate() {
            if i > 0 {
                self.text.bytes(b" ");
            }
            self.text.signed(*cost);
        }
    }

    fn object_line(&mut self, key: &[u8], id: super::ObjectId) -> io::Result<()> {
        let number = self.writer.objects.of(id.index());
        let compress = self.writer.options.compress_strings;
        self.text.bytes(key).named(self.names.object_name(id), number, compress)
    }

    fn file_line(&mut self, key: &[u8], id: FileId) -> io::Result<()> {
        let number = self.writer.files.of(id.index());
        let compress = self.writer.options.compress_strings;
        self.text.bytes(key).named(self.names.file_name(id), number, compress)
    }

    fn function_line(&mut self, key: &[u8], id: FunctionId) -> io::Result<()> {
        let number = self.writer.functions.of(id.index());
        let compress = self.writer.options.compress_strings;
        self.text.bytes(key).named(self.names.function_name(id), number, compress)
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    addr: u64,
    kind: u8,
    target: Place,
    file: &'a [u8],
    function: Option<(&'a [u8], &'a [u8], &'a [u8])>,
    count: u64,
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, crate::count::TooLarge)
}

/// What only this format has.
impl Lines<'_> {
    /// A name with its number, or one of them, and the end of the line.
    fn named(&mut self, name: &[u8], (number, fresh): (u32, bool), compress: bool) -> io::Result<()> {
        // A name that looks like a number must not be taken for one, and a number without a name behind it is a reference.
        if compress && !name.is_empty() || looks_numbered(name) {
            self.bytes(b"(").decimal(u64::from(number)).bytes(b")");
            if fresh || !compress {
                self.bytes(b" ").name(name);
            }
        } else {
            self.name(name);
        }
        self.end()
    }

    fn hexadecimal(&mut self, value: u64) -> &mut Self {
        let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
        self.bytes(b"0x");
        for i in (0..digits).rev() {
            self.byte(b"0123456789abcdef"[(value >> (4 * i)) as usize & 15]);
        }
        self
    }

    /// Writes the difference to `last` if that is short, or says that it did not.
    fn relative(&mut self, last: u64, value: u64) -> bool {
        const NEAR: u64 = 100;
        if last == 0 || value.abs_diff(last) >= NEAR {
            return false;
        }
        match value.cmp(&last) {
            std::cmp::Ordering::Equal => self.bytes(b"*"),
            std::cmp::Ordering::Greater => self.bytes(b"+").decimal(value - last),
            std::cmp::Ordering::Less => self.bytes(b"-").decimal(last - value),
        };
        true
    }

    fn sums(&mut self, sums: &[i128]) -> &mut Self {
        for sum in sums {
            self.byte(b' ').wide(*sum);
        }
        self
    }
}

/// Whether a name could be read as `(7)` or `(7) name`.
fn looks_numbered(name: &[u8]) -> bool {
    name.first() == Some(&b'(') && name.get(1).is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::super::{PartHeader, Position};
    use super::*;

    #[test]
    fn places_are_relative_only_where_that_is_short() {
        let mut out = Vec::new();
        let mut text = Lines::new(&mut out);
        for (last, value) in [(0, 5), (5, 5), (5, 104), (5, 105), (200, 101), (200, 100), (1, 0), (0, 0)] {
            if !text.relative(last, value) {
                text.hexadecimal(value);
            }
            text.bytes(b" ");
        }
        text.finish().unwrap();
        assert_eq!(out, b"0x5 * +99 0x69 -99 0x64 -1 0x0 ");
    }

    #[test]
    fn the_order_of_insertion_does_not_matter() {
        let mut names = Names::default();
        let (a, b) = (names.file(b"a.c"), names.file(b"b.h"));
        let object = names.object(b"prog");
        let main = names.function(b"main", a, object);
        let leaf = names.function(b"leaf", b, object);
        let at = |addr, line, file| Position { place: Place { addr, line }, file };
        let header = PartHeader {
            number: Some(1),
            events: vec!["Ir".into(), "Dr".into()],
            positions: Positions { instr: true, line: true },
            ..PartHeader::default()
        };
        let call = Call { callee: leaf, target: Place { addr: 0x2000, line: 3 }, count: 2 };
        let jump =
            Jump { target: at(0x1000, 7, a), function: None, kind: JumpKind::Conditional { taken: 1, executed: 3 } };
        let rows: [&dyn Fn(&mut Part); 6] = [
            &|part| part.add_row(main, at(0x1000, 7, a), &[3]).unwrap(),
            &|part| part.add_row(main, at(0x1004, 9, b), &[3, 1]).unwrap(),
            &|part| part.add_row(main, at(0x1008, 8, a), &[2, 0]).unwrap(),
            &|part| part.add_call(main, at(0x1008, 8, a), call, &[10, 4]).unwrap(),
            &|part| part.add_jump(main, at(0x100a, 8, a), jump),
            &|part| part.add_row(leaf, at(0x2000, 3, b), &[10, 4]).unwrap(),
        ];
        let expected = "part: 1\n\n\npositions: instr line\nevents: Ir Dr\nsummary: 18 5\n\n\n\
            ob=(1) prog\nfl=(1) a.c\nfn=(1) main\n0x1000 7 3\nfi=(2) b.h\n+4 +2 3 1\nfe=(1)\n+4 -1 2\n\
            cfi=(2)\ncfn=(2) leaf\ncalls=2 0x2000 -5 \n* * 10 4\njcnd=1/3 -8 -1 \n+2 * \n\n\
            fl=(2)\nfn=(2)\n0x2000 3 10 4\n\ntotals: 18 5\n";
        for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]] {
            let mut part = Part::new(header.clone());
            order.iter().for_each(|i| rows[*i](&mut part));
            let mut out = Vec::new();
            Writer::new(WriteOptions::default()).part(&mut out, &names, &part, &[]).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn inlined_functions_are_named_where_they_begin_and_end() {
        let mut names = Names::default();
        let (a, b) = (names.file(b"a.c"), names.file(b"b.h"));
        let object = names.object(b"prog");
        let [main, one, two] = [(&b"main"[..], a), (b"one", b), (b"two", a)].map(|(n, f)| names.function(n, f, object));
        let leaf = names.function(b"leaf", a, object);
        let mut part = Part::new(PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
        let at = |addr, line, file| Position { place: Place { addr, line }, file };
        let call = Call { callee: leaf, target: Place { addr: 90, line: 9 }, count: 1 };
        for (inlined, place) in [(None, at(1, 1, a)), (Some(one), at(2, 5, b)), (Some(two), at(3, 5, b))] {
            part.set_inlined(inlined);
            part.add_row(main, place, &[place.place.addr]).unwrap();
        }
        part.add_call(main, at(4, 5, b), call, &[7]).unwrap();
        part.set_inlined(None);
        part.add_row(main, at(5, 2, a), &[5]).unwrap();
        part.add_row(leaf, at(90, 9, a), &[7]).unwrap();
        let mut out = Vec::new();
        Writer::new(WriteOptions::default()).part(&mut out, &names, &part, &[]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "ob=(1) prog\nfl=(1) a.c\nfn=(1) leaf\n9 7\n\nfn=(2) main\n1 1\nfi=(2) b.h\ncfni=one\n+4 2\n\
            cfni=two\n* 3\ncfi=(1)\ncfn=(1)\ncalls=1 +4 \n* 7\nfe=(1)\ncfni=???\n-3 5\n\ntotals: 18\n";
        assert!(text.ends_with(expected), "{text}");

        let read = crate::callgrind::read_profile(text.as_bytes(), "p").unwrap();
        let body = read.parts[0].bodies().iter().find(|b| read.names.function_name(b.function) == b"main").unwrap();
        let inlined = body.entries.iter().map(|e| e.inlined.map(|f| read.names.function_name(f).to_vec()));
        let wanted = [None, Some(&b"one"[..]), Some(b"two"), Some(b"two"), None].map(|n| n.map(<[u8]>::to_vec));
        assert_eq!(inlined.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn lines_are_joined_without_addresses_in_the_output() {
        let mut names = Names::default();
        let file = names.file(b"(1) odd\nname");
        let object = names.object(b"");
        let main = names.function(b"main", file, object);
        let at = |addr, line| Position { place: Place { addr, line }, file };
        let mut part = Part::new(PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
        for (addr, line) in [(9, 2), (5, 1), (6, 1), (8, 1), (7, 0)] {
            part.add_row(main, at(addr, line), &[addr]).unwrap();
        }
        let mut out = Vec::new();
        let options = WriteOptions { compress_strings: false, compress_positions: false };
        let mut writer = Writer::new(options);
        writer.part(&mut out, &names, &part, &[]).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\n\npositions: line\nevents: Ir\nsummary: 35\n\n\nfl=(1) (1) odd\\nname\nfn=main\n1 11\n0 7\n1 8\n2 9\n\n\
             totals: 35\n"
        );
    }

    #[test]
    fn names_keep_their_numbers_and_are_defined_in_each_part() {
        let mut names = Names::default();
        let (a, b) = (names.file(b"a.c"), names.file(b"b.c"));
        let object = names.object(b"prog");
        let (f, g) = (names.function(b"f", b, object), names.function(b"g", a, object));
        let mut writer = Writer::new(WriteOptions::default());
        let mut write = |functions: &[FunctionId]| {
            let mut part = Part::new(PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
            for function in functions {
                let file = names.get(*function).file;
                part.add_row(*function, Position { place: Place { addr: 0, line: 1 }, file }, &[1]).unwrap();
            }
            let mut out = Vec::new();
            writer.part(&mut out, &names, &part, &[]).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().filter(|line| line.contains("=(")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(write(&[f]), "ob=(1) prog fl=(1) b.c fn=(1) f");
        assert_eq!(write(&[f, g]), "ob=(1) prog fl=(2) a.c fn=(2) g fl=(1) b.c fn=(1) f");
    }
}
