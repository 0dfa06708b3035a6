//! Functions that a run told apart by their callers and levels of recursion (`f'2'g'main`), and the functions that they are without that.
//!
//! A report shows them together at first: a function is what the source says. What is found out here is by name, file by file, since
//! where a name ends depends on which other names the profile has. Nothing is added up here.

use std::collections::{BTreeMap, HashSet};

use cg_format::callgrind::{FunctionId, Names};
use cg_model::Heads;

/// The object of functions that an interpreter runs (`--frames=python`). What the interpreter's own functions do for them is told apart
/// by name, too, and stays that: it would be one cycle without cost otherwise.
const INTERPRETED: &[u8] = b"Python";

/// Functions of a profile whose names hold a context, with their names without it.
pub(crate) fn found(names: &Names) -> Vec<(FunctionId, Vec<u8>)> {
    let heads = Heads::new(names.functions().map(|id| names.function_name(id)));
    let interpreted = |id: &FunctionId| names.object_name(names.get(*id).object) == INTERPRETED;
    let interpreted: HashSet<&[u8]> = names.functions().filter(interpreted).map(|id| names.function_name(id)).collect();
    let without = |id| {
        let name = names.function_name(id);
        let plain = heads.plain(name);
        if plain == name {
            return None;
        }
        let works_for = heads.split(name).callers.into_iter().next().filter(|caller| interpreted.contains(caller));
        let plain = works_for.map_or_else(|| plain.to_vec(), |caller| [plain, b"'", caller].concat());
        (plain != name).then_some((id, plain))
    };
    names.functions().filter_map(without).collect()
}

/// Which functions others are without their contexts; what is not among them has none.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    of: BTreeMap<FunctionId, FunctionId>,
}

impl Plain {
    /// Says what a function is without its context; who says it first is right.
    pub(crate) fn add(&mut self, function: FunctionId, plain: FunctionId) {
        // Where names are changed by options, that may leave nothing of a context.
        if function != plain {
            self.of.entry(function).or_insert(plain);
        }
    }

    /// What all of them say.
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.flat_map(|one| &one.of).for_each(|(function, plain)| sum.add(*function, *plain));
        sum
    }

    /// Whether no function has a context.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// What each function is without its context, in the order of all functions.
    pub(crate) fn all(&self, names: &Names) -> Vec<FunctionId> {
        names.functions().map(|id| self.of.get(&id).copied().unwrap_or(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::load::{self, Side, Wishes};
    use crate::options::{Code, Contexts};
    use crate::renaming::Renaming;

    fn plain(functions: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut names = Names::default();
        for (name, object) in functions {
            let (file, object) = (names.file(b"f"), names.object(object.as_bytes()));
            names.function(name.as_bytes(), file, object);
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        found(&names).into_iter().map(|(id, plain)| (text(names.function_name(id)), text(&plain))).collect()
    }

    #[test]
    fn contexts_and_levels_are_left_out() {
        let found = plain(&[("main", "p"), ("f'main", "p"), ("f'2'main", "p"), ("it's", "p")]);
        assert_eq!(
            found,
            [("f'main", "f"), ("f'2'main", "f")].map(|(name, plain)| (name.to_owned(), plain.to_owned()))
        );
    }

    #[test]
    fn what_an_interpreter_does_for_a_function_stays_apart() {
        let functions =
            [("go:1", "Python"), ("main", "python3"), ("eval'go:1", "python3"), ("eval'go:1'main", "python3")];
        assert_eq!(plain(&functions), [("eval'go:1'main".to_owned(), "eval'go:1".to_owned())]);
    }

    /// Self costs of an event by function, each with what it is without its context.
    fn own(side: &Side, plain: &[FunctionId], event: usize) -> Vec<i64> {
        let mut sums = vec![0; plain.len()];
        side.model.own(event).zip(plain).for_each(|(own, plain)| sums[plain.index()] += own);
        sums
    }

    #[test]
    fn self_costs_of_contexts_add_up_to_those_of_functions() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        for file in ["contexts.cg", "cpp.cg.xz", "cc1.cg.xz"] {
            let wishes = Wishes {
                renaming: Renaming::default(),
                apart: false,
                event: None,
                samples: None,
                root: None,
                code: Code::None,
                contexts: Contexts::Both,
            };
            let loaded = load::sides(&[&[data.join(file).into()]], wishes).unwrap();
            let plain = loaded.plain.all(&loaded.names);
            let whole = &loaded.sides[0];
            let apart = whole.contexts.as_ref().unwrap();
            for event in 0..whole.model.events.len() {
                assert_eq!(own(apart, &plain, event), whole.model.own(event).collect::<Vec<_>>(), "{file}");
                let with_levels = apart.model.own(event).zip(&plain).zip(loaded.names.functions());
                assert!(
                    event > 0 || with_levels.into_iter().any(|((own, plain), id)| own > 0 && *plain != id),
                    "{file}"
                );
            }
            assert!(
                whole.model.inclusive(0).all(|cost| cost <= whole.model.total.cost.value(0)),
                "{file}: above 100 %"
            );
        }
    }
}
