//! A thread whose calls are followed elsewhere, by code that only knows what has happened before: it pushes and pops frames
//! of *call edges* on a stack of its own, counts, and asks about everything else. Here is the other side of that: catching up with
//! its stack before an event, saying what it may do by itself after one, and booking what it has counted.
//!
//! Some costs need not be counted elsewhere, because somebody there tells of each of them, of misses of caches for example.
//! In front of it stand the frames that have come since the last one, so what runs, and what is active, is known at each.
//!
//! While nothing is collected, totals stand still here and there, and what is counted is of no interest ([`Here::collecting`]).
//!
//! Invariants: costs of calls that were popped elsewhere are counted there, those of calls that are popped here are booked
//! here; frames below the window that is shown are never touched elsewhere; while a skipped call is going on, what is
//! executed is counted elsewhere too, so nothing is booked for it by readings.

use super::*;
use crate::tree::Told;

/// Where a thread is, as far as its costs are concerned: what a node is, in terms that do not depend on the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Here {
    /// The function that is running, or the one that stands for its group.
    pub function: FunctionId,
    /// The callers that tell its contexts apart, or those of what it calls.
    pub callers: CallersId,
    /// Its level of recursion, from 0. Where something happens when a function is entered, the first call is told from others even
    /// if levels are not.
    pub level: u32,
    /// The site of the call of a skipped function that is going on.
    pub skip: Option<SiteId>,
    /// Whether costs are collected. If not, totals that are kept elsewhere stand still.
    pub collecting: bool,
}

/// How a call edge begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Made {
    /// A call.
    Call,
    /// A jump that is a call.
    Jump,
    /// A call of a skipped function.
    Stub,
    /// A jump to a skipped function.
    JumpToStub,
    /// The jump out of that one.
    Through,
}

impl From<CallKind> for Made {
    fn from(kind: CallKind) -> Made {
        match kind {
            CallKind::Call => Made::Call,
            CallKind::Jump => Made::Jump,
            CallKind::Stub => Made::Stub,
            CallKind::JumpToStub => Made::JumpToStub,
            CallKind::Through => Made::Through,
        }
    }
}

/// What the last event was, if it is that whenever its site leads there from the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing, as long as no frame is left.
    Nothing,
    /// A call, or what led to a skipped function.
    Push {
        /// How it began.
        made: Made,
        /// Levels of recursion of the callee that are told apart.
        levels: u32,
        /// Where it returns to; 0 if it pushed nothing.
        returns_to: u64,
    },
}

/// A call that is made again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// How it begins.
    pub made: Made,
    /// The instruction.
    pub site: SiteId,
    /// The caller.
    pub from: Here,
    /// Where it leads.
    pub target: u64,
    /// The callee.
    pub to: Here,
}

/// A frame as it is known elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The stack pointer after the call.
    pub sp: u64,
    /// The totals that are kept elsewhere at that time, in the order of [`Config::kept`].
    pub entered: [u64; Shown::TOTALS],
    /// Its call edge, by a number from elsewhere; [`Shown::NO_CALL_EDGE`]: it can only be popped here.
    pub call_edge: u32,
}

impl Shown {
    /// The most totals that can be kept elsewhere.
    pub const TOTALS: usize = 5;

    /// See [`Shown::call_edge`].
    pub const NO_CALL_EDGE: u32 = u32::MAX;
}

/// What whoever follows goes on with.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// How many of the frames that were shown stay as they are, the lowest ones.
    pub kept: usize,
    /// Those above them.
    pub frames: Vec<Shown>,
    /// There are others below them, which the stack pointer may leave, too.
    pub hides: bool,
}

/// A call edge, in terms of this thread.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    returns_to: u64,
    arc: u32,
    function: u32,
    to_path: PathId,
    to_node: u32,
    to_skip: u32,
}

