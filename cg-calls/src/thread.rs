//! One thread's calls: decides what is a call and what a return, keeps the shadow stack, and books costs.
//!
//! The rules, in the order in which an event meets them:
//! 1. A return is one if the stack pointer left the top frame, or stands at it and the address fits. Any other is a jump.
//! 2. A jump to the start of a function, to another kind of section or another object is a call that pushes nothing.
//! 3. Whatever the event, frames that the stack pointer has left are popped. A jump that pops frames (longjmp, an exception)
//!    is a return; a real call stays a call.
//! 4. A call of a skipped function pushes a frame without an arc; until it is gone, costs belong to the site that called, and
//!    so do calls of functions that are not skipped.
//! 5. Calls that began before anybody watched are found on the native stack, if the driver can tell. A return without any frame
//!    left means that it could not: the caller is made up.
//!
//! Invariants: the frames of an interrupted state lie below `bottom` and are not touched by a handler; a function's
//! `active` is the number of its frames (and roots); what hooks ask for is asked for after the event, when no cost has
//! been added since.

mod chains;
mod costs;
mod deferred_costs;
mod fast_path;
mod followed;
mod found;
mod frames;
mod interposed;
mod packed_costs;
mod row_costs;

pub use deferred_costs::{ArcId, CallContext, Changes, RootChange, Spot};
pub use followed::{Again, Here, Made, Settled, Shown, View};
pub use found::Native;
pub use interposed::Interposed;
pub use packed_costs::{Packed, Places as PackedPlaces};

use std::collections::VecDeque;
use std::ops::Range;

use crate::arcs::{ArcKey, Book, JumpKey};
use crate::code::{CallersId, Code, Function, FunctionId, SiteId};
use crate::contexts::{Contexts, PathId, Wish};
use crate::meter::Meter;
use crate::profile::{Arc, Counter, Jump, Node, NodeIndex, Profile, Skipped};
use crate::site_counters::{CallEdge, CallEdgeKey, CallEdges, CallKind, LEVELS, SiteCounters};
use crate::stack::{Frame, Leave, Stack};
use crate::step::{Step, StepKind};
use crate::table::NONE;
use crate::tree::Walk;
use crate::ways::{Places, Quiet, Sites, Way, Ways};

/// What to collect.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many running totals there are.
    pub costs: usize,
    /// Whether functions are told apart by recursion and callers. If not, [`Function::separate_callers`] and
    /// [`Function::separate_recs`] are as good as 0, and [`Calls::block`] and [`Calls::cost`] must not be called.
    pub contexts: bool,
    /// The most callers that any function asks for.
    pub most_callers: u16,
    /// A function that calls itself does not reach another level of recursion by that.
    pub skip_direct_recursion: bool,
    /// Jumps are counted too.
    pub collect_jumps: bool,
    /// Threads and signal handlers begin with collection switched on.
    pub collect_at_start: bool,
    /// Totals stand still while collection is off: whoever counts sees to that (see [`Here::collecting`]). Calls can only be
    /// followed elsewhere if they do.
    pub gated: bool,
    /// Where calls are followed elsewhere: the totals that are kept there, in the order in which they are told.
    pub kept: [Option<usize>; Shown::TOTALS],
    /// Whole chains of calls are told apart, at most so many, beside the contexts of functions.
    pub chains: Option<usize>,
}

impl Config {
    /// Call arcs alone, without contexts.
    pub const fn arcs_only(costs: usize) -> Config {
        Config {
            costs,
            contexts: false,
            most_callers: 0,
            skip_direct_recursion: false,
            collect_jumps: false,
            collect_at_start: true,
            gated: false,
            kept: [Some(0), None, None, None, None],
            chains: None,
        }
    }
}

/// What a transfer of control that is neither a call nor a return is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpKind {
    /// An unconditional jump, direct or not.
    Always,
    /// A conditional jump that was taken.
    Conditional,
    /// No jump: execution went on at the next instruction, where another function or object begins (or after a system call).
    FallThrough,
}

/// What the driver must do before the next event, for all threads if they share a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Take a dump: this function is about to run.
    DumpBefore(FunctionId),
    /// Take a dump: this function has run.
    DumpAfter(FunctionId),
    /// Set all costs to zero: this function is about to run.
    Zero(FunctionId),
}

#[derive(Clone, Copy, Debug)]
struct Known {
    active: u32,
    about: Option<Function>,
}

