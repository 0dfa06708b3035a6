//! From what a process has executed to its profile.
//!
//! Every executed instruction ends up in exactly one row; the total of the profile is the sum of the counts that the
//! engine reports, whatever debug information says. The order of the engine's report does not matter.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cg_format::cachegrind::{Profile, write};
use cg_format::count::TooLarge;
use grind_names::made::{Found, Registry};
use grind_names::symbolizer::{Code, Place, Symbolizer, UNKNOWN};
use grind_session::{ProcessReport, Stretch};
use grind_types::addr::GuestAddr;
use grind_types::{MappedFile, Module, Pid};

use crate::counts::CountTable;
use crate::cycles::Cycles;
use cg_cli::saved::{Saved, save_text};

/// Which object an instruction belongs to. Several mappings of a file are one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object<'a> {
    File(&'a Path, &'a MappedFile),
    /// By where its bytes are: the same image mapped twice is shared memory here.
    Image {
        bytes: *const u8,
        len: usize,
    },
    Anonymous,
}

impl<'a> Object<'a> {
    fn of(module: &'a Module) -> Self {
        match (&module.image, &module.path, &module.file) {
            (Some(image), ..) => Self::Image { bytes: image.as_ptr(), len: image.len() },
            _ if module.is_made() => Self::Anonymous,
            (None, Some(path), Some(file)) => Self::File(path, file),
            _ => Self::Anonymous,
        }
    }
}

/// The profile of a process: its `counts`, from whose rows `report` tells the modules.
///
/// # Errors
/// When a count is larger than a profile can hold.
pub fn profile(
    report: &ProcessReport<'_>,
    counts: &CountTable<'_>,
    desc: &[Vec<u8>],
    symbolizer: &mut dyn Symbolizer,
) -> Result<Profile, TooLarge> {
    let mut all = profiles(report, std::slice::from_ref(counts), desc, symbolizer)?;
    Ok(all.remove(0))
}

