//! What is folded is unfolded again, beside the sequence itself.

use super::*;

const GRID: Grid = Grid { line: 64, size: 8 };

fn folded(sequence: &[u64], grid: Grid) -> Folded {
    let mut fold = Fold::new(grid);
    sequence.iter().for_each(|at| fold.push(*at));
    fold.finish()
}

fn unfolded(folded: &Folded, grid: Grid) -> Vec<u64> {
    folded.parts.iter().flat_map(|part| part.addresses(0, grid)).collect()
}

/// The sequence must be in the parts to the last address. Returns them.
fn exactly(sequence: &[u64], grid: Grid) -> Vec<Part> {
    let folded = folded(sequence, grid);
    assert!(folded.irregular == 0 && unfolded(&folded, grid) == sequence, "{folded:?}");
    for part in &folded.parts {
        assert_eq!(part.misses, part.addresses(0, grid).count() as u64, "{part:?}");
    }
    folded.parts
}

/// Which of these accesses miss a cache of so many lines, in which the least recently used one goes: by a list.
fn misses(accesses: impl IntoIterator<Item = i64>, lines: usize, grid: Grid) -> Vec<u64> {
    let mut cache: Vec<i64> = Vec::new();
    let mut missed = Vec::new();
    for at in accesses {
        let mut any = false;
        let all = at.div_euclid(64)..=(at + grid.size.cast_signed() - 1).div_euclid(64);
        for line in all {
            match cache.iter().position(|l| *l == line) {
                Some(n) => drop(cache.remove(n)),
                None => any = true,
            }
            cache.push(line);
            if cache.len() > lines {
                cache.remove(0);
            }
        }
        if any {
            missed.push(at.cast_unsigned());
        }
    }
    missed
}

fn random(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % n
}

fn level(step: i64, count: u64) -> Level {
    Level { step, count }
}

/// `for k < 3: for i < 2000: a[i]`, from 16 bytes into a line on, through a cache of fewer lines.
#[test]
fn a_triad_is_a_walk_three_times() {
    let accesses = (0..3).flat_map(|_| (0..2000).map(|i| 4096 + 16 + 8 * i));
    let parts = exactly(&misses(accesses, 128, GRID), GRID);
    let walk = Some(Walk { step: 16, last: 15984, most: 16047 - 16 });
    assert_eq!(parts.len(), 1, "{parts:?}");
    let part = Part { start: 4112, misses: 753, walk, levels: vec![level(0, 3)] };
    let [got] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!((got.start, got.misses, &got.levels), (part.start, part.misses, &part.levels));
    let walk = got.walk.expect("a walk");
    assert_eq!(walk.step, 16);
    // The last element, 15992 bytes on, is on the last line.
    assert!(walk.last <= 15992 && walk.most >= 15992 && walk.most - walk.last < 64, "{walk:?}");
}

/// `b[j * 600 + i] = a[i * 600 + j]`: the columns, and the rows.
#[test]
fn a_transposition_has_two_steps() {
    let columns = (0..600).flat_map(|i| (0..600).map(move |j| (1 << 20) + 8 * (600 * j + i)));
    let sequence: Vec<u64> = columns.collect();
    let parts = exactly(&sequence, GRID);
    let expected = Part { start: 1 << 20, misses: 360_000, walk: None, levels: vec![level(4800, 600), level(8, 600)] };
    let whole: Vec<Part> = exactly(&[&sequence[..], &sequence[..], &sequence[..]].concat(), GRID);
    if parts == [expected.clone()] {
        let levels = [&expected.levels[..], &[level(0, 3)]].concat();
        assert_eq!(whole, [Part { misses: 1_080_000, levels, ..expected }]);
    } else {
        panic!("{parts:?}");
    }
    let rows = (0..600 * 600).map(|n| (1 << 20) + 16 + 8 * n);
    let parts = exactly(&misses(rows, 128, GRID), GRID);
    assert_eq!(parts.len(), 1, "rows that follow one another are one walk: {parts:?}");
}

/// Rows of a matrix that has room behind each: lines begin at other places in each of them.
#[test]
fn rows_apart_are_walks_at_a_step() {
    for (columns, apart) in [(100, 108), (100, 109), (64, 77), (57, 68), (300, 311), (25, 70)] {
        let accesses = (0..500).flat_map(|i| (0..columns).map(move |j| 4096 + 8 * (i * apart + j)));
        let sequence = misses(accesses, 10, GRID);
        let parts = exactly(&sequence, GRID);
        let whole = parts.iter().map(|p| p.misses).max().expect("a part");
        assert!(whole * 10 >= sequence.len() as u64 * 9, "{columns} of {apart}: {parts:?}");
    }
}

