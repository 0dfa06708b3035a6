//! Records of pages that first-level TLBs have missed, where the program simulates these by itself: second levels are here.
//! Nothing else of TLBs is.

use cg_sim::tlb::PAGE_BITS;
use grind_trace::{CachePort, PAGE_WORDS, SiteKind, operands};

use super::Process;
use crate::counts::EventCounts;

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
    match CachePort::of(kind) {
        Some(CachePort::Fetch) => [c.it1mr, c.it2mr] = pages,
        Some(CachePort::Write) => [c.dt1mw, c.dt2mw] = pages,
        Some(CachePort::Read) => [c.dt1mr, c.dt2mr] = pages,
        None => {}
    }
}