/// A state that a signal handler interrupted.
#[derive(Clone, Debug)]
struct Outer {
    bottom: usize,
    path: PathId,
    node: u32,
    skip: u32,
    begun: bool,
    reading: Vec<u64>,
    collecting: bool,
    base: Vec<u64>,
    sp: u64,
    stack: Option<Range<u64>>,
}

/// A call that is going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    /// The function that was called.
    pub function: FunctionId,
    /// How often it was called from there since the last dump.
    pub calls: u64,
    /// What this call has cost since then, with all that it called.
    pub costs: Vec<u64>,
}

/// One thread's calls. See the crate's description for the order of events.
///
/// Events answer whether there is a [request](Calls::take_request), which must be dealt with before the next event.
#[derive(Clone, Debug)]
pub struct Calls {
    config: Config,
    contexts: Contexts,
    functions: Vec<Known>,
    ways: Ways,
    places: Places,
    quiet: Quiet,
    sites: Sites,
    site_counters: SiteCounters,
    call_edges: CallEdges,
    book: Book,
    stack: Stack,
    bottom: usize,
    meter: Meter,
    /// Nothing is recorded: totals mean nothing, and may be less than they were.
    idle: bool,
    /// The meter's readings at the last dump, or when the state began.
    base: Vec<u64>,
    /// What states that have ended collected since the last dump.
    done: Vec<u64>,
    /// The meter's readings when costs began to go to a skipped call.
    skip_since: Vec<u64>,
    begun: bool,
    path: PathId,
    node: u32,
    skip: u32,
    /// Whether counters are booked: contexts are wanted, collection is on, nothing is skipped.
    counting: bool,
    outer: Vec<Outer>,
    requests: VecDeque<Request>,
    followed: followed::Followed,
    /// The arc of the call that the last dump request belongs to: it counts in the part after the dump.
    carried: u32,
    /// Frames that are pushed are found, not made: nothing hangs on that.
    finding: bool,
    /// What is pushed and popped is there already, as far as hooks are concerned.
    interposing: bool,
    /// What has happened to the root since the driver asked last; nothing until it asks for the first time.
    roots: Option<Vec<RootChange>>,
    /// If whole chains of calls are told apart.
    walk: Option<Box<Walk>>,
}

impl Calls {
    /// A thread whose totals are `now`. It runs nowhere until [`begin`](Calls::begin).
    ///
    /// # Panics
    /// If the number of totals is not that of the configuration, here and in all events.
    pub fn new(config: Config, now: &[u64]) -> Calls {
        let n = config.costs;
        assert_eq!(n, now.len(), "number of totals");
        let meter = Meter::new(now, config.collect_at_start, config.gated);
        let most_callers = if config.contexts { config.most_callers } else { 0 };
        let mut calls = Calls {
            contexts: Contexts::new(most_callers),
            functions: Vec::new(),
            ways: Ways::default(),
            places: Places::new(),
            quiet: Quiet::new(),
            sites: Sites::default(),
            site_counters: SiteCounters::default(),
            idle: false,
            call_edges: CallEdges::default(),
            book: Book::new(n),
            stack: Stack::new(n),
            bottom: 0,
            meter,
            base: vec![0; n],
            done: vec![0; n],
            skip_since: vec![0; n],
            begun: false,
            path: PathId::EMPTY,
            node: NONE,
            skip: NONE,
            counting: false,
            outer: Vec::new(),
            requests: VecDeque::new(),
            followed: followed::Followed::new(&config),
            carried: NONE,
            finding: false,
            interposing: false,
            roots: None,
            walk: config.chains.map(|limit| Box::new(Walk::new(n, limit))),
            config,
        };
        calls.update_counting();
        calls
    }

    /// Other code has come to lie at addresses where there was some before. Sites are as they were, since they have numbers.
    pub fn code_replaced(&mut self) {
        self.ways = Ways::default();
        self.places = Places::new();
        self.quiet = Quiet::new();
        self.call_edges = CallEdges::default();
    }

    /// Functions are to be treated otherwise from now on. (Calls that are going on stay what they are.)
    pub fn rules_changed(&mut self) {
        self.code_replaced();
        self.functions.iter_mut().for_each(|function| function.about = None);
    }

    // ---- Events ----------------------------------------------------------------------------------------------------

