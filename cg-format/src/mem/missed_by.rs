//! Which functions miss which data objects: rows behind all others of a file, where calls were recorded; and the same as a profile of
//! calls, in which objects are functions that are called by those that miss them.
//!
//! Invariant: the misses of all functions at an object are the object's, event by event.

use serde::{Deserialize, Serialize};

use super::{Head, Kind, Mem, Object, UNKNOWN};
use crate::callgrind::{Call, Header, Names, Part, PartHeader, Place, Position, Positions, Profile};
use crate::count::TooLarge;

/// A function that misses an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedBy {
    /// The object, as an index into the file's.
    pub object: usize,
    /// The function, with its callers behind it as far as the profile of calls tells them apart.
    #[serde(rename = "missed_by")]
    pub function: String,
    /// Its source file.
    pub file: String,
    /// The program or library that it is in.
    pub module: String,
    /// By event.
    pub counts: Vec<u64>,
}

impl MissedBy {
    /// What is wrong with it in a file of these objects.
    #[must_use]
    pub fn problem(&self, objects: &[Object]) -> Option<&'static str> {
        match objects.get(self.object) {
            None => Some("there is no such object"),
            Some(object) if object.counts.len() != self.counts.len() => Some("there must be a count for each event"),
            Some(_) => None,
        }
    }
}

/// Puts rows in order, makes those one that nothing tells apart, and says in the first line how many there are.
pub fn finish(head: &mut Head, rows: &mut Vec<MissedBy>) {
    fn key(row: &MissedBy) -> (usize, &str, &str, &str) {
        (row.object, &row.module, &row.file, &row.function)
    }
    let mut all = std::mem::take(rows);
    all.sort_by(|a, b| key(a).cmp(&key(b)));
    for next in all {
        match rows.last_mut() {
            Some(first) if key(first) == key(&next) => super::add(&mut first.counts, &next.counts),
            _ => rows.push(next),
        }
    }
    if let Some(count) = &mut head.missed_by {
        *count = rows.len();
    }
}

/// The first of these objects whose misses are not those of its functions: which, and both sums.
#[must_use]
pub fn differs(rows: &[MissedBy], objects: &[Object]) -> Option<(usize, u64, u64)> {
    let mut sums: Vec<Vec<u64>> = objects.iter().map(|object| vec![0; object.counts.len()]).collect();
    rows.iter().for_each(|row| super::add(&mut sums[row.object], &row.counts));
    let all = |counts: &[u64]| counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let differs = |(sum, object): &(&Vec<u64>, &Object)| **sum != object.counts;
    let at = sums.iter().zip(objects).position(|pair| differs(&pair))?;
    Some((at, all(&sums[at]), all(&objects[at].counts)))
}

impl Mem {
    /// The objects as a profile of calls: each is a function at the place of what has allocated it, whose own costs are its misses, and
    /// is called, once for each miss of the first level, by the functions that miss it. Those have no costs of their own.
    ///
    /// # Errors
    /// When a count is larger than a profile can hold.
    pub fn calls(&self) -> Result<Profile, TooLarge> {
        let mut names = Names::default();
        let positions = Positions { instr: false, line: true };
        let header = PartHeader { positions, events: self.head.events.clone(), ..PartHeader::default() };
        let mut part = Part::new(header);
        let text = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() };
        let mut objects = Vec::new();
        for object in &self.objects {
            let module = match object.kind {
                Kind::Heap => "[heap]",
                Kind::Stack => "[stack]",
                Kind::Variable | Kind::Section => &object.file,
                Kind::Unknown => UNKNOWN,
            };
            let (file, module) = (names.file(text(&object.file).as_bytes()), names.object(text(module).as_bytes()));
            let function = names.function(object.as_function().as_bytes(), file, module);
            let line = u32::try_from(object.line).unwrap_or(0);
            let at = Position { place: Place { addr: 0, line }, file };
            if object.counts.iter().any(|n| *n != 0) {
                part.add_row(function, at, &object.counts)?;
            }
            objects.push((function, at));
        }
        let first: Vec<usize> = self.head.first_level().collect();
        for by in &self.missed_by {
            let (callee, target) = objects[by.object];
            let (file, module) = (names.file(text(&by.file).as_bytes()), names.object(text(&by.module).as_bytes()));
            let function = names.function(by.function.as_bytes(), file, module);
            let count = first.iter().fold(0, |sum: u64, n| sum.saturating_add(by.counts[*n]));
            let at = Position { place: Place::default(), file };
            part.add_call(function, at, Call { callee, target: target.place, count }, &by.counts)?;
        }
        let header = Header {
            creator: Vec::new(),
            pid: u64::try_from(self.head.pid).ok(),
            cmd: self.head.command.clone().into_bytes(),
            desc: self.head.desc.iter().map(|d| d.clone().into_bytes()).collect(),
        };
        Ok(Profile { header, names, parts: vec![part] })
    }
}
