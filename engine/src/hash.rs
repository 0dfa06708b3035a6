//! A hash map for keys that are small numbers or addresses: one multiplication instead of SipHash. Keys come from the guest,
//! so a hostile guest could slow its own run down, nothing else.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Multiplies by an odd constant and folds (the golden ratio, as in Fibonacci hashing).
#[derive(Default, Clone, Copy, Debug)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }

    fn write_u64(&mut self, v: u64) {
        let x = (self.0 ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = x ^ x >> 32;
    }

    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v));
    }

    fn write_i32(&mut self, v: i32) {
        self.write_u64(u64::from(v as u32));
    }
}

/// A map from addresses or small numbers.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<AddressHasher>>;

/// A set of those.
pub type Set<K> = HashSet<K, BuildHasherDefault<AddressHasher>>;
