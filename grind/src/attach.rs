//! A run that joins a process which runs already (`--pid`): how long it stays, and that it leaves when it is told to. What it
//! joined goes on whatever becomes of the profile. Nothing here looks at a process; the engine joins and leaves.

use std::time::{Duration, Instant};

use grind_types::Pid;

use crate::os;
use crate::round::Round;

/// What is to be joined, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The process (`--pid`).
    pub pid: Option<Pid>,
    /// As long as it is followed (`--duration`); without end if not given.
    pub duration: Option<Duration>,
    /// It is followed until its profile has been written once (`--until-dump`).
    pub until_dump: bool,
}

impl Wanted {
    /// What is wrong with the settings as a whole, where a program to start is given or not.
    #[must_use]
    pub fn clash(&self, program: Option<&str>) -> Option<String> {
        match (self.pid, program) {
            (Some(pid), Some(program)) => Some(format!(
                "--pid={pid} joins a process that runs: there is no program to start as well ('{program}')"
            )),
            (None, _) if self.duration.is_some() => Some("--duration needs --pid".into()),
            (None, _) if self.until_dump => Some("--until-dump needs --pid".into()),
            _ => None,
        }
    }
}

/// A span of time: a number with `ms`, `s`, `m` or `h`; without, of seconds.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.').then(|| digits.parse::<f64>().ok())??;
    Duration::try_from_secs_f64(number * unit).ok().filter(|span| !span.is_zero())
}

/// A visit to a process, under way.
#[derive(Debug)]
pub struct Visit {
    wanted: Wanted,
    /// When it ends, once it has begun.
    end: Option<Instant>,
    over: bool,
    /// In which the processes to leave are named.
    round: Round,
}

impl Visit {
    /// A visit that has not begun.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, end: None, over: false, round: Round::default() }
    }

    /// The process is followed from now on.
    pub fn begins(&mut self) {
        self.end = self.wanted.duration.and_then(|span| Instant::now().checked_add(span));
    }

    /// A profile has been written that the program, or somebody outside, asked for.
    pub fn dumped(&mut self) {
        self.over |= self.wanted.until_dump;
    }

    /// The next process that is to be left, of `followed`: each is named once for every look, since others may have begun.
    pub fn next_to_leave(&mut self, followed: impl Iterator<Item = Pid>) -> Option<Pid> {
        self.over |= os::is_to_leave() || self.end.is_some_and(|end| Instant::now() >= end);
        if self.over { self.round.next(followed) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        let ms = |n| Some(Duration::from_millis(n));
        for (text, span_of) in [
            ("10", ms(10_000)),
            ("10s", ms(10_000)),
            ("250ms", ms(250)),
            ("1.5m", ms(90_000)),
            ("1h", ms(3_600_000)),
            ("0", None),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1e3", None),
            ("10 s", None),
            ("5d", None),
            ("99999999999999999999999h", None),
        ] {
            assert_eq!(span(text), span_of, "{text:?}");
        }
    }

    #[test]
    fn every_process_is_named_once_a_look() {
        let mut visit = Visit::new(Wanted { until_dump: true, ..Wanted::default() });
        assert_eq!(visit.next_to_leave([1, 2].map(Pid).into_iter()), None);
        visit.dumped();
        for _ in 0..2 {
            assert_eq!(visit.next_to_leave([1, 2].map(Pid).into_iter()), Some(Pid(2)));
            assert_eq!(visit.next_to_leave([1, 2].map(Pid).into_iter()), Some(Pid(1)));
            assert_eq!(visit.next_to_leave([1, 2].map(Pid).into_iter()), None);
        }
    }
}
