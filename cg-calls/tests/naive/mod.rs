//! The model again, slow and obvious: every event adds what was spent since the last one to every frame that is running, and
//! whatever is needed is found by walking the whole stack.

use std::collections::BTreeMap;
use std::ops::Range;

use cg_calls::{Code, Config, FunctionId, JumpKind, Profile, Request, SiteId};

use crate::common::Program;

/// Functions, own first, and level of recursion.
pub(crate) type Node = (Vec<u32>, u32);

/// Caller, site, target, callee.
pub(crate) type ArcKey = (Node, u32, u64, Node);

/// A profile as maps, in a form that both models can make.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Maps {
    pub arcs: BTreeMap<ArcKey, (u64, Vec<u64>)>,
    pub jumps: BTreeMap<(Node, u32, u64, bool), u64>,
    pub skipped: BTreeMap<(Node, u32), Vec<u64>>,
    pub counters: BTreeMap<(Node, u32), (u64, Vec<u64>)>,
    pub collected: Vec<u64>,
    /// By functions, the outermost first: calls and self costs. Of nobody: the number of no function.
    pub chains: BTreeMap<Vec<u32>, (u64, Vec<u64>)>,
}

impl Maps {
    /// The maps of a profile. Rows with the same key are an error.
    pub(crate) fn of(profile: &Profile) -> Maps {
        let node = |i: cg_calls::NodeIndex| {
            let node = &profile.nodes[i.0 as usize];
            (node.functions.iter().map(|f| f.0).collect::<Vec<_>>(), node.recursion)
        };
        let mut maps = Maps { collected: profile.collected.clone(), ..Maps::default() };
        for row in &profile.arcs {
            let key = (node(row.from), row.site.0, row.target, node(row.to));
            assert_eq!(maps.arcs.insert(key, (row.calls, row.costs.clone())), None, "one row for each arc");
        }
        for row in &profile.jumps {
            assert_eq!(row.from, row.to, "jumps that are no calls stay in their node");
            let key = (node(row.from), row.site.0, row.target, row.conditional);
            assert_eq!(maps.jumps.insert(key, row.count), None, "one row for each jump");
        }
        for row in &profile.skipped {
            let key = (node(row.node), row.site.0);
            assert_eq!(maps.skipped.insert(key, row.costs.clone()), None, "one row for each skipped site");
        }
        for row in &profile.counters {
            let mut costs = row.costs.clone();
            costs.resize(profile.collected.len(), 0);
            assert_eq!(
                maps.counters.insert((node(row.node), row.counter), (row.executions, costs)),
                None,
                "one row a counter"
            );
        }
        let mut chains: Vec<Vec<u32>> = Vec::new();
        for (n, chain) in profile.tree.chains.iter().enumerate() {
            let mut functions = chain.parent.map(|parent| chains[parent as usize].clone()).unwrap_or_default();
            functions.push(chain.function.map_or(u32::MAX, |f| f.0));
            let counts = (chain.calls, profile.tree.costs(n).to_vec());
            assert_eq!(maps.chains.insert(functions.clone(), counts), None, "one row a chain");
            chains.push(functions);
        }
        maps
    }

    /// Takes out the chains that have cost something, or have called one that has.
    fn take_chains(&mut self) -> BTreeMap<Vec<u32>, (u64, Vec<u64>)> {
        let all = std::mem::take(&mut self.chains);
        let spent = |functions: &[u32]| {
            let mut below = all.iter().filter(|(other, _)| other.starts_with(functions));
            below.any(|(_, (_, costs))| costs.iter().any(|cost| *cost != 0))
        };
        let (kept, rest) = all.clone().into_iter().partition(|(functions, _)| spent(functions));
        self.chains = rest;
        kept
    }

    /// Leaves out what has no counts.
    fn without_zeros(mut self) -> Maps {
        self.arcs.retain(|_, (calls, costs)| *calls != 0 || costs.iter().any(|c| *c != 0));
        self.skipped.retain(|_, costs| costs.iter().any(|c| *c != 0));
        self.counters.retain(|_, (n, costs)| *n != 0 || costs.iter().any(|c| *c != 0));
        self
    }
}

#[derive(Clone, Debug)]
enum Level {
    /// The bottom of a thread or handler: the function that runs without a caller, if any.
    Root {
        function: Option<u32>,
        interrupted_sp: u64,
        stack: Option<Range<u64>>,
        collecting: bool,
        since: Vec<u64>,
    },
    Frame {
        sp: u64,
        returns_to: u64,
        arc: (Node, u32, u64, Node),
        function: u32,
        cost: Vec<u64>,
        /// The function that ran then.
        top: u32,
    },
    Skipped {
        sp: u64,
        returns_to: u64,
        site: u32,
        first: bool,
    },
}

