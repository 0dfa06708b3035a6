//! Which line of a set was used longest ago, and where a line is in its set, in as few of the processor's own cache lines as
//! will do: most lookups of a last level that is larger than those caches wait for memory, and for nothing else.
//!
//! A line is known by its tag, which is not 0; 0 is no line. Invariant: of the ways of a set that were used, no two have the
//! same time; those that never were have time 0.

use std::ops::Range;

use crate::large::Large;

/// Ways that there is room for in a [`Near`].
const NEAR: usize = 20;

/// A set with few ways, in one of the processor's cache lines: times count the uses of this set alone, and not far.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Near {
    tags: [u16; NEAR],
    times: [u8; NEAR],
    clock: u8,
}

const _: () = assert!(size_of::<Near>() == 64);

impl Near {
    const EMPTY: Near = Near { tags: [0; NEAR], times: [0; NEAR], clock: 0 };

    /// Makes times small again; their order stays.
    #[cold]
    #[inline(never)]
    fn age(&mut self) {
        let times = self.times;
        let mut used = 0;
        for (time, before) in self.times.iter_mut().zip(times) {
            if before != 0 {
                *time = times.iter().filter(|t| **t != 0 && **t <= before).count() as u8;
                used += 1;
            }
        }
        self.clock = used;
    }
}

/// The sets of a cache.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    assoc: usize,
    /// By set; if there are few ways.
    near: Large<Near>,
    /// Otherwise: by set, as many as there are ways.
    tags: Box<[u16]>,
    times: Box<[u64]>,
    clock: u64,
}

impl Sets {
    /// Empty ones; `prepare` as for [`Large::new`].
    pub(crate) fn new(sets: usize, assoc: usize, prepare: &mut dyn FnMut(Range<usize>)) -> Self {
        let (near, far) = if assoc <= NEAR { (sets, 0) } else { (0, sets * assoc) };
        let near = Large::new(near, Near::EMPTY, prepare);
        Self { assoc, near, tags: vec![0; far].into(), times: vec![0; far].into(), clock: 0 }
    }

    /// The way of a set that has this tag.
    #[inline]
    pub(crate) fn find(&self, set: usize, tag: u16) -> Option<usize> {
        // Without a branch for each: at most one is equal.
        let search = |tags: &[u16]| {
            tags.iter().zip(1u16..).fold(0, |at, (other, n)| at | if *other == tag { n } else { 0 }) as usize
        };
        let at = match self.near.get(set) {
            Some(near) => search(&near.tags),
            None => search(&self.tags[set * self.assoc..][..self.assoc]),
        };
        at.checked_sub(1)
    }

    /// The way that was used longest ago; the first of those that never were.
    #[inline]
    pub(crate) fn oldest(&self, set: usize) -> usize {
        fn first_least<T: Ord + Copy>(times: &[T]) -> usize {
            times.iter().enumerate().min_by_key(|(_, time)| **time).map_or(0, |(way, _)| way)
        }
        match self.near.get(set) {
            Some(near) => first_least(&near.times[..self.assoc]),
            None => first_least(&self.times[set * self.assoc..][..self.assoc]),
        }
    }

    /// A way is used.
    #[inline]
    pub(crate) fn touch(&mut self, set: usize, way: usize) {
        if let Some(near) = self.near.get_mut(set) {
            if near.clock == u8::MAX {
                near.age();
            }
            near.clock += 1;
            near.times[way] = near.clock;
        } else {
            self.clock += 1;
            self.times[set * self.assoc + way] = self.clock;
        }
    }

    /// From now on a way has another tag.
    #[inline]
    pub(crate) fn put(&mut self, set: usize, way: usize, tag: u16) {
        match self.near.get_mut(set) {
            Some(near) => near.tags[way] = tag,
            None => self.tags[set * self.assoc + way] = tag,
        }
    }

    /// The address of what the other functions need of a set to know, or of some of it.
    #[inline]
    pub(crate) fn address(&self, set: usize) -> usize {
        match self.near.get(set) {
            Some(near) => std::ptr::from_ref(near).addr(),
            None => self.tags.get(set * self.assoc).map_or(0, |tag| std::ptr::from_ref(tag).addr()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_lists_with_the_newest_first() {
        for assoc in [1, 2, 18, NEAR, NEAR + 1, 40] {
            let mut sets = Sets::new(4, assoc, &mut |_| ());
            // Tags and ways, the newest first.
            let mut lists: Vec<Vec<(u16, usize)>> = vec![(0..assoc).rev().map(|way| (0, way)).collect(); 4];
            let mut seed = 88_172_645_463_325_252u64;
            for round in 0..400_000 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                // One set gets most, so that its clock goes round.
                let set = if seed & 7 == 0 { (seed >> 8 & 3) as usize } else { 0 };
                let tag = 1 + (seed >> 16) as u16 % (assoc as u16 + 3);
                let list = &mut lists[set];
                let known = list.iter().position(|(other, _)| *other == tag);
                let at = known.unwrap_or(assoc - 1);
                let (_, way) = list.remove(at);
                assert_eq!(sets.find(set, tag), known.map(|_| way), "{assoc}, round {round}");
                if known.is_none() {
                    assert_eq!(sets.oldest(set), way, "{assoc}, round {round}");
                    sets.put(set, way, tag);
                }
                sets.touch(set, way);
                list.insert(0, (tag, way));
            }
        }
    }
}
