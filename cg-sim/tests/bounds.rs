//! Bounds of distances: a cache that keeps times, searched way by way, tells what it misses; the stack of all accesses has the
//! distance of each, which must lie within them. How near they are is held by what is known of some walks.

use cg_sim::bounds::{Bounds, Gone};
use cg_sim::distance::{LruStack, bin};

/// A cache of lines and the times of their last uses. At first line 0 is in every way, and was never used.
struct Cache {
    ways: Vec<Vec<[u64; 2]>>,
    time: u64,
}

/// What a use of a line is to the cache.
enum Use {
    Hit,
    Missed(Option<Gone>),
}

impl Cache {
    fn new(sets: usize, ways: usize) -> Self {
        Self { ways: vec![vec![[0; 2]; ways]; sets], time: 0 }
    }

    fn touch(&mut self, line: u64) -> Use {
        self.time += 1;
        let sets = self.ways.len() as u64;
        let set = &mut self.ways[(line % sets) as usize];
        // (An empty way of another set does not hold line 0.)
        if let Some(way) = set.iter_mut().find(|way| way[0] == line && (line != 0 || line.is_multiple_of(sets))) {
            way[1] = self.time;
            return Use::Hit;
        }
        let oldest = set.iter_mut().min_by_key(|way| way[1]).expect("a way");
        let [gone, time] = std::mem::replace(oldest, [line, self.time]);
        Use::Missed((time > 0).then_some(Gone { line: gone, time }))
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Lines that programs of several kinds use: `n` of them.
fn trace(kind: usize, n: u64) -> Vec<u64> {
    let mut state = kind as u64 + 11;
    let mut at = 0;
    (0..n)
        .map(|step| match kind {
            // Anywhere, line 0 included.
            0 => random(&mut state) % 3000,
            // In circles.
            1 => 5000 + step % 2500,
            // Few lines nearly always, others now and then.
            2 if !random(&mut state).is_multiple_of(6) => (1 << 20) + random(&mut state) % 40,
            2 => random(&mut state) % 20_000,
            // A transposition: by rows and by columns.
            3 if step.is_multiple_of(2) => (1 << 30) + step / 16 % 8000,
            3 => (1 << 31) + (step / 2 % 300) * 40 + step / 600 % 40,
            // Loops over pieces of several sizes, one after the other.
            4 => (1 << 24) + (step / 40_000) * 700 + step % (100 + step / 40_000 * 400),
            // A list whose lines follow from one another, and a stack beside it.
            5 if step.is_multiple_of(3) => (1 << 40) + random(&mut state) % 9,
            5 => {
                at = (at * 4_801 + 7) % 6007;
                at
            }
            // Sets that are not used alike: every eighth line far more than the others.
            _ if !random(&mut state).is_multiple_of(4) => random(&mut state) % 900 * 8,
            _ => random(&mut state) % 9000,
        })
        .collect()
}

/// What of a trace's misses was found: misses, those that are new, those whose bounds are in one bin, and the sum of how far they are from each other.
fn found(kind: usize, [sets, ways]: [usize; 2], n: u64) -> [u64; 4] {
    let (mut cache, mut stack) = (Cache::new(sets, ways), LruStack::new());
    let mut bounds = Bounds::new(sets as u32, ways as u32);
    let mut sums = [0; 4];
    for (step, line) in trace(kind, n).into_iter().enumerate() {
        let what = format!("trace {kind}, {sets} sets of {ways}, access {step}: line {line}");
        let exact = stack.touch(line);
        let Use::Missed(gone) = cache.touch(line) else {
            // (Line 0 is there at first, and nobody has ever told.)
            let most = bounds.at_most(line);
            assert!(exact.is_none_or(|exact| exact <= most), "{what}: {exact:?}, at most {most}");
            continue;
        };
        let known = bounds.brought(line, gone, cache.time);
        sums[0] += 1;
        match (known, exact) {
            (Some([least, most]), Some(exact)) => {
                assert!((least..=most).contains(&exact), "{what}: {least}..={most}, but {exact}");
                sums[2] += u64::from(bin(least) == bin(most));
                sums[3] += most - least;
            }
            (known, exact) => {
                assert_eq!(known, exact.map(|_| [0; 2]), "{what}");
                sums[1] += 1;
            }
        }
    }
    sums
}

#[test]
fn bounds_contain_the_distance_of_every_miss() {
    for kind in 0..7 {
        for shape in [[64, 8], [16, 2], [1, 64], [128, 1], [4, 3]] {
            let [missed, first, ..] = found(kind, shape, 200_000);
            assert!(
                missed > first && first > 20,
                "trace {kind}, {shape:?}: {missed} misses, {first} of them first ones"
            );
        }
    }
}

/// What goes through more lines than there are in the cache knows each distance but for its bucket; so does what keeps few of them.
#[test]
fn bounds_are_near_each_other() {
    for (kind, least) in [(1, 99), (3, 98), (4, 85), (5, 97)] {
        let [missed, first, certain, far] = found(kind, [64, 8], 1_000_000);
        let again = missed - first;
        assert!(certain * 100 >= again * least, "trace {kind}: {certain} of {again} are in one bin");
        assert!(far / again < 200, "trace {kind}: {far} in {again}");
    }
}

/// Far more lines than there are buckets: neighbours become one again and again.
#[test]
fn buckets_that_become_one_lose_nothing() {
    let lines = 400_000u64;
    let (mut cache, mut bounds) = (Cache::new(64, 8), Bounds::new(64, 8));
    let mut state = 3;
    let mut stack = LruStack::new();
    let mut certain = 0;
    for n in 0..4 * lines {
        // In circles, with some left out.
        let line = 64 + n % lines;
        if random(&mut state).is_multiple_of(8) {
            continue;
        }
        let exact = stack.touch(line);
        let Use::Missed(gone) = cache.touch(line) else { panic!("line {line} is still there") };
        let Some([least, most]) = bounds.brought(line, gone, cache.time) else {
            assert_eq!(exact, None, "access {n}");
            continue;
        };
        let exact = exact.expect("it was used before");
        assert!((least..=most).contains(&exact), "access {n}: {least}..={most}, but {exact}");
        assert!(most - least < 700, "access {n}: {least}..={most}");
        certain += u64::from(bin(least) == bin(most));
    }
    assert!(certain > 2 * lines, "{certain}");
}
