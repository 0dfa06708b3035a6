//! From files to the sides of a report: reads profiles, gives what they name common numbers, adds up, computes.

use std::ffi::{OsStr, OsString};
use std::io;

use anyhow::{anyhow, bail};
use cg_cli::input;
use cg_cli::progress::Progress;
use cg_cli::substitute::Substitution;
use cg_format::callgrind::{
    Call, FileId, FunctionId, Header, Jump, Names, Outcome, PartEnd, PartHeader, Position, Sink, read,
};
use cg_format::count::TooLarge;
use cg_model::{Collector, Detail, Grouping, Model, Rules};

use crate::pair::{self, Objects, Renamed};

/// What files of one side of a comparison say, added up.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) model: Model,
    pub(crate) detail: Detail,
    /// How often a number stands for a name that no file has.
    pub(crate) unnamed: u64,
    /// Name, header and number of parts of each file.
    pub(crate) inputs: Vec<(String, Header, usize)>,
}

/// All that was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) names: Names,
    /// The new side, and the base if there is one.
    pub(crate) sides: Vec<Side>,
    /// Functions that are the same by their bodies alone.
    pub(crate) renamed: Renamed,
}

/// How names are changed before anything is compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renaming<'a> {
    pub(crate) file: Option<&'a Substitution>,
    pub(crate) function: Option<&'a Substitution>,
    /// Whether folders are left out of names of files and objects.
    pub(crate) redact: bool,
}

impl Renaming<'_> {
    fn changes(&self) -> bool {
        self.file.is_some() || self.function.is_some() || self.redact
    }

    fn file(&self, name: &[u8]) -> anyhow::Result<Vec<u8>> {
        let name = apply(self.file, name)?;
        Ok(if self.redact { last(&name).to_vec() } else { name })
    }

    fn object(&self, name: &[u8]) -> Vec<u8> {
        if self.redact { last(name).to_vec() } else { name.to_vec() }
    }
}

fn apply(substitution: Option<&Substitution>, name: &[u8]) -> anyhow::Result<Vec<u8>> {
    match substitution {
        Some(substitution) => Ok(substitution.apply(name)?),
        None => Ok(name.to_vec()),
    }
}

/// The last part of a path.
pub(crate) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Files of one side, added up but without a model, which needs the names of all sides.
#[derive(Default)]
struct Sums {
    /// What objects are called on the side before.
    objects: Objects,
    unnamed: u64,
    tally: Tally,
    header: Header,
    parts: Vec<PartEnd>,
    inputs: Vec<(String, Header, usize)>,
}

/// Reads each list of files as one side; numbers of functions and files mean the same in all of them.
///
/// # Errors
/// A file cannot be read or is no profile, or files of one side count different events.
pub(crate) fn sides(lists: &[&[OsString]], renaming: Renaming<'_>) -> anyhow::Result<Loaded> {
    let all: Vec<&OsString> = lists.iter().copied().flatten().collect();
    if all.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("standard input (-) can be read only once");
    }
    let progress = Progress::start("cg_report");
    let mut names = Names::default();
    let mut sums: Vec<Sums> = Vec::new();
    let mut objects = Objects::default();
    for list in lists {
        let mut sum = Sums { objects: std::mem::take(&mut objects), ..Sums::default() };
        for file in *list {
            add(&mut sum, &mut names, file, renaming, all.len() == 1, &progress)?;
        }
        sum.tally.detail.finish()?;
        names.objects().for_each(|object| objects.add(names.object_name(object)));
        sums.push(sum);
    }
    drop(progress);
    let mut renamed = Renamed::new();
    if let [new, base] = &mut sums[..] {
        let (map, guessed) = pair::leftovers(&names, &new.tally.detail, &base.tally.detail);
        if names.functions().any(|id| map[id.index()] != id) {
            let files: Vec<FileId> = names.files().collect();
            let old = std::mem::take(&mut base.tally);
            base.tally.collector.append(old.collector, &map, &files)?;
            base.tally.detail.append(&old.detail, &map, &files);
            base.tally.detail.finish()?;
        }
        renamed = guessed;
    }
    let mut sides = Vec::new();
    for sum in sums {
        let Sums { tally, header, parts, inputs, unnamed, .. } = sum;
        let input = inputs.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(" + ");
        let rules = Rules { grouping: Grouping::Function, cycles: true, here: None };
        let model = Model::new(input, header, parts, &names, tally.collector, rules)?;
        sides.push(Side { model, detail: tally.detail, unnamed, inputs });
    }
    Ok(Loaded { names, sides, renamed })
}

fn add(
    sum: &mut Sums,
    names: &mut Names,
    file: &OsStr,
    renaming: Renaming<'_>,
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
    if alone && !renaming.changes() {
        *names = own;
        sum.tally = tally;
    } else {
        let files = own.files().map(|id| Ok(names.file(&renaming.file(own.file_name(id))?)));
        let files: Vec<FileId> = files.collect::<anyhow::Result<_>>()?;
        let mut functions: Vec<FunctionId> = Vec::new();
        for id in own.functions() {
            let of = own.get(id);
            let object = renaming.object(own.object_name(of.object));
            let object = names.object(sum.objects.name(&object));
            let function = apply(renaming.function, own.function_name(id))?;
            functions.push(names.function(&function, files[of.file.index()], object));
        }
        sum.tally.collector.append(tally.collector, &functions, &files)?;
        sum.tally.detail.append(&tally.detail, &functions, &files);
    }
    if sum.inputs.is_empty() {
        sum.header = header.clone();
    }
    sum.inputs.push((name, header, parts.len()));
    sum.parts.extend(parts);
    Ok(())
}

/// Adds up and keeps what happened where, in one pass.
#[derive(Debug)]
struct Tally {
    collector: Collector,
    detail: Detail,
}

impl Default for Tally {
    fn default() -> Self {
        Self { collector: Collector::new(false), detail: Detail::default() }
    }
}

impl Sink for Tally {
    fn part(&mut self, header: &PartHeader) {
        self.collector.part(header);
        self.detail.part(header);
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        self.collector.row(function, at, costs)?;
        self.detail.row(function, at, costs)
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.collector.call(function, at, call, costs)?;
        self.detail.call(function, at, call, costs)
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        self.collector.jump(function, at, jump);
        self.detail.jump(function, at, jump);
    }
}

/// Writing to memory does not fail; this names the step if it ever does.
pub(crate) fn packing(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot compress the report's data")
}
