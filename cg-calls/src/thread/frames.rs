//! The shadow stack at work: which return fits which frame, what a transfer of control pushes and pops, who is made up when a
//! caller began before anybody watched. It must never change a cost: those are booked by `costs`, at each push and pop.
//! Invariant: frames below `bottom` are those of an interrupted state and are left alone.

use super::*;

impl Calls {
    #[inline]
    pub(super) fn wanted(&self) -> bool {
        !self.requests.is_empty()
    }

    /// A thread that nobody announced begins where it is.
    #[inline]
    pub(super) fn check(&mut self, code: &mut impl Code, site: SiteId) {
        if !self.begun {
            let addr = self.sites.get(code, site).addr;
            self.begun = true;
            self.begin_root(code, addr);
        }
    }

    #[cold]
    pub(super) fn unmatched_return(&mut self, code: &mut impl Code, site: SiteId, target: u64, sp: u64, now: &[u64]) {
        self.check(code, site);
        self.leave_abandoned_handlers(sp, now);
        if self.stack.len() == self.bottom {
            if self.outer.is_empty() {
                self.underflow(code, site, target, now);
            } else {
                // The handler's first function returns into code that hands back to the kernel.
                self.chain_booked(now);
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
    pub(super) fn fitting_frames(&self, target: u64, sp: u64) -> usize {
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
    pub(super) fn transfer(
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
                        self.push(code, site, target, frame.sp, frame.returns_to, None, now);
                    }
                }
                _ => {
                    if self.unwind(sp, now) == 0 {
                        let always = kind.is_some() && !self.function(code, function).pop_on_jump;
                        let how = always.then_some(CallKind::Jump);
                        let above = self.stack.top().filter(|_| self.stack.len() > self.bottom);
                        let sp = above.map_or(sp, |f| f.sp);
                        self.push(code, site, target, sp, 0, how, now);
                    }
                }
            }
        } else if self.unwind(sp, now) == 0 && (kind.is_some() || self.config.collect_jumps) {
            self.followed.settled = kind.map(|_| Settled::Nothing);
            self.count_jumps(self.node, site, target, kind.unwrap_or(JumpKind::Always), 1);
        }
    }

    /// A node has made `n` jumps, which are no calls: less than none where what was counted before is corrected.
    pub(super) fn count_jumps(&mut self, node: u32, site: SiteId, target: u64, kind: JumpKind, n: u64) {
        if !self.config.collect_jumps || kind == JumpKind::FallThrough {
            return;
        }
        let conditional = kind == JumpKind::Conditional;
        let arc = ArcKey { site, from: node, target, to: node };
        let row = self.book.jumps.row(JumpKey { arc, conditional });
        let count = &mut self.book.jumps.counts(row)[0];
        *count = count.wrapping_add(n);
    }

