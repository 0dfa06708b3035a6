//! From files to the sides of a report: reads profiles, gives what they name common numbers, adds up, computes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use cg_cli::input;
use cg_cli::progress::Progress;
use cg_format::callgrind::{
    Call, Chains, FileId, FunctionId, Header, Jump, Names, Outcome, PartEnd, PartHeader, Position, Sink, read,
};
use cg_format::count::TooLarge;
use cg_format::tree::Process;
use cg_model::{Cost, Detail, Functions};

use crate::apart::{self, Apart};
use crate::chains::{self, Levels, Recorded};
use crate::contexts::{self, Plain};
use crate::options::{Code, Contexts};
use crate::pair::{self, Objects, Renamed};
use crate::renaming::Renaming;
use crate::runs::{self, Runs};
use crate::samples::{Ground, Sampled, Samples};

/// What files of one side of a comparison say, added up, or of several runs of one thing the one in the middle.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) model: Functions,
    /// What happened where, in all parts together.
    pub(crate) detail: Detail,
    /// Whether positions have addresses, and whether there are jumps.
    pub(crate) addresses: bool,
    pub(crate) jumps: bool,
    /// What happened in each part, if there are several and they are wanted.
    pub(crate) parts: Vec<Detail>,
    /// Whole chains of calls, if they were recorded.
    pub(crate) chains: Option<Recorded>,
    /// How often a number stands for a name that no file has.
    pub(crate) unnamed: u64,
    /// Name, header and number of parts of each file.
    pub(crate) inputs: Vec<(String, Header, usize)>,
    /// The process of each part, where the profile is of a tree of them.
    pub(crate) processes: Vec<Option<Process>>,
    /// All runs, if there are several.
    pub(crate) runs: Option<Runs>,
    /// What became of samples, if there are any.
    pub(crate) sampled: Option<Sampled>,
    /// The same with inlined functions of their own, if there are any.
    pub(crate) apart: Option<Box<Side>>,
    /// The same with functions apart by callers and levels of recursion, if they are together here.
    pub(crate) contexts: Option<Box<Side>>,
}

impl Side {
    /// One of which nothing else is known.
    fn of(model: Functions, detail: Detail) -> Self {
        let (addresses, jumps) = (detail.addresses, !detail.jumps.is_empty());
        Self {
            model,
            detail,
            addresses,
            jumps,
            parts: Vec::new(),
            chains: None,
            unnamed: 0,
            inputs: Vec::new(),
            processes: Vec::new(),
            runs: None,
            sampled: None,
            apart: None,
            contexts: None,
        }
    }

    /// Drops calls, jumps and chains, which are packed.
    pub(crate) fn forget_calls(&mut self) {
        self.chains = None;
        self.apart = None;
        self.contexts = None;
        self.parts.iter_mut().for_each(|part| *part = Detail::default());
        (self.detail.calls, self.detail.jumps) = (Vec::new(), Vec::new());
    }

    /// Drops rows, of which all is packed.
    pub(crate) fn forget_rows(&mut self) {
        self.detail = Detail::default();
    }
}

/// All that was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) names: Names,
    /// The new side, and the base if there is one.
    pub(crate) sides: Vec<Side>,
    /// Functions that are the same by their bodies alone.
    pub(crate) renamed: Renamed,
    /// What functions are without their contexts.
    pub(crate) plain: Plain,
}

/// How files become sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes<'a> {
    pub(crate) renaming: Renaming<'a>,
    /// Whether parts are kept apart, beside their sum; they are not where there is something to compare.
    pub(crate) apart: bool,
    /// The event by which the run in the middle is found; the first one if there is none of this name.
    pub(crate) event: Option<&'a str>,
    /// What is laid beside the counts, where there is nothing to compare.
    pub(crate) samples: Option<&'a Samples>,
    /// Where object files are looked for.
    pub(crate) root: Option<&'a Path>,
    /// Whose code is read, so that it is known what was inlined.
    pub(crate) code: Code,
    /// What becomes of functions that were told apart by their callers.
    pub(crate) contexts: Contexts,
}

