//! Streams in words: `read a[0:1:200000] x3`.
//!
//! A level is START:STEP:END in elements of the size of the access, END being one behind the last; outer levels stand first, joined by
//! ` . `; `xN` says that the same comes N times. Of a walk over lines only the lines are known that missed, so its step is that of
//! the program only where the number of executions says so, and else `line`. Never a name, a step or an end that is not known.

use std::collections::HashMap;

use super::streams::{Part, Stream, Walk};
use super::{Kind, Object};

/// How many larger steps are asked whether they would do as well: no walk has a step longer than a line.
const MOST_STEPS: usize = 256;

/// What is known of a walk's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps {
    /// Bytes; `None`: from line to line.
    step: Option<i64>,
    /// Bytes to one element behind the last.
    end: i64,
}

/// A part of a stream of the variable `name`. `alone`: the instruction has no other streams, so that all its executions are of this one.
#[must_use]
pub fn part(stream: &Stream, part: &Part, name: &str, alone: bool) -> String {
    let steps = part.walk.map(|walk| steps(stream, part, walk, alone));
    let size = i64::try_from(stream.size).unwrap_or(i64::MAX).max(1);
    let bytes = [part.start].into_iter().chain(part.levels.iter().map(|l| l.step)).chain(steps.and_then(|s| s.step));
    let unit = if bytes.clone().all(|n| n % size == 0) { size } else { 1 };
    let mut start = part.start / unit;
    let mut text = Vec::new();
    let mut times = String::new();
    for level in part.levels.iter().rev() {
        if level.step == 0 {
            // Around all else it is said behind it.
            match text.is_empty() {
                true => times.push_str(&format!(" x{}", level.count)),
                false => text.push(format!("x{}", level.count)),
            }
            continue;
        }
        let step = level.step / unit;
        let count = i64::try_from(level.count).unwrap_or(i64::MAX);
        text.push(format!("{start}:{step}:{}", start.saturating_add(step.saturating_mul(count))));
        start = 0;
    }
    if let Some(Steps { step, end }) = steps {
        let step = step.map_or_else(|| "line".to_owned(), |step| (step / unit).to_string());
        text.push(format!("{start}:{step}:{}", start.saturating_add(end / unit)));
    } else if text.is_empty() {
        text.push(start.to_string());
    }
    let of_bytes = if unit == size { "" } else { " bytes" };
    format!("{} {name}[{}{of_bytes}]{times}", stream.access.word(), text.join(" . "))
}

/// Bytes from one access to the next within a walk, as far as that is known; `alone` as of [`part`].
#[must_use]
pub fn step(stream: &Stream, part: &Part, alone: bool) -> Option<i64> {
    steps(stream, part, part.walk?, alone).step
}

/// The program's own steps of a walk: those by which as many accesses as there were walk as far as it has.
fn steps(stream: &Stream, part: &Part, walk: Walk, alone: bool) -> Steps {
    let sign = walk.step.signum();
    let size = i64::try_from(stream.size).unwrap_or(i64::MAX).max(1);
    // Bytes in its direction.
    let (last, most) = (walk.last.saturating_mul(sign), walk.most.saturating_mul(sign));
    // What ends before the line does, ends where the object does.
    let room = match i64::try_from(stream.bytes) {
        Ok(bytes) if bytes > 0 && part.levels.iter().all(|l| l.step == 0) => match sign {
            1 => Some(bytes.saturating_sub(part.start).saturating_sub(size)),
            _ => Some(part.start),
        },
        _ => None,
    };
    let reach = most.min(room.unwrap_or(most)).max(last);
    let unknown = Steps { step: None, end: last.saturating_add(size).saturating_mul(sign) };
    let times = part.times();
    if !alone
        || stream.parts.len() != 1
        || stream.irregular > 0
        || times == 0
        || !stream.executions.is_multiple_of(times)
    {
        return unknown;
    }
    let Ok(accesses) = i64::try_from(stream.executions / times) else { return unknown };
    if accesses < 2 {
        return unknown;
    }
    // Those before the first miss found their line there, so there may have been more than these.
    let between = accesses - 1;
    let step = last / between + i64::from(last % between != 0);
    let fits = |step: i64| step.saturating_mul(between) <= most && walk.step % step == 0;
    if step < size || !fits(step) || (step + 1..).take(MOST_STEPS).any(fits) {
        return unknown;
    }
    let end = (reach / step + 1).min(accesses).saturating_mul(step);
    Steps { step: Some(step * sign), end: end.saturating_mul(sign) }
}

