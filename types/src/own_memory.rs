//! Advice about memory of this process, for tables that are looked up here and there, where the processor would wait. It never
//! changes what is in memory, and it is no matter if it is not taken.

#![allow(unsafe_code)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::ops::Range;

use nix::libc;

/// Asks for large pages, in which addresses are found faster, for these addresses of this process, multiples of 2 MiB; best
/// before they are touched for the first time.
pub fn prefer_large_pages(addresses: Range<usize>) {
    let start = std::ptr::without_provenance_mut(addresses.start);
    // SAFETY: advice about what kind of page to take; contents stay as they are, whosever they are.
    unsafe { libc::madvise(start, addresses.len(), libc::MADV_HUGEPAGE) };
}

/// The same for what lies among these addresses.
pub fn prefer_large_pages_within(addresses: Range<usize>) {
    const PAGE: usize = 2 << 20;
    let within = addresses.start.next_multiple_of(PAGE)..addresses.end / PAGE * PAGE;
    if !within.is_empty() {
        prefer_large_pages(within);
    }
}

/// What is at this address will be needed soon.
#[inline(always)]
pub fn prefetch(address: usize) {
    // SAFETY: a hint, which does nothing where nothing is mapped.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

/// How many bytes of memory that will be needed soon are asked for beforehand.
pub const AHEAD: usize = 64 << 10;

/// Touches a page of what a list will need for its next `ahead` bytes, which may move it; `touched` is the element that this
/// has come to (at first 0).
pub fn touch_ahead<T>(list: &mut Vec<T>, touched: &mut usize, ahead: usize) {
    const PAGE: usize = 4096;
    let each = size_of::<T>().max(1);
    let wanted = list.len() + ahead / each;
    if list.capacity() < wanted {
        list.reserve(ahead / each);
        *touched = 0;
    }
    let next = (*touched).max(list.len());
    if next < wanted {
        let len = list.len();
        if let Some(element) = list.spare_capacity_mut().get_mut(next - len) {
            *element = std::mem::MaybeUninit::zeroed();
        }
        *touched = next + (PAGE / each).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_whose_memory_is_touched_ahead_stays_as_it_is() {
        let (mut list, mut touched) = (Vec::new(), 0);
        for i in 0..20_000u64 {
            if i % 3 == 0 {
                touch_ahead(&mut list, &mut touched, 1 << 14);
                assert!(list.capacity() >= list.len() + (1 << 14) / 8 && touched >= list.len());
            }
            list.push(i);
        }
        assert!(list.iter().copied().eq(0..20_000));
        list.shrink_to_fit();
        touch_ahead(&mut list, &mut touched, 1 << 14);
        assert!(list.iter().copied().eq(0..20_000));
    }

    #[test]
    fn advice_changes_nothing() {
        let table = vec![7u8; 5 << 20];
        let begin = table.as_ptr().addr().next_multiple_of(2 << 20);
        prefer_large_pages(begin..begin + (2 << 20));
        prefer_large_pages(0..2 << 20);
        let table = vec![7u8; 5 << 20];
        let all = table.as_ptr_range();
        prefer_large_pages_within(all.start.addr()..all.end.addr());
        prefer_large_pages_within(begin + 1..begin + 2);
        (0..table.len()).step_by(64).for_each(|at| prefetch(table.as_ptr().addr() + at));
        prefetch(0);
        assert!(table.iter().all(|b| *b == 7));
    }
}
