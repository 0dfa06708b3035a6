//! Parts of profiles as columns: which rows, calls and jumps of their sum each has, and how much of them.
//!
//! Everything else that is known of some parts together follows from these in the page, as it followed from all rows here.
//! Numbers of rows, calls and jumps are those of [`crate::side`]'s columns.

use std::io;

use cg_model::{CallSite, JumpSite, Row};

use crate::load::Side;
use crate::pack::{Pack, Shown};

/// Packs parts of a side; nothing if there is but one.
pub(crate) fn pack(pack: &mut Pack, side: &Side, prefix: &str, events: &[Shown]) -> io::Result<()> {
    let Side { detail: whole, parts, .. } = side;
    if parts.is_empty() {
        return Ok(());
    }
    let name = |what: &str| format!("{prefix}part.{what}");
    let key = |row: &Row| (row.function, row.at());
    places(pack, &name("row"), parts.iter().map(|part| find(&whole.rows, &part.rows, key)))?;
    let key = |call: &CallSite| (call.function, call.at(), call.callee);
    places(pack, &name("call"), parts.iter().map(|part| find(&whole.calls, &part.calls, key)))?;
    let key =
        |jump: &JumpSite| (jump.function, jump.at(), jump.target_function, jump.target(), jump.executed().is_some());
    places(pack, &name("jump"), parts.iter().map(|part| find(&whole.jumps, &part.jumps, key)))?;
    for Shown { event, number } in events {
        let rows = parts.iter().flat_map(|part| part.rows.iter().map(|row| part.row_cost(row, *event)));
        pack.costs(name(&format!("row.cost.{number}")), rows)?;
        let calls = parts.iter().flat_map(|part| part.calls.iter().map(|call| part.call_cost(call, *event)));
        pack.costs(name(&format!("call.cost.{number}")), calls)?;
    }
    let jumps = parts.iter().flat_map(|part| &part.jumps);
    pack.numbers(name("call.count"), parts.iter().flat_map(|part| &part.calls).map(|call| call.count))?;
    pack.numbers(name("jump.taken"), jumps.clone().map(|jump| jump.taken))?;
    pack.numbers(name("jump.executed"), jumps.map(|jump| jump.executed().unwrap_or(0)))
}

/// Where entries of a part stand in the sum; both are in the same order, and the sum has them all.
fn find<T, K: PartialEq>(whole: &[T], part: &[T], key: impl Fn(&T) -> K) -> Vec<u64> {
    let mut rest = whole.iter().enumerate();
    let place = |entry: &T| rest.find(|(_, known)| key(known) == key(entry)).map(|(at, _)| at as u64);
    part.iter().filter_map(place).collect()
}

fn places(pack: &mut Pack, name: &str, lists: impl Iterator<Item = Vec<u64>>) -> io::Result<()> {
    let (mut from, mut all) = (vec![0], Vec::new());
    for list in lists {
        all.extend(list);
        from.push(all.len() as u64);
    }
    pack.close(format!("{name}.from"), from.into_iter())?;
    pack.close(name, all.into_iter())
}
