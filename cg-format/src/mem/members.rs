//! What of a structure was missed: by its members, where all that the object stands for is of one structure.
//!
//! Invariant: members are in order, and those of different structures are never added up.

use serde::{Deserialize, Serialize};

use super::{Object, add, is_zero};

/// What of a structure was missed; of several, all of them together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// What the source calls it; empty if that is not known.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Those that were missed, by where they begin.
    pub missed: Vec<Member>,
}

/// A member of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// How it is reached, as `at.x`; several that share their place, as `i|f`; of an array of structures all elements, as `list[].next`.
    /// Empty: what no member has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where it begins first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// Its bytes there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// The first of the events of objects.
    pub counts: Vec<u64>,
}

impl Member {
    /// By what they are in order.
    pub(super) fn key(&self) -> (u64, u64, &str) {
        (self.offset, self.bytes, &self.name)
    }
}

impl Object {
    /// Adds what was missed of another one of the same structure; if that is not the same, members are not told. `none`: nothing
    /// is counted of one of both.
    pub(super) fn add_members(&mut self, members: Option<Members>, (none, more): (bool, bool)) {
        match (&mut self.members, members) {
            (known, members) if none && !more => *known = members,
            (_, _) if more => {}
            (Some(known), Some(members)) if (&known.name, known.bytes) == (&members.name, members.bytes) => {
                for member in members.missed {
                    match known.missed.binary_search_by(|other| other.key().cmp(&member.key())) {
                        Ok(n) => add(&mut known.missed[n].counts, &member.counts),
                        Err(n) => known.missed.insert(n, member),
                    }
                }
            }
            (known, _) => *known = None,
        }
    }
}
