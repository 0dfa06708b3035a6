//! Reads a profile and adds it up: self cost by function and line, calls by pair of functions, all parts together.
//!
//! Sums are exact or an error. Rows and calls keep the order in which they first came, so what is made of them depends on
//! the file alone. A profile of the cachegrind format is one without calls.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::BuildHasherDefault;
use std::sync::Arc as Shared;

use anyhow::{Context, bail};
use cg_cli::input;
use cg_cli::progress::Counter;
use cg_format::callgrind::{
    Call, Chains, EventType, FileId, FunctionId, Header, IdHasher, Jump, Names, PartHeader, Position, Sink, read,
};
use cg_format::count::TooLarge;

/// A profile, added up. Costs have a value for each event.
#[derive(Debug)]
pub(crate) struct Input {
    /// How messages call it.
    pub(crate) name: String,
    /// What stands at its beginning.
    pub(crate) header: Header,
    /// What it counts.
    pub(crate) events: Vec<String>,
    /// Events that the file explains.
    pub(crate) types: Vec<EventType>,
    /// What the numbers below stand for.
    pub(crate) names: Names,
    /// Its parts.
    pub(crate) parts: Vec<Part>,
    /// Self costs.
    pub(crate) rows: Vec<Row>,
    /// Calls.
    pub(crate) arcs: Vec<Arc>,
    /// The sum of all rows.
    pub(crate) total: Vec<i64>,
    /// Whole chains of calls, if they were recorded.
    pub(crate) chains: Chains,
}

/// A dump.
#[derive(Debug)]
pub(crate) struct Part {
    /// What stands at its beginning.
    pub(crate) header: PartHeader,
    /// The sum of its rows.
    pub(crate) total: Vec<i64>,
}

/// Self cost of a line of a function.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) function: FunctionId,
    /// The file of the line: another one than the function's where code was inlined.
    pub(crate) file: FileId,
    /// From 1; 0 if it is not known.
    pub(crate) line: u32,
    pub(crate) costs: Vec<i64>,
}

/// All calls from a function to another.
#[derive(Debug)]
pub(crate) struct Arc {
    pub(crate) caller: FunctionId,
    pub(crate) callee: FunctionId,
    pub(crate) count: u64,
    /// Inclusive cost.
    pub(crate) costs: Vec<i64>,
}

type Finder<K> = HashMap<K, usize, BuildHasherDefault<IdHasher>>;

#[derive(Debug, Default)]
struct Collector {
    parts: Vec<Part>,
    rows: Vec<Row>,
    arcs: Vec<Arc>,
    row_finder: Finder<(FunctionId, FileId, u32)>,
    arc_finder: Finder<(FunctionId, FunctionId)>,
    chains: Chains,
}

/// Adds costs; the sums grow to the length of what is added.
pub(crate) fn add(sums: &mut Vec<i64>, costs: &[i64]) -> Result<(), TooLarge> {
    if sums.len() < costs.len() {
        sums.resize(costs.len(), 0);
    }
    for (sum, cost) in sums.iter_mut().zip(costs) {
        *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
    }
    Ok(())
}

impl Sink for Collector {
    fn part(&mut self, header: &PartHeader) {
        // Parts with other events are refused in the end.
        if self.chains.all().is_empty() {
            self.chains = Chains::new(header.events.len());
        }
        self.parts.push(Part { header: header.clone(), total: vec![0; header.events.len()] });
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        let rows = &mut self.rows;
        let (file, line) = (at.file, at.place.line);
        let row = *self.row_finder.entry((function, file, line)).or_insert_with(|| {
            rows.push(Row { function, file, line, costs: Vec::new() });
            rows.len() - 1
        });
        add(&mut self.rows[row].costs, costs)?;
        let Some(part) = self.parts.last_mut() else { return Ok(()) };
        add(&mut part.total, costs)
    }

    fn call(&mut self, function: FunctionId, _at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        let (arcs, callee) = (&mut self.arcs, call.callee);
        let arc = *self.arc_finder.entry((function, callee)).or_insert_with(|| {
            arcs.push(Arc { caller: function, callee, count: 0, costs: Vec::new() });
            arcs.len() - 1
        });
        let arc = &mut self.arcs[arc];
        arc.count = arc.count.checked_add(call.count).ok_or(TooLarge)?;
        add(&mut arc.costs, costs)
    }

    fn chain(&mut self, depth: usize, function: FunctionId, calls: u64, costs: &[i64]) -> Result<(), TooLarge> {
        self.chains.add_at(depth, function, calls, costs)
    }

    fn jump(&mut self, _function: FunctionId, _at: Position, _jump: &Jump) {
        // Jumps have no cost.
    }
}

impl Input {
    /// Reads `path`, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be read, or its parts count different events.
    pub(crate) fn read(path: &OsStr, counter: &Shared<Counter>) -> anyhow::Result<Self> {
        let name = input::name(path);
        let opened = input::open(path, counter).with_context(|| name.clone())?;
        let mut collector = Collector::default();
        let outcome = read(opened, &name, &mut collector)?;
        let Collector { parts, mut rows, mut arcs, chains, .. } = collector;
        let first = parts.first().map(|part| part.header.clone()).unwrap_or_default();
        if let Some(other) = parts.iter().find(|part| part.header.events != first.events) {
            bail!(
                "{name}: its parts count different events: `{}` and `{}`",
                first.events.join(" "),
                other.header.events.join(" ")
            );
        }
        let width = first.events.len();
        let mut total = vec![0; width];
        for row in &mut rows {
            row.costs.resize(width, 0);
            add(&mut total, &row.costs).with_context(|| name.clone())?;
        }
        arcs.iter_mut().for_each(|arc| arc.costs.resize(width, 0));
        Ok(Self {
            name,
            header: outcome.header,
            events: first.events,
            types: first.types,
            names: outcome.names,
            parts,
            rows,
            arcs,
            total,
            chains,
        })
    }

    /// The command that was profiled.
    pub(crate) fn command(&self) -> String {
        lossy(self.header.cmd.trim_ascii())
    }

    /// The number of the event that an option names, or of the first.
    ///
    /// # Errors
    /// The profile does not count it.
    pub(crate) fn event(&self, name: Option<&str>) -> anyhow::Result<usize> {
        let Some(name) = name else { return Ok(0) };
        self.events.iter().position(|event| event == name).with_context(|| {
            format!("{}: there is no event `{name}` (--event), but: {}", self.name, self.events.join(" "))
        })
    }

    /// Refuses a profile with counts below 0, such as a difference.
    ///
    /// # Errors
    /// There is one.
    pub(crate) fn refuse_negative(&self, format: &str) -> anyhow::Result<()> {
        let negative = |costs: &[i64]| costs.iter().any(|cost| *cost < 0);
        if self.rows.iter().any(|row| negative(&row.costs)) || self.arcs.iter().any(|arc| negative(&arc.costs)) {
            bail!("{}: it has counts below 0, which {format} cannot tell; pprof, json and parquet can", self.name);
        }
        Ok(())
    }
}

/// Names are bytes; where a format wants text, what is not UTF-8 becomes U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
