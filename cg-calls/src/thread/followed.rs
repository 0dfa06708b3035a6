//! A thread whose calls are followed elsewhere, by code that only knows what has happened before: it pushes and pops frames
//! of *routes* on a stack of its own, counts, and asks about everything else. Here is the other side of that: catching up with
//! its stack before an event, saying what it may do by itself after one, and booking what it has counted.
//!
//! Invariants: costs of calls that were popped elsewhere are counted there, those of calls that are popped here are booked
//! here; frames below the window that is shown are never touched elsewhere; while a skipped call is going on, what is
//! executed is counted elsewhere too, so nothing is booked for it by readings.

use super::*;

/// Where a thread is, as far as its costs are concerned: what a node is, in terms that do not depend on the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Here {
    /// The function that is running.
    pub function: FunctionId,
    /// Its level of recursion, from 0.
    pub level: u32,
    /// The site of the call of a skipped function that is going on.
    pub skip: Option<SiteId>,
}

/// How a route begins.
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

impl From<RouteKind> for Made {
    fn from(kind: RouteKind) -> Made {
        match kind {
            RouteKind::Call => Made::Call,
            RouteKind::Jump => Made::Jump,
            RouteKind::Stub => Made::Stub,
            RouteKind::JumpToStub => Made::JumpToStub,
            RouteKind::Through => Made::Through,
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
    /// The total at that time.
    pub entered: u64,
    /// Its route, by a number from elsewhere; [`Shown::NO_ROUTE`]: it can only be popped here.
    pub route: u32,
}

impl Shown {
    /// See [`Shown::route`].
    pub const NO_ROUTE: u32 = u32::MAX;
}

/// A route, in terms of this thread.
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
    /// By frame: its route.
    routes: Vec<u32>,
    resolved: Vec<Option<Resolved>>,
    /// Somebody follows.
    on: bool,
    /// Functions whose activity has changed here.
    dirty: Vec<u32>,
    /// Nothing of what is active has been shown yet.
    unknown: bool,
    pub(super) settled: Option<Settled>,
}

impl Followed {
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
    pub fn here(&self) -> Here {
        let info = self.contexts.info(self.path);
        let skip = (self.skip != NONE).then(|| self.book.skips.keys[self.skip as usize].0);
        Here { function: info.top, level: self.node.wrapping_sub(info.first_node), skip }
    }

    /// What the last event was; it is forgotten.
    pub fn take_settled(&mut self) -> Option<Settled> {
        self.followed.settled.take()
    }

    /// Forgets what has been shown: it will be another one that follows.
    pub fn show_all(&mut self) {
        self.followed.unknown = true;
        self.followed.stale = true;
    }

    fn place_of(&mut self, code: &mut impl Code, here: Here) -> (PathId, u32, u32) {
        let about = self.function(code, here.function);
        let path = self.push_path(PathId::EMPTY, here.function, &about);
        let node = self.contexts.info(path).first_node + here.level;
        let skip = here.skip.map_or(NONE, |site| self.book.skips.row((site, node)));
        (path, node, skip)
    }