/// What is known of the code that follows the thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// The first frame that is shown.
    window: usize,
    /// What is shown is not true any more.
    pub(super) stale: bool,
    /// Nor is what is known of how the frames that there are return.
    pub(super) unsettled: bool,
    /// By frame: its call edge.
    call_edges: Vec<u32>,
    resolved: Vec<Option<Resolved>>,
    /// Somebody follows.
    on: bool,
    /// Functions whose activity has changed here.
    dirty: Vec<u32>,
    /// Nothing of what is active has been shown yet.
    unknown: bool,
    pub(super) settled: Option<Settled>,
    /// By cost: all ones if it is not counted elsewhere, else zero.
    others: Vec<u64>,
    /// So many of the frames that are shown remain, if no others are told before the next cost.
    told: Option<usize>,
}

impl Followed {
    pub(super) fn new(config: &Config) -> Followed {
        let others = (0..config.costs).map(|event| if config.kept.contains(&Some(event)) { 0 } else { u64::MAX });
        Followed { others: others.collect(), ..Followed::default() }
    }

    /// More or fewer calls of a function are going on.
    #[inline]
    pub(super) fn changed(&mut self, function: u32) {
        if self.on {
            self.dirty.push(function);
        }
    }
}

impl Calls {
    /// Where the thread is. Only once it has begun.
    pub fn here(&self, code: &mut impl Code) -> Here {
        let info = self.contexts.info(self.path);
        let skip = (self.skip != NONE).then(|| self.book.skips.keys[self.skip as usize].0);
        let known = self.functions[info.top.0 as usize];
        let mut level = self.node.wrapping_sub(info.first_node);
        if info.recursions < 2 && known.about.is_some_and(|about| about.has_hooks()) {
            level = u32::from(known.active > 1);
        }
        let callers = code.callers().number(self.contexts.callers(self.path));
        Here { function: info.top, callers, level, skip, collecting: self.meter.collecting() }
    }

    /// How many levels of recursion somebody tells apart who follows calls of this function.
    fn levels_followed(&self, about: &Function) -> u64 {
        let levels = if self.config.contexts { costs::levels(about) } else { 1 };
        u64::from(if about.has_hooks() { levels.max(2) } else { levels })
    }

    /// Whether the first call of a function that begins, or the last one that ends, switches collection.
    fn switches(&self, function: u32) -> bool {
        let known = &self.functions[function as usize];
        known.about.is_some_and(|about| about.toggle_collect)
    }

    /// What the last event was; it is forgotten.
    pub fn take_settled(&mut self) -> Option<Settled> {
        self.followed.settled.take()
    }

    /// Stands in for other calls while nothing is recorded: says whom code runs for, and books no inclusive costs.
    pub fn stand_in(&mut self) {
        self.idle = true;
        self.show_all();
    }

    /// Forgets what has been shown: it will be another one that follows.
    pub fn show_all(&mut self) {
        self.followed.unknown = true;
        self.followed.stale = true;
    }

    fn place_of(&mut self, code: &mut impl Code, here: Here) -> (PathId, u32, u32) {
        let about = self.function(code, here.function);
        let mut path = PathId::EMPTY;
        if here.callers != CallersId::NONE {
            let callers: Vec<FunctionId> = code.callers().list(here.callers).to_vec();
            for caller in callers.into_iter().rev() {
                let about = self.function(code, caller);
                path = self.push_path(path, caller, &about);
            }
        }
        let path = self.push_path(path, here.function, &about);
        let info = self.contexts.info(path);
        let node = info.first_node + here.level.min(info.recursions - 1);
        let skip = here.skip.map_or(NONE, |site| self.book.skips.row((site, node)));
        (path, node, skip)
    }

    /// What a call edge means to whole chains of calls.
    #[cold]
    #[inline(never)]
    pub(super) fn told_of(&mut self, code: &mut impl Code, call_edge: u32, again: &Again) -> Told {
        let known = self.resolve(code, call_edge, again);
        // One that is skipped has no arc.
        let function = if known.arc == NONE { NONE } else { self.contexts.info(known.to_path).top.0 };
        Told { function, counts: again.to.collecting }
    }

