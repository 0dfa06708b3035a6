//! A hash of names that is made to be fast: names are long, there are millions, and a table is asked once for each.
//!
//! Two words that nobody knows beforehand go into every hash, as into the standard library's, so names that collide cannot
//! be chosen. The mixing step is the folded multiplication of wyhash (Wang Yi).

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers of names, with keys of their own.
#[derive(Clone, Debug)]
pub struct NameKeys([u64; 2]);

impl Default for NameKeys {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd, so that no key is 0.
        Self([0_u64, 1].map(|number| random.hash_one(number) | 1))
    }
}

impl BuildHasher for NameKeys {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        let Self([seed, key]) = *self;
        NameHasher { state: seed, key }
    }
}

/// Takes bytes eight at a time.
#[derive(Clone, Debug)]
pub struct NameHasher {
    state: u64,
    key: u64,
}

impl NameHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.key);
        // What one half loses the other one has; the key is added so that a factor of 0 is not the end.
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.key.rotate_left(32));
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        let mut last = self.clone();
        last.mix(0);
        last.state
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            // Zeros are not told from nothing here: a slice hashes its length, too.
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(last));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_that_differ_anywhere_have_different_hashes() {
        let keys = NameKeys::default();
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        for length in 0..40 {
            let name = vec![b'a'; length];
            for at in 0..length {
                for bit in 0..8 {
                    let mut other = name.clone();
                    other[at] ^= 1 << bit;
                    names.insert(other);
                }
            }
            names.insert(vec![0; length]);
            names.insert(name);
        }
        let hashes: HashSet<u64> = names.iter().map(|name| keys.hash_one(&name[..])).collect();
        assert_eq!(hashes.len(), names.len());
    }

    #[test]
    fn all_bits_of_hashes_of_much_the_same_names_are_used() {
        let keys = NameKeys::default();
        for shift in [0, 24, 52] {
            let mut buckets = [0_u32; 4096];
            for number in 0..40_960 {
                let hash = keys.hash_one(format!("component000001_operation_{number}(int, char const*)").as_bytes());
                buckets[(hash >> shift) as usize % 4096] += 1;
            }
            // Ten on average; chance alone gives some thirty once in ten million.
            assert!(buckets.iter().all(|count| *count < 40), "{:?}", buckets.iter().max());
        }
    }

    #[test]
    fn keys_differ() {
        assert_ne!(NameKeys::default().hash_one(b"name"), NameKeys::default().hash_one(b"name"));
    }
}
