//! A side of the report as columns: functions, cycles, arcs, rows, calls and jumps, in the order of function numbers.
//!
//! The numbers are the model's; nothing is computed here but their order. Columns of the base of a comparison have the
//! prefix `b.`; both sides number functions alike.

use std::io;

use cg_format::callgrind::FunctionId;
use cg_model::CallSite;

use crate::load::Side;
use crate::pack::{Pack, Shown};
use crate::samples;

/// What columns begin with that have inlined functions apart.
const INLINED: &str = "i.";
/// What columns begin with that have functions apart by their contexts.
pub(crate) const CONTEXTS: &str = "c.";
/// The function has rows of self cost; others are only called.
const HAS_ROWS: u64 = 1;
/// What callers saw differs from what the function spent with its callees.
const INCOMPLETE: u64 = 2;

/// Packs a side with the events that the report shows, but for its contexts. Gives the number of functions that are marked as incomplete.
pub(crate) fn pack(pack: &mut Pack, side: &Side, prefix: &str, events: &[Shown]) -> io::Result<usize> {
    let model = &side.model;
    let functions = model.rows.len();
    let incomplete = entries(pack, side, prefix, events)?;
    let name = |what: &str| format!("{prefix}{what}");
    pack.numbers(name("cy.number"), 1..=model.cycles() as u64)?;
    for Shown { event, number } in events {
        pack.costs(name(&format!("cy.self.{number}")), model.cycle_own(*event))?;
        pack.costs(name(&format!("cy.incl.{number}")), model.cycle_inclusive(*event))?;
    }
    let arcs = &model.calls;
    pack.close(name("arc.from"), offsets(functions, arcs.iter().map(|arc| arc.caller.index())))?;
    pack.close(name("arc.to"), column(arcs, |arc| arc.callee.index() as u64))?;
    pack.numbers(name("arc.count"), column(arcs, |arc| arc.count))?;
    pack.numbers(name("arc.within"), column(arcs, |arc| u64::from(model.within(arc.caller, arc.callee))))?;
    pack_arc_costs(pack, side, prefix, events)?;
    details(pack, side, prefix, functions, events)?;
    if let Some(apart) = &side.apart {
        self::pack(pack, apart, &name(INLINED), events)?;
    }
    if let Some(chains) = &side.chains {
        chains.pack(pack, prefix, events)?;
    }
    if let Some(runs) = &side.runs {
        runs.pack(pack, prefix, events)?;
    }
    Ok(incomplete)
}

/// What calls cost, also those within cycles: the page needs that to follow paths, and says that it is no sum. One event at a time: there
/// may be millions of calls.
fn pack_arc_costs(pack: &mut Pack, side: &Side, prefix: &str, events: &[Shown]) -> io::Result<()> {
    let arcs = &side.model.calls;
    let place = |call: &CallSite| {
        let found = arcs.binary_search_by_key(&(call.function, call.callee), |arc| (arc.caller, arc.callee));
        u32::try_from(found.unwrap_or(arcs.len())).unwrap_or(u32::MAX)
    };
    let of: Vec<u32> = side.detail.calls.iter().map(place).collect();
    for Shown { event, number } in events {
        let mut costs = vec![0_i64; arcs.len()];
        for (call, at) in side.detail.calls.iter().zip(&of) {
            if let Some(cost) = costs.get_mut(*at as usize) {
                // Calls outside of cycles were added up without a fault by the model.
                *cost = cost.saturating_add(side.detail.call_cost(call, *event));
            }
        }
        pack.costs(format!("{prefix}arc.cost.{number}"), costs.into_iter())?;
    }
    Ok(())
}

