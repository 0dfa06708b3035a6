//! Names of files and functions, one after another in one large vector, and a way to find one among many.
//!
//! There are millions of names, so none has memory of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use crate::hash::NameKeys;

/// The text of all names.
#[derive(Clone, Debug)]
pub(super) struct Names {
    text: Vec<u8>,
}

impl Default for Names {
    fn default() -> Self {
        Self { text: Vec::with_capacity(ROOM) }
    }
}

/// The bytes that a vector of millions has room for from the beginning. The system gives memory when it is written to, and
/// moves larger areas without copying them.
pub(super) const ROOM: usize = 1 << 18;

/// Where a name lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    start: usize,
    length: usize,
}

impl Names {
    #[inline]
    pub(super) fn get(&self, name: Name) -> &[u8] {
        &self.text[name.start..name.start + name.length]
    }

    pub(super) fn push(&mut self, text: &[u8]) -> Name {
        let name = Name { start: self.text.len(), length: text.len() };
        self.text.extend_from_slice(text);
        name
    }
}

/// Finds things by name. It keeps hashes only; names are asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    keys: NameKeys,
    places: HashMap<u64, usize, BuildHasherDefault<Given>>,
}

impl Index {
    /// The number under which the thing called `name` was inserted; `name_of` gives the name of a number.
    pub(super) fn find<'n>(&self, name: &[u8], name_of: impl Fn(usize) -> &'n [u8]) -> Option<usize> {
        let mut hash = self.keys.hash_one(name);
        loop {
            let number = *self.places.get(&hash)?;
            if name_of(number) == name {
                return Some(number);
            }
            hash = hash.wrapping_add(1);
        }
    }

    /// Inserts a name that is not there.
    pub(super) fn insert(&mut self, name: &[u8], number: usize) {
        let mut hash = self.keys.hash_one(name);
        loop {
            match self.places.entry(hash) {
                Entry::Vacant(free) => {
                    free.insert(number);
                    return;
                }
                // Two names with one hash of 64 bits: hardly ever, but then the next is taken.
                Entry::Occupied(_) => hash = hash.wrapping_add(1),
            }
        }
    }
}

/// Takes a hash for what it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given(u64);

impl Hasher for Given {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only `write_u64` is ever used; this is right all the same.
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_number_even_if_hashes_meet() {
        let mut names = Names::default();
        let mut index = Index::default();
        let texts: Vec<Vec<u8>> = (0..500).map(|i: u32| format!("name{i}").into_bytes()).collect();
        let places: Vec<Name> = texts.iter().map(|text| names.push(text)).collect();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(index.find(text, |number| names.get(places[number])), None);
            index.insert(text, number);
        }
        let hash = index.keys.hash_one(b"other".as_slice());
        index.places.insert(hash, 7);
        assert_eq!(index.find(b"other", |number| names.get(places[number])), None, "a stranger has its place");
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(index.find(text, |number| names.get(places[number])), Some(number));
        }
    }
}
