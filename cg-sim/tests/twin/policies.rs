//! Automata of policies as the papers have them: bits and ages by way, one step at a time.

use cg_sim::Geometry;
use cg_sim::policy::{Policy, Qlru};

/// A cache of one policy.
pub(crate) trait Automaton {
    fn has(&self, line: u64) -> bool;
    fn touch(&mut self, line: u64) -> bool;
    fn fill(&mut self, line: u64) -> Option<u64>;
    fn remove(&mut self, line: u64) -> bool;
}

/// What a policy knows of a set.
trait Rule: Clone {
    fn hit(&mut self, way: usize);
    /// The way that is replaced; all have lines.
    fn victim(&mut self) -> usize;
    /// A line has come to a way.
    fn loaded(&mut self, way: usize, set: usize, duel: &mut Duel);
    /// Whether the last empty way is filled first.
    fn searches_from_the_end(&self) -> bool {
        false
    }
    /// A miss, before anything is done about it.
    fn missed(&mut self) {}
    fn emptied(&mut self, _way: usize) {}
}

#[derive(Clone, Default)]
pub(crate) struct Duel {
    sets: usize,
    kind: u8,
    useless: u32,
    selector: i32,
}

#[derive(Clone)]
struct Sets<R> {
    sets: Vec<(Vec<Option<u64>>, R)>,
    duel: Duel,
}

impl<R: Rule> Sets<R> {
    fn set(&mut self, line: u64) -> &mut (Vec<Option<u64>>, R) {
        let count = self.sets.len() as u64;
        &mut self.sets[(line % count) as usize]
    }
}

impl<R: Rule> Automaton for Sets<R> {
    fn has(&self, line: u64) -> bool {
        self.sets[(line % self.sets.len() as u64) as usize].0.contains(&Some(line))
    }

    fn touch(&mut self, line: u64) -> bool {
        let (lines, rule) = self.set(line);
        match lines.iter().position(|l| *l == Some(line)) {
            Some(way) => {
                rule.hit(way);
                true
            }
            None => false,
        }
    }

    fn fill(&mut self, line: u64) -> Option<u64> {
        let mut duel = std::mem::take(&mut self.duel);
        let number = (line % self.sets.len() as u64) as usize;
        let (lines, rule) = self.set(line);
        rule.missed();
        let empty: Vec<usize> = (0..lines.len()).filter(|way| lines[*way].is_none()).collect();
        let way = match (empty.first(), empty.last()) {
            (Some(_), Some(last)) if rule.searches_from_the_end() => *last,
            (Some(first), _) => *first,
            _ => rule.victim(),
        };
        let gone = lines[way].replace(line);
        rule.loaded(way, number, &mut duel);
        self.duel = duel;
        gone
    }

    fn remove(&mut self, line: u64) -> bool {
        let (lines, rule) = self.set(line);
        let Some(way) = lines.iter().position(|l| *l == Some(line)) else { return false };
        lines[way] = None;
        rule.emptied(way);
        true
    }
}

/// The moments of the last uses (or loads).
#[derive(Clone)]
struct Times {
    times: Vec<u64>,
    now: u64,
    loads_only: bool,
}

impl Rule for Times {
    fn hit(&mut self, way: usize) {
        self.now += 1;
        if !self.loads_only {
            self.times[way] = self.now;
        }
    }

    fn victim(&mut self) -> usize {
        (0..self.times.len()).min_by_key(|way| self.times[*way]).unwrap()
    }

    fn loaded(&mut self, way: usize, _: usize, _: &mut Duel) {
        self.now += 1;
        self.times[way] = self.now;
    }
}

/// A tree: a bit, and what is on its left and on its right.
#[derive(Clone)]
enum Tree {
    Leaf,
    Node(bool, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn new(ways: usize) -> Self {
        match ways {
            1 => Self::Leaf,
            n => Self::Node(false, Box::new(Self::new(n / 2)), Box::new(Self::new(n / 2))),
        }
    }

    fn ways(&self) -> usize {
        match self {
            Self::Leaf => 1,
            Self::Node(_, left, right) => left.ways() + right.ways(),
        }
    }
}

impl Rule for Tree {
    fn hit(&mut self, way: usize) {
        if let Self::Node(right_next, left, right) = self {
            let middle = left.ways();
            *right_next = way < middle;
            if way < middle { left.hit(way) } else { right.hit(way - middle) }
        }
    }

    fn victim(&mut self) -> usize {
        match self {
            Self::Leaf => 0,
            Self::Node(true, left, right) => left.ways() + right.victim(),
            Self::Node(false, left, _) => left.victim(),
        }
    }

    fn loaded(&mut self, way: usize, _: usize, _: &mut Duel) {
        self.hit(way);
    }
}

/// Trees of four ways, and their numbers, that which was used last first.
#[derive(Clone)]
struct Trees(Vec<Tree>, Vec<usize>);

impl Rule for Trees {
    fn hit(&mut self, way: usize) {
        self.0[way / 4].hit(way % 4);
        self.1.retain(|tree| *tree != way / 4);
        self.1.insert(0, way / 4);
    }

    fn victim(&mut self) -> usize {
        let tree = *self.1.last().unwrap();
        4 * tree + self.0[tree].victim()
    }

