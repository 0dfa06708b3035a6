//! Blocks of the heap that are there at a time, in two layers: those of allocators, and those that the program has carved out of
//! its memory itself, which hide what they lie in. Invariant: no two of a layer overlap, since the older one of two that would is gone,
//! whether somebody has said so or not; nor does one lie in a block that is gone.

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
    /// The pool it was carved out of, or 0.
    pool: u64,
}

/// Blocks that do not overlap, by where they begin.
#[derive(Clone, Debug, Default)]
struct Layer {
    blocks: BTreeMap<u64, Block>,
    /// Where blocks have come or gone, if somebody wants to know.
    changes: Option<Vec<Range<u64>>>,
}

impl Layer {
    fn note(&mut self, start: u64, end: u64) {
        self.changes.iter_mut().for_each(|changes| changes.push(start..end));
    }

    fn insert(&mut self, start: u64, block: Block) {
        self.note(start, block.end);
        self.blocks.insert(start, block);
    }

    fn remove(&mut self, start: u64) -> Option<Block> {
        let block = self.blocks.remove(&start)?;
        self.note(start, block.end);
        Some(block)
    }

    /// The block that has an address, and where it lies; or what lies between the blocks around the address.
    fn around(&self, at: u64) -> Result<(Block, Range<u64>), Range<u64>> {
        let before = self.blocks.range(..=at).next_back();
        if let Some((start, block)) = before.filter(|(_, block)| at < block.end) {
            return Ok((*block, *start..block.end));
        }
        let next = self.blocks.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
        Err(before.map_or(0, |(_, block)| block.end)..next)
    }
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    all: Layer,
    /// Those in front of them.
    carved: Layer,
    /// The last one that was found.
    last: Option<(u64, u64, u32)>,
}

/// Removes what lies there; `gone` is told the objects, and the bytes.
fn clear(layer: &mut Layer, place: Range<u64>, mut gone: impl FnMut(u32, u64)) {
    let last = |layer: &Layer| {
        let (start, block) = layer.blocks.range(..place.end).next_back()?;
        (block.end > place.start).then_some((*start, *block))
    };
    while let Some((start, block)) = last(layer) {
        gone(block.object, block.bytes);
        layer.remove(start);
    }
}

fn put(layer: &mut Layer, start: u64, block: Block, gone: impl FnMut(u32, u64)) {
    clear(layer, start..block.end, gone);
    layer.insert(start, block);
}

impl Blocks {
    fn block(start: u64, bytes: u64, object: u32, pool: u64) -> Block {
        Block { end: start.saturating_add(bytes.max(1)), bytes, object, in_question: false, pool }
    }

    /// A block is there; `gone` is told the objects, and the bytes, of those that lay where it lies.
    pub(super) fn born(&mut self, start: u64, bytes: u64, object: u32, mut gone: impl FnMut(u32, u64)) {
        self.last = None;
        let block = Self::block(start, bytes, object, 0);
        clear(&mut self.carved, start..block.end, &mut gone);
        put(&mut self.all, start, block, gone);
    }

    /// The program has carved a block, of a pool (0: of none), out of what is there.
    pub(super) fn carved(&mut self, start: u64, bytes: u64, object: u32, pool: u64, gone: impl FnMut(u32, u64)) {
        self.last = None;
        put(&mut self.carved, start, Self::block(start, bytes, object, pool), gone);
    }

    /// A block is taken back, and what was carved out of it. Whether there was one.
    pub(super) fn freed(&mut self, start: u64, mut gone: impl FnMut(u32, u64)) -> bool {
        self.last = None;
        let Some(block) = self.all.remove(start) else { return false };
        gone(block.object, block.bytes);
        clear(&mut self.carved, start..block.end, gone);
        true
    }

    /// What was carved out is taken back. Whether there was such a block.
    pub(super) fn given_back(&mut self, start: u64, mut gone: impl FnMut(u32, u64)) -> bool {
        self.last = None;
        let Some(block) = self.carved.remove(start) else { return false };
        gone(block.object, block.bytes);
        true
    }

