//! Folds a sequence of addresses, as they come, into nested steps.
//!
//! What has been folded expands to the very addresses, in order; what cannot be folded within a bounded room is counted. The room
//! is a few parts: whenever the last ones follow one another as iterations of a loop do, they become one, with a level more.
//! Three places at a step make a run, and two runs of the same shape are two times the same. Nothing is guessed: a walk over
//! lines is one because each of its addresses is where accesses at its step first touch a line.
//!
//! Invariants: a part is never changed in a way that changes the addresses that it has; the sum of misses of all parts and of what was
//! given up is the number of addresses.

use super::streams::{Grid, LEVELS, Level, PARTS, Part, Walk};

/// How many parts there are room for while more may come. The last [`FRESH`] of them may yet become a run.
const ROOM: usize = 20;
const FRESH: usize = 6;

/// How many lines a walk has at most before its misses come at the same places of lines again, and one.
const PERIOD: usize = 65;

/// A part, and how far its first address is from the one before.
#[derive(Clone, Debug)]
struct Term {
    part: Part,
    from: u8,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Fold {
    grid: Grid,
    terms: Vec<Term>,
    /// The last address, if there was one.
    last: Option<i64>,
    distances: Vec<u64>,
    irregular: u64,
}

/// What has become of a sequence of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// In the order of the sequence; starts are addresses.
    pub parts: Vec<Part>,
    /// Addresses that are in none.
    pub irregular: u64,
    /// How far each of those was from the one before, as [`cg_format::mem::streams::Stream::distances`] has it.
    pub distances: Vec<u64>,
}

/// The bits of a distance: 0 for none at all, else one more than its logarithm.
fn bits(distance: i64) -> u8 {
    (u64::BITS - distance.unsigned_abs().leading_zeros()) as u8
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    // Of steps no longer than two lines.
    a.cast_signed()
}

fn is_place(part: &Part) -> bool {
    part.walk.is_none() && part.levels.is_empty()
}

impl Fold {
    /// Accesses of this size to lines of this length.
    #[must_use]
    pub fn new(grid: Grid) -> Self {
        Self { grid, terms: Vec::new(), last: None, distances: Vec::new(), irregular: 0 }
    }

    /// The next address.
    pub fn push(&mut self, at: u64) {
        let at = at.cast_signed();
        let distance = at.wrapping_sub(self.last.unwrap_or(at));
        self.last = Some(at);
        if let Some(Term { part, .. }) = self.terms.last_mut() {
            if go_on(part, at, self.grid) || finer(part, at, self.grid) {
                return;
            }
            if !is_place(part) {
                self.reduce();
            }
        }
        let part = Part { start: at, misses: 1, walk: None, levels: Vec::new() };
        self.terms.push(Term { part, from: bits(distance) });
        self.reduce();
        self.make_room(ROOM);
    }

    /// Behind this sequence comes another one.
    pub fn append(&mut self, other: Self) {
        self.reduce();
        for term in other.terms {
            self.terms.push(term);
            self.reduce();
        }
        self.last = other.last;
        self.irregular += other.irregular;
        for (bits, n) in (0..).zip(other.distances) {
            self.give_up(bits, n);
        }
        self.make_room(ROOM);
    }

    /// The end of the sequence.
    #[must_use]
    pub fn finish(mut self) -> Folded {
        self.reduce();
        while self.terms.len() > PARTS {
            let least = (0..self.terms.len()).min_by_key(|n| self.terms[*n].part.misses).unwrap_or(0);
            let term = self.terms.remove(least);
            self.forget(&term);
        }
        if self.irregular > 0 {
            // Places alone say nothing where others are missing.
            for term in std::mem::take(&mut self.terms) {
                if is_place(&term.part) { self.forget(&term) } else { self.terms.push(term) }
            }
        }
        let parts = self.terms.into_iter().map(|term| term.part).collect();
        Folded { parts, irregular: self.irregular, distances: self.distances }
    }

    fn give_up(&mut self, bits: u8, n: u64) {
        let at = usize::from(bits);
        if n > 0 {
            self.distances.resize(self.distances.len().max(at + 1), 0);
            self.distances[at] += n;
        }
    }

    fn forget(&mut self, term: &Term) {
        self.irregular += term.part.misses;
        self.give_up(term.from, 1);
        let step = match (term.part.walk, term.part.levels.first()) {
            (Some(_), _) => self.grid.line.cast_signed(),
            (None, Some(level)) => level.step,
            (None, None) => 0,
        };
        self.give_up(bits(step), term.part.misses - 1);
    }

