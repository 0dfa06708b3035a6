//! The objects of a process as the rows of its `mem.out`.
//!
//! Their misses sum to those of the process's profile. Names are those that are known, and no guesses: `heap@file:line`, else
//! `heap@module+offset`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use cg_format::mem::missed_by::MissedBy;
use cg_format::mem::reuse::Reuse;
use cg_format::mem::sharing::{self as rows, Shared, SharedUse, SourceLine, Which};
use cg_format::mem::streams::Part;
use cg_format::mem::{self, Field, Head, Kind, Mem, StreamsHead};
use cg_sim::distance::Histogram;
use cg_sim::sharing::NO_OBJECT;
use grind_names::symbolizer::{Code, Place, Symbolizer, UNKNOWN};
use grind_session::ProcessReport;
use grind_symbols::{Member, sanitised};

use super::members::Members;
use super::{FIELD, Found, Missed, Object, Site, Tally, distances, sharing, streams};

/// What is counted of each object, in the order of [`Tally::misses`].
pub const EVENTS: [&str; 4] = ["D1mr", "DLmr", "D1mw", "DLmw"];

/// The same of how lines are used, in the order of [`Tally::uses`]: the events of the profile, and bytes that were accessed.
pub const USES: [&str; 6] = ["AcCost1", "SpLoss1", "AcCost2", "SpLoss2", "Used1", "Used2"];

/// Where a site is in the source.
#[derive(Clone, Debug)]
struct Known {
    file: Vec<u8>,
    function: Vec<u8>,
    line: u32,
    /// `module+offset`.
    module: Vec<u8>,
}

impl Known {
    /// As one of those that have called what allocates.
    fn caller(&self) -> mem::Caller {
        let function = if self.function == UNKNOWN { &self.module } else { &self.function };
        mem::Caller { function: text(function), file: text(&self.file), line: self.line.into() }
    }
}

