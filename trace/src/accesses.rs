//! What sites are to caches: which of a thread's caches is asked, and how many accesses an instruction makes that only its record knows.
//!
//! Invariant: a modification is a read here, as Cachegrind books it.

use crate::{Done, SiteKind, Special, Target, operands};

/// What a site's accesses are to caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePort {
    /// Fetches of instructions.
    Fetch,
    /// Reads of data, and modifications.
    Read,
    /// Writes of data.
    Write,
}

impl CachePort {
    /// That of a site whose record tells an access.
    #[must_use]
    pub fn of(kind: SiteKind) -> Option<Self> {
        match kind {
            SiteKind::Fetch | SiteKind::Stretch { .. } => Some(Self::Fetch),
            SiteKind::Write(_) | SiteKind::Sized { done: Done::Write } | SiteKind::Member { done: Done::Write, .. } => {
                Some(Self::Write)
            }
            SiteKind::Read(_) | SiteKind::Modify(_) | SiteKind::Sized { .. } | SiteKind::Member { .. } => {
                Some(Self::Read)
            }
            _ => None,
        }
    }
}

impl SiteKind {
    /// The reads and the writes of an instruction whose number is not known in advance, from its record, site included.
    #[must_use]
    pub fn accesses(self, record: &[u32], specials: &[Special]) -> [u64; 2] {
        match self {
            Self::Special { index, .. } => {
                let all = specials.get(index as usize).map(|special| special.touches(record)).unwrap_or_default();
                let writes = all.iter().filter(|touch| touch.done == Done::Write).count();
                [all.len() - writes, writes].map(|n| n as u64)
            }
            Self::Repeated { source, target, narrow, .. } => {
                let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
                let count = |n: usize| operands::joined(record[n], record[n + 1]) & mask;
                let iterations = count(1).wrapping_sub(count(7)) & mask;
                let reads = iterations * (u64::from(source) + u64::from(target == Target::Read));
                [reads, iterations * u64::from(target == Target::Write)]
            }
            _ => [0; 2],
        }
    }
}
