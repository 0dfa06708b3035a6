//! Entries, their costs and the calls between them.
//!
//! An *entry* is what a line of the function table is about: a unit of a function, or a cycle. In a graph without cycles
//! the inclusive cost of a function is what its callers saw, or what it spent and its callees did, whichever is more: the
//! second is more if the profile does not know all its callers, as for handlers of signals and starts of threads. A
//! member of a cycle has what it spent itself and outside the cycle; calls within one have a count but no cost. So no
//! entry is ever above the total.
//!
//! With `--cycles=no` numbers are the reference's: inclusive costs are what callers saw, summed up, whatever that means in
//! recursion.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use cg_format::callgrind::{FileId, FunctionId, Header, Names, PartEnd};
use cg_format::count::TooLarge;

use crate::collect::{Collector, Finder, Line, Unit, small};
use crate::cost::Cost;
use crate::graph;

/// The file of code whose source is not known.
pub const UNKNOWN: &[u8] = b"???";

/// A line of the function table.
#[derive(Debug)]
pub struct Entry {
    /// `FILE:FUNCTION`, or the name of the cycle.
    pub name: Vec<u8>,
    /// The object, where it is shown.
    pub object: Option<Vec<u8>>,
    /// The source file; none for a cycle.
    pub file: Option<Vec<u8>>,
    /// The function's name alone; none for a cycle.
    pub function: Option<Vec<u8>>,
    /// The cycle that it is, or is a member of, from 1.
    pub cycle: Option<usize>,
    /// Its own cost.
    pub own: Cost,
    /// Its cost with all that it calls.
    pub inclusive: Cost,
    /// Whether rows of the profile mention it.
    pub rows: bool,
    /// Who calls it: indices into [`Model::arcs`].
    pub callers: Vec<usize>,
    /// Whom it calls.
    pub callees: Vec<usize>,
}

/// Calls between two entries.
#[derive(Debug)]
pub struct Link {
    /// Who calls, an index into [`Model::entries`].
    pub caller: usize,
    /// Who is called, likewise.
    pub callee: usize,
    /// How often.
    pub count: u64,
    /// Inclusive cost; none within a cycle, where it would mean nothing.
    pub cost: Option<Cost>,
}

/// A line of a source file.
#[derive(Debug, Default)]
pub struct SourceLine {
    /// Self cost, nothing if there were only calls.
    pub cost: Option<Cost>,
    /// Calls, in the order in which they first came.
    pub calls: Vec<SourceCall>,
}

/// Calls from a line of a source file.
#[derive(Debug)]
pub struct SourceCall {
    /// Who is called, an index into [`Model::entries`].
    pub callee: usize,
    /// How often.
    pub count: u64,
    /// As in [`Link`].
    pub cost: Option<Cost>,
}

/// The total that percentages are of.
#[derive(Debug, Default)]
pub struct Total {
    /// A value for each event.
    pub cost: Cost,
    /// Whether the profile does not say it.
    pub calculated: bool,
}

