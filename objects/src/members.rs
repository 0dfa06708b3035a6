//! Which members of structures are missed: of variables whose type debug information has, and of blocks of the heap whose type is certain.
//!
//! What a block is, only the source says: the line that calls the allocator must assign the result of this one call to a variable,
//! which must be a pointer to a structure; and the block must have the size of one, or, where the line asks for several by the
//! structure's own size, of as many as fit. The source must not have been written to since the program was made. Once a block has another
//! size, nothing is said of the object's members at all.
//!
//! Must never name a member by guess: whatever is not certain is told by offsets, as before. Each object is asked about once, when it is
//! missed first; files that are read are few and not large.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cg_format::mem::notation;
use grind_names::images::{Call, Images};
use grind_symbols::{Layout, Pointee};
use grind_types::mapped_file::{self, Stamp};

use super::{Object, Site};

/// Sources that are read, at most.
const MOST_SOURCES: usize = 256;

/// The longest of them, in bytes.
const LONGEST: u64 = 4 << 20;

/// The misses of an object by member.
#[derive(Clone, Debug)]
pub struct Members {
    /// What it consists of.
    pub layout: Arc<Layout>,
    /// By member: as [`super::Tally::misses`].
    pub counts: Vec<[u64; 4]>,
    /// Those at bytes that no member has.
    pub none: [u64; 4],
}

/// How many structures a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Many {
    One,
    Any,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Nobody has missed it yet.
    #[default]
    Unasked,
    Unknown,
    Known(Members, Option<Many>),
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct ByMember {
    /// By the number of the object.
    states: Vec<State>,
    sources: Sources,
}

impl ByMember {
    /// The first or the last level has been missed at an address of an object that lies at `place`; `first` is the first of both counts.
    pub(super) fn missed(
        &mut self,
        (number, object): (u32, &Object),
        (addr, place): (u64, &Range<u64>),
        (first, last_level): (usize, bool),
        images: &Images,
    ) {
        let n = number as usize;
        if n >= self.states.len() {
            self.states.resize(n + 1, State::Unasked);
        }
        if matches!(self.states[n], State::Unasked) {
            self.states[n] = self.ask(object, images).unwrap_or(State::Unknown);
        }
        let State::Known(members, many) = &mut self.states[n] else { return };
        let (bytes, size) = (place.end.wrapping_sub(place.start), members.layout.size);
        let fits = match many {
            // (The variable's size has been asked for.)
            None => true,
            Some(Many::One) => bytes == size,
            Some(Many::Any) => bytes == size || !members.layout.open && bytes % size == 0,
        };
        if !fits {
            self.states[n] = State::Unknown;
            return;
        }
        let member = members.layout.at(addr.wrapping_sub(place.start) % size);
        let counts = match member {
            Some(member) => &mut members.counts[member],
            None => &mut members.none,
        };
        counts[first] += 1;
        counts[first + 1] += u64::from(last_level);
    }

    fn ask(&mut self, object: &Object, images: &Images) -> Option<State> {
        let (layout, many) = match object {
            Object::Variable { image, number } => (image.layout(*number)?, None),
            Object::Heap(sites) => {
                let Site { module, addr } = *sites.first()?;
                let call = images.call(module, addr.wrapping_sub(1))?;
                let (pointee, many) = self.sources.block(&call)?;
                (Arc::new(pointee.layout), Some(many))
            }
            _ => return None,
        };
        let counts = vec![[0; 4]; layout.members.len()];
        Some(State::Known(Members { layout, counts, none: [0; 4] }, many))
    }

    /// What has been counted, by object; counts begin anew.
    pub(super) fn take(&mut self) -> Vec<Option<Members>> {
        let taken = |state: &mut State| match state {
            State::Known(members, _) => {
                let taken = members.clone();
                (members.none, members.counts) = ([0; 4], vec![[0; 4]; taken.counts.len()]);
                Some(taken)
            }
            _ => None,
        };
        self.states.iter_mut().map(taken).collect()
    }
}

/// A source file.
#[derive(Debug)]
struct Source {
    text: Vec<u8>,
    stamp: Stamp,
}

/// Those that have been read.
#[derive(Clone, Debug, Default)]
struct Sources(HashMap<PathBuf, Option<Arc<Source>>>);

