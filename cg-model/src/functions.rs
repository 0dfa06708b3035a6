//! What functions of a profile cost, and the calls between them, where the profile may have millions.
//!
//! A function here is one of an object with all its code, whatever file that is from; [`crate::Model`] puts functions together by file and
//! name, as the reference's report does, with the same rules for inclusive costs and cycles. [`Functions`] keeps nothing but
//! numbers, by the numbers that names have: no text of its own, and no cost of calls, which [`Detail`] has already.

use std::collections::BTreeMap;

use cg_format::callgrind::{FunctionId, Header, Names, PartEnd};
use cg_format::count::TooLarge;

use crate::cost::Cost;
use crate::detail::Detail;
use crate::graph;
use crate::model::{ModelError, Total, Totals};

/// All calls from one function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// Who calls.
    pub caller: FunctionId,
    /// Who is called.
    pub callee: FunctionId,
    /// How often.
    pub count: u64,
}

/// Functions of a profile, by their numbers, and its cycles.
#[derive(Debug)]
pub struct Functions {
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
    /// Calls, by caller and then by callee.
    pub calls: Vec<Between>,
    /// Whether rows of the profile mention a function; others are only called.
    pub rows: Vec<bool>,
    /// The cycle of each function, from 1 in the order of names; 0 if it is in none.
    pub cycle: Vec<u32>,
    /// Groups of functions that reach each other, also of one alone if that calls itself: the group's number; [`ALONE`] for others.
    group: Vec<u32>,
    own: Table,
    inclusive: Table,
    cycle_own: Table,
    cycle_inclusive: Table,
}

/// Stands for a function that does not reach itself.
const ALONE: u32 = u32::MAX;

/// Costs of many things, all events of the first one first.
#[derive(Debug)]
struct Table {
    width: usize,
    values: Vec<i64>,
}

impl Table {
    fn new(count: usize, width: usize) -> Self {
        Self { width, values: vec![0; count * width] }
    }

    fn get(&self, at: usize, event: usize) -> i64 {
        if event < self.width { self.values[at * self.width + event] } else { 0 }
    }

    fn add(&mut self, at: usize, event: usize, cost: i64) -> Result<(), TooLarge> {
        let sum = &mut self.values[at * self.width + event];
        *sum = sum.checked_add(cost).ok_or(TooLarge)?;
        Ok(())
    }

    fn raise(&mut self, at: usize, event: usize, cost: i64) {
        let value = &mut self.values[at * self.width + event];
        *value = cost.max(*value);
    }
}

impl Functions {
    /// What follows from a profile's parts, the sums of the rows of each, and what happened where in all of them together, which is
    /// [`Detail::finish`]ed.
    ///
    /// # Errors
    /// Parts count different events, or a sum does not fit.
    pub fn new(
        input: String,
        header: Header,
        parts: Vec<PartEnd>,
        sums: &[Cost],
        names: &Names,
        detail: &Detail,
    ) -> Result<Self, ModelError> {
        let Totals { events, total, part_totals } = Totals::new(&input, &parts, sums)?;
        let count = names.functions().len();
        let width = events.len().min(detail.width());
        let mut rows = vec![false; count];
        let mut own = Table::new(count, width);
        for row in &detail.rows {
            let function = row.function.index();
            rows[function] = true;
            for event in 0..width {
                own.add(function, event, detail.row_cost(row, event))?;
            }
        }
        let calls = between(detail);
        let group = groups(count, &calls);
        let cycle = cycles(names, &group);
        let mut all = Self {
            input,
            header,
            parts,
            events,
            total,
            part_totals,
            calls,
            rows,
            cycle,
            group,
            inclusive: Table { width, values: own.values.clone() },
            own,
            cycle_own: Table::new(0, width),
            cycle_inclusive: Table::new(0, width),
        };
        all.add_inclusive(detail)?;
        all.add_cycles(detail)?;
        Ok(all)
    }

