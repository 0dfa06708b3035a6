//! Words of the guest's memory that cannot change without a system call which the engine stops before: those of private
//! mappings that cannot be written to, such as the addresses of functions in other modules once the dynamic linker has
//! filled them in and protected them. A jump through such a word is translated as a direct one. Invariant: before a call
//! can change the word, or lets the guest do so, it is found in [`Fixed::used_in`], and the translations of the jumps through
//! it die.

use std::collections::BTreeMap;

use grind_ptrace::Memory;
use grind_types::hash::Map;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixed {
    /// Pages that were looked at, by number: whether what they hold is fixed.
    pages: Map<u64, bool>,
    /// Jumps that have been translated with what a page holds, by its number: first byte, and end.
    users: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Memory that is being opened for writing, by a call that nobody waits for: it is not to be looked at meanwhile.
    opened: Vec<(u64, u64)>,
}

impl Fixed {
    /// The target that the instruction in `user` finds at `at`, if it cannot become another.
    pub(super) fn target(&mut self, memory: &Memory, at: u64, user: (u64, u64)) -> Option<u64> {
        let page = at >> 12;
        if page != at.saturating_add(7) >> 12 || self.opened.iter().any(|&(start, end)| start <= page && page < end) {
            return None;
        }
        let fixed = *self.pages.entry(page).or_insert_with(|| {
            let regions = memory.regions().unwrap_or_default();
            regions.iter().any(|r| (r.start..r.end).contains(&at) && r.read && !r.write && !r.shared)
        });
        if !fixed {
            return None;
        }
        let target = memory.word(at)?;
        self.users.entry(page).or_default().push(user);
        Some(target)
    }

    /// Whether a jump hangs on what a page of `start..end` holds.
    pub(super) fn used_in(&self, start: u64, end: u64) -> bool {
        end > start && self.users.range(start >> 12..=(end - 1) >> 12).next().is_some()
    }

    /// The mappings of `start..end` change: forgets what is known of them. Returns the jumps that hang on it.
    pub(super) fn forget(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        if end <= start {
            return Vec::new();
        }
        let (first, last) = (start >> 12, (end - 1) >> 12);
        let left = self.opened.iter().flat_map(|&(s, e)| [(s, e.min(first)), (s.max(last + 1), e)]);
        self.opened = left.filter(|(s, e)| s < e).collect();
        self.pages.retain(|p, _| !(first..=last).contains(p));
        let pages: Vec<u64> = self.users.range(first..=last).map(|(p, _)| *p).collect();
        pages.iter().flat_map(|p| self.users.remove(p).unwrap_or_default()).collect()
    }

    /// The pages of `start..end` can be written to from now on. They have been forgotten.
    pub(super) fn open(&mut self, start: u64, end: u64) {
        let (first, after) = (start >> 12, end.saturating_add(0xfff) >> 12);
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
    use grind_types::{Pid, Tid};

    use super::*;

    #[test]
    fn only_what_cannot_be_written_is_fixed_and_who_relies_on_it_is_known() {
        /// Both words are on one page, wherever the linker puts them.
        #[repr(align(16))]
        struct Together([u64; 2]);
        static CONSTANT: Together = Together([0x1234_5678, 7]);
        let variable = [5u64; 2];
        let memory = Memory::open(Tid::main_of(Pid::own())).unwrap();
        let mut fixed = Fixed::default();
        assert_eq!(fixed.target(&memory, variable.as_ptr() as u64, (1, 2)), None);
        // What lies in no mapping.
        assert_eq!(fixed.target(&memory, 0x10, (1, 2)), None);
        let at = CONSTANT.0.as_ptr() as u64;
        assert_eq!(fixed.target(&memory, at, (0x100, 0x106)), Some(0x1234_5678));
        assert_eq!(fixed.target(&memory, at + 8, (0x200, 0x206)), Some(7));
        assert!(fixed.used_in(at, at + 1) && fixed.used_in(at - 0x2000, at + 1));
        assert!(!fixed.used_in(at & !0xfff, at & !0xfff) && !fixed.used_in(at - 0x2000, at - 0x1000));
        assert_eq!(fixed.forget(at - 0x2000, at - 0x1000), []);
        assert_eq!(fixed.forget(at, at + 1), [(0x100, 0x106), (0x200, 0x206)]);
        assert!(!fixed.used_in(0, u64::MAX));
        // As long as a call may be about to make it writable.
        let page = at & !0xfff;
        fixed.open(page, page + 0x1000);
        fixed.open(page + 0x1000, page + 0x3000);
        assert_eq!(fixed.target(&memory, at, (1, 2)), None);
        assert_eq!(fixed.forget(page + 0x1000, page + 0x2000), []);
        assert_eq!(fixed.opened, [(page >> 12, (page >> 12) + 1), ((page >> 12) + 2, (page >> 12) + 3)]);
        assert_eq!(fixed.forget(page, page + 1), []);
        assert_eq!(fixed.target(&memory, at, (1, 2)), Some(0x1234_5678));
    }
}