/// The file of a process; `found` of its objects, if they were asked for, `distances`, and what its threads have `shared`. `command` and `desc` are those of its profile.
pub fn mem(
    report: &ProcessReport<'_>,
    found: Option<&Found>,
    distances: Option<&distances::Found>,
    shared: Option<&sharing::Found>,
    symbolizer: &mut dyn Symbolizer,
    command: &[u8],
    desc: &[Vec<u8>],
) -> Mem {
    let (asked, none) = (found.is_some(), Found::default());
    let found = found.unwrap_or(&none);
    let all = sites(found).chain(distances.into_iter().flat_map(|found| found.sites.iter().map(|row| row.site)));
    let all = all.chain(shared.into_iter().flat_map(|found| found.sites.iter().flatten().flatten().copied()));
    let places = places(report, all, symbolizer);
    let mut events: Vec<String> = if asked { EVENTS.map(str::to_owned).into() } else { Vec::new() };
    let uses = found.uses.is_some();
    if uses {
        events.extend(USES.map(str::to_owned));
    }
    if let Some(shared) = shared.filter(|_| asked) {
        events.extend(shared.events().iter().map(|event| (*event).to_owned()));
    }
    let mut all = Mem {
        head: Head {
            version: mem::VERSION,
            command: text(command),
            pid: report.pid.0,
            desc: desc.iter().map(|d| text(d)).collect(),
            events,
            totals: Vec::new(),
            unknown_frees: found.unknown_frees,
            objects: 0,
            streams: found.streams.as_ref().map(|of| StreamsHead { count: 0, line: of.line, others: of.others }),
            reuse: distances.map(distances::Found::head),
            sharing: shared.map(sharing::Found::head),
            missed_by: None,
            part: None,
            last: false,
            uses: found.uses,
        },
        objects: Vec::new(),
        streams: Vec::new(),
        reuse: Vec::new(),
        sharing: Vec::new(),
        missed_by: Vec::new(),
    };
    let mut rows = vec![0; found.objects.len()];
    let used: BTreeSet<u32> = distances.iter().flat_map(|found| &found.sites).filter_map(|row| row.object).collect();
    for (n, (object, tally)) in found.objects.iter().enumerate() {
        let of_lines = shared.map(|found| found.of_object(n)).unwrap_or_default();
        let no_lines = of_lines.iter().all(|n| *n == 0);
        if tally.misses == [0; 4]
            && tally.uses == [0; 6]
            && tally.blocks == 0
            && no_lines
            && !used.contains(&(n as u32))
        {
            continue;
        }
        rows[n] = all.objects.len();
        let mut row = row(object, tally, &places);
        row.fields = fields(found.fields.get(n).map_or(&[], Vec::as_slice));
        row.members = found.members.get(n).and_then(Option::as_ref).and_then(members);
        if uses {
            row.counts.extend(tally.uses);
        }
        row.counts.extend(of_lines);
        all.objects.push(row);
    }
    missed_by(&mut all, found, &rows);
    let executed = found.executions.as_ref();
    let found = found.streams.iter().flat_map(|found| found.streams.iter().map(|stream| (stream, found.line)));
    let sites = found.clone().map(|(stream, _)| stream.key.site);
    let executions = executions(report, executed, sites);
    let sites: BTreeSet<Site> = executions.keys().copied().collect();
    let numbers: HashMap<Site, usize> = sites.into_iter().zip(0..).collect();
    for (found, line) in found {
        let executions = executions.get(&found.key.site).copied().unwrap_or(0);
        let instruction = numbers.get(&found.key.site).copied().unwrap_or(0);
        let stream = stream(found, rows[found.key.object as usize], line, executions, &places);
        all.streams.push(mem::streams::Stream { instruction, ..stream });
    }
    let bins = |of: &Histogram| {
        let bins = of.bins.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
        of.bins[..bins].to_vec()
    };
    for row in distances.iter().flat_map(|found| &found.sites) {
        let known = &places[&row.site];
        all.reuse.push(Reuse {
            function: text(&known.function),
            file: text(&known.file),
            line: known.line.into(),
            object: row.object.and_then(|n| rows.get(n as usize).copied()),
            first: row.least.first,
            bins: bins(&row.least),
            most: row.most.as_deref().map(bins).unwrap_or_default(),
        });
    }
    if let Some(shared) = shared {
        all.sharing = lines(shared, &rows, &places);
    }
    all.finish();
    all
}

/// The rows of shared lines; `rows` are those of the objects by number.
fn lines(shared: &sharing::Found, rows: &[usize], places: &BTreeMap<Site, Known>) -> Vec<Shared> {
    let source = |site: &Site| {
        let known = &places[site];
        SourceLine { file: text(&known.file), line: known.line.into(), function: text(&known.function) }
    };
    let moved = |(from, [reads, writes]): (&u32, &[u64; 2])| rows::Moved {
        from: u64::from(*from) + 1,
        reads: *reads,
        writes: *writes,
    };
    let all = shared.found.rows.iter().zip(&shared.sites);
    let row = |(row, sites): (&cg_sim::sharing::Row, &Vec<Vec<Site>>)| {
        let used = |(used, sites): (&cg_sim::sharing::RowUse, &Vec<Site>)| SharedUse {
            thread: u64::from(used.thread) + 1,
            object: (used.object != NO_OBJECT).then(|| rows.get(used.object as usize).copied()).flatten(),
            offset: used.offset,
            read: rows::bytes(used.read),
            written: rows::bytes(used.written),
            reads: used.reads,
            writes: used.writes,
            places: sites.iter().map(source).collect(),
            moves: used.moves.from.iter().map(moved).collect(),
            upgrades: used.moves.upgrades,
        };
        let which = if row.truly { Which::True } else { Which::False };
        Shared { which, lines: row.lines, uses: row.uses.iter().zip(sites).map(used).collect() }
    };
    all.map(row).collect()
}

/// What of an object was missed.
fn fields(missed: &[[u64; 4]]) -> Vec<Field> {
    let there = (0u64..).step_by(FIELD as usize).zip(missed).filter(|(_, counts)| counts.iter().any(|n| *n != 0));
    there.map(|(offset, counts)| Field { offset, counts: counts.to_vec() }).collect()
}

