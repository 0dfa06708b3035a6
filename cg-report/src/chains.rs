//! Whole chains of calls as columns: each with how many callers it has, its function, how often that was called there and what it
//! cost by itself, callers before what they call.
//!
//! Chains add up to the rows, function by function. Where they do not, because there were too many to be told or not all
//! parts have any, the rest stands beside them: as costs of functions of which no caller is known. What is shown of them is then
//! still all of the profile, and the report says how much stands so.

use std::collections::HashMap;
use std::io;

use cg_format::callgrind::{Chain, Chains, FunctionId};
use cg_format::count::TooLarge;
use cg_model::Detail;

use crate::pack::Pack;
use crate::side::Shown;

/// The chains of a side.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Of all parts together.
    whole: Chains,
    /// Of each part, if parts are kept apart.
    parts: Vec<Chains>,
    /// What was in no chain, one for each event.
    pub(crate) rest: Vec<i128>,
}

impl Recorded {
    /// Adds up the chains of all parts; nothing if no part has any. `whole` and `kept` are the rows of the same parts, `kept` those of
    /// each one, if parts are kept.
    ///
    /// # Errors
    /// A sum does not fit.
    pub(crate) fn new(
        mut parts: Vec<Chains>,
        whole: &Detail,
        kept: &[Detail],
        functions: &[FunctionId],
    ) -> Result<Option<Self>, TooLarge> {
        if parts.iter().all(|part| part.all().is_empty()) {
            return Ok(None);
        }
        let mut rest = Vec::new();
        if kept.len() == parts.len() {
            for (chains, rows) in parts.iter_mut().zip(kept) {
                complete(chains, rows, &mut rest)?;
            }
        }
        let mut sum = if parts.len() == 1 { parts.remove(0) } else { parts[0].like() };
        parts.iter().try_for_each(|part| sum.append(part, functions))?;
        if kept.len() != parts.len() || kept.is_empty() {
            complete(&mut sum, whole, &mut rest)?;
            parts.clear();
        }
        Ok(Some(Self { whole: sum, parts, rest }))
    }

    /// Packs them.
    pub(crate) fn pack(&self, pack: &mut Pack, prefix: &str, events: &[Shown]) -> io::Result<()> {
        let order = self.whole.callers_first();
        let all = self.whole.all();
        let of = |n: u32| all[n as usize];
        pack.close(format!("{prefix}chain.depth"), order.iter().map(|(_, depth)| *depth as u64))?;
        pack.numbers(format!("{prefix}chain.fn"), order.iter().map(|(n, _)| of(*n).function.index() as u64))?;
        pack.numbers(format!("{prefix}chain.calls"), order.iter().map(|(n, _)| of(*n).calls))?;
        for Shown { event, number } in events {
            let costs = order.iter().map(|(n, _)| self.whole.costs(*n)[*event]);
            pack.costs(format!("{prefix}chain.cost.{number}"), costs)?;
        }
        if self.parts.is_empty() {
            return Ok(());
        }
        let (mut place, mut number) = (vec![0_u64; all.len()], HashMap::new());
        for (at, (n, _)) in order.iter().enumerate() {
            place[*n as usize] = at as u64;
            number.insert((of(*n).parent, of(*n).function), *n);
        }
        // The chains of each part by their places in the sum, which has them all.
        let mut lists: Vec<Vec<(u64, u32)>> = Vec::new();
        for part in &self.parts {
            let mut there: Vec<u32> = Vec::with_capacity(part.all().len());
            for chain in part.all() {
                let parent = chain.parent.map(|parent| there[parent as usize]);
                there.push(number.get(&(parent, chain.function)).copied().unwrap_or_default());
            }
            let mut list: Vec<(u64, u32)> = there.into_iter().map(|n| place[n as usize]).zip(0..).collect();
            list.sort_unstable();
            lists.push(list);
        }
        let mut from = vec![0_u64];
        lists.iter().for_each(|list| from.push(from[from.len() - 1] + list.len() as u64));
        pack.close("part.chain.from", from.into_iter())?;
        pack.close("part.chain", lists.iter().flatten().map(|(place, _)| *place))?;
        let known = || self.parts.iter().zip(&lists).flat_map(|(part, list)| list.iter().map(move |(_, n)| (part, *n)));
        pack.numbers("part.chain.calls", known().map(|(part, n)| part.all()[n as usize].calls))?;
        for Shown { event, number } in events {
            pack.costs(format!("part.chain.cost.{number}"), known().map(|(part, n)| part.costs(n)[*event]))?;
        }
        Ok(())
    }
}

