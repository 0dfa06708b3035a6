//! Parts of a profile by line: what a process has executed since the last one. The engine's counts only grow, so a part is the
//! difference between two profiles of the whole.
//!
//! Invariants: all parts and what was set to zero add up to the profile of the whole, line by line and event by event; a line that
//! has cost nothing since the last part is in none.

use std::borrow::Cow;

use cg_format::cachegrind::Profile;
use cg_format::count::TooLarge;

/// What of a process has been told.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The profile of the whole when the last part was taken, or counts were set to zero; nothing: neither has happened.
    told: Option<Profile>,
    /// The number of the next part, from 1.
    next: u64,
    /// What the parts so far add up to, by event.
    total: Vec<i128>,
}

impl Default for Parts {
    fn default() -> Self {
        Self { told: None, next: 1, total: Vec::new() }
    }
}

impl Parts {
    /// Whether a part is not the whole.
    #[must_use]
    pub fn any(&self) -> bool {
        self.told.is_some()
    }

    /// The number of the part that is being counted, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.next
    }

    /// What there is in `whole`, the profile of everything so far, beyond what has been told. It has told nothing.
    ///
    /// # Errors
    /// When a count is larger than a profile can hold.
    pub fn rest<'p>(&self, whole: &'p Profile) -> Result<Cow<'p, Profile>, TooLarge> {
        match &self.told {
            None => Ok(Cow::Borrowed(whole)),
            Some(told) => difference(whole, told).map(Cow::Owned),
        }
    }

    /// What `totals`, those of everything so far, are beyond what has been told.
    #[must_use]
    pub fn rest_of_totals(&self, totals: &[i128]) -> Vec<i128> {
        let told = self.told.as_ref().map(Profile::total).unwrap_or_default();
        totals.iter().zip(told.iter().chain(std::iter::repeat(&0))).map(|(all, told)| all - told).collect()
    }

    /// A part was taken: `rest` of `whole`.
    pub fn taken(&mut self, whole: Profile, rest: &Profile) {
        self.add(rest.total());
        self.next += 1;
        self.told = Some(whole);
    }

    /// All counts of `whole` were set to zero.
    pub fn zeroed(&mut self, whole: Profile) {
        self.told = Some(whole);
    }

    /// What all parts add up to, if the last one has cost `last`.
    #[must_use]
    pub fn sum(&self, last: &[i128]) -> Vec<i128> {
        let mut all = self.clone();
        all.add(last);
        all.total
    }

    fn add(&mut self, total: &[i128]) {
        self.total.resize(total.len(), 0);
        self.total.iter_mut().zip(total).for_each(|(sum, n)| *sum += n);
    }

    /// As they are when the process begins another program: all counts begin anew, and files that were written stay.
    #[must_use]
    pub fn for_another_program(&self) -> Self {
        Self { next: self.next, ..Self::default() }
    }

    /// As a copy of the process has them: what was told is not its own, and its parts begin at 1.
    #[must_use]
    pub fn forked(&self) -> Self {
        Self { told: self.told.clone(), ..Self::default() }
    }
}

/// `all` less `less`. Events that `less` does not have are 0 there: with the first statistics context, some come to be counted. (So it is
/// not enough to negate and merge, which takes the same events.)
fn difference(all: &Profile, less: &Profile) -> Result<Profile, TooLarge> {
    let columns: Vec<Option<usize>> =
        less.header.events.iter().map(|event| all.header.events.iter().position(|e| e == event)).collect();
    let width = all.header.events.len();
    let mut sums = all.clone();
    let mut counts = vec![0; width];
    for file in less.files() {
        for function in file.functions() {
            let rows = function.rows();
            for row in 0..rows.len() {
                counts.fill(0);
                for (at, column) in columns.iter().enumerate().filter_map(|(at, column)| Some((at, (*column)?))) {
                    counts[column] = -rows.count(row, at);
                }
                sums.add(file.name(), function.name(), rows.line(row), &counts)?;
            }
        }
    }
    // Lines that cancel out are left out.
    let mut rest = Profile::with_header(all.header.clone());
    for file in sums.files() {
        for function in file.functions() {
            let rows = function.rows();
            for row in 0..rows.len() {
                let counts = rows.counts(row);
                if counts.iter().any(|n| *n != 0) {
                    rest.add(file.name(), function.name(), rows.line(row), &counts)?;
                }
            }
        }
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::cachegrind::write;

    fn profile(rows: &[(&str, u64, [i128; 2])]) -> Profile {
        let mut profile = Profile::new(["Ir", "Dr"]);
        rows.iter()
            .for_each(|(function, line, counts)| profile.add(b"a.c", function.as_bytes(), *line, counts).unwrap());
        profile
    }

    fn text(profile: &Profile) -> String {
        let mut out = Vec::new();
        write(&mut out, profile).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parts_and_what_was_set_to_zero_add_up_to_the_whole() {
        let mut parts = Parts::default();
        let first = profile(&[("f", 1, [5, 1]), ("f", 2, [7, 0])]);
        let second = profile(&[("f", 1, [6, 1]), ("f", 2, [7, 0]), ("g", 9, [1, 1])]);
        let third = profile(&[("f", 1, [6, 2]), ("f", 2, [8, 0]), ("g", 9, [1, 1])]);
        let last = profile(&[("f", 1, [6, 2]), ("f", 2, [8, 0]), ("g", 9, [4, 1]), ("h", 3, [2, 2])]);
        assert!(!parts.any() && parts.number() == 1);
        let one = parts.rest(&first).unwrap();
        assert_eq!(text(&one), text(&first));
        parts.taken(first.clone(), &one);
        let two = parts.rest(&second).unwrap();
        assert_eq!(text(&two), text(&profile(&[("f", 1, [1, 0]), ("g", 9, [1, 1])])));
        assert_eq!(parts.rest_of_totals(second.total()), two.total());
        parts.taken(second.clone(), &two);
        assert_eq!(parts.number(), 3);
        let child = parts.forked();
        parts.zeroed(third.clone());
        let rest = parts.rest(&last).unwrap();
        assert_eq!(text(&rest), text(&profile(&[("g", 9, [3, 0]), ("h", 3, [2, 2])])));
        let zeroed = difference(&third, &second).unwrap();
        let mut sum = profile(&[]);
        [&one, &two, &zeroed, &rest].into_iter().for_each(|part| sum.merge(part).unwrap());
        assert_eq!(text(&sum), text(&last));
        assert_eq!(parts.sum(rest.total()), [12 + 2 + 5, 1 + 1 + 2]);
        // What its parent has told it has not executed anew.
        assert_eq!(child.rest(&third).unwrap().total(), zeroed.total());
        assert_eq!((child.number(), parts.for_another_program().number()), (1, 3));
        assert!(!parts.for_another_program().any());
    }

    #[test]
    fn events_that_came_later_were_zero_before() {
        let mut parts = Parts::default();
        let mut before = Profile::new(["Ir"]);
        before.add(b"a.c", b"f", 1, &[5]).unwrap();
        parts.zeroed(before);
        let whole = profile(&[("f", 1, [6, 3])]);
        let rest = parts.rest(&whole).unwrap();
        assert_eq!(rest.total(), [1, 3]);
    }
}