    /// Whatever was carved out of a pool is taken back. Whether there was anything.
    pub(super) fn pool_gone(&mut self, pool: u64, mut gone: impl FnMut(u32, u64)) -> bool {
        self.last = None;
        let of_pool = |(start, block): (&u64, &Block)| (block.pool == pool && pool != 0).then_some(*start);
        let all: Vec<u64> = self.carved.blocks.iter().filter_map(of_pool).collect();
        for block in all.iter().filter_map(|start| self.carved.remove(*start)) {
            gone(block.object, block.bytes);
        }
        !all.is_empty()
    }

    /// Whatever was carved out of a pool is taken back as far as it lies outside of `place`: `gone` is told the objects, and by how many
    /// bytes they are less.
    pub(super) fn pool_trimmed(&mut self, pool: u64, place: Range<u64>, mut gone: impl FnMut(u32, u64)) {
        self.last = None;
        let whole = |start: u64, block: &Block| place.start <= start && block.end <= place.end;
        let cut = |(start, block): &(&u64, &Block)| pool != 0 && block.pool == pool && !whole(**start, block);
        let all: Vec<u64> = self.carved.blocks.iter().filter(cut).map(|(start, _)| *start).collect();
        for start in all {
            let Some(block) = self.carved.remove(start) else { continue };
            let (from, to) = (start.max(place.start), block.end.min(place.end));
            let stays = to.saturating_sub(from).min(block.bytes);
            gone(block.object, block.bytes - stays);
            if stays > 0 {
                self.carved.insert(from, Self::block(from, stays, block.object, pool));
            }
        }
    }

    /// Whatever was carved out of a pool is of another one.
    pub(super) fn pool_moved(&mut self, from: u64, to: u64) {
        self.carved
            .blocks
            .values_mut()
            .filter(|block| from != 0 && block.pool == from)
            .for_each(|block| block.pool = to);
    }

    /// A block, one that was carved out if there is such a one, has another size. Returns its object, and its bytes before.
    pub(super) fn resized(&mut self, start: u64, bytes: u64, gone: impl FnMut(u32, u64)) -> Option<(u32, u64)> {
        self.last = None;
        let layer = if self.carved.blocks.contains_key(&start) { &mut self.carved } else { &mut self.all };
        let block = layer.remove(start)?;
        put(layer, start, Self::block(start, bytes, block.object, block.pool), gone);
        Some((block.object, block.bytes))
    }

    /// Whether there is such a block.
    pub(super) fn in_question(&mut self, start: u64, yes: bool) -> bool {
        self.all.blocks.get_mut(&start).is_some_and(|block| {
            block.in_question = yes;
            true
        })
    }

    /// A block that was in question is gone. Whether it was there.
    pub(super) fn moved(&mut self, start: u64, gone: impl FnMut(u32, u64)) -> bool {
        self.all.blocks.get(&start).is_some_and(|block| block.in_question) && self.freed(start, gone)
    }

    /// The object of the block at an address, and where the block lies.
    #[inline]
    pub(super) fn find(&mut self, at: u64) -> Option<(u32, Range<u64>)> {
        if let Some((start, end, object)) = self.last
            && (start..end).contains(&at)
        {
            return Some((object, start..end));
        }
        let carved = self.carved.around(at).ok();
        let carves = carved.is_some();
        let (block, place) = carved.or_else(|| self.all.around(at).ok())?;
        // A block of an allocator may be hidden in part.
        if carves || self.carved.blocks.is_empty() {
            self.last = Some((place.start, block.end, block.object));
        }
        Some((block.object, place))
    }

    /// The object of the block at an address, if there is one, and where that begins; and the addresses around it of which the
    /// same is to be said.
    pub(super) fn around(&self, at: u64) -> (Option<(u32, u64)>, Range<u64>) {
        let free = match self.carved.around(at) {
            Ok((block, place)) => return (Some((block.object, place.start)), place),
            Err(free) => free,
        };
        let (found, place) = match self.all.around(at) {
            Ok((block, place)) => (Some((block.object, place.start)), place),
            Err(free) => (None, free),
        };
        (found, place.start.max(free.start)..place.end.min(free.end))
    }

