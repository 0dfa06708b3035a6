//! The ordinary, fast: blocks, calls that a site has made before in the same context, and returns from them, read straight
//! from the words of a trace. It does exactly what the events of [`Calls`] do, and stops at whatever is not ordinary, without
//! having changed anything for it: that is for those events, which remember the call edges that calls take here. Misses of a
//! simulation may stand among the records (see [`super::wide`]): they are costs of the running node.
//!
//! Invariants: nothing is remembered from one word to the next that is not written back before it returns; a reading is
//! complete whenever a frame is pushed or popped.

use super::*;

#[inline]
pub(super) fn long(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Words that are looked at together: the longest ordinary record, twice.
const AHEAD: usize = 10;

/// What the loop does with costs: there may be one, or several.
pub(super) trait Costs {
    /// How many there are.
    const COSTS: usize;
    /// After so many executions, twice at most, [`Costs::settle`] must be called.
    const RUN: usize;
    /// A counter was executed that costs this.
    fn add(&mut self, cost: u32);
    /// Makes the reading complete; nobody but the other functions here looks at it before.
    fn settle(&mut self);
    /// The frame `depth` is entered now. `entered` has the readings at entry of all frames.
    fn enter(&self, entered: &mut [u64], depth: usize);
    /// It is left: adds what it has cost to those of its arc, the first of whose counts is that of its calls.
    fn leave(&self, entered: &[u64], depth: usize, arc: &mut [u64]);
    /// A counter was executed that costs this, but what is skipped counts for others, who have these costs.
    fn skip(&mut self, cost: u32, others: &mut [u64]);
    /// A record that is not ordinary, and all words from there on: the counter that it is a cost of, and its words; nothing if
    /// somebody else has to deal with it.
    fn other(&mut self, number: u32, words: &[u32]) -> Option<(u32, usize)>;
}

/// Several costs: what the meter reads, and who knows what records that are not ordinary cost.
pub(super) struct Several<const W: usize, M> {
    pub(super) reading: [u64; W],
    pub(super) miss: M,
}

impl<const W: usize, M: FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>> Several<W, M> {
    /// See [`Costs::enter`].
    #[inline]
    pub(super) fn enter(&self, entered: &mut [u64], depth: usize) {
        entered[depth * W..][..W].copy_from_slice(&self.reading);
    }

    /// See [`Costs::leave`].
    #[inline]
    pub(super) fn leave(&self, entered: &[u64], depth: usize, arc: &mut [u64]) {
        let entered = &entered[depth * W..][..W];
        for (cost, (reading, entered)) in arc[1..][..W].iter_mut().zip(self.reading.iter().zip(entered)) {
            *cost += reading.wrapping_sub(*entered);
        }
    }

    /// See [`Costs::other`].
    #[inline]
    pub(super) fn other(&mut self, number: u32, words: &[u32]) -> Option<(u32, usize)> {
        (self.miss)(number, words, &mut self.reading)
    }
}

/// The only cost.
struct One {
    reading: u64,
}

impl Costs for One {
    const COSTS: usize = 1;
    const RUN: usize = usize::MAX;

    #[inline(always)]
    fn add(&mut self, cost: u32) {
        self.reading += u64::from(cost);
    }

    #[inline(always)]
    fn settle(&mut self) {}

    #[inline(always)]
    fn enter(&self, entered: &mut [u64], depth: usize) {
        entered[depth] = self.reading;
    }

    #[inline(always)]
    fn leave(&self, entered: &[u64], depth: usize, arc: &mut [u64]) {
        if let [_, cost] = arc {
            *cost += self.reading.wrapping_sub(entered[depth]);
        }
    }

    #[inline(always)]
    fn skip(&mut self, cost: u32, others: &mut [u64]) {
        self.add(cost);
        others[0] += u64::from(cost);
    }

    #[inline(always)]
    fn other(&mut self, _: u32, _: &[u32]) -> Option<(u32, usize)> {
        None
    }
}

impl Calls {
    /// Follows ordinary records at the beginning of `words`, whose first words are indices into `steps`, and adds their costs
    /// to the only total, `now`. Returns how many words it has dealt with: always whole records. `steps` may only ever grow.
    pub fn fast_path(&mut self, steps: &[Step], words: &[u32], now: &mut u64) -> usize {
        let now = std::slice::from_mut(now);
        let mut costs = One { reading: self.meter.read(now, 0) };
        let done = self.fast_path_by(&mut costs, steps, words);
        if done > 0 {
            self.meter.totals_of(&[costs.reading], now);
        }
        done
    }

    /// How many basic blocks have ended in what the fast path has dealt with.
    pub fn ended(&self) -> u64 {
        self.site_counters.ended()
    }

    /// The same, with whatever costs there are, which begin with the meter's reading.
    pub(super) fn fast_path_by<C: Costs>(&mut self, costs: &mut C, steps: &[Step], words: &[u32]) -> usize {
        if self.site_counters.ways.len() < steps.len() {
            self.site_counters.grow(steps);
        }
        let ordinary = self.config.costs == C::COSTS
            && self.begun
            && self.counting
            && self.meter.collecting()
            && self.outer.is_empty()
            && self.requests.is_empty()
            && self.bottom == 0;
        let mut rest = words;
        // One round, unless the stack has to grow.
        while ordinary && self.fast_path_on(costs, &mut rest) {}
        words.len() - rest.len()
    }

    /// Says whether it might go on if it began again.
    fn fast_path_on<C: Costs>(&mut self, costs: &mut C, words: &mut &[u32]) -> bool {
        let jumps = self.config.collect_jumps;
        let Calls { book, stack, functions, site_counters, call_edges, quiet, .. } = self;
        let (frames, entered, mut depth) = stack.all_of();
        let (mut path, mut node) = (self.path, self.node);
        // The stack pointer of the top frame: whatever is above it has left that.
        let mut top = depth.checked_sub(1).map_or(u64::MAX, |i| frames[i].sp);
        let mut rest = *words;
        // Executions since costs were settled.
        let mut unsettled = 0;
        let mut full = false;
        loop {
            // Blocks first: most records are.
            let parity = (node & 1) as usize;
            let here = &mut site_counters.site_counters[parity][..];
            let run = rest.iter().take(C::RUN).take_while(|&&number| match here.get_mut(number as usize) {
                Some(site_counter) if site_counter.is(StepKind::Block, node) => {
                    site_counter.count += 1;
                    costs.add(site_counter.cost);
                    true
                }
                _ => false,
            });
            let run = run.count();
            rest = &rest[run..];
            unsettled += run;
            if unsettled >= C::RUN {
                costs.settle();
                unsettled = 0;
            }
            let Some(ahead) = rest.first_chunk::<AHEAD>() else { break };
            let number = ahead[0] as usize;
            let Some(site_counter) = here.get_mut(number) else { break };
            let cost = site_counter.cost;
            let sp = long(ahead[1], ahead[2]);
            // Of what follows, at most one execution.
            unsettled += 1;
            if site_counter.is(StepKind::Return, node) {
                // Of an ordinary call alone, as a rule.
                if let Some([.., below, frame]) = frames.get(..depth)
                    && frame.way == Leave::Plain
                    && frame.sp < sp
                    && below.sp >= sp
                    && let Some(function) = functions.get_mut(frame.function as usize)
                {
                    site_counter.count += 1;
                    costs.add(cost);
                    costs.settle();
                    (path, node) = (frame.path, frame.node);
                    costs.leave(entered, depth - 1, book.arcs.counts(frame.arc));
                    function.active = function.active.wrapping_sub(1);
                    (depth, top) = (depth - 1, below.sp);
                } else {
                    // Frames that were made by ordinary calls, and at least one.
                    if top >= sp || depth == 0 || !returns(&frames[..depth], sp) {
                        break;
                    }
                    site_counter.count += 1;
                    costs.add(cost);
                    costs.settle();
                    while top < sp {
                        let frame = &frames[depth - 1];
                        depth -= 1;
                        (path, node) = (frame.path, frame.node);
                        costs.leave(entered, depth, book.arcs.counts(frame.arc));
                        let active = &mut functions[frame.function as usize].active;
                        *active = active.saturating_sub(1);
                        depth -= usize::from(frame.way == Leave::Through);
                        top = depth.checked_sub(1).map_or(u64::MAX, |i| frames[i].sp);
                    }
                }
                unsettled = 0;
                rest = &rest[5..];
                continue;
            }
            let Some(ways) = site_counters.ways.get_mut(number) else { break };
            if !site_counter.is_of(node) {
                if ways.kind == StepKind::Other {
                    let Some((counter, length)) = costs.other(ahead[0], rest) else { break };
                    book.execute(node, counter);
                    rest = &rest[length..];
                    continue;
                }
                book.adopt(site_counters, number, node);
                continue;
            }
            if top < sp {
                break;
            }
            if site_counter.is(StepKind::Call, node)
                && let Some(call_edge) =
                    call_edges.get(ways.last[0]).filter(|r| r.node == node).or(call_edges.get(ways.last[1]))
                && call_edge.node == node
                && call_edge.path == path
                && call_edge.kind == CallKind::Call
                && let Some(known) = functions.get_mut(call_edge.function as usize)
                && call_edge.level(known.active + 1) == call_edge.last
                && let Some((to_node, arc)) = call_edge.leads_to(call_edge.last)
                && let Some(frame) = frames.get_mut(depth)
            {
                site_counter.count += 1;
                costs.add(cost);
                costs.settle();
                unsettled = 0;
                known.active += 1;
                book.arcs.counts(arc)[0] += 1;
                frame.sp = sp;
                frame.returns_to = call_edge.returns_to;
                frame.arc = arc;
                frame.function = call_edge.function;
                frame.path = path;
                frame.node = node;
                frame.skip = NONE;
                frame.way = Leave::Plain;
                costs.enter(entered, depth);
                depth += 1;
                (path, node, top) = (call_edge.to_path, to_node, sp);
                rest = &rest[3..];
                continue;
            }
            let kind = ways.kind;
            let direct = matches!(kind, StepKind::Call | StepKind::Jump);
            let target = if direct { ways.target } else { long(ahead[3], ahead[4]) };
            let length = if direct { 3 } else { 5 };
            let is_jump = matches!(kind, StepKind::Jump | StepKind::JumpIndirect);
            if is_jump {
                if jumps {
                    break;
                }
                if quiet.knows(ways.site, target) {
                    site_counter.count += 1;
                    costs.add(cost);
                    rest = &rest[length..];
                    continue;
                }
            }
            // Found without the help of the node, so that the processor need not know that yet to go on.
            let fits = |number: u32| call_edges.get(number).is_some_and(|r| r.node == node && r.path == path);
            let number_of_call_edge = if direct && fits(ways.last[0]) {
                ways.last[0]
            } else if direct && fits(ways.last[1]) {
                ways.last[1]
            } else {
                let [kind, stub] =
                    if is_jump { [CallKind::Jump, CallKind::JumpToStub] } else { [CallKind::Call, CallKind::Stub] };
                let key = CallEdgeKey { kind, site: ways.site.0, jump: NONE, target, path, node };
                let found = call_edges.find(&key).or_else(|| call_edges.find(&CallEdgeKey { kind: stub, ..key }));
                let Some(found) = found else { break };
                ways.last[parity] = found;
                found
            };
            let Some(call_edge) = call_edges.get(number_of_call_edge) else { break };
            if depth + 2 > frames.len() {
                full = true;
                break;
            }
            // A jump pushes nothing.
            let sp = if is_jump && depth > 0 { top } else { sp };
            if matches!(call_edge.kind, CallKind::Stub | CallKind::JumpToStub) {
                // And the jump from it.
                let (row, returns_to) = (call_edge.arcs[0], call_edge.returns_to);
                let Some([next, sp_low, sp_high, to_low, to_high]) = rest[length..].first_chunk::<5>() else { break };
                let next = *next as usize;
                let (site, Some(jump)) =
                    (ways.site, site_counters.ways.get(next).filter(|j| j.kind == StepKind::JumpIndirect))
                else {
                    break;
                };
                let (added, ends) = (here[next].cost, jump.ends);
                let key = CallEdgeKey {
                    kind: CallKind::Through,
                    site: site.0,
                    jump: jump.site.0,
                    target: long(*to_low, *to_high),
                    path,
                    node,
                };
                let Some(call_edge) = call_edges.find(&key).and_then(|n| call_edges.get(n)) else { break };
                let active = functions[call_edge.function as usize].active + 1;
                let Some((to_node, arc)) = call_edge.leads_to(call_edge.level(active)) else { break };
                if row == NONE || sp < long(*sp_low, *sp_high) {
                    break;
                }
                here[number].count += 1;
                costs.add(cost);
                costs.settle();
                let (arc_of_stub, way) = (NONE, Leave::Other);
                frames[depth] = Frame { sp, returns_to, arc: arc_of_stub, function: NONE, path, node, skip: NONE, way };
                costs.enter(entered, depth);
                costs.skip(added, book.skips.counts(row));
                costs.settle();
                unsettled = 0;
                let (function, way) = (call_edge.function, Leave::Through);
                frames[depth + 1] = Frame { sp, returns_to: 0, arc, function, path, node, skip: row, way };
                costs.enter(entered, depth + 1);
                depth += 2;
                book.arcs.counts(arc)[0] += 1;
                functions[function as usize].active = active;
                (path, node, top) = (call_edge.to_path, to_node, sp);
                rest = &rest[length + 5..];
                site_counters.ended += u64::from(ends);
                continue;
            }
            let function = call_edge.function;
            let active = functions[function as usize].active + 1;
            let level = call_edge.last;
            if call_edge.level(active) != level {
                let level = call_edge.level(active);
                call_edges.turn(number_of_call_edge, level);
                continue;
            }
            let Some((to_node, arc)) = call_edge.leads_to(level) else { break };
            site_counter.count += 1;
            costs.add(cost);
            costs.settle();
            unsettled = 0;
            functions[function as usize].active = active;
            book.arcs.counts(arc)[0] += 1;
            let frame = &mut frames[depth];
            frame.sp = sp;
            frame.returns_to = call_edge.returns_to;
            frame.arc = arc;
            frame.function = function;
            frame.path = path;
            frame.node = node;
            frame.skip = NONE;
            frame.way = Leave::Plain;
            costs.enter(entered, depth);
            depth += 1;
            (path, node, top) = (call_edge.to_path, to_node, sp);
            rest = &rest[length..];
        }
        costs.settle();
        stack.set_depth(depth);
        (self.path, self.node) = (path, node);
        *words = rest;
        full
    }
}

/// Whether a return to the stack pointer `sp` pops frames of ordinary calls alone.
#[inline(never)]
pub(super) fn returns(frames: &[Frame], sp: u64) -> bool {
    let mut leaving = frames.iter().rev();
    while let Some(frame) = leaving.next().filter(|f| f.sp < sp) {
        let fine = match frame.way {
            Leave::Plain => true,
            Leave::Through => leaving.next().is_some_and(|stub| stub.sp < sp),
            Leave::Other | Leave::Found => false,
        };
        if !fine {
            return false;
        }
    }
    true
}