/// Files of one side, added up but without a model, which needs the names of all sides.
#[derive(Default)]
struct Sums {
    /// What objects are called on the side before.
    objects: Objects,
    unnamed: u64,
    /// What happened in each part, until there is the sum of them, and its chains of calls.
    details: Vec<Detail>,
    chains: Vec<Chains>,
    /// Each part with its inlined functions apart, where it names any, until there is the sum of them.
    aparts: Vec<Option<Detail>>,
    apart: Option<Detail>,
    /// The sum of the rows of each part.
    sums: Vec<Cost>,
    /// What happened in all parts together, once they were read.
    whole: Detail,
    /// What functions are without their contexts.
    plain: Plain,
    header: Header,
    parts: Vec<PartEnd>,
    processes: Vec<Option<Process>>,
    inputs: Vec<(String, Header, usize)>,
}

/// Reads each list of files as one side; numbers of functions and files mean the same in all of them. Several files of one of
/// two sides are runs of one thing.
///
/// # Errors
/// A file cannot be read or is no profile, or files of one side count different events.
pub(crate) fn sides(lists: &[&[OsString]], wishes: Wishes<'_>) -> anyhow::Result<Loaded> {
    let all: Vec<&OsString> = lists.iter().copied().flatten().collect();
    if all.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("standard input (-) can be read only once");
    }
    let progress = Progress::start("cg_report");
    let mut names = Names::default();
    let mut runs: Vec<Vec<Sums>> = Vec::new();
    let mut objects = Objects::default();
    for list in lists {
        let mut side: Vec<Sums> = Vec::new();
        for file in *list {
            if side.is_empty() || lists.len() > 1 {
                side.push(Sums { objects: objects.clone(), ..Sums::default() });
            }
            let (sum, earlier) = side.split_last_mut().context("no files")?;
            add(sum, &mut names, file, wishes, all.len() == 1, &progress)?;
            if let Some(first) = earlier.first() {
                same_events(first, sum)?;
            }
        }
        names.objects().for_each(|object| objects.add(names.object_name(object)));
        runs.push(side);
    }
    drop(progress);
    let plain = Plain::of(runs.iter().flatten().map(|run| &run.plain));
    let apart = wishes.contexts == Contexts::Both && !plain.is_empty();
    let together = plain.all(&names);
    let mut contexts = None;
    if apart {
        let files: Vec<FileId> = names.files().collect();
        let merged = |side: &Vec<Sums>| side.iter().map(|run| run.merged(&together, &files)).collect();
        let merged: Vec<Vec<Sums>> = runs.iter().map(merged).collect::<Result<_, TooLarge>>()?;
        contexts = Some(std::mem::replace(&mut runs, merged));
    } else if !plain.is_empty() {
        runs.iter_mut().flatten().try_for_each(|run| run.merge(&together))?;
    }
    let mut whole = Gathered::new(runs, &mut names, wishes)?;
    let contexts = contexts.map(|runs| Gathered::new(runs, &mut names, wishes)).transpose()?;
    let mut renamed = std::mem::take(&mut whole.renamed);
    let levels = if plain.is_empty() { chains::levels(&names) } else { Levels::new() };
    let mut sides = whole.sides(&names, &levels)?;
    if let Some(mut contexts) = contexts {
        renamed.append(&mut contexts.renamed);
        renamed.sort_unstable();
        renamed.dedup();
        let apart = contexts.sides(&names, &chains::levels(&names))?;
        for (side, apart) in sides.iter_mut().zip(apart) {
            side.contexts = Some(Box::new(apart));
        }
    }
    Ok(Loaded { names, sides, renamed, plain })
}

/// Runs of all sides whose parts were added up, with all that is needed to compute what they say.
struct Gathered {
    runs: Vec<Vec<Sums>>,
    /// The run of each side that is shown.
    shown: Vec<usize>,
    renamed: Renamed,
    sampled: Option<Sampled>,
}

