//! Which line of a set was used longest ago, and where a line is in its set, in as few of the processor's own cache lines as
//! will do: most lookups of a last level that is larger than those caches wait for memory, and for nothing else.
//!
//! A line is known by its tag, which is not 0; 0 is no line. Invariant: of the ways of a set that were used, no two have the
//! same time; those that never were have time 0.

/// Ways that there is room for in a [`Near`].
const NEAR: usize = 20;

/// A set with few ways: times count the uses of this set alone.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
struct Near {
    clock: u16,
    times: [u16; NEAR],
    tags: [u32; NEAR],
}

const _: () = assert!(size_of::<Near>() == 128);

impl Near {
    const EMPTY: Near = Near { clock: 0, times: [0; NEAR], tags: [0; NEAR] };

    /// Makes times small again; their order stays.
    #[cold]
    fn age(&mut self) {
        let mut used: Vec<usize> = (0..NEAR).filter(|way| self.times[*way] != 0).collect();
        used.sort_by_key(|way| self.times[*way]);
        for (way, time) in used.iter().zip(1..) {
            self.times[*way] = time;
        }
        self.clock = used.len() as u16;
    }
}

/// The sets of a cache.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    assoc: usize,
    /// By set; if there are few ways.
    near: Box<[Near]>,
    /// Otherwise: by set, as many as there are ways.
    tags: Box<[u32]>,
    times: Box<[u64]>,
    clock: u64,
}

impl Sets {
    /// Empty ones.
    pub(crate) fn new(sets: usize, assoc: usize) -> Self {
        let (near, far) = if assoc <= NEAR { (sets, 0) } else { (0, sets * assoc) };
        let near = vec![Near::EMPTY; near].into();
        Self { assoc, near, tags: vec![0; far].into(), times: vec![0; far].into(), clock: 0 }
    }

    /// The way of a set that has this tag.
    #[inline]
    pub(crate) fn find(&self, set: usize, tag: u32) -> Option<usize> {
        // Without a branch for each: at most one is equal.
        let search = |tags: &[u32]| {
            tags.iter().zip(1u32..).fold(0, |at, (other, n)| at | if *other == tag { n } else { 0 }) as usize
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
            if near.clock == u16::MAX {
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
    pub(crate) fn put(&mut self, set: usize, way: usize, tag: u32) {
        match self.near.get_mut(set) {
            Some(near) => near.tags[way] = tag,
            None => self.tags[set * self.assoc + way] = tag,
        }
    }

    /// A word of no meaning, which it takes what the other functions need of a set to know.
    #[inline]
    pub(crate) fn look(&self, set: usize) -> u64 {
        match self.near.get(set) {
            Some(near) => u64::from(near.clock) ^ u64::from(near.tags[NEAR - 1]),
            None => self.tags.get(set * self.assoc).copied().unwrap_or(0).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_lists_with_the_newest_first() {
        for assoc in [1, 2, 18, NEAR, NEAR + 1, 40] {
            let mut sets = Sets::new(4, assoc);
            // Tags and ways, the newest first.
            let mut lists: Vec<Vec<(u32, usize)>> = vec![(0..assoc).rev().map(|way| (0, way)).collect(); 4];
            let mut seed = 88_172_645_463_325_252u64;
            for round in 0..400_000 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                // One set gets most, so that its clock goes round.
                let set = if seed & 7 == 0 { (seed >> 8 & 3) as usize } else { 0 };
                let tag = 1 + (seed >> 16) as u32 % (assoc as u32 + 3);
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