/// The same by member.
fn members(missed: &Members) -> Option<mem::Members> {
    let layout = &missed.layout;
    let there = layout.members.iter().zip(&missed.counts).filter(|(_, counts)| **counts != [0; 4]);
    let member = |(member, counts): (&Member, &[u64; 4])| mem::Member {
        name: text(&member.name),
        offset: member.offset,
        bytes: member.size,
        counts: counts.to_vec(),
    };
    let mut rows: Vec<mem::Member> = there.map(member).collect();
    if missed.none != [0; 4] {
        rows.push(mem::Member { counts: missed.none.to_vec(), ..mem::Member::default() });
    }
    rows.sort_by(|a, b| (a.offset, a.bytes, &a.name).cmp(&(b.offset, b.bytes, &b.name)));
    let of = mem::Members { name: text(&layout.name), bytes: layout.size, missed: rows };
    (!of.missed.is_empty()).then_some(of)
}

/// Who misses which objects, if that was found; `rows` are those of the objects by number.
fn missed_by(all: &mut Mem, found: &Found, rows: &[usize]) {
    if !found.missed_by.is_empty() {
        all.head.missed_by = Some(0);
    }
    for by in &found.missed_by {
        let of_object = |(object, missed): &(u32, Missed)| MissedBy {
            object: rows[*object as usize],
            function: text(&by.function),
            file: text(&by.file),
            module: text(&by.module),
            counts: missed.misses.iter().chain(found.uses.iter().flat_map(|_| &missed.uses)).copied().collect(),
        };
        all.missed_by.extend(by.missed.iter().map(of_object));
    }
}

/// How often these instructions were executed: as `executed` says by address, or else the report.
pub(super) fn executions(
    report: &ProcessReport<'_>,
    executed: Option<&BTreeMap<u64, u64>>,
    sites: impl Iterator<Item = Site>,
) -> HashMap<Site, u64> {
    let of = |site: Site| executed.and_then(|by_address| by_address.get(&site.addr)).copied().unwrap_or(0);
    let mut executions: HashMap<Site, u64> = sites.map(|site| (site, of(site))).collect();
    if executed.is_some() {
        return executions;
    }
    if !executions.is_empty() {
        for one in report.counts.instructions() {
            if let Some(sum) = executions.get_mut(&Site { module: one.module as u32, addr: one.addr.0 }) {
                *sum = sum.saturating_add(one.count);
            }
        }
    }
    executions
}

fn stream(
    found: &streams::Stream,
    object: usize,
    line: u64,
    executions: u64,
    places: &BTreeMap<Site, Known>,
) -> mem::streams::Stream {
    let known = &places[&found.key.site];
    mem::streams::Stream {
        object,
        file: text(&known.file),
        line: known.line.into(),
        function: text(&known.function),
        ..nameless(found, line, executions)
    }
}