pub(crate) struct Naive {
    config: Config,
    pub program: Program,
    levels: Vec<Level>,
    last: Vec<u64>,
    maps: Maps,
    pub requests: Vec<Request>,
    carried: Option<ArcKey>,
}

impl Naive {
    pub(crate) fn new(config: Config, program: Program, now: &[u64]) -> Naive {
        let mut naive = Naive {
            program,
            levels: Vec::new(),
            last: now.to_vec(),
            maps: Maps { collected: vec![0; now.len()], ..Maps::default() },
            requests: Vec::new(),
            carried: None,
            config,
        };
        naive.bottom(0, None);
        naive
    }

    fn bottom(&mut self, interrupted_sp: u64, stack: Option<Range<u64>>) {
        let (collecting, since) = (self.config.collect_at_start, vec![0; self.last.len()]);
        self.levels.push(Level::Root { function: None, interrupted_sp, stack, collecting, since });
    }

    fn root(&mut self) -> &mut Level {
        self.levels.iter_mut().rfind(|l| matches!(l, Level::Root { .. })).expect("a root")
    }

    fn collecting(&mut self) -> bool {
        matches!(self.root(), Level::Root { collecting: true, .. })
    }

    /// The function that costs go to.
    fn running(&self) -> Option<u32> {
        let stack = self.functions();
        stack.last().copied()
    }

    /// Functions of the running state, outermost first; the same one on top of itself once, and groups too.
    fn functions(&self) -> Vec<u32> {
        let start = self.levels.iter().rposition(|l| matches!(l, Level::Root { .. })).expect("a root");
        let mut stack: Vec<u32> = Vec::new();
        let group = |f: u32| self.program.about.get(&f).map_or(0, |a| a.group);
        for level in &self.levels[start..] {
            let function = match level {
                Level::Root { function, .. } => *function,
                Level::Frame { arc, .. } => Some((arc.2 / 256) as u32),
                Level::Skipped { .. } => None,
            };
            if let Some(f) = function {
                let same = stack.last().is_some_and(|top| *top == f || group(f) != 0 && group(*top) == group(f));
                if !same {
                    stack.push(f);
                }
            }
        }
        stack
    }

    fn active(&self, f: u32) -> u32 {
        let is = |level: &&Level| match level {
            Level::Root { function, .. } => *function == Some(f),
            Level::Frame { function, .. } => *function == f,
            Level::Skipped { .. } => false,
        };
        self.levels.iter().filter(is).count() as u32
    }

    fn node(&self) -> Node {
        let mut stack = self.functions();
        stack.reverse();
        let about = self.program.about.get(&stack[0]).copied().unwrap_or(cg_calls::Function::PLAIN);
        if !self.config.contexts {
            return (vec![stack[0]], 1);
        }
        stack.truncate(usize::from(about.separate_callers) + 1);
        let level = self.active(stack[0]).clamp(1, u32::from(about.separate_recs).max(1));
        (stack, level)
    }

    /// The functions of the running state with every call apart, but for recursion that is deeper than is told apart: that goes on
    /// where the function ran before.
    fn chain(&self) -> Vec<u32> {
        let start = self.levels.iter().rposition(|l| matches!(l, Level::Root { .. })).expect("a root");
        let mut chain: Vec<u32> = Vec::new();
        for level in &self.levels[start..] {
            let function = match level {
                Level::Root { function, .. } => *function,
                Level::Frame { top, .. } => Some(*top),
                Level::Skipped { .. } => None,
            };
            let Some(f) = function else { continue };
            let about = self.program.about.get(&f).copied().unwrap_or(cg_calls::Function::PLAIN);
            if chain.iter().filter(|other| **other == f).count() < usize::from(about.separate_recs).max(1) {
                chain.push(f);
            } else {
                chain.truncate(chain.iter().rposition(|other| *other == f).expect("it is there") + 1);
            }
        }
        if chain.is_empty() { vec![u32::MAX] } else { chain }
    }

    /// Adds to the running chain, which makes those of its callers.
    fn add_chain(&mut self, calls: u64, costs: &[u64]) {
        if self.config.chains.is_none() {
            return;
        }
        let chain = self.chain();
        for n in 1..=chain.len() {
            self.maps.chains.entry(chain[..n].to_vec()).or_insert_with(|| (0, vec![0; costs.len()]));
        }
        let (n, sums) = self.maps.chains.get_mut(&chain).expect("just made");
        *n += calls;
        sums.iter_mut().zip(costs).for_each(|(to, n)| *to += n);
    }