impl Gathered {
    /// Adds up parts, pairs functions of both sides, lays samples beside counts, and finds out what was inlined.
    fn new(mut runs: Vec<Vec<Sums>>, names: &mut Names, wishes: Wishes<'_>) -> anyhow::Result<Self> {
        let files: Vec<FileId> = names.files().collect();
        let functions: Vec<FunctionId> = names.functions().collect();
        let shown: Vec<usize> =
            runs.iter().map(|side| runs::middle(side.iter().map(|run| run.total(wishes.event)))).collect();
        let alone = runs.len() == 1;
        for (side, shown) in runs.iter_mut().zip(&shown) {
            for (at, run) in side.iter_mut().enumerate() {
                let kept = wishes.apart && alone && at == *shown;
                run.apart = apart_whole(&mut run.aparts, &run.details, &functions, &files)?;
                run.whole = whole(&mut run.details, kept, &functions, &files)?;
            }
        }
        let mut renamed = Renamed::new();
        if let [new, base] = &mut runs[..] {
            let (map, guessed) = pair::leftovers(names, &new[shown[0]].whole, &base[shown[1]].whole);
            if map != functions {
                base.iter_mut().try_for_each(|run| run.rename(&map))?;
            }
            renamed = guessed;
        }
        let mut sampled = None;
        if let ([runs], [shown]) = (&mut runs[..], &shown[..]) {
            let run = &mut runs[*shown];
            sampled = wishes.samples.map(|samples| run.lay(samples, names, wishes)).transpose()?;
            if run.apart.is_none() && wishes.code != Code::None && !wishes.renaming.redact {
                let event = run.event(wishes.event);
                let all = wishes.code == Code::All;
                run.apart = apart::by_code(names, &run.whole, wishes.renaming, wishes.root, event, all)?;
            }
        }
        Ok(Self { runs, shown, renamed, sampled })
    }

    /// The sides that they are.
    fn sides(self, names: &Names, levels: &Levels) -> anyhow::Result<Vec<Side>> {
        let Self { runs, shown, mut sampled, .. } = self;
        // What only one side tells cannot be compared.
        let both = runs.iter().zip(&shown).all(|(side, shown)| side[*shown].apart.is_some());
        let mut sides = Vec::new();
        for (mut side, shown) in runs.into_iter().zip(shown) {
            let apart = side[shown].apart.take().filter(|_| both);
            let mut side = one(side, shown, names, levels, apart)?;
            side.sampled = sampled.take();
            if let Some(apart) = &mut side.apart {
                apart.sampled.clone_from(&side.sampled);
            }
            sides.push(side);
        }
        Ok(sides)
    }
}

/// A side of its runs, of which one is shown.
fn one(side: Vec<Sums>, shown: usize, names: &Names, levels: &Levels, apart: Option<Detail>) -> anyhow::Result<Side> {
    let several = side.len() > 1;
    let mut runs = Runs::new(shown);
    let (mut picture, mut apart, mut inlined) = (None, apart, None);
    for (at, run) in side.into_iter().enumerate() {
        let Sums { sums, whole, details, chains, header, parts, processes, inputs, unnamed, .. } = run;
        let input = inputs.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(" + ");
        if let Some(detail) = apart.take_if(|_| at == shown) {
            let model = Functions::new(input.clone(), header.clone(), parts.clone(), &sums, names, &detail)?;
            inlined = Some(Box::new(Side::of(model, detail)));
        }
        let model = Functions::new(input, header, parts, &sums, names, &whole)?;
        if several {
            runs.add(&model);
        }
        if at == shown {
            picture = Some((model, whole, details, chains, inputs, processes, unnamed));
        }
    }
    let (model, detail, parts, chains, inputs, processes, unnamed) = picture.context("no files")?;
    let chains = Recorded::new(chains, &detail, &parts, names, levels)?;
    let runs = several.then_some(runs);
    Ok(Side { parts, chains, unnamed, inputs, processes, runs, apart: inlined, ..Side::of(model, detail) })
}

/// Whether two runs can be compared.
fn same_events(first: &Sums, second: &Sums) -> anyhow::Result<()> {
    if first.events() == second.events() {
        return Ok(());
    }
    let name = |run: &Sums| run.inputs.first().map(|(name, ..)| name.clone()).unwrap_or_default();
    bail!(
        "{} and {} count different events, so they are no runs of one thing: `{}` and `{}`",
        name(first),
        name(second),
        first.events().join(" "),
        second.events().join(" ")
    )
}

impl Sums {
    /// Names of the events, in the order of all costs.
    fn events(&self) -> &[String] {
        self.parts.first().map_or(&[], |part| &part.header.events)
    }

    /// The number of an event, or that of the first one.
    fn event(&self, name: Option<&str>) -> usize {
        name.and_then(|name| self.events().iter().position(|known| known == name)).unwrap_or(0)
    }

    /// What all rows cost.
    fn total(&self, event: Option<&str>) -> i128 {
        let at = self.event(event);
        self.sums.iter().map(|part| i128::from(part.value(at))).sum()
    }

