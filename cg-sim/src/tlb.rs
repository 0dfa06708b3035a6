//! Translation lookaside buffers: which pages of 4 KiB a thread has used last, for data, for code, and for what neither of these has.
//!
//! All replace the page used longest ago of a set. An access to two pages looks both up, in order; it is missed if either is. The second
//! level is asked for each page that the first one did not have, of data and of code, in the order of the thread. Nothing is in any of
//! them at first, and nothing is ever thrown out by the kernel; large pages are not known here.
//!
//! Invariants: a set holds no page twice, and the one used last comes first.

use std::fmt;

use crate::hierarchy::Port;

/// How far an address is shifted to become a page's number.
pub const PAGE_BITS: u32 = 12;

/// The most pages that one of them may hold.
pub const MOST: u32 = 1 << 16;

/// No page.
const NONE: u64 = u64::MAX;

/// How many pages one holds, in which sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    entries: u32,
    ways: u32,
}

/// Text that is not the shape of a buffer that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// It is not two decimal numbers with a comma between them.
    Malformed,
    /// There are no pages, or more than [`MOST`].
    Entries,
    /// The sets are not a power of two, each of so many pages.
    Sets,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("should be ENTRIES,WAYS"),
            Self::Entries => write!(f, "should have 1 to {MOST} entries"),
            Self::Sets => f.write_str("the entries should be a power of two of sets of so many ways"),
        }
    }
}

impl std::error::Error for ShapeError {}

impl Shape {
    /// One of so many pages, in sets of `ways`.
    ///
    /// # Errors
    /// When it cannot be simulated.
    pub fn new(entries: u32, ways: u32) -> Result<Self, ShapeError> {
        if !(1..=MOST).contains(&entries) {
            return Err(ShapeError::Entries);
        }
        if ways == 0 || !entries.is_multiple_of(ways) || !(entries / ways).is_power_of_two() {
            return Err(ShapeError::Sets);
        }
        Ok(Self { entries, ways })
    }

    /// The one that a text says: `64,4`.
    ///
    /// # Errors
    /// When it says none.
    pub fn parse(text: &str) -> Result<Self, ShapeError> {
        let (entries, ways) = text.split_once(',').ok_or(ShapeError::Malformed)?;
        let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() {
            true => Ok(digits.parse().unwrap_or(u32::MAX)),
            false => Err(ShapeError::Malformed),
        };
        Self::new(number(entries)?, number(ways)?)
    }

    /// Pages in all.
    #[must_use]
    pub fn entries(self) -> u32 {
        self.entries
    }

    /// Pages of a set.
    #[must_use]
    pub fn ways(self) -> u32 {
        self.ways
    }

    /// Sets, a power of two.
    #[must_use]
    pub fn sets(self) -> u32 {
        self.entries / self.ways
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pages of {} B, ", self.entries, 1 << PAGE_BITS)?;
        match (self.ways, self.sets()) {
            (1, _) => f.write_str("direct-mapped"),
            (_, 1) => f.write_str("fully associative"),
            (ways, _) => write!(f, "{ways}-way associative"),
        }
    }
}

/// All of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlbs {
    /// That of data.
    pub data: Shape,
    /// That of code.
    pub code: Shape,
    /// The second level of both, if there is one.
    pub second: Option<Shape>,
}

impl Default for Tlbs {
    /// First levels of the shapes that Intel's processors from Skylake on have, and no second one.
    fn default() -> Self {
        let shape = |entries, ways| Shape { entries, ways };
        Self { data: shape(64, 4), code: shape(128, 8), second: None }
    }
}

/// The pages of one buffer.
#[derive(Clone, Debug)]
pub struct Tlb {
    /// The numbers of pages, set by set, the one used last first.
    pages: Box<[u64]>,
    set_mask: u64,
    ways: usize,
}

