//! What [`Calls::express`] does, where there are several costs, and records of a simulation stand among the others: misses,
//! which are costs of the running node.
//!
//! It does exactly what the events of [`Calls`] do, and stops at whatever is not ordinary, without having changed anything
//! for it. Invariants: nothing is remembered from one word to the next that is not written back before it returns; a reading
//! is complete whenever a frame is pushed or popped.

use super::express::{long, returns};
use super::*;

/// What one execution of a cell costs, of the costs that are known from its instructions, as far as they fit into a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(u32);

/// Bits of each cost in a [`Packed`], the lowest first.
const BITS: [u32; Packed::COSTS] = [8, 8, 8, 2, 2, 4];

impl Packed {
    /// How many costs fit.
    pub const COSTS: usize = 6;

    /// Packs these; nothing, if one of them is too large.
    pub fn new(costs: [u64; Self::COSTS]) -> Option<Packed> {
        let (mut word, mut at) = (0, 0);
        for (cost, bits) in costs.into_iter().zip(BITS) {
            if cost >> bits != 0 {
                return None;
            }
            word |= (cost as u32) << at;
            at += bits;
        }
        Some(Packed(word))
    }

    /// The word, for [`Step::cost`].
    pub fn word(self) -> u32 {
        self.0
    }
}

/// Adds a packed word to running sums.
#[inline]
fn unpack(word: u32, sums: &mut [u64; Packed::COSTS]) {
    let mut rest = word;
    for (sum, bits) in sums.iter_mut().zip(BITS) {
        *sum += u64::from(rest & ((1 << bits) - 1));
        rest >>= bits;
    }
}

/// Which costs a packed word has: their indices among the totals. Those that are not counted are always 0, and may have any
/// index.
pub type Places = [usize; Packed::COSTS];

impl Calls {
    /// Follows ordinary records at the beginning of `words`, whose first words are numbers of `steps` with [`Packed`] costs,
    /// and adds those to `now`, and the number of executed cells to `executed`. `miss` is asked about records that are not
    /// ordinary, with their number and all words from there on: it adds what it knows to the totals, and answers with the
    /// cell that this is a cost of, and the record's words; nothing, if the record is not its concern. Returns how many words
    /// it has dealt with: always whole records.
    ///
    /// # Panics
    /// If `W` is not the number of costs, or `places` has an index beyond it.
    pub fn express_wide<const W: usize>(
        &mut self,
        places: &Places,
        steps: &[Step],
        words: &[u32],
        now: &mut [u64],
        executed: &mut u64,
        mut miss: impl FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>,
    ) -> usize {
        let mut rest = words;
        // One round, unless the stack has to grow.
        while self.express_wide_on(places, steps, &mut rest, now, executed, &mut miss) {}
        words.len() - rest.len()
    }