    /// Wants to know where blocks come and go from here on.
    pub(super) fn watch(&mut self) {
        self.all.changes.get_or_insert_default();
        self.carved.changes.get_or_insert_default();
    }

    /// Where blocks have come or gone since the last time.
    pub(super) fn changes(&mut self) -> impl Iterator<Item = Range<u64>> {
        let layers = [&mut self.all, &mut self.carved];
        layers.into_iter().filter_map(|layer| layer.changes.as_mut()).flat_map(|changes| changes.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by lists of bytes, one for each layer: each byte belongs to who has got it last.
    struct Twin {
        bytes: [Vec<Option<usize>>; 2],
        blocks: Vec<Known>,
    }

    #[derive(Clone, Copy)]
    struct Known {
        object: u32,
        start: u64,
        size: u64,
        carved: bool,
        in_question: bool,
        there: bool,
        pool: u64,
    }

    impl Twin {
        fn at(&mut self, start: u64, carved: bool) -> Option<usize> {
            self.blocks.iter().position(|b| b.start == start && b.there && b.carved == carved)
        }

        /// Ends those of a layer that have a byte in a place.
        fn clear(&mut self, layer: usize, bytes: Range<usize>, ended: &mut Vec<u32>) {
            for n in self.bytes[layer][bytes].iter().copied().flatten() {
                if std::mem::take(&mut self.blocks[n].there) {
                    ended.push(self.blocks[n].object);
                }
            }
        }

        fn put(&mut self, known: Known, ended: &mut Vec<u32>) {
            let bytes = known.start as usize..(known.start + known.size.max(1)) as usize;
            let layer = usize::from(known.carved);
            self.clear(layer, bytes.clone(), ended);
            if !known.carved {
                self.clear(1, bytes.clone(), ended);
            }
            self.bytes[layer][bytes].fill(Some(self.blocks.len()));
            self.blocks.push(known);
        }

        fn end(&mut self, start: u64, carved: bool, ended: &mut Vec<u32>) -> bool {
            let Some(n) = self.at(start, carved) else { return false };
            let block = self.blocks[n];
            self.blocks[n].there = false;
            ended.push(block.object);
            if !carved {
                self.clear(1, start as usize..(start + block.size.max(1)) as usize, ended);
            }
            true
        }

        fn find(&self, at: u64) -> Option<(u32, u64)> {
            let of = |layer: usize| self.bytes[layer][at as usize].map(|n| self.blocks[n]).filter(|b| b.there);
            of(1).or_else(|| of(0)).map(|b| (b.object, b.start))
        }
    }

    #[test]
    fn blocks_are_those_of_lists_of_bytes() {
        let mut blocks = Blocks::default();
        blocks.watch();
        let mut before: Vec<Option<(u32, u64)>> = vec![None; 600];
        let mut changes: Vec<Range<u64>> = Vec::new();
        let mut twin = Twin { bytes: [vec![None; 600], vec![None; 600]], blocks: Vec::new() };
        let mut state = 9u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut hits = [0; 2];
        for object in 0..40_000 {
            let start = random(500);
            let (mut ended, mut expected) = (Vec::new(), Vec::new());
            let gone = |object, _| ended.push(object);
            let size = random(80);
            match random(9) {
                what @ 0..=3 => {
                    let (carved, pool) = (what > 1, if what == 3 { 1 + random(3) } else { 0 });
                    match carved {
                        true => blocks.carved(start, size / 4, object, pool, gone),
                        false => blocks.born(start, size, object, gone),
                    }
                    let size = if carved { size / 4 } else { size };
                    let known = Known { object, start, size, carved, in_question: false, there: true, pool };
                    twin.put(known, &mut expected);
                }
                4 => assert_eq!(blocks.freed(start, gone), twin.end(start, false, &mut expected), "at {start}"),
                5 => match random(6) {
                    4 => {
                        let (pool, place) = (1 + random(3), start..start + 4 * size);
                        blocks.pool_trimmed(pool, place.clone(), gone);
                        for n in 0..twin.blocks.len() {
                            let block = twin.blocks[n];
                            let bytes = block.start..block.start + block.size.max(1);
                            let inside = |at: &u64| place.contains(at);
                            if !block.there || block.pool != pool || bytes.clone().all(|at| inside(&at)) {
                                continue;
                            }
                            twin.blocks[n].there = false;
                            expected.push(block.object);
                            let mut left = bytes.filter(inside);
                            if let Some(first) = left.next().filter(|_| block.size > 0) {
                                let size = 1 + left.count() as u64;
                                let here = first as usize..(first + size) as usize;
                                twin.bytes[1][here].fill(Some(twin.blocks.len()));
                                twin.blocks.push(Known { start: first, size, ..block });
                            }
                        }
                    }
                    5 => {
                        let (from, to) = (1 + random(3), 1 + random(3));
                        blocks.pool_moved(from, to);
                        twin.blocks.iter_mut().filter(|b| b.pool == from).for_each(|b| b.pool = to);
                    }
                    0 => {
                        let pool = 1 + random(3);
                        let any = blocks.pool_gone(pool, gone);
                        for block in twin.blocks.iter_mut().filter(|b| b.there && b.pool == pool) {
                            block.there = false;
                            expected.push(block.object);
                        }
                        assert_eq!(any, !expected.is_empty(), "pool {pool}");
                    }
                    _ => assert_eq!(blocks.given_back(start, gone), twin.end(start, true, &mut expected), "at {start}"),
                },
                6 => {
                    let yes = random(2) == 0;
                    let there = twin.at(start, false);
                    assert_eq!(blocks.in_question(start, yes), there.is_some(), "at {start}");
                    there.into_iter().for_each(|n| twin.blocks[n].in_question = yes);
                }
                7 => {
                    let there = twin.at(start, false).is_some_and(|n| twin.blocks[n].in_question);
                    assert_eq!(blocks.moved(start, gone), there && twin.end(start, false, &mut expected), "at {start}");
                }
                _ => {
                    let old = twin.at(start, true).or_else(|| twin.at(start, false)).map(|n| twin.blocks[n]);
                    let resized = blocks.resized(start, size / 2, gone);
                    assert_eq!(resized, old.map(|b| (b.object, b.size)), "at {start}");
                    if let Some(old) = old {
                        let n = twin.blocks.iter().position(|b| b.start == start && b.there && b.carved == old.carved);
                        twin.blocks[n.expect("it is there")].there = false;
                        // (What has grown is no new block of the layer behind what was carved out of it.)
                        let layer = usize::from(old.carved);
                        let bytes = start as usize..(start + (size / 2).max(1)) as usize;
                        twin.clear(layer, bytes.clone(), &mut expected);
                        twin.bytes[layer][bytes].fill(Some(twin.blocks.len()));
                        twin.blocks.push(Known { size: size / 2, in_question: false, ..old });
                    }
                }
            }
            ended.sort_unstable();
            expected.sort_unstable();
            assert_eq!(ended, expected, "at {start}");
            changes.extend(blocks.changes());
            if object % 16 == 0 {
                let now: Vec<Option<(u32, u64)>> = (0..600).map(|at| twin.find(at)).collect();
                let differ = (0..600u64).filter(|at| now[*at as usize] != before[*at as usize]);
                let told = |at: &u64| changes.iter().any(|change| change.contains(at));
                assert!(differ.clone().all(|at| told(&at)), "{changes:?} at {start}");
                before = now;
                changes.clear();
            }
            for at in [start, random(600)] {
                let expected = twin.find(at);
                let (found, around) = blocks.around(at);
                assert_eq!(found, expected, "at {at}");
                assert!(around.contains(&at), "at {at}");
                let end = around.end.min(600);
                for n in [around.start, end - 1, around.start + random(end - around.start)] {
                    assert_eq!(twin.find(n), expected, "at {n}, as at {at}");
                }
                assert_eq!(blocks.find(at).map(|(object, block)| (object, block.start)), expected, "at {at}");
                hits[usize::from(twin.bytes[1][at as usize].is_some_and(|n| twin.blocks[n].there))] +=
                    u32::from(expected.is_some());
            }
        }
        assert!(hits.iter().all(|n| *n > 1000), "{hits:?}");
    }
}
