//! How far the conditional branches of a module lead, and what follows for how often they are taken. Compilers that know a
//! profile put what is seldom executed into a place of its own, far away; in such a module other branches forward are seldom
//! taken, too. Without a profile they are taken too often to rely on it.
//! Counts never depend on such a guess, only time does.

use grind_types::addr::GuestAddr;

/// What has been seen of a module so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Distances {
    far: u32,
    all: u32,
}

/// Bytes.
const FAR: u64 = 64 << 10;

/// So many branches must have been seen.
const ENOUGH: u32 = 512;

/// Whether a branch to `target` that stands in front of `next` leads far away.
pub fn is_far(next: GuestAddr, target: GuestAddr) -> bool {
    target.0.abs_diff(next.0) > FAR
}

impl Distances {
    /// There is such a branch.
    pub fn note(&mut self, next: GuestAddr, target: GuestAddr) {
        self.far = self.far.saturating_add(u32::from(is_far(next, target)));
        self.all = self.all.saturating_add(1);
    }

    /// Whether the module has been laid out by a profile, as far as can be told.
    pub fn laid_out(&self) -> bool {
        self.all >= ENOUGH && self.far > self.all / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_far_branches_tells_a_profile() {
        const HERE: GuestAddr = GuestAddr(0x40_0000);
        let mut near = Distances::default();
        let mut laid_out = Distances::default();
        for n in 0..u64::from(ENOUGH) {
            assert!(!laid_out.laid_out());
            near.note(HERE, HERE.plus(FAR));
            laid_out.note(HERE, HERE.plus(FAR + u64::from(n % 8 == 0)));
        }
        assert!(laid_out.laid_out() && !near.laid_out());
    }
}
