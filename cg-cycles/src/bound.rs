//! What bounds a block that is executed again and again, if its instructions do not depend on one another: the front end, which
//! delivers so many micro-operations in a cycle, and the ports. Of any set of ports, what only they can do has to be shared among
//! them; so the busiest set is the bound. As sets are tried: what instructions of the block can use, and unions of two of those.
//! Invariant: shares of instructions add up to the bound.

use crate::forms::Form;
use crate::table::{Table, Use};

/// What a block costs, in hundredths of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// All of it.
    pub total: u64,
    /// What of that is put to each instruction: by how much of what bounds the block it uses.
    pub shares: Vec<u64>,
    /// Instructions without an entry.
    pub unknown: u32,
}

/// How much was executed that has no entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Executions.
    pub executions: u64,
    /// Of all.
    pub of: u64,
}

impl Table {
    /// The bound of a block of these instructions.
    #[must_use]
    pub fn bound(&self, forms: &[Form]) -> Bound {
        let entries: Vec<_> = forms.iter().map(|form| self.of(*form)).collect();
        let unknown = entries.iter().filter(|entry| entry.is_none()).count() as u32;
        // In 1/width of a hundredth.
        let width = u64::from(self.width);
        let operations = |i: usize| entries[i].map_or(0, |e| u64::from(e.operations) * 100);
        let front: Vec<u64> = (0..forms.len()).map(operations).collect();
        let (mut best, mut weights) = ((front.iter().sum::<u64>(), width), front);
        let used = |mask: u32, i: usize| -> u64 {
            let uses = entries[i].map_or(&[][..], |e| &e.uses[..]);
            uses.iter().filter(|u| u.ports & !mask == 0).map(|u| u64::from(u.time)).sum()
        };
        for mask in self.sets(entries.iter().flatten().flat_map(|e| &e.uses)) {
            let total: u64 = (0..forms.len()).map(|i| used(mask, i)).sum();
            let ports = u64::from(mask.count_ones());
            if total * best.1 > best.0 * ports {
                best = (total, ports);
                weights = (0..forms.len()).map(|i| used(mask, i)).collect();
            }
        }
        let total = (best.0 + best.1 / 2) / best.1;
        let mut so_far = 0;
        let mut told = 0;
        let share = |weight: u64| {
            so_far += weight;
            let up_to = (total * so_far).checked_div(best.0).unwrap_or(0);
            let share = up_to - told;
            told = up_to;
            share
        };
        Bound { total, shares: weights.into_iter().map(share).collect(), unknown }
    }

    fn sets<'u>(&self, uses: impl Iterator<Item = &'u Use>) -> Vec<u32> {
        let mut sets: Vec<u32> = uses.map(|u| u.ports).collect();
        sets.sort_unstable();
        sets.dedup();
        let pairs: Vec<u32> = sets.iter().flat_map(|a| sets.iter().map(move |b| a | b)).collect();
        sets.extend(pairs);
        sets.sort_unstable();
        sets.dedup();
        sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        // Four wide; p0 and p1 add, p0 multiplies, p2 loads.
        let text = "width 4\nports p0 p1 p2\n100 50 1 3:100 Add_rm64_r64\n300 100 1 1:100 Imul_r64_rm64\n\
                    500 100 2 3:100,4:100 Add_r64_rm64+m\n0 25 1 - Nopd\n";
        Table::parse(text).unwrap()
    }

    fn bound(names: &[&str]) -> Bound {
        let all = Form::by_name();
        table().bound(&names.iter().map(|name| all[*name]).collect::<Vec<_>>())
    }

    #[test]
    fn the_busiest_ports_or_the_front_end_bound_a_block() {
        let (add, mul, load, nop) = ("Add_rm64_r64", "Imul_r64_rm64", "Add_r64_rm64+m", "Nopd");
        assert_eq!(bound(&[]), Bound::default());
        assert_eq!(bound(&[nop; 4]), Bound { total: 100, shares: vec![25; 4], unknown: 0 });
        assert_eq!(bound(&[add; 3]), Bound { total: 150, shares: vec![50; 3], unknown: 0 });
        assert_eq!(bound(&[mul, nop, mul]), Bound { total: 200, shares: vec![100, 0, 100], unknown: 0 });
        // Additions take the other port.
        assert_eq!(bound(&[mul, add, mul]).total, 200);
        assert_eq!(bound(&[mul, add, mul, add, add]).total, 250);
        assert_eq!(bound(&[load, load, add]), Bound { total: 200, shares: vec![100, 100, 0], unknown: 0 });
        assert_eq!(bound(&["Cpuid", nop]), Bound { total: 25, shares: vec![0, 25], unknown: 1 });
    }

    #[test]
    fn shares_add_up_to_the_bound() {
        let all = ["Add_rm64_r64", "Imul_r64_rm64", "Add_r64_rm64+m", "Nopd", "Cpuid"];
        let mut state = 7u64;
        for _ in 0..2000 {
            let names: Vec<&str> = (0..state % 17)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    all[(state >> 33) as usize % all.len()]
                })
                .collect();
            state = state.wrapping_add(1);
            let bound = bound(&names);
            assert_eq!(bound.shares.iter().sum::<u64>(), bound.total);
        }
    }
}