    /// The thread begins to run at `addr`, or instrumentation is switched on there.
    pub fn begin(&mut self, code: &mut impl Code, addr: u64) -> bool {
        if !self.begun {
            self.begun = true;
            self.begin_root(code, addr);
        }
        self.wanted()
    }

    /// What runs now, and all that called it, begin when the first total has grown by `n`: that has been counted before. Nothing
    /// may have been executed since the thread began, nor may it be left before then (but to take `n` back).
    pub fn begin_ahead(&mut self, n: i64) {
        if !self.meter.collecting() {
            return;
        }
        self.followed.stale = true;
        for frame in self.bottom..self.stack.len() {
            let entered = &mut self.stack.readings(frame)[0];
            *entered = entered.wrapping_add_signed(n);
        }
        self.base[0] = self.base[0].wrapping_add_signed(n);
        self.walk.iter_mut().for_each(|walk| walk.begin_ahead(n));
    }

    /// The thread ends, or instrumentation is switched off: everything returns.
    pub fn end(&mut self, now: &[u64]) -> bool {
        while !self.outer.is_empty() {
            self.signal_leave(now);
        }
        while self.stack.len() > 0 {
            self.pop(now);
        }
        self.end_root();
        self.walk.iter_mut().for_each(|walk| walk.end(&self.meter, now));
        self.root_changed(RootChange::Ended);
        self.begun = false;
        for i in 0..self.config.costs {
            let reading = self.meter.read(now, i);
            self.done[i] += reading.saturating_sub(self.base[i]);
            self.base[i] = reading;
        }
        self.wanted()
    }

    /// A call at `site` to `target`; `sp` points at the return address.
    #[inline]
    pub fn call(&mut self, code: &mut impl Code, site: SiteId, target: u64, sp: u64, now: &[u64]) -> bool {
        self.check(code, site);
        self.unwind(sp, now);
        let returns_to = self.sites.get(code, site).next;
        self.push(code, site, target, sp, returns_to, Some(CallKind::Call), now);
        self.wanted()
    }

    /// A return at `site` to `target`; `sp` is above the return address.
    #[inline]
    pub fn ret(&mut self, code: &mut impl Code, site: SiteId, target: u64, sp: u64, now: &[u64]) -> bool {
        match self.stack.top() {
            Some(top) if self.stack.len() > self.bottom && top.sp < sp => {
                self.pop(now);
                self.unwind(sp, now);
            }
            _ => self.unmatched_return(code, site, target, sp, now),
        }
        self.wanted()
    }

    /// Another transfer of control at `site` to `target`. It need be told only if it may matter: if it leaves its function,
    /// reaches the start of a function, another section or object, if it is indirect, or if jumps are collected. (It may be
    /// told whenever the stack pointer may have left frames.)
    ///
    /// Going on into the first instruction of another function is a call. (Valgrind sees it only where one of its blocks
    /// ends, such as behind a conditional branch; otherwise it books what follows on the function before.)
    pub fn jump(
        &mut self,
        code: &mut impl Code,
        site: SiteId,
        target: u64,
        sp: u64,
        kind: JumpKind,
        now: &[u64],
    ) -> bool {
        self.check(code, site);
        if self.quiet.knows(site, target) && !self.config.collect_jumps {
            if self.unwind(sp, now) == 0 {
                self.followed.settled = Some(Settled::Nothing);
            }
            return self.wanted();
        }
        let from = self.sites.get(code, site).place;
        let to = self.places.get(code, target);
        let is_call = to.is_entry || from.section != to.section || from.object != to.object;
        if !is_call {
            self.quiet.remember(site, target);
        }
        self.transfer(code, site, target, sp, Some(kind), is_call, now);
        self.wanted()
    }

    /// A jump at `site` to `target` that matters only if jumps are collected: within its function, by a target that no function
    /// begins at. No frame is left by it, whatever the stack pointer is.
    pub fn jump_within(&mut self, code: &mut impl Code, site: SiteId, target: u64, kind: JumpKind) {
        self.check(code, site);
        self.count_jumps(self.node, site, target, kind, 1);
    }