/// A profile with everything that is needed to report on it.
#[derive(Debug)]
pub struct Model {
    /// What was read, as messages call it.
    pub input: String,
    /// What stands at the beginning of the profile.
    pub header: Header,
    /// The parts, with their own beginnings and ends.
    pub parts: Vec<PartEnd>,
    /// Names of the events, in the order of the costs.
    pub events: Vec<String>,
    /// What percentages are of.
    pub total: Total,
    /// What each part has of that.
    pub part_totals: Vec<Cost>,
    /// Functions of a file, and then cycles.
    pub entries: Vec<Entry>,
    /// Calls between entries; those from and to whole cycles come last.
    pub links: Vec<Link>,
    /// Lines by file.
    pub sources: HashMap<Vec<u8>, BTreeMap<u32, SourceLine>>,
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// Parts count different events, so that they cannot be added up.
    DifferentEvents {
        /// What was read.
        input: String,
        /// Events of the first part.
        first: Vec<String>,
        /// Those of the first part that has others.
        second: Vec<String>,
    },
    /// A sum does not fit.
    TooLarge(TooLarge),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentEvents { input, first, second } => {
                write!(f, "{input}: its parts count different events: `{}` and `{}`", first.join(" "), second.join(" "))
            }
            Self::TooLarge(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for ModelError {}

impl From<TooLarge> for ModelError {
    fn from(cause: TooLarge) -> Self {
        Self::TooLarge(cause)
    }
}

/// How functions are put together.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Whether cycles are found; without, inclusive costs are the reference's.
    pub cycles: bool,
    /// A folder that is left out at the beginning of files.
    pub here: Option<&'a [u8]>,
}

impl Model {
    /// Puts together what was read from `input`: its beginning, its parts, its names and the sums of its rows.
    ///
    /// # Errors
    /// Parts count different events, or a sum does not fit.
    pub fn new(
        input: String,
        header: Header,
        parts: Vec<PartEnd>,
        names: &Names,
        mut collected: Collector,
        rules: Rules<'_>,
    ) -> Result<Self, ModelError> {
        let Totals { events, total, part_totals } = Totals::new(&input, &parts, &collected.parts)?;
        // Every function has a unit of its own file, also one that is only called or only has inlined code.
        let callers = collected.units.iter().map(|unit| unit.function);
        let all: Vec<FunctionId> = callers.chain(collected.arcs.iter().map(|arc| arc.callee)).collect();
        all.into_iter().for_each(|function| _ = collected.unit(function, names.get(function).file));
        let mut builder =
            Builder { names, rules, entries: Vec::new(), links: Vec::new(), homes: Vec::new(), groups: Vec::new() };
        let sources = builder.build(&mut collected)?;
        let Builder { entries, links, .. } = builder;
        Ok(Self { input, header, parts, events, total, part_totals, entries, links, sources })
    }
}

/// What follows of the parts of a profile alone.
pub(crate) struct Totals {
    pub(crate) events: Vec<String>,
    pub(crate) total: Total,
    pub(crate) part_totals: Vec<Cost>,
}

impl Totals {
    /// Those of parts whose rows have these sums.
    pub(crate) fn new(input: &str, parts: &[PartEnd], sums: &[Cost]) -> Result<Self, ModelError> {
        let events = parts.first().map(|part| part.header.events.clone()).unwrap_or_default();
        if let Some(other) = parts.iter().find(|part| part.header.events != events) {
            let second = other.header.events.clone();
            return Err(ModelError::DifferentEvents { input: input.to_owned(), first: events, second });
        }
        let part_totals: Vec<Cost> = parts.iter().zip(sums).map(|(part, rows)| part_total(part, rows)).collect();
        let unsaid = |part: &PartEnd| part.summary.is_none() && part.totals.is_none();
        let mut total = Total { calculated: parts.iter().any(unsaid), ..Total::default() };
        part_totals.iter().try_for_each(|part| total.cost.add_cost(part))?;
        Ok(Self { events, total, part_totals })
    }
}

/// The total of a part: what it says, unless that is less than its rows sum up to or no number of costs at all, as the
/// reference's sums are after some client requests.
fn part_total(part: &PartEnd, rows: &Cost) -> Cost {
    let stated = [&part.summary, &part.totals].into_iter().flatten().find_map(|values| {
        let values: Option<Vec<i64>> = values.iter().map(|value| i64::try_from(*value).ok()).collect();
        values.filter(|values| values.iter().all(|value| *value >= 0))
    });
    let cost = match stated {
        Some(values) => Cost::from(values),
        None => rows.clone(),
    };
    let most = cost.values().len();
    let rows = rows.values();
    cost.max(&Cost::from(rows[..most.min(rows.len())].to_vec()))
}

struct Builder<'a> {
    names: &'a Names,
    rules: Rules<'a>,
    entries: Vec<Entry>,
    links: Vec<Link>,
    /// The entry of each function, by the function's number.
    homes: Vec<usize>,
    /// The group of each entry that can reach itself.
    groups: Vec<Option<usize>>,
}