    /// Lays samples beside the counts.
    fn lay(&mut self, samples: &Samples, names: &Names, wishes: Wishes<'_>) -> anyhow::Result<Sampled> {
        let event = self.event(wishes.event);
        let Self { whole, parts, sums, chains, apart, .. } = self;
        if let Some(detail) = apart {
            let ground = Ground { names, detail, parts: &mut [], sums: &mut [], chains: &mut [], event };
            samples.lay(ground, wishes.renaming, wishes.root)?;
        }
        let ground = Ground { names, detail: whole, parts, sums, chains, event };
        let mut sampled = samples.lay(ground, wishes.renaming, wishes.root)?;
        if wishes.renaming.redact {
            sampled.redact();
        }
        Ok(sampled)
    }

    /// The same with other functions: what several were is one.
    fn merged(&self, functions: &[FunctionId], files: &[FileId]) -> Result<Self, TooLarge> {
        let there = |detail: &Detail| {
            let mut there = Detail::default();
            there.append(detail, functions, files);
            there
        };
        let mut chains = Vec::new();
        for part in &self.chains {
            let mut there = part.like();
            there.append(part, functions)?;
            chains.push(there);
        }
        Ok(Self {
            unnamed: self.unnamed,
            details: self.details.iter().map(there).collect(),
            chains,
            aparts: self.aparts.iter().map(|apart| apart.as_ref().map(there)).collect(),
            sums: self.sums.clone(),
            header: self.header.clone(),
            parts: self.parts.clone(),
            processes: self.processes.clone(),
            inputs: self.inputs.clone(),
            ..Self::default()
        })
    }

    /// The same in its place: there is no more in memory than before.
    fn merge(&mut self, functions: &[FunctionId]) -> Result<(), TooLarge> {
        self.details.iter_mut().chain(self.aparts.iter_mut().flatten()).for_each(|detail| detail.renumber(functions));
        self.rename_chains(functions)
    }

    /// Gives functions other numbers.
    fn rename(&mut self, functions: &[FunctionId]) -> Result<(), TooLarge> {
        for detail in std::iter::once(&mut self.whole).chain(&mut self.apart) {
            detail.renumber(functions);
            detail.finish()?;
        }
        self.rename_chains(functions)
    }

    fn rename_chains(&mut self, functions: &[FunctionId]) -> Result<(), TooLarge> {
        for chains in &mut self.chains {
            let old = std::mem::replace(chains, chains.like());
            chains.append(&old, functions)?;
        }
        Ok(())
    }
}

/// The sum of parts, which are put in order; they are gone afterwards if there is but one, or if they are not to be `kept`.
fn whole(parts: &mut Vec<Detail>, kept: bool, functions: &[FunctionId], files: &[FileId]) -> Result<Detail, TooLarge> {
    if kept && parts.len() > 1 {
        parts.iter_mut().try_for_each(Detail::finish)?;
    }
    let mut whole = if parts.len() == 1 { parts.remove(0) } else { Detail::default() };
    parts.iter().for_each(|part| whole.append(part, functions, files));
    whole.finish()?;
    if !kept {
        parts.clear();
    }
    Ok(whole)
}

/// The sum of parts with inlined functions apart, if any names one.
fn apart_whole(
    aparts: &mut Vec<Option<Detail>>,
    parts: &[Detail],
    functions: &[FunctionId],
    files: &[FileId],
) -> Result<Option<Detail>, TooLarge> {
    let aparts = std::mem::take(aparts);
    if aparts.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut whole = Detail::default();
    for (apart, part) in aparts.iter().zip(parts) {
        whole.append(apart.as_ref().unwrap_or(part), functions, files);
    }
    whole.finish()?;
    Ok(Some(whole))
}

