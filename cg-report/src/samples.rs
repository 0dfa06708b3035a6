//! What another profiler measured (`--samples`), laid beside exact counts: an event `Smp` of the profile's rows and calls.
//!
//! A sample belongs to the instruction that it names, where profile and samples both tell of instructions, else to the function of
//! its name in the same object. What stands in no function of the profile belongs to nothing, is in no sum, and is told. Self costs are
//! what was measured; what lies above them is spread along the calls of the profile ([`spread`]), and the page marks it.

mod find;
mod spread;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use cg_cli::input;
use cg_exchange::measured::{Frame, Measured};
use cg_exchange::read;
use cg_format::callgrind::{Chain, Chains, EventType, FileId, FunctionId, Names, PartEnd, Place, Position, Sink};
use cg_format::count::TooLarge;
use cg_model::{Cost, Detail};

use crate::names::last;
use crate::renaming::Renaming;
use find::{Finder, Home};

/// What the event is called.
pub(crate) const EVENT: &str = "Smp";

/// Unmatched places that are told by name.
const TOLD: usize = 20;

/// Samples as they were read.
#[derive(Debug)]
pub(crate) struct Samples {
    name: String,
    kind: &'static str,
    measured: Measured,
}

/// What became of samples.
#[derive(Clone, Debug)]
pub(crate) struct Sampled {
    /// The file.
    pub(crate) name: String,
    /// What kind of file it is.
    pub(crate) kind: &'static str,
    /// What a sample counts.
    pub(crate) event: String,
    /// All that was measured.
    pub(crate) total: i64,
    /// What belongs to functions of the profile.
    pub(crate) matched: i64,
    /// What of that belongs to instructions.
    pub(crate) placed: i64,
    /// What of that several functions have in common, of which each has its share by cost.
    pub(crate) shared: i64,
    /// What belongs to none, most first: object, name, and how much.
    pub(crate) lost: Vec<(Vec<u8>, Vec<u8>, i64)>,
    /// Objects that are other builds than those that were sampled.
    pub(crate) rebuilt: Vec<Vec<u8>>,
}

/// Reads samples, of one event.
///
/// # Errors
/// The file cannot be read, is none of samples, or has no such event.
pub(crate) fn read(file: &OsStr, event: Option<&str>) -> anyhow::Result<Samples> {
    let name = input::name(file);
    let mut bytes = Vec::new();
    let mut opened =
        input::open(file, &Default::default()).map_err(|why| anyhow!("--samples: cannot open {name}: {why}"))?;
    opened.read_to_end(&mut bytes).with_context(|| format!("--samples: {name}"))?;
    let (kind, read) = match read::kind(&bytes) {
        read::Kind::Perf => ("perf script", read::perf(&bytes)),
        read::Kind::Folded => ("folded stacks", read::folded(&bytes, "samples")),
        read::Kind::Offsets => ("places in objects", read::offsets(&bytes, "samples")),
        read::Kind::Pprof => ("pprof", read::pprof(&bytes)),
    };
    let mut measured = read.with_context(|| format!("--samples: {name}"))?;
    let wanted = event.map(str::to_owned).or_else(|| measured.events.first().cloned());
    measured.select(wanted).with_context(|| format!("--samples-event: {name}"))?;
    if measured.stacks.is_empty() {
        bail!("--samples: {name}: there is no sample in it");
    }
    Ok(Samples { name, kind, measured })
}

/// What samples are laid on: a profile before anything follows from it.
pub(crate) struct Ground<'a> {
    pub(crate) names: &'a Names,
    pub(crate) detail: &'a mut Detail,
    pub(crate) parts: &'a mut [PartEnd],
    pub(crate) sums: &'a mut [Cost],
    pub(crate) chains: &'a mut [Chains],
    /// The event by which is shared what is not known further.
    pub(crate) event: usize,
}

