//! Where the landings of guest addresses are, for the day that their code is gone. Most programs never ask, so what is added
//! is only written down, one behind the other; it is put in order when somebody asks. Invariant: of several landings for the
//! same address and way the one that was added last is the one that is found.

use crate::hash::Map;
use crate::transtab::Way;

/// The byte of each landing that says how far to go on if it is the right one (a cache address).
#[derive(Clone, Debug, Default)]
pub(super) struct Landings {
    known: Map<(Way, u64), u64>,
    /// Added since somebody has asked, the latest last.
    fresh: Vec<(Way, u64, u64)>,
}

impl Landings {
    pub(super) fn add(&mut self, way: Way, pc: u64, at: u64) {
        self.fresh.push((way, pc, at));
    }

    /// Takes out the landing for `pc`, if there is one.
    pub(super) fn remove(&mut self, way: Way, pc: u64) -> Option<u64> {
        self.known.extend(self.fresh.drain(..).map(|(way, pc, at)| ((way, pc), at)));
        self.known.remove(&(way, pc))
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
        let mut landings = Landings::default();
        landings.add(Way::Jump, 1, 10);
        landings.add(Way::Return, 1, 20);
        landings.add(Way::Jump, 1, 30);
        assert_eq!(landings.remove(Way::Jump, 1), Some(30));
        assert_eq!(landings.remove(Way::Jump, 1), None);
        landings.add(Way::Return, 1, 40);
        assert_eq!(landings.remove(Way::Return, 1), Some(40));
        landings.add(Way::Return, 1, 50);
        landings.clear();
        assert_eq!(landings.remove(Way::Return, 1), None);
    }
}
