//! One thread's calls: decides what is a call and what a return, keeps the shadow stack, and books costs.
//!
//! The rules, in the order in which an event meets them:
//! 1. A return is one if the stack pointer left the top frame, or stands at it and the address fits. Any other is a jump.
//! 2. A jump to the start of a function, to another kind of section or another object is a call that pushes nothing.
//! 3. Whatever the event, frames that the stack pointer has left are popped. A jump that pops frames (longjmp, an exception)
//!    is a return; a real call stays a call.
//! 4. A call of a skipped function pushes a frame without an arc; until it is gone, costs belong to the site that called, and
//!    so do calls of functions that are not skipped.
//! 5. A return without any frame left means that the caller began before anybody watched: it is made up.
//!
//! Invariants: the frames of an interrupted state lie below `bottom` and are not touched by a handler; a function's
//! `active` is the number of its frames (and roots); what hooks ask for is asked for after the event, when no cost has
//! been added since.

use std::collections::VecDeque;
use std::ops::Range;

use crate::arcs::{ArcKey, Book, JumpKey, NONE};
use crate::code::{Code, Function, FunctionId, SiteId};
use crate::contexts::{Contexts, PathId, Wish};
use crate::meter::Meter;
use crate::profile::{Arc, Cell, Jump, Node, NodeIndex, Profile, Skipped};
use crate::stack::{Frame, Stack};
use crate::ways::{Places, Sites, Way, Ways};

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
#[derive(Debug)]
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

/// One thread's calls. See the crate's description for the order of events.
///
/// Events answer whether there is a [request](Calls::take_request), which must be dealt with before the next event.
#[derive(Debug)]
pub struct Calls {
    config: Config,
    contexts: Contexts,
    functions: Vec<Known>,
    ways: Ways,
    places: Places,
    sites: Sites,
    book: Book,
    stack: Stack,
    bottom: usize,
    meter: Meter,
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
    /// Whether cells are booked: contexts are wanted, collection is on, nothing is skipped.
    counting: bool,
    outer: Vec<Outer>,
    requests: VecDeque<Request>,
    /// The arc of the call that the last dump request belongs to: it counts in the part after the dump.
    carried: u32,
}