#[test]
fn closed_forms() {
    // Backwards, by three numbers, over a volume, in place, and round the end of all addresses.
    let back: Vec<u64> = misses((0..5000).rev().map(|n| 4096 + 8 * n), 100, GRID);
    let [part] = &exactly(&back, GRID)[..] else { panic!("one walk") };
    assert!(part.walk.is_some_and(|walk| walk.step < 0), "{part:?}");
    for step in [24, 40, 48, 56, 72, 120, 200, -24, -40, -72] {
        let sequence = misses((0..3000).map(|n| (1 << 20) + step * n), 100, GRID);
        let parts = exactly(&sequence, GRID);
        assert_eq!(parts.len(), 1, "{step}: {parts:?}");
    }
    let volume = (0..20).flat_map(|i| (0..30).flat_map(move |j| (0..50).map(move |k| i + 5000 * (3 * j + 200 * k))));
    let sequence: Vec<u64> = volume.map(i64::cast_unsigned).collect();
    let [part] = &exactly(&sequence, GRID)[..] else { panic!("one part") };
    assert_eq!(part.levels, [level(1_000_000, 50), level(15000, 30), level(1, 20)]);
    let [part] = &exactly(&[77; 1000], GRID)[..] else { panic!("one part") };
    assert_eq!(part.levels, [level(0, 1000)], "step 0");
    let round: Vec<u64> = (0..1000u64).map(|n| 500u64.wrapping_neg().wrapping_add(n).wrapping_mul(1 << 54)).collect();
    assert_eq!(exactly(&round, GRID).len(), 1);
    let pairs: Vec<u64> = (0..900).flat_map(|n| [1000 * n, 1000 * n + 8]).collect();
    let [part] = &exactly(&pairs, GRID)[..] else { panic!("one part") };
    assert_eq!(part.levels, [level(8, 2), level(1000, 900)]);
}

/// Random nests of loops over arrays, through a cache or not, of accesses of any size: whatever is in parts is the sequence.
#[test]
fn random_programs_unfold_to_their_misses() {
    let mut state = 3;
    let mut whole = 0;
    for n in 0..1500 {
        let grid = Grid { line: 64, size: [1, 2, 4, 8, 16, 32][random(&mut state, 6) as usize] };
        let mut accesses: Vec<i64> = Vec::new();
        for _ in 0..=random(&mut state, 2) {
            let mut part =
                Part { start: random(&mut state, 1 << 30) as i64, misses: 0, walk: None, levels: Vec::new() };
            for _ in 0..=random(&mut state, 3) {
                let size = grid.size.cast_signed();
                let by = [size, size * 3, 4, 64, 1, 4800][random(&mut state, 6) as usize];
                let step = (random(&mut state, 40) as i64 - 12) * by;
                part.levels.push(level(step, 1 + random(&mut state, 17)));
            }
            accesses.extend(part.addresses(0, grid).map(u64::cast_signed));
        }
        let sequence = match random(&mut state, 3) {
            0 => accesses.iter().map(|at| at.cast_unsigned()).collect(),
            1 => misses(accesses, 4, grid),
            _ => misses(accesses, 60, grid),
        };
        let folded = folded(&sequence, grid);
        let got = unfolded(&folded, grid);
        let in_parts: u64 = folded.parts.iter().map(|part| part.misses).sum();
        assert_eq!(in_parts, got.len() as u64, "{n}");
        assert_eq!(in_parts + folded.irregular, sequence.len() as u64, "{n}");
        assert_eq!(folded.irregular, folded.distances.iter().sum::<u64>(), "{n}");
        // What was given up is missing, and nothing else: the rest is in order.
        let mut rest = sequence.iter();
        assert!(got.iter().all(|at| rest.any(|other| other == at)), "{n}: not in order");
        if folded.irregular == 0 {
            assert_eq!(got, sequence, "{n}");
            whole += 1;
        }
    }
    assert!(whole > 700, "only {whole} were folded wholly");
}

#[test]
fn what_has_no_steps_is_counted() {
    let mut state = 5;
    let sequence: Vec<u64> = (0..100_000).map(|_| random(&mut state, 1 << 24)).collect();
    let folded = folded(&sequence, GRID);
    assert!(folded.irregular > 99_000 && folded.parts.len() <= PARTS);
    // Half of all numbers have the highest bit.
    assert!(folded.distances[23] > folded.distances[22] && folded.distances.len() <= 26, "{:?}", folded.distances);
    assert_eq!(folded.distances.iter().sum::<u64>(), folded.irregular);
}

#[test]
fn a_sequence_behind_another_goes_on() {
    let all: Vec<u64> = (0..4000).map(|n| 64 * n).collect();
    let mut whole = Fold::new(GRID);
    for piece in all.chunks(1000) {
        let mut fold = Fold::new(GRID);
        piece.iter().for_each(|at| fold.push(*at));
        whole.append(fold);
    }
    let folded = whole.finish();
    assert_eq!((folded.irregular, unfolded(&folded, GRID)), (0, all));
    assert_eq!(folded.parts.len(), 1, "{folded:?}");
}