impl Samples {
    /// Adds the event. `root` is where object files are looked for.
    ///
    /// # Errors
    /// The profile has an event of this name, no sample belongs to it, or a sum does not fit.
    pub(crate) fn lay(&self, on: Ground<'_>, renaming: Renaming<'_>, root: Option<&Path>) -> anyhow::Result<Sampled> {
        let Ground { names, detail, parts, sums, chains, event } = on;
        if parts.iter().any(|part| part.header.events.iter().any(|event| event == EVENT)) {
            bail!("--samples: the profile has an event {EVENT} of its own");
        }
        let places = self.places()?;
        let total = places.iter().try_fold(0_i64, |sum, (_, count)| sum.checked_add(*count)).ok_or(TooLarge)?;
        let mut sampled = Sampled {
            name: self.name.clone(),
            kind: self.kind,
            event: self.measured.events.first().cloned().unwrap_or_default(),
            total,
            matched: 0,
            placed: 0,
            shared: 0,
            lost: Vec::new(),
            rebuilt: Vec::new(),
        };
        let homes = {
            let mut finder = Finder::new(names, detail, event, renaming, &self.measured.builds, root);
            let frames: Vec<&Frame> = places.iter().map(|(frame, _)| frame).collect();
            let homes = finder.homes(&frames)?;
            sampled.rebuilt = finder.rebuilt();
            homes
        };
        let mut costs: BTreeMap<Spot, i64> = BTreeMap::new();
        let mut lost: BTreeMap<(&[u8], &[u8]), i64> = BTreeMap::new();
        for ((frame, count), homes) in places.iter().zip(&homes) {
            if homes.is_empty() {
                *lost.entry((&frame.object, &frame.name)).or_default() += count;
                continue;
            }
            sampled.matched += count;
            if homes.iter().any(|home| home.at.place.addr != 0) {
                sampled.placed += count;
            }
            if homes.iter().any(|home| home.function != homes[0].function) {
                sampled.shared += count;
            }
            let shares = spread::shares(*count, homes.iter().map(|home| home.weight));
            for (home, share) in homes.iter().zip(shares) {
                *costs.entry(spot(home)).or_default() += share;
            }
        }
        sampled.lost =
            lost.into_iter().map(|((object, name), count)| (object.to_vec(), name.to_vec(), count)).collect();
        sampled.lost.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        if sampled.matched == 0 {
            let first = sampled.lost.first().map(|(_, name, _)| String::from_utf8_lossy(name).into_owned());
            bail!(
                "--samples: {}: no sample is of a function of the profile; most are of {}",
                self.name,
                first.unwrap_or_default()
            );
        }
        widen(detail, &costs, event)?;
        let of_parts = parts.iter_mut().zip(sums).enumerate();
        of_parts
            .for_each(|(at, (part, sum))| tell(part, sum, if at == 0 { sampled.matched } else { 0 }, &sampled.event));
        widen_chains(chains, &costs, event)?;
        Ok(sampled)
    }

    /// Where samples are and how many of each, in an order of their own: of a stack what runs is its innermost function that is not
    /// inlined.
    fn places(&self) -> anyhow::Result<Vec<(Frame, i64)>> {
        let mut counts: HashMap<&Frame, u64> = HashMap::new();
        for stack in &self.measured.stacks {
            let Some(frame) = stack.frames.iter().find(|frame| !frame.inlined).or(stack.frames.last()) else {
                continue;
            };
            let count = counts.entry(frame).or_default();
            *count = count.checked_add(stack.costs.first().copied().unwrap_or(0)).ok_or(TooLarge)?;
        }
        let mut places: Vec<(Frame, i64)> = Vec::with_capacity(counts.len());
        for (frame, count) in counts {
            let name = String::from_utf8_lossy(&frame.name);
            let frame = Frame { name: crate::names::demangled(&name).into_bytes(), ..frame.clone() };
            places.push((frame, i64::try_from(count).map_err(|_| TooLarge)?));
        }
        let key =
            |frame: &Frame| (frame.object.clone(), frame.name.clone(), frame.spot, frame.file.clone(), frame.line);
        places.sort_by_cached_key(|(frame, _)| key(frame));
        Ok(places)
    }
}

/// Where samples of a function stand: its number, address, file and line.
type Spot = (FunctionId, u64, FileId, u32);

fn spot(home: &Home) -> Spot {
    (home.function, home.at.place.addr, home.at.file, home.at.place.line)
}

/// Adds the event to rows and calls. Where no row is, there is one that costs nothing else.
fn widen(detail: &mut Detail, costs: &BTreeMap<Spot, i64>, event: usize) -> Result<(), TooLarge> {
    for (function, addr, file, line) in costs.keys() {
        let at = Position { place: Place { addr: *addr, line: *line }, file: *file };
        detail.row(*function, at, &[])?;
    }
    detail.finish()?;
    let cost = |row: &cg_model::Row| {
        let at = row.at();
        costs.get(&(row.function, at.place.addr, at.file, at.place.line)).copied().unwrap_or(0)
    };
    let rows: Vec<i64> = detail.rows.iter().map(cost).collect();
    let calls = spread::calls(detail, &rows, event);
    detail.add_event(&rows, &calls);
    Ok(())
}

