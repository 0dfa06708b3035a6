//! Which stretches of code of an object file hold what was executed, of which functions they are wanted, and whether they fit.
//!
//! Code is taken from the object file around executed addresses: the symbol that holds them, or what lies between the first and the last
//! one.

use crate::elf::Elf;
use crate::listing::{self, Stretch};

/// The share of the self cost whose functions have code in the report.
const HOT: f64 = 0.999;
/// Executed addresses that lie further apart belong to different stretches of code.
const FAR: u64 = 4096;
/// The longest instruction.
const LONGEST: u64 = 15;
/// A stretch of code that is longer is cut.
const MOST: u64 = 1 << 20;
/// Whether an object has instructions where executed addresses are, which ascend: else it is another one than the one that ran.
pub(crate) fn fits(elf: &Elf, executed: &[u64]) -> bool {
    let mut here = executed.iter();
    let mut next = here.next();
    for stretch in stretches(elf, executed) {
        let Some(code) = elf.bytes(stretch.start, stretch.end) else { return false };
        for (instruction, _) in listing::decode(&code, &stretch) {
            if next == Some(&instruction.ip()) {
                next = here.next();
            }
        }
    }
    next.is_none()
}

/// Which functions have code in the report: those of most cost, or `all`.
pub(crate) fn wanted(costs: &[i64], all: bool) -> Vec<bool> {
    let mut wanted = vec![all; costs.len()];
    let total: i128 = costs.iter().map(|cost| i128::from(*cost)).sum();
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(costs[*at]));
    let mut covered = 0_i128;
    for at in order {
        if covered as f64 >= HOT * total as f64 {
            break;
        }
        covered += i128::from(costs[at]);
        wanted[at] = true;
    }
    wanted
}

/// Stretches of code that hold the executed addresses, which ascend.
pub(crate) fn stretches(elf: &Elf, executed: &[u64]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for addr in executed {
        if let Some(Stretch { end, last, .. }) = stretches.last_mut() {
            if addr < end {
                *last = (*last).max(*addr);
                continue;
            }
            if addr - *end < FAR && elf.symbol(*addr).is_none() {
                *end = addr + LONGEST;
                *last = (*last).max(*addr);
                continue;
            }
        }
        let (start, end) = match elf.symbol(*addr) {
            Some(symbol) if symbol.end > *addr => (symbol.start, symbol.end.min(symbol.start.saturating_add(MOST))),
            _ => (*addr, addr.saturating_add(LONGEST)),
        };
        // Symbols may overlap; code is shown once.
        let start = stretches.last().map_or(start, |before| start.max(before.end));
        // Without a symbol nobody knows what follows the last address.
        let known = elf.symbol(start).is_some_and(|symbol| symbol.end > start);
        stretches.push(Stretch { start, end, last: if known { u64::MAX } else { *addr } });
    }
    stretches
}
