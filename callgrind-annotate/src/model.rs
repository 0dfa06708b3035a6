//! What a report says, before it is known how it looks.
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
use std::path::Path;

use anyhow::{Context, bail};
use cg_format::callgrind::{FileId, FunctionId, Header, Names, Outcome, PartEnd};

use crate::collect::{Collector, Line, Unit};
use crate::cost::Cost;
use crate::graph;

/// The file of code whose source is not known.
pub(crate) const UNKNOWN: &[u8] = b"???";

/// A line of the function table.
#[derive(Debug)]
pub(crate) struct Entry {
    /// `FILE:FUNCTION`, or the name of the cycle.
    pub(crate) name: Vec<u8>,
    /// The object, where it is shown.
    pub(crate) object: Option<Vec<u8>>,
    /// The source file; none for a cycle.
    pub(crate) file: Option<Vec<u8>>,
    /// The function's name alone; none for a cycle.
    pub(crate) function: Option<Vec<u8>>,
    /// The cycle that it is, or is a member of, from 1.
    pub(crate) cycle: Option<usize>,
    /// Its own cost.
    pub(crate) own: Cost,
    /// Its cost with all that it calls.
    pub(crate) inclusive: Cost,
    /// Whether rows of the profile mention it.
    pub(crate) rows: bool,
    /// Who calls it: indices into [`Model::arcs`].
    pub(crate) callers: Vec<usize>,
    /// Whom it calls.
    pub(crate) callees: Vec<usize>,
}

/// Calls between two entries.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) caller: usize,
    pub(crate) callee: usize,
    pub(crate) count: u64,
    /// Inclusive cost; none within a cycle, where it would mean nothing.
    pub(crate) cost: Option<Cost>,
}

/// A line of a source file.
#[derive(Debug, Default)]
pub(crate) struct SourceLine {
    pub(crate) cost: Option<Cost>,
    pub(crate) calls: Vec<SourceCall>,
}

/// Calls from a line of a source file.
#[derive(Debug)]
pub(crate) struct SourceCall {
    pub(crate) callee: usize,
    pub(crate) count: u64,
    /// As in [`Link`].
    pub(crate) cost: Option<Cost>,
}

/// The total that percentages are of.
#[derive(Debug, Default)]
pub(crate) struct Total {
    pub(crate) cost: Cost,
    /// Whether the profile does not say it.
    pub(crate) calculated: bool,
}

/// A profile with everything that is needed to report on it.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) input: String,
    pub(crate) header: Header,
    pub(crate) parts: Vec<PartEnd>,
    pub(crate) events: Vec<String>,
    pub(crate) total: Total,
    pub(crate) entries: Vec<Entry>,
    pub(crate) links: Vec<Link>,
    /// Lines by file.
    pub(crate) sources: HashMap<Vec<u8>, BTreeMap<u32, SourceLine>>,
    /// Indices of the events to show, in order.
    pub(crate) show: Vec<usize>,
    /// Indices of the events to sort by, and how much of each is to be covered, in percent.
    pub(crate) sort: Vec<(usize, f64)>,
    /// Whether the table is about inclusive cost.
    pub(crate) inclusive: bool,
}

/// How functions are put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) inclusive: bool,
    pub(crate) cycles: bool,
    /// A folder that is left out at the beginning of files.
    pub(crate) here: Option<&'a [u8]>,
}

impl Model {
    /// Puts together what was read.
    pub(crate) fn new(
        input: String,
        outcome: Outcome,
        mut collected: Collector,
        rules: Rules<'_>,
    ) -> anyhow::Result<Self> {
        let Outcome { header, parts, names, .. } = outcome;
        let events = parts.first().map(|part| part.header.events.clone()).unwrap_or_default();
        if let Some(other) = parts.iter().find(|part| part.header.events != events) {
            bail!(
                "{input}: its parts count different events: `{}` and `{}`",
                events.join(" "),
                other.header.events.join(" ")
            );
        }
        let total = total(&parts, &collected.parts)?;
        // Every function has a unit of its own file, also one that is only called or only has inlined code.
        let callers = collected.units.iter().map(|unit| unit.function);
        let all: Vec<FunctionId> = callers.chain(collected.arcs.iter().map(|arc| arc.callee)).collect();
        all.into_iter().for_each(|function| _ = collected.unit(function, names.get(function).file));
        let show = (0..events.len()).collect();
        let inclusive = rules.inclusive;
        let mut builder = Builder {
            names: &names,
            rules,
            entries: Vec::new(),
            links: Vec::new(),
            homes: Vec::new(),
            groups: Vec::new(),
        };
        let sources = builder.build(&mut collected)?;
        let Builder { entries, links, .. } = builder;
        Ok(Self { input, header, parts, events, total, entries, links, sources, show, sort: Vec::new(), inclusive })
    }