    fn resolve(&mut self, code: &mut impl Code, call_edge: u32, again: &Again) -> Resolved {
        let at = call_edge as usize;
        if let Some(Some(known)) = self.followed.resolved.get(at) {
            return *known;
        }
        let (_, from_node, _) = self.place_of(code, again.from);
        let (to_path, to_node, to_skip) = self.place_of(code, again.to);
        let stub = matches!(again.made, Made::Stub | Made::JumpToStub);
        let next = |site: SiteId, calls: &mut Calls, code: &mut _| calls.sites.get(code, site).next;
        let (site, returns_to) = match again.made {
            Made::Call | Made::Stub => (again.site, next(again.site, self, code)),
            Made::Jump | Made::JumpToStub => (again.site, 0),
            Made::Through => (again.from.skip.unwrap_or(again.site), 0),
        };
        let key = ArcKey { site, from: from_node, target: again.target, to: to_node };
        // Direct recursion may be no other level: then it is no call that is counted among those that are going on.
        let deepens = !(self.config.skip_direct_recursion && again.from.function == again.to.function);
        let resolved = Resolved {
            returns_to,
            arc: if stub { NONE } else { self.book.arcs.row(key) },
            function: if stub || !deepens { NONE } else { again.to.function.0 },
            to_path,
            to_node,
            to_skip,
        };
        if at >= self.followed.resolved.len() {
            self.followed.resolved.resize(at + 1, None);
        }
        self.followed.resolved[at] = Some(resolved);
        resolved
    }

    /// Takes over the stack that emitted code has: of what was shown, the first `kept` frames are as they were, and above them
    /// are `frames`; `again` says what a call edge is.
    pub fn pull_stack<C: Code>(
        &mut self,
        code: &mut C,
        (kept, frames): (usize, &[Shown]),
        now: &[u64],
        mut again: impl FnMut(&mut C, u32) -> Option<Again>,
    ) {
        self.followed.told = None;
        let mut kept = self.followed.window + kept;
        let mut frames = frames.iter();
        // Some may have been told before.
        while let Some(first) = frames.as_slice().first().filter(|first| self.is_on(kept, first.call_edge)) {
            self.stack.frame_mut(kept).sp = first.sp;
            self.set_entered(kept, first);
            let _ = frames.next();
            kept += 1;
        }
        self.leave_frames(kept, now);
        for shown in frames {
            let Some(again) = again(code, shown.call_edge) else { break };
            let call_edge = self.resolve(code, shown.call_edge, &again);
            self.enter_frame(call_edge, (shown.call_edge, shown.sp), now);
            self.set_entered(self.stack.len() - 1, shown);
        }
        // What has been executed of a skipped call is counted elsewhere.
        self.meter.read_into(now, &mut self.skip_since);
        self.stack.take_lowest();
        self.update_counting();
        if let Some(walk) = &self.walk {
            let depth = self.stack.len() + self.outer.len();
            debug_assert_eq!(walk.depth(), depth, "calls that are going on, as told and as found");
        }
    }

    /// Whether a frame is of that call edge. If it has been popped, and one of the same call edge been pushed in its place, that is as
    /// good: their costs go to the same arc.
    #[inline]
    fn is_on(&self, index: usize, call_edge: u32) -> bool {
        index < self.stack.len()
            && self.followed.call_edges.get(index) == Some(&call_edge)
            && call_edge != Shown::NO_CALL_EDGE
    }

    /// Totals that are kept elsewhere were these when the frame was entered.
    fn set_entered(&mut self, index: usize, shown: &Shown) {
        let Some(ahead) = self.meter.ahead() else { return };
        let readings = self.stack.readings(index);
        for (entered, event) in shown.entered.iter().zip(self.config.kept) {
            if let Some(event) = event {
                readings[event] = entered.wrapping_sub(ahead[event]);
            }
        }
    }