    /// Pops the frames that the stack pointer has left; returns how many.
    #[inline]
    pub(super) fn unwind(&mut self, sp: u64, now: &[u64]) -> usize {
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
    pub(super) fn leave_abandoned_handlers(&mut self, sp: u64, now: &[u64]) -> bool {
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

    /// Pushes a call. `how` it came about is remembered, if it comes about like that whenever the site leads there.
    #[expect(clippy::too_many_arguments, reason = "an event and what was found out about it")]
    pub(super) fn push(
        &mut self,
        code: &mut impl Code,
        site: SiteId,
        target: u64,
        sp: u64,
        returns_to: u64,
        how: Option<CallKind>,
        now: &[u64],
    ) {
        let jump = site;
        let site = if self.skip == NONE { site } else { self.book.skips.keys[self.skip as usize].0 };
        let at = match self.ways.find(site, |way| way.fits(target, self.path, self.node)) {
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
            way: if self.finding { Leave::Found } else { Leave::Other },
        };
        if way.skip {
            self.stack.push(frame, &self.meter, now);
            self.chain_enter(NONE, now);
            if self.skip == NONE {
                let row = if way.arc == NONE { self.book.skips.row((site, self.node)) } else { way.arc };
                self.ways.at(at).arc = row;
                if let Some(how) = how {
                    let way = Way { arc: row, ..way };
                    let kind = if how == CallKind::Jump { CallKind::JumpToStub } else { CallKind::Stub };
                    self.remember(kind, (site, NONE), &way, returns_to, 0);
                }
                self.set_skip(row, now);
            }
            return;
        }
        if way.plain && self.skip == NONE && !self.finding {
            frame.way = Leave::Plain;
        }
        let active = &mut self.functions[way.to_function as usize].active;
        if way.deepens {
            *active += 1;
            self.followed.changed(way.to_function);
        } else {
            frame.function = NONE;
        }
        let first = *active == 1 && way.deepens;
        let to_node = way.first_node + (*active).min(way.recursions) - 1;
        let arc = if way.to_node == to_node { way.arc } else { self.other_level(at, way, site, to_node) };
        frame.arc = arc;
        let asks = |known: &Known| known.about.is_some_and(|about| about.asks());
        let asks = first && way.hooks && asks(&self.functions[way.to_function as usize]);
        if let Some(how) = how.filter(|_| !asks) {
            let level = to_node - way.first_node;
            let key = match how {
                _ if self.skip == NONE => Some((how, NONE)),
                CallKind::Jump => Some((CallKind::Through, jump.0)),
                _ => None,
            };
            match key {
                Some((how, jump)) if way.deepens => {
                    self.remember(how, (site, jump), &Way { arc, ..way }, returns_to, level as usize);
                }
                // On the level that it is on, how many calls are going on does not matter.
                Some((how, _)) => self.settle_call(how, 1, returns_to),
                None => {}
            }
        }
        self.book.arcs.counts(arc)[0] += 1;
        self.stack.push(frame, &self.meter, now);
        if self.skip != NONE {
            self.set_skip(NONE, now);
        }
        self.path = way.to_path;
        self.node = to_node;
        if way.hooks && first && !self.finding {
            self.entered(FunctionId(way.to_function), arc, now);
        }
        self.chain_enter(way.to_function, now);
    }

    /// Remembers a call for the fast loop, if nothing happens when it is made, and for whoever follows calls.
    #[cold]
    #[inline(never)]
    fn remember(&mut self, kind: CallKind, (site, jump): (SiteId, u32), way: &Way, returns_to: u64, level: usize) {
        // Of a function with hooks, the first call is told from others.
        let levels = if way.hooks { way.recursions.max(2) } else { way.recursions };
        self.settle_call(kind, levels, returns_to);
        // The fast loop knows nothing of whole chains.
        if way.hooks || self.walk.is_some() {
            return;
        }
        let key = CallEdgeKey { kind, site: site.0, jump, target: way.target, path: self.path, node: self.node };
        let call_edge = CallEdge {
            kind,
            node: self.node,
            path: self.path,
            to_path: way.to_path,
            first_node: way.first_node,
            recursions: way.recursions,
            function: way.to_function,
            arcs: [NONE; LEVELS],
            returns_to,
            last: 0,
        };
        self.call_edges.remember(key, call_edge, level, way.arc);
    }

    /// Lets whoever follows calls make this one alone from now on.
    fn settle_call(&mut self, kind: CallKind, levels: u32, returns_to: u64) {
        // Out of a stub: where that returns to.
        let stub = self.stack.top().filter(|_| kind == CallKind::Through).map(|f| f.returns_to);
        self.followed.settled =
            Some(Settled::Push { made: kind.into(), levels, returns_to: stub.unwrap_or(returns_to) });
    }

    /// Finds out what a call at `site` to `target` in this context is.
    #[cold]
    #[inline(never)]
    pub(super) fn learn(&mut self, code: &mut impl Code, site: SiteId, target: u64) -> (usize, usize) {
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
            plain: false,
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
            way.plain = way.deepens && !way.hooks && self.walk.is_none();
        }
        self.ways.remember(site, way)
    }

    /// Finds the arc to another level of recursion than that of `way`, which is at `at`.
    #[cold]
    #[inline(never)]
    pub(super) fn other_level(&mut self, at: (usize, usize), way: Way, site: SiteId, to_node: u32) -> u32 {
        let target = way.target;
        let known = self.ways.find(site, |w| w.fits(target, way.path, way.node) && w.to_node == to_node);
        if let Some(known) = known {
            return self.ways.at(known).arc;
        }
        let arc = self.book.arcs.row(ArcKey { site, from: self.node, target, to: to_node });
        let at = if way.to_node == NONE { at } else { self.ways.remember(site, way) };
        let way = self.ways.at(at);
        way.to_node = to_node;
        way.arc = arc;
        arc
    }

    #[inline]
    pub(super) fn pop(&mut self, now: &[u64]) {
        self.chain_leave(now);
        let Some((frame, entered)) = self.stack.pop() else { return };
        if frame.arc != NONE && !self.idle {
            self.meter.add_since(now, entered.get(), &mut self.book.arcs.counts(frame.arc)[1..]);
        }
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
        self.followed.changed(frame.function);
        if known.active == 0 && known.about.is_some_and(|about| about.has_hooks()) {
            self.left(FunctionId(frame.function), frame.way == Leave::Found, now);
        }
    }

    /// The caller of the running root is unknown: makes it up, with a call that lasted since the last dump.
    pub(super) fn underflow(&mut self, code: &mut impl Code, site: SiteId, target: u64, now: &[u64]) {
        self.set_skip(NONE, now);
        self.chain_booked(now);
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
            *count += self.meter.read(now, i).saturating_sub(self.base[i]);
        }
        self.root_changed(RootChange::Called(ArcId(row)));
        if self.functions[callee.0 as usize].active == 0 && self.function(code, callee).dump_after {
            self.requests.push_back(Request::DumpAfter(callee));
        }
    }

    /// Runs at `addr` without a caller.
    pub(super) fn begin_root(&mut self, code: &mut impl Code, addr: u64) {
        let function = self.places.get(code, addr).function;
        let about = self.function(code, function);
        self.path = self.push_path(PathId::EMPTY, function, &about);
        let info = self.contexts.info(self.path);
        let active = &mut self.functions[function.0 as usize].active;
        *active += 1;
        self.followed.changed(info.top.0);
        self.node = info.first_node + (*active).min(info.recursions) - 1;
        if let Some(walk) = &mut self.walk {
            walk.begin(info.top.0, || costs::levels(&about));
        }
    }

    /// The root does not run any more.
    pub(super) fn end_root(&mut self) {
        if self.begun && self.path != PathId::EMPTY {
            let root = self.contexts.info(self.path).top;
            let active = &mut self.functions[root.0 as usize].active;
            *active = active.saturating_sub(1);
            self.followed.changed(root.0);
        }
        self.path = PathId::EMPTY;
        self.node = NONE;
    }
}
