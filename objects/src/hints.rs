//! Hints for a compiler that prefetches by a profile: which instructions of the program are worth it, and how far ahead.
//!
//! An instruction has one if it has 0.5 % of all misses of the first level or more, nine in ten of them in one part of one stream, each access at
//! the same known step from the one before; if the run of these steps is longer than the hint's distance; and if the prefetcher of
//! the simulated machine does not load these lines anyway. Whatever is not known has no hint.
//!
//! The distance is as many steps as a miss takes turns of the loop: a miss of the first level takes 10 cycles, one of the last level 100, and an
//! instruction one; the loop is taken for the instructions around that follow one another and were executed equally often. These are
//! assumptions about a processor, and hints are advice: only misses and steps are exact.
//!
//! Invariant: rows are in the order of their addresses, which are distinct, and link-time addresses of the program's own file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cg_format::mem::notation;
use cg_format::mem::streams::{Ahead, Grid, Part};
use cg_sim::prefetch::Prefetch;
use grind_session::ProcessReport;

use super::report::{executions, nameless};
use super::{Found, streams};

/// Cycles of a miss of the first level that the last one has, and of one that it has not.
const CYCLES: (u64, u64) = (10, 100);

/// Of so many misses, one at least must be the instruction's.
const SHARE: u64 = 200;

/// Addresses that a prefetcher is asked about.
const ASKED: usize = 4096;

/// A hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hint {
    /// The instruction's link-time address.
    pub address: u64,
    /// What is to be loaded.
    pub ahead: Ahead,
}

/// The hints for the program that a process runs, `prefetch` being there; the streams that they are of say so, too. `file_address` says
/// the link-time address of an offset in its file.
pub fn hints(
    report: &ProcessReport<'_>,
    found: &mut Found,
    prefetch: Prefetch,
    file_address: impl Fn(u64) -> Option<u64>,
) -> Vec<Hint> {
    let Some(all) = &mut found.streams else { return Vec::new() };
    let total: u64 = found.objects.iter().map(|(_, tally)| tally.misses[0] + tally.misses[2]).sum();
    let mut by_site: BTreeMap<super::Site, Vec<usize>> = BTreeMap::new();
    for (n, stream) in all.streams.iter().enumerate() {
        by_site.entry(stream.key.site).or_default().push(n);
    }
    let executed = executions(report, found.executions.as_ref(), by_site.keys().copied());
    let own = |module: usize| report.modules.get(module).filter(|m| m.path.as_ref() == Some(&report.exe));
    let mut code: Vec<(usize, u64, u64, u64)> = report
        .counts
        .instructions()
        .filter(|one| own(one.module).is_some())
        .map(|one| (one.module, one.addr.0, one.addr.0.wrapping_add(one.len.into()), one.count))
        .collect();
    code.sort_unstable();
    let mut hints = Vec::new();
    for (site, streams) in by_site {
        let misses: u64 = streams.iter().map(|n| all.streams[*n].misses).sum();
        let Some(module) = own(site.module as usize).filter(|_| misses.saturating_mul(SHARE) >= total) else {
            continue;
        };
        let executions = executed.get(&site).copied().unwrap_or(0);
        let walks = streams.iter().filter_map(|n| {
            let (part, step, run) = regular(&all.streams[*n], all.line, executions, streams.len() == 1, misses)?;
            Some((*n, part, step, run))
        });
        let Some((n, part, step, run)) = walks.max_by_key(|(_, part, ..)| part.misses) else { continue };
        let stream = &all.streams[n];
        let line = u32::try_from(all.line).unwrap_or(u32::MAX);
        let grid = Grid { line: all.line, size: stream.size };
        if prefetch.covers(line, site.addr, part.addresses(0, grid).take(ASKED)) {
            continue;
        }
        let far = stream.last_level.saturating_mul(2) >= stream.misses;
        let cycles = if far { CYCLES.1 } else { CYCLES.0 };
        let turns = cycles.div_ceil(turn(&code, site.module as usize, site.addr));
        let delta = i64::try_from(turns).ok().and_then(|turns| step.checked_mul(turns));
        let offset = site.addr.wrapping_sub(module.start.0).wrapping_add(module.offset);
        // (What the instruction has is 32 bits.)
        if let (Some(delta), Some(address)) =
            (delta.filter(|delta| i32::try_from(*delta).is_ok()), file_address(offset))
            && turns < run
        {
            let ahead = Ahead { delta, keep: !far };
            hints.push(Hint { address, ahead });
            all.streams[n].prefetch = Some(ahead);
        }
    }
    hints.sort_unstable();
    hints
}