impl Builder<'_> {
    fn build(&mut self, collected: &mut Collector) -> Result<HashMap<Vec<u8>, BTreeMap<u32, SourceLine>>, TooLarge> {
        let units = std::mem::take(&mut collected.units);
        let entry_of = self.add_units(&units)?;
        let arcs = collected.take_arcs();
        self.groups = vec![None; self.entries.len()];
        if self.rules.cycles {
            self.find_groups(arcs.iter().map(|arc| (units[arc.caller].function, arc.callee)));
        }
        // By the entry of a function: what it spent with all its units, and what its callers saw.
        let mut spent = vec![Cost::default(); self.entries.len()];
        let mut seen: Vec<Option<Cost>> = vec![None; self.entries.len()];
        for unit in &units {
            spent[self.homes[unit.function.index()]].add_cost(&unit.cost)?;
        }
        let mut finder: Finder<(u32, u32)> = Finder::default();
        for arc in arcs {
            let function = units[arc.caller].function;
            let (caller, callee) = (entry_of[arc.caller], self.homes[arc.callee.index()]);
            let links = &mut self.links;
            let at = *finder.entry((small(caller), small(callee))).or_insert_with(|| {
                links.push(Link { caller, callee, count: 0, cost: None });
                small(links.len() - 1)
            }) as usize;
            self.links[at].count = self.links[at].count.saturating_add(arc.count);
            if !self.within(function, arc.callee) {
                self.entries[caller].inclusive.add_cost(&arc.cost)?;
                spent[self.homes[function.index()]].add_cost(&arc.cost)?;
                seen[callee].get_or_insert_default().add_cost(&arc.cost)?;
                // Most links have one arc, whose cost they take over: there are millions.
                match &mut self.links[at].cost {
                    Some(cost) => cost.add_cost(&arc.cost)?,
                    none => *none = Some(arc.cost),
                }
            }
        }
        drop(finder);
        let homes: BTreeSet<usize> = self.homes.iter().copied().filter(|at| *at != NOWHERE).collect();
        for at in homes {
            let (spent, seen) = (std::mem::take(&mut spent[at]), seen[at].take());
            let entry = &mut self.entries[at];
            entry.inclusive = match seen {
                // Calls from outside see all of a cycle, not what one of its members does.
                _ if entry.cycle.is_some() => spent,
                Some(seen) if self.rules.cycles => seen.max(&spent),
                None if self.rules.cycles => spent,
                Some(seen) => seen,
                None => continue,
            };
        }
        let calls = self.links.len();
        self.add_cycles()?;
        for (at, link) in self.links.iter().enumerate() {
            // The links of a whole cycle stand with the cycle alone; others have those of its members.
            if at < calls || self.entries[link.caller].function.is_none() {
                self.entries[link.caller].callees.push(at);
            }
            if at < calls || self.entries[link.callee].function.is_none() {
                self.entries[link.callee].callers.push(at);
            }
        }
        self.sources(std::mem::take(&mut collected.lines))
    }

    /// Makes the entries and gives that of each unit. Units of one name are one entry whatever their object, as in the
    /// reference; the object shown is then the last one's. But functions of unknown files have nothing in common with
    /// those of the same name, or address, in other objects: they stay apart, unless the reference's numbers are wanted.
    fn add_units(&mut self, units: &[Unit]) -> Result<Vec<usize>, TooLarge> {
        self.homes = vec![NOWHERE; self.names.functions().len()];
        let mut finder: HashMap<(Vec<u8>, Option<Vec<u8>>), usize> = HashMap::new();
        let mut entry_of = Vec::with_capacity(units.len());
        for unit in units {
            let (entry, home) = self.entry(unit.function, unit.file);
            let next = self.entries.len();
            let apart = self.rules.cycles && entry.file.as_deref() == Some(UNKNOWN);
            let key = (entry.name.clone(), entry.object.clone().filter(|_| apart));
            let at = *finder.entry(key).or_insert(next);
            if at == next {
                self.entries.push(entry);
            } else if entry.object.is_some() {
                self.entries[at].object = entry.object;
            }
            self.entries[at].own.add_cost(&unit.cost)?;
            self.entries[at].inclusive.add_cost(&unit.cost)?;
            self.entries[at].rows |= unit.rows;
            if home {
                self.homes[unit.function.index()] = at;
            }
            entry_of.push(at);
        }
        Ok(entry_of)
    }

    /// Finds what is recursive, and numbers the cycles of several functions from 1 in the order of their names.
    fn find_groups(&mut self, calls: impl Iterator<Item = (FunctionId, FunctionId)>) {
        let edges: Vec<(usize, usize)> =
            calls.map(|(caller, callee)| (self.homes[caller.index()], self.homes[callee.index()])).collect();
        let groups = graph::groups(self.entries.len(), edges.iter().copied());
        let mut sizes = vec![0_usize; self.entries.len()];
        groups.iter().for_each(|group| sizes[*group] += 1);
        for (from, to) in edges {
            if groups[from] == groups[to] {
                self.groups[from] = Some(groups[from]);
                self.groups[to] = Some(groups[to]);
            }
        }
        let mut members: Vec<usize> = (0..self.entries.len()).filter(|at| sizes[groups[*at]] > 1).collect();
        members.sort_by(|a, b| self.entries[*a].name.cmp(&self.entries[*b].name));
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for at in members {
            let next = numbers.len() + 1;
            self.entries[at].cycle = Some(*numbers.entry(groups[at]).or_insert(next));
        }
    }

    /// Whether a call is one within a cycle, be it of one function.
    fn within(&self, caller: FunctionId, callee: FunctionId) -> bool {
        let group = self.groups[self.homes[caller.index()]];
        group.is_some() && group == self.groups[self.homes[callee.index()]]
    }

    fn entry(&self, function: FunctionId, file: FileId) -> (Entry, bool) {
        let of = self.names.get(function);
        let home = of.file == file;
        let path = self.path(self.names.file_name(file));
        let function_name = self.names.function_name(function);
        let object = Some(self.names.object_name(of.object)).filter(|name| home && !name.is_empty());
        let entry = Entry {
            name: [path, b":", function_name].concat(),
            object: object.map(<[u8]>::to_vec),
            file: Some(path.to_vec()),
            function: Some(function_name.to_vec()),
            cycle: None,
            own: Cost::default(),
            inclusive: Cost::default(),
            rows: false,
            callers: Vec::new(),
            callees: Vec::new(),
        };
        (entry, home)
    }

    /// A file as it is shown: those below the current folder without its name.
    fn path<'b>(&self, name: &'b [u8]) -> &'b [u8] {
        let Some(here) = self.rules.here else { return name };
        name.strip_prefix(here).and_then(|rest| rest.strip_prefix(b"/")).unwrap_or(name)
    }

    /// Adds an entry for each cycle: the sum of its members, and the calls into it and out of it.
    fn add_cycles(&mut self) -> Result<(), TooLarge> {
        let mut cycles: BTreeMap<usize, usize> = BTreeMap::new();
        let members: Vec<(usize, usize)> =
            self.entries.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.cycle?))).collect();
        for (at, cycle) in &members {
            let next = self.entries.len();
            let sum = *cycles.entry(*cycle).or_insert(next);
            if sum == next {
                self.entries.push(Entry {
                    name: [UNKNOWN, format!(":<cycle {cycle}>").as_bytes()].concat(),
                    object: None,
                    file: None,
                    function: None,
                    cycle: Some(*cycle),
                    own: Cost::default(),
                    inclusive: Cost::default(),
                    rows: false,
                    callers: Vec::new(),
                    callees: Vec::new(),
                });
            }
            let own = self.entries[*at].own.clone();
            self.entries[sum].own.add_cost(&own)?;
            self.entries[sum].inclusive.add_cost(&own)?;
        }
        let mut finder: Finder<(u32, u32)> = Finder::default();
        let mut seen: HashMap<usize, Cost> = HashMap::new();
        for at in 0..self.links.len() {
            let link = &self.links[at];
            let Some(cost) = link.cost.clone() else { continue };
            let (from, to) = (self.entries[link.caller].cycle, self.entries[link.callee].cycle);
            let count = link.count;
            let ends = [(from.map(|cycle| cycles[&cycle]), None), (None, to.map(|cycle| cycles[&cycle]))];
            for (new_caller, new_callee) in ends {
                if new_caller.is_none() && new_callee.is_none() {
                    continue;
                }
                let link = &self.links[at];
                let (caller, callee) = (new_caller.unwrap_or(link.caller), new_callee.unwrap_or(link.callee));
                if new_caller.is_some() {
                    self.entries[caller].inclusive.add_cost(&cost)?;
                } else {
                    seen.entry(callee).or_default().add_cost(&cost)?;
                }
                let links = &mut self.links;
                let sum = *finder.entry((small(caller), small(callee))).or_insert_with(|| {
                    links.push(Link { caller, callee, count: 0, cost: None });
                    small(links.len() - 1)
                }) as usize;
                self.links[sum].count = self.links[sum].count.saturating_add(count);
                self.links[sum].cost.get_or_insert_default().add_cost(&cost)?;
            }
        }
        for (at, callers) in seen {
            let own = std::mem::take(&mut self.entries[at].inclusive);
            self.entries[at].inclusive = own.max(&callers);
        }
        Ok(())
    }

    fn sources(
        &self,
        lines: Vec<(FileId, u32, Line)>,
    ) -> Result<HashMap<Vec<u8>, BTreeMap<u32, SourceLine>>, TooLarge> {
        let mut sources: HashMap<Vec<u8>, BTreeMap<u32, SourceLine>> = HashMap::new();
        for (file, number, line) in lines {
            let path = self.path(self.names.file_name(file));
            if !sources.contains_key(path) {
                sources.insert(path.to_vec(), BTreeMap::new());
            }
            let Some(source) = sources.get_mut(path) else { continue };
            let source = source.entry(number).or_default();
            if let Some(cost) = line.cost {
                source.cost.get_or_insert_default().add_cost(&cost)?;
            }
            for call in line.calls {
                let callee = self.homes[call.callee.index()];
                let at = source.calls.iter().position(|known| known.callee == callee).unwrap_or(source.calls.len());
                if at == source.calls.len() {
                    source.calls.push(SourceCall { callee, count: 0, cost: None });
                }
                let known = &mut source.calls[at];
                known.count = known.count.saturating_add(call.count);
                if !self.within(call.caller, call.callee) {
                    known.cost.get_or_insert_default().add_cost(&call.cost)?;
                }
            }
        }
        Ok(sources)
    }
}

/// The entry of a function that has none.
const NOWHERE: usize = usize::MAX;