fn entries(pack: &mut Pack, side: &Side, prefix: &str, events: &[Shown]) -> io::Result<usize> {
    let Side { model, detail, .. } = side;
    let count = model.rows.len();
    let mut calls = vec![0_u64; count];
    for arc in &model.calls {
        let sum = &mut calls[arc.callee.index()];
        *sum = sum.saturating_add(arc.count);
    }
    let mut incomplete = vec![false; count];
    // What is spread is no sum that callers saw.
    let spread = model.events.iter().position(|name| side.sampled.is_some() && name == samples::EVENT);
    for Shown { event, .. } in events.iter().filter(|shown| Some(shown.event) != spread) {
        let seen = model.seen(detail, *event);
        let told = seen.into_iter().zip(model.spent(detail, *event)).zip(&model.cycle);
        for (((seen, spent), cycle), incomplete) in told.zip(&mut incomplete) {
            *incomplete |= *cycle == 0 && seen.is_some_and(|seen| seen != spent);
        }
    }
    let flags = model.rows.iter().zip(&incomplete);
    let flags = flags.map(|(rows, incomplete)| u64::from(*rows) * HAS_ROWS + u64::from(*incomplete) * INCOMPLETE);
    pack.numbers(format!("{prefix}fn.flags"), flags)?;
    pack.numbers(format!("{prefix}fn.cycle"), column(&model.cycle, |cycle| u64::from(*cycle)))?;
    pack.numbers(format!("{prefix}fn.calls"), calls.into_iter())?;
    for Shown { event, number } in events {
        pack.costs(format!("{prefix}fn.self.{number}"), model.own(*event))?;
        pack.costs(format!("{prefix}fn.incl.{number}"), model.inclusive(*event))?;
    }
    for Shown { event, number } in events {
        let seen = model.seen(detail, *event);
        pack.costs(format!("{prefix}fn.seen.{number}"), seen.iter().map(|seen| seen.unwrap_or(0)))?;
    }
    Ok(incomplete.into_iter().filter(|incomplete| *incomplete).count())
}

fn details(pack: &mut Pack, side: &Side, prefix: &str, functions: usize, events: &[Shown]) -> io::Result<()> {
    let detail = &side.detail;
    let name = |what: &str| format!("{prefix}{what}");
    let of = |function: FunctionId| function.index();
    pack.close(name("row.from"), offsets(functions, detail.rows.iter().map(|row| of(row.function))))?;
    pack.close(name("row.file"), column(&detail.rows, |row| row.at().file.index() as u64))?;
    pack.close(name("row.line"), column(&detail.rows, |row| u64::from(row.at().place.line)))?;
    for Shown { event, number } in events {
        let costs = column(&detail.rows, |row| detail.row_cost(row, *event));
        pack.costs(name(&format!("row.cost.{number}")), costs)?;
    }
    pack.close(name("call.from"), offsets(functions, detail.calls.iter().map(|call| of(call.function))))?;
    pack.close(name("call.file"), column(&detail.calls, |call| call.at().file.index() as u64))?;
    pack.close(name("call.line"), column(&detail.calls, |call| u64::from(call.at().place.line)))?;
    pack.close(name("call.to"), column(&detail.calls, |call| of(call.callee) as u64))?;
    pack.numbers(name("call.count"), column(&detail.calls, |call| call.count))?;
    for Shown { event, number } in events {
        let costs = column(&detail.calls, |call| detail.call_cost(call, *event));
        pack.costs(name(&format!("call.cost.{number}")), costs)?;
    }
    let jumps = &detail.jumps;
    pack.close(name("jump.from"), offsets(functions, jumps.iter().map(|jump| of(jump.function))))?;
    pack.close(name("jump.file"), column(jumps, |jump| jump.at().file.index() as u64))?;
    pack.close(name("jump.line"), column(jumps, |jump| u64::from(jump.at().place.line)))?;
    pack.close(name("jump.tofn"), column(jumps, |jump| of(jump.target_function) as u64))?;
    pack.close(name("jump.tofile"), column(jumps, |jump| jump.target().file.index() as u64))?;
    pack.close(name("jump.toline"), column(jumps, |jump| u64::from(jump.target().place.line)))?;
    pack.numbers(name("jump.taken"), column(jumps, |jump| jump.taken))?;
    pack.numbers(name("jump.executed"), column(jumps, |jump| jump.executed().unwrap_or(0)))?;
    pack.numbers(name("jump.cond"), column(jumps, |jump| u64::from(jump.executed().is_some())))?;
    if detail.addresses {
        pack.close(name("row.addr"), column(&detail.rows, |row| row.at().place.addr))?;
        pack.close(name("call.addr"), column(&detail.calls, |call| call.at().place.addr))?;
        pack.close(name("jump.addr"), column(jumps, |jump| jump.at().place.addr))?;
        pack.close(name("jump.toaddr"), column(jumps, |jump| jump.target().place.addr))?;
    }
    Ok(())
}

fn column<'a, T, V, F: Fn(&'a T) -> V + Clone>(
    items: &'a [T],
    value: F,
) -> impl Iterator<Item = V> + Clone + use<'a, T, V, F> {
    items.iter().map(value)
}

/// Where the entries of each function begin, and where the last ones end, if `owners` ascend.
fn offsets(functions: usize, owners: impl Iterator<Item = usize>) -> std::vec::IntoIter<u64> {
    let mut offsets = vec![0_u64; functions + 1];
    owners.for_each(|owner| offsets[owner + 1] += 1);
    for at in 0..functions {
        offsets[at + 1] += offsets[at];
    }
    offsets.into_iter()
}
