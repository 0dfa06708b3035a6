//! What the record of a repeated instruction says of its accesses: how many there were, and where.
//!
//! Invariant: registers of 32 bits wrap around as the instruction lets them.

use crate::operands::joined;
use crate::{SiteKind, Target};

/// How often a repeated instruction has accessed memory: reads and writes.
#[must_use]
pub fn repeated(kind: SiteKind, record: &[u32]) -> [u64; 2] {
    let SiteKind::Repeated { source, target, narrow, .. } = kind else { return [0; 2] };
    let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
    let count = |n: usize| joined(record[n], record[n + 1]) & mask;
    let iterations = count(1).wrapping_sub(count(7)) & mask;
    let reads = u64::from(source) + u64::from(target == Target::Read);
    [iterations.wrapping_mul(reads), iterations.wrapping_mul(u64::from(target == Target::Write))]
}

/// Calls `each` for every access of a repeated instruction, in program order: whether it is at \[rdi\], and its address.
pub fn elements(kind: SiteKind, record: &[u32], mut each: impl FnMut(bool, u64)) {
    let SiteKind::Repeated { size, source, target, target_first, narrow } = kind else { return };
    let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
    let [count, mut from, mut to, left, from_after, to_after] =
        [1, 3, 5, 7, 9, 11].map(|n| joined(record[n], record[n + 1]) & mask);
    let down = (from_after.wrapping_sub(from) | to_after.wrapping_sub(to)) as i64;
    let step = if down < 0 { u64::from(size).wrapping_neg() } else { size.into() };
    let at_target = target != Target::Unused;
    for _ in 0..count.wrapping_sub(left) & mask {
        if at_target && target_first {
            each(true, to);
        }
        if source {
            each(false, from);
        }
        if at_target && !target_first {
            each(true, to);
        }
        from = from.wrapping_add(step) & mask;
        to = to.wrapping_add(step) & mask;
    }
}

/// Calls `each` for what a repeated instruction has accessed, in any order: whether it is at \[rdi\], the first address, and how many
/// elements there are from there on.
pub fn runs(kind: SiteKind, record: &[u32], mut each: impl FnMut(bool, u64, u64)) {
    let SiteKind::Repeated { size, source, target, narrow, .. } = kind else { return };
    if narrow {
        // They may wrap around.
        return elements(kind, record, |at_target, addr| each(at_target, addr, 1));
    }
    let [count, from, to, left, from_after, to_after] = [1, 3, 5, 7, 9, 11].map(|n| joined(record[n], record[n + 1]));
    let n = count.wrapping_sub(left);
    if n == 0 {
        return;
    }
    let down = (from_after.wrapping_sub(from) | to_after.wrapping_sub(to)).cast_signed() < 0;
    let behind = if down { (n - 1).wrapping_mul(size.into()) } else { 0 };
    if source {
        each(false, from.wrapping_sub(behind), n);
    }
    if target != Target::Unused {
        each(true, to.wrapping_sub(behind), n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: SiteKind, registers: [u64; 6]) -> Vec<(bool, u64)> {
        let mut record = vec![0];
        record.extend(registers.into_iter().flat_map(|r| [r as u32, (r >> 32) as u32]));
        let mut found = Vec::new();
        elements(kind, &record, |at_target, addr| found.push((at_target, addr)));
        found
    }

    /// They are the same accesses as those that come one by one.
    #[test]
    fn runs_are_made_of_elements() {
        let kind = |size, narrow| SiteKind::Repeated {
            size,
            source: true,
            target: Target::Write,
            target_first: false,
            narrow,
        };
        for (size, narrow) in [(1, false), (8, false), (4, true)] {
            for registers in [[9, 100, 500, 0, 172, 572], [9, 100, 500, 8, 100 - 8, 500 - 8], [3, 7, 9, 3, 7, 9]] {
                let mut record = vec![0];
                record.extend(registers.into_iter().flat_map(|r: u64| [r as u32, (r >> 32) as u32]));
                let mut all = told(kind(size, narrow), registers);
                let mut found = Vec::new();
                runs(kind(size, narrow), &record, |at_target, addr, n| {
                    found.extend((0..n).map(|k| (at_target, addr + k * u64::from(size))));
                });
                all.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, all, "{size} {narrow} {registers:?}");
            }
        }
    }

    #[test]
    fn elements_come_in_the_order_of_the_instruction() {
        let moves =
            SiteKind::Repeated { size: 8, source: true, target: Target::Write, target_first: false, narrow: false };
        let upwards = [(false, 100), (true, 500), (false, 108), (true, 508)];
        assert_eq!(told(moves, [3, 100, 500, 1, 116, 516]), upwards);
        let downwards = [(false, 100), (true, 500), (false, 92), (true, 492)];
        assert_eq!(told(moves, [2, 100, 500, 0, 84, 484]), downwards);
        let compares =
            SiteKind::Repeated { size: 1, source: true, target: Target::Read, target_first: true, narrow: true };
        assert_eq!(told(compares, [7 << 32 | 1, 9 << 32 | 100, 500, 7 << 32, 101, 501]), [(true, 500), (false, 100)]);
        let fills =
            SiteKind::Repeated { size: 2, source: false, target: Target::Write, target_first: false, narrow: false };
        assert_eq!(told(fills, [2, 77, 500, 0, 77, 504]), [(true, 500), (true, 502)]);
        assert_eq!(told(fills, [2, 77, 500, 2, 77, 500]), []);
    }
}
