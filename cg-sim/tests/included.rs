//! What an inclusive last level would take out of first levels: a hierarchy that looks for each line that leaves in every cache of every
//! thread, against what is known from the lines that come and go. And closed forms.

use cg_sim::beyond::{Ask as _, Beyond, Inclusion, Levels, Request};
use cg_sim::included::{Counts, Included};
use cg_sim::policy::parse_shape;
use cg_sim::prefetch::Prefetch;
use cg_sim::{Geometries, Geometry, Level1, Port};

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A first-level cache as a list of sets, the line used last at the end of each: what comes, and what goes.
struct First {
    sets: Vec<Vec<u64>>,
    ways: usize,
    line: u64,
}

impl First {
    fn new(shape: Geometry) -> Self {
        Self { sets: vec![Vec::new(); shape.sets() as usize], ways: shape.assoc() as usize, line: shape.line().into() }
    }

    /// Uses a line: nothing if it is there, or the way that it takes, and the line that goes.
    fn touch(&mut self, line: u64, ways: &mut Vec<Vec<u64>>) -> Option<(usize, Option<u64>)> {
        let number = (line % self.sets.len() as u64) as usize;
        let set = &mut self.sets[number];
        if let Some(at) = set.iter().position(|known| *known == line) {
            let line = set.remove(at);
            set.push(line);
            return None;
        }
        let gone = (set.len() == self.ways).then(|| set.remove(0));
        set.push(line);
        ways.resize(self.sets.len(), Vec::new());
        let of_set = &mut ways[number];
        let way = match gone.and_then(|gone| of_set.iter().position(|known| *known == gone)) {
            Some(way) => way,
            None => {
                of_set.push(line);
                of_set.len() - 1
            }
        };
        of_set[way] = line;
        Some((number * self.ways + way, gone))
    }

    fn has(&self, bytes: &std::ops::Range<u64>) -> bool {
        let mut lines = self.sets.iter().flatten();
        lines.any(|line| line * self.line < bytes.end && bytes.start < (line + 1) * self.line)
    }
}

struct Thread {
    data: First,
    code: First,
    data_ways: Vec<Vec<u64>>,
    code_ways: Vec<Vec<u64>>,
    model: Level1,
}

/// What is counted of random accesses of two threads: by the mirror, by a look at all lines, and by the model of first levels.
fn counted(shapes: [&str; 3], second: &str, prefetch: Prefetch, seed: u64) -> [Counts; 3] {
    let [d1, i1, _] = shapes.map(|text| parse_shape(text).expect("a shape").0);
    let last = parse_shape(shapes[2]).expect("a shape");
    let second = (!second.is_empty()).then(|| parse_shape(second).expect("a shape"));
    let levels = Levels { second, last, inclusion: Inclusion::Inclusive, prefetch };
    assert_eq!(levels.check(), Ok(()));
    let mut beyond = Beyond::new(&levels);
    beyond.tell_left();
    let mut mirror = Included::new(d1, i1);
    let mut others = [Included::new(d1, i1), Included::new(d1, i1)];
    let geometries = Geometries { i1, d1, ll: last.0 };
    let thread = || Thread {
        data: First::new(d1),
        code: First::new(i1),
        data_ways: Vec::new(),
        code_ways: Vec::new(),
        model: Level1::new(&geometries),
    };
    let mut threads = [thread(), thread()];
    let mut state = seed;
    for step in 0..60_000 {
        let at = (step / 500 % 2) as usize;
        beyond.run(at as i32);
        mirror.run(at as i32);
        let data = !random(&mut state).is_multiple_of(3);
        // (Line 0 is in first levels from the start.)
        let end = if !random(&mut state).is_multiple_of(4) { 3000 } else { 40_000 };
        let addr = 4096 + random(&mut state) % end;
        let size = 1 + (random(&mut state) % 16) as u32;
        let Thread { data: d, code: i, data_ways, code_ways, model } = &mut threads[at];
        let missed = model.misses(if data { Port::Data } else { Port::Fetch }, addr, size);
        let line = if data { d.line } else { i.line };
        let mut lines = vec![addr / line, (addr + u64::from(size) - 1) / line];
        lines.dedup();
        let mut came = false;
        let n = lines.len();
        for (k, number) in lines.into_iter().enumerate() {
            let Some((way, gone)) = (if data { d.touch(number, data_ways) } else { i.touch(number, code_ways) }) else {
                continue;
            };
            came = true;
            if data {
                mirror.data(number * line, gone.map(|gone| gone * line));
            } else {
                mirror.code(way, k + 1 == n);
            }
        }
        assert_eq!(came, missed, "step {step}");
        if !missed {
            continue;
        }
        if !data {
            mirror.fetched(addr, size as u16);
        }
        beyond.access(Request { instruction: addr, addr, size, data });
        let mut left = Vec::new();
        beyond.each_left(|bytes| left.push(bytes));
        for bytes in left {
            mirror.left(&bytes);
            others[0].counted(threads.iter().any(|thread| thread.data.has(&bytes) || thread.code.has(&bytes)));
            others[1].counted(threads.iter().any(|thread| thread.model.holds(&bytes)));
        }
    }
    [mirror.counts(), others[0].counts(), others[1].counts()]
}