    /// The call that everything is booked on now, if something skipped is running.
    fn skipping(&self) -> Option<u32> {
        let mut site = None;
        for level in self.levels.iter().rev() {
            match level {
                Level::Skipped { site: s, first, .. } => {
                    site = Some(*s);
                    if *first {
                        return site;
                    }
                }
                _ => return site,
            }
        }
        site
    }

    /// Books what was spent since the last event.
    fn spend(&mut self, now: &[u64]) {
        let spent: Vec<u64> = now.iter().zip(&self.last).map(|(a, b)| a - b).collect();
        self.last = now.to_vec();
        if !self.collecting() {
            return;
        }
        let add = |to: &mut Vec<u64>| to.iter_mut().zip(&spent).for_each(|(to, n)| *to += n);
        add(&mut self.maps.collected);
        self.add_chain(0, &spent);
        if let Some(site) = self.skipping() {
            let zero = vec![0; spent.len()];
            let node = self.node();
            add(self.maps.skipped.entry((node, site)).or_insert(zero));
        }
        for level in self.levels.iter_mut().rev() {
            match level {
                Level::Frame { cost, .. } => add(cost),
                Level::Skipped { .. } => {}
                Level::Root { since, .. } => {
                    add(since);
                    break;
                }
            }
        }
    }

    fn add_arc(&mut self, arc: &ArcKey, calls: u64, costs: &[u64]) {
        let entry = self.maps.arcs.entry(arc.clone()).or_insert_with(|| (0, vec![0; costs.len()]));
        entry.0 += calls;
        entry.1.iter_mut().zip(costs).for_each(|(to, n)| *to += n);
    }

    fn begin_root(&mut self, addr: u64) {
        let f = self.program.place(addr).function.0;
        if let Level::Root { function, .. } = self.root() {
            *function = Some(f);
        }
    }

    fn ensure(&mut self, site: SiteId) {
        if matches!(self.root(), Level::Root { function: None, .. }) {
            self.begin_root(self.program.addr(site));
        }
    }

    pub(crate) fn begin(&mut self, addr: u64) {
        if matches!(self.root(), Level::Root { function: None, .. }) {
            self.begin_root(addr);
        }
    }

    pub(crate) fn end(&mut self, now: &[u64]) {
        self.spend(now);
        while self.levels.len() > 1 {
            self.leave_or_pop();
        }
        if let Level::Root { function, since, .. } = self.root() {
            *function = None;
            since.fill(0);
        }
    }