    /// Applies `--show`, `--sort` and `--threshold`.
    pub(crate) fn select(&mut self, show: Option<&str>, sort: Option<&str>, threshold: f64) -> anyhow::Result<()> {
        if let Some(list) = show {
            self.show = list.split(',').map(|name| self.event("--show", name)).collect::<anyhow::Result<_>>()?;
        }
        let mut wanted = Vec::new();
        let mut own_thresholds = false;
        for item in sort.map_or_else(|| self.events.clone(), |list| list.split(',').map(str::to_owned).collect()) {
            let (name, bound) = match item.split_once(':') {
                Some((name, bound)) if sort.is_some() => (name.to_owned(), Some(bound.to_owned())),
                _ => (item, None),
            };
            let bound = match bound {
                None => None,
                Some(text) => match text.parse::<f64>() {
                    Ok(bound) if (0.0..=100.0).contains(&bound) => Some(bound),
                    _ => bail!("--sort: the threshold `{text}` of `{name}` is no number from 0 to 100"),
                },
            };
            own_thresholds |= bound.is_some();
            wanted.push((self.event("--sort", &name)?, bound.unwrap_or(0.0)));
        }
        if !own_thresholds {
            wanted[0].1 = threshold;
        }
        self.sort = wanted;
        Ok(())
    }

    fn event(&self, option: &str, name: &str) -> anyhow::Result<usize> {
        self.events.iter().position(|event| event == name).with_context(|| {
            format!("{}: {option} event `{name}' did not appear in input: it has {}", self.input, self.events.join(" "))
        })
    }

    /// The cost that the table shows for an entry.
    pub(crate) fn cost<'a>(&self, entry: &'a Entry) -> &'a Cost {
        if self.inclusive { &entry.inclusive } else { &entry.own }
    }

    /// The entries that the table is about, the most expensive first, equal ones by name.
    pub(crate) fn table(&self) -> Vec<usize> {
        let listed =
            |entry: &Entry| entry.rows || self.inclusive && !(entry.callers.is_empty() && entry.callees.is_empty());
        let mut table: Vec<usize> = (0..self.entries.len()).filter(|at| listed(&self.entries[*at])).collect();
        table.sort_by_cached_key(|at| (self.rank(self.cost(&self.entries[*at])), self.label(*at)));
        table
    }

    /// How many entries of the table are shown: until the thresholds are reached.
    pub(crate) fn shown(&self, table: &[usize]) -> usize {
        let mut covered = vec![0_i128; self.sort.len()];
        for (i, at) in table.iter().enumerate() {
            let reached = self.sort.iter().zip(&covered).all(|((event, threshold), covered)| {
                reaches(*covered, i128::from(self.total.cost.value(*event)), *threshold)
            });
            if reached {
                return i;
            }
            let cost = self.cost(&self.entries[*at]);
            for ((event, _), covered) in self.sort.iter().zip(&mut covered) {
                let value = i128::from(cost.value(*event));
                if self.inclusive {
                    // What is shown so far are all functions of at least this cost.
                    *covered = i128::from(self.total.cost.value(*event)) - value;
                } else {
                    *covered += value;
                }
            }
        }
        table.len()
    }

    /// Links, the most expensive first, equal ones by the name of the entry that `other` picks.
    pub(crate) fn ranked(&self, links: &[usize], other: impl Fn(&Link) -> usize) -> Vec<&Link> {
        let mut links: Vec<&Link> = links.iter().map(|at| &self.links[*at]).collect();
        let none = Cost::default();
        links.sort_by_cached_key(|link| {
            (self.rank(link.cost.as_ref().unwrap_or(&none)), std::cmp::Reverse(link.count), self.label(other(link)))
        });
        links
    }

    /// Calls of a line, likewise.
    pub(crate) fn ranked_calls<'a>(&self, line: &'a SourceLine) -> Vec<&'a SourceCall> {
        let mut calls: Vec<&SourceCall> = line.calls.iter().collect();
        let none = Cost::default();
        calls.sort_by_cached_key(|call| {
            (self.rank(call.cost.as_ref().unwrap_or(&none)), std::cmp::Reverse(call.count), self.label(call.callee))
        });
        calls
    }

    /// Ascends as costs descend.
    pub(crate) fn rank(&self, cost: &Cost) -> Vec<std::cmp::Reverse<i64>> {
        self.sort.iter().map(|(event, _)| std::cmp::Reverse(cost.value(*event))).collect()
    }

    /// What distinguishes an entry from all others.
    pub(crate) fn label(&self, at: usize) -> (&[u8], Option<&[u8]>) {
        let entry = &self.entries[at];
        (&entry.name, entry.object.as_deref())
    }

    /// Names of events.
    pub(crate) fn names(&self, events: impl IntoIterator<Item = usize>) -> Vec<&str> {
        events.into_iter().map(|event| self.events[event].as_str()).collect()
    }
}

