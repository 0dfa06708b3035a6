//! Whole chains of calls as columns: each with how many callers it has, its function, how often that was called there and what it
//! cost by itself, callers before what they call.
//!
//! Chains add up to the rows, function by function. Where they do not, because there were too many to be told or not all
//! parts have any, the rest stands beside them: as costs of functions of which no caller is known. What is shown of them is then
//! still all of the profile, and the report says how much stands so.

use std::collections::HashMap;
use std::io;

use cg_format::callgrind::{Chain, Chains, FunctionId, Names};
use cg_format::count::TooLarge;
use cg_model::Detail;

use crate::pack::{Pack, Shown};

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
    /// each one, if parts are kept; `levels` are those that rows tell apart.
    ///
    /// # Errors
    /// A sum does not fit.
    pub(crate) fn new(
        mut parts: Vec<Chains>,
        whole: &Detail,
        kept: &[Detail],
        names: &Names,
        levels: &Levels,
    ) -> Result<Option<Self>, TooLarge> {
        if parts.iter().all(|part| part.all().is_empty()) {
            return Ok(None);
        }
        let functions: Vec<FunctionId> = names.functions().collect();
        if !levels.is_empty() {
            parts.iter_mut().try_for_each(|part| tell_apart(part, levels))?;
        }
        let mut rest = Vec::new();
        if kept.len() == parts.len() {
            for (chains, rows) in parts.iter_mut().zip(kept) {
                complete(chains, rows, &mut rest)?;
            }
        }
        let mut sum = if parts.len() == 1 { parts.remove(0) } else { parts[0].like() };
        parts.iter().try_for_each(|part| sum.append(part, &functions))?;
        if kept.len() != parts.len() || kept.is_empty() {
            complete(&mut sum, whole, &mut rest)?;
            parts.clear();
        }
        Ok(Some(Self { whole: sum, parts, rest }))
    }

    /// The sum of all self costs, event by event.
    #[cfg(test)]
    pub(crate) fn total(&self) -> Vec<i128> {
        self.whole.total()
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

/// Levels of recursion that functions have names for: of a function those from the second on, in ascending order.
pub(crate) type Levels = HashMap<FunctionId, Vec<FunctionId>>;

/// Functions `f'2`, `f'3` and so on by their `f`, of the same file and object.
pub(crate) fn levels(names: &Names) -> Levels {
    let level = |id: FunctionId| {
        let name = names.function_name(id);
        let at = name.iter().rposition(|byte| *byte == b'\'')?;
        let number = std::str::from_utf8(&name[at + 1..]).ok()?.parse::<usize>().ok().filter(|number| *number > 1)?;
        let of = names.get(id);
        Some(((&name[..at], of.file, of.object), number, id))
    };
    let mut named: Vec<_> = names.functions().filter_map(level).collect();
    if named.is_empty() {
        return Levels::new();
    }
    named.sort_unstable_by_key(|(_, number, _)| *number);
    let key = |id: FunctionId| (names.function_name(id), names.get(id).file, names.get(id).object);
    let plain: HashMap<_, FunctionId> = names.functions().map(|id| (key(id), id)).collect();
    let mut levels = Levels::new();
    for (of, number, id) in named {
        if let Some(function) = plain.get(&of) {
            let known: &mut Vec<FunctionId> = levels.entry(*function).or_default();
            // One that is not there stands for none.
            if number == known.len() + 2 {
                known.push(id);
            }
        }
    }
    levels
}

/// Gives functions in chains the names of their levels of recursion, as rows have them: chains tell functions alone, and how often
/// each is above.
fn tell_apart(chains: &mut Chains, levels: &Levels) -> Result<(), TooLarge> {
    let old = std::mem::replace(chains, chains.like());
    let all = old.all();
    let mut numbers: Vec<u32> = Vec::with_capacity(all.len());
    for (n, chain) in (0..).zip(all) {
        let callers = std::iter::successors(chain.parent, |caller| all[*caller as usize].parent);
        let function = match levels.get(&chain.function) {
            Some(known) => {
                let above = callers.filter(|caller| all[*caller as usize].function == chain.function).count();
                // Deeper ones are told together with the deepest.
                above.min(known.len()).checked_sub(1).map_or(chain.function, |at| known[at])
            }
            None => chain.function,
        };
        let parent = chain.parent.map(|parent| numbers[parent as usize]);
        numbers.push(chains.add(Chain { parent, function, calls: chain.calls }, old.costs(n))?);
    }
    Ok(())
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
    fn levels_of_recursion_have_the_names_that_rows_have() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let other = names.file(b"b.c");
        let [f, g, second, gap, _elsewhere] =
            [(&b"f"[..], file), (b"g", file), (b"f'2", file), (b"g'3", file), (b"g'2", other)]
                .map(|(name, file)| names.function(name, file, object));
        let known = levels(&names);
        assert_eq!(known.get(&f), Some(&vec![second]));
        assert!(known.get(&g).is_none_or(Vec::is_empty), "there is no second level: {gap:?}");
        let mut chains = Chains::new(1);
        let mut parent = None;
        for (function, cost) in [(f, 1), (g, 2), (f, 4), (g, 8), (f, 16)] {
            parent = Some(chains.add(Chain { parent, function, calls: 1 }, &[cost]).unwrap());
        }
        tell_apart(&mut chains, &known).unwrap();
        let told: Vec<_> = (0..).zip(chains.all()).map(|(n, chain)| (chain.function, chains.costs(n)[0])).collect();
        assert_eq!(told, [(f, 1), (g, 2), (second, 4), (g, 8), (second, 16)]);
    }

    #[test]
    fn chains_add_up_to_rows_function_by_function() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let [main, leaf] = [&b"main"[..], b"leaf"].map(|name| names.function(name, file, object));
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
        assert!(
            Recorded::new(vec![Chains::new(1)], &rows, &[], &names, &levels(&names)).unwrap().is_none(),
            "none were recorded"
        );
        let whole = Recorded::new(vec![chains(5)], &rows, &[], &names, &levels(&names)).unwrap().unwrap();
        assert_eq!((whole.whole.all().len(), whole.rest.len(), whole.parts.len()), (2, 0, 0));
        // Three that no chain has, of a function without a caller.
        let short = Recorded::new(vec![chains(2)], &rows, &[], &names, &levels(&names)).unwrap().unwrap();
        assert_eq!((short.whole.all().len(), short.whole.total(), short.rest), (3, vec![15], vec![3]));
        // A part that has none at all, beside one that has.
        let both = detail(&[(main, 20), (leaf, 10)]);
        let kept = [detail(&[(main, 10), (leaf, 5)]), detail(&[(main, 10), (leaf, 5)])];
        let parts =
            Recorded::new(vec![chains(5), Chains::new(1)], &both, &kept, &names, &levels(&names)).unwrap().unwrap();
        assert_eq!((parts.whole.total(), parts.rest, parts.parts.len()), (vec![30], vec![15], 2));
        let summed =
            Recorded::new(vec![chains(5), Chains::new(1)], &both, &[], &names, &levels(&names)).unwrap().unwrap();
        assert_eq!((summed.whole.total(), summed.rest, summed.parts.len()), (vec![30], vec![15], 0));
    }
}