/// What a stream is, whoever's code it is and whatever it walks over.
pub(super) fn nameless(found: &streams::Stream, line: u64, executions: u64) -> mem::streams::Stream {
    let folded = &found.folded;
    let relative =
        |part: &Part| Part { start: part.start.wrapping_sub(found.place.start.cast_signed()), ..part.clone() };
    mem::streams::Stream {
        access: found.key.access,
        object: 0,
        instruction: 0,
        file: String::new(),
        line: 0,
        function: String::new(),
        size: found.size,
        executions,
        misses: found.misses,
        last_level: found.last_level,
        phase: found.place.start.checked_rem(line).unwrap_or(0),
        bytes: found.place.end.wrapping_sub(found.place.start),
        parts: folded.parts.iter().map(relative).collect(),
        irregular: folded.irregular,
        distances: folded.distances.clone(),
        prefetch: found.prefetch,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn row(object: &Object, tally: &Tally, places: &BTreeMap<Site, Known>) -> mem::Object {
    let mut row = mem::Object {
        kind: Kind::Unknown,
        name: text(UNKNOWN),
        file: String::new(),
        line: 0,
        function: String::new(),
        bytes: tally.bytes,
        blocks: tally.blocks,
        peak_bytes: tally.peak,
        callers: Vec::new(),
        fields: Vec::new(),
        members: None,
        counts: tally.misses.into(),
    };
    match object {
        Object::Heap(sites) => {
            let [known, callers @ ..] = &*sites.iter().map(|site| &places[&before(*site)]).collect::<Vec<_>>() else {
                return row;
            };
            row.callers = callers.iter().map(|known| known.caller()).collect();
            row.kind = Kind::Heap;
            (row.file, row.function, row.line) = (text(&known.file), text(&known.function), known.line.into());
            let file = known.file.rsplit(|b| *b == b'/').next().unwrap_or_default();
            row.name = match known.line {
                0 => format!("heap@{}", text(&known.module)),
                line => format!("heap@{}:{line}", text(file)),
            };
        }
        Object::Variable { image, number: n } => {
            row.file = text(&sanitised(image.path.as_os_str().as_bytes()));
            if let Some((variable, named)) = image.data.get(*n) {
                row.kind = if named { Kind::Variable } else { Kind::Section };
                row.name = text(&variable.name);
                row.bytes = variable.end.0.saturating_sub(variable.start.0);
            }
        }
        Object::Stack(site) => {
            let known = &places[site];
            row.kind = Kind::Stack;
            (row.file, row.name) = (text(&known.file), text(&known.function));
        }
        Object::Unknown => {}
    }
    row
}

/// The call that returns there.
fn before(site: Site) -> Site {
    Site { addr: site.addr.wrapping_sub(1), ..site }
}

/// The sites of all objects.
fn sites(found: &Found) -> impl Iterator<Item = Site> {
    let of_objects = found.objects.iter().flat_map(|(object, _)| match object {
        Object::Heap(sites) => sites.iter().map(|site| before(*site)).collect(),
        Object::Stack(site) => vec![*site],
        _ => Vec::new(),
    });
    let of_streams = found.streams.iter().flat_map(|found| found.streams.iter().map(|stream| stream.key.site));
    of_objects.chain(of_streams)
}

/// Where sites are.
fn places(
    report: &ProcessReport<'_>,
    sites: impl Iterator<Item = Site>,
    symbolizer: &mut dyn Symbolizer,
) -> BTreeMap<Site, Known> {
    let mut by_module: BTreeMap<u32, BTreeMap<u64, Site>> = BTreeMap::new();
    for site in sites {
        let module = report.modules.get(site.module as usize);
        let offset = module
            .filter(|m| !m.is_made())
            .map_or(site.addr, |m| site.addr.wrapping_sub(m.start.0).wrapping_add(m.offset));
        by_module.entry(site.module).or_default().insert(offset, site);
    }
    let mut places = BTreeMap::new();
    for (module, sites) in by_module {
        let module = report.modules.get(module as usize);
        let code = match module {
            Some(m) if m.is_made() => Code::Anonymous,
            Some(m) => match (&m.image, &m.path, &m.file) {
                (Some(image), ..) => Code::Image(image),
                (None, Some(path), Some(file)) => Code::File(path, file),
                _ => Code::Anonymous,
            },
            None => Code::Anonymous,
        };
        let name = module.and_then(|m| m.path.as_ref()).and_then(|path| path.file_name());
        let name = sanitised(name.map_or(UNKNOWN, |name| name.as_bytes()));
        let offsets: Vec<u64> = sites.keys().copied().collect();
        let all: Vec<Site> = sites.values().copied().collect();
        let mut tell = |range: Range<usize>, place: Place<'_>| {
            for n in range.start.min(all.len())..range.end.min(all.len()) {
                places.entry(all[n]).or_insert_with(|| Known {
                    file: place.file.to_vec(),
                    function: place.function.to_vec(),
                    line: place.line,
                    module: [&name[..], format!("+{:#x}", offsets[n]).as_bytes()].concat(),
                });
            }
        };
        symbolizer.places(code, &offsets, &mut tell);
        // An answer that never came must not lose counts.
        tell(0..all.len(), Place::UNKNOWN);
    }
    places
}