    /// Says whether it might go on if it began again.
    fn express_wide_on<const W: usize>(
        &mut self,
        places: &Places,
        steps: &[Step],
        words: &mut &[u32],
        now: &mut [u64],
        executed: &mut u64,
        miss: &mut impl FnMut(u32, &[u32], &mut [u64; W]) -> Option<(u32, usize)>,
    ) -> bool {
        let ordinary = self.config.costs == W
            && self.begun
            && self.counting
            && self.meter.collecting()
            && self.outer.is_empty()
            && self.requests.is_empty()
            && self.bottom == 0;
        if !ordinary {
            return false;
        }
        let jumps = self.config.collect_jumps;
        // What the meter reads, but for what is known from executions since `sums` was added to it.
        let mut reading: [u64; W] = std::array::from_fn(|i| self.meter.read(now, i));
        let mut sums = [0u64; Packed::COSTS];
        let settle = |reading: &mut [u64; W], sums: &mut [u64; Packed::COSTS]| {
            for (place, sum) in places.iter().zip(sums) {
                reading[*place] += std::mem::take(sum);
            }
        };
        let Calls { book, stack, functions, routes, quiet, .. } = self;
        let (frames, entered, mut depth) = stack.all_of();
        let (entered, _) = entered.as_chunks_mut::<W>();
        let (mut path, mut node) = (self.path, self.node);
        // The stack pointer of the top frame: whatever is above it has left that.
        let mut top = depth.checked_sub(1).map_or(u64::MAX, |i| frames[i].sp);
        let mut rest = *words;
        let mut blocks = 0;
        let mut full = false;
        while let Some(&number) = rest.first() {
            let Some(step) = steps.get(number as usize) else { break };
            if step.kind == StepKind::Block {
                book.execute(node, step.cell);
                unpack(step.cost, &mut sums);
                rest = &rest[1..];
                blocks += 1;
                continue;
            }
            if step.kind == StepKind::Other {
                let Some((cell, length)) = miss(number, rest, &mut reading) else { break };
                book.execute(node, cell);
                rest = &rest[length..];
                continue;
            }
            let Some(&[low, high]) = rest.get(1..3).and_then(|w| w.first_chunk()) else { break };
            let sp = long(low, high);
            let direct = matches!(step.kind, StepKind::Call | StepKind::Jump);
            let (target, length) = match rest.get(3..5).and_then(|w| w.first_chunk()) {
                _ if direct => (step.target, 3),
                Some(&[low, high]) => (long(low, high), 5),
                None => break,
            };
            if step.kind == StepKind::Return {
                let Some(last) = depth.checked_sub(1).filter(|_| top < sp) else { break };
                let one = frames[last].way == Leave::Plain && last.checked_sub(1).is_none_or(|i| frames[i].sp >= sp);
                if !one && !returns(&frames[..depth], sp) {
                    break;
                }
                book.execute(node, step.cell);
                unpack(step.cost, &mut sums);
                settle(&mut reading, &mut sums);
                while top < sp {
                    depth -= 1;
                    let frame = &frames[depth];
                    (path, node) = (frame.path, frame.node);
                    add_since(&reading, &entered[depth], book.arcs.counts(frame.arc));
                    let active = &mut functions[frame.function as usize].active;
                    *active = active.saturating_sub(1);
                    depth -= usize::from(frame.way == Leave::Through);
                    top = depth.checked_sub(1).map_or(u64::MAX, |i| frames[i].sp);
                }
                rest = &rest[length..];
                blocks += 1;
                continue;
            }
            if top < sp {
                break;
            }
            let is_jump = matches!(step.kind, StepKind::Jump | StepKind::JumpIndirect);
            if is_jump {
                if jumps {
                    break;
                }
                if quiet.knows(step.site, target) {
                    book.execute(node, step.cell);
                    unpack(step.cost, &mut sums);
                    rest = &rest[length..];
                    blocks += 1;
                    continue;
                }
            }
            let [kind, stub] =
                if is_jump { [RouteKind::Jump, RouteKind::JumpToStub] } else { [RouteKind::Call, RouteKind::Stub] };
            let key = RouteKey { kind, site: step.site.0, jump: NONE, target, path, node };
            let found = routes.find(&key).or_else(|| routes.find(&RouteKey { kind: stub, ..key }));
            let Some(route) = found.and_then(|n| routes.get(n)) else { break };
            if depth + 2 > frames.len() {
                full = true;
                break;
            }
            // A jump pushes nothing.
            let sp = if is_jump && depth > 0 { top } else { sp };
            if matches!(route.kind, RouteKind::Stub | RouteKind::JumpToStub) {
                // And the jump from it, if nothing was missed on the way.
                let (row, returns_to) = (route.arcs[0], route.returns_to);
                let Some(&[next, sp_low, sp_high, to_low, to_high]) =
                    rest.get(length..length + 5).and_then(|w| w.first_chunk())
                else {
                    break;
                };
                let Some(jump) = steps.get(next as usize).filter(|j| j.kind == StepKind::JumpIndirect) else { break };
                let key = RouteKey {
                    kind: RouteKind::Through,
                    site: step.site.0,
                    jump: jump.site.0,
                    target: long(to_low, to_high),
                    path,
                    node,
                };
                let Some(route) = routes.find(&key).and_then(|n| routes.get(n)) else { break };
                let active = functions[route.function as usize].active + 1;
                let Some((to_node, arc)) = route.leads_to(route.level(active)) else { break };
                if row == NONE || sp < long(sp_low, sp_high) {
                    break;
                }
                book.execute(node, step.cell);
                unpack(step.cost, &mut sums);
                settle(&mut reading, &mut sums);
                let (arc_of_stub, way) = (NONE, Leave::Other);
                frames[depth] = Frame { sp, returns_to, arc: arc_of_stub, function: NONE, path, node, skip: NONE, way };
                entered[depth] = reading;
                unpack(jump.cost, &mut sums);
                let skipped = book.skips.counts(row);
                for (place, sum) in places.iter().zip(&sums) {
                    skipped[*place] += sum;
                }
                settle(&mut reading, &mut sums);
                let (function, way) = (route.function, Leave::Through);
                frames[depth + 1] = Frame { sp, returns_to: 0, arc, function, path, node, skip: row, way };
                entered[depth + 1] = reading;
                depth += 2;
                book.arcs.counts(arc)[0] += 1;
                functions[function as usize].active = active;
                (path, node, top) = (route.to_path, to_node, sp);
                rest = &rest[length + 5..];
                blocks += 2;
                continue;
            }
            let function = route.function;
            let active = functions[function as usize].active + 1;
            let Some((to_node, arc)) = route.leads_to(route.level(active)) else { break };
            book.execute(node, step.cell);
            unpack(step.cost, &mut sums);
            settle(&mut reading, &mut sums);
            functions[function as usize].active = active;
            book.arcs.counts(arc)[0] += 1;
            let (returns_to, way) = (route.returns_to, Leave::Plain);
            frames[depth] = Frame { sp, returns_to, arc, function, path, node, skip: NONE, way };
            entered[depth] = reading;
            depth += 1;
            (path, node, top) = (route.to_path, to_node, sp);
            rest = &rest[length..];
            blocks += 1;
        }
        settle(&mut reading, &mut sums);
        stack.set_depth(depth);
        (self.path, self.node) = (path, node);
        self.meter.totals_of(&reading, now);
        *executed += blocks;
        *words = rest;
        full
    }
}

/// Adds what the reading has grown by to the costs of an arc, whose first count is that of its calls.
#[inline]
fn add_since<const W: usize>(reading: &[u64; W], entered: &[u64; W], counts: &mut [u64]) {
    if let Some(costs) = counts[1..].first_chunk_mut::<W>() {
        for i in 0..W {
            costs[i] += reading[i].wrapping_sub(entered[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_packed_if_they_fit() {
        let costs = [255, 3, 200, 1, 2, 15];
        let packed = Packed::new(costs).expect("small costs");
        let mut sums = [1; Packed::COSTS];
        unpack(packed.word(), &mut sums);
        assert_eq!(sums, costs.map(|cost| cost + 1));
        assert_eq!(Packed::new([256, 0, 0, 0, 0, 0]), None);
        assert_eq!(Packed::new([1, 0, 0, 4, 0, 0]), None);
    }
}