/// For each stream whether its instruction has no other one.
#[must_use]
pub fn alone(streams: &[Stream]) -> Vec<bool> {
    let mut count: HashMap<usize, usize> = HashMap::new();
    streams.iter().for_each(|stream| *count.entry(stream.instruction).or_default() += 1);
    streams.iter().map(|stream| count.get(&stream.instruction) == Some(&1)).collect()
}

/// How streams call an object; `line` is the line of the source that allocates it, if it is known. A block of the heap is called by the
/// identifier left of the only `=` there; that is shown beside file and line and is used for nothing else.
#[must_use]
pub fn variable(object: &Object, line: Option<&[u8]>) -> String {
    match object.kind {
        Kind::Heap if object.line > 0 => line.and_then(assigned).unwrap_or_else(|| object.name.clone()),
        Kind::Stack => "[stack]".to_owned(),
        _ => object.name.clone(),
    }
}

/// How many bytes of a line that is loaded the instruction accesses until it has to be loaded again: at most the line. `None` if it has
/// other streams, or if it is not known how often it was executed.
#[must_use]
pub fn used(stream: &Stream, line: u64, alone: bool) -> Option<u64> {
    if !alone || stream.executions < stream.misses || stream.misses == 0 {
        return None;
    }
    let misses = u128::from(stream.misses);
    let bytes = (u128::from(stream.size) * u128::from(stream.executions) + misses / 2) / misses;
    Some(u64::try_from(bytes).map_or(line, |bytes| bytes.min(line)))
}

/// What to do about a stream, where its steps say so.
#[must_use]
pub fn hint(stream: &Stream, line: u64) -> Option<String> {
    let part = stream.parts.iter().max_by_key(|part| part.misses)?;
    if part.walk.is_some() || part.misses.saturating_mul(10) < stream.misses.saturating_mul(9) {
        return None;
    }
    let (inner, outer) = part.levels.split_first()?;
    let outer = outer.iter().find(|level| level.step != 0 && level.step.unsigned_abs() < line)?;
    if inner.step.unsigned_abs() < line || inner.count < 2 {
        return None;
    }
    let again = (line / outer.step.unsigned_abs()).min(outer.count);
    let lines = inner.step.unsigned_abs().div_ceil(line);
    Some(format!(
        "the inner step is {lines} lines, so each line is loaded {again} times: exchange the loops, or take {again} of the outer one at a time"
    ))
}

