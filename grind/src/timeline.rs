//! Parts of a profile by time or by instructions (`--dump-every`): when the next are due. What the parts of a process add up to is what
//! it has executed, to the last instruction.
//!
//! Where parts are cut: at a look, which is made every [`Every::look`] at most, with each thread of the process at the boundary of an
//! instruction. By time, at the first look at which the time has passed. By instructions, at the first look at which the process
//! has executed the next multiple of the number, counted from its first instruction on: a part is cut behind its mark, never
//! before it, and marks do not move, however late a look is. A look that comes behind several marks cuts one part.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use grind_session::Tally;
use grind_types::Pid;

use crate::attach;
use crate::round::Round;

/// The least number of instructions: a part of fewer would be over at the next look anyway.
const LEAST: u64 = 1_000_000;

/// Processes are counted again after so long at most: one that has waited may run at any time.
const LATEST: Duration = Duration::from_millis(20);

/// How often parts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// After so long.
    Time(Duration),
    /// After so many instructions of a process.
    Instructions(u64),
}

impl Every {
    /// What a text says: a span of time as in `--duration`, or a number of instructions, as `1G-instructions`, with k, M or G for
    /// powers of a thousand.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Some(number) = text.strip_suffix("-instructions") else { return attach::span(text).map(Self::Time) };
        let (digits, unit) = match number.as_bytes().last()? {
            b'k' => (&number[..number.len() - 1], 1_000),
            b'M' => (&number[..number.len() - 1], 1_000_000),
            b'G' => (&number[..number.len() - 1], 1_000_000_000),
            _ => (number, 1),
        };
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = plain.then(|| digits.parse::<u64>().ok()?.checked_mul(unit)).flatten()?;
        (number >= LEAST).then_some(Self::Instructions(number))
    }

    /// How often to look whether a part is due.
    #[must_use]
    pub fn look(self) -> Duration {
        match self {
            Self::Time(_) => Duration::from_millis(50),
            Self::Instructions(_) => Duration::from_millis(2),
        }
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time(span) => write!(f, "{}ms", span.as_millis()),
            Self::Instructions(n) => {
                let (unit, name) = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")]
                    .into_iter()
                    .find(|(unit, _)| n % unit == 0)
                    .unwrap_or((1, ""));
                write!(f, "{}{name}-instructions", n / unit)
            }
        }
    }
}

/// Where a process is on its way to the next part.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// A part is due when so many instructions have been executed.
    next: u64,
    /// How many there were at the last count, and when that was.
    last: (Instant, u64),
}

/// When parts are written.
#[derive(Debug)]
pub struct Timeline {
    every: Every,
    /// When the last ones were due, or, by instructions, when processes were last counted.
    last: Instant,
    /// In which the processes to write parts of are named.
    round: Round,
    marks: HashMap<Pid, Mark>,
    /// Instructions are counted again then.
    count: Instant,
    /// Processes that have passed their marks.
    due: Vec<Pid>,
}

impl Timeline {
    /// Parts are due every so often from now on.
    #[must_use]
    pub fn new(every: Every) -> Self {
        let now = Instant::now();
        Self { every, last: now, round: Round::default(), marks: HashMap::new(), count: now, due: Vec::new() }
    }

    /// Process `pid` begins to run a program: it has executed nothing.
    pub fn began(&mut self, pid: Pid) {
        self.marks.remove(&pid);
        self.count = Instant::now();
    }

    /// `child` is a copy of `parent` and has executed what that has.
    pub fn forked(&mut self, parent: Pid, child: Pid) {
        if let Some(mark) = self.marks.get(&parent).copied() {
            self.marks.insert(child, mark);
            self.count = Instant::now();
        }
    }

    /// Whether the processes are to be counted now.
    #[must_use]
    pub fn wants_tally(&self, now: Instant) -> bool {
        matches!(self.every, Every::Instructions(_)) && now >= self.count
    }

    /// So far the processes are now.
    pub fn tally(&mut self, now: Instant, tally: &Tally) {
        let Every::Instructions(every) = self.every else { return };
        let mut wait = LATEST;
        let mut marks = HashMap::new();
        for p in &tally.processes {
            let fresh = Mark { next: every, last: (now, p.instructions) };
            let mut mark = self.marks.get(&p.pid).copied().unwrap_or(fresh);
            if p.instructions >= mark.next {
                if !self.due.contains(&p.pid) {
                    self.due.push(p.pid);
                }
                mark.next = (p.instructions / every + 1).saturating_mul(every);
            }
            if !self.marks.contains_key(&p.pid) {
                // How fast it is is not known yet.
                wait = wait.min(self.every.look());
            }
            let (then, before) = mark.last;
            let (span, steps) = (now.saturating_duration_since(then), p.instructions.saturating_sub(before));
            if steps > 0 && !span.is_zero() {
                // A little early: the next counts will be nearer.
                let left = (mark.next - p.instructions) as f64 / steps as f64;
                wait = wait.min(span.mul_f64((left * 0.8).min(1e3)));
            }
            mark.last = (now, p.instructions);
            marks.insert(p.pid, mark);
        }
        self.marks = marks;
        self.count = now + wait;
    }

