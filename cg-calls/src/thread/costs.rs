//! What a thread's calls cost: functions entered and left with the hooks that hang on that, collection switched on and off,
//! and what is in the book when a part is taken. It must never look at the stack pointer. Invariant: what was collected since
//! the last part is what the totals grew by while collecting.

use super::*;
use crate::table::executions;

/// Begins a new part at `reading`. If a system call is made once more that is in a part already, the reading is what it was
/// before the call until it has been counted again: the parts begin behind it.
fn advance(begin: &mut [u64], reading: &[u64]) {
    begin.iter_mut().zip(reading).for_each(|(begin, reading)| *begin = (*begin).max(*reading));
}

/// How many levels of recursion of a function are told apart, if contexts are.
pub(super) fn levels(about: &Function) -> u32 {
    u32::from(about.separate_recs).max(1)
}

impl Calls {
    /// What is known of a function; it is asked for once.
    pub(super) fn function(&mut self, code: &mut impl Code, id: FunctionId) -> Function {
        let index = id.0 as usize;
        if index >= self.functions.len() {
            self.functions.resize(index + 1, Known { active: 0, about: None });
        }
        *self.functions[index].about.get_or_insert_with(|| code.function(id))
    }

    pub(super) fn push_path(&mut self, path: PathId, function: FunctionId, about: &Function) -> PathId {
        let mut wish = Wish { callers: 0, recursions: 1, group: about.group, owns: about.owns };
        if self.config.contexts {
            wish.callers = about.separate_callers.min(self.config.most_callers);
            wish.recursions = levels(about);
        }
        self.contexts.push(path, function, wish)
    }

    pub(super) fn switch_collection(&mut self, now: &[u64]) {
        self.meter.toggle(now);
        self.update_counting();
    }

    #[cold]
    pub(super) fn entered(&mut self, function: FunctionId, arc: u32, now: &[u64]) {
        if self.interposing {
            return;
        }
        let about = self.functions[function.0 as usize].about.unwrap_or(Function::PLAIN);
        if about.dump_before {
            self.requests.push_back(Request::DumpBefore(function));
            self.carried = arc;
        } else if about.zero_before {
            self.requests.push_back(Request::Zero(function));
        }
        if about.toggle_collect {
            self.switch_collection(now);
        }
    }

    #[cold]
    pub(super) fn left(&mut self, function: FunctionId, found: bool, now: &[u64]) {
        if self.interposing {
            return;
        }
        let about = self.functions[function.0 as usize].about.unwrap_or(Function::PLAIN);
        if about.dump_after {
            self.requests.push_back(Request::DumpAfter(function));
        }
        // What has not been switched on need not be switched off.
        if about.toggle_collect && !found {
            self.switch_collection(now);
        }
    }

    /// From here on costs go to another skipped call, or to the running node.
    pub(super) fn set_skip(&mut self, skip: u32, now: &[u64]) {
        for (i, since) in self.skip_since.iter_mut().enumerate() {
            let reading = self.meter.read(now, i);
            if self.skip != NONE {
                self.book.skips.counts(self.skip)[i] += reading - *since;
            }
            *since = reading;
        }
        self.skip = skip;
        self.update_counting();
    }

    pub(super) fn update_counting(&mut self) {
        self.counting = self.config.contexts && self.skip == NONE && self.meter.collecting();
    }

    /// Closes the accounts of everything that is going on at `now`, and books it if asked to.
    pub(super) fn settle(&mut self, now: &[u64], book: bool) {
        self.followed.stale = true;
        self.chain_booked(now);
        let n = self.config.costs;
        self.book.settle_site_counters(&mut self.site_counters);
        self.book.settle_counters();
        let reading = self.meter.read_all(now);
        let skip = self.skip;
        self.set_skip(skip, now);
        // From the innermost state outwards: those that are interrupted stand still.
        let mut above = self.stack.len();
        let states = std::iter::once((self.bottom, &reading, &mut self.base));
        let outer = self.outer.iter_mut().rev().map(|o| (o.bottom, &o.reading, &mut o.base));
        for (bottom, reading, base) in states.chain(outer) {
            for i in bottom..above {
                let arc = self.stack.frame(i).arc;
                let entered = self.stack.readings(i);
                if book && arc != NONE {
                    let counts = self.book.arcs.counts(arc);
                    for cost in 0..n {
                        counts[1 + cost] += reading[cost].saturating_sub(entered[cost]);
                    }
                }
                advance(entered, reading);
            }
            above = bottom;
            for i in 0..n {
                self.done[i] += reading[i].saturating_sub(base[i]);
            }
            advance(base, reading);
        }
    }

    /// Takes out calls that are going on and have cost nothing, though costs are collected: they are the next part's, since they would be
    /// left out of this one.
    pub(super) fn just_begun(&mut self) -> Vec<(u32, u64)> {
        let mut begun = Vec::new();
        let collecting = self.meter.collecting();
        for i in (0..self.stack.len()).filter(|_| collecting) {
            let arc = self.stack.frame(i).arc;
            if arc != NONE
                && let [calls, costs @ ..] = self.book.arcs.counts(arc)
                && *calls > 0
                && costs.iter().all(|cost| *cost == 0)
            {
                begun.push((arc, std::mem::take(calls)));
            }
        }
        begun
    }

    pub(super) fn reset(&mut self) {
        self.book.clear();
        self.done.fill(0);
        self.carried = NONE;
    }

    /// What is in the book.
    pub(super) fn rows(&self) -> Profile {
        let mut numbers = vec![NONE; self.contexts.node_count()];
        let mut nodes: Vec<Node> = Vec::new();
        let contexts = &self.contexts;
        let mut number = |node: u32| {
            let known = &mut numbers[node as usize];
            if *known == NONE {
                *known = nodes.len() as u32;
                let (functions, recursion) = contexts.node(node);
                nodes.push(Node { functions: functions.to_vec(), recursion });
            }
            NodeIndex(*known)
        };
        let counted = |counts: &[u64]| counts.iter().any(|n| *n != 0);
        let mut profile = Profile { collected: self.done.clone(), ..Profile::default() };
        for (key, counts) in self.book.arcs.rows().filter(|(_, c)| counted(c)) {
            let (from, to) = (number(key.from), number(key.to));
            let arc =
                Arc { from, site: key.site, target: key.target, to, calls: counts[0], costs: counts[1..].to_vec() };
            profile.arcs.push(arc);
        }
        for (key, counts) in self.book.jumps.rows().filter(|(_, c)| counted(c)) {
            let (from, to) = (number(key.arc.from), number(key.arc.to));
            let (site, target) = (key.arc.site, key.arc.target);
            profile.jumps.push(Jump { from, site, target, to, conditional: key.conditional, count: counts[0] });
        }
        for ((site, node), counts) in self.book.skips.rows().filter(|(_, c)| counted(c)) {
            profile.skipped.push(Skipped { node: number(node), site, costs: counts.to_vec() });
        }
        let extra = &self.book.extra;
        for (row, ((node, counter), counts)) in (0..).zip(self.book.counters.rows()) {
            let costs = extra.find(row).filter(|c| counted(c)).map(<[_]>::to_vec).unwrap_or_default();
            let executions = executions(counts[0]);
            if executions != 0 || !costs.is_empty() {
                profile.counters.push(Counter { node: number(node), counter, executions, costs });
            }
        }
        profile.nodes = nodes;
        profile
    }
}
