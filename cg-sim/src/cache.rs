//! One set-associative cache with any policy: what is there, what a line that comes displaces, and how a line is taken out.
//!
//! Lines are known by their number, the address divided by the size of a line. Nothing is there at first. A lookup that does
//! not find its line changes nothing; whoever wants it there fills it in. So a cache can be one of several in a hierarchy.
//!
//! Invariants: a line is in at most one way of its set; ways without a line are filled before any is replaced. Under
//! [`Policy::Lru`] and [`Policy::Fifo`] the ways of a set are in order, the newest line first and empty ways last; under all
//! others a line stays where it is.

use crate::geometry::Geometry;
use crate::policy::{Policy, Qlru};

/// No line: no line has this number, since lines have several bytes.
const NONE: u64 = u64::MAX;

/// The age that all lines grow to, and that of a way without a line.
const OLD: u8 = 3;

/// The middle of the counter that says which policy [`Policy::Drrip`] follows, and its greatest value.
const MIDDLE: u16 = 1 << 9;
const GREATEST: u16 = (1 << 10) - 1;

/// One fill in so many is not predicted to be useless under [`Policy::Brrip`].
const SELDOM: u8 = 32;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Cache {
    policy: Policy,
    set_mask: u64,
    ways: usize,
    line_bits: u32,
    /// By set and way.
    lines: Box<[u64]>,
    /// By set and way: its age, or whether it was used, where the policy has that.
    ages: Box<[u8]>,
    /// By set: the bits of trees, where the policy has them.
    trees: Box<[u64]>,
    /// By set: ways without a line.
    empty: Box<[u32]>,
    random: u64,
    /// Fills of lines that are predicted to be useless, modulo [`SELDOM`].
    useless: u8,
    /// Rises with misses of the sets that follow `Srrip`, and falls with those of the sets that follow `Brrip`.
    duel: u16,
    /// Of so many sets one always follows `Srrip`, and one `Brrip`.
    region: usize,
}

impl Cache {
    /// An empty one. The policy must fit the shape (see [`Policy::fits`]).
    #[must_use]
    pub fn new(shape: Geometry, policy: Policy) -> Self {
        debug_assert!(policy.fits(shape).is_ok());
        let (sets, ways) = (shape.sets() as usize, shape.assoc() as usize);
        let (mut ages, mut trees, mut random) = (0, 0, 0);
        match policy {
            Policy::Lru | Policy::Fifo => {}
            Policy::Random(seed) => random = mixed(seed),
            Policy::Plru | Policy::Lru3Plru4 => trees = sets,
            Policy::Nru | Policy::Srrip | Policy::Brrip | Policy::Drrip | Policy::Qlru(_) => ages = sets * ways,
        }
        let first_tree = if policy == Policy::Lru3Plru4 { trees_of_four::FIRST } else { 0 };
        let first_age = if policy == Policy::Nru { 0 } else { OLD };
        Self {
            policy,
            set_mask: sets as u64 - 1,
            ways,
            line_bits: shape.line_bits(),
            lines: vec![NONE; sets * ways].into(),
            ages: vec![first_age; ages].into(),
            trees: vec![first_tree; trees].into(),
            empty: vec![ways as u32; sets].into(),
            random,
            useless: 0,
            duel: MIDDLE - 1,
            region: (sets / 32).max(2),
        }
    }

    /// How far an address is shifted to become a line's number.
    #[inline]
    #[must_use]
    pub fn line_bits(&self) -> u32 {
        self.line_bits
    }

    /// The address, in this process, of what a lookup of `line` looks at first.
    #[inline]
    #[must_use]
    pub fn address(&self, line: u64) -> usize {
        self.lines.get(self.set(line) * self.ways).map_or(0, |line| std::ptr::from_ref(line).addr())
    }

    /// The addresses, in this process, of most of what it looks at.
    #[must_use]
    pub fn addresses(&self) -> std::ops::Range<usize> {
        let lines = self.lines.as_ptr_range();
        lines.start.addr()..lines.end.addr()
    }

    #[inline]
    fn set(&self, line: u64) -> usize {
        (line & self.set_mask) as usize
    }

    #[inline]
    fn way(&self, set: usize, line: u64) -> Option<usize> {
        self.lines[set * self.ways..][..self.ways].iter().position(|other| *other == line)
    }

    /// Whether `line` is there. Changes nothing.
    #[inline]
    #[must_use]
    pub fn has(&self, line: u64) -> bool {
        self.way(self.set(line), line).is_some()
    }

