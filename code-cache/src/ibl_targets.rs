//! Where the IBL targets of guest addresses are, for the day that their code is gone. Most programs never ask, so what is added
//! is only written down, one behind the other; it is put in order when somebody asks. Invariant: of several IBL targets for the
//! same address and way the one that was added last is the one that is found.

use grind_fragments::fragment_table::Way;
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::hash::Map;

/// The byte of each IBL target that says how far to go on if it is the right one (a cache address).
#[derive(Clone, Debug, Default)]
pub(super) struct IblTargets {
    known: Map<(Way, GuestAddr), CacheAddr>,
    /// Added since somebody has asked, the latest last.
    fresh: Vec<(Way, GuestAddr, CacheAddr)>,
}

impl IblTargets {
    pub(super) fn add(&mut self, way: Way, pc: GuestAddr, at: CacheAddr) {
        self.fresh.push((way, pc, at));
    }

    /// Takes out the IBL target for `pc`, if there is one.
    pub(super) fn remove(&mut self, way: Way, pc: GuestAddr) -> Option<CacheAddr> {
        self.put_in_order().remove(&(way, pc))
    }

    /// Whether there is one for `pc`.
    pub(super) fn has(&mut self, way: Way, pc: GuestAddr) -> bool {
        self.put_in_order().contains_key(&(way, pc))
    }

    fn put_in_order(&mut self) -> &mut Map<(Way, GuestAddr), CacheAddr> {
        self.known.extend(self.fresh.drain(..).map(|(way, pc, at)| ((way, pc), at)));
        &mut self.known
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.fresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_found_once() {
        let mut ibl_targets = IblTargets::default();
        ibl_targets.add(Way::Jump, GuestAddr(1), CacheAddr(10));
        ibl_targets.add(Way::Return, GuestAddr(1), CacheAddr(20));
        ibl_targets.add(Way::Jump, GuestAddr(1), CacheAddr(30));
        assert_eq!(ibl_targets.remove(Way::Jump, GuestAddr(1)), Some(CacheAddr(30)));
        assert_eq!(ibl_targets.remove(Way::Jump, GuestAddr(1)), None);
        ibl_targets.add(Way::Return, GuestAddr(1), CacheAddr(40));
        assert_eq!(ibl_targets.remove(Way::Return, GuestAddr(1)), Some(CacheAddr(40)));
        ibl_targets.add(Way::Return, GuestAddr(1), CacheAddr(50));
        ibl_targets.clear();
        assert_eq!(ibl_targets.remove(Way::Return, GuestAddr(1)), None);
    }
}
