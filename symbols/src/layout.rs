//! Which member of a structure has a byte, whoever has described the structure.
//!
//! A byte that several members have (unions, bit-fields, members that take the place of others' padding) is of all of them; a byte that
//! none has is of none. Members that are structures, or arrays of them, are taken apart; all elements of an array are one member.
//!
//! Must never name a member that does not have the byte, nor run away on a description: how many members there are, how deep they lie
//! and how much is looked at are bounded, and what is beyond has no layout.
//!
//! Invariants: parts of a structure are sorted and do not overlap; a member's number is its place in [`Layout::members`].

use std::rc::Rc;
use std::sync::Arc;

use super::names::{Name, sanitised};

/// The most members that are told apart.
pub(super) const MOST: usize = 4096;

/// How deep structures may lie in one another.
pub(super) const DEEPEST: usize = 32;

/// Members that are looked at, at most: each of them once for each place that it may have.
const EFFORT: usize = 1 << 20;

/// Of so many members at most that have a byte, the names are said.
const SAID: usize = 6;

/// A structure, as far as its bytes are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Its name, as the source has it; empty if it has none.
    pub name: Name,
    /// Its bytes.
    pub size: u64,
    /// It may be followed by more elements of its last member than it says.
    pub open: bool,
    /// Its members, each with a place of its own.
    pub members: Vec<Member>,
    parts: Arc<[Part]>,
}

/// A member that is no structure, or several that share their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// How it is reached from the structure, as `at.x`, `list[].next` or `i|f`.
    pub name: Name,
    /// Where it is first.
    pub offset: u64,
    /// Its bytes there.
    pub size: u64,
}

/// A piece of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    start: u64,
    end: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The member of this number.
    Member(usize),
    /// Structures of so many bytes, one behind the other.
    Structures(u64, Arc<[Part]>),
}

impl Layout {
    /// The number of the member that has a byte.
    #[must_use]
    pub fn at(&self, offset: u64) -> Option<usize> {
        let (mut offset, mut parts) = (offset, &self.parts);
        loop {
            let n = parts.partition_point(|part| part.start <= offset).checked_sub(1)?;
            let part = parts.get(n).filter(|part| offset < part.end)?;
            match &part.what {
                What::Member(n) => return Some(*n),
                What::Structures(size, inner) => {
                    offset = (offset - part.start) % (*size).max(1);
                    parts = inner;
                }
            }
        }
    }
}

/// A structure as it is described.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) name: Vec<u8>,
    pub(super) size: u64,
    pub(super) members: Vec<Described>,
    /// As [`Layout::open`].
    pub(super) open: bool,
}

/// A member as it is described.
#[derive(Clone, Debug)]
pub(super) struct Described {
    /// Without one, its own members are the structure's.
    pub(super) name: Vec<u8>,
    pub(super) start: u64,
    /// Its bytes, all elements together.
    pub(super) size: u64,
    /// If it is a structure, or an array of them.
    pub(super) of: Option<Rc<Record>>,
    /// It is an array.
    pub(super) array: bool,
    /// A class that this one is made of: its members are called by its name.
    pub(super) base: bool,
}

/// A member at its place, those of members without a name and of base classes among the others.
#[derive(Clone)]
struct Placed {
    name: Vec<u8>,
    start: u64,
    end: u64,
    of: Option<Rc<Record>>,
    array: bool,
}

/// The layout of a structure, if it can be told.
pub(super) fn layout(record: &Record) -> Option<Layout> {
    let mut making = Making { members: Vec::new(), effort: EFFORT };
    let parts = making.parts(record, &[], 0, 0)?;
    let (members, open) = (making.members, record.open);
    (record.size > 0 && !members.is_empty()).then(|| Layout {
        name: sanitised(&record.name),
        size: record.size,
        open,
        members,
        parts,
    })
}

struct Making {
    members: Vec<Member>,
    effort: usize,
}

impl Making {
    fn spend(&mut self, effort: usize) -> Option<()> {
        self.effort = self.effort.checked_sub(effort)?;
        Some(())
    }