    /// Takes away all frames but so many, whose returns have been dealt with elsewhere. Only costs that are not counted there
    /// are booked.
    fn leave_frames(&mut self, keep: usize, now: &[u64]) {
        while self.stack.len() > keep {
            let Some((frame, entered)) = self.stack.pop() else { break };
            if frame.arc != NONE {
                let counts = &mut self.book.arcs.counts(frame.arc)[1..];
                self.meter.add_some_since(now, entered.get(), &self.followed.others, counts);
            }
            (self.path, self.node, self.skip) = (frame.path, frame.node, frame.skip);
            if frame.arc != NONE && frame.function != NONE {
                let active = &mut self.functions[frame.function as usize].active;
                *active = active.saturating_sub(1);
                if *active == 0 && frame.way != Leave::Found && self.switches(frame.function) {
                    self.meter.flip();
                }
            }
        }
        self.followed.call_edges.truncate(keep);
        self.followed.call_edges.resize(keep.min(self.stack.len()), Shown::NO_CALL_EDGE);
    }

    /// Puts a frame on top that has been pushed elsewhere. Costs that are not counted there must be what they were then.
    fn enter_frame(&mut self, call_edge: Resolved, (number, sp): (u32, u64), now: &[u64]) {
        let frame = Frame {
            sp,
            returns_to: call_edge.returns_to,
            arc: call_edge.arc,
            function: call_edge.function,
            path: self.path,
            node: self.node,
            skip: self.skip,
            way: Leave::Other,
        };
        self.stack.push(frame, &self.meter, now);
        if frame.function != NONE {
            let active = &mut self.functions[call_edge.function as usize].active;
            *active += 1;
            if *active == 1 && self.switches(call_edge.function) {
                self.meter.flip();
            }
        }
        (self.path, self.node, self.skip) = (call_edge.to_path, call_edge.to_node, call_edge.to_skip);
        self.followed.call_edges.push(number);
    }

    /// Told in front of a cost: of the frames that are known elsewhere there are so many, unless another one is told before the
    /// cost.
    #[inline]
    pub fn told_depth(&mut self, depth: usize) {
        self.followed.told = Some(depth);
    }

    /// The same: the innermost of `depth` frames is one of `call_edge`, unless another one is told before the cost; those below it
    /// are as they were. `again` says what the call edge is. Its stack pointer, and totals that are kept elsewhere, need not be
    /// known before it is caught up with.
    #[inline]
    pub fn told_frame<C: Code>(
        &mut self,
        code: &mut C,
        (depth, call_edge): (usize, u32),
        now: &[u64],
        again: impl FnOnce(&mut C, u32) -> Option<Again>,
    ) {
        // It may be followed by those that are on top of it already.
        if self.told_known_frame((depth, call_edge), now) {
            return;
        }
        let below = self.followed.window + depth.max(1) - 1;
        match again(code, call_edge).map(|again| self.resolve(code, call_edge, &again)) {
            Some(known) => self.push_told(below, (known, call_edge), now),
            None => {
                self.followed.told = None;
                self.leave_frames(below, now);
                self.update_counting();
            }
        }
    }

    /// The same, if it is known what the call edge is; says whether.
    #[inline]
    pub fn told_known_frame(&mut self, (depth, call_edge): (usize, u32), now: &[u64]) -> bool {
        let below = self.followed.window + depth.max(1) - 1;
        if self.is_on(below, call_edge) {
            self.told_depth(depth);
            return true;
        }
        let Some(known) = self.followed.resolved.get(call_edge as usize).copied().flatten() else { return false };
        self.push_told(below, (known, call_edge), now);
        true
    }

    fn push_told(&mut self, below: usize, (known, call_edge): (Resolved, u32), now: &[u64]) {
        self.followed.told = None;
        self.leave_frames(below, now);
        self.enter_frame(known, (call_edge, 0), now);
        self.update_counting();
    }

    /// What has been told in front of a cost is complete.
    #[inline]
    fn all_told(&mut self, now: &[u64]) {
        if let Some(depth) = self.followed.told.take() {
            self.leave_frames(self.followed.window + depth, now);
            self.update_counting();
        }
    }