    /// Uses `line` if it is there, and says whether it is.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let Some(way) = self.way(set, line) else { return false };
        match self.policy {
            Policy::Lru => self.lines[set * self.ways..][..=way].rotate_right(1),
            Policy::Fifo | Policy::Random(_) => {}
            Policy::Plru => self.turn_away(set, way),
            Policy::Lru3Plru4 => trees_of_four::turn_away(&mut self.trees[set], way),
            Policy::Nru => self.ages[set * self.ways + way] = 1,
            Policy::Srrip | Policy::Brrip | Policy::Drrip => self.ages[set * self.ways + way] = 0,
            Policy::Qlru(rules) => {
                let ages = &mut self.ages[set * self.ways..][..self.ways];
                ages[way] = match ages[way] {
                    3 => rules.hit[0],
                    2 => rules.hit[1],
                    _ => 0,
                };
                if !rules.on_miss {
                    grow(rules, ages, Some(way));
                }
            }
        }
        true
    }

    /// Uses `line`, which is put into its set if it is not there, and says whether it was.
    #[inline]
    pub fn access(&mut self, line: u64) -> bool {
        if self.policy == Policy::Lru {
            // What most caches have is a copy of the code in which the number of ways is a constant.
            return match self.ways {
                8 => self.newest::<8>(line),
                16 => self.newest::<16>(line),
                _ => self.newest::<0>(line),
            };
        }
        let had = self.touch(line);
        if !had {
            self.fill(line);
        }
        had
    }

    /// Moves every line of the set one place back, up to the one where `line` was, and puts `line` first. Says whether it was
    /// there. `N` is the number of ways, or 0.
    #[inline(always)]
    fn newest<const N: usize>(&mut self, line: u64) -> bool {
        let ways = if N > 0 { N } else { self.ways };
        let set = self.set(line);
        let mut carried = line;
        for entry in &mut self.lines[set * ways..][..ways] {
            std::mem::swap(entry, &mut carried);
            if carried == line {
                return true;
            }
        }
        self.empty[set] -= u32::from(carried == NONE);
        false
    }

    /// Puts `line`, which must not be there, into its set. Returns the line that it displaces.
    #[inline]
    pub fn fill(&mut self, line: u64) -> Option<u64> {
        let set = self.set(line);
        debug_assert!(self.way(set, line).is_none(), "line {line:#x} is there");
        let full = self.empty[set] == 0;
        self.empty[set] -= u32::from(!full);
        if let Policy::Lru | Policy::Fifo = self.policy {
            let lines = &mut self.lines[set * self.ways..][..self.ways];
            let last = lines[self.ways - 1];
            lines.copy_within(..self.ways - 1, 1);
            lines[0] = line;
            return (last != NONE).then_some(last);
        }
        let way = self.place(set, full);
        let displaced = std::mem::replace(&mut self.lines[set * self.ways + way], line);
        (displaced != NONE).then_some(displaced)
    }

    /// The way of a set that a line comes to, as it is when the line has come.
    #[inline]
    fn place(&mut self, set: usize, full: bool) -> usize {
        let all = set * self.ways..(set + 1) * self.ways;
        let empty = |lines: &[u64]| lines.iter().position(|line| *line == NONE).unwrap_or(0);
        match self.policy {
            Policy::Lru | Policy::Fifo => 0,
            Policy::Random(_) if !full => empty(&self.lines[all]),
            Policy::Random(_) => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                (((self.random >> 32) * self.ways as u64) >> 32) as usize
            }
            Policy::Plru => {
                let way = if full { self.led_to(set) } else { empty(&self.lines[all]) };
                self.turn_away(set, way);
                way
            }
            Policy::Lru3Plru4 => {
                let way = if full { trees_of_four::led_to(self.trees[set]) } else { empty(&self.lines[all]) };
                trees_of_four::turn_away(&mut self.trees[set], way);
                way
            }
            Policy::Nru => {
                let used = &mut self.ages[all.clone()];
                if full && used.iter().all(|used| *used == 1) {
                    used.fill(0);
                }
                let way = if full { first(used, 0) } else { empty(&self.lines[all]) };
                used[way] = 1;
                way
            }
            Policy::Srrip | Policy::Brrip | Policy::Drrip => {
                let age = self.predicted(set);
                let ages = &mut self.ages[all.clone()];
                let way = if full {
                    age_together(ages, None);
                    first(ages, OLD)
                } else {
                    empty(&self.lines[all])
                };
                ages[way] = age;
                way
            }
            Policy::Qlru(rules) => {
                let ages = &mut self.ages[all.clone()];
                if rules.on_miss {
                    grow(rules, ages, None);
                }
                let lines = &self.lines[all];
                let way = match (full, rules.replaced) {
                    (true, _) => first(ages, OLD),
                    (false, 2) => lines.iter().rposition(|line| *line == NONE).unwrap_or(0),
                    (false, _) => empty(lines),
                };
                ages[way] = rules.loaded;
                if !rules.on_miss {
                    grow(rules, ages, Some(way));
                }
                way
            }
        }
    }

    /// The age of a line that comes to a set under the policies that predict the next use.
    fn predicted(&mut self, set: usize) -> u8 {
        let useless = match self.policy {
            Policy::Brrip => true,
            Policy::Drrip => match set % self.region {
                0 => {
                    self.duel = (self.duel + 1).min(GREATEST);
                    false
                }
                at if at == self.region - 1 => {
                    self.duel = self.duel.saturating_sub(1);
                    true
                }
                _ => self.duel >= MIDDLE,
            },
            _ => false,
        };
        if !useless {
            return OLD - 1;
        }
        self.useless = (self.useless + 1) % SELDOM;
        if self.useless == 0 { OLD - 1 } else { OLD }
    }

    /// Takes `line` out, and says whether it was there.
    pub fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let Some(way) = self.way(set, line) else { return false };
        let all = set * self.ways..(set + 1) * self.ways;
        self.empty[set] += 1;
        if let Policy::Lru | Policy::Fifo = self.policy {
            let lines = &mut self.lines[all];
            lines[way..].rotate_left(1);
            lines[self.ways - 1] = NONE;
            return true;
        }
        self.lines[all.start + way] = NONE;
        if let Some(age) = self.ages.get_mut(all.start + way) {
            *age = if self.policy == Policy::Nru { 0 } else { OLD };
        }
        true
    }

    /// The way that the bits of a set's tree lead to: from node 1 on, the children of node n are 2n and 2n+1.
    #[inline]
    fn led_to(&self, set: usize) -> usize {
        let mut node = 1;
        while node < self.ways {
            node = 2 * node + (self.trees[set] >> node & 1) as usize;
        }
        node - self.ways
    }

    /// Turns the bits above a way to where it is not.
    #[inline]
    fn turn_away(&mut self, set: usize, way: usize) {
        let mut node = way + self.ways;
        let tree = &mut self.trees[set];
        while node > 1 {
            let away = 1 - (node & 1) as u64;
            node /= 2;
            *tree = *tree & !(1 << node) | away << node;
        }
    }
}

