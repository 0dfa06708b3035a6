//! A table of fixed length that may be large: told of before it is filled, so that somebody else can ask for memory in large
//! pages, in which the processor finds addresses faster. Lookups of a last level are all over its tables.
//!
//! Invariant: what is in the table does not depend on what is done about its memory.

use std::ops::{Deref, DerefMut, Range};

/// Bytes of a large page.
const PAGE: usize = 2 << 20;

/// See the module's description. Begins at a large page, if it is as large as one; a clone need not.
#[derive(Clone, Debug)]
pub(crate) struct Large<T> {
    all: Vec<T>,
    /// What is before it is not used.
    start: usize,
}

impl<T: Copy> Large<T> {
    /// `len` times `fill`. Calls `prepare` with the addresses of each part that may be in large pages, before it is touched.
    pub(crate) fn new(len: usize, fill: T, prepare: &mut dyn FnMut(Range<usize>)) -> Self {
        let size = size_of::<T>().max(1);
        if len * size < PAGE {
            return Self { all: vec![fill; len], start: 0 };
        }
        // Elements need not divide a page: the first one that begins in it is as good.
        // And there is room for half a page more than is needed, wherever it is.
        let mut all: Vec<T> = Vec::with_capacity(len + (PAGE + PAGE / 2) / size + 1);
        let begin = all.as_ptr().addr();
        let page = begin.next_multiple_of(PAGE);
        let start = ((page - begin).div_ceil(size)).min(PAGE / size);
        let end = begin + (start + len) * size;
        // The last one only if most of it is needed.
        let pages = (end - page + PAGE / 2) / PAGE;
        let room = (begin + all.capacity() * size - page) / PAGE;
        prepare(page..page + pages.min(room) * PAGE);
        all.resize(start + len, fill);
        Self { all, start }
    }
}

impl<T> Deref for Large<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.all[self.start..]
    }
}

impl<T> DerefMut for Large<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_are_told_of_and_others_are_not() {
        for len in [0, 1, 1000, 174_762, 174_763, 300_000, 1_000_000] {
            let mut told = Vec::new();
            let mut table = Large::new(len, [7u32, 8, 9], &mut |part| told.push(part));
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|t| *t == [7, 8, 9]));
            if len > 0 {
                table[len - 1] = [1, 2, 3];
                assert_eq!(table.clone().last(), Some(&[1, 2, 3]));
            }
            let parts: usize = told.iter().map(ExactSizeIterator::len).sum();
            let (begin, bytes) = (table.as_ptr().addr(), len * 12);
            assert_eq!(parts, if bytes < PAGE { 0 } else { (bytes + PAGE / 2) / PAGE * PAGE }, "{len}");
            for part in told {
                assert!(part.start.is_multiple_of(PAGE) && begin - part.start < 12);
                let allocated = table.all.as_ptr().addr()..table.all.as_ptr().addr() + table.all.capacity() * 12;
                assert!(part.start >= allocated.start && part.end <= allocated.end);
            }
        }
    }
}