/// The identifier left of the only `=` of a line.
#[must_use]
pub fn assigned(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let code = text.split("//").next().unwrap_or_default();
    let bytes = code.as_bytes();
    let around = |n: usize| n.checked_sub(1).map_or(b' ', |n| bytes[n]);
    let alone = |n: &usize| {
        let after = bytes.get(n + 1).copied().unwrap_or(b' ');
        bytes[*n] == b'=' && !matches!(after, b'=' | b'>') && !b"=!<>+-*/%&|^".contains(&around(*n))
    };
    let mut places = (0..bytes.len()).filter(alone);
    let (at, None) = (places.next()?, places.next()) else { return None };
    let left = code[..at].trim_end();
    let begin = left
        .rfind(|c: char| !(c.is_alphanumeric() || "_.->".contains(c)))
        .map_or(0, |n| n + left[n..].chars().next().map_or(1, char::len_utf8));
    let name = &left[begin..];
    let is_word = |word: &str| {
        let first = word.chars().next();
        first.is_some_and(|c| c.is_alphabetic() || c == '_') && !word.contains(['-', '>'])
    };
    name.split("->").flat_map(|part| part.split('.')).all(is_word).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::streams::{Access, Level};
    use super::*;

    fn stream(executions: u64, parts: Vec<Part>) -> Stream {
        Stream {
            access: Access::Read,
            object: 0,
            instruction: 0,
            file: String::new(),
            line: 0,
            function: String::new(),
            size: 8,
            executions,
            misses: parts.iter().map(|p| p.misses).sum(),
            last_level: 0,
            phase: 0,
            bytes: 0,
            parts,
            irregular: 0,
            distances: Vec::new(),
            prefetch: None,
        }
    }

    fn level(step: i64, count: u64) -> Level {
        Level { step, count }
    }

    fn said(executions: u64, part: Part, bytes: u64) -> String {
        let stream = Stream { bytes, ..stream(executions, vec![part]) };
        super::part(&stream, &stream.parts[0], "a", true)
    }

    #[test]
    fn walks_have_the_steps_that_executions_say() {
        let walk = |start, step, last, most, levels: &[Level]| Part {
            start,
            misses: 9,
            walk: Some(Walk { step, last, most }),
            levels: levels.into(),
        };
        let triad = walk(0, 16, 1_599_984, 1_600_047, &[level(0, 3)]);
        assert_eq!(said(600_000, triad.clone(), 1_600_000), "read a[0:1:200000] x3");
        assert_eq!(said(300_000, triad.clone(), 1_600_000), "read a[0:2:200000] x3");
        assert_eq!(said(0, triad.clone(), 1_600_000), "read a[0:line:199999] x3", "not known");
        assert_eq!(said(600_001, triad, 1_600_000), "read a[0:line:199999] x3", "not the same each time");
        // The first six found their line there.
        assert_eq!(said(360_000, walk(48, 64, 2_879_936, 2_879_999, &[]), 2_880_000), "read a[6:1:360000]");
        let rows = walk(16, 8, 2_384, 2_400, &[level(4800, 100)]);
        assert_eq!(said(30_000, rows, 480_000), "read a[2:600:60002 . 0:1:300]");
        assert_eq!(said(1000, walk(7992, -8, -7984, -8047, &[]), 8000), "read a[999:-1:-1]");
        let pieces = walk(0, 24, 2_400, 2_455, &[]);
        assert_eq!(said(101, pieces, 2_424), "read a[0:3:303]");
    }

    #[test]
    fn steps_of_places_are_their_own() {
        let part = |start, levels: &[Level]| Part { start, misses: 9, walk: None, levels: levels.into() };
        assert_eq!(said(0, part(0, &[level(4800, 600), level(8, 600)]), 0), "read a[0:1:600 . 0:600:360000]");
        assert_eq!(said(0, part(80, &[]), 0), "read a[10]");
        assert_eq!(said(0, part(80, &[level(0, 7)]), 0), "read a[10] x7");
        assert_eq!(said(0, part(4, &[level(0, 7), level(6, 2)]), 0), "read a[4:6:16 . x7 bytes]");
        assert!(said(0, part(i64::MAX, &[level(i64::MIN, u64::MAX)]), 0).starts_with("read a["), "no panic");
    }

    #[test]
    fn columns_are_told_what_to_do() {
        let part = |levels: &[Level]| Part { start: 0, misses: 9, walk: None, levels: levels.into() };
        let column = stream(0, vec![part(&[level(4800, 600), level(8, 600)])]);
        let hint = hint(&column, 64).expect("a hint");
        assert!(hint.contains("75 lines") && hint.contains("loaded 8 times"), "{hint}");
        assert_eq!(super::hint(&stream(0, vec![part(&[level(4800, 600), level(64, 600)])]), 64), None);
        assert_eq!(super::hint(&stream(0, vec![part(&[level(4800, 600)])]), 64), None);
        assert_eq!((used(&stream(18, vec![part(&[])]), 64, true), used(&column, 64, true)), (Some(16), None));
    }

    #[test]
    fn allocations_are_called_what_they_are_assigned_to() {
        for (line, name) in [
            ("    double *a = malloc(n * sizeof *a);", Some("a")),
            ("  this->rows = new double[n];", Some("this->rows")),
            ("let v: Vec<u8> = vec![0; n];", None),
            ("let table = vec![0; n]; // x = y", Some("table")),
            ("if ((p = malloc(n)) == NULL)", Some("p")),
            ("int n = 5; char *q = malloc(n);", None),
            ("return malloc(n);", None),
            ("x += f(malloc(1));", None),
            ("rows[i] = malloc(n);", None),
            ("é = malloc(n)", Some("é")),
            ("= malloc(n)", None),
            ("", None),
        ] {
            assert_eq!(assigned(line.as_bytes()).as_deref(), name, "{line}");
        }
    }
}
