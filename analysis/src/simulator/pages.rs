//! Records of pages that first-level TLBs have missed, where the program simulates these by itself: second levels are here.
//!
//! Invariant: an access misses each level once at most, however many pages it is in.

use cg_sim::tlb::{PAGE_BITS, Tlb};
use grind_trace::{PAGE_WORDS, SiteKind, operands};

use super::{Port, Process};
use crate::counts::EventCounts;

/// What a thread has of TLBs behind those that the program simulates by itself.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    pub(super) second: Option<Tlb>,
    /// The access whose pages are being told has missed the second level.
    pub(super) missed: bool,
}

impl Buffers {
    /// A page has missed a first level; `again`: after another one of the same access. How often more the access misses each level than
    /// was told of it.
    fn missed(&mut self, page: u64, again: bool) -> [u64; 2] {
        let before = again && self.missed;
        self.missed = before | self.second.as_mut().is_some_and(|second| second.misses(page));
        [u64::from(!again), u64::from(self.missed && !before)]
    }
}

impl Process {
    /// A record of a page that a first-level TLB did not have. The words behind it.
    pub(super) fn page_missed<'w>(&mut self, record: &'w [u32]) -> Option<&'w [u32]> {
        let (record, rest) = record.split_at_checked(PAGE_WORDS)?;
        let line = operands::joined(record[2], record[3]);
        let missed = self.running.as_mut()?.missed(line >> PAGE_BITS, line & 1 != 0);
        let sums = self.pages.get_mut(record[1] as usize)?;
        sums.iter_mut().zip(missed).for_each(|(sum, n)| *sum += n);
        Some(rest)
    }
}

/// Adds so many misses of first- and second-level TLBs of a site.
pub(super) fn add_pages(kind: SiteKind, pages: [u64; 2], c: &mut EventCounts) {
    match Port::of(kind) {
        Some(Port::Fetch) => [c.it1mr, c.it2mr] = pages,
        Some(Port::Write) => [c.dt1mw, c.dt2mw] = pages,
        Some(Port::Read) => [c.dt1mr, c.dt2mr] = pages,
        None => {}
    }
}