impl Sources {
    /// What a block is that this call hands out.
    fn block(&mut self, call: &Call) -> Option<(Pointee, Many)> {
        let (file, number) = call.line()?;
        let source = self.read(&file)?;
        if !call.is_made_from(&source.stamp) {
            return None;
        }
        let line = source.text.split(|b| *b == b'\n').nth(number as usize - 1)?;
        let name = notation::assigned(line)?;
        // (Where several names lead to it, the type of the last one is not looked for.)
        if name.contains(['.', '-']) {
            return None;
        }
        let pointee = call.pointee(name.as_bytes())?;
        let many = asked(std::str::from_utf8(line).ok()?, &name, &pointee)?;
        Some((pointee, many))
    }

    fn read(&mut self, path: &Path) -> Option<Arc<Source>> {
        if let Some(known) = self.0.get(path) {
            return known.clone();
        }
        // What is not from the root on, is so from wherever the compiler was.
        let source = (self.0.len() < MOST_SOURCES && path.is_absolute()).then(|| read(path)).flatten().map(Arc::new);
        if self.0.len() < MOST_SOURCES {
            self.0.insert(path.to_owned(), source.clone());
        }
        source
    }
}

fn read(path: &Path) -> Option<Source> {
    let (file, stamp) = mapped_file::open(path).ok().filter(|(_, stamp)| stamp.size <= LONGEST)?;
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(Source { text, stamp })
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The names in a text that something in parentheses follows, but for those of the language.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    let before = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end();
        let begin =
            before.rfind(|c| !is_name(c)).map_or(0, |n| n + before[n..].chars().next().map_or(1, char::len_utf8));
        &before[begin..]
    };
    let own = ["", "if", "while", "for", "switch", "return", "sizeof", "alignof", "_Alignof", "else"];
    text.match_indices('(').map(before).filter(move |name| !own.contains(name))
}

/// Where what begins with a parenthesis ends: behind the one that belongs to it.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            // What is in quotes is not looked into.
            '"' | '\'' => return None,
            _ => {}
        }
    }
    None
}

/// How many structures the line of an allocation asks for, if it assigns the result of one call to the pointer `name`.
fn asked(line: &str, name: &str, pointee: &Pointee) -> Option<Many> {
    let code = line.split("//").next()?;
    let (left, right) = code.split_once('=')?;
    if left.contains('"') || code.contains("/*") || calls(left).next().is_some() {
        return None;
    }
    let mut right = right.trim();
    if let Some(made) = right.strip_prefix("new").filter(|rest| rest.starts_with(char::is_whitespace)) {
        return made_by_new(made, pointee);
    }
    while right.starts_with('(') {
        right = right[closed(right)?..].trim_start();
    }
    let callee = &right[..right.find(|c| !is_name(c) && c != ':')?];
    let rest = right[callee.len()..].trim_start();
    if callee.is_empty() || !rest.starts_with('(') {
        return None;
    }
    let end = closed(rest)?;
    let (arguments, behind) = (&rest[1..end - 1], &rest[end..]);
    let allocates = |name: &str| name.to_ascii_lowercase().contains("alloc");
    // Other calls on the line might have got the block.
    if !(behind.is_empty() || behind.trim_start().starts_with([';', ')', ',']))
        || calls(arguments).next().is_some()
        || calls(behind).any(|name| !allocates(callee) || allocates(name))
        || behind.contains("new ")
    {
        return None;
    }
    sized(arguments, name, pointee)
}

/// What the arguments of an allocator say of the size.
fn sized(arguments: &str, name: &str, pointee: &Pointee) -> Option<Many> {
    let mut places = arguments.match_indices("sizeof").filter(|(at, word)| {
        !arguments[..*at].ends_with(is_name) && !arguments[at + word.len()..].starts_with(is_name)
    });
    let Some((at, word)) = places.next() else { return Some(Many::One) };
    if places.next().is_some() {
        return None;
    }
    let rest = arguments[at + word.len()..].trim_start();
    let (operand, behind) = match rest.starts_with('(') {
        true => (&rest[1..closed(rest)? - 1], &rest[closed(rest)?..]),
        false => {
            let end = |from: usize, inside: fn(char) -> bool| {
                from + rest[from..].find(|c| !inside(c)).unwrap_or(rest.len() - from)
            };
            let mut at = end(end(0, |c| "* ".contains(c)), is_name);
            if rest[at..].starts_with('[') {
                at = end(at, |c| c != ']') + usize::from(rest[at..].contains(']'));
            }
            rest.split_at(at)
        }
    };
    let tagged = operand.split_whitespace().any(|word| ["struct", "class"].contains(&word));
    let operand: String =
        operand.split_whitespace().filter(|word| !["struct", "class", "const"].contains(word)).collect();
    // A type stands in parentheses, and a variable of its name hides it.
    let names_type = rest.starts_with('(') && (tagged || operand != name);
    // (In front of what is to be multiplied by it: `sizeof *a * n`.)
    let own = operand == format!("*{name}") || operand == format!("{name}[0]");
    let known = names_type && pointee.names.iter().any(|known| **known == *operand.as_bytes());
    if behind.starts_with(['.', '-']) || !own && !known {
        return None;
    }
    // All that stands beside it, in the same argument, has to be a factor.
    let (mut depth, mut before) = (0i32, "");
    for (n, c) in arguments[..at].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => before = &arguments[n + 1..at],
            _ => {}
        }
    }
    if before.is_empty() && !arguments[..at].contains(',') {
        before = &arguments[..at];
    }
    let behind = top(behind).split(',').next().unwrap_or_default().to_owned();
    let factors = |text: &str| text.chars().all(|c| is_name(c) || c.is_whitespace() || ".*[]()".contains(c));
    // A call with two numbers multiplies them by itself.
    Some(if depth == 0 && factors(&top(before)) && factors(&behind) { Many::Any } else { Many::One })
}