impl Calls {
    /// A thread whose totals are `now`. It runs nowhere until [`begin`](Calls::begin).
    ///
    /// # Panics
    /// If the number of totals is not that of the configuration, here and in all events.
    pub fn new(config: Config, now: &[u64]) -> Calls {
        let n = config.costs;
        assert_eq!(n, now.len(), "number of totals");
        let meter = Meter::new(now, config.collect_at_start);
        let most_callers = if config.contexts { config.most_callers } else { 0 };
        let mut calls = Calls {
            contexts: Contexts::new(most_callers),
            functions: Vec::new(),
            ways: Ways::default(),
            places: Places::new(),
            sites: Sites::default(),
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
            carried: NONE,
            config,
        };
        calls.update_counting();
        calls
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

    /// The thread ends, or instrumentation is switched off: everything returns.
    pub fn end(&mut self, now: &[u64]) -> bool {
        while !self.outer.is_empty() {
            self.signal_leave(now);
        }
        while self.stack.len() > 0 {
            self.pop(now);
        }
        self.end_root();
        self.begun = false;
        for i in 0..self.config.costs {
            let reading = self.meter.read(now, i);
            self.done[i] += reading - self.base[i];
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
        self.push(code, site, target, sp, returns_to, now);
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
            _ => self.odd_return(code, site, target, sp, now),
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
        let from = self.sites.get(code, site).place;
        let to = self.places.get(code, target);
        let is_call = to.is_entry || from.section != to.section || from.object != to.object;
        self.transfer(code, site, target, sp, Some(kind), is_call, now);
        self.wanted()
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
        self.set_skip(NONE, now);
        let reading = self.meter.read_all(now);
        let collecting = self.meter.collecting();
        let base = std::mem::replace(&mut self.base, vec![0; self.config.costs]);
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
        self.meter = Meter::new(now, self.config.collect_at_start);
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
        self.end_root();
        let Some(outer) = self.outer.pop() else { return self.wanted() };
        for i in 0..self.config.costs {
            self.done[i] += self.meter.read(now, i) - self.base[i];
        }
        self.bottom = outer.bottom;
        self.path = outer.path;
        self.node = outer.node;
        self.begun = outer.begun;
        self.base = outer.base;
        self.meter = Meter::new(now, outer.collecting);
        self.meter.resume(now, outer.reading);
        self.set_skip(outer.skip, now);
        self.update_counting();
        self.wanted()
    }

    /// The cell (a block, say) was executed by the node that is running. Only with contexts.
    #[inline]
    pub fn block(&mut self, cell: u32) {
        if self.counting {
            self.book.execute(self.node, cell);
        }
    }

    /// The cell (an instruction, say) cost `n` of the cost `event`, which is an index into the totals. Only with contexts.
    ///
    /// # Panics
    /// If there is no such cost.
    #[inline]
    pub fn cost(&mut self, cell: u32, event: usize, n: u64) {
        if self.counting {
            self.book.spend(self.node, cell, event, n);
        }
    }

    /// The cell was executed `n` times more than [`block`](Calls::block) said (or fewer, if `n` is negative, down to none).
    pub fn correct(&mut self, cell: u32, n: i64) {
        if self.counting {
            self.book.correct(self.node, cell, n);
        }
    }

    // ---- Control ---------------------------------------------------------------------------------------------------

    /// Switches collection on or off, in this state.
    pub fn toggle_collect(&mut self, now: &[u64]) {
        self.meter.toggle(now);
        self.update_counting();
    }

    /// Whether costs are being collected.
    pub fn collecting(&self) -> bool {
        self.meter.collecting()
    }

    /// Whether cells are being booked: [`block`](Calls::block) and [`cost`](Calls::cost) have an effect.
    pub fn counting(&self) -> bool {
        self.counting
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
        let profile = self.rows();
        self.reset();
        if carried != NONE {
            self.book.arcs.counts(carried)[0] = 1;
        }
        profile
    }

    /// Sets all costs to zero: what was collected since the last dump is lost, calls that are going on begin now.
    pub fn zero(&mut self, now: &[u64]) {
        self.settle(now, false);
        self.reset();
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

    // ---- Calls and returns -----------------------------------------------------------------------------------------

    #[inline]
    fn wanted(&self) -> bool {
        !self.requests.is_empty()
    }

    /// A thread that nobody announced begins where it is.
    #[inline]
    fn check(&mut self, code: &mut impl Code, site: SiteId) {
        if !self.begun {
            let addr = self.sites.get(code, site).addr;
            self.begun = true;
            self.begin_root(code, addr);
        }
    }

    #[cold]
    fn odd_return(&mut self, code: &mut impl Code, site: SiteId, target: u64, sp: u64, now: &[u64]) {
        self.check(code, site);
        self.leave_abandoned_handlers(sp, now);
        if self.stack.len() == self.bottom {
            if self.outer.is_empty() {
                self.underflow(code, site, target, now);
            } else {
                // The handler's first function returns into code that hands back to the kernel.
                self.end_root();
                self.begin_root(code, target);
            }
            return;
        }
        let fitting = self.fitting_frames(target, sp);
        if fitting > 0 {
            for _ in 0..fitting {
                self.pop(now);
            }
            self.unwind(sp, now);
        } else {
            self.transfer(code, site, target, sp, None, true, now);
        }
    }

    /// How many frames a return pops: those that the stack pointer has left; or, where it stands at the top frame, those that
    /// share it up to the one that returns to `target`.
    fn fitting_frames(&self, target: u64, sp: u64) -> usize {
        let frames = (self.bottom..self.stack.len()).rev().map(|i| self.stack.frame(i));
        let top = self.stack.top().map_or(0, |f| f.sp);
        if top < sp {
            return frames.take_while(|f| f.sp < sp).count();
        }
        let equal = frames.take_while(|f| f.sp == sp);
        equal.enumerate().find(|(_, f)| f.returns_to == target).map_or(0, |(i, _)| i + 1)
    }

    /// A jump, or a return (`kind` is none) that does not fit.
    #[expect(clippy::too_many_arguments, reason = "an event and what was found out about it")]
    fn transfer(
        &mut self,
        code: &mut impl Code,
        site: SiteId,
        target: u64,
        sp: u64,
        kind: Option<JumpKind>,
        is_call: bool,
        now: &[u64],
    ) {
        if is_call {
            let function = self.sites.get(code, site).place.function;
            let caller_frame = self.stack.top().filter(|_| self.stack.len() > self.bottom).copied();
            match caller_frame {
                Some(frame) if frame.arc != NONE && self.function(code, function).pop_on_jump => {
                    let site = self.book.arcs.keys[frame.arc as usize].site;
                    self.pop(now);
                    if self.unwind(sp, now) == 0 {
                        self.push(code, site, target, frame.sp, frame.returns_to, now);
                    }
                }
                _ => {
                    if self.unwind(sp, now) == 0 {
                        let above = self.stack.top().filter(|_| self.stack.len() > self.bottom);
                        let sp = above.map_or(sp, |f| f.sp);
                        self.push(code, site, target, sp, 0, now);
                    }
                }
            }
        } else if self.unwind(sp, now) == 0 && self.config.collect_jumps {
            let conditional = match kind {
                Some(JumpKind::Always) | None => false,
                Some(JumpKind::Conditional) => true,
                Some(JumpKind::FallThrough) => return,
            };
            let arc = ArcKey { site, from: self.node, target, to: self.node };
            let row = self.book.jumps.row(JumpKey { arc, conditional });
            self.book.jumps.counts(row)[0] += 1;
        }
    }

    /// Pops the frames that the stack pointer has left; returns how many.
    #[inline]
    fn unwind(&mut self, sp: u64, now: &[u64]) -> usize {
        let mut popped = 0;
        loop {
            while self.stack.len() > self.bottom && self.stack.top().is_some_and(|top| top.sp < sp) {
                self.pop(now);
                popped += 1;
            }
            if self.outer.is_empty() || !self.leave_abandoned_handlers(sp, now) {
                return popped;
            }
            popped += 1;
        }
    }

    /// Leaves signal handlers whose stack the stack pointer has left; says whether there was one.
    fn leave_abandoned_handlers(&mut self, sp: u64, now: &[u64]) -> bool {
        let mut left = false;
        while let Some(outer) = self.outer.last() {
            let gone = match &outer.stack {
                Some(stack) => !stack.contains(&sp) && sp != stack.end,
                None => sp >= outer.sp,
            };
            if !gone {
                break;
            }
            self.signal_leave(now);
            left = true;
        }
        left
    }

    #[inline]
    fn push(&mut self, code: &mut impl Code, site: SiteId, target: u64, sp: u64, returns_to: u64, now: &[u64]) {
        let site = if self.skip == NONE { site } else { self.book.skips.keys[self.skip as usize].0 };
        let at = match self.ways.find(site, target, self.path, self.node) {
            Some(at) => at,
            None => self.learn(code, site, target),
        };
        let way = *self.ways.at(at);
        let mut frame = Frame {
            sp,
            returns_to,
            arc: NONE,
            function: way.to_function,
            path: self.path,
            node: self.node,
            skip: self.skip,
        };
        if way.skip {
            self.stack.push(frame, &self.meter, now);
            if self.skip == NONE {
                let row = self.book.skips.row((site, self.node));
                self.set_skip(row, now);
            }
            return;
        }
        let active = &mut self.functions[way.to_function as usize].active;
        if way.deepens {
            *active += 1;
        } else {
            frame.function = NONE;
        }
        let first = *active == 1 && way.deepens;
        let to_node = way.first_node + (*active).min(way.recursions) - 1;
        let arc = if way.to_node == to_node { way.arc } else { self.learn_arc(at, site, target, to_node) };
        frame.arc = arc;
        self.book.arcs.counts(arc)[0] += 1;
        self.stack.push(frame, &self.meter, now);
        if self.skip != NONE {
            self.set_skip(NONE, now);
        }
        self.path = way.to_path;
        self.node = to_node;
        if way.hooks && first {
            self.entered(FunctionId(way.to_function), arc, now);
        }
    }

    /// Finds out what a call at `site` to `target` in this context is.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, code: &mut impl Code, site: SiteId, target: u64) -> (usize, usize) {
        let called = self.places.get(code, target).function;
        let about = self.function(code, called);
        let running = self.contexts.info(self.path).top;
        let mut way = Way {
            target,
            path: self.path,
            node: self.node,
            to_path: self.path,
            to_function: called.0,
            first_node: self.node,
            recursions: 1,
            to_node: NONE,
            arc: NONE,
            skip: about.skip,
            deepens: true,
            hooks: false,
        };
        if !about.skip {
            way.to_path = self.push_path(self.path, called, &about);
            let info = self.contexts.info(way.to_path);
            way.to_function = info.top.0;
            way.first_node = info.first_node;
            way.recursions = info.recursions;
            way.hooks = self.function(code, info.top).has_hooks();
            way.deepens = !(self.config.skip_direct_recursion && running == info.top);
        }
        self.ways.remember(site, way)
    }

    /// Finds the arc to another level of recursion than the last one.
    #[cold]
    #[inline(never)]
    fn learn_arc(&mut self, at: (usize, usize), site: SiteId, target: u64, to_node: u32) -> u32 {
        let arc = self.book.arcs.row(ArcKey { site, from: self.node, target, to: to_node });
        let way = self.ways.at(at);
        way.to_node = to_node;
        way.arc = arc;
        arc
    }

    #[inline]
    fn pop(&mut self, now: &[u64]) {
        let Some((frame, entered)) = self.stack.pop() else { return };
        if frame.arc != NONE {
            self.meter.add_since(now, entered.get(), &mut self.book.arcs.counts(frame.arc)[1..]);
        }
        drop(entered);
        if frame.skip != self.skip {
            self.set_skip(frame.skip, now);
        }
        if frame.arc == NONE {
            return;
        }
        self.path = frame.path;
        self.node = frame.node;
        if frame.function == NONE {
            return;
        }
        let known = &mut self.functions[frame.function as usize];
        known.active = known.active.saturating_sub(1);
        if known.active == 0 && known.about.is_some_and(|about| about.has_hooks()) {
            self.left(FunctionId(frame.function), now);
        }
    }

    /// The caller of the running root is unknown: makes it up, with a call that lasted since the last dump.
    fn underflow(&mut self, code: &mut impl Code, site: SiteId, target: u64, now: &[u64]) {
        self.set_skip(NONE, now);
        let callee = self.contexts.info(self.path).top;
        let callee_node = self.node;
        let callee_start = self.sites.get(code, site).block;
        self.end_root();
        self.begin_root(code, target);
        let call = code.site_before(target);
        let arc = ArcKey { site: call, from: self.node, target: callee_start, to: callee_node };
        let row = self.book.arcs.row(arc);
        let counts = self.book.arcs.counts(row);
        counts[0] += 1;
        for (i, count) in counts[1..].iter_mut().enumerate() {
            *count += self.meter.read(now, i) - self.base[i];
        }
        if self.functions[callee.0 as usize].active == 0 && self.function(code, callee).dump_after {
            self.requests.push_back(Request::DumpAfter(callee));
        }
    }

    /// Runs at `addr` without a caller.
    fn begin_root(&mut self, code: &mut impl Code, addr: u64) {
        let function = self.places.get(code, addr).function;
        let about = self.function(code, function);
        self.path = self.push_path(PathId::EMPTY, function, &about);
        let info = self.contexts.info(self.path);
        let active = &mut self.functions[function.0 as usize].active;
        *active += 1;
        self.node = info.first_node + (*active).min(info.recursions) - 1;
    }

    /// The root does not run any more.
    fn end_root(&mut self) {
        if self.begun && self.path != PathId::EMPTY {
            let root = self.contexts.info(self.path).top;
            let active = &mut self.functions[root.0 as usize].active;
            *active = active.saturating_sub(1);
        }
        self.path = PathId::EMPTY;
        self.node = NONE;
    }

    // ---- Functions and hooks ---------------------------------------------------------------------------------------

    /// What is known of a function; it is asked for once.
    fn function(&mut self, code: &mut impl Code, id: FunctionId) -> Function {
        let index = id.0 as usize;
        if index >= self.functions.len() {
            self.functions.resize(index + 1, Known { active: 0, about: None });
        }
        *self.functions[index].about.get_or_insert_with(|| code.function(id))
    }

    fn push_path(&mut self, path: PathId, function: FunctionId, about: &Function) -> PathId {
        let mut wish = Wish { callers: 0, recursions: 1, group: about.group };
        if self.config.contexts {
            wish.callers = about.separate_callers.min(self.config.most_callers);
            wish.recursions = u32::from(about.separate_recs).max(1);
        }
        self.contexts.push(path, function, wish)
    }

    #[cold]
    fn entered(&mut self, function: FunctionId, arc: u32, now: &[u64]) {
        let about = self.functions[function.0 as usize].about.unwrap_or(Function::PLAIN);
        if about.dump_before {
            self.requests.push_back(Request::DumpBefore(function));
            self.carried = arc;
        } else if about.zero_before {
            self.requests.push_back(Request::Zero(function));
        }
        if about.toggle_collect {
            self.toggle_collect(now);
        }
    }

    #[cold]
    fn left(&mut self, function: FunctionId, now: &[u64]) {
        let about = self.functions[function.0 as usize].about.unwrap_or(Function::PLAIN);
        if about.dump_after {
            self.requests.push_back(Request::DumpAfter(function));
        }
        if about.toggle_collect {
            self.toggle_collect(now);
        }
    }

    /// From here on costs go to another skipped call, or to the running node.
    fn set_skip(&mut self, skip: u32, now: &[u64]) {
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

    fn update_counting(&mut self) {
        self.counting = self.config.contexts && self.skip == NONE && self.meter.collecting();
    }

    // ---- Dumps -----------------------------------------------------------------------------------------------------

    /// Closes the accounts of everything that is going on at `now`, and books it if asked to.
    fn settle(&mut self, now: &[u64], book: bool) {
        let n = self.config.costs;
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
                        counts[1 + cost] += reading[cost] - entered[cost];
                    }
                }
                entered.copy_from_slice(reading);
            }
            above = bottom;
            for i in 0..n {
                self.done[i] += reading[i] - base[i];
            }
            base.clone_from(reading);
        }
    }

    fn reset(&mut self) {
        self.book.clear();
        self.done.fill(0);
        self.carried = NONE;
    }

    /// What is in the book.
    fn rows(&self) -> Profile {
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
        let n = self.config.costs;
        for (i, ((node, cell), counts)) in self.book.cells.rows().enumerate() {
            let costs = extra.get(i * n..(i + 1) * n).filter(|c| counted(c)).map(<[_]>::to_vec).unwrap_or_default();
            if counts[0] != 0 || !costs.is_empty() {
                profile.cells.push(Cell { node: number(node), cell, executions: counts[0], costs });
            }
        }
        profile.nodes = nodes;
        profile
    }
}