    /// A signal handler begins at `handler`, which runs on `stack` if that is not the interrupted code's own; `sp` is the
    /// interrupted code's.
    pub fn signal_enter(
        &mut self,
        code: &mut impl Code,
        handler: u64,
        sp: u64,
        stack: Option<Range<u64>>,
        now: &[u64],
    ) -> bool {
        let skip = self.skip;
        self.followed.stale = true;
        self.set_skip(NONE, now);
        let reading = self.meter.read_all(now);
        let collecting = self.meter.collecting();
        let base = std::mem::replace(&mut self.base, vec![0; self.config.costs]);
        self.chain_enter(NONE, now);
        let outer = Outer {
            bottom: self.bottom,
            path: self.path,
            node: self.node,
            skip,
            begun: self.begun,
            reading,
            collecting,
            base,
            sp,
            stack,
        };
        self.outer.push(outer);
        self.bottom = self.stack.len();
        self.meter = Meter::new(now, self.config.collect_at_start, self.config.gated);
        self.chain_resumed(now);
        self.update_counting();
        self.begun = true;
        self.begin_root(code, handler);
        self.wanted()
    }

    /// A signal handler ends, and the interrupted code goes on (or the kernel was told to). Without a handler it does nothing.
    pub fn signal_leave(&mut self, now: &[u64]) -> bool {
        while self.stack.len() > self.bottom {
            self.pop(now);
        }
        if self.outer.is_empty() {
            return self.wanted();
        }
        self.set_skip(NONE, now);
        self.chain_leave(now);
        self.end_root();
        let Some(outer) = self.outer.pop() else { return self.wanted() };
        self.followed.stale = true;
        for i in (0..self.config.costs).filter(|_| !self.idle) {
            self.done[i] += self.meter.read(now, i) - self.base[i];
        }
        self.bottom = outer.bottom;
        self.path = outer.path;
        self.node = outer.node;
        self.begun = outer.begun;
        self.base = outer.base;
        self.meter = Meter::new(now, outer.collecting, self.config.gated);
        self.meter.resume(now, outer.reading);
        self.chain_resumed(now);
        self.set_skip(outer.skip, now);
        self.update_counting();
        self.wanted()
    }

    /// The counter (a block, say) was executed by the node that is running. Only with contexts.
    #[inline]
    pub fn block(&mut self, counter: u32) {
        if self.counting {
            self.book.execute(self.node, counter);
        }
    }

    /// The counter (an instruction, say) cost `n` of the cost `event`, which is an index into the totals. Only with contexts.
    ///
    /// # Panics
    /// If there is no such cost.
    #[inline]
    pub fn cost(&mut self, counter: u32, event: usize, n: u64) {
        if self.counting {
            self.book.spend(self.node, counter, event, n);
        }
    }

    /// The counter was executed `n` times more than [`block`](Calls::block) and [`executed`](Calls::executed) said, or will say (or
    /// fewer, if `n` is negative, down to none).
    pub fn correct(&mut self, counter: u32, n: i64) {
        if self.counting {
            self.book.settle_site_counters_of(&mut self.site_counters, counter);
            self.book.correct(self.node, counter, n);
        }
    }

    // ---- Control ---------------------------------------------------------------------------------------------------

    /// Switches collection on or off, in this state. What returns to code from before does not switch it back.
    pub fn toggle_collect(&mut self, now: &[u64]) {
        self.followed.stale = true;
        self.followed.unsettled = true;
        self.switch_collection(now);
    }

    /// Switches collection on or off, in this state, in those that it has interrupted, and in those that begin.
    pub fn collect(&mut self, on: bool, now: &[u64]) {
        self.config.collect_at_start = on;
        self.outer.iter_mut().for_each(|outer| outer.collecting = on);
        if self.meter.collecting() != on {
            self.toggle_collect(now);
        }
    }

    /// From `now` on totals stand still while collection is off, or do not: see [`Config::gated`].
    #[inline]
    pub fn gate(&mut self, gated: bool, now: &[u64]) {
        if self.config.gated != gated {
            // What is executed while something is skipped is booked by readings here, and counted there.
            match gated {
                true => self.set_skip(self.skip, now),
                false => self.meter.read_into(now, &mut self.skip_since),
            }
            self.config.gated = gated;
            self.meter.gate(gated, now);
        }
    }

    /// Whether costs are being collected.
    pub fn collecting(&self) -> bool {
        self.meter.collecting()
    }

    /// Whether counters are being booked: [`block`](Calls::block) and [`cost`](Calls::cost) have an effect.
    pub fn counting(&self) -> bool {
        self.counting
    }