impl Tlb {
    /// An empty one.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let pages = vec![NONE; shape.entries as usize].into();
        Self { pages, set_mask: u64::from(shape.sets()) - 1, ways: shape.ways as usize }
    }

    /// Uses a page, by its number. Returns whether it was not there.
    #[inline]
    pub fn misses(&mut self, page: u64) -> bool {
        let first = (page & self.set_mask) as usize * self.ways;
        let set = &mut self.pages[first..first + self.ways];
        if set[0] == page {
            return false;
        }
        let found = set.iter().position(|other| *other == page);
        set[..=found.unwrap_or(self.ways - 1)].rotate_right(1);
        set[0] = page;
        found.is_none()
    }
}

/// Which levels an access missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// The first one.
    pub first: bool,
    /// The second one, too; never if there is none.
    pub second: bool,
}

/// What a thread has of them.
#[derive(Clone, Debug)]
pub struct ThreadTlbs {
    data: Tlb,
    code: Tlb,
    second: Option<Tlb>,
}

impl ThreadTlbs {
    /// Empty ones.
    #[must_use]
    pub fn new(tlbs: &Tlbs) -> Self {
        Self { data: Tlb::new(tlbs.data), code: Tlb::new(tlbs.code), second: tlbs.second.map(Tlb::new) }
    }

    /// Uses `size` bytes at `addr`, at least one.
    #[inline]
    pub fn access(&mut self, port: Port, addr: u64, size: u32) -> Missed {
        let mut page = addr >> PAGE_BITS;
        let last = addr.wrapping_add(u64::from(size.max(1)) - 1) >> PAGE_BITS;
        let mut missed = Missed::default();
        loop {
            let first = match port {
                Port::Data => &mut self.data,
                Port::Fetch => &mut self.code,
            };
            if first.misses(page) {
                missed.first = true;
                missed.second |= self.second.as_mut().is_some_and(|second| second.misses(page));
            }
            if page == last {
                return missed;
            }
            // Behind the last page comes the first one.
            page = (page + 1) & (u64::MAX >> PAGE_BITS);
        }
    }
}

/// What a thread has of TLBs behind first levels that somebody else simulates, who tells of each page that these miss. Invariant: an access
/// misses each level once at most, however many pages it is in.
#[derive(Clone, Debug)]
pub struct Behind {
    second: Option<Tlb>,
    /// The access whose pages are being told has missed the second level.
    missed: bool,
}

impl Behind {
    /// Nothing is in it.
    #[must_use]
    pub fn new(tlbs: &Tlbs) -> Self {
        Self { second: tlbs.second.map(Tlb::new), missed: false }
    }