    /// The next process that a part is to be written of, of `followed`, if one is due.
    pub fn next(&mut self, now: Instant, followed: impl Iterator<Item = Pid>) -> Option<Pid> {
        let Every::Time(every) = self.every else {
            if self.due.is_empty() {
                return None;
            }
            let followed: Vec<Pid> = followed.collect();
            self.due.retain(|pid| followed.contains(pid));
            return self.due.pop();
        };
        if !self.round.is_on() {
            if now.saturating_duration_since(self.last) < every {
                return None;
            }
            // Who is late has not missed several.
            self.last = now;
        }
        self.round.next(followed)
    }

    /// The words of the parts.
    #[must_use]
    pub fn words(&self) -> Vec<u8> {
        format!("--dump-every={}", self.every).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grind_session::ProcessTally;

    #[test]
    fn every_process_has_a_part_each_time() {
        let ms = Duration::from_millis;
        let mut timeline = Timeline::new(Every::Time(ms(100)));
        let start = timeline.last;
        assert!(!timeline.wants_tally(start + ms(1000)));
        let mut at = |n: u64| timeline.next(start + ms(n), [1, 2].map(Pid).into_iter());
        assert_eq!([at(0), at(99)], [None; 2]);
        assert_eq!([at(101), at(102), at(103)], [Some(Pid(2)), Some(Pid(1)), None]);
        assert_eq!([at(200), at(950), at(950), at(951), at(1049)], [None, Some(Pid(2)), Some(Pid(1)), None, None]);
        assert_eq!(at(1050), Some(Pid(2)));
        assert_eq!(timeline.words(), b"--dump-every=100ms");
    }

    #[test]
    fn parts_are_due_behind_marks_that_do_not_move() {
        let ms = Duration::from_millis;
        let mut timeline = Timeline::new(Every::Instructions(1_000_000));
        let start = timeline.count;
        let mut at = |n: u64, counts: &[(Pid, u64)]| {
            let processes = counts.iter().map(|&(pid, instructions)| ProcessTally { pid, instructions, threads: 1 });
            timeline.tally(start + ms(n), &Tally { processes: processes.collect() });
            let mut due: Vec<Pid> = std::iter::from_fn(|| timeline.next(start, [1, 2].map(Pid).into_iter())).collect();
            due.sort_unstable();
            (due, timeline.count.saturating_duration_since(start + ms(n)))
        };
        assert_eq!(at(0, &[(Pid(1), 0)]).0, []);
        assert_eq!(at(10, &[(Pid(1), 999_999)]).0, []);
        // One mark and a bit; its neighbour is not there yet.
        assert_eq!(at(11, &[(Pid(1), 1_000_001), (Pid(2), 5)]).0, [Pid(1)]);
        assert_eq!(at(12, &[(Pid(1), 1_999_999), (Pid(2), 6)]).0, []);
        // Two marks at once are one part.
        assert_eq!(at(13, &[(Pid(1), 4_500_000), (Pid(2), 1_000_000)]).0, [1, 2].map(Pid));
        let (due, wait) = at(14, &[(Pid(1), 4_900_000), (Pid(2), 1_000_001)]);
        assert!(due.is_empty() && wait < ms(1), "it is nearly there: {wait:?}");
        assert_eq!(at(15, &[(Pid(1), 5_000_000)]).0, [Pid(1)]);
        // A copy has the marks of its parent, another program none.
        timeline.forked(Pid(1), Pid(2));
        let tally = |counts: &[(Pid, u64)]| {
            let one = |&(pid, instructions): &(Pid, u64)| ProcessTally { pid, instructions, threads: 1 };
            Tally { processes: counts.iter().map(one).collect() }
        };
        timeline.tally(start + ms(16), &tally(&[(Pid(1), 5_999_999), (Pid(2), 5_500_000)]));
        assert_eq!(timeline.next(start, [1, 2].map(Pid).into_iter()), None);
        timeline.began(Pid(1));
        timeline.tally(start + ms(17), &tally(&[(Pid(1), 1_200_000), (Pid(2), 6_000_000)]));
        assert_eq!(
            timeline.next(start, [2].map(Pid).into_iter()),
            Some(Pid(2)),
            "one that is not followed any more is not named"
        );
        assert_eq!(timeline.next(start, [2].map(Pid).into_iter()), None);
        assert_eq!(timeline.words(), b"--dump-every=1M-instructions");
    }

    #[test]
    fn texts_are_times_or_instructions() {
        for (text, every) in [
            ("250ms", Some(Every::Time(Duration::from_millis(250)))),
            ("1G-instructions", Some(Every::Instructions(1_000_000_000))),
            ("1500k-instructions", Some(Every::Instructions(1_500_000))),
            ("2000001-instructions", Some(Every::Instructions(2_000_001))),
            ("999999-instructions", None),
            ("G-instructions", None),
            ("-instructions", None),
            ("1.5G-instructions", None),
            ("1é-instructions", None),
            ("99999999999G-instructions", None),
            ("1G", None),
        ] {
            assert_eq!(Every::parse(text), every, "{text}");
        }
        assert_eq!(Every::Instructions(2_000_001).to_string(), "2000001-instructions");
        assert_eq!(Every::Instructions(1_500_000).to_string(), "1500k-instructions");
    }
}