fn add(
    sum: &mut Sums,
    names: &mut Names,
    file: &OsStr,
    wishes: Wishes<'_>,
    alone: bool,
    progress: &Progress,
) -> anyhow::Result<()> {
    let name = input::name(file);
    let opened = input::open_profile(file, &progress.counter);
    let opened = opened.map_err(|why| anyhow!("cannot open {name}: {why}"))?;
    let mut tally = Tally::default();
    let Outcome { header, parts, names: own, unnamed } = read(opened, &name, &mut tally)?;
    sum.unnamed += unnamed;
    let events = |parts: &[PartEnd]| parts.first().map(|part| part.header.events.clone()).unwrap_or_default();
    if let Some((first, ..)) = sum.inputs.first()
        && events(&sum.parts) != events(&parts)
    {
        bail!(
            "{first} and {name} count different events, so they cannot be added up: `{}` and `{}`",
            events(&sum.parts).join(" "),
            events(&parts).join(" ")
        );
    }
    let renaming = wishes.renaming;
    let contexts = if wishes.contexts == Contexts::Apart { Vec::new() } else { contexts::found(&own) };
    if alone && !renaming.changes() {
        *names = own;
        for (id, plain) in &contexts {
            let of = names.get(*id);
            sum.plain.add(*id, names.function(plain, of.file, of.object));
        }
        (sum.details, sum.chains) = (tally.parts, tally.chains);
        sum.aparts = tally.aparts.into_iter().map(|apart| apart.detail).collect();
    } else {
        let files = own.files().map(|id| Ok(names.file(&renaming.file(own.file_name(id))?)));
        let files: Vec<FileId> = files.collect::<anyhow::Result<_>>()?;
        let mut functions: Vec<FunctionId> = Vec::new();
        for id in own.functions() {
            let of = own.get(id);
            let object = renaming.object(own.object_name(of.object));
            let object = names.object(sum.objects.name(&object));
            let function = renaming.function(own.function_name(id))?;
            functions.push(names.function(&function, files[of.file.index()], object));
        }
        for (id, plain) in &contexts {
            let function = functions[id.index()];
            let of = names.get(function);
            sum.plain.add(function, names.function(&renaming.function(plain)?, of.file, of.object));
        }
        for part in tally.parts {
            let mut there = Detail::default();
            there.append(&part, &functions, &files);
            sum.details.push(there);
        }
        for apart in tally.aparts {
            sum.aparts.push(apart.detail.map(|detail| {
                let mut there = Detail::default();
                there.append(&detail, &functions, &files);
                there
            }));
        }
        for chains in tally.chains {
            let mut there = chains.like();
            there.append(&chains, &functions)?;
            sum.chains.push(there);
        }
    }
    sum.sums.extend(tally.sums);
    sum.processes.extend(tally.processes);
    if sum.inputs.is_empty() {
        sum.header = header.clone();
    }
    sum.inputs.push((name, header, parts.len()));
    sum.parts.extend(parts);
    Ok(())
}

/// Keeps what happened where in each part of a file.
#[derive(Debug, Default)]
struct Tally {
    parts: Vec<Detail>,
    aparts: Vec<Apart>,
    sums: Vec<Cost>,
    chains: Vec<Chains>,
    /// The process of each part, and that of what comes next.
    processes: Vec<Option<Process>>,
    process: Option<Process>,
}

impl Sink for Tally {
    fn comment(&mut self, line: &[u8]) {
        if let Some(process) = Process::begun_by(line) {
            self.process = Some(process);
        } else if let Some(process) = &mut self.process {
            if let Some(path) = line.strip_prefix(b"# executable: ") {
                process.executable = path.to_vec();
            } else if let Some(command) = line.strip_prefix(b"# command: ") {
                process.command = command.to_vec();
            }
        }
    }

    fn part(&mut self, header: &PartHeader) {
        self.sums.push(Cost::default());
        self.processes.push(self.process.clone());
        let mut detail = Detail::default();
        detail.part(header);
        self.parts.push(detail);
        self.aparts.push(Apart::default());
        self.chains.push(Chains::new(header.events.len()));
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        if let Some(sum) = self.sums.last_mut() {
            sum.add(costs)?;
        }
        self.aparts.last_mut().map_or(Ok(()), |part| part.row(function, at, costs))?;
        self.parts.last_mut().map_or(Ok(()), |part| part.row(function, at, costs))
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.aparts.last_mut().map_or(Ok(()), |part| part.call(function, at, call, costs))?;
        self.parts.last_mut().map_or(Ok(()), |part| part.call(function, at, call, costs))
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        if let Some(part) = self.parts.last_mut() {
            part.jump(function, at, jump);
        }
    }

    fn inlined(&mut self, function: Option<FunctionId>) {
        if let Some(part) = self.aparts.last_mut() {
            part.inlined(function, self.parts.last());
        }
    }

    fn chain(&mut self, depth: usize, function: FunctionId, calls: u64, costs: &[i64]) -> Result<(), TooLarge> {
        self.chains.last_mut().map_or(Ok(()), |part| part.add_at(depth, function, calls, costs))
    }
}

/// Writing to memory does not fail; this names the step if it ever does.
pub(crate) fn packing(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot compress the report's data")
}