    /// The parts of a structure that is reached by `before`, and lies at `at` first.
    fn parts(&mut self, record: &Record, before: &[u8], at: u64, depth: usize) -> Option<Arc<[Part]>> {
        let mut placed = Vec::new();
        self.place(record, &[], 0, depth, &mut placed)?;
        let mut edges: Vec<u64> = placed.iter().flat_map(|member| [member.start, member.end]).collect();
        edges.sort_unstable();
        edges.dedup();
        placed.sort_by_key(|member| member.start);
        let mut parts = Vec::new();
        let mut there: Vec<&Placed> = Vec::new();
        let mut next = placed.iter().peekable();
        for pair in edges.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            there.retain(|member| member.end > start);
            while let Some(member) = next.next_if(|member| member.start <= start) {
                there.push(member);
            }
            self.spend(1 + there.len())?;
            let inner = match there[..] {
                [] => continue,
                [Placed { of: Some(inner), array, name, start: from, end: to }] if (start, end) == (*from, *to) => {
                    Some((inner, *array, name))
                }
                _ => None,
            };
            let what = match inner {
                Some((inner, array, name)) if inner.size > 0 && (end - start) % inner.size == 0 => {
                    let dot: &[u8] = if array { b"[]." } else { b"." };
                    let before = [before, name, dot].concat();
                    What::Structures(inner.size, self.parts(inner, &before, at.checked_add(start)?, depth + 1)?)
                }
                _ => What::Member(self.member(before, &there, at.checked_add(start)?, end - start)?),
            };
            parts.push(Part { start, end, what });
        }
        Some(parts.into())
    }

    /// The members of a structure, and of those in it that have no name of their own.
    fn place(&mut self, record: &Record, before: &[u8], at: u64, depth: usize, placed: &mut Vec<Placed>) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        self.spend(1 + record.members.len())?;
        for member in &record.members {
            let start = at.checked_add(member.start)?;
            let end = start.checked_add(member.size)?;
            match &member.of {
                // (A description that has members beyond the end of what has them is none.)
                _ if end > at.checked_add(record.size)? => return None,
                Some(inner) if member.base => {
                    let before = [before, &member.name, b"::"].concat();
                    self.place(inner, &before, start, depth + 1, placed)?;
                }
                Some(inner) if member.name.is_empty() && !member.array => {
                    self.place(inner, before, start, depth + 1, placed)?;
                }
                _ if member.size == 0 || member.name.is_empty() => {}
                of => {
                    let name = [before, &member.name].concat();
                    self.spend(name.len() / 4)?;
                    placed.push(Placed { name, start, end, of: of.clone(), array: member.array });
                }
            }
        }
        (placed.len() <= MOST).then_some(())
    }

    fn member(&mut self, before: &[u8], there: &[&Placed], offset: u64, size: u64) -> Option<usize> {
        if self.members.len() == MOST {
            return None;
        }
        let mut names: Vec<&[u8]> = Vec::new();
        for member in there {
            if names.len() <= SAID && !names.contains(&&*member.name) {
                names.push(&member.name);
            }
        }
        if names.len() > SAID {
            names.truncate(SAID);
            names.push("…".as_bytes());
        }
        let name = [before, &names.join(&b"|"[..])].concat();
        self.spend(name.len() / 4)?;
        self.members.push(Member { name: sanitised(&name), offset, size });
        Some(self.members.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str, start: u64, size: u64) -> Described {
        Described { name: name.into(), start, size, of: None, array: false, base: false }
    }

    fn record(size: u64, members: Vec<Described>) -> Record {
        Record { name: b"r".to_vec(), size, members, open: false }
    }

    /// The names of members that have a byte, by asking each; members of arrays of structures are looked for in each element.
    fn twin(record: &Record, before: &str, byte: u64) -> Vec<String> {
        let mut all = Vec::new();
        for member in record.members.iter().filter(|m| m.start <= byte && byte < m.start + m.size) {
            let name = String::from_utf8_lossy(&member.name).into_owned();
            let inner = byte - member.start;
            match &member.of {
                Some(of) if member.base => all.extend(twin(of, &format!("{before}{name}::"), inner)),
                Some(of) if name.is_empty() => all.extend(twin(of, before, inner)),
                _ => all.push(format!("{before}{name}")),
            }
        }
        all
    }

    #[test]
    fn each_byte_is_of_those_that_have_it() {
        let mut state = 3u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut shared, mut free, mut alone) = (0, 0, 0);
        for _ in 0..2000 {
            let mut all: Vec<Rc<Record>> = Vec::new();
            for _ in 0..3 {
                let size = 16 + random(32);
                let mut members = Vec::new();
                for n in 0..random(5) {
                    let start = random(size);
                    let (name, of) = match (random(3), all.last()) {
                        (0, Some(of)) if start + of.size <= size => (["", "b"][random(2) as usize], Some(of.clone())),
                        _ => (["x", "y", "z", "u", "v"][n as usize], None),
                    };
                    let bytes = of.as_ref().map_or_else(|| random(size - start + 1), |of| of.size);
                    let base = name == "b";
                    members.push(Described { base, of, ..plain(name, start, bytes) });
                }
                all.push(Rc::new(record(size, members)));
            }
            let whole = all.last().expect("three");
            let Some(layout) = layout(whole) else {
                assert!((0..whole.size).all(|byte| twin(whole, "", byte).is_empty()));
                continue;
            };
            for byte in 0..whole.size + 4 {
                let mut expected = twin(whole, "", byte);
                let found = layout.at(byte).map(|n| &layout.members[n]);
                let name = found.map(|member| String::from_utf8_lossy(&member.name).into_owned());
                let mut got: Vec<&str> = name.as_deref().map_or(Vec::new(), |name| name.split('|').collect());
                expected.sort();
                expected.dedup();
                got.sort_unstable();
                got.dedup();
                if expected.len() <= SAID {
                    assert_eq!(got, expected, "byte {byte} of {whole:?}");
                }
                assert!(found.is_none_or(|member| (member.offset..member.offset + member.size).contains(&byte)));
                match got.len() {
                    0 => free += 1,
                    1 => alone += 1,
                    _ => shared += 1,
                }
            }
        }
        assert!(shared > 1000 && free > 1000 && alone > 1000, "{shared} {free} {alone}");
    }

    #[test]
    fn structures_in_structures_are_taken_apart() {
        let point = Rc::new(record(16, vec![plain("x", 0, 8), plain("y", 8, 4)]));
        let of =
            |name: &str, start, size, array| Described { of: Some(point.clone()), array, ..plain(name, start, size) };
        let whole = record(104, vec![plain("n", 0, 4), of("at", 8, 16, false), of("all", 24, 80, true)]);
        let layout = layout(&whole).expect("a layout");
        let name = |byte| layout.at(byte).map(|n| String::from_utf8_lossy(&layout.members[n].name).into_owned());
        for (byte, expected) in [
            (0, Some("n")),
            (4, None),
            (8, Some("at.x")),
            (19, Some("at.y")),
            (20, None),
            (24, Some("all[].x")),
            (24 + 64 + 11, Some("all[].y")),
            (24 + 64 + 12, None),
            (104, None),
        ] {
            assert_eq!(name(byte).as_deref(), expected, "byte {byte}");
        }
        let places: Vec<(u64, u64)> = layout.members.iter().map(|member| (member.offset, member.size)).collect();
        assert_eq!(places, [(0, 4), (8, 8), (16, 4), (24, 8), (32, 4)]);
    }

    #[test]
    fn what_cannot_be_has_no_layout() {
        assert_eq!(layout(&record(8, vec![plain("x", 4, 8)])), None, "beyond the end");
        assert_eq!(layout(&record(8, vec![plain("x", u64::MAX, 8)])), None);
        assert_eq!(layout(&record(0, vec![])), None);
        let many = (0..5000).map(|n| plain("x", n, 1)).collect();
        assert_eq!(layout(&record(5000, many)), None, "too many");
        // Each has the one before twice: 2 to the power of 40 members.
        let mut deep = Rc::new(record(1, vec![plain("x", 0, 1)]));
        for _ in 0..40 {
            let of = |name: &str, start| Described { of: Some(deep.clone()), ..plain(name, start, deep.size) };
            deep = Rc::new(record(2 * deep.size, vec![of("a", 0), of("b", deep.size)]));
        }
        assert_eq!(layout(&deep), None);
    }
}
