//! Numbers of functions where emitted code follows calls: they mean the same in all processes of a space, so they are given
//! by object and address; and of the callers that tell their contexts apart, by the numbers of those.
//!
//! Invariant: a number that has been given in a space is never given to another function, or to other callers, there.

use std::collections::HashMap;

use cg_calls::{CallersId, Code as _, FunctionId, SiteId};
use grind_types::hash::Map;

use super::super::code::Catalogue;

/// Functions of a space that have numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    numbers: HashMap<(Vec<u8>, u64), u32>,
    /// An address of each.
    addresses: Vec<u64>,
    callers: HashMap<Box<[u32]>, u32>,
    /// By number less one.
    lists: Vec<Box<[u32]>>,
}

/// What a process knows about that.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// By the process's number of a function: the space's.
    numbers: Vec<Option<u32>>,
    /// The other way round.
    functions: Vec<Option<FunctionId>>,
    /// The same of callers, by their numbers less one.
    callers: Vec<Option<u32>>,
    lists: Vec<Option<CallersId>>,
    /// Where sites are told, by their number in the catalogue.
    pub(super) told: Map<SiteId, u32>,
}

impl Followed {
    /// The number of a function in the space.
    pub(super) fn number(&mut self, function: FunctionId, catalogue: &Catalogue, space: &mut Functions) -> u32 {
        let at = function.0 as usize;
        if let Some(Some(known)) = self.numbers.get(at) {
            return *known;
        }
        let ((object, start), address) = catalogue.identity(function);
        let next = space.addresses.len() as u32;
        let number = *space.numbers.entry((object.to_vec(), start)).or_insert(next);
        if number == next {
            space.addresses.push(address);
        }
        set(&mut self.numbers, at, number);
        set(&mut self.functions, number as usize, function);
        number
    }

    /// The function that has a number in the space.
    pub(super) fn function(&mut self, number: u32, catalogue: &mut Catalogue, space: &Functions) -> FunctionId {
        let at = number as usize;
        if let Some(Some(known)) = self.functions.get(at) {
            return *known;
        }
        // Another process of the space has met it first.
        let function = catalogue.place(space.addresses.get(at).copied().unwrap_or(0)).function;
        set(&mut self.functions, at, function);
        set(&mut self.numbers, function.0 as usize, number);
        function
    }

    /// The number of callers in the space; 0: there are none.
    pub(super) fn callers_number(&mut self, id: CallersId, catalogue: &mut Catalogue, space: &mut Functions) -> u32 {
        let Some(at) = id.0.checked_sub(1).map(|at| at as usize) else { return 0 };
        if let Some(Some(known)) = self.callers.get(at) {
            return *known;
        }
        let list = catalogue.callers().list(id).to_vec();
        let list: Box<[u32]> = list.into_iter().map(|f| self.number(f, catalogue, space)).collect();
        let number = match space.callers.get(&list) {
            Some(known) => *known,
            None => {
                space.lists.push(list.clone());
                let number = space.lists.len() as u32;
                space.callers.insert(list, number);
                number
            }
        };
        set(&mut self.callers, at, number);
        set(&mut self.lists, number as usize - 1, id);
        number
    }

    /// The callers that have a number in the space.
    pub(super) fn callers(&mut self, number: u32, catalogue: &mut Catalogue, space: &Functions) -> CallersId {
        let Some(at) = number.checked_sub(1).map(|at| at as usize) else { return CallersId::NONE };
        if let Some(Some(known)) = self.lists.get(at) {
            return *known;
        }
        // Another process of the space has met them first.
        let list = space.lists.get(at).map_or(&[][..], |list| list);
        let list: Vec<FunctionId> = list.iter().map(|&f| self.function(f, catalogue, space)).collect();
        let id = catalogue.callers().number(&list);
        set(&mut self.lists, at, id);
        if let Some(own) = id.0.checked_sub(1) {
            set(&mut self.callers, own as usize, number);
        }
        id
    }
}

fn set<T: Clone>(list: &mut Vec<Option<T>>, at: usize, value: T) {
    if at >= list.len() {
        list.resize(at + 1, None);
    }
    list[at] = Some(value);
}
