//! Records about data objects, in a process: which of them are misses, and what allocators are asked for. Objects themselves are
//! in [`super::by_object`].
//!
//! Invariant: an allocation is a cost of the call that the allocator returns behind, added to the thread's totals at the same time.

use std::ops::Range;

use grind_types::Tid;

use super::super::code::Catalogue;
use super::super::columns::Depth;
use super::Space;
use super::by_object::DataMiss;
use super::process::Process;
use super::thread::Thread;

impl Process {
    /// Books a miss, if it was one of data, of an address and so many bytes.
    #[inline]
    pub(super) fn missed_object(
        &mut self,
        t: &mut Thread,
        space: &Space,
        (number, data, depth): (u32, Option<(u64, u16)>, Depth),
    ) {
        if let (Some(by_object), Some((addr, size))) = (&mut self.by_object, data) {
            let miss = DataMiss { site: &space.sites[number as usize], addr, size, depth };
            by_object.missed(&space.images, (&t.calls, &mut t.missed), &miss);
        }
    }

    /// The record that `words` begins with, if it is one of objects: the words behind it.
    pub(super) fn object_record<'w>(
        &mut self,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        (words, followed): (&'w [u32], bool),
    ) -> Option<&'w [u32]> {
        let by_object = self.by_object.as_mut()?;
        let rest = by_object.objects.record(words)?;
        if let (Some(first), Some(allocated)) = (self.columns.allocations, by_object.objects.allocated()) {
            self.allocated(t, catalogue, (first, followed), (allocated.site.addr, allocated.size));
        }
        Some(rest)
    }

    /// A call of an allocator has returned to an address with a block of so many bytes.
    fn allocated(
        &mut self,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        (first, followed): (usize, bool),
        (to, size): (u64, u64),
    ) {
        let call = catalogue.call_before(to).unwrap_or(to.wrapping_sub(1));
        let counter = self.single_counter(catalogue, call);
        for (event, n) in [(first, 1), (first + 1, size)] {
            t.spend(followed, counter, event, n);
        }
    }

    /// The thread's stack lies there.
    pub(super) fn stack_lies(&mut self, tid: Tid, range: Range<u64>) {
        self.by_object.iter_mut().for_each(|by_object| by_object.objects.stack(tid, range.clone()));
    }
}
