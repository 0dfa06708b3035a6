//! What a process has executed lately, function by function: what is asked, and how the answer is written. Reading never panics,
//! whatever comes.
//!
//! Each answer is a snapshot and has a number. Who names that number next time is told what has been executed in between; so
//! nothing but differences is sent, and several may look at a run, each at its own pace.

use crate::lines::{escaped, numbers, plain};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityRequest {
    /// The snapshot from which on to tell; one that is not kept any more, as 0: all there is.
    pub since: u64,
    /// As many functions are told at most.
    pub limit: usize,
    /// The event by which they are chosen and sorted; one that is not counted: the first one.
    pub by: String,
    /// Functions and files whose names contain this; empty: all.
    pub text: String,
}

impl Default for ActivityRequest {
    fn default() -> Self {
        Self { since: 0, limit: 50, by: "Ir".to_owned(), text: String::new() }
    }
}

/// What was executed between two snapshots. Counters are read while they go on: some executions of the moment may be told in the next
/// answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The number of this snapshot.
    pub snapshot: u64,
    /// Since the one before, or since the process began, in microseconds.
    pub micros: u64,
    /// How long the run took to find out, in microseconds of processor time: who asks again soon, asks that of it again.
    pub took: u64,
    /// Names of the events, in the order of all costs.
    pub events: Vec<String>,
    /// What all functions have cost.
    pub total: Vec<u64>,
    /// How many functions have been executed and fit, since the process began.
    pub known: u64,
    /// The threads that there are.
    pub threads: Vec<ActiveThread>,
    /// Functions, the costliest first.
    pub functions: Vec<ActiveFunction>,
}

/// A thread of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveThread {
    /// The kernel's number.
    pub id: u64,
    /// Instructions.
    pub instructions: u64,
    /// Its name.
    pub name: String,
}

/// A function, with what it has cost by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveFunction {
    /// Its name.
    pub name: String,
    /// Where it is defined, as far as that is known.
    pub file: String,
    /// One number for each event.
    pub cost: Vec<u64>,
}

impl ActivityRequest {
    pub(crate) fn words(&self) -> String {
        // (No event has a blank in its name.)
        let by = escaped(&self.by).replace(' ', "");
        format!("{} {} {by} {}", self.since, self.limit, escaped(&self.text))
    }

    pub(crate) fn parse(words: &str) -> Option<Self> {
        let mut words = words.splitn(4, ' ');
        let since = words.next()?.parse().ok()?;
        let limit = words.next()?.parse().ok()?;
        let by = plain(words.next()?);
        Some(Self { since, limit, by, text: plain(words.next()?) })
    }
}

impl Activity {
    /// The lines that say it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("snapshot: {}", self.snapshot),
            format!("micros: {}", self.micros),
            format!("took: {}", self.took),
            format!("events: {}", self.events.join(" ")),
            format!("total: {}", numbers(&self.total)),
            format!("known: {}", self.known),
        ];
        lines.extend(self.threads.iter().map(|t| format!("thread: {} {} {}", t.id, t.instructions, t.name)));
        lines.extend(self.functions.iter().map(|f| {
            let cost: String = f.cost.iter().map(|n| format!("{n} ")).collect();
            format!("function: {cost}{}\t{}", f.name, f.file)
        }));
        lines
    }

    /// The activity that lines say. Keys that are not known are passed over.
    ///
    /// # Errors
    /// Which line says nothing.
    pub fn parse(lines: &[String]) -> Result<Self, String> {
        let mut activity = Self::default();
        for line in lines {
            let bad = || format!("this is no activity: {line}");
            let (key, value) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, ""))).ok_or_else(bad)?;
            let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
            match key {
                "snapshot" => activity.snapshot = number(value)?,
                "micros" => activity.micros = number(value)?,
                "took" => activity.took = number(value)?,
                "known" => activity.known = number(value)?,
                // What costs mean must be known before them.
                "events" if !activity.functions.is_empty() => return Err(bad()),
                "events" => activity.events = value.split_whitespace().map(str::to_owned).collect(),
                "total" => activity.total = value.split_whitespace().map(number).collect::<Result<_, _>>()?,
                "thread" => {
                    let mut words = value.splitn(3, ' ');
                    let mut next = || words.next().ok_or_else(bad);
                    let (id, instructions) = (number(next()?)?, number(next()?)?);
                    activity.threads.push(ActiveThread { id, instructions, name: next()?.to_owned() });
                }
                "function" => {
                    // One number for each event, and names that may hold blanks.
                    let mut words = value.splitn(activity.events.len() + 1, ' ');
                    let cost = words.by_ref().take(activity.events.len()).map(number).collect::<Result<_, _>>()?;
                    let names = words.next().ok_or_else(bad)?;
                    let (name, file) = names.rsplit_once('\t').ok_or_else(bad)?;
                    activity.functions.push(ActiveFunction { name: name.to_owned(), file: file.to_owned(), cost });
                }
                _ => {}
            }
        }
        Ok(activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_survives_being_lines() {
        let function = |name: &str, file: &str, cost: &[u64]| ActiveFunction {
            name: name.to_owned(),
            file: file.to_owned(),
            cost: cost.to_vec(),
        };
        let activity = Activity {
            snapshot: 3,
            micros: 500_017,
            took: 1234,
            events: vec!["Ir".into(), "DLmr".into()],
            total: vec![12, 3],
            known: 2,
            threads: vec![ActiveThread { id: 4711, instructions: 12, name: "a worker".into() }],
            functions: vec![function("operator new(unsigned long)", "a b.cc", &[11, 3]), function("f", "", &[1, 0])],
        };
        assert_eq!(Activity::parse(&activity.lines()), Ok(activity));
        assert_eq!(Activity::parse(&Activity::default().lines()), Ok(Activity::default()));
        let without = Activity { functions: vec![function("f", "", &[])], ..Activity::default() };
        assert_eq!(Activity::parse(&without.lines()), Ok(without));
        let late = ["function: main\tmain.c", "events: Ir"].map(str::to_owned);
        assert!(Activity::parse(&late).is_err(), "costs before their events");
        for line in ["x", "snapshot: y", "function: f", "thread: 1 2", "total: -1"] {
            assert!(Activity::parse(&[line.to_owned()]).is_err(), "{line}");
        }
    }
}
