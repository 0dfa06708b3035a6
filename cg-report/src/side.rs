//! A side of the report as columns: functions, cycles, arcs, rows, calls and jumps, in the order of function numbers.
//!
//! The numbers are the model's; nothing is computed here but their order. Columns of the base of a comparison have the
//! prefix `b.`; both sides number functions alike.

use std::io;

use cg_format::callgrind::FunctionId;
use cg_model::{CallSite, Cost, Entry, Link};

use crate::load::Side;
use crate::pack::{Pack, Shown};

/// The function has rows of self cost; others are only called.
const HAS_ROWS: u64 = 1;
/// What callers saw differs from what the function spent with its callees.
const INCOMPLETE: u64 = 2;

/// Packs a side with the events that the report shows. Gives the number of functions that are
/// marked as incomplete.
pub(crate) fn pack(pack: &mut Pack, side: &Side, prefix: &str, events: &[Shown]) -> io::Result<usize> {
    let functions = side.model.entries.iter().take_while(|entry| entry.function.is_some()).count();
    let (own, cycles) = side.model.entries.split_at(functions);
    let links = links(&side.model.links, functions);
    let incomplete = entries(pack, prefix, own, &links, events)?;
    let name = |what: &str| format!("{prefix}{what}");
    pack.numbers(name("cy.number"), column(cycles, |entry| entry.cycle.unwrap_or(0) as u64))?;
    for Shown { event, number } in events {
        pack.costs(name(&format!("cy.self.{number}")), column(cycles, |entry| entry.own.value(*event)))?;
        pack.costs(name(&format!("cy.incl.{number}")), column(cycles, |entry| entry.inclusive.value(*event)))?;
    }
    pack.close(name("arc.from"), offsets(functions, links.iter().map(|link| link.caller)))?;
    pack.close(name("arc.to"), column(&links, |link| link.callee as u64))?;
    pack.numbers(name("arc.count"), column(&links, |link| link.count))?;
    pack.numbers(name("arc.within"), column(&links, |link| u64::from(link.cost.is_none())))?;
    pack_arc_costs(pack, side, prefix, &links, events)?;
    details(pack, side, prefix, functions, events)?;
    if let Some(chains) = &side.chains {
        chains.pack(pack, prefix, events)?;
    }
    if let Some(runs) = &side.runs {
        runs.pack(pack, prefix, events)?;
    }
    Ok(incomplete)
}

/// Calls between functions, by caller and callee.
fn links(all: &[Link], functions: usize) -> Vec<&Link> {
    let mut links: Vec<&Link> = all.iter().filter(|link| link.caller < functions && link.callee < functions).collect();
    links.sort_unstable_by_key(|link| (link.caller, link.callee));
    links
}

/// Which link each call belongs to; the number of links for those that are none.
fn links_of_calls(side: &Side, links: &[&Link]) -> Vec<u32> {
    let link = |call: &CallSite| {
        let ends = (call.function.index(), call.callee.index());
        let found = links.binary_search_by_key(&ends, |link| (link.caller, link.callee));
        u32::try_from(found.unwrap_or(links.len())).unwrap_or(u32::MAX)
    };
    side.detail.calls.iter().map(link).collect()
}

/// What calls cost, also those within cycles: the page needs that to follow paths, and says that it is no sum. One event at a time: there
/// may be millions of calls.
fn pack_arc_costs(pack: &mut Pack, side: &Side, prefix: &str, links: &[&Link], events: &[Shown]) -> io::Result<()> {
    let of = links_of_calls(side, links);
    for Shown { event, number } in events {
        let mut costs = vec![0_i64; links.len()];
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

fn entries(pack: &mut Pack, prefix: &str, own: &[Entry], links: &[&Link], events: &[Shown]) -> io::Result<usize> {
    let mut calls = vec![0_u64; own.len()];
    let mut seen: Vec<Option<Cost>> = vec![None; own.len()];
    let mut spent: Vec<Cost> = own.iter().map(|entry| entry.own.clone()).collect();
    for link in links {
        calls[link.callee] = calls[link.callee].saturating_add(link.count);
        if let Some(cost) = &link.cost {
            // The model added these up without a fault.
            let _ = seen[link.callee].get_or_insert_default().add_cost(cost);
            let _ = spent[link.caller].add_cost(cost);
        }
    }
    let differs = |at: usize| match &seen[at] {
        Some(seen) if own[at].cycle.is_none() => {
            events.iter().any(|shown| seen.value(shown.event) != spent[at].value(shown.event))
        }
        _ => false,
    };
    let flags: Vec<u64> =
        (0..own.len()).map(|at| u64::from(own[at].rows) * HAS_ROWS + u64::from(differs(at)) * INCOMPLETE).collect();
    pack.numbers(format!("{prefix}fn.flags"), flags.iter().copied())?;
    pack.numbers(format!("{prefix}fn.cycle"), column(own, |entry| entry.cycle.unwrap_or(0) as u64))?;
    pack.numbers(format!("{prefix}fn.calls"), calls.iter().copied())?;
    for Shown { event, number } in events {
        pack.costs(format!("{prefix}fn.self.{number}"), column(own, |entry| entry.own.value(*event)))?;
        pack.costs(format!("{prefix}fn.incl.{number}"), column(own, |entry| entry.inclusive.value(*event)))?;
    }
    let none = Cost::default();
    for Shown { event, number } in events {
        let costs = seen.iter().map(|seen| seen.as_ref().unwrap_or(&none).value(*event));
        pack.costs(format!("{prefix}fn.seen.{number}"), costs)?;
    }
    Ok(flags.iter().filter(|flags| **flags & INCOMPLETE != 0).count())
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
