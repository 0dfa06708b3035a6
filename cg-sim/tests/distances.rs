//! Distances: those of a list that is searched from its end, on traces of several kinds; closed forms; and the misses of caches of
//! one set, which the model of caches counts by itself.

use cg_sim::Geometry;
use cg_sim::distance::{BINS, Histogram, LruStack, Sample, bin};
use cg_sim::lru::Lru;

/// The lines in the order in which they were used last, the last one at the end.
#[derive(Default)]
struct List(Vec<u64>);

impl List {
    fn touch(&mut self, line: u64) -> Option<u64> {
        let at = self.0.iter().rposition(|known| *known == line);
        let distance = at.map(|at| (self.0.len() - 1 - at) as u64);
        at.map(|at| self.0.remove(at));
        self.0.push(line);
        distance
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Lines of a program: `n` of them, of so many.
fn trace(kind: usize, n: u64, lines: u64) -> Vec<u64> {
    let mut state = kind as u64 + 7;
    (0..n)
        .map(|at| match kind {
            0 => random(&mut state) % lines,
            1 => at % lines,
            // A stack that grows and shrinks.
            2 => {
                let within = at % (2 * lines);
                within.min(2 * lines - within)
            }
            // Few lines often, others now and then, far apart.
            3 => match random(&mut state) % 8 {
                0 => (random(&mut state) % lines) << 40,
                _ => random(&mut state) % 20,
            },
            // Two walks that take turns, from both ends of all addresses.
            _ => {
                let step = at / 2 % lines;
                if at % 2 == 0 { step } else { (u64::MAX >> 6) - step * 3 }
            }
        })
        .collect()
}

#[test]
fn distances_are_those_of_a_list() {
    for kind in 0..5 {
        for lines in [1, 2, 15, 16, 17, 100, 3000] {
            let (mut stack, mut list) = (LruStack::new(), List::default());
            for (n, line) in trace(kind, 120_000, lines).into_iter().enumerate() {
                assert_eq!(stack.touch(line), list.touch(line), "trace {kind} over {lines} lines, access {n}");
            }
        }
    }
}

#[test]
fn walks_in_circles_have_one_distance() {
    // More than there are times at first, so that lines are numbered anew again and again.
    for lines in [1u64, 16, 17, 4096, 150_000] {
        let mut stack = LruStack::new();
        for n in 0..4 * lines {
            let expected = (n >= lines).then_some(lines - 1);
            assert_eq!(stack.touch(n % lines), expected, "{lines} lines, access {n}");
        }
    }
    // Forth and back: the way to the end and back again.
    let lines = 70_000u64;
    let mut stack = LruStack::new();
    (0..lines).for_each(|line| assert_eq!(stack.touch(line), None));
    for line in (0..lines).rev() {
        assert_eq!(stack.touch(line), Some(lines - 1 - line), "back at {line}");
    }
}

/// Three arrays in turn, again and again: each access but the first of a line comes after two others, a line's first after all lines.
#[test]
fn a_triad_has_three_distances() {
    let (lines, rounds) = (5000u64, 3);
    let mut found = Histogram::default();
    let mut stack = LruStack::new();
    for _ in 0..rounds {
        for element in 0..lines * 8 {
            for array in 0..3 {
                found.add(stack.touch(array * 1_000_000 + element / 8));
            }
        }
    }
    let mut expected = Histogram { first: 3 * lines, ..Histogram::default() };
    expected.bins[bin(2)] = rounds * 3 * lines * 7;
    expected.bins[bin(3 * lines - 1)] = (rounds - 1) * 3 * lines;
    assert_eq!(found, expected);
    assert_eq!(found.total(), rounds * 3 * lines * 8);
}

/// What a fully associative cache misses, as the model of caches counts it, is what lies at its size and beyond.
#[test]
fn a_cache_of_one_set_misses_what_is_farther_than_it_is_large() {
    for kind in 0..4 {
        for ways in [2u16, 8, 64, 1024] {
            let geometry = Geometry::new(i32::from(ways) * 64, ways.into(), 64).expect("one set");
            let mut cache = Lru::new(geometry);
            let (mut stack, mut found, mut misses) = (LruStack::new(), Histogram::default(), 0);
            // The model holds line 0 from the start.
            for line in trace(kind, 50_000, 2000).into_iter().map(|line| (line + 1) & (u64::MAX >> 6)) {
                misses += u64::from(cache.access(line << 6, 8));
                found.add(stack.touch(line));
            }
            let beyond: u64 = found.bins[bin(ways.into())..].iter().sum();
            assert_eq!(found.first + beyond, misses, "trace {kind}, {ways} lines");
        }
    }
}

#[test]
fn bins_are_powers_of_two() {
    assert_eq!([0, 1, 2, 3, 4, 7, 8, 1 << 20, (1 << 21) - 1].map(bin), [0, 1, 2, 2, 3, 3, 4, 21, 21]);
    assert_eq!((bin(1 << 38), bin(u64::MAX)), (BINS - 1, BINS - 1));
}

/// One line of so many is taken; its distance in those that are is about so many times smaller.
#[test]
fn a_sample_of_lines_is_an_estimate_of_all() {
    assert!((0..1000).all(|line| Sample::default().takes(line)) && Sample::default().rate() == 1);
    let sample = Sample::new(4);
    let lines = 40_000u64;
    let taken: Vec<u64> = (0..lines).filter(|line| sample.takes(*line)).collect();
    assert!((lines / 16).abs_diff(taken.len() as u64) < lines / 160, "{}", taken.len());
    let mut stack = LruStack::new();
    taken.iter().for_each(|line| assert_eq!(stack.touch(*line), None));
    for line in &taken {
        let estimate = sample.scaled(stack.touch(*line).expect("it was used"));
        assert!(estimate.abs_diff(lines) < lines / 10, "{estimate}");
    }
}

#[test]
fn copies_go_on_by_themselves() {
    let (mut stack, mut list) = (LruStack::new(), List::default());
    for line in trace(0, 5000, 300) {
        assert_eq!(stack.touch(line), list.touch(line));
    }
    let mut copy = stack.clone();
    (0..500).for_each(|line| assert!(copy.touch(line + 300).is_none()));
    for line in trace(0, 5000, 400) {
        assert_eq!(stack.touch(line), list.touch(line));
    }
}