    fn leave_or_pop(&mut self) {
        if matches!(self.levels.last(), Some(Level::Root { .. })) {
            self.levels.pop();
        } else {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let level = self.levels.pop().expect("a level");
        if let Level::Frame { arc, function, cost, .. } = level {
            self.add_arc(&arc, 0, &cost);
            if function != u32::MAX && self.active(function) == 0 {
                let about = self.program.function(FunctionId(function));
                if about.dump_after {
                    self.requests.push(Request::DumpAfter(FunctionId(function)));
                }
                if about.toggle_collect {
                    self.toggle_collect();
                }
            }
        }
    }

    pub(crate) fn toggle_collect(&mut self) {
        if let Level::Root { collecting, .. } = self.root() {
            *collecting = !*collecting;
        }
    }

    /// Switches collection on or off at `now`.
    pub(crate) fn switch_collect(&mut self, now: &[u64]) {
        self.spend(now);
        self.toggle_collect();
    }

    fn top_frame(&self) -> Option<(u64, u64)> {
        match self.levels.last()? {
            Level::Frame { sp, returns_to, .. } | Level::Skipped { sp, returns_to, .. } => Some((*sp, *returns_to)),
            Level::Root { .. } => None,
        }
    }

    fn unwind(&mut self, sp: u64) -> usize {
        let mut popped = 0;
        loop {
            if self.top_frame().is_some_and(|(top, _)| top < sp) {
                self.pop();
                popped += 1;
            } else if self.left_handler(sp) {
                while !matches!(self.levels.pop(), Some(Level::Root { .. })) {}
                popped += 1;
            } else {
                return popped;
            }
        }
    }

    /// Pops the frames of an abandoned handler and says whether it is abandoned.
    fn left_handler(&mut self, new_sp: u64) -> bool {
        let handlers = self.levels.iter().filter(|l| matches!(l, Level::Root { .. })).count() - 1;
        let gone = handlers > 0
            && match self.root() {
                Level::Root { stack: Some(stack), .. } => !(stack.start..=stack.end).contains(&new_sp),
                Level::Root { interrupted_sp, .. } => new_sp >= *interrupted_sp,
                _ => false,
            };
        if gone {
            while self.top_frame().is_some() {
                self.pop();
            }
        }
        gone
    }

    pub(crate) fn call(&mut self, site: SiteId, target: u64, sp: u64, now: &[u64]) {
        self.spend(now);
        self.ensure(site);
        self.unwind(sp);
        let returns_to = self.program.addr(site) + 5;
        self.push(site, target, sp, returns_to);
    }

    fn push(&mut self, site: SiteId, target: u64, sp: u64, returns_to: u64) {
        let site = self.skipping().unwrap_or(site.0);
        let callee = self.program.place(target).function;
        let about = self.program.function(callee);
        if about.skip {
            let first = !matches!(self.levels.last(), Some(Level::Skipped { .. }));
            self.levels.push(Level::Skipped { sp, returns_to, site, first });
            return;
        }
        let from = self.node();
        let running = self.running();
        let cost = vec![0; self.last.len()];
        let arc = (from, site, target, (vec![], 0));
        let top = callee.0;
        self.levels.push(Level::Frame { sp, returns_to, arc, function: callee.0, cost: cost.clone(), top });
        // Which function's activity it counts depends on groups, and that on the frame being there.
        let top = self.running().expect("just pushed");
        let deepens = !(self.config.skip_direct_recursion && running == Some(top));
        if let Some(Level::Frame { function, top: own, .. }) = self.levels.last_mut() {
            *function = if deepens { top } else { u32::MAX };
            *own = top;
        }
        let to = self.node();
        let mut known = None;
        if let Some(Level::Frame { arc, .. }) = self.levels.last_mut() {
            arc.3 = to;
            known = Some(arc.clone());
        }
        let known = known.expect("just pushed");
        self.add_arc(&known, 1, &cost);
        if deepens && self.active(top) == 1 {
            let about = self.program.function(FunctionId(top));
            if about.dump_before {
                self.requests.push(Request::DumpBefore(FunctionId(top)));
                self.carried = Some(known);
            } else if about.zero_before {
                self.requests.push(Request::Zero(FunctionId(top)));
            }
            if about.toggle_collect {
                self.toggle_collect();
            }
        }
        if self.collecting() {
            self.add_chain(1, &cost);
        }
    }

    pub(crate) fn ret(&mut self, site: SiteId, target: u64, sp: u64, now: &[u64]) {
        self.spend(now);
        self.ensure(site);
        if self.top_frame().is_none_or(|(top, _)| top >= sp) {
            while self.left_handler(sp) {
                while !matches!(self.levels.pop(), Some(Level::Root { .. })) {}
            }
        }
        let Some((top, _)) = self.top_frame() else {
            return self.return_from_root(site, target);
        };
        let mut fits = top < sp;
        let mut pops = 0;
        if top == sp {
            for level in self.levels.iter().rev() {
                pops += 1;
                match level {
                    Level::Frame { sp: s, returns_to, .. } | Level::Skipped { sp: s, returns_to, .. } if *s == sp => {
                        if *returns_to == target {
                            fits = true;
                            break;
                        }
                    }
                    _ => break,
                }
            }
        }
        if fits {
            for _ in 0..pops {
                self.pop();
            }
            self.unwind(sp);
        } else {
            self.transfer(site, target, sp, true, None);
        }
    }

    fn return_from_root(&mut self, site: SiteId, target: u64) {
        let roots = self.levels.iter().filter(|l| matches!(l, Level::Root { .. })).count();
        if roots > 1 {
            return self.begin_root(target);
        }
        let callee = self.running().expect("a root");
        let to = self.node();
        let Level::Root { since, .. } = self.root() else { unreachable!("a root") };
        let since = since.clone();
        self.begin_root(target);
        let from = self.node();
        let call = self.program.site_before(target);
        let block = self.program.addr(site) & !15;
        self.add_arc(&(from, call.0, block, to), 1, &since);
        if self.active(callee) == 0 && self.program.function(FunctionId(callee)).dump_after {
            self.requests.push(Request::DumpAfter(FunctionId(callee)));
        }
    }

    pub(crate) fn jump(&mut self, site: SiteId, target: u64, sp: u64, kind: JumpKind, now: &[u64]) {
        self.spend(now);
        self.ensure(site);
        let from = self.program.place(self.program.addr(site));
        let to = self.program.place(target);
        let call = to.is_entry || (from.section, from.object) != (to.section, to.object);
        self.transfer(site, target, sp, call, Some(kind));
    }

    fn transfer(&mut self, site: SiteId, target: u64, sp: u64, call: bool, kind: Option<JumpKind>) {
        if !call {
            let conditional = kind == Some(JumpKind::Conditional);
            let counts = self.config.collect_jumps && kind != Some(JumpKind::FallThrough);
            if self.unwind(sp) == 0 && counts {
                let node = self.node();
                *self.maps.jumps.entry((node, site.0, target, conditional)).or_insert(0) += 1;
            }
            return;
        }
        let source = self.program.place(self.program.addr(site)).function;
        if self.program.function(source).pop_on_jump
            && let Some(Level::Frame { sp: frame_sp, returns_to, arc, .. }) = self.levels.last().cloned()
        {
            self.pop();
            if self.unwind(sp) == 0 {
                self.push(SiteId(arc.1), target, frame_sp, returns_to);
            }
        } else if self.unwind(sp) == 0 {
            let sp = self.top_frame().map_or(sp, |(top, _)| top);
            self.push(site, target, sp, 0);
        }
    }

    pub(crate) fn signal_enter(&mut self, handler: u64, sp: u64, stack: Option<Range<u64>>, now: &[u64]) {
        self.spend(now);
        self.bottom(sp, stack);
        self.begin_root(handler);
    }

    pub(crate) fn signal_leave(&mut self, now: &[u64]) {
        self.spend(now);
        while self.top_frame().is_some() {
            self.pop();
        }
        if self.levels.len() > 1 {
            self.levels.pop();
        }
    }

    pub(crate) fn block(&mut self, counter: u32) {
        self.counter(counter, |n, _| *n += 1);
    }

    pub(crate) fn cost(&mut self, counter: u32, event: usize, n: u64) {
        self.counter(counter, |_, costs| costs[event] += n);
    }

    fn counter(&mut self, counter: u32, add: impl FnOnce(&mut u64, &mut Vec<u64>)) {
        if self.collecting() && self.skipping().is_none() && self.running().is_some() {
            let zero = (0, vec![0; self.last.len()]);
            let (n, costs) = self.maps.counters.entry((self.node(), counter)).or_insert(zero);
            add(n, costs);
        }
    }

    pub(crate) fn take(&mut self, now: &[u64]) -> Maps {
        self.spend(now);
        let carried = self.carried.take();
        if let Some(arc) = &carried {
            self.maps.arcs.get_mut(arc).expect("its arc").0 -= 1;
        }
        for i in 0..self.levels.len() {
            if let Level::Frame { arc, cost, .. } = &self.levels[i] {
                let (arc, cost) = (arc.clone(), cost.clone());
                self.add_arc(&arc, 0, &cost);
            }
        }
        // Calls that are going on and have cost nothing.
        let mut begun = Vec::new();
        let collecting = self.collecting();
        for level in self.levels.iter().filter(|_| collecting) {
            if let Level::Frame { arc, .. } = level
                && let Some((calls, costs)) = self.maps.arcs.get_mut(arc)
                && costs.iter().all(|cost| *cost == 0)
            {
                begun.push((arc.clone(), std::mem::take(calls)));
            }
        }
        self.zero(now);
        let chains = self.maps.take_chains();
        let rest = std::mem::take(&mut self.maps.chains);
        let fresh = Maps { collected: vec![0; now.len()], chains: rest, ..Maps::default() };
        let maps = Maps { chains, ..std::mem::replace(&mut self.maps, fresh) };
        for (arc, calls) in begun {
            self.add_arc(&arc, calls, &vec![0; now.len()]);
        }
        if let Some(arc) = &carried {
            self.add_arc(arc, 1, &vec![0; now.len()]);
        }
        maps.without_zeros()
    }

    fn zero(&mut self, now: &[u64]) {
        self.spend(now);
        for level in &mut self.levels {
            match level {
                Level::Frame { cost: sums, .. } | Level::Root { since: sums, .. } => sums.fill(0),
                Level::Skipped { .. } => {}
            }
        }
        self.carried = None;
    }

    /// Forgets everything that was collected.
    pub(crate) fn forget(&mut self, now: &[u64]) {
        self.zero(now);
        self.maps = Maps { collected: vec![0; now.len()], ..Maps::default() };
    }
}
