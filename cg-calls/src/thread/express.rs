//! The ordinary, fast: blocks, calls that a site has made before in the same context, and returns from them, read straight
//! from the words of a trace. It does exactly what the events of [`Calls`] do, and stops at whatever is not ordinary, without
//! having changed anything for it: that is for those events.
//!
//! Invariant: nothing is remembered from one word to the next that is not written back before it returns.

use super::*;

/// What the ordinary part of a record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The cell is executed. One word.
    Block,
    /// It is executed, and calls the target. Three words, of which the last two are the stack pointer.
    Call,
    /// It is executed, and calls what the last two of five words say; the two before are the stack pointer.
    CallIndirect,
    /// It is executed, and returns. Five words as for `CallIndirect`.
    Return,
    /// It is executed, and jumps to what the last two of five words say.
    JumpIndirect,
    /// Not ordinary.
    Other,
}

/// What a record means, by its first word.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The kind.
    pub kind: StepKind,
    /// The cell that is executed.
    pub cell: u32,
    /// What that costs.
    pub cost: u32,
    /// The instruction that transfers control.
    pub site: SiteId,
    /// Where it leads.
    pub target: u64,
}

#[inline]
fn long(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Calls {
    /// Follows ordinary records at the beginning of `words`, whose first words are indices into `steps`, and adds their costs
    /// to the only total, `now`, and the number of cells executed to `executed`. Returns how many words it has dealt with: always whole records.
    pub fn express(&mut self, steps: &[Step], words: &[u32], now: &mut u64, executed: &mut u64) -> usize {
        let ordinary = self.config.costs == 1
            && self.begun
            && self.counting
            && self.outer.is_empty()
            && self.requests.is_empty()
            && self.bottom == 0;
        let jumps = self.config.collect_jumps;
        let Some(ahead) = self.meter.ahead_of_one().filter(|_| ordinary) else { return 0 };
        let (mut path, mut node, mut total) = (self.path, self.node, *now);
        let mut at = 0;
        let mut records = 0;
        // The stack pointer of the top frame: whatever is above it has left that.
        let mut top = self.stack.top().map_or(u64::MAX, |f| f.sp);
        while let Some(&number) = words.get(at) {
            let Some(step) = steps.get(number as usize) else { break };
            if step.kind == StepKind::Block {
                if !self.book.execute_again(node, step.cell) {
                    break;
                }
                total = total.wrapping_add(step.cost.into());
                at += 1;
                records += 1;
                continue;
            }
            if step.kind == StepKind::Other {
                break;
            }
            let Some(&[low, high]) = words.get(at + 1..at + 3).and_then(|w| w.first_chunk()) else { break };
            let sp = long(low, high);
            if step.kind == StepKind::Return {
                // One frame, made by an ordinary call, and just that one; or with that of the stub that led to it.
                let Some(frame) = self.stack.top().filter(|f| f.plain && f.sp < sp) else { break };
                let through_stub = frame.skip != NONE;
                let below = self.stack.below(1).map_or(u64::MAX, |f| f.sp);
                let next = if through_stub { self.stack.below(2).map_or(u64::MAX, |f| f.sp) } else { below };
                if through_stub && below >= sp || next < sp || at + 5 > words.len() {
                    break;
                }
                if !self.book.execute_again(node, step.cell) {
                    break;
                }
                total = total.wrapping_add(step.cost.into());
                (path, node) = (frame.path, frame.node);
                let (arc, function) = (frame.arc, frame.function);
                let entered = self.stack.drop_top_of_one();
                if through_stub {
                    self.stack.drop_top_of_one();
                }
                self.book.arcs.counts(arc)[1] += total.wrapping_sub(ahead).wrapping_sub(entered);
                let active = &mut self.functions[function as usize].active;
                *active = active.saturating_sub(1);
                top = next;
                at += 5;
                records += 1;
                continue;
            }
            let (target, length) = match step.kind {
                StepKind::Call => (step.target, 3),
                _ => match words.get(at + 3..at + 5).and_then(|w| w.first_chunk()) {
                    Some(&[low, high]) => (long(low, high), 5),
                    None => break,
                },
            };
            if step.kind == StepKind::JumpIndirect {
                if jumps
                    || top < sp
                    || !self.quiet.knows(step.site, target)
                    || !self.book.execute_again(node, step.cell)
                {
                    break;
                }
                total = total.wrapping_add(step.cost.into());
                at += length;
                records += 1;
                continue;
            }
            let mut ways = self.ways.of(step.site).iter();
            let found = ways.find_map(|way| {
                let active = self.functions.get(way.to_function as usize)?.active + 1;
                let to_node = (way.first_node + active.min(way.recursions)).wrapping_sub(1);
                (way.plain && way.fits(target, path, node) && to_node == way.to_node).then_some((way, active, to_node))
            });
            let Some((way, active, to_node)) = found else {
                // A stub, and the jump from it?
                let stub = self
                    .ways
                    .of(step.site)
                    .iter()
                    .find(|way| way.skip && way.arc != NONE && way.fits(target, path, node));
                let (Some(stub), Some(&[number, sp_low, sp_high, to_low, to_high])) =
                    (stub, words.get(at + length..at + length + 5).and_then(|w| w.first_chunk::<5>()))
                else {
                    break;
                };
                let Some(jump) = steps.get(number as usize).filter(|j| j.kind == StepKind::JumpIndirect) else { break };
                let to = long(to_low, to_high);
                let found = self.ways.of(step.site).iter().find_map(|way| {
                    let active = self.functions.get(way.to_function as usize)?.active + 1;
                    let to_node = (way.first_node + active.min(way.recursions)).wrapping_sub(1);
                    (way.plain && way.fits(to, path, node) && to_node == way.to_node).then_some((way, active, to_node))
                });
                let Some((way, active, to_node)) = found else { break };
                // Only from a stub is that jump known to be a call.
                if self.quiet.knows(jump.site, to)
                    || long(sp_low, sp_high) != sp
                    || top < sp
                    || !self.book.execute_again(node, step.cell)
                {
                    break;
                }
                total = total.wrapping_add(step.cost.into());
                let skipped = Frame {
                    sp,
                    returns_to: stub.next,
                    arc: NONE,
                    function: NONE,
                    path,
                    node,
                    skip: NONE,
                    plain: false,
                };
                let called = Frame {
                    sp,
                    returns_to: 0,
                    arc: way.arc,
                    function: way.to_function,
                    path,
                    node,
                    skip: stub.arc,
                    plain: true,
                };
                self.stack.push_one(skipped, total.wrapping_sub(ahead));
                total = total.wrapping_add(jump.cost.into());
                self.stack.push_one(called, total.wrapping_sub(ahead));
                self.book.skips.counts(stub.arc)[0] += u64::from(jump.cost);
                self.book.arcs.counts(way.arc)[0] += 1;
                self.functions[way.to_function as usize].active = active;
                (path, node) = (way.to_path, to_node);
                top = sp;
                at += length + 5;
                records += 2;
                continue;
            };
            if top < sp || !self.book.execute_again(node, step.cell) {
                break;
            }
            let known = &mut self.functions[way.to_function as usize];
            total = total.wrapping_add(step.cost.into());
            known.active = active;
            self.book.arcs.counts(way.arc)[0] += 1;
            let frame = Frame {
                sp,
                returns_to: way.next,
                arc: way.arc,
                function: way.to_function,
                path,
                node,
                skip: NONE,
                plain: true,
            };
            self.stack.push_one(frame, total.wrapping_sub(ahead));
            (path, node) = (way.to_path, to_node);
            top = sp;
            at += length;
            records += 1;
        }
        (self.path, self.node, *now) = (path, node, total);
        *executed += records;
        at
    }
}
