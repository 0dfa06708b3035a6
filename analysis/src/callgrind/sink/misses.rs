//! What single records cost a thread where caches or branches are simulated: blocks, transfers of control, and misses, which
//! are counted like blocks. Which record comes next, and whether it missed, is for those that go through the records.
//!
//! Invariant: a cost is added to the thread's totals and booked on the running function at the same time.

use cg_calls::JumpKind;

use grind_trace::operands;

use super::super::code::Catalogue;
use super::last_level::{NONE, Simulated};
use super::meaning::{Hot, Kind, NOTHING};
use super::process::Process;
use super::thread::Thread;
use crate::callgrind::columns::Depth;

impl Process {
    /// A site has missed its first level (or mispredicted its branch).
    pub(super) fn missed(
        &mut self,
        simulated: &mut Simulated,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        depth: Depth,
    ) {
        let counter = self.counter_of_miss(simulated, catalogue, site, depth);
        spend(t, counter, &self.costs);
    }

    /// The counter of a site's miss.
    #[inline]
    pub(super) fn counter_of_miss(
        &mut self,
        simulated: &mut Simulated,
        catalogue: &mut Catalogue,
        site: u32,
        depth: Depth,
    ) -> u32 {
        let known = &mut simulated.known[site as usize];
        if known.place == NONE {
            known.place = simulated.counters.len() as u32;
            simulated.counters.push([NONE; 3]);
        }
        let counter = &mut simulated.counters[known.place as usize][depth.index()];
        if *counter == NONE {
            let costs = self.columns.miss(known.missed, depth);
            *counter = self.add_counter_at(catalogue, known.addr, costs);
        }
        *counter
    }

    /// The instruction at `addr` has made so many reads and writes that are not known from its executions.
    pub(super) fn accesses(&mut self, t: &mut Thread, catalogue: &mut Catalogue, addr: u64, counts: [u64; 2]) {
        let Some(dr) = self.columns.accesses else { return };
        let counter = self.single_counter(catalogue, addr);
        for (event, n) in (dr..).zip(counts).filter(|(_, n)| *n != 0) {
            t.calls.cost(counter, event, n);
            t.now[event] += n;
        }
    }
}

/// A record that has nothing to do with simulation. Returns what is behind it, and whether a function asks for something;
/// nothing, if it is none.
pub(super) fn told<'w>(
    t: &mut Thread,
    hot: &Hot,
    costs: &[u64],
    catalogue: &mut Catalogue,
    number: u32,
    operands: &'w [u32],
) -> Option<(&'w [u32], bool)> {
    if hot.counter != NOTHING {
        t.blocks += u64::from(hot.ends);
        spend(t, hot.counter, costs);
    }
    if hot.kind == Kind::Block {
        return Some((operands, false));
    }
    let (sp, after) = operands::number(operands)?;
    let indirect = || operands::number(after);
    Some(match hot.kind {
        Kind::Call => (after, t.calls.call(catalogue, hot.site, hot.target, sp, &t.now)),
        Kind::Jump(kind) => (after, t.calls.jump(catalogue, hot.site, hot.target, sp, kind, &t.now)),
        Kind::Within(kind) => {
            t.calls.jump_within(catalogue, hot.site, hot.target, kind);
            (after, false)
        }
        Kind::Return => {
            let (target, after) = indirect()?;
            (after, t.calls.ret(catalogue, hot.site, target, sp, &t.now))
        }
        Kind::CallIndirect => {
            let (target, after) = indirect()?;
            (after, t.calls.call(catalogue, hot.site, target, sp, &t.now))
        }
        Kind::JumpIndirect => {
            let (target, after) = indirect()?;
            (after, t.calls.jump(catalogue, hot.site, target, sp, JumpKind::Always, &t.now))
        }
        Kind::Executions => {
            t.executed_apart(number, hot, sp, costs);
            (after, false)
        }
        Kind::Block | Kind::Other => return None,
    })
}

/// The counter is executed, or its miss has happened. `costs` are those of all counters, side by side.
#[inline]
pub(super) fn spend(t: &mut Thread, counter: u32, costs: &[u64]) {
    t.calls.block(counter);
    let width = t.now.len();
    let costs = &costs[counter as usize * width..][..width];
    t.now.iter_mut().zip(costs).for_each(|(now, cost)| *now += cost);
}