/// The first way of an age; the first of all if none has it.
#[inline]
fn first(ages: &[u8], age: u8) -> usize {
    ages.iter().position(|other| *other == age).unwrap_or(0)
}

/// All lines grow older together until one is old, but for that of one way.
#[inline]
fn age_together(ages: &mut [u8], but: Option<usize>) {
    let others = |way: usize| Some(way) != but;
    let oldest = ages.iter().enumerate().filter(|(way, _)| others(*way)).map(|(_, age)| *age).max();
    let more = OLD - oldest.unwrap_or(OLD);
    if more > 0 {
        ages.iter_mut().enumerate().filter(|(way, _)| others(*way)).for_each(|(_, age)| *age += more);
    }
}

/// Ages grow as the rules say; `accessed` is the way that was accessed, behind an access.
#[inline]
fn grow(rules: Qlru, ages: &mut [u8], accessed: Option<usize>) {
    let but = accessed.filter(|_| rules.grows % 2 == 1);
    match rules.grows {
        0 | 1 => age_together(ages, but),
        _ if ages.contains(&OLD) => {}
        _ => ages.iter_mut().enumerate().filter(|(way, _)| Some(*way) != but).for_each(|(_, age)| *age += 1),
    }
}

/// A seed from which the generator can start, different for each number.
fn mixed(seed: u32) -> u64 {
    (u64::from(seed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Three trees over four ways each, and their order, in one word: three bits a tree, then the numbers of the trees, two bits
/// each, the one that was used last first.
mod trees_of_four {
    /// Where the order begins.
    const ORDER: u32 = 9;

    /// No bit set; the trees in order.
    pub(super) const FIRST: u64 = 0b10_01_00 << ORDER;

    /// The way that is replaced.
    #[inline]
    pub(super) fn led_to(word: u64) -> usize {
        let tree = (word >> (ORDER + 4) & 3) as usize;
        let bits = word >> (3 * tree);
        let half = (bits & 1) as usize;
        4 * tree + 2 * half + (bits >> (1 + half) & 1) as usize
    }

    /// A way is used: bits lead away from it, and its tree is the first in the order.
    #[inline]
    pub(super) fn turn_away(word: &mut u64, way: usize) {
        let (tree, half, leaf) = (way / 4, way / 2 % 2, way % 2);
        let root = 3 * tree;
        let mut set = |bit: usize, value: usize| *word = *word & !(1 << bit) | (value as u64) << bit;
        set(root, 1 - half);
        set(root + 1 + half, 1 - leaf);
        let order = *word >> ORDER;
        let others = [order & 3, order >> 2 & 3, order >> 4 & 3].into_iter().filter(|other| *other != tree as u64);
        let order = others.zip([2, 4]).fold(tree as u64, |order, (other, shift)| order | other << shift);
        *word = *word & ((1 << ORDER) - 1) | order << ORDER;
    }
}