/// As [`profiles_with`], of programs that make no code that has names.
///
/// # Errors
/// As there.
pub fn profiles(
    report: &ProcessReport<'_>,
    tables: &[CountTable<'_>],
    desc: &[Vec<u8>],
    symbolizer: &mut dyn Symbolizer,
) -> Result<Vec<Profile>, TooLarge> {
    profiles_with(report, tables, desc, symbolizer, &Made::default())
}

/// Several profiles of a process, one for each of `tables`, which have the same events. Debug information is only asked once. Their
/// `desc:` lines are `desc`, and what the tables say.
/// Names of code that the program made are those of `made`.
///
/// # Errors
/// When a count is larger than a profile can hold.
pub fn profiles_with(
    report: &ProcessReport<'_>,
    tables: &[CountTable<'_>],
    desc: &[Vec<u8>],
    symbolizer: &mut dyn Symbolizer,
    made: &Made<'_>,
) -> Result<Vec<Profile>, TooLarge> {
    let mut profiles: Vec<Profile> = tables
        .iter()
        .map(|counts| {
            let mut profile = Profile::new(counts.names());
            profile.header.desc = desc.to_vec();
            profile.header.desc.extend(counts.cycles().map(Cycles::description));
            profile.header.cmd = command(&report.args);
            profile
        })
        .collect();

    let mut objects: Vec<&Module> = Vec::new();
    let mut index_of: HashMap<Object<'_>, usize> = HashMap::new();
    let object_of_module: Vec<usize> = report
        .modules
        .iter()
        .map(|module| {
            *index_of.entry(Object::of(module)).or_insert_with(|| {
                objects.push(module);
                objects.len() - 1
            })
        })
        .collect();

    // A module that does not exist would be the engine's mistake; its instructions are still counted, namelessly.
    let object_of = |module: usize| object_of_module.get(module).copied().unwrap_or(objects.len());
    let code_of = |object: usize| code_of(objects.get(object).copied());
    let offset_of = |module: usize, addr: GuestAddr| offset_of(report.modules.get(module), addr);

    let mut sums = vec![0; tables.first().map_or(0, CountTable::width)];
    let mut failure = Ok(());
    // For each object, what has to be asked for instruction by instruction.
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); objects.len() + 1];
    let is_made = |module: usize| report.modules.get(module).is_some_and(|m| made.any() && m.is_made());
    for ((number, table), profile) in (0..).zip(tables).zip(&mut profiles) {
        let mut first = 0;
        let of_modules = table.stretches().chunk_by(|a, b| a.module == b.module);
        for piece in of_modules.flat_map(|of_module| of_module.chunks(AT_ONCE)) {
            let module = piece[0].module as usize;
            if is_made(module) {
                for (row, stretch) in (first..).zip(piece) {
                    for (on, part) in table.parts(row) {
                        sums.fill(0);
                        table.add_part(row, part, &mut sums);
                        made.tell(stretch.start.plus(on), stretch.made, |place| {
                            book(profile, place, &sums, &mut failure)
                        });
                    }
                }
                first += piece.len();
                continue;
            }
            let offset = |s: &Stretch| offset_of(module, s.start);
            let ranges: Vec<Range<u64>> =
                piece.iter().map(|s| offset(s)..offset(s).saturating_add(s.bytes.into())).collect();
            let mut asked = Asked::new(piece.len());
            symbolizer.stretches(code_of(object_of(module)), &ranges, &mut |range, place| {
                asked.answer(range, |at| {
                    sums.fill(0);
                    at.for_each(|at| table.add_row(first + at, &mut sums));
                    book(profile, place, &sums, &mut failure);
                });
            });
            for at in asked.open() {
                let parts = table.parts(first + at);
                let row = |(on, part)| Row {
                    offset: ranges[at].start.wrapping_add(on),
                    table: number,
                    row: (first + at) as u32,
                    part,
                };
                rows[object_of(module)].extend(parts.map(row));
            }
            first += piece.len();
        }
        for (row, (module, addr, moment)) in (first as u32..).zip(table.singles()) {
            if is_made(module) {
                sums.fill(0);
                table.add_row(row as usize, &mut sums);
                made.tell(addr, moment, |place| book(profile, place, &sums, &mut failure));
                continue;
            }
            rows[object_of(module)].push(Row { offset: offset_of(module, addr), table: number, row, part: WHOLE });
        }
    }

    for (object, mut rows) in rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        // Stable, because that makes use of the order in which most of them come.
        rows.sort_by_key(|row| row.offset);
        let mut offsets = Vec::with_capacity(rows.len());
        // Where the rows of each offset begin, and where the last ones end.
        let mut starts: Vec<u32> = Vec::with_capacity(rows.len() + 1);
        for (at, row) in (0u32..).zip(&rows) {
            if offsets.last() != Some(&row.offset) {
                offsets.push(row.offset);
                starts.push(at);
            }
        }
        starts.push(rows.len() as u32);
        let mut asked = Asked::new(offsets.len());
        let mut add = |range: Range<usize>, place: Place<'_>| {
            asked.answer(range, |at| {
                let rows = &rows[starts[at.start] as usize..starts[at.end] as usize];
                // Of one table; with several, of one after the other, offset by offset.
                for rows in rows.chunk_by(|a, b| a.table == b.table) {
                    let table = rows[0].table as usize;
                    sums.fill(0);
                    for row in rows {
                        match row.part {
                            WHOLE => tables[table].add_row(row.row as usize, &mut sums),
                            part => tables[table].add_part(row.row as usize, part, &mut sums),
                        }
                    }
                    book(&mut profiles[table], place, &sums, &mut failure);
                }
            });
        };
        symbolizer.places(code_of(object), &offsets, &mut add);
        // An answer that never came must not lose counts.
        for index in 0..offsets.len() {
            add(index..index + 1, Place::UNKNOWN);
        }
    }
    failure.map(|()| profiles)
}

/// The code of a module, as debug information is asked for it.
#[must_use]
pub fn code_of(module: Option<&Module>) -> Code<'_> {
    match module {
        Some(Module { image: Some(image), .. }) => Code::Image(image),
        Some(module) if module.is_made() => Code::Anonymous,
        Some(Module { path: Some(path), file: Some(file), .. }) => Code::File(path, file),
        _ => Code::Anonymous,
    }
}

