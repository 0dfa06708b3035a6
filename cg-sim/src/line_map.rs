//! A word for each line of memory, by pages of 64 lines: what is near each other in the program is near here.
//!
//! Invariants: a line of which nothing was ever said has the word 0; pages never go. Lines are addresses shifted by their size, so
//! none is `u64::MAX`.

/// Lines of a page.
const PAGE: usize = 64;

/// What is known of lines.
#[derive(Clone, Debug)]
pub(crate) struct LineMap {
    /// By page, below a hash: the page's number and one more, and its index in `words`; 0 where there is none.
    pages: Vec<(u64, u32)>,
    words: Vec<[u32; PAGE]>,
}

impl LineMap {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Self { pages: vec![(0, 0); 64], words: Vec::new() }
    }

    /// Where the page of this key is, or would be.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let bits = self.pages.len().trailing_zeros();
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - bits)) as usize;
        while self.pages[at].0 != key && self.pages[at].0 != 0 {
            at = (at + 1) & (self.pages.len() - 1);
        }
        at
    }

    /// The word of a line, to be changed.
    #[inline]
    pub(crate) fn of(&mut self, line: u64) -> &mut u32 {
        let key = (line >> 6) + 1;
        let mut at = self.slot(key);
        if self.pages[at].0 == 0 {
            at = self.add_page(key);
        }
        &mut self.words[self.pages[at].1 as usize][(line & 63) as usize]
    }

    /// The address, in this process, of the word of a line whose page is known.
    #[inline]
    pub(crate) fn address(&self, line: u64) -> Option<usize> {
        let (key, page) = self.pages[self.slot((line >> 6) + 1)];
        (key != 0).then(|| std::ptr::from_ref(&self.words[page as usize][(line & 63) as usize]).addr())
    }

    #[cold]
    fn add_page(&mut self, key: u64) -> usize {
        if (self.words.len() + 1) * 2 > self.pages.len() {
            let larger = vec![(0, 0); self.pages.len() * 2];
            let old = std::mem::replace(&mut self.pages, larger);
            for page in old.into_iter().filter(|page| page.0 != 0) {
                let at = self.slot(page.0);
                self.pages[at] = page;
            }
        }
        let at = self.slot(key);
        self.pages[at] = (key, self.words.len() as u32);
        self.words.push([0; PAGE]);
        at
    }

    /// The words of all lines of pages that are known, in no order that means anything.
    pub(crate) fn all(&mut self) -> &mut [u32] {
        self.words.as_flattened_mut()
    }
}