    fn loaded(&mut self, way: usize, _: usize, _: &mut Duel) {
        self.hit(way);
    }
}

/// "Not recently used", a bit a way.
#[derive(Clone)]
struct Unused(Vec<bool>);

impl Rule for Unused {
    fn hit(&mut self, way: usize) {
        self.0[way] = false;
    }

    fn victim(&mut self) -> usize {
        loop {
            if let Some(way) = self.0.iter().position(|unused| *unused) {
                return way;
            }
            self.0.fill(true);
        }
    }

    fn loaded(&mut self, way: usize, _: usize, _: &mut Duel) {
        self.0[way] = false;
    }

    fn emptied(&mut self, way: usize) {
        self.0[way] = true;
    }
}

/// Predictions of the next use.
#[derive(Clone)]
struct Predicted(Vec<u8>);

impl Rule for Predicted {
    fn hit(&mut self, way: usize) {
        self.0[way] = 0;
    }

    fn victim(&mut self) -> usize {
        loop {
            if let Some(way) = self.0.iter().position(|age| *age == 3) {
                return way;
            }
            self.0.iter_mut().for_each(|age| *age += 1);
        }
    }

    fn loaded(&mut self, way: usize, set: usize, duel: &mut Duel) {
        let far = |duel: &mut Duel| {
            duel.useless += 1;
            if duel.useless.is_multiple_of(32) { 2 } else { 3 }
        };
        // One of each kind in as many neighbouring sets as make 32 such groups.
        let group = std::cmp::max(duel.sets / 32, 2);
        self.0[way] = match duel.kind {
            0 => 2,
            1 => far(duel),
            _ if set.is_multiple_of(group) => {
                duel.selector = std::cmp::min(duel.selector + 1, 512);
                2
            }
            _ if (set + 1).is_multiple_of(group) => {
                duel.selector = std::cmp::max(duel.selector - 1, -511);
                far(duel)
            }
            _ if duel.selector > 0 => far(duel),
            _ => 2,
        };
    }

    fn emptied(&mut self, way: usize) {
        self.0[way] = 3;
    }
}

/// Ages with rules, one unit at a time.
#[derive(Clone)]
struct Ages(Vec<u8>, Qlru);

impl Ages {
    fn grow(&mut self, accessed: Option<usize>) {
        let spared = if self.1.grows % 2 == 1 { accessed } else { None };
        let considered: Vec<usize> = match self.1.grows {
            1 => (0..self.0.len()).filter(|way| Some(*way) != spared).collect(),
            _ => (0..self.0.len()).collect(),
        };
        let steps = if self.1.grows < 2 { 3 } else { 1 };
        for _ in 0..steps {
            if considered.iter().any(|way| self.0[*way] == 3) {
                return;
            }
            (0..self.0.len()).filter(|way| Some(*way) != spared).for_each(|way| self.0[way] += 1);
        }
    }
}

impl Rule for Ages {
    fn hit(&mut self, way: usize) {
        self.0[way] = match self.0[way] {
            3 => self.1.hit[0],
            2 => self.1.hit[1],
            _ => 0,
        };
        if !self.1.on_miss {
            self.grow(Some(way));
        }
    }

    fn missed(&mut self) {
        if self.1.on_miss {
            self.grow(None);
        }
    }

    fn victim(&mut self) -> usize {
        match (self.0.iter().position(|age| *age == 3), self.1.replaced) {
            (Some(way), _) => way,
            (None, 1) => 0,
            (None, _) => panic!("no line is old: {:?}", self.0),
        }
    }

    fn loaded(&mut self, way: usize, _: usize, _: &mut Duel) {
        self.0[way] = self.1.loaded;
        if !self.1.on_miss {
            self.grow(Some(way));
        }
    }

    fn searches_from_the_end(&self) -> bool {
        self.1.replaced == 2
    }

    fn emptied(&mut self, way: usize) {
        self.0[way] = 3;
    }
}

/// The automaton of a policy (but for one that chooses at random).
pub(crate) fn automaton(shape: Geometry, policy: Policy) -> Box<dyn Automaton> {
    let (sets, ways) = (shape.sets() as usize, shape.assoc() as usize);
    fn of<R: Rule + 'static>((sets, ways, kind): (usize, usize, u8), rule: R) -> Box<dyn Automaton> {
        let duel = Duel { sets, kind, ..Duel::default() };
        Box::new(Sets { sets: vec![(vec![None; ways], rule); sets], duel })
    }
    let plain = (sets, ways, 0);
    let times = |loads_only| Times { times: vec![0; ways], now: 0, loads_only };
    match policy {
        Policy::Lru => of(plain, times(false)),
        Policy::Fifo => of(plain, times(true)),
        Policy::Plru => of(plain, Tree::new(ways)),
        Policy::Lru3Plru4 => of(plain, Trees(vec![Tree::new(4); ways / 4], (0..ways / 4).collect())),
        Policy::Nru => of(plain, Unused(vec![true; ways])),
        Policy::Srrip => of(plain, Predicted(vec![3; ways])),
        Policy::Brrip => of((sets, ways, 1), Predicted(vec![3; ways])),
        Policy::Drrip => of((sets, ways, 2), Predicted(vec![3; ways])),
        Policy::Qlru(rules) => of(plain, Ages(vec![3; ways], rules)),
        Policy::Random(_) => panic!("chance has no automaton"),
    }
}