/// Where an address lies in that.
#[must_use]
pub fn offset_of(module: Option<&Module>, addr: GuestAddr) -> u64 {
    match module {
        Some(m) if !m.is_made() => addr.since(m.start).wrapping_add(m.offset),
        _ => addr.0,
    }
}

/// Names of code that a process made while it ran.
#[derive(Clone, Debug, Default)]
pub struct Made<'a>(Option<(&'a Registry, Pid)>);

impl<'a> Made<'a> {
    /// Those of a process, as far as they have been written by now.
    #[must_use]
    pub fn of(registry: &'a Registry, pid: Pid) -> Self {
        registry.read_on(pid);
        Self(registry.has_names(pid).then_some((registry, pid)))
    }

    /// Whether there are any.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the place of code that was translated at a moment.
    pub fn tell(&self, addr: GuestAddr, moment: u32, tell: impl FnOnce(Place<'_>)) {
        match self.0.and_then(|(registry, pid)| registry.find(pid, addr, moment)) {
            Some(Found { function, file, line, .. }) => {
                tell(Place { file: file.as_deref().unwrap_or(UNKNOWN), function: &function, line });
            }
            None => tell(Place::UNKNOWN),
        }
    }
}

/// So many stretches are asked for at once: their places need memory, and memory that is touched for the first time takes time.
const AT_ONCE: usize = 4096;

/// Adds counts of a place; what is too large is told in `failure`.
fn book(profile: &mut Profile, place: Place<'_>, sums: &[i128], failure: &mut Result<(), TooLarge>) {
    let added = profile.add(place.file, place.function, u64::from(place.line), sums);
    if added.is_err() {
        *failure = added;
    }
}

/// The command of these words, for the `cmd:` line.
#[must_use]
pub fn command(args: &[OsString]) -> Vec<u8> {
    args.iter().map(|a| a.as_bytes()).collect::<Vec<_>>().join(&b' ')
}

/// A row of a table of counts that is a single instruction, or one of the instructions of another.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// In the object.
    offset: u64,
    table: u32,
    row: u32,
    /// Which instruction of it; [`WHOLE`]: it is one.
    part: u16,
}

/// No instruction's number: blocks are shorter.
const WHOLE: u16 = u16::MAX;

/// What has been answered of a list of questions.
struct Asked(Vec<bool>);

impl Asked {
    fn new(questions: usize) -> Self {
        Self(vec![false; questions])
    }

    /// Hands on what has not been answered before, and as a rule that is all of it.
    fn answer(&mut self, range: Range<usize>, mut take: impl FnMut(Range<usize>)) {
        let range = range.start.min(self.0.len())..range.end.min(self.0.len());
        let mut at = range.start;
        for same in self.0[range].chunk_by_mut(|a, b| a == b) {
            let end = at + same.len();
            if !same[0] {
                same.fill(true);
                take(at..end);
            }
            at = end;
        }
    }

    /// What has not been answered.
    fn open(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, answered)| !**answered).map(|(i, _)| i)
    }
}

/// Writes `profile` to `path`, or, if that fails, to a new file in `spare`.
pub fn save(profile: &Profile, path: &Path, spare: &Path) -> Saved {
    save_text(path, "cachegrind.out", spare, |out| write(out, profile))
}

#[cfg(test)]
mod tests {
    use grind_session::Counts;

    use grind_names::symbolizer::Nothing;
    use grind_types::addr::GuestAddr;
    use grind_types::{InstructionCount, StaticEvents};

    use super::*;
    use crate::counts::{EventCounts, Events};
    use std::path::PathBuf;
    use std::sync::Arc;

    fn module(path: Option<&str>, start: u64, offset: u64) -> Module {
        Module {
            path: path.map(PathBuf::from),
            file: path.map(|path| Arc::new(MappedFile::at(Path::new(path)))),
            image: None,
            start: GuestAddr(start),
            end: GuestAddr(start + 0x1000),
            offset,
        }
    }

    fn count(module: usize, addr: u64, count: u64) -> InstructionCount {
        InstructionCount { module, addr: GuestAddr(addr), len: 1, count, events: StaticEvents::default(), made: 0 }
    }

