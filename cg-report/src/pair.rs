//! Which function of the base is which function of the new profile.
//!
//! Functions are the same if object file, source file and name are; folders of objects do not matter. What is left over on
//! both sides is paired by its name, if that is there once on each side, and then by its body: the same steps between
//! lines with the same costs. The last kind is a guess, which the report shows as one.

use std::collections::{BTreeMap, HashMap, HashSet};

use cg_format::callgrind::{FunctionId, Names};
use cg_model::Detail;

use crate::names::last;

/// Functions of the base that have another name in the new profile: the new one's number, and the base's.
pub(crate) type Renamed = Vec<(FunctionId, FunctionId)>;

/// A body: lines from the first one on, with the cost of the first event.
type Body = Vec<(u32, i64)>;

/// Bodies of fewer lines are too much alike.
const LEAST: usize = 4;

/// For each object the one of the same file name, if that is there once among `known`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    known: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl Objects {
    /// Remembers an object of the new profile.
    pub(crate) fn add(&mut self, name: &[u8]) {
        let places = self.known.entry(last(name).to_vec()).or_default();
        if !places.iter().any(|place| place == name) {
            places.push(name.to_vec());
        }
    }

    /// What an object of the base is called in the new profile.
    pub(crate) fn name<'a>(&'a self, name: &'a [u8]) -> &'a [u8] {
        match self.known.get(last(name)).map(Vec::as_slice) {
            Some([only]) => only,
            _ => name,
        }
    }
}

/// Pairs what is left over. Gives for each function of the names the one that it is on the new side, and those that were
/// paired by their bodies.
pub(crate) fn leftovers(names: &Names, new: &Detail, base: &Detail) -> (Vec<FunctionId>, Renamed) {
    let mut map: Vec<FunctionId> = names.functions().collect();
    let here = present(new);
    let there = present(base);
    let only = |a: &HashSet<FunctionId>, b: &HashSet<FunctionId>| -> Vec<FunctionId> {
        names.functions().filter(|id| a.contains(id) && !b.contains(id)).collect()
    };
    let by_name = unique(only(&here, &there), |id| Some(names.function_name(id).to_vec()));
    let base_by_name = unique(only(&there, &here), |id| Some(names.function_name(id).to_vec()));
    let mut paired: HashSet<FunctionId> = HashSet::new();
    for (name, old) in &base_by_name {
        if let Some(new) = by_name.get(name) {
            map[old.index()] = *new;
            paired.extend([*new, *old]);
        }
    }
    let bodies = |detail: &Detail, ids: Vec<FunctionId>| {
        let mut bodies = bodies(detail);
        unique(ids.into_iter().filter(|id| !paired.contains(id)).collect(), |id| {
            bodies.remove(&id).filter(|body| body.len() >= LEAST)
        })
    };
    let new_bodies = bodies(new, only(&here, &there));
    let base_bodies = bodies(base, only(&there, &here));
    let mut renamed = Renamed::new();
    for (body, old) in &base_bodies {
        if let Some(new) = new_bodies.get(body) {
            map[old.index()] = *new;
            renamed.push((*new, *old));
        }
    }
    renamed.sort_unstable();
    (map, renamed)
}

fn present(detail: &Detail) -> HashSet<FunctionId> {
    let rows = detail.rows.iter().map(|row| row.function);
    let calls = detail.calls.iter().flat_map(|call| [call.function, call.callee]);
    rows.chain(calls).collect()
}

/// Functions by a key that no other one of them has.
fn unique<K: std::hash::Hash + Eq>(
    ids: Vec<FunctionId>,
    mut key: impl FnMut(FunctionId) -> Option<K>,
) -> HashMap<K, FunctionId> {
    let mut found: HashMap<K, Option<FunctionId>> = HashMap::new();
    for id in ids {
        if let Some(key) = key(id) {
            found.entry(key).and_modify(|known| *known = None).or_insert(Some(id));
        }
    }
    found.into_iter().filter_map(|(key, id)| Some((key, id?))).collect()
}

fn bodies(detail: &Detail) -> HashMap<FunctionId, Body> {
    let mut lines: HashMap<FunctionId, BTreeMap<u32, i64>> = HashMap::new();
    for row in &detail.rows {
        let cost = lines.entry(row.function).or_default().entry(row.at().place.line).or_default();
        *cost = cost.saturating_add(detail.row_cost(row, 0));
    }
    let body = |lines: BTreeMap<u32, i64>| {
        let first = lines.keys().next().copied().unwrap_or(0);
        lines.into_iter().map(|(line, cost)| (line - first, cost)).collect()
    };
    lines.into_iter().map(|(id, lines)| (id, body(lines))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::{PartHeader, Place, Position, Sink};

    fn detail(functions: &[(FunctionId, u32, &[i64])], names: &Names) -> Detail {
        let mut detail = Detail::default();
        detail.part(&PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
        for (function, first, costs) in functions {
            for (line, cost) in (*first..).zip(*costs) {
                let at = Position { place: Place { addr: 0, line }, file: names.get(*function).file };
                detail.row(*function, at, &[*cost]).unwrap();
            }
        }
        detail.finish().unwrap();
        detail
    }

    #[test]
    fn what_is_left_over_is_paired_by_name_and_then_by_body() {
        let mut names = Names::default();
        let object = names.object(b"prog");
        let files = [b"a.c", b"b.c"].map(|name| names.file(name));
        let mut function = |name: &[u8], file: usize| names.function(name, files[file], object);
        let (same, moved, moved_to) = (function(b"same", 0), function(b"moved", 0), function(b"moved", 1));
        let (old, new) = (function(b"old_name", 0), function(b"new_name", 0));
        let (gone, fresh) = (function(b"gone", 0), function(b"fresh", 0));
        let base =
            detail(&[(same, 1, &[1]), (moved, 5, &[3]), (old, 10, &[4, 5, 6, 7]), (gone, 20, &[1, 2, 3, 4])], &names);
        let later = detail(
            &[(same, 1, &[2]), (moved_to, 50, &[9]), (new, 90, &[4, 5, 6, 7]), (fresh, 20, &[1, 2, 3, 5])],
            &names,
        );
        let (map, renamed) = leftovers(&names, &later, &base);
        assert_eq!(map[moved.index()], moved_to);
        assert_eq!((map[old.index()], renamed), (new, vec![(new, old)]));
        assert_eq!((map[same.index()], map[gone.index()]), (same, gone));
    }

    #[test]
    fn objects_pair_by_file_name_unless_that_is_there_twice() {
        let mut objects = Objects::default();
        ["/new/prog", "/a/lib.so", "/b/lib.so"].iter().for_each(|name| objects.add(name.as_bytes()));
        assert_eq!(objects.name(b"/old/prog"), b"/new/prog");
        assert_eq!(objects.name(b"/c/lib.so"), b"/c/lib.so");
        assert_eq!(objects.name(b"/other"), b"/other");
    }
}
