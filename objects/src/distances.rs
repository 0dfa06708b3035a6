//! Stack distances of a process's data accesses, as they are asked for and as they are found.
//!
//! Each thread's are those of its own accesses: what others use meanwhile does not count. Rows of the file are made in
//! [`super::report`], and records are gone through in the simulator of `grind_analysis`.

use cg_format::mem::reuse::{BINS, ReuseHead};
use cg_sim::distance::{self, Histogram, Sample};

use super::Site;

const _: () = assert!(BINS == distance::BINS);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of a line: a power of two.
    pub line: u32,
    /// Which lines are looked at.
    pub sample: Sample,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was asked for.
    pub wanted: Wanted,
    /// By instruction, in no order.
    pub sites: Vec<(Site, Histogram)>,
}

impl Found {
    /// What the first line of a file says of them; rows are counted when it is finished.
    #[must_use]
    pub fn head(&self) -> ReuseHead {
        ReuseHead { count: 0, line: self.wanted.line.into(), sample: self.wanted.sample.rate(), accesses: 0 }
    }
}