    /// Gives up the smallest parts if there is no room.
    fn make_room(&mut self, room: usize) {
        if self.terms.len() <= room {
            return;
        }
        let fresh = self.terms.split_off(self.terms.len() - FRESH);
        let least = self.terms.iter().map(|term| term.part.misses).min().unwrap_or(0);
        for term in std::mem::take(&mut self.terms) {
            if term.part.misses == least {
                self.forget(&term);
            } else {
                self.terms.push(term);
            }
        }
        self.terms.extend(fresh);
    }

    /// Makes one of the last parts whatever can be one.
    fn reduce(&mut self) {
        while self.reduce_once() {}
    }

    fn reduce_once(&mut self) -> bool {
        let grid = self.grid;
        let [.., Term { part: before, .. }, Term { part, .. }] = &mut self.terms[..] else { return false };
        if !is_place(part) {
            let done = one_more(before, part, grid) || twice(before, part, grid);
            if done {
                self.terms.pop();
            }
            return done;
        }
        let (mut places, mut n) = ([0; FRESH], 0);
        for (place, term) in places.iter_mut().zip(self.terms.iter().rev().take_while(|term| is_place(&term.part))) {
            *place = term.part.start;
            n += 1;
        }
        // The last one first.
        let starts = &places[..n];
        if let [c, b, a, ..] = *starts
            && let Some(run) = run(a, b, c, grid)
        {
            self.replace(3, run);
            return true;
        }
        if let [b2, a2, b1, a1, b0, a0] = *starts
            && let Some(pairs) = pairs([a0, b0, a1, b1, a2, b2])
        {
            self.replace(6, pairs);
            return true;
        }
        // A pair more behind those that there are.
        if let [b, a] = *starts
            && let [.., Term { part: before, .. }, _, _] = &mut self.terms[..]
        {
            let pair =
                Part { start: a, misses: 2, walk: None, levels: vec![Level { step: b.wrapping_sub(a), count: 2 }] };
            if one_more(before, &pair, grid) {
                self.terms.truncate(self.terms.len() - 2);
                return true;
            }
        }
        false
    }

    /// Makes one part of the last ones.
    fn replace(&mut self, last: usize, part: Part) {
        let at = self.terms.len() - last;
        let from = self.terms[at].from;
        self.terms.truncate(at);
        self.terms.push(Term { part, from });
    }
}

/// Whether the part goes on at `at`; then it does.
fn go_on(part: &mut Part, at: i64, grid: Grid) -> bool {
    match (&mut part.walk, part.levels.as_mut_slice()) {
        (Some(walk), []) => {
            let next = part.start.wrapping_add(walk.most).wrapping_add(walk.step.signum());
            if at != next {
                return false;
            }
            *walk = reach(part.start, at, walk.step, grid);
        }
        (None, [level]) => {
            if at != part.start.wrapping_add(level.step.wrapping_mul(level.count.cast_signed())) {
                return false;
            }
            level.count += 1;
        }
        _ => return false,
    }
    part.misses += 1;
    true
}

/// A walk from `start` that has missed at `at`.
fn reach(start: i64, at: i64, step: i64, grid: Grid) -> Walk {
    let next = grid.next(at, step).unwrap_or(at);
    Walk { step, last: at.wrapping_sub(start), most: next.wrapping_sub(start).wrapping_sub(step.signum()) }
}

/// Whether the part is a walk, by a smaller step than was thought, that goes on at `at`; then it is.
fn finer(part: &mut Part, at: i64, grid: Grid) -> bool {
    let line = grid.line.cast_signed();
    let (step, last) = match (part.walk, part.levels.as_slice()) {
        (Some(walk), []) => (walk.step, walk.last),
        // Some of those steps are longer than a line, by which they lie in lines that follow one another.
        (None, [level]) if level.count < PERIOD as u64 => {
            (level.step, level.step.wrapping_mul(level.count.cast_signed() - 1))
        }
        _ => return false,
    };
    let gap = at.wrapping_sub(part.start.wrapping_add(last));
    let short = |n: i64| n != 0 && n.unsigned_abs() < 2 * grid.line;
    if !short(step) || !short(gap) || (step > 0) != (gap > 0) {
        return false;
    }
    let smaller = gcd(step, gap) * step.signum();
    if smaller.abs() > line {
        return false;
    }
    let known = part.addresses(0, grid).map(u64::cast_signed).chain([at]).take(PERIOD + 1);
    let finer = std::iter::successors(Some(part.start), |at| grid.next(*at, smaller));
    // The steps before, and the last one, wherever that is.
    if !known.zip(finer).all(|(a, b)| a == b) || grid.next(part.start.wrapping_add(last), smaller) != Some(at) {
        return false;
    }
    *part = Part {
        start: part.start,
        misses: part.misses + 1,
        walk: Some(reach(part.start, at, smaller, grid)),
        levels: Vec::new(),
    };
    true
}