    /// Tells how often each counter was executed since the last dump, by whoever ran: in pieces, which are to be added up. Counters of
    /// blocks whose executions are told late ([`block`](Calls::block) by a site) may have more.
    pub fn executions(&self, tell: &mut impl FnMut(u32, u64)) {
        self.book.executions(tell);
    }

    /// Whether there is something for [`Self::take_request`].
    #[must_use]
    pub fn has_request(&self) -> bool {
        !self.requests.is_empty()
    }

    /// What the last event asks for, in order.
    pub fn take_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Everything that was collected since the last dump; from here on everything is zero. Calls that are going on have their
    /// cost so far in it, and the rest in the next one.
    pub fn take(&mut self, now: &[u64]) -> Profile {
        let carried = self.carried;
        if carried != NONE {
            let calls = &mut self.book.arcs.counts(carried)[0];
            *calls = calls.saturating_sub(1);
        }
        self.settle(now, true);
        let next = self.just_begun();
        let mut profile = self.rows();
        if let Some(walk) = &mut self.walk {
            profile.tree = walk.take();
        }
        self.reset();
        for (arc, calls) in next {
            self.book.arcs.counts(arc)[0] += calls;
        }
        if carried != NONE {
            self.book.arcs.counts(carried)[0] += 1;
        }
        profile
    }

    /// Sets all costs to zero: what was collected since the last dump is lost, calls that are going on begin now.
    pub fn zero(&mut self, now: &[u64]) {
        self.settle(now, false);
        self.walk.iter_mut().for_each(|walk| walk.zero());
        self.reset();
    }

    /// What was collected since the last dump. (A correction of what was in the part before shows as nothing.)
    pub fn collected(&self, now: &[u64]) -> Vec<u64> {
        let mut sum = self.done.clone();
        let mut add = |reading: &[u64], base: &[u64]| {
            sum.iter_mut()
                .zip(reading.iter().zip(base))
                .for_each(|(sum, (reading, base))| *sum += reading.saturating_sub(*base));
        };
        add(&self.meter.read_all(now), &self.base);
        self.outer.iter().for_each(|o| add(&o.reading, &o.base));
        sum
    }

    /// The calls that are going on, innermost first, as [`backtrace`](Calls::backtrace) shows them. A root was called once,
    /// and its costs are those of its state.
    pub fn going_on(&self, now: &[u64]) -> Vec<Active> {
        let mut arcs = (0..self.stack.len()).rev().filter(|i| self.stack.frame(*i).arc != NONE);
        let mut roots: Vec<(Vec<u64>, &[u64])> = vec![(self.meter.read_all(now), &self.base)];
        roots.extend(self.outer.iter().rev().map(|o| (o.reading.clone(), &o.base[..])));
        let mut state = 0;
        let mut found = Vec::new();
        for (function, site) in self.backtrace() {
            let Some((reading, base)) = roots.get(state) else { break };
            let since = |from: &[u64]| reading.iter().zip(from).map(|(now, then)| now.saturating_sub(*then)).collect();
            let active = match site.and_then(|_| arcs.next()) {
                Some(frame) => {
                    let calls = self.book.arcs.at(self.stack.frame(frame).arc)[0];
                    Active { function, calls, costs: since(self.stack.entered(frame)) }
                }
                None => {
                    state += 1;
                    Active { function, calls: 1, costs: since(base) }
                }
            };
            found.push(active);
        }
        found
    }

    /// The functions on the stack, innermost first: those of skipped calls are left out, and where a signal handler
    /// interrupted another function they simply follow. Each comes with its caller's site, or none if it is a root.
    pub fn backtrace(&self) -> Vec<(FunctionId, Option<SiteId>)> {
        let mut found = Vec::new();
        let mut path = self.path;
        let mut bottoms = self.outer.iter().rev().map(|o| (o.bottom, o.path));
        let mut bottom = self.bottom;
        let mut root = self.begun;
        for i in (0..=self.stack.len()).rev() {
            while i == bottom && root {
                found.push((self.contexts.info(path).top, None));
                let Some(outer) = bottoms.next() else { return found };
                // The handler's own bottom is where the interrupted state's frames end.
                path = outer.1;
                bottom = outer.0;
                root = path != PathId::EMPTY;
            }
            if i == 0 {
                break;
            }
            let frame = self.stack.frame(i - 1);
            if frame.arc != NONE {
                found.push((self.contexts.info(path).top, Some(self.book.arcs.keys[frame.arc as usize].site)));
                path = frame.path;
            }
        }
        found
    }
}