    fn resolve(&mut self, code: &mut impl Code, route: u32, again: &Again) -> Resolved {
        let at = route as usize;
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
        let resolved = Resolved {
            returns_to,
            arc: if stub { NONE } else { self.book.arcs.row(key) },
            function: again.to.function.0,
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
    /// are `frames`; `again` says what a route is.
    pub fn catch_up<C: Code>(
        &mut self,
        code: &mut C,
        (kept, frames): (usize, &[Shown]),
        now: &[u64],
        mut again: impl FnMut(&mut C, u32) -> Option<Again>,
    ) {
        let kept = self.followed.window + kept;
        while self.stack.len() > kept {
            let Some((frame, _)) = self.stack.pop() else { break };
            (self.path, self.node, self.skip) = (frame.path, frame.node, frame.skip);
            if frame.arc != NONE && frame.function != NONE {
                let active = &mut self.functions[frame.function as usize].active;
                *active = active.saturating_sub(1);
            }
        }
        self.followed.routes.truncate(kept);
        self.followed.routes.resize(kept.min(self.stack.len()), Shown::NO_ROUTE);
        let ahead = self.meter.ahead_of_one();
        for shown in frames {
            let Some(again) = again(code, shown.route) else { break };
            let route = self.resolve(code, shown.route, &again);
            let frame = Frame {
                sp: shown.sp,
                returns_to: route.returns_to,
                arc: route.arc,
                function: if route.arc == NONE { NONE } else { route.function },
                path: self.path,
                node: self.node,
                skip: self.skip,
                way: Leave::Other,
            };
            self.stack.push(frame, &self.meter, now);
            if let Some(ahead) = ahead {
                let last = self.stack.len() - 1;
                self.stack.readings(last)[0] = shown.entered.wrapping_sub(ahead);
            }
            if frame.arc != NONE {
                self.functions[route.function as usize].active += 1;
            }
            (self.path, self.node, self.skip) = (route.to_path, route.to_node, route.to_skip);
            self.followed.routes.push(shown.route);
        }
        // What has been executed of a skipped call is counted elsewhere.
        self.meter.read_into(now, &mut self.skip_since);
        self.stack.take_lowest();
        self.update_counting();
    }

    /// What is to be shown from now on, at most `most` frames: how many of those that are shown stay as they are, unless
    /// `all` are asked for, and those above them. `made`: the route of the call that was the last event.
    pub fn show(&mut self, made: Option<u32>, all: bool, most: usize) -> (usize, Vec<Shown>) {
        let len = self.stack.len();
        let lowest = self.stack.take_lowest();
        let made = made.filter(|_| self.returns_alone());
        let f = &mut self.followed;
        if !std::mem::replace(&mut f.on, true) {
            f.unknown = true;
        }
        f.routes.truncate(lowest);
        f.routes.resize(len, Shown::NO_ROUTE);
        let ahead = self.meter.ahead_of_one();
        // Emitted code cannot know that nothing is collected: calls of before return here.
        let uncollected = ahead.is_none();
        if uncollected {
            f.routes.fill(Shown::NO_ROUTE);
        }
        let mut from = lowest;
        if let (Some(made), Some(top)) = (made, f.routes.last_mut()) {
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
        if std::mem::take(&mut f.stale) || all || uncollected || f.window != window {
            from = f.window;
        }
        let from = from.max(f.window);
        let ahead = ahead.unwrap_or(0);
        let shown = (from..len).map(|i| {
            let entered = self.stack.entered(i)[0].wrapping_add(ahead);
            Shown { sp: self.stack.frame(i).sp, entered, route: f.routes[i] }
        });
        (from - f.window, shown.collect())
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

    /// The functions whose activity is not what it was when this was asked last, with what it is.
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
        changed.into_iter().map(|f| (FunctionId(f), u64::from(self.functions[f as usize].active))).collect()
    }

    /// The cell was executed `n` times at `here`; `cost` is what an execution costs.
    pub fn executed(&mut self, code: &mut impl Code, here: Here, cell: u32, n: u64, cost: u64) {
        if !self.meter.collecting() {
            return;
        }
        let (_, node, skip) = self.place_of(code, here);
        if skip != NONE {
            let costs = &mut self.book.skips.counts(skip)[0];
            *costs = costs.wrapping_add(n * cost);
        } else if self.config.contexts {
            let row = self.book.cells.row((node, cell));
            self.book.add_executions(row, n);
        }
    }

    /// The cell cost `n` more there.
    pub fn executed_again(&mut self, code: &mut impl Code, here: Here, cell: u32, n: u64) {
        if !self.meter.collecting() {
            return;
        }
        let (_, node, skip) = self.place_of(code, here);
        if skip != NONE {
            let costs = &mut self.book.skips.counts(skip)[0];
            *costs = costs.wrapping_add(n);
        } else if self.config.contexts {
            self.book.spend(node, cell, 0, n);
        }
    }

    /// A correction of what has been executed while a skipped call is going on; nothing if there is none.
    pub fn correct_skipped(&mut self, n: i64) {
        if self.skip != NONE && self.meter.collecting() {
            let cost = &mut self.book.skips.counts(self.skip)[0];
            *cost = cost.wrapping_add_signed(n);
        }
    }

    /// A route was taken so many times, and those calls that have returned cost so much.
    pub fn called(&mut self, code: &mut impl Code, route: u32, again: &Again, calls: u64, inclusive: u64) {
        let Resolved { arc, .. } = self.resolve(code, route, again);
        if arc != NONE {
            let counts = self.book.arcs.counts(arc);
            counts[0] += calls;
            if self.meter.collecting() {
                counts[1] += inclusive;
            }
        }
    }
}