    /// Self costs of all functions for an event.
    pub fn own(&self, event: usize) -> impl Iterator<Item = i64> + Clone + '_ {
        (0..self.rows.len()).map(move |at| self.own.get(at, event))
    }

    /// Inclusive costs of all functions for an event.
    pub fn inclusive(&self, event: usize) -> impl Iterator<Item = i64> + Clone + '_ {
        (0..self.rows.len()).map(move |at| self.inclusive.get(at, event))
    }

    /// How many cycles there are.
    #[must_use]
    pub fn cycles(&self) -> usize {
        self.cycle.iter().max().map_or(0, |most| *most as usize)
    }

    /// Self costs of all cycles, from the first one on, for an event.
    pub fn cycle_own(&self, event: usize) -> impl Iterator<Item = i64> + Clone + '_ {
        (0..self.cycles()).map(move |at| self.cycle_own.get(at, event))
    }

    /// Inclusive costs of all cycles, likewise.
    pub fn cycle_inclusive(&self, event: usize) -> impl Iterator<Item = i64> + Clone + '_ {
        (0..self.cycles()).map(move |at| self.cycle_inclusive.get(at, event))
    }

    /// Whether a call is one within a cycle, be it of one function: what it costs is then no part of its caller's inclusive cost.
    #[must_use]
    pub fn within(&self, caller: FunctionId, callee: FunctionId) -> bool {
        let group = self.group[caller.index()];
        group != ALONE && group == self.group[callee.index()]
    }

    /// For each function what its callers saw of it from outside of its group, for an event; nothing where there are none.
    #[must_use]
    pub fn seen(&self, detail: &Detail, event: usize) -> Vec<Option<i64>> {
        let mut seen = vec![None; self.rows.len()];
        for call in detail.calls.iter().filter(|call| !self.within(call.function, call.callee)) {
            // These fit, or there would be no model.
            let sum: &mut i64 = seen[call.callee.index()].get_or_insert(0);
            *sum = sum.saturating_add(detail.call_cost(call, event));
        }
        seen
    }

    /// For each function what it spent by itself and in calls out of its group, for an event.
    #[must_use]
    pub fn spent(&self, detail: &Detail, event: usize) -> Vec<i64> {
        let mut spent: Vec<i64> = self.own(event).collect();
        for call in detail.calls.iter().filter(|call| !self.within(call.function, call.callee)) {
            let sum = &mut spent[call.function.index()];
            *sum = sum.saturating_add(detail.call_cost(call, event));
        }
        spent
    }

    /// Inclusive costs: what functions spent, or if that is more, what their callers saw. Calls from outside see all of a cycle, not
    /// what one of its members does.
    fn add_inclusive(&mut self, detail: &Detail) -> Result<(), TooLarge> {
        for event in 0..self.inclusive.width {
            let mut seen: Vec<Option<i64>> = vec![None; self.rows.len()];
            for call in &detail.calls {
                if self.within(call.function, call.callee) {
                    continue;
                }
                let cost = detail.call_cost(call, event);
                self.inclusive.add(call.function.index(), event, cost)?;
                let sum = seen[call.callee.index()].get_or_insert(0);
                *sum = sum.checked_add(cost).ok_or(TooLarge)?;
            }
            for (at, seen) in seen.into_iter().enumerate() {
                if let Some(seen) = seen.filter(|_| self.cycle[at] == 0) {
                    self.inclusive.raise(at, event, seen);
                }
            }
        }
        Ok(())
    }

    /// Costs of cycles as a whole: the sum of its members, and the calls out of it, or into it if that is more.
    fn add_cycles(&mut self, detail: &Detail) -> Result<(), TooLarge> {
        let (count, width) = (self.cycles(), self.own.width);
        if count == 0 {
            return Ok(());
        }
        let (mut own, mut inclusive, mut seen) =
            (Table::new(count, width), Table::new(count, width), Table::new(count, width));
        let mut called = vec![false; count];
        let place = |function: usize| (self.cycle[function] as usize).checked_sub(1);
        for function in 0..self.cycle.len() {
            let Some(at) = place(function) else { continue };
            for event in 0..width {
                own.add(at, event, self.own.get(function, event))?;
                inclusive.add(at, event, self.own.get(function, event))?;
            }
        }
        for call in detail.calls.iter().filter(|call| !self.within(call.function, call.callee)) {
            let (from, to) = (place(call.function.index()), place(call.callee.index()));
            for event in 0..width {
                if let Some(from) = from {
                    inclusive.add(from, event, detail.call_cost(call, event))?;
                }
                if let Some(to) = to {
                    seen.add(to, event, detail.call_cost(call, event))?;
                }
            }
            to.into_iter().for_each(|to| called[to] = true);
        }
        for at in (0..count).filter(|at| called[*at]) {
            (0..width).for_each(|event| inclusive.raise(at, event, seen.get(at, event)));
        }
        (self.cycle_own, self.cycle_inclusive) = (own, inclusive);
        Ok(())
    }
}

/// Calls by caller and callee, of all positions together.
fn between(detail: &Detail) -> Vec<Between> {
    let mut calls: Vec<Between> = Vec::new();
    for own in detail.calls.chunk_by(|a, b| a.function == b.function) {
        let first = calls.len();
        calls.extend(own.iter().map(|call| Between { caller: call.function, callee: call.callee, count: call.count }));
        calls[first..].sort_by_key(|call| call.callee);
        let mut last = first;
        for at in first + 1..calls.len() {
            if calls[at].callee == calls[last].callee {
                calls[last].count = calls[last].count.saturating_add(calls[at].count);
            } else {
                last += 1;
                calls[last] = calls[at];
            }
        }
        calls.truncate(last + 1);
    }
    calls.shrink_to_fit();
    calls
}

/// The group of each function that reaches itself.
fn groups(count: usize, calls: &[Between]) -> Vec<u32> {
    let edges = calls.iter().map(|call| (call.caller.index(), call.callee.index()));
    let groups = graph::groups(count, edges);
    let mut group = vec![ALONE; count];
    for Between { caller, callee, .. } in calls {
        let number = groups[caller.index()];
        if number == groups[callee.index()] {
            // There are as many groups as functions at most.
            group[caller.index()] = number as u32;
            group[callee.index()] = number as u32;
        }
    }
    group
}

/// Numbers the groups of several functions from 1 in the order of their files and names.
fn cycles(names: &Names, group: &[u32]) -> Vec<u32> {
    let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
    group.iter().filter(|group| **group != ALONE).for_each(|group| *sizes.entry(*group).or_default() += 1);
    let mut members: Vec<FunctionId> =
        names.functions().filter(|id| sizes.get(&group[id.index()]).is_some_and(|size| *size > 1)).collect();
    members.sort_by_cached_key(|id| [names.file_name(names.get(*id).file), b":", names.function_name(*id)].concat());
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut cycle = vec![0; group.len()];
    for id in members {
        let next = numbers.len() as u32 + 1;
        cycle[id.index()] = *numbers.entry(group[id.index()]).or_insert(next);
    }
    cycle
}