/// Whether so much of a total is as many percent of it as are wanted: 100 is never reached, so that nothing is left out.
///
/// Sums may be negative, as those of differences are. What is below 0 has reached nothing, even of a total below 0, and
/// what is above 0 more than all of a total that is not; so does the reference decide.
fn reaches(covered: i128, total: i128, threshold: f64) -> bool {
    match cg_format::show::percent(covered, total) {
        _ if threshold >= 100.0 => false,
        _ if threshold <= 0.0 => covered >= 0,
        Some(percent) if total > 0 => percent >= threshold,
        _ => covered > 0,
    }
}

/// The total of a profile: what its parts say, unless that is less than their rows sum up to or no number of costs at
/// all, as the reference's sums are after some client requests.
fn total(parts: &[PartEnd], rows: &[Cost]) -> anyhow::Result<Total> {
    let mut total = Total::default();
    for (part, rows) in parts.iter().zip(rows) {
        let stated = [&part.summary, &part.totals].into_iter().flatten().find_map(|values| {
            let values: Option<Vec<i64>> = values.iter().map(|value| i64::try_from(*value).ok()).collect();
            values.filter(|values| values.iter().all(|value| *value >= 0))
        });
        total.calculated |= part.summary.is_none() && part.totals.is_none();
        let mut cost = match stated {
            Some(values) => Cost::from(values),
            None => rows.clone(),
        };
        let most = cost.values().len();
        let rows = rows.values();
        cost = cost.max(&Cost::from(rows[..most.min(rows.len())].to_vec()));
        total.cost.add_cost(&cost)?;
    }
    Ok(total)
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
    fn build(&mut self, collected: &mut Collector) -> anyhow::Result<HashMap<Vec<u8>, BTreeMap<u32, SourceLine>>> {
        let units = std::mem::take(&mut collected.units);
        let entry_of = self.add_units(&units)?;
        let arcs = std::mem::take(&mut collected.arcs);
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
        let mut finder: HashMap<(usize, usize), usize> = HashMap::new();
        for arc in arcs {
            let function = units[arc.caller].function;
            let (caller, callee) = (entry_of[arc.caller], self.homes[arc.callee.index()]);
            let links = &mut self.links;
            let at = *finder.entry((caller, callee)).or_insert_with(|| {
                links.push(Link { caller, callee, count: 0, cost: None });
                links.len() - 1
            });
            self.links[at].count = self.links[at].count.saturating_add(arc.count);
            if !self.within(function, arc.callee) {
                self.links[at].cost.get_or_insert_default().add_cost(&arc.cost)?;
                self.entries[caller].inclusive.add_cost(&arc.cost)?;
                spent[self.homes[function.index()]].add_cost(&arc.cost)?;
                seen[callee].get_or_insert_default().add_cost(&arc.cost)?;
            }
        }
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
    fn add_units(&mut self, units: &[Unit]) -> anyhow::Result<Vec<usize>> {
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
    fn add_cycles(&mut self) -> anyhow::Result<()> {
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
        let mut finder: HashMap<(usize, usize), usize> = HashMap::new();
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
                let sum = *finder.entry((caller, callee)).or_insert_with(|| {
                    links.push(Link { caller, callee, count: 0, cost: None });
                    links.len() - 1
                });
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

    fn sources(&self, lines: Vec<(FileId, u32, Line)>) -> anyhow::Result<HashMap<Vec<u8>, BTreeMap<u32, SourceLine>>> {
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

/// The current folder, as it stands before files in profiles.
pub(crate) fn here() -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let here = std::env::current_dir().ok()?;
    (here != Path::new("/")).then(|| here.as_os_str().as_bytes().to_vec())
}