    /// A place has had an outcome (0 or 1 if that is not rare): a counter that is no instruction, but costs something that is not
    /// counted elsewhere. What was told last says on what runs. If that has had it before, and it is enough to count it again, that
    /// is done; else says no, and wants to be told by [`missed`](Calls::missed). `now` has to be moved on afterwards.
    #[inline]
    pub fn missed_again(&mut self, place: u32, outcome: usize, now: &[u64]) -> bool {
        self.all_told(now);
        self.counting && self.book.pairs.count_again(place, outcome, self.node)
    }

    /// The same, where the outcome's counter is known, and what it costs.
    pub fn missed(&mut self, (place, outcome): (u32, usize), counter: u32, costs: &[u64], now: &[u64]) {
        self.all_told(now);
        if self.counting {
            if outcome < 2 {
                self.book.count_outcome(place, outcome, counter, self.node);
            } else {
                self.book.execute(self.node, counter);
            }
        } else if self.skip != NONE && self.meter.collecting() {
            let counts = self.book.skips.counts(self.skip);
            counts.iter_mut().zip(costs).for_each(|(count, cost)| *count += cost);
        }
    }

    /// Where the counts of a place are in memory, if it has any: what [`missed_again`](Calls::missed_again) will look at.
    #[inline]
    #[must_use]
    pub fn counts_of(&self, place: u32) -> Option<usize> {
        self.book.pairs.address(place)
    }

    /// The counter cost `n` of the cost `event` on what runs, whose totals are kept elsewhere.
    pub fn spent(&mut self, counter: u32, event: usize, n: u64, now: &[u64]) {
        self.all_told(now);
        if self.skip == NONE {
            self.cost(counter, event, n);
        } else if self.meter.collecting() {
            self.book.skips.counts(self.skip)[event] += n;
        }
    }

    /// What is to be shown from now on, at most `most` frames, `all` of them or what has changed. `made`: the call edge of the call
    /// that was the last event.
    pub fn show(&mut self, made: Option<u32>, all: bool, most: usize) -> View {
        let len = self.stack.len();
        let lowest = self.stack.take_lowest();
        let made = made.filter(|_| self.returns_alone());
        let f = &mut self.followed;
        if !std::mem::replace(&mut f.on, true) {
            f.unknown = true;
        }
        f.call_edges.truncate(lowest);
        f.call_edges.resize(len, Shown::NO_CALL_EDGE);
        let ahead = self.meter.ahead().map(<[u64]>::to_vec);
        debug_assert!(ahead.is_some(), "calls are followed, but totals do not stand still: see `Config::gated`");
        // Code that they return to does not know that collection has been switched meanwhile: they return here.
        if std::mem::take(&mut f.unsettled) {
            f.call_edges.fill(Shown::NO_CALL_EDGE);
        }
        let mut from = lowest;
        if let (Some(made), Some(top)) = (made, f.call_edges.last_mut()) {
            *top = made;
            from = from.min(len - 1);
        }
        let window = f.window;
        if f.window < self.bottom || len <= f.window || len - f.window > most {
            f.window = self.bottom.max(len.saturating_sub(most / 2)).min(len);
            // A call through a stub is popped together with that.
            let apart = f.window < len && f.window > self.bottom && {
                let first = self.stack.frame(f.window);
                first.arc != NONE && first.skip != NONE
            };
            f.window -= usize::from(apart);
        }
        if std::mem::take(&mut f.stale) || all || f.window != window {
            from = f.window;
        }
        let from = from.max(f.window);
        let kept = self.config.kept;
        let shown = (from..len).map(|i| {
            let readings = self.stack.entered(i);
            let total = |event: usize| readings[event].wrapping_add(ahead.as_ref().map_or(0, |ahead| ahead[event]));
            let entered = kept.map(|event| event.map_or(0, total));
            Shown { sp: self.stack.frame(i).sp, entered, call_edge: f.call_edges[i] }
        });
        View { kept: from - f.window, frames: shown.collect(), hides: f.window > self.bottom }
    }

