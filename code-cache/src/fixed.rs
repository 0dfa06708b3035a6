//! Words of the guest's memory that cannot change without a system call which the engine stops before: those of private
//! mappings that cannot be written to, such as the addresses of functions in other modules once the dynamic linker has
//! filled them in and protected them. A jump through such a word is translated as a direct one. Invariant: before a call
//! can change the word, or lets the guest do so, it is found in [`Fixed::used_in`], and the translations of the jumps through
//! it die.

use std::collections::BTreeMap;

use grind_ptrace::Memory;
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixed {
    /// Pages that were looked at, by number: whether what they hold is fixed.
    pages: Map<u64, bool>,
    /// Jumps that have been translated with what a page holds, by its number: first byte, and end.
    users: BTreeMap<u64, Vec<(GuestAddr, GuestAddr)>>,
    /// Memory that is being opened for writing, by a call that nobody waits for: it is not to be looked at meanwhile.
    opened: Vec<(u64, u64)>,
}

impl Fixed {
    /// The target that the instruction in `user` finds at `at`, if it cannot become another.
    pub(super) fn target(&mut self, memory: &Memory, at: GuestAddr, user: (GuestAddr, GuestAddr)) -> Option<GuestAddr> {
        let page = at.0 >> 12;
        if page != at.0.saturating_add(7) >> 12 || self.opened.iter().any(|&(start, end)| start <= page && page < end) {
            return None;
        }
        let fixed = *self.pages.entry(page).or_insert_with(|| {
            let regions = memory.regions().unwrap_or_default();
            regions.iter().any(|r| (r.start..r.end).contains(&at.0) && r.read && !r.write && !r.shared)
        });
        if !fixed {
            return None;
        }
        let target = GuestAddr(memory.word(at.0)?);
        self.users.entry(page).or_default().push(user);
        Some(target)
    }

    /// Whether a jump hangs on what a page of `start..end` holds.
    pub(super) fn used_in(&self, start: GuestAddr, end: GuestAddr) -> bool {
        end > start && self.users.range(start.0 >> 12..=(end.0 - 1) >> 12).next().is_some()
    }

    /// The mappings of `start..end` change: forgets what is known of them. Returns the jumps that hang on it.
    pub(super) fn forget(&mut self, start: GuestAddr, end: GuestAddr) -> Vec<(GuestAddr, GuestAddr)> {
        if end <= start {
            return Vec::new();
        }
        let (first, last) = (start.0 >> 12, (end.0 - 1) >> 12);
        let left = self.opened.iter().flat_map(|&(s, e)| [(s, e.min(first)), (s.max(last + 1), e)]);
        self.opened = left.filter(|(s, e)| s < e).collect();
        self.pages.retain(|p, _| !(first..=last).contains(p));
        let pages: Vec<u64> = self.users.range(first..=last).map(|(p, _)| *p).collect();
        pages.iter().flat_map(|p| self.users.remove(p).unwrap_or_default()).collect()
    }

    /// The pages of `start..end` can be written to from now on. They have been forgotten.
    pub(super) fn open(&mut self, start: GuestAddr, end: GuestAddr) {
        let (first, after) = (start.0 >> 12, end.0.saturating_add(0xfff) >> 12);
        match self.opened.iter_mut().find(|(_, e)| *e == first) {
            Some((_, e)) => *e = after,
            None => self.opened.push((first, after)),
        }
    }

    /// All translations have been thrown away.
    pub(super) fn forget_users(&mut self) {
        self.users.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grind_types::{Pid, Tid};

    #[test]
    fn only_what_cannot_be_written_is_fixed_and_who_relies_on_it_is_known() {
        /// Both words are on one page, wherever the linker puts them.
        #[repr(align(16))]
        struct Together([u64; 2]);
        static CONSTANT: Together = Together([0x1234_5678, 7]);
        let jump = |from, end| (GuestAddr(from), GuestAddr(end));
        let variable = [5u64; 2];
        let memory = Memory::open(Tid::main_of(Pid::own())).unwrap();
        let mut fixed = Fixed::default();
        assert_eq!(fixed.target(&memory, GuestAddr(variable.as_ptr() as u64), jump(1, 2)), None);
        // What lies in no mapping.
        assert_eq!(fixed.target(&memory, GuestAddr(0x10), jump(1, 2)), None);
        let at = GuestAddr(CONSTANT.0.as_ptr() as u64);
        assert_eq!(fixed.target(&memory, at, jump(0x100, 0x106)), Some(GuestAddr(0x1234_5678)));
        assert_eq!(fixed.target(&memory, at.plus(8), jump(0x200, 0x206)), Some(GuestAddr(7)));
        let page = at.page();
        assert!(fixed.used_in(at, at.plus(1)) && fixed.used_in(at.minus(0x2000), at.plus(1)));
        assert!(!fixed.used_in(page, page) && !fixed.used_in(at.minus(0x2000), at.minus(0x1000)));
        assert_eq!(fixed.forget(at.minus(0x2000), at.minus(0x1000)), []);
        assert_eq!(fixed.forget(at, at.plus(1)), [jump(0x100, 0x106), jump(0x200, 0x206)]);
        assert!(!fixed.used_in(GuestAddr(0), GuestAddr(u64::MAX)));
        // As long as a call may be about to make it writable.
        fixed.open(page, page.plus(0x1000));
        fixed.open(page.plus(0x1000), page.plus(0x3000));
        assert_eq!(fixed.target(&memory, at, jump(1, 2)), None);
        assert_eq!(fixed.forget(page.plus(0x1000), page.plus(0x2000)), []);
        let number = page.0 >> 12;
        assert_eq!(fixed.opened, [(number, number + 1), (number + 2, number + 3)]);
        assert_eq!(fixed.forget(page, page.plus(1)), []);
        assert_eq!(fixed.target(&memory, at, jump(1, 2)), Some(GuestAddr(0x1234_5678)));
    }
}