/// The part of a stream that has nine in ten of the instruction's `misses`, the step from one access to the next there, and how many
/// accesses follow one another at it.
fn regular(found: &streams::Stream, line: u64, executions: u64, alone: bool, misses: u64) -> Option<(&Part, i64, u64)> {
    let part = found.folded.parts.iter().max_by_key(|part| part.misses)?;
    if part.misses.saturating_mul(10) < misses.saturating_mul(9) {
        return None;
    }
    if part.walk.is_none() {
        // Between two misses there must not be another access.
        let level = part.levels.iter().find(|level| level.step != 0 && level.count > 1)?;
        let none_between = part.misses.saturating_mul(10) >= executions.saturating_mul(9);
        return none_between.then_some((part, level.step, level.count));
    }
    let base = found.place.start.cast_signed();
    let stream = nameless(found, line, executions);
    let relative = Part { start: part.start.wrapping_sub(base), ..part.clone() };
    let step = notation::step(&stream, &relative, alone)?;
    Some((part, step, executions / part.times().max(1)))
}

/// How many instructions the turn of a loop has, as far as that is known: see the module's description.
fn turn(code: &[(usize, u64, u64, u64)], module: usize, addr: u64) -> u64 {
    let Ok(at) = code.binary_search_by_key(&(module, addr), |(module, addr, ..)| (*module, *addr)) else { return 1 };
    let goes_on = |pair: &[(usize, u64, u64, u64)]| {
        let [(m, _, end, before), (n, begin, _, after)] = *pair else { return false };
        (m, end, before) == (n, begin, after)
    };
    let behind = code[at..].windows(2).take_while(|pair| goes_on(pair)).count();
    let ahead = code[..=at].windows(2).rev().take_while(|pair| goes_on(pair)).count();
    (1 + behind + ahead) as u64
}

/// Writes them as `create_llvm_prof` reads them: a line each, of the address, the distance and the kind.
///
/// # Errors
/// When they cannot be written.
pub fn write(hints: &[Hint], out: &mut dyn Write) -> io::Result<()> {
    for Hint { address, ahead } in hints {
        writeln!(out, "{address:#x},{},{}", ahead.delta, ahead.kind())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_of_a_loop_is_what_follows_one_another_equally_often() {
        let code =
            [(0, 10, 12, 5), (0, 12, 15, 100), (0, 15, 16, 100), (0, 16, 20, 100), (0, 20, 22, 4), (1, 22, 23, 4)];
        for (addr, expected) in [(10, 1), (12, 3), (15, 3), (16, 3), (20, 1), (11, 1)] {
            assert_eq!(turn(&code, 0, addr), expected, "at {addr}");
        }
    }

    #[test]
    fn rows_are_those_that_compilers_read() {
        let hints = [(0x1189, 512, true), (0x1200, -64, false)]
            .map(|(address, delta, keep)| Hint { address, ahead: Ahead { delta, keep } });
        let mut text = Vec::new();
        write(&hints, &mut text).expect("it is written");
        assert_eq!(String::from_utf8(text).as_deref(), Ok("0x1189,512,t0\n0x1200,-64,nta\n"));
    }
}
