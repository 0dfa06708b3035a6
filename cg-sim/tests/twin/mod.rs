//! Slow, obvious twins of the models, and random traces that drive both.

pub(crate) mod policies;

use cg_sim::{Geometries, Geometry};

/// A generator of random numbers that gives the same ones everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(crate) fn geometry(size: i32, assoc: i32, line: i32) -> Geometry {
    Geometry::new(size, assoc, line).unwrap()
}

/// Hierarchies of all sorts: small ones, direct-mapped, one set, lines that differ, many ways.
pub(crate) fn hierarchies() -> Vec<Geometries> {
    let g = geometry;
    let all = |i1, d1, ll| Geometries { i1, d1, ll };
    vec![
        all(g(512, 2, 32), g(512, 2, 32), g(2048, 4, 32)),
        all(g(1024, 1, 64), g(1024, 1, 64), g(4096, 1, 64)),
        all(g(1024, 16, 64), g(512, 8, 64), g(4096, 64, 64)),
        all(g(512, 8, 16), g(1024, 4, 64), g(4096, 16, 128)),
        all(g(1024, 4, 64), g(768, 12, 64), g(4096, 2, 32)),
        all(g(1024, 8, 64), g(960, 15, 64), g(3328, 26, 64)),
        all(g(32768, 8, 64), g(32768, 8, 64), g(262_144, 8, 64)),
        all(g(32768, 8, 64), g(49152, 12, 64), g(1_703_936, 26, 64)),
        all(g(32, 1, 16), g(32, 2, 16), g(64, 4, 16)),
    ]
}

/// What a program does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fetch,
    Read,
    Write,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) kind: Kind,
    pub(crate) addr: u64,
    pub(crate) size: u32,
}

/// Accesses with hot places, strides, straddles, line 0 and the end of the address space.
pub(crate) fn accesses(random: &mut Random, count: usize) -> Vec<Access> {
    let mut out = Vec::with_capacity(count);
    let mut walk = 0x1000u64;
    let span = 1 << (8 + random.below(14));
    let base = [0u64, 0x40_0000, 0x7fff_f000_0000, 0xffff_ffff_ff60_0000][random.below(4) as usize];
    while out.len() < count {
        let kind = [Kind::Fetch, Kind::Read, Kind::Read, Kind::Write][random.below(4) as usize];
        let size = [1, 2, 4, 8, 8, 16][random.below(6) as usize];
        let addr = match random.below(16) {
            0..6 => base.wrapping_add(random.below(span)),
            6..10 => base.wrapping_add(random.below(64) * 8),
            10..14 => {
                walk = walk.wrapping_add([4, 8, 64, 4096][(out.len() / 512) % 4]);
                walk
            }
            14 => random.below(200),
            _ if random.one_in(64) => u64::MAX - random.below(70),
            _ => base.wrapping_add(random.below(span) & !63).wrapping_add(60),
        };
        out.push(Access { kind, addr, size });
        if random.one_in(3)
            && let Some(last) = out.last().copied()
        {
            out.push(last);
        }
    }
    out
}

/// A cache as one would explain it: each set is a list of lines, the most recently used first.
#[derive(Clone)]
pub(crate) struct Twin {
    pub(crate) sets: Vec<Vec<u64>>,
    pub(crate) line: u64,
}

impl Twin {
    pub(crate) fn new(g: Geometry) -> Self {
        Self { sets: vec![vec![0; g.assoc() as usize]; g.sets() as usize], line: u64::from(g.line()) }
    }

    /// The lines of an access, in order.
    pub(crate) fn lines(&self, addr: u64, size: u32) -> Vec<u64> {
        let mut lines = Vec::new();
        for byte in 0..u64::from(size) {
            let line = addr.wrapping_add(byte) / self.line;
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// Whether `line` is the most recently used of its set.
    pub(crate) fn is_newest(&self, line: u64) -> bool {
        let sets = self.sets.len() as u64;
        self.sets[(line % sets) as usize][0] == line
    }

    /// Whether any line of the access missed.
    pub(crate) fn access(&mut self, addr: u64, size: u32) -> bool {
        let mut missed = false;
        for line in self.lines(addr, size) {
            let sets = self.sets.len() as u64;
            let set = &mut self.sets[(line % sets) as usize];
            match set.iter().position(|l| *l == line) {
                Some(at) => {
                    set.remove(at);
                }
                None => {
                    missed = true;
                    set.pop();
                }
            }
            set.insert(0, line);
        }
        missed
    }
}

/// Three caches.
#[derive(Clone)]
pub(crate) struct Hierarchy {
    pub(crate) i1: Twin,
    pub(crate) d1: Twin,
    pub(crate) ll: Twin,
}

impl Hierarchy {
    pub(crate) fn new(g: &Geometries) -> Self {
        Self { i1: Twin::new(g.i1), d1: Twin::new(g.d1), ll: Twin::new(g.ll) }
    }

    pub(crate) fn first(&self, kind: Kind) -> &Twin {
        if kind == Kind::Fetch { &self.i1 } else { &self.d1 }
    }

    /// 0: the first level had it; 1: the last; 2: none.
    pub(crate) fn access(&mut self, a: Access) -> u8 {
        let first = if a.kind == Kind::Fetch { &mut self.i1 } else { &mut self.d1 };
        if !first.access(a.addr, a.size) {
            return 0;
        }
        if self.ll.access(a.addr, a.size) { 2 } else { 1 }
    }

    /// Whether all lines of the access are the most recently used of their sets.
    pub(crate) fn changes_nothing(&self, a: Access) -> bool {
        let first = self.first(a.kind);
        first.lines(a.addr, a.size).iter().all(|line| first.is_newest(*line))
    }
}
