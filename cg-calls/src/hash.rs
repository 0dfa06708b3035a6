//! A fast hash for small fixed keys of our own making. It must not be used for keys that come from outside unchecked.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// Multiplies and folds, word by word.
#[derive(Default, Clone)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(mixed) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }
    fn write_u32(&mut self, n: u32) {
        self.word(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }
}