#[test]
fn what_first_levels_hold_is_known_from_what_comes_and_goes() {
    let shapes = [
        ["1024,2,64", "512,1,64", "4096,4,64"],
        ["512,8,64", "1024,4,32", "2048,2,64,plru"],
        ["1536,3,64", "1024,2,64", "8192,4,128,random:3"],
        ["1024,2,64", "1024,2,64", "4096,4,32"],
    ];
    for (n, shapes) in shapes.into_iter().enumerate() {
        let l2 = if n == 0 { vec!["", "2048,4,64"] } else { vec![""] };
        for (second, prefetch) in l2.into_iter().flat_map(|l2| [(l2, Prefetch::None), (l2, Prefetch::NextLine)]) {
            let [mirror, looked, model] = counted(shapes, second, prefetch, n as u64 + 5);
            assert_eq!((mirror, model), (looked, looked), "{shapes:?}, {second}, {prefetch}");
            assert!(looked.held > 50 && looked.held < looked.left, "{shapes:?}, {second}: {looked:?}");
        }
    }
    // One that has room for all gives nothing up.
    let [mirror, ..] = counted(["1024,2,64", "512,1,64", "65536,16,64"], "", Prefetch::None, 3);
    assert_eq!(mirror, Counts::default());
}

/// A walk in circles over what neither level has room for: by the time that LL gives a line up, D1, which is smaller, has not had it for long.
/// One line that is used in between stays in D1, and is what LL, which never hears of it, gives up in each round that it comes to its set.
#[test]
fn a_line_that_is_always_used_is_the_one_that_is_taken_out() {
    let [d1, last] = ["1024,16,64", "4096,64,64"].map(|text| parse_shape(text).expect("a shape"));
    for always in [false, true] {
        let levels = Levels { second: None, last, inclusion: Inclusion::Inclusive, prefetch: Prefetch::None };
        let (mut beyond, mut mirror) = (Beyond::new(&levels), Included::new(d1.0, d1.0));
        beyond.tell_left();
        mirror.run(0);
        let (mut first, mut ways) = (First::new(d1.0), Vec::new());
        let walk = (0..1000u64).flat_map(|n| [100 + n % 100, 7]).filter(|line| always || *line != 7);
        for line in walk {
            let Some((_, gone)) = first.touch(line, &mut ways) else { continue };
            mirror.data(line * 64, gone.map(|gone| gone * 64));
            beyond.access(Request { instruction: 0, addr: line * 64, size: 8, data: true });
            beyond.each_left(|bytes| mirror.left(&bytes));
        }
        // 1,000 lines come to LL, of which 64 stay; with the one that is always used one more, and that goes once: nobody asks for it again.
        let expected = if always { Counts { left: 1001 - 64, held: 1 } } else { Counts { left: 1000 - 64, held: 0 } };
        assert_eq!(mirror.counts(), expected);
    }
}
