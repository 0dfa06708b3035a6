//! The maps for keys that are small numbers or addresses: two multiplications instead of SipHash. Keys come from the guest, so a
//! hostile guest could slow its own run down, nothing else. Order in them is the same in every run, but means nothing.

/// A map from addresses or small numbers.
pub type Map<K, V> = rustc_hash::FxHashMap<K, V>;

/// A set of those.
pub type Set<K> = rustc_hash::FxHashSet<K>;
