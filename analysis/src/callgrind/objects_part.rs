//! What was found at data objects since the last part of a profile: it belongs to that part, and is handed on with it.
//!
//! Invariant: the misses of the objects are those of the part, event by event, and those of all functions at an object are the
//! object's. Nothing is counted here.

use std::collections::{BTreeMap, HashMap};

use cg_calls::{Node, Profile};
use cg_format::callgrind::context_name;
use grind_objects::{Found, Missed, MissedBy};

use super::code::Catalogue;
use super::rows::Program as _;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct ObjectsPart {
    /// What objects were missed.
    pub(super) found: Found,
    /// By what ran, and by object as the process numbers them.
    pub(super) missed: HashMap<Node, BTreeMap<u32, Missed>>,
    /// How often counters were executed, if somebody wants to know.
    pub(super) executions: HashMap<u32, u64>,
}

/// The objects of a part that has been written.
#[derive(Clone, Debug)]
pub struct WrittenObjects {
    /// The number of the part.
    pub number: u64,
    /// It is the last one.
    pub last: bool,
    /// Why it was written, as a `desc:` line says it.
    pub why: Vec<u8>,
    /// What was found in it.
    pub found: Found,
}

impl ObjectsPart {
    /// With names of functions.
    pub(super) fn resolve(self, catalogue: &mut Catalogue) -> Found {
        let mut found = self.found;
        let mut executed: BTreeMap<u64, u64> = BTreeMap::new();
        for (counter, n) in self.executions {
            // What counts no execution is a miss.
            for (addr, costs) in catalogue.counters.of(counter) {
                let sum = executed.entry(addr).or_default();
                *sum = sum.saturating_add(n.saturating_mul(costs.first().copied().unwrap_or(0)));
            }
        }
        found.executions = Some(executed);
        let (nodes, missed): (Vec<Node>, Vec<_>) = self.missed.into_iter().unzip();
        let profile = Profile { nodes, ..Profile::default() };
        let resolved = catalogue.resolve(&profile, &[]);
        let number = |object: u32| found.numbers.get(object as usize).copied().flatten();
        for (node, missed) in profile.nodes.iter().zip(missed) {
            let about = resolved.function(node.functions[0]);
            let callers = node.functions.iter().skip(1).map(|f| resolved.function(*f).name);
            found.missed_by.push(MissedBy {
                function: context_name(about.name, node.recursion, callers),
                file: about.file.to_vec(),
                module: about.object.to_vec(),
                missed: missed.into_iter().filter_map(|(object, missed)| Some((number(object)?, missed))).collect(),
            });
        }
        found
    }
}
