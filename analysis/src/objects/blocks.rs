//! Blocks of the heap that are there at a time. Invariant: no two of them overlap, since the older one of two that would is gone,
//! whether somebody has said so or not.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Block {
    /// One past its last byte; one of no bytes has one.
    end: u64,
    /// As many as were asked for.
    bytes: u64,
    object: u32,
    /// It may be gone, see [`grind_trace::OBJECT_IN_QUESTION`].
    in_question: bool,
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    all: BTreeMap<u64, Block>,
    /// The last one that was found.
    last: Option<(u64, u64, u32)>,
}

impl Blocks {
    /// A block is there; `gone` is told the objects, and the bytes, of those that lay where it lies.
    pub(super) fn born(&mut self, start: u64, bytes: u64, object: u32, mut gone: impl FnMut(u32, u64)) {
        self.last = None;
        let end = start.saturating_add(bytes.max(1));
        while let Some((&other, block)) = self.all.range(..end).next_back().filter(|(_, block)| block.end > start) {
            gone(block.object, block.bytes);
            self.all.remove(&other);
        }
        self.all.insert(start, Block { end, bytes, object, in_question: false });
    }

    /// A block is taken back. Returns its object and its bytes, if there was one.
    pub(super) fn freed(&mut self, start: u64) -> Option<(u32, u64)> {
        self.last = None;
        self.all.remove(&start).map(|block| (block.object, block.bytes))
    }

    pub(super) fn in_question(&mut self, start: u64, yes: bool) {
        if let Some(block) = self.all.get_mut(&start) {
            block.in_question = yes;
        }
    }

    /// A block that was in question is gone. Returns its object and its bytes, if it was there.
    pub(super) fn moved(&mut self, start: u64) -> Option<(u32, u64)> {
        self.all.get(&start).filter(|block| block.in_question)?;
        self.freed(start)
    }

    /// The object of the block at an address, and where the block lies.
    #[inline]
    pub(super) fn find(&mut self, at: u64) -> Option<(u32, Range<u64>)> {
        if let Some((start, end, object)) = self.last
            && (start..end).contains(&at)
        {
            return Some((object, start..end));
        }
        let (&start, block) = self.all.range(..=at).next_back().filter(|(_, block)| at < block.end)?;
        self.last = Some((start, block.end, block.object));
        Some((block.object, start..block.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by a list of bytes: each belongs to who has got it last.
    #[derive(Default)]
    struct Twin {
        bytes: Vec<Option<usize>>,
        /// Object, start, whether in question, whether there.
        blocks: Vec<(u32, u64, bool, bool)>,
    }

    impl Twin {
        fn at(&mut self, start: u64) -> Option<&mut (u32, u64, bool, bool)> {
            self.blocks.iter_mut().find(|b| b.1 == start && b.3)
        }

        fn end(&mut self, start: u64) -> Option<u32> {
            self.at(start).map(|block| {
                block.3 = false;
                block.0
            })
        }
    }

    #[test]
    fn blocks_are_those_of_a_list_of_bytes() {
        let (mut blocks, mut twin) = (Blocks::default(), Twin { bytes: vec![None; 600], ..Twin::default() });
        let mut state = 9u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut hits = 0;
        for object in 0..20_000 {
            let start = random(500);
            match random(6) {
                0 | 1 => {
                    let size = random(80);
                    let mut gone = Vec::new();
                    blocks.born(start, size, object, |object, _| gone.push(object));
                    let bytes = start as usize..(start + size.max(1)) as usize;
                    let mut expected = Vec::new();
                    for n in twin.bytes[bytes.clone()].iter().flatten() {
                        if std::mem::take(&mut twin.blocks[*n].3) {
                            expected.push(twin.blocks[*n].0);
                        }
                    }
                    gone.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(gone, expected, "at {start}");
                    twin.bytes[bytes].fill(Some(twin.blocks.len()));
                    twin.blocks.push((object, start, false, true));
                }
                2 => {
                    assert_eq!(blocks.freed(start).map(|b| b.0), twin.end(start), "at {start}");
                }
                3 => {
                    let yes = random(2) == 0;
                    blocks.in_question(start, yes);
                    twin.at(start).into_iter().for_each(|b| b.2 = yes);
                }
                4 => {
                    let there = twin.at(start).is_some_and(|b| b.2);
                    let expected = there.then(|| twin.end(start)).flatten();
                    assert_eq!(blocks.moved(start).map(|b| b.0), expected, "at {start}");
                }
                _ => {
                    for at in [start, random(600)] {
                        let expected =
                            twin.bytes[at as usize].map(|n| twin.blocks[n]).filter(|b| b.3).map(|b| (b.0, b.1));
                        assert_eq!(blocks.find(at).map(|(object, block)| (object, block.start)), expected, "at {at}");
                        hits += u32::from(expected.is_some());
                    }
                }
            }
        }
        assert!(hits > 1000, "{hits}");
    }
}
