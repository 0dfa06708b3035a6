//! Streams: the addresses at which an instruction misses, one after the other, folded into nested steps.
//!
//! A stream is a list of parts. A part is a place, or a walk from there over line after line, repeated at up to [`LEVELS`] nested
//! steps; [`Part::addresses`] gives back each of its addresses, in order. What could not be folded is counted and no more, and
//! is the only thing of a stream that is not exact.
//!
//! Invariants: a part's `misses` are as many as its addresses (of a file that was read that is only said, since asking could take
//! for ever); a walk's step is not 0 and no longer than a line; `last` and `most` lie in its direction and `last` is a multiple of it.
//! Addresses wrap round as the machine's do. Nothing here panics, whatever the numbers.

use serde::{Deserialize, Serialize};

/// How many steps can lie around one another, a walk's own among them.
pub const LEVELS: usize = 4;

/// How many parts a stream has at most.
pub const PARTS: usize = 8;

/// What an instruction does with the memory that it misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes back; a miss of it is one of a read.
    Modify,
}

impl Access {
    /// The word for it, as the format has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Modify => "modify",
        }
    }
}

/// The misses of an instruction at an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// What the instruction does.
    #[serde(rename = "stream")]
    pub access: Access,
    /// The row of the object, from 0.
    pub object: usize,
    /// The instruction, by a number that those of no other one have.
    pub instruction: usize,
    /// The source file of the instruction.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Its line.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub line: u64,
    /// Its function.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Bytes of an access.
    pub size: u64,
    /// How often the instruction was executed at all, whatever it accessed; 0 if that is not known.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub executions: u64,
    /// Misses of the first level.
    pub misses: u64,
    /// Those of them that missed the last level, too.
    pub last_level: u64,
    /// Where in its line the place is that starts are counted from: the object's first byte; the first address where an object
    /// has none.
    pub phase: u64,
    /// Bytes of the object that has its first byte there (a block, if it has several); 0 if that is not known.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub bytes: u64,
    /// What was folded, in the order of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Misses that are in no part.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub irregular: u64,
    /// How many of those came so far from the miss before: not at all, 1 byte, 2 and 3, 4 to 7, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u64>,
    /// What is worth loading ahead of the instruction, if hints were asked for and it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Ahead>,
}

/// A hint for compilers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ahead {
    /// Bytes from what the instruction accesses to what is to be loaded.
    pub delta: i64,
    /// The line is to be kept (`t0`): the last level has most of these lines when they are missed. Else it is used once (`nta`).
    pub keep: bool,
}

impl Ahead {
    /// The kind of the hint, as compilers call it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        if self.keep { "t0" } else { "nta" }
    }
}

/// A place, or a walk, or one of them again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Bytes from the object's first one to the first address.
    pub start: i64,
    /// Misses.
    pub misses: u64,
    /// Whether it walks over lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<Walk>,
    /// The steps around it, from inside out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
}

/// Accesses at a constant step, of which the first one in each line misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// Bytes from one to the next: a multiple of the program's own step, which has the same misses.
    pub step: i64,
    /// Bytes to the last one that has missed.
    pub last: i64,
    /// The most bytes to the last access of all: the next one would have missed.
    pub most: i64,
}

/// The same again, some bytes further on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Bytes from one time to the next.
    pub step: i64,
    /// How many times.
    pub count: u64,
}

/// What must be known of accesses to say where a walk misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Bytes of a line.
    pub line: u64,
    /// Bytes of an access.
    pub size: u64,
}

impl Grid {
    /// The address after `at` at which accesses, `step` bytes apart, first touch a line that they have not touched so far. `None` if
    /// `step` is 0.
    #[must_use]
    pub fn next(self, at: i64, step: i64) -> Option<i64> {
        // Down is up with each address taken for its complement: lines stay lines.
        let line = i64::try_from(self.line).unwrap_or(i64::MAX).max(1);
        let (leading, stride) = match step {
            0 => return None,
            1.. => (at.wrapping_add(self.size.cast_signed()).wrapping_sub(1), step),
            _ => (!at, step.checked_neg()?),
        };
        let rest = line - leading.rem_euclid(line);
        let steps = (rest - 1) / stride + 1;
        Some(at.wrapping_add(step.wrapping_mul(steps)))
    }
}

impl Part {
    /// All its addresses in order, `base` being what starts are counted from.
    pub fn addresses(&self, base: u64, grid: Grid) -> impl Iterator<Item = u64> + '_ {
        let mut turn: Vec<u64> = vec![0; self.levels.len()];
        let first = base.cast_signed().wrapping_add(self.start);
        let mut begin = (self.levels.iter().all(|l| l.count > 0)).then_some(first);
        let mut at = begin;
        std::iter::from_fn(move || {
            let now = at?;
            let from = begin?;
            at = self.walk.and_then(|walk| {
                let next = grid.next(now, walk.step)?;
                let (done, all) = (next.wrapping_sub(from), walk.last);
                let within = if walk.step > 0 { done > 0 && done <= all } else { done < 0 && done >= all };
                within.then_some(next)
            });
            if at.is_none() {
                begin = self
                    .levels
                    .iter()
                    .zip(&mut turn)
                    .try_fold(from, |from, (level, turn)| {
                        *turn += 1;
                        if *turn < level.count {
                            return Err(from.wrapping_add(level.step));
                        }
                        let back = level.step.wrapping_mul(turn.wrapping_sub(1).cast_signed());
                        *turn = 0;
                        Ok(from.wrapping_sub(back))
                    })
                    .err();
                at = begin;
            }
            Some(now.cast_unsigned())
        })
    }

    /// How many walks, or places, it has; at most `u64::MAX`.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.levels.iter().fold(1, |n, level| n.saturating_mul(level.count))
    }
}