    fn report<'a>(modules: &'a [Module], counts: &'a Counts<'a>) -> ProcessReport<'a> {
        ProcessReport {
            pid: Pid(1),
            parent: None,
            exe: "/bin/x".into(),
            args: vec!["x".into(), "a b".into()],
            exit: None,
            modules,
            counts,
            contexts: &[],
            counting: true,
            threads: &[],
        }
    }

    /// Shows what it was asked: the object as file, the offset as line.
    struct Echo;

    impl Symbolizer for Echo {
        fn places(&mut self, code: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
            assert!(offsets.is_sorted_by(|a, b| a < b));
            for (index, offset) in offsets.iter().enumerate().rev() {
                let file = match code {
                    Code::File(path, _) => path.as_os_str().as_bytes(),
                    Code::Image(_) => b"image",
                    Code::Anonymous => b"anonymous",
                };
                tell(index..index + 1, Place { file, function: b"f", line: u32::try_from(*offset).unwrap() });
            }
        }
    }

    fn instructions(report: &ProcessReport<'_>, symbolizer: &mut dyn Symbolizer) -> Profile {
        let counts = CountTable::new(Events::default(), report.counts);
        profile(report, &counts, &[], symbolizer).unwrap()
    }

    fn text(profile: &Profile) -> String {
        let mut out = Vec::new();
        write(&mut out, profile).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counts_are_summed_by_place() {
        let mut modules = vec![module(Some("a"), 0x1000, 0), module(Some("a"), 0x9000, 0x10), module(None, 0x500, 0)];
        modules.push(Module { image: Some(Arc::from([0u8; 4].as_slice())), ..module(Some("[vdso]"), 0x7000, 0) });
        let counts =
            [count(0, 0x1010, 5), count(1, 0x9000, 7), count(0, 0x1000, 1), count(2, 0x501, 2), count(3, 0x7002, 0)];
        let counts = Counts::from(counts.to_vec());
        let profile = instructions(&report(&modules, &counts), &mut Echo);
        assert_eq!(
            text(&profile),
            "cmd: x a b\nevents: Ir\nfl=a\nfn=f\n0 1\n16 12\nfl=anonymous\nfn=f\n1281 2\nfl=image\nfn=f\n2 0\nsummary: 15\n"
        );
    }

    /// Stretches of code, answered whole where they lie within a function of 16 bytes, and by their instructions: the same profile.
    #[test]
    fn stretches_come_to_the_same_as_their_instructions() {
        struct Functions {
            whole: bool,
            told: usize,
        }
        fn with_place(offset: u64, say: impl FnOnce(Place<'_>)) {
            let function = format!("f{}", offset / 16);
            say(Place { function: function.as_bytes(), ..Place::UNKNOWN });
        }
        impl Symbolizer for Functions {
            fn places(&mut self, _: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
                assert!(offsets.is_sorted_by(|a, b| a < b));
                offsets.iter().enumerate().for_each(|(i, offset)| with_place(*offset, |place| tell(i..i + 1, place)));
            }

            fn stretches(
                &mut self,
                _: Code<'_>,
                stretches: &[Range<u64>],
                tell: &mut dyn FnMut(Range<usize>, Place<'_>),
            ) {
                assert!(stretches.is_sorted_by_key(|s| s.start));
                for (i, s) in stretches.iter().enumerate() {
                    if self.whole && s.start / 16 == (s.end - 1) / 16 {
                        self.told += 1;
                        with_place(s.start, |place| tell(i..i + 1, place));
                    }
                }
            }
        }
        let modules = [module(Some("a"), 0x1000, 0), module(Some("b"), 0x3000, 0x40), module(None, 0x5000, 0)];
        let mut state = 7u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let pieces: Vec<(u32, GuestAddr, Vec<u8>, u64)> = (0..AT_ONCE as u64 + 2000)
            .map(|_| {
                let module = random(3) as u32;
                let lengths = (0..1 + random(5)).map(|_| 1 + random(4) as u8).collect();
                (module, GuestAddr(0x1000 + 0x2000 * u64::from(module) + random(0x400)), lengths, 1 + random(1000))
            })
            .collect();
        let counts = Counts::of_stretches(pieces.iter().map(|(m, at, lengths, n)| (*m, *at, &lengths[..], *n)));
        let singles = Counts::from(counts.instructions().collect::<Vec<_>>());
        let (mut whole, mut parts) = (Functions { whole: true, told: 0 }, Functions { whole: false, told: 0 });
        let told = text(&instructions(&report(&modules, &counts), &mut whole));
        assert_eq!(told, text(&instructions(&report(&modules, &counts), &mut parts)));
        assert_eq!(told, text(&instructions(&report(&modules, &singles), &mut parts)));
        let sum: u64 = pieces.iter().map(|(_, _, lengths, n)| lengths.len() as u64 * n).sum();
        assert!(told.ends_with(&format!("summary: {sum}\n")) && told.contains("fn=f63\n"));
        assert!((100..pieces.len() - 100).contains(&whole.told), "{}", whole.told);
    }

    #[test]
    fn rows_of_an_instruction_are_added_up_event_by_event() {
        let modules = [module(Some("a"), 0x1000, 0)];
        let instructions = Counts::from(vec![count(0, 0x1004, 5), count(0, 0x1008, 2)]);
        let mut table = CountTable::new(
            Events { caches: cg_format::events::Caches::Two, branch: true, ..Events::default() },
            &instructions,
        );
        table.add(0, GuestAddr(0x1004), &EventCounts { dr: 5, d1mr: 2, dlmr: 1, ..EventCounts::default() });
        table.add(0, GuestAddr(0x1004), &EventCounts { d1mr: 1, i1mr: 3, ilmr: 1, ..EventCounts::default() });
        table.add(0, GuestAddr(0x1008), &EventCounts { bc: 2, bcm: 1, ..EventCounts::default() });
        let desc = [b"I1 cache: one".to_vec(), b"D1 cache: two".to_vec()];
        let profile = profile(&report(&modules, &Counts::default()), &table, &desc, &mut Echo).unwrap();
        assert_eq!(
            text(&profile),
            "desc: I1 cache: one\n\
             desc: D1 cache: two\n\
             cmd: x a b\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim\nfl=a\nfn=f\n\
             4 5 3 1 5 3 1 0 0 0 0 0 0 0\n8 2 0 0 0 0 0 0 0 0 2 1 0 0\n\
             summary: 7 3 1 5 3 1 0 0 0 2 1 0 0\n"
        );
    }

    #[test]
    fn no_count_is_lost_when_nothing_is_known() {
        /// Answers some twice, some never.
        struct Sloppy;
        impl Symbolizer for Sloppy {
            fn places(&mut self, _: Code<'_>, _: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
                tell(0..1, Place::UNKNOWN);
                tell(0..2, Place::UNKNOWN);
                tell(99..100, Place::UNKNOWN);
            }
        }
        let modules = [module(Some("a"), 0, 0)];
        let counts = Counts::from(vec![count(0, 1, 1), count(0, 2, 2), count(7, 3, u64::MAX)]);
        let all: [&mut dyn Symbolizer; 2] = [&mut Nothing, &mut Sloppy];
        for symbolizer in all {
            let profile = instructions(&report(&modules, &counts), symbolizer);
            assert_eq!(profile.total(), [i128::from(u64::MAX) + 3]);
        }
    }

    #[test]
    fn an_unwritable_profile_is_saved_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let profile = Profile::new(["Ir"]);
        let good = folder.path().join("good");
        assert_eq!(save(&profile, &good, folder.path()), Saved::AsAsked);
        assert!(good.exists());
        let bad = folder.path().join("absent/out.7");
        match save(&profile, &bad, folder.path()) {
            Saved::Elsewhere(reason, path) => {
                assert_eq!(reason, "No such file or directory");
                assert!(path.file_name().unwrap().to_string_lossy().starts_with("out.7."));
                assert_eq!(std::fs::read(path).unwrap(), std::fs::read(&good).unwrap());
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(save(&profile, &bad, &folder.path().join("absent")), Saved::Nowhere(_)));
    }
}
