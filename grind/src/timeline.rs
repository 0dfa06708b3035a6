//! Parts of a profile by time (`--dump-every`): when the next are due. Parts begin and end where the program happens to be; what they
//! add up to is what it has executed, to the last instruction.

use std::time::{Duration, Instant};

use crate::round::Round;

/// When parts are written.
#[derive(Debug)]
pub struct Timeline {
    every: Duration,
    /// When the last ones were due.
    last: Instant,
    /// In which the processes to write parts of are named.
    round: Round,
}

impl Timeline {
    /// Parts are due every so often from now on.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self { every, last: Instant::now(), round: Round::default() }
    }

    /// The next process that a part is to be written of, of `followed`, if they are due.
    pub fn next(&mut self, now: Instant, followed: impl Iterator<Item = i32>) -> Option<i32> {
        if !self.round.is_on() {
            if now.saturating_duration_since(self.last) < self.every {
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
        format!("--dump-every={}ms", self.every.as_millis()).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_a_part_each_time() {
        let ms = Duration::from_millis;
        let mut timeline = Timeline::new(ms(100));
        let start = timeline.last;
        let mut at = |n: u64| timeline.next(start + ms(n), [1, 2].into_iter());
        assert_eq!([at(0), at(99)], [None; 2]);
        assert_eq!([at(101), at(102), at(103)], [Some(2), Some(1), None]);
        assert_eq!([at(200), at(950), at(950), at(951), at(1049)], [None, Some(2), Some(1), None, None]);
        assert_eq!(at(1050), Some(2));
        assert_eq!(timeline.words(), b"--dump-every=100ms");
    }
}