    /// Whether a return from the innermost call pops that call, and a stub that led to it, alone; or, of a jump, is one from the
    /// frame below, too.
    fn returns_alone(&self) -> bool {
        let Some(last) = self.stack.len().checked_sub(1).filter(|last| *last >= self.bottom) else { return false };
        let top = self.stack.frame(last);
        // Of a stub, if it was led to by one.
        let first = if top.arc != NONE && top.skip != NONE { last.saturating_sub(1) } else { last };
        let below = (first > self.bottom).then(|| self.stack.frame(first - 1).sp);
        if self.stack.frame(first).returns_to == 0 {
            below == Some(top.sp)
        } else {
            below.is_none_or(|sp| sp >= top.sp + 8)
        }
    }

    /// The functions whose activity is not what it was when this was asked last, with what it is: how many of their calls are
    /// going on, but for those on the last level of recursion.
    pub fn activities(&mut self) -> Vec<(FunctionId, u64)> {
        let changed = if std::mem::take(&mut self.followed.unknown) {
            self.followed.dirty.clear();
            (0..self.functions.len() as u32).filter(|f| self.functions[*f as usize].active > 0).collect()
        } else {
            let mut changed = std::mem::take(&mut self.followed.dirty);
            changed.sort_unstable();
            changed.dedup();
            changed
        };
        let below = |f: u32| {
            let known = &self.functions[f as usize];
            let levels = known.about.map_or(1, |about| self.levels_followed(&about));
            u64::from(known.active).min(levels - 1)
        };
        changed.into_iter().map(|f| (FunctionId(f), below(f))).collect()
    }

    /// The counter was executed `n` times at `here`; `costs` are what an execution costs.
    pub fn executed(&mut self, code: &mut impl Code, here: Here, counter: u32, n: u64, costs: &[u64]) {
        if !here.collecting {
            return;
        }
        let (_, node, skip) = self.place_of(code, here);
        if skip != NONE {
            let counts = self.book.skips.counts(skip).iter_mut();
            counts.zip(costs).for_each(|(count, cost)| *count = count.wrapping_add(n.wrapping_mul(*cost)));
        } else if self.config.contexts {
            let row = self.book.counters.row((node, counter));
            self.book.counters.add(row, n);
        }
    }

    /// The counter cost `n` more there.
    pub fn executed_again(&mut self, code: &mut impl Code, here: Here, counter: u32, n: u64) {
        if !here.collecting {
            return;
        }
        let (_, node, skip) = self.place_of(code, here);
        if skip != NONE {
            let costs = &mut self.book.skips.counts(skip)[0];
            *costs = costs.wrapping_add(n);
        } else if self.config.contexts {
            self.book.spend(node, counter, 0, n);
        }
    }

    /// At `here`, `site` has jumped to `target` so many times, and pushed nothing.
    pub fn jumped(&mut self, code: &mut impl Code, here: Here, (site, target): (SiteId, u64), kind: JumpKind, n: u64) {
        let (_, node, _) = self.place_of(code, here);
        self.count_jumps(node, site, target, kind, n);
    }

    /// A correction of what has been executed while a skipped call is going on: totals were `before`, and are `now`. Nothing if
    /// there is none.
    pub fn correct_skipped(&mut self, before: &[u64], now: &[u64]) {
        if self.skip != NONE && self.meter.collecting() {
            let counts = self.book.skips.counts(self.skip).iter_mut();
            for (count, (now, before)) in counts.zip(now.iter().zip(before)) {
                *count = count.wrapping_add(now.wrapping_sub(*before));
            }
        }
    }

    /// A call edge was taken so many times, and those calls that have returned cost so much.
    pub fn called(
        &mut self,
        code: &mut impl Code,
        call_edge: u32,
        again: &Again,
        calls: u64,
        inclusive: [u64; Shown::TOTALS],
    ) {
        let Resolved { arc, .. } = self.resolve(code, call_edge, again);
        if arc != NONE {
            let counts = self.book.arcs.counts(arc);
            counts[0] += calls;
            for (event, n) in self.config.kept.into_iter().zip(inclusive) {
                event.into_iter().for_each(|event| counts[1 + event] += n);
            }
        }
    }
}