/// A text without what is in parentheses.
fn top(text: &str) -> String {
    let mut depth = 0i32;
    let outside = |c: &char| {
        depth += i32::from(*c == '(');
        let outside = depth == 0;
        depth -= i32::from(*c == ')');
        outside
    };
    text.replace("->", ".").chars().filter(outside).collect()
}

/// How many structures `new` makes, if they are the pointer's.
fn made_by_new(made: &str, pointee: &Pointee) -> Option<Many> {
    let end = made.find(['(', '[', '{', ';'])?;
    let class: String = made[..end].split_whitespace().filter(|word| !["struct", "class"].contains(word)).collect();
    let last = if class.contains('<') { &class } else { class.rsplit("::").next()? };
    let rest = &made[end..];
    if rest.contains("new ") || calls(rest).next().is_some() || !pointee.names.iter().any(|n| **n == *last.as_bytes()) {
        return None;
    }
    Some(if rest.starts_with('[') { Many::Any } else { Many::One })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointee() -> Pointee {
        let layout = Layout::default();
        Pointee { layout, names: vec![b"node"[..].into(), b"node_t"[..].into()] }
    }

    #[test]
    fn sizes_are_those_that_the_line_says() {
        let (one, any) = (Some(Many::One), Some(Many::Any));
        for (line, expected) in [
            ("    struct node *node = malloc(sizeof *node);", any),
            ("node = malloc(sizeof(struct node));", any),
            ("node = (struct node *)malloc(n * sizeof(node_t)); // all", any),
            ("node = calloc(SLOTS, sizeof *node);", any),
            ("node = calloc(count(n), sizeof *node);", None),
            ("node = malloc((n + 1) * sizeof node[0]);", any),
            ("node = malloc(sizeof *node * n->all);", any),
            ("node = aligned_alloc(128, sizeof *node); // node", any),
            ("if ((node = malloc(sizeof *node)) == NULL)", any),
            ("if (!(node = malloc(sizeof *node))) abort();", any),
            ("node = malloc(sizeof *node + n * 4);", one),
            ("node = malloc(n - sizeof *node);", one),
            ("node = malloc((sizeof *node + 8) * n);", one),
            ("node = malloc(32);", one),
            ("node = take(&pool);", one),
            ("node = malloc(sizeof(struct other));", None),
            ("node = malloc(sizeof *other);", None),
            ("node = malloc(sizeof *node->next);", None),
            ("node = malloc(sizeof node[0].next);", None),
            ("node = malloc(sizeof node[0] * 3);", any),
            ("node = malloc(sizeof node);", None),
            ("node = malloc(sizeof *node + sizeof(int));", None),
            ("node = wrap(malloc(sizeof *node));", None),
            ("node = n ? malloc(sizeof *node) : 0;", None),
            ("node = take(1); other(malloc(16));", None),
            ("other(malloc(16)); node = take(1);", None),
            ("node = other;", None),
            ("node = malloc(sizeof *node", None),
            ("node = malloc('(' * sizeof *node);", None),
            ("node = 1 + malloc(sizeof *node);", None),
            ("node = malloc(sizeof *node) + 8;", None),
            ("node = new node;", one),
            ("node = new space::node(1, 2);", one),
            ("node = new node[n];", any),
            ("node = new derived;", None),
            ("node = new node(take());", None),
            ("node = newer(sizeof *node);", any),
        ] {
            assert_eq!(asked(line, "node", &pointee()), expected, "{line}");
        }
    }
}
