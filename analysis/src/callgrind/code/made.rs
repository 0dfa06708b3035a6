//! Functions that the program made while it ran, by the names that it gave them (see [`grind_names::made`]).
//!
//! While the program runs, an address stands for the function that is there as far as is known then: that is what the model of the
//! call graph is told. A name that is written only later is given to what had none by the time a part is written. Invariant: a function
//! that took the place of another one is another function, unless it has the same name and the same first address.

use std::collections::HashMap;
use std::ops::Range;

use cg_calls::FunctionId;
use grind_names::made::{Found, Registry};
use grind_symbols::Name;
use grind_types::Pid;
use grind_types::addr::GuestAddr;

use super::{Catalogue, KnownFunction};

/// What is known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct MadeFunctions {
    /// Who knows the names, and of which process.
    registry: Option<(Registry, Pid)>,
    /// The moment that is spoken of, and how often names had been replaced by then.
    now: (u32, u32),
    by_name: HashMap<(GuestAddr, Name), FunctionId>,
}

impl MadeFunctions {
    /// What is known of an address.
    pub(super) fn find(&self, addr: u64) -> Option<Found> {
        let (registry, pid) = self.registry.as_ref()?;
        registry.find(*pid, GuestAddr(addr), self.now.0)
    }
}

impl Catalogue {
    /// Code that the process makes has the names that `registry` knows.
    #[must_use]
    pub fn with_made(mut self, registry: Registry, pid: Pid) -> Self {
        self.made.registry = Some((registry, pid));
        self
    }

    /// What is told from now on of code that the program made is of this moment. Says whether other code has come to lie where there
    /// was some.
    pub fn code_made(&mut self, moment: u32) -> bool {
        let Some((registry, pid)) = &self.made.registry else { return false };
        registry.read_on(*pid);
        let replaced = registry.replaced(*pid);
        let before = std::mem::replace(&mut self.made.now, (moment, replaced));
        self.last = None;
        before.1 != replaced
    }

    /// The function at an address of memory that the program filled itself, if it has a name.
    pub(super) fn made_function(&mut self, object: u32, addr: u64) -> Option<(FunctionId, Option<Range<u64>>)> {
        let Found { function, start, end, .. } = self.made.find(addr)?;
        let (key, addresses) = ((start, function), start.0..end.0);
        if let Some(id) = self.made.by_name.get(&key) {
            return Some((*id, Some(addresses)));
        }
        let id = FunctionId(u32::try_from(self.functions.len()).expect("fewer than 2^32 functions"));
        self.functions.push(KnownFunction { object, start: start.0, name: key.1.clone(), linkage: false });
        self.made.by_name.insert(key, id);
        Some((id, Some(addresses)))
    }

    /// Gives names that have been written meanwhile to functions that had none.
    pub(super) fn name_made(&mut self) {
        let Some((registry, pid)) = &self.made.registry else { return };
        registry.read_on(*pid);
        if !registry.has_names(*pid) {
            return;
        }
        for (&(object, start), id) in &self.by_start {
            if self.objects[object as usize].object.is_none()
                && let Some(found) = self.made.find(start)
            {
                self.functions[id.0 as usize].name = found.function;
            }
        }
    }
}