/// Adds what rows have and no chain does, by function.
fn complete(chains: &mut Chains, rows: &Detail, rest: &mut Vec<i128>) -> Result<(), TooLarge> {
    let mut missing: HashMap<FunctionId, Vec<i64>> = HashMap::new();
    let add = |sums: &mut Vec<i64>, costs: &[i64], sign: i64| -> Result<(), TooLarge> {
        sums.resize(costs.len().max(sums.len()), 0);
        for (sum, cost) in sums.iter_mut().zip(costs) {
            *sum = sum.checked_add(sign * cost).ok_or(TooLarge)?;
        }
        Ok(())
    };
    let mut costs = vec![0; rows.width()];
    for row in &rows.rows {
        (0..).zip(&mut costs).for_each(|(event, cost)| *cost = rows.row_cost(row, event));
        add(missing.entry(row.function).or_default(), &costs, 1)?;
    }
    for (n, chain) in (0..).zip(chains.all()) {
        add(missing.entry(chain.function).or_default(), chains.costs(n), -1)?;
    }
    let mut missing: Vec<(FunctionId, Vec<i64>)> = missing.into_iter().collect();
    missing.sort_unstable_by_key(|(function, _)| *function);
    for (function, costs) in missing {
        if costs.iter().all(|cost| *cost == 0) {
            continue;
        }
        rest.resize(costs.len().max(rest.len()), 0);
        rest.iter_mut().zip(&costs).for_each(|(sum, cost)| *sum += i128::from(*cost));
        chains.add(Chain { parent: None, function, calls: 0 }, &costs)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::{Names, PartHeader, Place, Position, Sink};

    #[test]
    fn chains_add_up_to_rows_function_by_function() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let [main, leaf] = [&b"main"[..], b"leaf"].map(|name| names.function(name, file, object));
        let functions: Vec<FunctionId> = names.functions().collect();
        let detail = |rows: &[(FunctionId, i64)]| {
            let mut detail = Detail::default();
            detail.part(&PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
            for (line, (function, cost)) in (1..).zip(rows) {
                detail.row(*function, Position { place: Place { addr: 0, line }, file }, &[*cost]).unwrap();
            }
            detail.finish().unwrap();
            detail
        };
        let chains = |leaf_cost: i64| {
            let mut chains = Chains::new(1);
            let root = chains.add(Chain { parent: None, function: main, calls: 0 }, &[10]).unwrap();
            chains.add(Chain { parent: Some(root), function: leaf, calls: 2 }, &[leaf_cost]).unwrap();
            chains
        };
        let rows = detail(&[(main, 10), (leaf, 5)]);
        assert!(Recorded::new(vec![Chains::new(1)], &rows, &[], &functions).unwrap().is_none(), "none were recorded");
        let whole = Recorded::new(vec![chains(5)], &rows, &[], &functions).unwrap().unwrap();
        assert_eq!((whole.whole.all().len(), whole.rest.len(), whole.parts.len()), (2, 0, 0));
        // Three that no chain has, of a function without a caller.
        let short = Recorded::new(vec![chains(2)], &rows, &[], &functions).unwrap().unwrap();
        assert_eq!((short.whole.all().len(), short.whole.total(), short.rest), (3, vec![15], vec![3]));
        // A part that has none at all, beside one that has.
        let both = detail(&[(main, 20), (leaf, 10)]);
        let kept = [detail(&[(main, 10), (leaf, 5)]), detail(&[(main, 10), (leaf, 5)])];
        let parts = Recorded::new(vec![chains(5), Chains::new(1)], &both, &kept, &functions).unwrap().unwrap();
        assert_eq!((parts.whole.total(), parts.rest, parts.parts.len()), (vec![30], vec![15], 2));
        let summed = Recorded::new(vec![chains(5), Chains::new(1)], &both, &[], &functions).unwrap().unwrap();
        assert_eq!((summed.whole.total(), summed.rest, summed.parts.len()), (vec![30], vec![15], 0));
    }
}