    /// A page has missed a first level; `again`: after another one of the same access. How often more the access misses each level than
    /// was told of it.
    pub fn missed(&mut self, page: u64, again: bool) -> [u64; 2] {
        let before = again && self.missed;
        self.missed = before | self.second.as_mut().is_some_and(|second| second.misses(page));
        [u64::from(!again), u64::from(self.missed && !before)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(entries: u32, ways: u32) -> Shape {
        Shape::new(entries, ways).expect("a shape")
    }

    fn random(seed: &mut u64, end: u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed % end
    }

    /// All uses of a set's pages: a page is there if fewer than so many others have been used since it was.
    struct Naive(Shape, Vec<u64>);

    impl Naive {
        fn misses(&mut self, page: u64) -> bool {
            let sets = u64::from(self.0.sets());
            let mut since = Vec::new();
            let mut known = false;
            for &other in self.1.iter().rev().filter(|other| *other % sets == page % sets) {
                known |= other == page;
                if known {
                    break;
                }
                if !since.contains(&other) {
                    since.push(other);
                }
            }
            self.1.push(page);
            !known || since.len() >= self.0.ways() as usize
        }
    }

    #[test]
    fn it_misses_when_so_many_other_pages_have_been_used() {
        for (entries, ways) in [(1, 1), (4, 4), (8, 1), (16, 4), (12, 3), (64, 64)] {
            let of = shape(entries, ways);
            let (mut tlb, mut naive) = (Tlb::new(of), Naive(of, Vec::new()));
            let mut seed = 88_172_645_463_325_252;
            let mut missed = 0;
            for round in 0..4000 {
                let base = [0, 7, 0xf_ffff_ffff_ff00][random(&mut seed, 3) as usize];
                let page = base + random(&mut seed, u64::from(entries) * 2);
                let expected = naive.misses(page);
                assert_eq!(tlb.misses(page), expected, "{of}, round {round}");
                missed += u32::from(expected);
            }
            assert!((100..4000).contains(&missed), "{of}: {missed}");
        }
    }

    #[test]
    fn the_second_level_is_asked_for_what_the_first_ones_miss() {
        let tlbs = Tlbs { data: shape(4, 2), code: shape(2, 1), second: Some(shape(16, 4)) };
        let mut all = ThreadTlbs::new(&tlbs);
        let (mut data, mut code) = (Naive(tlbs.data, Vec::new()), Naive(tlbs.code, Vec::new()));
        let mut second = Naive(tlbs.second.expect("one"), Vec::new());
        let mut seed = 362_436_069;
        let mut seen = [0; 4];
        for round in 0..20_000 {
            let port = if random(&mut seed, 3) == 0 { Port::Fetch } else { Port::Data };
            let first = if port == Port::Data { &mut data } else { &mut code };
            let (addr, size) = (random(&mut seed, 24 << PAGE_BITS), 1 + random(&mut seed, 1000));
            let mut expected = Missed::default();
            for page in addr >> PAGE_BITS..=(addr + size - 1) >> PAGE_BITS {
                if first.misses(page) {
                    expected.first = true;
                    expected.second |= second.misses(page);
                }
            }
            if round > 15_000 {
                // (The naive ones remember all of it.)
                [&mut data.1, &mut code.1, &mut second.1].into_iter().for_each(|uses| {
                    uses.drain(..uses.len().saturating_sub(500));
                });
            }
            assert_eq!(all.access(port, addr, size as u32), expected, "round {round}");
            seen[usize::from(expected.first) + 2 * usize::from(expected.second)] += 1;
        }
        assert!(seen[0] > 100 && seen[1] > 100 && seen[2] == 0 && seen[3] > 100, "{seen:?}");
    }

    #[test]
    fn the_last_page_is_followed_by_the_first_one() {
        let mut all = ThreadTlbs::new(&Tlbs::default());
        assert!(all.access(Port::Data, u64::MAX, 2).first);
        assert!(!all.access(Port::Data, 5, 1).first && !all.access(Port::Data, u64::MAX - 4000, 1).first);
    }

    #[test]
    fn shapes_are_two_numbers() {
        for (text, entries, ways, shown) in [
            ("64,4", 64, 4, "64 pages of 4096 B, 4-way associative"),
            ("64,64", 64, 64, "64 pages of 4096 B, fully associative"),
            ("8,1", 8, 1, "8 pages of 4096 B, direct-mapped"),
            ("1536,12", 1536, 12, "1536 pages of 4096 B, 12-way associative"),
        ] {
            let parsed = Shape::parse(text).expect(text);
            assert_eq!((parsed, parsed.to_string()), (shape(entries, ways), shown.to_owned()));
        }
        for (text, error) in [
            ("64", ShapeError::Malformed),
            ("64,", ShapeError::Malformed),
            ("64,+4", ShapeError::Malformed),
            ("64,4,1", ShapeError::Malformed),
            ("0,1", ShapeError::Entries),
            ("65537,1", ShapeError::Entries),
            ("99999999999,1", ShapeError::Entries),
            ("64,0", ShapeError::Sets),
            ("96,4", ShapeError::Sets),
            ("64,3", ShapeError::Sets),
            ("4,8", ShapeError::Sets),
        ] {
            assert_eq!(Shape::parse(text), Err(error), "{text}");
        }
    }
}