/// Three places as a run.
fn run(a: i64, b: i64, c: i64, grid: Grid) -> Option<Part> {
    let (first, second) = (b.wrapping_sub(a), c.wrapping_sub(b));
    let short = |n: i64| n != 0 && n.unsigned_abs() < 2 * grid.line;
    if short(first) && short(second) && (first > 0) == (second > 0) {
        let step = gcd(first, second) * first.signum();
        if step.unsigned_abs() <= grid.line && grid.next(a, step) == Some(b) && grid.next(b, step) == Some(c) {
            return Some(Part { start: a, misses: 3, walk: Some(reach(a, c, step, grid)), levels: Vec::new() });
        }
    }
    let levels = vec![Level { step: first, count: 3 }];
    (first == second).then_some(Part { start: a, misses: 3, walk: None, levels })
}

/// Three times two places.
fn pairs([a0, b0, a1, b1, a2, b2]: [i64; 6]) -> Option<Part> {
    let (inner, outer) = (b0.wrapping_sub(a0), a1.wrapping_sub(a0));
    let same = b1.wrapping_sub(a1) == inner && b2.wrapping_sub(a2) == inner && a2.wrapping_sub(a1) == outer;
    let levels = vec![Level { step: inner, count: 2 }, Level { step: outer, count: 3 }];
    same.then_some(Part { start: a0, misses: 6, walk: None, levels })
}

/// Whether `next` is one iteration more of the outermost loop of `part`; then it is.
fn one_more(part: &mut Part, next: &Part, grid: Grid) -> bool {
    let Some((outer, inner)) = part.levels.split_last() else { return false };
    let expected = part.start.wrapping_add(outer.step.wrapping_mul(outer.count.cast_signed()));
    if next.start != expected || inner != next.levels {
        return false;
    }
    let Some(walk) = both(part, next, grid) else { return false };
    let last = part.levels.len() - 1;
    part.levels[last].count += 1;
    part.walk = walk;
    part.misses += next.misses;
    true
}

/// Whether `next` is the same as `part` again; then it is.
fn twice(part: &mut Part, next: &Part, grid: Grid) -> bool {
    let levels = part.levels.len() + usize::from(part.walk.is_some());
    if is_place(part) || levels == LEVELS || part.levels != next.levels {
        return false;
    }
    let Some(walk) = both(part, next, grid) else { return false };
    part.levels.push(Level { step: next.start.wrapping_sub(part.start), count: 2 });
    part.walk = walk;
    part.misses += next.misses;
    true
}

/// The walk that misses like that of `a` where that begins, and like that of `b` there. (What has none is one, too.)
fn both(a: &Part, b: &Part, grid: Grid) -> Option<Option<Walk>> {
    let (x, y) = match (a.walk, b.walk) {
        (Some(x), Some(y)) => (x, y),
        (None, None) => return Some(None),
        _ => return None,
    };
    if (x.step > 0) != (y.step > 0) {
        return None;
    }
    let step = gcd(x.step, y.step) * x.step.signum();
    let (mut last, mut most) = (x.last.max(y.last), x.most.min(y.most));
    if step < 0 {
        (last, most) = (x.last.min(y.last), x.most.max(y.most));
    }
    for (part, walk) in [(a, x), (b, y)] {
        if walk.step == step {
            continue;
        }
        for start in starts(part, grid) {
            let of = |step| std::iter::successors(Some(start), move |at| grid.next(*at, step)).take(PERIOD + 1);
            let lines = |at: &i64| if step > 0 { *at <= start + walk.last } else { *at >= start + walk.last };
            if !of(walk.step).take_while(lines).eq(of(step).take_while(lines)) {
                return None;
            }
            let reached = reach(start, start + walk.last, step, grid).most;
            most = if step > 0 { most.min(reached) } else { most.max(reached) };
        }
    }
    let within = if step > 0 { last <= most } else { last >= most };
    within.then_some(Some(Walk { step, last, most }))
}

/// Where the walks of a part begin, as far as their lines are concerned: addresses within the first line.
fn starts(part: &Part, grid: Grid) -> Vec<i64> {
    let line = i64::try_from(grid.line).unwrap_or(i64::MAX).max(1);
    let mut starts = vec![part.start.rem_euclid(line)];
    for level in &part.levels {
        let known = starts.clone();
        let step = level.step.rem_euclid(line);
        for n in 1..level.count.min(line.cast_unsigned()) {
            starts.extend(known.iter().map(|at| (at + step * n.cast_signed()).rem_euclid(line)));
        }
        starts.sort_unstable();
        starts.dedup();
    }
    starts
}

#[cfg(test)]
mod tests;