impl Stream {
    /// What is wrong with it, if anything, in a file with so many objects.
    pub(super) fn problem(&self, objects: usize) -> Option<&'static str> {
        let misses = self.parts.iter().try_fold(self.irregular, |sum, part| sum.checked_add(part.misses));
        let walks = |walk: &Walk| {
            let (step, last, most) = match walk.step {
                1.. => (Some(walk.step), Some(walk.last), Some(walk.most)),
                _ => (walk.step.checked_neg(), walk.last.checked_neg(), walk.most.checked_neg()),
            };
            matches!((step, last, most), (Some(1..), Some(last @ 0..), Some(most)) if most >= last)
        };
        let sound = |part: &Part| {
            let levels = part.levels.len() + usize::from(part.walk.is_some());
            levels <= LEVELS
                && part.levels.iter().all(|l| l.count > 0)
                && part.walk.iter().all(walks)
                && part.misses > 0
        };
        match () {
            () if self.object >= objects => Some("there is no such object"),
            () if self.size == 0 => Some("an access has no size"),
            () if self.parts.len() > PARTS || self.distances.len() > 65 => Some("there is too much in one stream"),
            () if !self.parts.iter().all(sound) => Some("these are no steps"),
            () if self.distances.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) != Some(self.irregular) => {
                Some("its distances are not those of its irregular misses")
            }
            () if misses != Some(self.misses) || self.last_level > self.misses => {
                Some("its parts do not have its misses")
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { line: 64, size: 8 };

    fn all(part: &Part, base: u64) -> Vec<u64> {
        part.addresses(base, GRID).take(1000).collect()
    }

    /// The first touches of lines, access by access.
    fn touched(start: i64, step: i64, times: i64, grid: Grid) -> Vec<i64> {
        let lines = |at: i64| at.div_euclid(64)..=(at + grid.size.cast_signed() - 1).div_euclid(64);
        let mut seen = std::collections::HashSet::new();
        let accesses = (0..times).map(|n| start + n * step);
        accesses.filter(|at| lines(*at).fold(false, |new, line| seen.insert(line) | new)).collect()
    }

    #[test]
    fn a_walk_misses_where_lines_are_touched_first() {
        for size in [1, 4, 8, 16, 32] {
            for start in -70..70 {
                for step in (-64..=64).filter(|n| *n != 0) {
                    let grid = Grid { line: 64, size };
                    let expected = touched(start, step, 200, grid);
                    let got = std::iter::successors(Some(start), |at| grid.next(*at, step));
                    let got: Vec<i64> = got.take(expected.len()).collect();
                    assert_eq!(got, expected, "{size} bytes from {start} by {step}");
                }
            }
        }
    }

    #[test]
    fn parts_are_their_addresses() {
        let walk = |step, last| Some(Walk { step, last, most: last });
        let level = |step, count| Level { step, count };
        let part = Part { start: 16, misses: 8, walk: walk(8, 176), levels: vec![level(1000, 2), level(0, 1)] };
        assert_eq!(all(&part, 4096), [16, 64, 128, 192, 1016, 1024, 1088, 1152].map(|n| 4096 + n));
        let back = Part { start: 192, misses: 4, walk: walk(-8, -192), levels: vec![] };
        assert_eq!(all(&back, 0), [192, 184, 120, 56], "downwards, the last of a line is its first");
        let places = Part { start: -8, misses: 6, walk: None, levels: vec![level(100, 3), level(-8, 2)] };
        assert_eq!(all(&places, 8), [0, 100, 200, u64::MAX - 7, 92, 192], "addresses wrap round");
        let one = Part { start: 5, misses: 1, ..Part::default() };
        assert_eq!((all(&one, 1), one.times()), (vec![6], 1));
        let never = Part { levels: vec![level(1, 0)], ..one.clone() };
        assert!(all(&never, 1).is_empty());
        let long = Part { levels: vec![level(i64::MAX, u64::MAX), level(i64::MIN, u64::MAX)], ..one };
        assert_eq!((all(&long, 1).len(), long.times()), (1000, u64::MAX), "no end in sight");
    }

    #[test]
    fn steps_of_any_size_are_no_panic() {
        for at in [i64::MIN, -1, 0, 1, i64::MAX] {
            for step in [i64::MIN, -1, 0, 1, i64::MAX] {
                for line in [0, 1, 64, u64::MAX] {
                    let _ = Grid { line, size: u64::MAX }.next(at, step);
                }
            }
        }
    }
}