/// Has a part tell the event, with what its rows have of it.
fn tell(part: &mut PartEnd, sum: &mut Cost, cost: i64, what: &str) {
    let width = part.header.events.len();
    part.header.events.push(EVENT.to_owned());
    let meaning = format!("Samples of {what}, by another profiler").into_bytes();
    part.header.types.push(EventType { name: EVENT.as_bytes().to_vec(), meaning });
    for stated in [&mut part.summary, &mut part.totals].into_iter().flatten() {
        stated.resize(width, 0);
        stated.push(i128::from(cost));
    }
    let mut values = sum.values().to_vec();
    values.resize(width, 0);
    values.push(cost);
    *sum = Cost::from(values);
}

/// Spreads what functions have over their chains of calls, by what each cost there.
fn widen_chains(chains: &mut [Chains], costs: &BTreeMap<Spot, i64>, event: usize) -> Result<(), TooLarge> {
    if chains.iter().all(|part| part.all().is_empty()) {
        chains.iter_mut().for_each(|part| *part = Chains::new(part.width() + 1));
        return Ok(());
    }
    let mut of: BTreeMap<FunctionId, i64> = BTreeMap::new();
    costs.iter().for_each(|((function, ..), cost)| *of.entry(*function).or_default() += cost);
    let mut standing: HashMap<FunctionId, Vec<(usize, u32)>> = HashMap::new();
    for (at, part) in chains.iter().enumerate() {
        for (n, chain) in (0..).zip(part.all()) {
            standing.entry(chain.function).or_default().push((at, n));
        }
    }
    let mut own: HashMap<(usize, u32), i64> = HashMap::new();
    for (function, cost) in of {
        let Some(places) = standing.get(&function) else { continue };
        let shares = spread::shares(cost, places.iter().map(|(at, n)| chains[*at].costs(*n)[event]));
        own.extend(places.iter().copied().zip(shares));
    }
    for (at, part) in chains.iter_mut().enumerate() {
        let mut wide = Chains::new(part.width() + 1);
        let mut numbers: Vec<u32> = Vec::with_capacity(part.all().len());
        for (n, chain) in (0..).zip(part.all()) {
            let parent = chain.parent.map(|parent| numbers[parent as usize]);
            let more = own.get(&(at, n)).copied().unwrap_or(0);
            numbers.push(wide.add(Chain { parent, ..*chain }, &[part.costs(n), &[more]].concat())?);
        }
        *part = wide;
    }
    Ok(())
}

impl Sampled {
    /// Leaves out folders.
    pub(crate) fn redact(&mut self) {
        self.name = String::from_utf8_lossy(last(self.name.as_bytes())).into_owned();
        self.lost.iter_mut().for_each(|(object, ..)| *object = last(object).to_vec());
        self.rebuilt.iter_mut().for_each(|object| *object = last(object).to_vec());
    }

    /// What belongs to nothing, as far as it is told by name.
    pub(crate) fn told(&self) -> &[(Vec<u8>, Vec<u8>, i64)] {
        &self.lost[..self.lost.len().min(TOLD)]
    }

    /// What a reader should know of samples, each as a kind and a text.
    pub(crate) fn warnings(&self) -> Vec<(&'static str, String)> {
        let percent = |count: i64| format!("{:.1} %", count as f64 * 100.0 / self.total.max(1) as f64);
        let mut said = Vec::new();
        let lost = self.total - self.matched;
        if lost > 0 {
            let text = format!(
                "{} of what {} has are samples of no function of this profile: they are in no sum. Their objects and names are below \
                 Samples.",
                percent(lost),
                self.name
            );
            said.push(("samples", text));
        }
        if self.shared > 0 {
            let text = format!(
                "{} of what {} has are samples of which it is not known which one of several functions they are of: each has its share by \
                 cost.",
                percent(self.shared),
                self.name
            );
            said.push(("samples", text));
        }
        if !self.rebuilt.is_empty() {
            let files: Vec<_> = self.rebuilt.iter().map(|object| String::from_utf8_lossy(object)).collect();
            let text = format!(
                "These files are other builds than those that were sampled, so that samples belong to functions by name alone: {}.",
                files.join(", ")
            );
            said.push(("samples", text));
        }
        said
    }
}

#[cfg(test)]
mod tests;
